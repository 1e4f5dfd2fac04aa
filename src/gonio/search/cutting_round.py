"""One round of the cutting planes, compiled: accept a target's direction, or add the rivals that beat it and project.

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

from typing import NamedTuple

import numpy as np

from gonio.core.compiled import njit
from gonio.search.kernels import copy, dot, nnls

OPEN, WINS, NEVER, STALLED = 0, 1, 2, 3
EXACT = 1e-28  # of the squared aim: a residual of rounding alone

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


@njit(nogil=True, cache=True)
def cutting_round(chosen, targets, trials, columns, factors, bounds, first_round):
    """One round of the trials `chosen`; writes to `targets` and to the new factors."""
    rank = columns.rows.shape[1]
    inverse, order = np.empty((rank + 2, rank + 2)), np.empty(rank + 2, np.int64)
    for a in chosen:
        if _accepted(a, targets, trials, columns, bounds):
            continue
        g = trials.number[a]
        old_size = targets.size[g]
        numbers = _extended_columns(a, targets, trials, columns)
        if len(numbers) == old_size and not first_round:
            targets.status[g] = STALLED
            continue
        A = _column_matrix(numbers, g, targets, columns)
        b, lam = np.empty(rank + 1), np.zeros(len(numbers))
        copy(b, targets.aims[g], rank)
        b[rank] = columns.kappa
        copy(lam, targets.weights[g], old_size)
        known = _read_factor(a, old_size, factors, inverse)
        passive = nnls(A, b, lam, inverse, order, known, 3 * len(numbers) + 50)
        residual = _residual(b, lam, A)
        if dot(residual, residual, rank + 1) < 1e-8 * dot(b, b, rank + 1):
            _refine(A, inverse, order, passive, b, lam, residual)
        _write_factor(a, passive, factors, inverse)
        accurate = _keep_columns(g, numbers, order, passive, A, lam, residual, targets) <= 1e-9 * dot(b, b, rank + 1)
        targets.factor_start[g] = factors.new_start[a] if accurate else -1  # too much rounding: made anew next time
        copy(targets.directions[g], residual, rank)
        _judge_combination(g, b, residual, targets, len(columns.rows), bounds)
        if targets.status[g] == OPEN and dot(residual, residual, rank + 1) <= EXACT * dot(b, b, rank + 1):
            targets.status[g] = STALLED


@njit(inline="always")
def _residual(b, lam, A):
    """b - sum_j lam_j A_j."""
    left = np.empty(len(b))
    copy(left, b, len(b))
    for q in range(len(lam)):
        if lam[q] != 0:
            for t in range(len(b)):
                left[t] -= lam[q] * A[q, t]
    return left


@njit(inline="always")
def _accepted(a, targets, trials, columns, bounds):
    """Whether the target is above every rival in the tried direction, by more than the rounding; then it is settled."""
    g, x, rank = trials.number[a], trials.directions[a], columns.rows.shape[1]
    if trials.rival_count[a] > trials.rivals.shape[1]:
        return False
    own, least = dot(x, targets.points[g], rank), bounds.coarse
    for k in range(trials.rival_count[a]):
        least = min(least, own - dot(columns.rows[trials.rivals[a, k]], x, rank))
    if not least > bounds.fine + trials.rounding[a]:
        return False
    # Single labels are tried at directions that the rays allow; those of pairs have yet to be checked.
    if targets.across.shape[0] > 0 and not _rays_allow(columns, trials.extra_ray[a], x):
        return False
    targets.status[g] = WINS
    targets.margin[g] = least - bounds.fine - trials.rounding[a]
    copy(targets.directions[g], x, rank)
    return True


@njit(inline="always")
def _rays_allow(columns, extra, x):
    """Whether g_k.x <= 0 for all rays that bind x, up to rounding."""
    rank = len(x)
    for k in range(columns.watched):
        if dot(columns.rays[k], x, rank) > 1e-9:
            return False
    return extra < 0 or dot(columns.rays[extra], x, rank) <= 1e-9


@njit(inline="always")
def _violated_rays(columns, extra, x, most):
    """(numbers, count): the rays with g_k.x > 0, the `most` most violated of them, and the extra one."""
    numbers, violation = np.empty(columns.watched + 1, np.int64), np.empty(columns.watched)
    count = 0
    for k in range(columns.watched):
        v = dot(columns.rays[k], x, len(x))
        if v > 1e-12:
            numbers[count], violation[count] = k, v
            count += 1
    while count > most:  # the least violated goes
        least = 0
        for k in range(count):
            if violation[k] < violation[least]:
                least = k
        count -= 1
        for k in range(least, count):
            numbers[k], violation[k] = numbers[k + 1], violation[k + 1]
    if extra >= 0:
        numbers[count] = extra
        count += 1
    return numbers, count


@njit(inline="always")
def _extended_columns(a, targets, trials, columns):
    """The numbers of the target's columns, then those of the new rivals, then those of the newly violated rays."""
    n, rank = columns.rows.shape
    g, new = trials.number[a], min(trials.rival_count[a], trials.rivals.shape[1])
    violated, count = _violated_rays(columns, trials.extra_ray[a], trials.residuals[a], max(24, rank // 4))
    size = targets.size[g]
    numbers = np.empty(size + new + count, np.int64)
    copy(numbers, targets.columns[g], size)
    for t in range(new + count):
        number = trials.rivals[a, t] if t < new else n + violated[t - new]
        known = False
        for q in range(size):
            if numbers[q] == number:
                known = True
                break
        if not known:
            numbers[size] = number
            size += 1
    return numbers[:size]


@njit(inline="always")
def _column_matrix(numbers, g, targets, columns):
    """The columns (v_j, kappa) and (g_k, 0) as rows of a matrix, for a tie made orthogonal to its `across`."""
    n, rank = columns.rows.shape
    A = np.empty((len(numbers), rank + 1))
    for q in range(len(numbers)):
        if numbers[q] < n:
            copy(A[q], columns.rows[numbers[q]], rank)
            A[q, rank] = columns.kappa
        else:
            copy(A[q], columns.rays[numbers[q] - n], rank)
            A[q, rank] = 0.0
        if targets.across.shape[0] > 0:
            along = dot(A[q], targets.across[g], rank)
            for t in range(rank):
                A[q, t] -= along * targets.across[g, t]
    return A


@njit(inline="always")
def _read_factor(a, size, factors, inverse):
    """Copy the kept inverse factor of the target's `size` columns; how many of its rows there are (all, or none)."""
    start = factors.old_start[a]
    if start < 0:
        return 0
    for q in range(size):
        for t in range(q + 1):
            inverse[q, t] = factors.old[start + t]
        start += q + 1
    return size


@njit(inline="always")
def _write_factor(a, size, factors, inverse):
    """Keep the inverse factor of the passive columns for the next round, where there is room for it."""
    start = factors.new_start[a]
    if start < 0:
        return
    for q in range(size):
        for t in range(q + 1):
            factors.new[start + t] = inverse[q, t]
        start += q + 1


@njit(inline="always")
def _refine(A, inverse, order, passive, b, lam, residual):
    """Newton steps on the passive weights, with the residual formed from the columns and not from their products."""
    width = len(b)
    slope, change = np.empty(passive), np.empty(passive)
    for _ in range(3):
        for i in range(passive):
            slope[i] = dot(A[order[i]], residual, width)
            change[i] = 0.0
        for i in range(passive):
            v = dot(inverse[i], slope, i + 1)
            for t in range(i + 1):
                change[t] += v * inverse[i, t]
        for i in range(passive):
            if lam[order[i]] + change[i] <= 0:
                return
        copy(residual, b, width)
        for i in range(passive):
            c = order[i]
            lam[c] += change[i]
            for t in range(width):
                residual[t] -= lam[c] * A[c, t]


@njit(inline="always")
def _keep_columns(g, numbers, order, passive, A, lam, residual, targets):
    """Store the passive columns and their weights; the largest |column.residual|, which is 0 but for rounding."""
    largest = 0.0
    for q in range(passive):
        c = order[q]
        largest = max(largest, abs(dot(A[c], residual, A.shape[1])))
        targets.columns[g, q] = numbers[c]
        targets.weights[g, q] = lam[c]
    targets.size[g] = passive
    return largest


@njit(inline="always")
def _judge_combination(g, b, residual, targets, n, bounds):
    """From the point  sum_j lam_j v_j / sum_j lam_j (+ rays)  bound the distance of P to the hull, and settle NEVER."""
    on_rows, on_rays = 0.0, 0.0
    for q in range(targets.size[g]):
        if targets.columns[g, q] < n:
            on_rows += targets.weights[g, q]
        else:
            on_rays += targets.weights[g, q]
    if not on_rows > 0:
        return
    from_aim, from_point = 0.0, 0.0
    for t in range(targets.points.shape[1]):
        v = (b[t] - residual[t]) / on_rows
        from_aim += (v - targets.aims[g, t]) ** 2
        from_point += (v - targets.points[g, t]) ** 2
    wrong = bounds.fine + bounds.ray_drift * on_rays / on_rows
    targets.hull_distance[g] = min(targets.hull_distance[g], np.sqrt(from_point) + wrong)
    if np.sqrt(from_aim) + wrong <= bounds.tolerance:
        targets.status[g] = NEVER
