"""Lists of neighbours in an order that rounding does not decide, on whatever machine the products were made.

Scores of unit rows in float32 are some 1e-7 off, and by how much hangs on the processor. Where untrained rows crowd in
one direction, that alone would say who is named by hundreds of lists. So two scores count as equal where they round to
the same multiple of STEP = 2^-20 in float64, and of equal ones the smaller index comes first. What lies further apart
than CLOSE in float32 is in the right order already; the rest is looked at again.

Example: scores 0.5, 0.9 and 0.9 + 1e-9: the order is 1, 2, 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import product
from gonio.core.parallel import in_threads, spans
from gonio.core.row_table import RowTable

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

STEP = 2.0**-20
CLOSE = 1e-5  # scores in float32 that are further apart differ by more than STEP
# Of rows in float64 that are held at a time; lists and scores that are looked at again at a time.
NUMBERS, LISTS, BLOCK = 1_000_000, 256, 8_000_000


def ordered(
    rows: RowTable,
    keys: Float[np.ndarray, "rows dim"],
    asked: Int[np.ndarray, " asked"],
    near: Int[np.ndarray, "asked more"],
    best: Float[np.ndarray, "asked more"],
    k: int,
    barred: Bool[np.ndarray, " rows"],
) -> tuple[Int[np.ndarray, "asked k"], Float[np.ndarray, "asked k"]]:
    """The first k of each list, made of the nearest in float32: one more than k, or all there are.

    keys    the rows at length one, in float32; asked, whose lists they are, is left out of its own
    barred  keys that are nobody's neighbour: in the lists, if at all, last and with -inf
    """
    with np.errstate(invalid="ignore"):
        close = best[:, :-1] - best[:, 1:] <= CLOSE
    cut = close[:, k - 1] if near.shape[1] > k else np.zeros(len(near), bool)
    near, best = near[:, :k].copy(), best[:, :k].copy()

    def sort(s: tuple[int, int]) -> None:
        some = inside[slice(*s)]
        live = np.isfinite(best[some])
        others = _unit(rows, near[some].ravel()).reshape(*near[some].shape, -1)
        scores = np.where(live, np.einsum("rkd,rd->rk", others, _unit(rows, asked[some])), -np.inf)
        order = np.lexsort((near[some], -_steps(scores)), axis=1)
        near[some] = np.take_along_axis(near[some], order, 1)
        best[some] = np.take_along_axis(scores, order, 1)

    def look_again(s: tuple[int, int]) -> None:
        some = again[slice(*s)]
        S = product(keys[asked[some]], keys)
        for r, row in zip(some.tolist(), S, strict=True):
            able = row >= best[r, -1] - 2 * CLOSE
            able[asked[r]] = False
            which = np.flatnonzero(able & ~barred)
            mine = _unit(rows, asked[r : r + 1])[0]
            parts = (_unit(rows, which[slice(*x)]) for x in spans(len(which), many))
            scores = np.concatenate([np.einsum("ij,j->i", part, mine) for part in parts])
            first = np.lexsort((which, -_steps(scores)))[:k]
            near[r], best[r] = which[first], scores[first]

    inside, again = np.flatnonzero(close[:, : k - 1].any(axis=1) & ~cut), np.flatnonzero(cut)
    many = max(1, NUMBERS // keys.shape[1])
    in_threads(sort, spans(len(inside), max(1, many // k)))
    in_threads(look_again, spans(len(again), max(1, min(LISTS, BLOCK // len(keys)))))
    return near, best


def _unit(rows: RowTable, which: np.ndarray) -> Float[np.ndarray, "some dim"]:
    """Some rows divided by their lengths, in float64."""
    some = rows[which].astype(np.float64)
    some /= np.maximum(np.abs(some).max(axis=1, keepdims=True), 5e-324)  # squares of large numbers are beyond floats
    return some / np.maximum(np.sqrt(np.einsum("ij,ij->i", some, some)), 1e-300)[:, None]


def _steps(scores: np.ndarray) -> Float[np.ndarray, "..."]:
    return np.rint(scores / STEP)
