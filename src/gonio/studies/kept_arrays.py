"""Arrays that take minutes to make, kept in the user's cache folder under a digest of what they were made from."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from gonio.core.atomic_write import whole
from gonio.core.run_state import cache_folder

Arrays = dict[str, np.ndarray]


def digest_of(*parts: Any) -> str:
    """A digest of plain values and arrays, the same on every run."""
    h = hashlib.sha256()
    for p in parts:
        if isinstance(p, np.ndarray):
            h.update(f"{p.dtype} {p.shape} ".encode() + np.ascontiguousarray(p).tobytes())
        else:
            h.update(json.dumps(p, sort_keys=True, default=str).encode("utf-8", "surrogatepass") + b"\0")
    return h.hexdigest()[:24]


def kept(name: str, digest: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays of that name and digest: read where they are kept, otherwise made and kept.

    A cache that cannot be read or written is only a loss of time: the arrays are made again.
    """
    place = cache_folder() / "studies" / f"{name}-{digest}.npz"
    with contextlib.suppress(OSError, ValueError, KeyError), np.load(place, allow_pickle=False) as held:
        return {k: held[k] for k in held.files}
    made = make()
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        with whole(place, "study") as temporary, temporary.open("wb") as f:
            np.savez(f, **made)  # type: ignore[arg-type]
    return made
