"""Inputs x >= 0: labels below a mean of rivals in every coordinate, found for several labels at once.

With rows a_j = (v_j, c_j), a label i never wins over z >= 0 if some shares p_j > 0 of rivals have

    sum_j p_j a_j >= a_i        in every coordinate, the constants included.

So even shares are bent (`positive_means`) until their mean is a point just above a_i; or, for labels that this does not
settle, one that is also nowhere below the middle of the rivals. Labels deep inside, as rows that were never trained
are, are settled so in the coordinates that they are given in, each divided by its spread: no space is whitened.

Example: one input x >= 0, rows 0, 1 and 3 without constants. For the label 1 the even shares of 0 and 3 have the mean
1.5 >= 1: it never wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.parallel import spans
from gonio.search.positive_means import LONG, NarrowMean, evenly, mean_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from gonio.core.inputs import Problem

ABOVE = 0.003  # of the spread of a coordinate: how far above the label the mean is to be
RIVALS = 4  # for each coordinate
AT_ONCE = 64  # labels


def below_means(
    problem: Problem, labels: Int[np.ndarray, " open"], pool: Int[np.ndarray, " rivals"], workers: BlasPool
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Those of the labels that are below a mean of rivals from the pool, with these and their weights (sum 1)."""
    pool = evenly(pool, RIVALS * problem.V.shape[1])
    if not len(pool):
        return {}
    rows, own = _columns(problem, pool), _columns(problem, labels)
    middle = rows.mean(axis=0, dtype=np.float64)
    A = np.subtract(rows, middle, dtype=np.float32)
    spread = np.sqrt(np.einsum("ij,ij->j", A, A, dtype=np.float64) / len(A))
    live = spread > 1e-12 * spread.max(initial=0)
    if not live.any():
        return {}
    A, T = A[:, live] / spread[live].astype(np.float32), (own[:, live] - middle[live]) / spread[live]
    even, no_rays = np.full(len(pool), 1 / len(pool)), np.zeros((0, A.shape[1]))
    mean = mean_of(pool, A, np.sqrt(A.shape[1]), even, no_rays, np.zeros(0), workers)
    if mean is None:
        return {}
    narrow, found = NarrowMean(mean), {}
    wide, least = rows.astype(np.float64), np.where(live, ABOVE / 2 * spread, 0.0)
    for aims in (T + ABOVE, np.maximum(T, 0) + ABOVE):
        left = np.array([k for k, i in enumerate(labels.tolist()) if i not in found], np.int64)
        for s in spans(len(left), AT_ONCE):
            some = left[slice(*s)]
            targets, mine = mean.targets(aims[some]), labels[some, None] == pool
            at = np.where(mine.any(axis=1), mine.argmax(axis=1), -1)
            arrived, bent = narrow.bent(targets.astype(np.float32), at, workers, LONG)
            some = some[arrived]
            w = np.maximum(mean.weights(targets[arrived], bent, np.ones((len(arrived), 1))), 0)
            w[mine[arrived]] = 0
            w /= w.sum(axis=1, keepdims=True)
            above = (w @ wide - own[some] >= least).all(axis=1)
            for k, weights in zip(some[above].tolist(), w[above], strict=True):
                used = np.flatnonzero(weights)
                found[int(labels[k])] = pool[used], weights[used]
    return found


def _columns(problem: Problem, which: np.ndarray) -> Float[np.ndarray, "some coordinates"]:
    """The rows, with their constants where these differ."""
    rows, c = problem.V[which], np.asarray(problem.c, np.float64)
    return rows if (c == c[0]).all() else np.column_stack([rows.astype(np.float64), c[which]])
