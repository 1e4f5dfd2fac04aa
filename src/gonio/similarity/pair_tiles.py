"""All pairs of rows in square tiles, as tasks: what a tile sends back is the k best of its rows on either side.

The products are those of `nearest`, block by block, so the lists are the same; the size of a tile hangs on the number
of rows alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import product
from gonio.core.byte_rows import ByteRows, worthwhile
from gonio.core.compiled import njit
from gonio.core.parallel import in_threads, spans
from gonio.core.tasks import run
from gonio.similarity.best_lists import BestLists, sink

if TYPE_CHECKING:
    from jaxtyping import Float, Int

BLOCK = 1024  # rows of one product
LEAST, MOST = 4, 64  # blocks along the side of a tile at least, tiles along the side of the table at most


def tile_spans(n: int) -> list[tuple[int, int]]:
    """The rows of each tile along one side."""
    blocks = -(-n // BLOCK)
    return list(spans(n, BLOCK * max(LEAST, -(-blocks // MOST))))


def scan_in_tiles(keys: np.ndarray, found: BestLists) -> None:
    """Fill the lists of all keys among all others."""
    sides = tile_spans(len(keys))
    pairs = [(a, b) for k, a in enumerate(sides) for b in sides[k:]]
    best, near = found.best, found.near

    def merge(k: int, lists: tuple[np.ndarray, ...]) -> None:
        a, b = (slice(*x) for x in pairs[k])
        merge_lists(best[a], near[a], *lists[:2])
        if len(lists) > 2:
            merge_lists(best[b], near[b], *lists[2:])

    key = (keys, found.column, found.barred, near.shape[1])
    run("neighbours", _tile, (keys, found.column, found.barred, near.shape[1]), pairs, key=key, each=merge)


def _tile(shared: tuple[np.ndarray, np.ndarray, np.ndarray, int], pair: tuple[tuple[int, int], tuple[int, int]]):
    """The k best of the rows of each side among those of the other; of one side only where both are the same."""
    keys, column, barred, k = shared
    (a, b), (c, d) = pair
    left, right = (_lists(column, barred, k, *side) for side in pair)
    ours, theirs = (in_bytes(keys[slice(*side)], len(keys)) for side in pair)
    if ours is not None and theirs is not None:
        _by_bytes(left, (keys[a:b], ours, a), (keys[c:d], theirs, c))
        if a != c:
            _by_bytes(right, (keys[c:d], theirs, c), (keys[a:b], ours, a))
        return _sent(left, right, len(keys), a == c)
    for s in spans(b - a, BLOCK):
        for t in spans(d - c, BLOCK):
            i, j = slice(a + s[0], a + s[1]), slice(c + t[0], c + t[1])
            if j.start < i.start:
                continue
            S = product(keys[i], keys[j])
            if i != j:
                (left if a == c else right).keep_turned(S, slice(*t), i)
            left.keep(S, slice(*s), j)
    return _sent(left, right, len(keys), a == c)


def _sent(left: BestLists, right: BestLists, n: int, same: bool) -> tuple[np.ndarray, ...]:
    """What a tile sends back."""
    lists = left.best, left.near.astype(np.int32 if n < 2**31 else np.int64)
    return lists if same else (*lists, right.best, right.near.astype(lists[1].dtype))


def in_bytes(keys: np.ndarray, n: int) -> ByteRows | None:
    """Some of n keys in bytes, where all pairs are looked at sooner so; None where not, or a number is not finite."""
    if not worthwhile(n, n, keys.shape[1]) or not np.isfinite(keys).all():
        return None
    return ByteRows.of(keys)


def _by_bytes(
    lists: BestLists, mine: tuple[np.ndarray, ByteRows, int], theirs: tuple[np.ndarray, ByteRows, int]
) -> None:
    """The k best of some keys among others; of each side the floats, their bytes, and the number of the first."""
    for s in spans(len(mine[0]), BLOCK // 2):
        for t in spans(len(theirs[0]), 2 * BLOCK):
            keys = slice(theirs[2] + t[0], theirs[2] + t[1])
            lists.keep_by_bytes(slice(*s), keys, (*mine[:2], slice(*s)), (*theirs[:2], slice(*t)))


def _lists(column: np.ndarray, barred: np.ndarray, k: int, start: int, stop: int) -> BestLists:
    return BestLists(stop - start, len(column), k, column, barred, np.arange(start, stop))


@njit(cache=True, nogil=True)
def merge_lists(best: np.ndarray, near: np.ndarray, more: np.ndarray, more_near: np.ndarray) -> None:
    """Take the entries of other lists of the same rows into heaps; of equal scores the smaller index stays."""
    rows, k = best.shape
    for r in range(rows):
        for c in range(more.shape[1]):
            v, i = more[r, c], np.int64(more_near[r, c])
            if i >= 0 and (v > best[r, 0] or (v == best[r, 0] and i < near[r, 0])):
                best[r, 0], near[r, 0] = v, i
                sink(best[r], near[r], k)


def finished(found: BestLists) -> tuple[Int[np.ndarray, "asked near"], Float[np.ndarray, "asked near"]]:
    """The lists in order, best first."""
    in_threads(found.finish, spans(len(found.near), BLOCK))
    return found.near, found.best
