"""The k best of each row so far, as heaps that blocks of scores are taken into, in whatever order they come."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core import byte_products
from gonio.core.blas_pool import buffer
from gonio.core.byte_rows import ByteRows
from gonio.core.compiled import njit
from gonio.core.float_units import UNIT32


@njit(cache=True, nogil=True)
def sink(best: np.ndarray, at: np.ndarray, k: int) -> None:
    """Let the root of a heap, whose root is the worst (least score, then largest index), find its place."""
    i = 0
    score, index = best[0], at[0]
    while True:
        child = 2 * i + 1
        if child >= k:
            break
        right = child + 1
        if right < k and (best[right] < best[child] or (best[right] == best[child] and at[right] > at[child])):
            child = right
        if best[child] < score or (best[child] == score and at[child] > index):
            best[i], at[i] = best[child], at[child]
            i = child
        else:
            break
    best[i], at[i] = score, index


@njit(cache=True, nogil=True)
def keep_rows(
    scores: np.ndarray,
    column: np.ndarray,
    barred: np.ndarray,
    own: np.ndarray,
    first: int,
    best: np.ndarray,
    at: np.ndarray,
) -> None:
    """Merge a block of scores, whose columns are the rows from `first`, into the k best of each row."""
    rows, width = scores.shape
    k = best.shape[1]
    for r in range(rows):
        b, a, s = best[r], at[r], scores[r]
        worst = b[0]
        for start in range(0, width, 64):
            stop = min(start + 64, width)
            some, more = s[start:stop], column[start:stop]  # as slices and without a branch: vector instructions
            reached = False
            for c in range(len(some)):
                reached |= some[c] + more[c] >= worst
            if not reached:
                continue
            for c in range(start, stop):
                # Of equal scores the smaller index stays, in whatever order the blocks come.
                v = s[c] + column[c]
                better = v > worst or (v == worst and first + c < a[0])
                if better and not barred[c] and first + c != own[r]:
                    b[0], a[0] = v, first + c
                    sink(b, a, k)
                    worst = b[0]


@njit(cache=True, nogil=True)
def keep_columns(
    scores: np.ndarray,
    column: np.ndarray,
    barred: np.ndarray,
    own: np.ndarray,
    first: int,
    best: np.ndarray,
    at: np.ndarray,
) -> None:
    """As `keep_rows` of the block turned over, without turning it: the lists are those of its columns."""
    height, width = scores.shape
    k = best.shape[1]
    top = np.empty(width, np.float32)
    for start in range(0, height, 32):
        stop = min(start + 32, height)
        for c in range(width):
            top[c] = scores[start, c] + column[start]
        for r in range(start + 1, stop):  # along the rows, as they lie in memory
            s, more = scores[r], column[r]
            for c in range(width):
                v = s[c] + more
                top[c] = max(top[c], v)
        for c in range(width):
            if not top[c] >= best[c, 0]:
                continue
            b, a = best[c], at[c]
            for r in range(start, stop):
                v = scores[r, c] + column[r]
                better = v > b[0] or (v == b[0] and first + r < a[0])
                if better and not barred[r] and first + r != own[c]:
                    b[0], a[0] = v, first + r
                    sink(b, a, k)


@njit(cache=True, nogil=True)
def keep_rows_by_bytes(
    products: np.ndarray,
    scale: np.ndarray,
    sizes: np.ndarray,
    slack: np.ndarray,
    rows: np.ndarray,
    keys: np.ndarray,
    column: np.ndarray,
    barred: np.ndarray,
    own: np.ndarray,
    first: int,
    best: np.ndarray,
    at: np.ndarray,
) -> None:
    """As `keep_rows` for the scores rows_r.keys_c, from which products of bytes times scale_c sizes_r are slack_r away.

    What may be one of the k best is computed anew, in float32.
    """
    height, width = len(rows), len(keys)
    for r in range(height):
        b, a, s, x = best[r], at[r], products[r], rows[r]
        size, low = sizes[r], b[0] - slack[r]
        for start in range(0, width, 64):
            stop = min(start + 64, width)
            some, units, more = s[start:stop], scale[start:stop], column[start:stop]
            reached = False
            for c in range(len(some)):
                reached |= np.float32(some[c]) * units[c] * size + more[c] >= low
            if not reached:
                continue
            for c in range(start, stop):
                if not np.float32(s[c]) * scale[c] * size + column[c] >= low or barred[c] or first + c == own[r]:
                    continue
                v = inner(x, keys[c]) + column[c]
                if v > b[0] or (v == b[0] and first + c < a[0]):
                    b[0], a[0] = v, first + c
                    sink(b, a, best.shape[1])
                    low = b[0] - slack[r]


@njit(cache=True, nogil=True, fastmath=True)
def inner(x: np.ndarray, y: np.ndarray) -> Any:
    """x.y"""
    total = np.float32(0)
    for t in range(len(x)):
        total += x[t] * y[t]
    return total


class BestLists:
    """The k best keys of each row so far."""

    def __init__(self, total: int, n: int, k: int, column: Any, barred: Any, own: np.ndarray | None) -> None:
        self.near = np.full((total, k), -1, np.int64)
        self.best = np.full((total, k), -np.inf, np.float32)
        self.column = np.zeros(n, np.float32) if column is None else np.ascontiguousarray(column, np.float32)
        self.barred = np.zeros(n, bool) if barred is None else np.ascontiguousarray(barred, bool)
        self.own = np.full(total, -1, np.int64) if own is None else np.asarray(own, np.int64)

    def keep(self, scores: np.ndarray, rows: slice, keys: slice) -> None:
        """Take in a block of scores."""
        part = self.best[rows], self.near[rows]
        keep_rows(scores, self.column[keys], self.barred[keys], self.own[rows], keys.start, *part)

    def keep_by_bytes(
        self,
        rows: slice,
        keys: slice,
        mine: tuple[np.ndarray, ByteRows, slice],
        theirs: tuple[np.ndarray, ByteRows, slice],
    ) -> None:
        """Take in the scores of some rows with some keys: of each side the floats, their bytes, and which of these."""
        (X, x, i), (Y, y, j) = mine, theirs
        room = byte_products.room(i.stop - i.start, j.stop - j.start)
        S = byte_products.products(
            x.numbers[i], y.packed, j.start, j.stop, x.numbers.shape[1], buffer("bytes", room, kind=np.int32)
        )
        column, longest = self.column[keys], float(y.length[j].max())
        slack = x.rest[i] * longest + (x.length[i] + x.rest[i]) * float(y.rest[j].max())
        # Rounding: of the three factors, of the score in float32, and of what is added to it.
        slack += (X.shape[1] + 16) * UNIT32 * (x.length[i] * longest + float(np.abs(column).max()))
        keep_rows_by_bytes(
            S, y.scale[j].astype(np.float32), x.scale[i].astype(np.float32), (slack * (1 + 1e-6)).astype(np.float32),
            X[i], Y[j], column, self.barred[keys], self.own[rows], keys.start, self.best[rows], self.near[rows],
        )  # fmt: skip

    def keep_turned(self, scores: np.ndarray, rows: slice, keys: slice) -> None:
        """The same for a block whose columns are the rows."""
        part = self.best[rows], self.near[rows]
        keep_columns(scores, self.column[keys], self.barred[keys], self.own[rows], keys.start, *part)

    def finish(self, span: tuple[int, int]) -> None:
        """Put some lists in order, best first."""
        part = slice(*span)
        best, near = self.best[part], self.near[part]
        _fill(best, near, self.barred, self.own[part])
        order = np.lexsort((near, -best), axis=1)
        near[:], best[:] = np.take_along_axis(near, order, 1), np.take_along_axis(best, order, 1)


def _fill(best: np.ndarray, near: np.ndarray, barred: np.ndarray, own: np.ndarray) -> None:
    """Rows with fewer than k neighbours name barred ones, in order, with the score -inf."""
    for r in np.flatnonzero((near < 0).any(axis=1)):
        spare = np.flatnonzero(barred)
        empty = np.flatnonzero(near[r] < 0)
        near[r, empty] = spare[spare != own[r]][: len(empty)]
        best[r, empty] = -np.inf
