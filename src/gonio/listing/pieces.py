"""A long walk cut into pieces: they run in threads, their blocks come in order, and a listing can begin at any."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import comb
from typing import Any, TypeVar

from gonio.core.parallel import cores

T = TypeVar("T")
CELLS_PER_PIECE = 1 << 17  # a megabyte of 64-bit words
AHEAD = 4  # blocks that a thread may be ahead of the reader


@dataclass(frozen=True)
class Piece:
    """The sets S of one stage of a walk that begin with `prefix` and whose next row or label lies in low..high."""

    stage: int
    prefix: tuple[Any, ...]
    high: int
    low: int
    count: int


def subset_pieces(n: int, r: int, size: int = CELLS_PER_PIECE) -> Iterator[Piece]:
    """The walk of `generic_cells.list_cells` over the subsets of rows 1..n-1 with fewer than r elements."""
    for stage in range(r - 1):
        depth, leaves = r - stage - 2, stage == 0

        def under(m: int, need: int, leaves: bool = leaves) -> int:
            return comb(m - 1, need) + (comb(m - 1, need + 1) if leaves else 0)

        yield from _cut(stage, (), n, depth, size, under, lambda j: ((j,), 1))


def forest_pieces(n: int, r: int, least: int, size: int = CELLS_PER_PIECE) -> Iterator[Piece]:
    """The walk of `generic_rankings.list_rankings` over forests with fewer than r edges (j, p), p < j, least <= j."""
    # e[m][k]: the k-th elementary symmetric polynomial of least, .., m-1
    e = [[1] + [0] * r for _ in range(n + 1)]
    for m in range(1, n + 1):
        for k in range(1, r + 1):
            e[m][k] = e[m - 1][k] + ((m - 1) * e[m - 1][k - 1] if m - 1 >= least else 0)
    for stage in range(r - 1):
        depth, leaves = r - stage - 2, stage == 0

        def under(m: int, need: int, leaves: bool = leaves) -> int:
            return e[m][need] + (e[m][need + 1] if leaves else 0)

        def edges(j: int) -> tuple[Sequence[Any], int]:
            return tuple((j, p) for p in range(j)), j if j >= least else 0

        yield from _cut(stage, (), n, depth, size, under, edges)


def _cut(
    stage: int,
    prefix: tuple[Any, ...],
    m: int,
    need: int,
    size: int,
    under: Callable[[int, int], int],
    choices: Callable[[int], tuple[Sequence[Any], int]],
) -> Iterator[Piece]:
    """Pieces of at most `size` cells where that can be: neighbours of a level together, large ones cut further."""
    total = under(m, need)
    if total == 0:
        return
    if need == 0 or total <= size:
        yield Piece(stage, prefix, m - 1, 1, total)
        return
    high, held = m - 1, 0
    for j in range(m - 1, 0, -1):
        each, times = under(j, need - 1), choices(j)[1]
        if each * times > size:
            if held:
                yield Piece(stage, prefix, high, j + 1, held)
            for choice in choices(j)[0]:
                yield from _cut(stage, (*prefix, choice), j, need - 1, size, under, choices)
            high, held = j - 1, 0
        elif held + each * times > size:
            yield Piece(stage, prefix, high, j + 1, held)
            high, held = j, each * times
        else:
            held += each * times
    if held:
        yield Piece(stage, prefix, high, 1, held)


def in_order(run: Callable[[T], Iterator[Any]], items: Iterator[T], threads: int | None = None) -> Iterator[Any]:
    """The blocks of every item in order, worked on by several threads that never run far ahead of the reader."""
    threads = threads or cores()
    if threads < 2:
        for x in items:
            yield from run(x)
        return
    stop = threading.Event()

    def work(x: T, blocks: queue.Queue) -> None:
        try:
            for b in run(x):
                if not _put(blocks, (b, None), stop):
                    return
            _put(blocks, (None, StopIteration()), stop)
        except BaseException as e:
            _put(blocks, (None, e), stop)

    with ThreadPoolExecutor(threads) as pool:
        waiting: list[queue.Queue] = []
        try:
            more = True
            while True:
                while more and len(waiting) < 2 * threads:
                    x = next(items, None)
                    if x is None:
                        more = False
                        break
                    waiting.append(queue.Queue(AHEAD))
                    pool.submit(work, x, waiting[-1])
                if not waiting:
                    return
                block, end = waiting[0].get()
                if end is None:
                    yield block
                elif isinstance(end, StopIteration):
                    waiting.pop(0)
                else:
                    raise end
        finally:
            stop.set()


def _put(blocks: queue.Queue, item: Any, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            blocks.put(item, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False
