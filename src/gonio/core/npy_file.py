"""A .npy file read without trusting it: its header is checked against its size before anything is allocated."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gonio.core.archive import read_only
from gonio.core.errors import LoadError
from gonio.core.npz_archive import HEADER, npy_header


def read_npy(path: str | Path, who: str) -> np.ndarray:
    """The numbers of a .npy file, mapped and not copied; pickled objects, text and lies about the size are refused."""
    path = Path(path)
    try:
        if not path.is_file():
            raise LoadError(f"{who}: there is no file {path}; give a .npy file.")
        size = path.stat().st_size
        with path.open("rb") as f:
            start = f.read(HEADER)
    except (OSError, ValueError) as e:
        if isinstance(e, LoadError):
            raise
        raise LoadError(f"{who}: {str(path)[:200]} cannot be read ({e}); give a .npy file.") from None
    if not start.startswith(b"\x93NUMPY"):
        raise LoadError(f"{who}: {path} is not a .npy file; save the numbers with np.save.")
    shape, fortran, dtype, offset = npy_header(start, str(path), who=who)
    count = int(np.prod(shape, dtype=object))
    wanted = offset + count * dtype.itemsize
    if size < wanted:
        raise LoadError(
            f"{who}: {path} claims an array of shape {shape} and so {wanted:,} bytes; the file has {size:,}. It was "
            f"cut short; write it anew."
        )
    order = "F" if fortran else "C"
    if not count or not shape:
        raw = start[offset : offset + count * dtype.itemsize]
        return read_only(np.frombuffer(raw, dtype, count).reshape(shape, order=order))
    return read_only(np.memmap(path, dtype, "r", offset, shape, order).view(np.ndarray))
