"""Pages of mapped files, given back: a table that is read a block at a time does not stay in memory as a whole."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np


def give_back(block: np.ndarray) -> None:
    """Let the pages of a block of a mapped file leave this process; who touches it again reads the same numbers anew.

    Nothing is done where the block is no view of a file mapped to be read, or the system has no such call.
    """
    base: Any = block
    root: np.memmap | None = None
    while isinstance(base, np.ndarray):
        root = base if isinstance(base, np.memmap) else root
        base = base.base
    advice = getattr(mmap, "MADV_DONTNEED", None)
    read_only = root is not None and root.mode == "r" and isinstance(base, mmap.mmap)
    if root is None or not read_only or advice is None or not block.flags.c_contiguous:
        return
    # The mapping begins at a page, `offset % granularity` bytes before the array; only whole pages can be given back.
    ahead = root.offset % mmap.ALLOCATIONGRANULARITY
    start = ahead + block.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    first, last = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, (start + block.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        base.madvise(advice, first, last - first)
