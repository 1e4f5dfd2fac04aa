"""One round of the cutting planes: accept a target's direction, or add the rivals that beat it and project.

Each target has a point P and an aim Q (P, or P pushed away from the centre of the hull). Its projection problem is

    min over lam >= 0 of  |(Q, kappa) - sum_j lam_j c_j|,      c_j = (v_j, kappa) for a row, (g_k, 0) for a ray,

over the columns c_j found so far. The first coordinates of the residual are the next direction to try. A round does
one of four things with a target:

    WINS      in the tried direction P is above every rival by more than the rounding
    NEVER     the combination comes within `tolerance` of the aim
    STALLED   no rival and no ray is new, or the combination is the aim up to rounding, so that what is left of it is no
              direction: nothing more can be gained at this precision
    OPEN      the new rivals and violated rays became columns; the residual is the next direction

Example: P = Q = (0, 0), rows (1, 0), (-1, 0), kappa = 1. Tried at (0, 1), no row is above P but neither is P above a
row: both become columns, lam = (1/2, 1/2) leaves no residual, the combination is Q itself, and the target is NEVER.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.parallel import spans
from gonio.search.nearest_combination import nearest_combination

OPEN, WINS, NEVER, STALLED = 0, 1, 2, 3
AT_ONCE = 512  # targets whose directions are looked at together

# numba's cache on disk refers to the classes below by name: a cache older than a renaming cannot be loaded, and raises.
# So whoever renames or removes one of them also renames the functions that take it.


class TargetArrays(NamedTuple):
    """What is kept of each target from round to round."""

    points: np.ndarray  # (targets, rank): P
    aims: np.ndarray  # (targets, rank): Q
    across: np.ndarray  # (targets, rank): for ties, the unit vector that directions are orthogonal to; else no rows
    directions: np.ndarray  # (targets, rank): the next direction to try, or the one that won
    columns: np.ndarray  # (targets, rank + 2): numbers of the columns in use; from len(rows) on they are rays
    weights: np.ndarray  # (targets, rank + 2): lam of these columns
    size: np.ndarray  # how many columns are in use
    factor_start: np.ndarray  # where the inverse factor of these columns begins in the kept memory, or -1
    status: np.ndarray
    margin: np.ndarray  # of a win: by how much at least
    hull_distance: np.ndarray  # the smallest proven bound of the distance from P to the hull


class TrialArrays(NamedTuple):
    """What one round has found about each target it looks at; entry a is about target number[a]."""

    number: np.ndarray
    residuals: np.ndarray  # (trials, rank): unit directions of the residuals
    directions: np.ndarray  # (trials, rank): the directions tried: the same, or the nearest that the rays allow
    rounding: np.ndarray  # what making a direction orthogonal to `across` can have cost of a margin
    extra_ray: np.ndarray  # number of a ray made for this direction, or -1
    rivals: np.ndarray  # (trials, room): rows above the point in the tried direction, or too near to tell
    rival_count: np.ndarray  # how many there are; above `room` where they did not all fit


class ColumnArrays(NamedTuple):
    """The columns there are to choose from."""

    rows: np.ndarray  # (labels, rank): v_j
    rays: np.ndarray  # (rays, rank): g_k, of unit length
    watched: int  # the first so many rays bind every direction
    kappa: float


class FactorArrays(NamedTuple):
    """Inverse Cholesky factors, row after row in one flat array: those of the last round, and room for the new ones."""

    old: np.ndarray
    old_start: np.ndarray  # of each trial, -1 where none was kept
    new: np.ndarray
    new_start: np.ndarray  # of each trial, -1 where there is no room


class RoundingBounds(NamedTuple):
    """Rounding bounds, and how near a combination must come."""

    coarse: float  # of a float32 score
    fine: float  # of a float64 difference of scores
    ray_drift: float  # of a ray
    tolerance: float  # distance from the aim within which the label never wins


def cutting_round(
    trials: TrialArrays,
    targets: TargetArrays,
    columns: ColumnArrays,
    factors: FactorArrays,
    bounds: RoundingBounds,
    first_round: bool,
    workers: BlasPool,
    after: Callable[[], None],
) -> None:
    """One round of all trials, some to each thread; writes to `targets` and to the new factors."""

    def prepared(s: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        chosen = np.arange(*s)
        left = chosen[~_accepted(chosen, targets, trials, columns, bounds)]
        return left, _new_columns(left, trials, columns)

    # What numpy does takes many targets at a time, the projections few, for some take much longer than others.
    parts = [prepared(s) for s in spans(len(trials.number), AT_ONCE)]
    left, new = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))

    def project(s: tuple[int, int]) -> None:
        part = slice(*s)
        nearest_combination(left[part], new[part], trials.number, targets, columns, factors, STALLED, first_round)

    workers.run(project, spans(len(left), max(1, min(512, len(left) // (4 * workers.size) + 1))), after)
    _judge(trials.number[left], targets, len(columns.rows), bounds)


def _accepted(
    chosen: np.ndarray, targets: TargetArrays, trials: TrialArrays, columns: ColumnArrays, bounds: RoundingBounds
) -> np.ndarray:
    """Which points are above every rival in the tried direction, by more than the rounding; these are settled."""
    complete = np.flatnonzero(trials.rival_count[chosen] <= trials.rivals.shape[1])
    asked = chosen[complete]
    g, X, count = trials.number[asked], trials.directions[asked], trials.rival_count[asked]
    own, least = np.einsum("ij,ij->i", X, targets.points[g]), np.full(len(asked), bounds.coarse)
    lost = bounds.fine + trials.rounding[asked]
    going = np.flatnonzero(count > 0)
    k = 0
    while len(going):  # nearly all that lose do so to the first rival
        there = np.einsum("ij,ij->i", columns.rows[trials.rivals[asked[going], k]], X[going])
        least[going] = np.minimum(least[going], own[going] - there)
        k += 1
        going = going[(least[going] > lost[going]) & (count[going] > k)]
    won = least > lost
    # Single labels are tried at directions that the rays allow; those of pairs have yet to be checked.
    if len(targets.across) and len(columns.rays):
        won &= _rays_allow(columns, trials.extra_ray[asked], X)
    targets.status[g[won]] = WINS
    targets.margin[g[won]] = (least - lost)[won]
    targets.directions[g[won]] = X[won]
    accepted = np.zeros(len(chosen), bool)
    accepted[complete[won]] = True
    return accepted


def _rays_allow(columns: ColumnArrays, extra: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Whether g_k.x <= 0 for all rays that bind x, up to rounding."""
    highest = (X @ columns.rays[: columns.watched].T).max(axis=1, initial=-np.inf)
    made = np.flatnonzero(extra >= 0)
    highest[made] = np.maximum(highest[made], np.einsum("ij,ij->i", columns.rays[extra[made]], X[made]))
    return np.less_equal(highest, 1e-9)


def _new_columns(left: np.ndarray, trials: TrialArrays, columns: ColumnArrays) -> np.ndarray:
    """(left, width): numbers of the new rivals, then of the most violated rays and the one made for it; -1 for none."""
    n, rank = columns.rows.shape
    rivals = np.where(np.arange(trials.rivals.shape[1]) < trials.rival_count[left, None], trials.rivals[left], -1)
    if not len(columns.rays):
        return rivals
    violation = trials.residuals[left] @ columns.rays[: columns.watched].T
    rays, most = np.where(violation > 1e-12, n + np.arange(columns.watched), -1), max(24, rank // 4)
    if columns.watched > most:
        worst = np.sort(np.argpartition(-violation, most, axis=1)[:, :most], axis=1)
        rays = np.take_along_axis(rays, worst, axis=1)
    extra = trials.extra_ray[left, None]
    return np.hstack([rivals, rays, np.where(extra >= 0, n + extra, -1)])


def _judge(g: np.ndarray, targets: TargetArrays, n: int, bounds: RoundingBounds) -> None:
    """From the point  sum_j lam_j v_j / sum_j lam_j (+ rays)  bound the distance of P to the hull, and settle NEVER."""
    used = np.arange(int(targets.size[g].max(initial=0))) < targets.size[g, None]
    columns, weights = targets.columns[g, : used.shape[1]], targets.weights[g, : used.shape[1]]
    on_rows = np.where(used & (columns < n), weights, 0.0).sum(axis=1)
    on_rays = np.where(used & (columns >= n), weights, 0.0).sum(axis=1)
    some = on_rows > 0
    g, on_rows, on_rays = g[some], on_rows[some], on_rays[some]
    aims, points = targets.aims[g], targets.points[g]
    reached = (aims - targets.directions[g]) / on_rows[:, None]
    wrong = bounds.fine + bounds.ray_drift * on_rays / on_rows
    from_point = np.linalg.norm(reached - points, axis=1) + wrong
    targets.hull_distance[g] = np.minimum(targets.hull_distance[g], from_point)
    near = np.linalg.norm(reached - aims, axis=1) + wrong <= bounds.tolerance
    targets.status[g[near]] = NEVER
