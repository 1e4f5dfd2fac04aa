"""Work in blocks over the cores of this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")
_here = threading.local()


@contextmanager
def one_of_several() -> Iterator[None]:
    """A context in which this thread is one of several at work: what it would split, it does by itself."""
    before = getattr(_here, "several", False)
    _here.several = True
    try:
        yield
    finally:
        _here.several = before


def cores() -> int:
    """How many cores this thread may use: those of the process, or one where it is one of several at work."""
    if getattr(_here, "several", False):
        return 1
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def spans(count: int, size: int) -> Iterator[tuple[int, int]]:
    """The half-open ranges of at most `size` that cover 0..count, in order."""
    for start in range(0, count, size):
        yield start, min(start + size, count)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most `size`, in order."""
    held: list[T] = []
    for x in items:
        held.append(x)
        if len(held) == size:
            yield held
            held = []
    if held:
        yield held


@cache
def _blas() -> Any:
    import scipy.linalg.cython_lapack  # noqa: F401  compiled kernels call its BLAS: it must be there to be limited
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looking for the BLAS libraries takes milliseconds: once is enough


def one_blas_thread() -> Any:
    """A context in which BLAS uses one thread: in several threads of ours its own would only wait for each other."""
    return _blas().limit(limits=1, user_api="blas")


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """`work` on every item, over threads; for work that spends its time inside numpy, which frees the lock."""
    items = list(items)
    if len(items) < 2 or cores() < 2:
        return [work(x) for x in items]
    from concurrent.futures import ThreadPoolExecutor

    with one_blas_thread(), ThreadPoolExecutor(min(cores(), len(items))) as pool:
        return list(pool.map(work, items))
