"""Rows that come block by block, written as one .npy array as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import numpy as np

from gonio.core.atomic_write import whole


def save_rows(path: str | Path, blocks: Iterable[np.ndarray], empty: Callable[[], np.ndarray], who: str) -> Path:
    """Write blocks of rows below each other, or `empty` where none comes; their number goes into the header last."""
    with whole(path, who) as temporary, temporary.open("wb") as f:
        count, like = 0, None
        for block in blocks:
            if like is None:
                like = block[:0]
                _header(f, like, 0)
            f.write(np.ascontiguousarray(block, like.dtype).tobytes())
            count += len(block)
        like = empty() if like is None else like
        f.seek(0)
        _header(f, like, count)  # as long as the first: numpy leaves room for the number of rows to grow
    return Path(path)


def _header(f: IO[bytes], like: np.ndarray, count: int) -> None:
    about = {"descr": np.lib.format.dtype_to_descr(like.dtype), "fortran_order": False}
    np.lib.format.write_array_header_1_0(f, about | {"shape": (count, *like.shape[1:])})  # type: ignore[arg-type]
