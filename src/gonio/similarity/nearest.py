"""The nearest rows of every row, in blocks through BLAS: the one place that looks at all pairs.

    score(i, j) = q_i . c_j + column_j

Euclidean distances (2 q.c - |c|^2), corrected cosines (2 q.c - r_j) and plain inner products are all of this form, with
what depends on i alone added afterwards. A block of scores is made by BLAS in float32 and passed once by a compiled
loop that holds the k best of each row in a heap: a score that does not beat the worst of them costs one comparison.
Memory is O(n k) beside the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.blas_pool import product
from gonio.core.errors import GonioError
from gonio.core.parallel import batches, in_threads, one_blas_thread, spans
from gonio.core.row_table import RowTable
from gonio.core.tasks import plain, run
from gonio.similarity.best_lists import BestLists, keep_rows
from gonio.similarity.near_ties import ordered
from gonio.similarity.pair_tiles import BLOCK, finished, in_bytes, scan_in_tiles

if TYPE_CHECKING:
    from jaxtyping import Float, Int

ROWS, RIVALS = 512, 2048  # a block of scores is 4 MB: written by BLAS and read back before it leaves the cache
AT_ONCE = 512  # keys that queries look at together where keys are narrow and come by blocks: 1 MB of scores
SQUARE = 4096  # rows from which all pairs are looked at by square blocks, half of them
Scores = Callable[[np.ndarray, int, int], np.ndarray]


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
        return product(mine, keys[a:b])

    key = [keys, k, *(x for x in (queries, asked, column, barred) if x is not None)]
    return _scan(total, _Scan(n, k, block, scores, own, column, barred), key)


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
        size = -(-len(self.queries) // 4)  # whatever the number of threads: BLAS rounds by the shape of a product
        return list(spans(len(self.queries), max(1, min(ROWS, size))))

    def add(
        self, span: tuple[int, int], keys: np.ndarray, first: int, column: np.ndarray | None, barred: np.ndarray
    ) -> None:
        """Let the queries of a span look at a block of keys, whose first has the number `first`."""
        part = slice(*span)
        mine = self.queries[part]
        nothing = np.zeros(min(AT_ONCE, len(keys)), np.float32)
        for a, b in spans(len(keys), AT_ONCE):
            more = nothing[: b - a] if column is None else np.ascontiguousarray(column[a:b], np.float32)
            scores = product(mine, np.asarray(keys[a:b], np.float32))
            keep_rows(scores, more, barred[a:b], self.own[part], first + a, self.best[part], self.near[part])

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
    return _scan(len(asked), _Scan(n, k, lambda i, j: asked[i:j], score, asked, None, barred), None)


def _check_k(k: Any, n: int, itself: bool) -> None:
    most = n - 1 if itself else n
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or not 1 <= k <= most:
        raise GonioError(f"nearest: {k} neighbours of {n} rows were asked for; a number from 1 to {most} is needed.")


def _scan_all_pairs(keys: np.ndarray, k: int, column: np.ndarray | None, barred: np.ndarray | None):
    """The neighbours of every key among all the others.

    Of products in float32 each serves both keys, so half of them are made; in bytes all are, and sooner.
    """
    found = BestLists(len(keys), len(keys), k, column, barred, np.arange(len(keys)))
    if not plain(float(len(keys)) ** 2 * keys.shape[1]):
        scan_in_tiles(keys, found)
        return finished(found)
    rows = in_bytes(keys, len(keys))
    if rows is not None:

        def look_by_bytes(span: tuple[int, int]) -> None:
            part = slice(*span)
            for s in spans(len(keys), RIVALS):
                found.keep_by_bytes(part, slice(*s), (keys, rows, part), (keys, rows, slice(*s)))

        in_threads(look_by_bytes, spans(len(keys), ROWS))
        return finished(found)
    parts = list(spans(len(keys), BLOCK))
    locks = [Lock() for _ in parts]

    def look(pair: tuple[int, int]) -> None:
        (i, a), (j, b) = ((x, slice(*parts[x])) for x in pair)
        S = product(keys[a], keys[b])
        if i != j:
            with locks[j]:
                found.keep_turned(S, b, a)
        with locks[i]:
            found.keep(S, a, b)

    # Block by block along the diagonals: pairs that follow each other share no block, and threads do not wait.
    pairs = ((i, i + away) for away in range(len(parts)) for i in range(len(parts) - away))
    with one_blas_thread():  # also where there is one thread of ours: BLAS rounds by the number of its own
        for some in batches(pairs, 4096):
            in_threads(look, some)
    return finished(found)


@dataclass(frozen=True, eq=False)
class _Scan:
    """What a span of those who ask needs to find their neighbours."""

    n: int
    k: int
    block: Callable[[int, int], np.ndarray]
    score: Scores
    own: np.ndarray | None
    column: np.ndarray | None
    barred: np.ndarray | None


def _scan(total: int, scan: _Scan, key: Sequence[Any] | None):
    near, best = np.empty((total, scan.k), np.int64), np.empty((total, scan.k), np.float32)
    parts = list(spans(total, ROWS))

    def put(k: int, lists: tuple[np.ndarray, np.ndarray]) -> None:
        near[slice(*parts[k])], best[slice(*parts[k])] = lists

    run("neighbours", _scan_span, scan, parts, key=key, each=put)
    return near, best


def _scan_span(scan: _Scan, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    own = None if scan.own is None else scan.own[slice(*span)]
    found = BestLists(span[1] - span[0], scan.n, scan.k, scan.column, scan.barred, own)
    mine, every = scan.block(*span), slice(0, span[1] - span[0])
    for a, b in spans(scan.n, RIVALS):
        found.keep(_plain(scan.score(mine, a, b)), every, slice(a, b))
    found.finish((0, span[1] - span[0]))
    return found.near, found.best


def _plain(scores: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(scores, np.float32)


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

    Cosines that agree to 2^-20 count as equal, and of equal ones the smaller index comes first (`near_ties`). Zero rows
    are nobody's neighbour and have the cosine 0 with everything. No more than a block of all pairs is held.
    """
    _check_k(k, rows.shape[0], True)
    unit, zero = _unit_rows(rows)
    asked = np.arange(len(unit)) if which is None else np.asarray(which, np.int64)
    near, best = nearest(unit, min(k + 1, len(unit) - 1), which=which, barred=zero)
    return ordered(rows, unit, asked, near, best, k, zero)
