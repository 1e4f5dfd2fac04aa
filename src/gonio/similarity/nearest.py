"""The nearest rows of every row, in blocks through BLAS: the one place that looks at all pairs.

    score(i, j) = q_i . c_j + column_j

Euclidean distances (2 q.c - |c|^2), corrected cosines (2 q.c - r_j) and plain inner products are all of this form, with
what depends on i alone added afterwards. A block of scores is made by BLAS in float32 and passed once by a compiled
loop that holds the k best of each row in a heap: a score that does not beat the worst of them costs one comparison.
Memory is O(n k) beside the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from gonio.core.errors import GonioError
from gonio.core.parallel import batches, cores, in_threads, spans
from gonio.core.row_table import RowTable

if TYPE_CHECKING:
    from jaxtyping import Float, Int

ROWS, RIVALS = 512, 2048  # a block of scores is 4 MB: written by BLAS and read back before it leaves the cache
SQUARE, BLOCK = 4096, 1024  # rows from which all pairs are looked at by square blocks of this size, half of them
Scores = Callable[[np.ndarray, int, int], np.ndarray]


@njit(cache=True, nogil=True)
def _sink(best: np.ndarray, at: np.ndarray, k: int) -> None:
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
def _keep(
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
            top = np.float32(-np.inf)
            for c in range(start, stop):  # no branch: the compiler makes this a few vector instructions
                v = s[c] + column[c]
                s[c] = v
                top = max(top, v)
            if not top >= worst:
                continue
            for c in range(start, stop):
                # Of equal scores the smaller index stays, in whatever order the blocks come.
                better = s[c] > worst or (s[c] == worst and first + c < a[0])
                if better and not barred[c] and first + c != own[r]:
                    b[0], a[0] = s[c], first + c
                    _sink(b, a, k)
                    worst = b[0]


@njit(cache=True, nogil=True)
def _keep_columns(
    scores: np.ndarray,
    column: np.ndarray,
    barred: np.ndarray,
    own: np.ndarray,
    first: int,
    best: np.ndarray,
    at: np.ndarray,
) -> None:
    """As `_keep` of the block turned over, without turning it: the lists are those of its columns."""
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
                    _sink(b, a, k)


def nearest(
    keys: np.ndarray,
    k: int,
    *,
    queries: np.ndarray | None = None,
    which: np.ndarray | None = None,
    column: np.ndarray | None = None,
    barred: np.ndarray | None = None,
) -> tuple[Int[np.ndarray, "asked near"], Float[np.ndarray, "asked near"]]:
    """The k rows of `keys` with the largest  q . c_j + column_j  for each query, largest first, ties by index.

    Without `queries` the keys ask about themselves (those named by `which`, or all) and a row is not its own neighbour;
    with both, query r is another form of key which[r], which is then left out of its neighbours.
    `barred` marks keys that are nobody's neighbour; where fewer than k are left, barred ones fill up with -inf.

    >>> nearest(np.eye(3, dtype=np.float32), 1, queries=np.float32([[1, 2, 3]]))[0]
    array([[2]])
    """
    n = len(keys)
    keys = np.ascontiguousarray(keys, np.float32)
    asked = None if which is None else np.asarray(which, np.int64)
    _check_k(k, n, queries is None or asked is not None)
    if queries is not None:
        points, total = np.ascontiguousarray(queries, np.float32), len(queries)
    else:
        points, total = keys, n if asked is None else len(asked)
    if queries is None and asked is None and n >= SQUARE:
        return _scan_all_pairs(keys, k, column, barred)
    gather = queries is None and asked is not None
    own = np.arange(n) if queries is None and asked is None else asked

    def block(start: int, stop: int) -> np.ndarray:
        return points[asked[start:stop]] if gather else points[start:stop]  # type: ignore[index]

    def scores(mine: np.ndarray, a: int, b: int) -> np.ndarray:
        return mine @ keys[a:b].T

    return _scan(total, n, k, block, scores, own, column, barred)


class NearestSoFar:
    """The k best keys of each query, where the keys come block by block; see `add` and `lists`.

    own : the number of the key that each query is, which is left out of its list
    """

    def __init__(self, queries: np.ndarray, k: int, own: np.ndarray | None = None) -> None:
        self.queries = np.ascontiguousarray(queries, np.float32)
        total = len(self.queries)
        self.near = np.full((total, k), -1, np.int64)
        self.best = np.full((total, k), -np.inf, np.float32)
        self.own = np.full(total, -1, np.int64) if own is None else np.asarray(own, np.int64)

    def parts(self) -> list[tuple[int, int]]:
        """Spans of queries, one a thread at a time: `add` may run on several at once."""
        size = -(-len(self.queries) // cores())
        return list(spans(len(self.queries), max(1, min(ROWS, size))))

    def add(
        self, span: tuple[int, int], keys: np.ndarray, first: int, column: np.ndarray | None, barred: np.ndarray
    ) -> None:
        """Let the queries of a span look at a block of keys, whose first has the number `first`."""
        part = slice(*span)
        mine = self.queries[part]
        nothing = np.zeros(min(RIVALS, len(keys)), np.float32)
        for a, b in spans(len(keys), RIVALS):
            more = nothing[: b - a] if column is None else np.ascontiguousarray(column[a:b], np.float32)
            _keep(
                _plain(mine @ keys[a:b].T), more, barred[a:b], self.own[part], first + a, self.best[part],
                self.near[part],
            )  # fmt: skip

    def lists(self) -> tuple[Int[np.ndarray, "queries near"], Float[np.ndarray, "queries near"]]:
        """The numbers of the keys and their scores, best first; -1 and -inf where there are fewer than k."""
        order = np.lexsort((self.near, -self.best), axis=1)
        return np.take_along_axis(self.near, order, 1), np.take_along_axis(self.best, order, 1)


def nearest_by(
    score: Scores, n: int, k: int, which: np.ndarray | None = None, *, barred: np.ndarray | None = None
) -> tuple[Int[np.ndarray, "asked near"], Float[np.ndarray, "asked near"]]:
    """The k labels of largest score for each label asked about, for scores that are no inner product.

    `score(labels, a, b)` gives the block of scores of some labels with the labels a to b - 1.
    """
    asked = np.arange(n) if which is None else np.asarray(which, np.int64)
    _check_k(k, n, True)
    return _scan(len(asked), n, k, lambda i, j: asked[i:j], score, asked, None, barred)


def _check_k(k: Any, n: int, itself: bool) -> None:
    most = n - 1 if itself else n
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or not 1 <= k <= most:
        raise GonioError(f"nearest: {k} neighbours of {n} rows were asked for; a number from 1 to {most} is needed.")


def _scan_all_pairs(keys: np.ndarray, k: int, column: np.ndarray | None, barred: np.ndarray | None):
    """The neighbours of every key among all the others: each product serves both keys, so half of them are made."""
    found = _Lists(len(keys), len(keys), k, column, barred, np.arange(len(keys)))
    parts = list(spans(len(keys), BLOCK))
    locks = [Lock() for _ in parts]

    def look(pair: tuple[int, int]) -> None:
        (i, a), (j, b) = ((x, slice(*parts[x])) for x in pair)
        S = keys[a] @ keys[b].T
        if i != j:
            with locks[j]:
                found.keep_turned(S, b, a)
        with locks[i]:
            found.keep(S, a, b)

    # Block by block along the diagonals: pairs that follow each other share no block, and threads do not wait.
    pairs = ((i, i + away) for away in range(len(parts)) for i in range(len(parts) - away))
    for some in batches(pairs, 4096):
        in_threads(look, some)
    in_threads(found.finish, parts)
    return found.near, found.best


class _Lists:
    """The k best keys of each row so far."""

    def __init__(self, total: int, n: int, k: int, column: Any, barred: Any, own: np.ndarray | None) -> None:
        self.near = np.full((total, k), -1, np.int64)
        self.best = np.full((total, k), -np.inf, np.float32)
        self.column = np.zeros(n, np.float32) if column is None else np.ascontiguousarray(column, np.float32)
        self.barred = np.zeros(n, bool) if barred is None else np.ascontiguousarray(barred, bool)
        self.own = np.full(total, -1, np.int64) if own is None else np.asarray(own, np.int64)

    def keep(self, scores: np.ndarray, rows: slice, keys: slice) -> None:
        """Take in a block of scores, which is written over."""
        part = self.best[rows], self.near[rows]
        _keep(scores, self.column[keys], self.barred[keys], self.own[rows], keys.start, *part)

    def keep_turned(self, scores: np.ndarray, rows: slice, keys: slice) -> None:
        """The same for a block whose columns are the rows; it is only read."""
        part = self.best[rows], self.near[rows]
        _keep_columns(scores, self.column[keys], self.barred[keys], self.own[rows], keys.start, *part)

    def finish(self, span: tuple[int, int]) -> None:
        """Put some lists in order, best first."""
        part = slice(*span)
        best, near = self.best[part], self.near[part]
        _fill(best, near, self.barred, self.own[part])
        order = np.lexsort((near, -best), axis=1)
        near[:], best[:] = np.take_along_axis(near, order, 1), np.take_along_axis(best, order, 1)


def _scan(total: int, n: int, k: int, block: Any, score: Scores, asked, column, barred):
    found = _Lists(total, n, k, column, barred, asked)

    def look(span: tuple[int, int]) -> None:
        mine = block(*span)
        for a, b in spans(n, RIVALS):
            found.keep(_plain(score(mine, a, b)), slice(*span), slice(a, b))
        found.finish(span)

    in_threads(look, spans(total, ROWS))
    return found.near, found.best


def _plain(scores: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(scores, np.float32)


def _fill(best: np.ndarray, near: np.ndarray, barred: np.ndarray, own: np.ndarray) -> None:
    """Rows with fewer than k neighbours name barred ones, in order, with the score -inf."""
    for r in np.flatnonzero((near < 0).any(axis=1)):
        spare = np.flatnonzero(barred)
        empty = np.flatnonzero(near[r] < 0)
        near[r, empty] = spare[spare != own[r]][: len(empty)]
        best[r, empty] = -np.inf


def unit_rows(rows: RowTable) -> Float[np.ndarray, "labels dim"]:
    """All rows divided by their lengths, in float32; zero rows stay zero."""
    return _unit_rows(rows)[0]


def _unit_rows(rows: RowTable) -> tuple[np.ndarray, np.ndarray]:
    """All rows divided by their lengths, and which are zero, from one pass: rows may be computed as they are read."""
    n = rows.shape[0]
    unit, lengths = np.empty(rows.shape, np.float32), np.empty(n)

    def fill(span: tuple[int, int]) -> None:
        part = slice(*span)
        block = rows[part]
        with np.errstate(all="ignore"):  # squares that overflow or vanish are looked at again below
            wide = block.astype(np.float64, copy=False)
            lengths[part] = np.sqrt(np.einsum("ij,ij->i", wide, wide))
            unit[part] = block / np.where(lengths[part] > 0, lengths[part], 1)[:, None]

    in_threads(fill, spans(n, 1024))
    extreme = np.flatnonzero(~np.isfinite(lengths) | (lengths < 1e-140))
    if len(extreme):
        lengths[extreme] = rows.survey().norms[extreme]
        unit[extreme] = rows[extreme] / np.where(lengths[extreme] > 0, lengths[extreme], 1)[:, None]
    return unit, lengths == 0


def nearest_by_cosine(
    rows: RowTable, k: int, which: np.ndarray | None = None
) -> tuple[Int[np.ndarray, "asked near"], Float[np.ndarray, "asked near"]]:
    """The k rows of largest cosine for each row asked about (all, if not given), itself left out, nearest first.

    Zero rows are nobody's neighbour and have the cosine 0 with everything. No more than a block of all pairs is held.
    """
    _check_k(k, rows.shape[0], True)
    unit, zero = _unit_rows(rows)
    return nearest(unit, k, which=which, barred=zero)
