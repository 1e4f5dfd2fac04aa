"""Who wins at given points: look at all of them."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.float_units import UNIT
from gonio.core.inputs import Problem
from gonio.core.parallel import spans

EXACTLY = 2000  # how many labels may be looked at again in rationals


class BestMargins(NamedTuple):
    """For each label the largest  score_i - max_j score_j  over the points: bounds of it, and where it was seen."""

    low: np.ndarray
    high: np.ndarray
    point: np.ndarray


def best_margins(problem: Problem, workers: BlasPool) -> BestMargins:
    """Bounds of every label's best margin over the points; exact arithmetic where float64 cannot tell its sign."""
    assert problem.points is not None
    V, c, points = problem.V, problem.c, problem.points
    n, d = V.shape
    size = max(1, min(1024, 4_000_000 // n))

    def look(s: tuple[int, int]) -> BestMargins:
        F = points[slice(*s)].astype(np.float64)
        score, wrong = np.empty((len(F), n)), np.empty((len(F), n))
        for a, b in spans(n, 8192):
            block = V[a:b].astype(np.float64)
            score[:, a:b] = F @ block.T + c[a:b]
            wrong[:, a:b] = np.abs(F) @ np.abs(block).T + np.abs(c[a:b])
        wrong *= (d + 3) * UNIT * 1.01
        low, high = score - wrong, score + wrong
        least, most = low - _others(high), high - _others(low)
        at = np.where(least.max(axis=0) > 0, least.argmax(axis=0), most.argmax(axis=0))
        return BestMargins(least.max(axis=0), most.max(axis=0), at + s[0])

    low, high, where = np.full(n, -np.inf), np.full(n, -np.inf), np.zeros(n, np.int64)
    for seen in workers.run(look, spans(len(points), size)):
        better = np.where(seen.low > 0, seen.low > low, (seen.high > high) & (low <= 0))
        where = np.where(better, seen.point, where)
        low, high = np.maximum(low, seen.low), np.maximum(high, seen.high)
    for i in np.flatnonzero((low <= 0) & (high >= 0))[:EXACTLY]:
        lead, place = max((_exact_lead(problem, int(i), k), k) for k in _doubtful(problem, int(i)))
        low[i] = high[i] = float(lead)
        where[i] = place
    return BestMargins(low, high, where)


def _others(scores: np.ndarray) -> np.ndarray:
    """For each column the largest of all the other columns, row by row."""
    if scores.shape[1] == 1:
        return np.full(scores.shape, -np.inf)
    top = scores.argmax(axis=1)
    rows = np.arange(len(scores))
    best = scores[rows, top]
    held = scores.copy()
    held[rows, top] = -np.inf
    out = np.repeat(best[:, None], scores.shape[1], axis=1)
    out[rows, top] = held.max(axis=1)
    return out


def _scores(problem: Problem, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores at some points and what rounding can have done to them."""
    V = problem.V.astype(np.float64)
    wrong = (F.shape[1] + 3) * UNIT * 1.01 * (np.abs(F) @ np.abs(V).T + np.abs(problem.c))
    return F @ V.T + problem.c, wrong


def _doubtful(problem: Problem, i: int) -> list[int]:
    """The points at which floats cannot tell that label i does not win; never none."""
    assert problem.points is not None
    out = []
    for a, b in spans(len(problem.points), 1024):
        score, wrong = _scores(problem, problem.points[a:b].astype(np.float64))
        mine = score[:, i] + wrong[:, i]
        score[:, i] = -np.inf
        out += [a + int(k) for k in np.flatnonzero((score - wrong).max(axis=1) <= mine)]
    return out or [0]


def _exact_lead(problem: Problem, i: int, point: int) -> Fraction:
    """score_i - max_j score_j at a point, in rationals, among the rivals that floats cannot put below."""
    assert problem.points is not None
    f = problem.points[point].astype(np.float64)
    score, wrong = (a[0] for a in _scores(problem, f[None]))
    near = np.flatnonzero(score + wrong >= (score - wrong)[np.arange(len(score)) != i].max())
    x = [Fraction(float(v)) for v in f]

    def exact(j: int) -> Fraction:
        row = zip(problem.V[j], x, strict=True)
        return sum((Fraction(float(a)) * b for a, b in row), Fraction(float(problem.c[j])))

    return exact(i) - max(exact(int(j)) for j in near if j != i)
