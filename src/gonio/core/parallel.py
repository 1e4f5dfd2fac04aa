"""Work in blocks over the cores of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def spans(count: int, size: int) -> Iterator[tuple[int, int]]:
    """The half-open ranges of at most `size` that cover 0..count, in order."""
    for start in range(0, count, size):
        yield start, min(start + size, count)


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """`work` on every item, over threads; for work that spends its time inside numpy, which frees the lock."""
    items = list(items)
    if len(items) < 2 or cores() < 2:
        return [work(x) for x in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(cores(), len(items))) as pool:
        return list(pool.map(work, items))
