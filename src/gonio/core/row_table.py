"""A table of label vectors as it lies in a file, given out in float32 or float64 a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.parallel import in_threads, spans

if TYPE_CHECKING:
    from jaxtyping import Float, Int, UInt

Selection = Any  # a slice or an array of row indices
BLOCK_BYTES = 1 << 20  # a block and its float64 copy stay within a core's cache


@dataclass(frozen=True)
class Scaled:
    """Rows times a number: the constant by which some models multiply their logits."""

    factor: float

    def __call__(self, stored: np.ndarray, which: Selection) -> np.ndarray:
        rows = checks.wide(stored)
        return rows * rows.dtype.type(self.factor)


@dataclass(frozen=True, eq=False)
class Affine8:
    """Eight-bit rows: (q - zero) * scale, with one scale and zero for all rows or one a row."""

    scale: np.ndarray
    zero: np.ndarray

    def __call__(self, stored: np.ndarray, which: Selection) -> np.ndarray:
        scale = self.scale if self.scale.ndim == 0 else self.scale[which][:, None]
        zero = self.zero if self.zero.ndim == 0 else self.zero[which][:, None]
        return (stored.astype(np.float32) - zero.astype(np.float32)) * scale.astype(np.float32)


def _changeable(a: np.ndarray) -> bool:
    """Whether an array or one that it is a view of can be written to."""
    base: Any = a
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return True
        base = base.base
    return False


class RowTable:
    """An immutable n x d table of finite numbers in the type it was stored in.

    `stored` holds one entry of its first axis a row. Float types of 16 and 8 bits are widened, and packed types
    unpacked by `unpack(stored_rows, which)`, only for the rows asked for: never the whole table at once, unless
    `whole` is called.
    """

    __slots__ = ("_seen", "derived", "kind", "shape", "stored", "unpack")

    def __init__(
        self,
        stored: Any,
        *,
        dim: int | None = None,
        unpack: Callable[[np.ndarray, Selection], np.ndarray] | None = None,
        kind: str | None = None,
        who: str = "Head",
        derived: bool = False,
    ) -> None:
        if unpack is None:
            stored = checks.matrix(stored, who, "W")
        elif stored.ndim != 2 or not stored.size:
            raise GonioError(f"{who}: W has shape {stored.shape}; two axes, neither empty, are needed.")
        if _changeable(stored):
            # Somebody could still change these numbers behind our back, so we keep a copy; what nobody can write to
            # (a read-only memory map above all) is shared.
            stored = stored.copy()
            stored.flags.writeable = False
        self.stored: np.ndarray = stored
        self.unpack = unpack
        self.kind = kind or stored.dtype.name
        self.shape = (stored.shape[0], dim if dim is not None else stored.shape[1])
        self.derived = derived  # computed from rows that were surveyed: its own survey can wait until it is needed
        self._seen: Survey | None = None

    @property
    def wide(self) -> bool:
        """Whether the table is stored in float32 or float64, so that reading it costs no conversion."""
        return self.unpack is None and self.stored.dtype in (np.float32, np.float64)

    def __getitem__(self, which: Selection) -> Float[np.ndarray, "some dim"]:
        """The chosen rows (a slice or an array of indices), in float32 or float64."""
        stored = self.stored[which]
        if self.wide:
            return stored
        with np.errstate(all="ignore"):  # NaN and infinities are found by the survey, which names their place
            return checks.wide(stored) if self.unpack is None else self.unpack(stored, which)

    def whole(self) -> Float[np.ndarray, "labels dim"]:
        """The whole table in float32 or float64; for a narrower stored type this allocates it."""
        if self.wide:
            return self.stored
        n, d = self.shape
        out = np.empty((n, d), self[:1].dtype)

        def fill(span: tuple[int, int]) -> None:
            out[span[0] : span[1]] = self[span[0] : span[1]]

        in_threads(fill, spans(n, self.block_size()))
        out.flags.writeable = False
        return out

    def block_size(self) -> int:
        """How many rows make a block of about a megabyte."""
        return max(1, BLOCK_BYTES // (4 * self.shape[1]))

    def blocks(self, size: int | None = None) -> Iterator[tuple[int, Float[np.ndarray, "some dim"]]]:
        """The table in order, as (first row, rows) pairs."""
        for start, stop in spans(self.shape[0], size or self.block_size()):
            yield start, self[start:stop]

    def survey(self) -> Survey:
        """Norms and fingerprints of all rows, from one pass over the table; complains about NaN and infinities."""
        if self._seen is None:
            self._seen = _survey(self)
        return self._seen


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass over the rows tells: their lengths, and a number that is equal for equal rows."""

    norms: Float[np.ndarray, " labels"]
    prints: UInt[np.ndarray, " labels"]


def _survey(rows: RowTable) -> Survey:
    n, d = rows.shape
    squares = np.empty(n)
    prints = np.empty(n, np.uint64)
    # Odd multipliers modulo 2^64: integer sums do not depend on their order, so equal rows get equal prints.
    weights = np.random.default_rng(0x60D10).integers(0, 1 << 63, d, dtype=np.uint64) * np.uint64(2) + np.uint64(1)

    def look(span: tuple[int, int]) -> None:
        part = slice(*span)
        block = rows[part]
        bits = np.ascontiguousarray(block + block.dtype.type(0))  # -0.0 + 0 = 0.0: equal values, equal bits
        as_int = bits.view(np.uint32 if bits.dtype == np.float32 else np.uint64)
        w = weights.astype(as_int.dtype)
        prints[part] = np.einsum("ij,j->i", as_int, w)
        wide = bits.astype(np.float64, copy=False)
        np.einsum("ij,ij->i", wide, wide, out=squares[part])

    def look_quietly(span: tuple[int, int]) -> None:
        with np.errstate(all="ignore"):  # a thread starts with numpy's own settings, whatever its parent's are
            look(span)

    in_threads(look_quietly, spans(n, rows.block_size()))
    with np.errstate(all="ignore"):
        norms = np.sqrt(squares)
        # Squares overflow above 1e154 and vanish below 1e-154: look at such rows again, scaled by their largest entry.
        odd = np.flatnonzero(~np.isfinite(squares) | (squares < 1e-280))
    for i in odd:
        with np.errstate(all="ignore"):
            row = rows[int(i) : int(i) + 1][0].astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(row))
        if len(bad):
            raise GonioError(
                f"Head: W[{i}, {bad[0]}] is {row[bad[0]]}; every entry must be a finite number, "
                f"so mend the table or drop the row."
            )
        top = np.abs(row).max()
        norms[i] = top * np.linalg.norm(row / top) if top > 0 else 0.0
    norms.flags.writeable = prints.flags.writeable = False
    return Survey(norms, prints)


def groups_of_equal(rows: RowTable, bias: np.ndarray | None = None) -> tuple[Int[np.ndarray, " members"], ...]:
    """The groups of two or more rows equal in value (-0.0 = 0.0), and in bias where one is given."""
    prints = rows.survey().prints
    order = np.argsort(prints, kind="stable")
    repeated = prints[order][1:] == prints[order][:-1]
    starts = np.flatnonzero(repeated & ~np.r_[False, repeated[:-1]])
    groups: list[np.ndarray] = []
    for start in starts:  # only prints that occur twice or more: few, however many rows there are
        stop = start + 1 + int(np.argmin(np.r_[repeated[start:], False]))
        same = order[start:stop]
        values = rows[same]
        if bias is not None:
            values = np.column_stack([values.astype(np.float64), bias[same]])
        # A shared print is only a hint: the values decide.
        _, inverse = np.unique(values + values.dtype.type(0), axis=0, return_inverse=True)
        inverse = inverse.reshape(-1)
        groups += [np.sort(same[inverse == g]) for g in np.flatnonzero(np.bincount(inverse) > 1)]
    return tuple(sorted(groups, key=lambda g: int(g[0])))
