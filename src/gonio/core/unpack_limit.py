"""How much a compressed file may unpack to: a kilobyte can stand for gigabytes, so the limit is known beforehand."""

from __future__ import annotations

from gonio.core.errors import GonioError, LoadError

GIGABYTE = 10**9
DEFAULT = 4.0  # gigabytes
TEXT = 64  # bytes that a text takes in memory beside its characters
_limit = DEFAULT * GIGABYTE


def set_unpack_limit(gigabytes: float) -> None:
    """Read compressed arrays that unpack to at most so many gigabytes, from now on."""
    global _limit
    if not gigabytes > 0:
        raise GonioError(f"unpack limit: {gigabytes:g} was given; a number of gigabytes above 0 is needed.")
    _limit = gigabytes * GIGABYTE


def check_unpacked(place: str, needed: int, packed: int) -> None:
    """Raise where something compressed would take more memory than the limit."""
    if needed > _limit:
        raise LoadError(
            f"load: {place} would unpack from {packed:,} to {needed:,} bytes, above the limit of "
            f"{_limit / GIGABYTE:g} GB; if the file is to be trusted, raise it: gonio --unpack-limit GB, or "
            f"gonio.core.unpack_limit.set_unpack_limit."
        )
