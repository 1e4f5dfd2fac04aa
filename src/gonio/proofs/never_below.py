"""The proof that a mean of rivals is never below a label.

It is enough that D.z + B >= 0 on the inputs (see `mean`). Often that holds with room to spare. But over all inputs D
must vanish exactly, and rounded weights never make it: it is then proven that exact weights exist near them.
With A the columns whose weights may move, R ~ A^-1, |I - RA| <= q < 1 and y = |R D|, the exact weights lie within
y + q max(y)/(1 - q) of the rounded ones, row by row. Where A is not square and regular, the system is solved in
whole numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.float_units import TINY, UNIT
from gonio.proofs import exact_numbers
from gonio.proofs.exact_numbers import Dyadic
from gonio.proofs.margins import SLACK
from gonio.proofs.rival_mean import FINE, LONG, MeanSums, RivalMean, exact_supremum, sums, supremum, up

if TYPE_CHECKING:
    from jaxtyping import Float, Int

NEAR = 1e-6  # stored weights farther than this from exact ones were not found by rounding
NOISE = 1e-9  # a D_k this small against its terms is meant to vanish
LARGEST = 1 << 20  # entries (rivals x dim) that are looked at in whole numbers: about two seconds


def proven(mean: RivalMean) -> float | None:
    """An upper bound <= 0 of sum_j w_j (score_i - score_j) / sum_j w_j over the inputs; None where none was proven.

    Cost: rivals x dim where there is room to spare; the inverse of a dim x dim matrix and two products for exact
    weights near the stored ones; whole numbers where the rivals are too few for that.
    """
    with np.errstate(all="ignore"):
        s = sums(mean)
        value = supremum(mean.head, s)
        if value <= 0:
            return value / mean.scale * (1 - 1e-12)
        if mean.head.inputs.shape == "ball":
            near = _downhill(mean, s)
            value = supremum(mean.head, sums(near))
            if value <= 0:
                return value / near.scale * (1 - 1e-12)
        must = _conditions(mean, s)
    if must is None:  # D does not vanish: over a ball the stored weights may still meet B = sqrt(d) |D| exactly
        found = _as_stored(mean) if mean.head.inputs.shape == "ball" else None
        return None if found is None else found / mean.scale * (1 - 1e-12) + 0.0
    with np.errstate(all="ignore"):
        # corner.D + B is either met with room to spare or made to vanish as well: the likelier is tried first.
        scale = float(np.abs(must.corner) @ s.size) + s.weight
        tight = bool(abs(must.corner @ s.D + s.B) <= NOISE * scale)
        found = _enclosed(mean, s, must, tight and scale > 0)
        if found is None and scale > 0:
            found = _enclosed(mean, s, must, not tight)
    if found is None:
        found = _solved(mean, must)
    return None if found is None else found / mean.scale * (1 - 1e-12) + 0.0


def _downhill(mean: RivalMean, s: MeanSums) -> RivalMean:
    """Weights within NEAR of the stored ones, one step down the slope of  sqrt(d) |D| - B.

    Weights on the very edge of a proof, B = sqrt(d) |D|, fail by their rounding; a small step has room to spare.
    """
    r = s.D - s.D.mean() if mean.head.inputs.centred else s.D
    norm = np.sqrt((r * r).sum())
    rows, c, _ = mean.columns(np.arange(len(mean.rivals)))
    slope = (math.sqrt(len(r)) * (rows @ r) / norm - c).astype(float)
    step = slope * (NEAR / 2 / np.abs(slope).max())
    moved = np.where(mean.free, mean.weights - step, np.maximum(mean.weights - step, mean.weights / 2))
    return replace(mean, weights=moved) if np.isfinite(moved).all() else mean


@dataclass(frozen=True, eq=False)
class Conditions:
    """What the weights must meet: D_k = 0 for k in `zero`, sign_k D_k >= 0 for the others, corner.D + B >= 0."""

    zero: Int[np.ndarray, " some"]
    sign: Int[np.ndarray, " dim"]
    corner: Float[np.ndarray, " dim"]
    reference: int | None  # after a LayerNorm D counts up to a constant: D_k - D_reference stands for D_k


def _conditions(mean: RivalMean, s: MeanSums) -> Conditions | None:
    """The linear conditions under which D.z + B >= 0 on the inputs, chosen by where D nearly vanishes.

    None where the weights are too far from meeting them for rounding to be the cause.
    """
    low, high = mean.head.inputs.bounds(mean.head.shape[1])
    D, size, reference = s.D, s.size, None  # long floats: as floats small ones would vanish
    if mean.head.inputs.centred:
        dead = np.flatnonzero(mean.head.inputs.gain_and_shift(len(D))[0] == 0)
        reference = int(dead[0]) if len(dead) else len(D) - 1
        D, size = D - D[reference], size + size[reference]
        size[reference] = 0
    counts = (s.size > 0) & (low != high) if reference is None else size > 0
    up, down = counts & np.isinf(high), counts & np.isinf(low)
    too_far = np.where(up, -D, 0) > NEAR * size
    if (too_far | (np.where(down, D, 0) > NEAR * size)).any():
        return None
    vanish = (counts & (np.abs(D) <= NOISE * size)) | (up & (D <= 0)) | (down & (D >= 0))
    sign = np.where(counts & ~vanish, np.sign(D), 0).astype(np.int64)
    corner = np.where(sign > 0, low, np.where(sign < 0, high, np.where(low == high, low, 0.0)))
    if not (np.isfinite(D).all() and np.isfinite(size).all() and np.isfinite(corner).all()):
        return None  # too large for floats
    return Conditions(np.flatnonzero(vanish), sign, corner, reference)


def _enclosed(mean: RivalMean, s: MeanSums, must: Conditions, last: bool) -> float | None:
    """-(corner.D + B), rounded up, at exact weights that meet the conditions; it vanishes too where `last`."""
    vanishing = len(must.zero) + last
    if len(mean.rivals) <= vanishing:
        return None
    order = np.argsort(-np.abs(mean.weights), kind="stable")[: 4 * vanishing + 8]  # the weights that may move
    edged = _sums_with_edge(mean, s, must, order)
    zero = np.append(must.zero, len(must.corner)) if last else must.zero
    found = _exact_weights_nearby(mean, edged, order, zero)
    if found is None:
        return None
    moving, distance = found
    # What has a sign must keep it when the weights move to the exact ones.
    change = distance.astype(LONG) @ (np.abs(edged.rows[moving]) + 8 * FINE * edged.size[moving]) * SLACK
    signed = np.flatnonzero(must.sign)
    if not (must.sign[signed] * edged.D[signed] - edged.error[signed] >= change[signed]).all():
        return None
    if last:
        return 0.0
    value = edged.D[-1]
    least = value - (edged.edge_error + change[-1]) * SLACK - 4 * UNIT * abs(value)  # in long floats: none vanishes
    # The bound is of a mean: exact weights may sum to more than the stored ones by as much as they moved.
    return up(-least * (1 - distance.sum() / mean.scale * SLACK)) if least >= 0 else None


@dataclass(frozen=True, eq=False)
class _EdgeSums:
    """The sums D that the conditions are about, with corner.D + B as one coordinate more, and what moves them."""

    D: np.ndarray  # up to D_reference, where there is one
    error: np.ndarray  # bounds of the error of D
    edge_error: Any  # that of corner.D + B, before it is rounded up
    rows: np.ndarray  # by how much D grows with each weight that may move
    size: np.ndarray  # the sums of the sizes of the terms of `rows`, for their error


def _sums_with_edge(mean: RivalMean, s: MeanSums, must: Conditions, order: np.ndarray) -> _EdgeSums:
    """The sums of the stored weights, and the columns of the weights `order`."""
    rows, c, terms = mean.columns(order)
    D, error, size = s.D, s.error, np.abs(rows)
    if must.reference is not None:
        k = [must.reference]
        D, error = D - D[k], error + error[k] + FINE * (np.abs(D) + np.abs(D[k]))
        rows, size = rows - rows[:, k], size + size[:, k]
    edge = must.corner.astype(LONG)
    rows = np.column_stack([rows, rows @ edge + c])
    size = np.column_stack([size, (len(edge) + 8) * (size @ np.abs(edge) + terms)])
    value = edge @ np.where(edge != 0, D, 0) + LONG(s.B)
    wide = np.abs(edge) @ np.where(edge != 0, s.size, 0) + abs(s.B)
    doubt = np.abs(edge) @ np.where(edge != 0, error, 0) + s.wrong + (len(edge) + 8) * FINE * wide
    return _EdgeSums(np.append(D, value), np.append(error, doubt * SLACK), doubt, rows, size)


def _exact_weights_nearby(
    mean: RivalMean, edged: _EdgeSums, order: np.ndarray, zero: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Proof that exact weights with D_k = 0 for k in `zero` exist near the stored ones, with the right signs.

    (which of `order` move, bounds of how far each): as many weights as there are conditions. None without a proof.
    """
    t = len(zero)
    if not t:
        return np.zeros(0, np.int64), np.zeros(0)
    table, terms = edged.rows[:, zero].T.astype(float), edged.size[:, zero].T.astype(float)
    # With one column to spare, the largest weight is the one that stays as it is.
    one_to_spare = len(mean.rivals) == t + 1
    moving = np.arange(1, t + 1) if one_to_spare else _independent(table * np.abs(mean.weights[order]), t)
    if moving is None:
        return None
    table_error = (UNIT + 4 * FINE) * terms[:, moving] + TINY
    distance = _distance(table[:, moving], table_error, edged.D[zero], edged.error[zero])
    weights, free = mean.weights[order[moving]], mean.free[order[moving]]
    if distance is None or not (distance <= NEAR).all() or not (free | (distance < weights)).all():
        return None
    return moving, distance


def _independent(table: np.ndarray, t: int) -> np.ndarray | None:
    """The t columns that a pivoted QR decomposition takes first."""
    from scipy.linalg import qr

    return np.asarray(qr(table, mode="r", pivoting=True)[-1][:t]) if np.isfinite(table).all() else None


def _distance(A: np.ndarray, A_error: np.ndarray, D: np.ndarray, error: np.ndarray) -> np.ndarray | None:
    """For every matrix within A_error of A and vector within `error` of D, a bound of |its solution of A e = -D|."""
    t = len(D)
    try:
        R = np.linalg.inv(A)
    except np.linalg.LinAlgError:
        return None
    size, residual = np.abs(R), D.astype(float)
    q = np.abs(np.eye(t) - R @ A).sum(axis=1)
    q = (q + (t + 4) * UNIT * (size @ np.abs(A).sum(axis=1) + 1) + size @ A_error.sum(axis=1)) * SLACK
    y = np.abs(R @ residual) + size @ ((t + 8) * UNIT * np.abs(residual) + error.astype(float))
    y = y * SLACK + TINY
    return (y + q * (y.max() / (1 - q.max()))) * SLACK if q.max() < 1 else None


def _as_stored(mean: RivalMean) -> float | None:
    """The supremum of -(D.z + B) for the stored weights as they are, in whole numbers, if it is at most 0."""
    if len(mean.rivals) * mean.head.shape[1] > LARGEST:
        return None
    given = Dyadic.of(mean.weights)
    value = exact_supremum(mean.head, given.whole, *mean.exactly())
    return None if value is None else math.ldexp(value, given.exponent)


def _solved(mean: RivalMean, must: Conditions) -> float | None:
    """As `_enclosed`, in whole numbers: first the stored weights as they are, then the exact ones near them."""
    if len(mean.rivals) * mean.head.shape[1] > LARGEST:
        return None
    value = _as_stored(mean)
    if value is not None:
        return value
    rows, c = mean.exactly()
    given = Dyadic.of(mean.weights)
    columns = rows - rows[:, [must.reference]] if must.reference is not None else rows
    last = (columns @ Dyadic.of(must.corner) + c).whole[None, :]

    def met(table: np.ndarray) -> np.ndarray | None:
        """Whole-number weights in ratios near the stored ones, at which the rows of the table vanish."""
        if min(table.shape) > exact_numbers.LIMIT or not table.size:
            return None
        solved = exact_numbers.kernel_near(Dyadic(table, 0), mean.weights)
        largest = int(np.argmax(np.where(mean.free, -np.inf, mean.weights)))
        if solved is None or solved[largest] <= 0:
            return None
        if any(v < 0 for v, free in zip(solved, mean.free, strict=True) if not free):
            return None
        ratios = np.array([exact_numbers.rounded(v, solved[largest], up=True) for v in solved])
        near = np.abs(ratios * mean.weights[largest] - mean.weights) <= NEAR
        return np.array(solved, dtype=object) if near.all() else None

    zero = columns[:, must.zero].whole.T
    for table in (zero, np.vstack([zero, last])):
        weights = met(table)
        if weights is not None and exact_supremum(mean.head, weights, rows, c) is not None:
            return 0.0
    # Too much was asked for: only what has the wrong sign need vanish, a coordinate after the other.
    low, high = mean.head.inputs.bounds(mean.head.shape[1])
    up, down = np.isinf(high) | (low == 0), np.isinf(low) | (high == 0)
    weights, active = given.whole, must.zero[np.isinf(low[must.zero]) & np.isinf(high[must.zero])]
    for _ in range(len(low)):
        D = np.array([(v > 0) - (v < 0) for v in np.dot(weights, columns.whole).tolist()])
        wrong = np.setdiff1d(np.flatnonzero((D < 0) & up | (D > 0) & down), active)
        if not len(wrong):
            return None
        active = np.append(active, wrong)
        weights = met(columns[:, active].whole.T)
        if weights is None:
            return None
        if exact_supremum(mean.head, weights, rows, c) is not None:
            return 0.0
    return None
