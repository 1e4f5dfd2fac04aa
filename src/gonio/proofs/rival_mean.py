"""A weighted mean of rivals, and the most by which a label can be above it.

With weights w_j >= 0 and D = sum_j w_j (v_j - v_i), B = sum_j w_j (c_j - c_i), where scores are v.z + c,

    sum_j w_j (score_i - score_j)  =  -(D.z + B)      whose supremum over the inputs is

    box (space and orthant too)   -B - sum_k min(D_k low_k, D_k high_k); infinite where D_k has the wrong sign
    ball                          -B + sqrt(d) |D|; after a LayerNorm with D less its mean
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.float_units import TINY, UNIT
from gonio.core.head import Head
from gonio.core.parallel import spans
from gonio.proofs.exact_numbers import Dyadic, rounded
from gonio.proofs.margins import SLACK

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

LONG = np.longdouble
FINE = float(np.finfo(LONG).eps) / 2  # 2^-64 where the machine has such a type, 2^-53 elsewhere
BLOCK = 512


@dataclass(frozen=True, eq=False)
class RivalMean:
    """Rivals of a label with weights that sum to about 1; `free` ones may have any sign (the partner in a tie)."""

    head: Head
    label: int
    rivals: Int[np.ndarray, " some"]
    weights: Float[np.ndarray, " some"]
    free: Bool[np.ndarray, " some"]

    @property
    def scale(self) -> float:
        """The sum of the weights that count as a mean."""
        return float(self.weights[~self.free].sum())

    def columns(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """v_j - v_i, c_j - c_i and the size of the latter's terms, for some rivals, in long floats."""
        gain, shift = (v.astype(LONG) for v in self.head.inputs.gain_and_shift(self.head.shape[1]))
        rows = self.head.rows[self.rivals[which]].astype(LONG) - self.head.rows[[self.label]].astype(LONG)
        c, size = np.zeros(len(which), LONG), np.zeros(len(which), LONG)
        if self.head.bias is not None:
            c = self.head.bias[self.rivals[which]].astype(LONG) - LONG(self.head.bias[self.label])
            size = np.abs(c)
        if shift.any():
            c, size = c + rows @ shift, size + np.abs(rows) @ np.abs(shift)
        return rows * gain, c, size

    def exactly(self) -> tuple[Dyadic, Dyadic]:
        """v_j - v_i (rivals x dim) and c_j - c_i as exact numbers."""
        gain, shift = self.head.inputs.gain_and_shift(self.head.shape[1])
        rows = Dyadic.of(self.head.rows[self.rivals]) - Dyadic.of(self.head.rows[[self.label]])
        c = rows @ Dyadic.of(shift)
        if self.head.bias is not None:
            c = c + (Dyadic.of(self.head.bias[self.rivals]) - Dyadic.of(self.head.bias[self.label]))
        return rows * Dyadic.of(gain), c


@dataclass(frozen=True, eq=False)
class MeanSums:
    """D and B of the weights as they stand, bounds of their errors, and the sums of their terms' absolute values."""

    D: np.ndarray
    error: np.ndarray
    size: np.ndarray
    B: float
    wrong: float
    weight: float


def sums(mean: RivalMean) -> MeanSums:
    """D and B in long floats, a block of rivals at a time."""
    d, m = mean.head.shape[1], len(mean.rivals)
    D, size = np.zeros(d, LONG), np.zeros(d, LONG)
    B, weight = LONG(0), LONG(0)
    for a, b in spans(m, BLOCK):
        which = np.arange(a, b)
        rows, c, terms = mean.columns(which)
        w = mean.weights[which].astype(LONG)
        D, size = D + w @ rows, size + np.abs(w) @ np.abs(rows)
        B, weight = B + w @ c, weight + np.abs(w) @ terms
    error = (m + 8) * FINE * size * SLACK + TINY * (size > 0)
    wrong = float((m + d + 16) * FINE * weight) * SLACK + TINY * float(weight > 0)
    return MeanSums(D, error, size, float(B), wrong + 2 * UNIT * abs(float(B)), float(weight))


def up(v: np.floating) -> float:
    """A long float as a float that is not below it."""
    near = float(v)
    return math.nextafter(near, math.inf) if LONG(near) < v else near


def length(v: np.ndarray) -> float:
    """|v| rounded up, whatever the size of its entries."""
    top = np.abs(v).max(initial=0)
    if not top > 0:
        return 0.0
    u = v / top
    return math.nextafter(up(top * np.sqrt((u * u).sum())) * SLACK, math.inf)


def supremum(head: Head, s: MeanSums) -> float:
    """The supremum of -(D.z + B) over the inputs, rounded up; infinite or NaN where it may be infinite."""
    if head.inputs.shape == "ball":
        r = s.D - s.D.mean() if head.inputs.centred else s.D
        centring = (len(r) + 8) * FINE * float(np.abs(s.D).sum()) * SLACK
        norm = length(r) + length(s.error) + centring if s.size.any() else 0.0
        total = math.nextafter(math.sqrt(len(r)) * norm * SLACK, math.inf) if norm else 0.0
    else:
        low, high = (v.astype(LONG) for v in head.inputs.bounds(head.shape[1]))
        corners = np.stack([-a * b for a in (s.D - s.error, s.D + s.error) for b in (low, high)])
        terms = np.where(np.isnan(corners), 0, corners).max(axis=0)  # 0 * inf: a coordinate that does not count
        total = _summed(terms)
    return total - s.B + s.wrong + 4 * UNIT * (abs(total) + abs(s.B))


def beyond(head: Head, s: MeanSums) -> float:
    """A bound of -(D.z + B) / max(1, |z|) over the inputs, for inputs that have no largest norm."""
    low, high = head.inputs.bounds(head.shape[1])
    least, most = s.D - s.error, s.D + s.error
    wrong = np.maximum(np.where(np.isinf(high), -least, 0), np.where(np.isinf(low), most, 0))
    wrong = np.maximum(wrong, 0)
    finite = np.where(np.isinf(low), 0, low), np.where(np.isinf(high), 0, high)
    rest = np.stack([-a * b for a in (least, most) for b in finite]).max(axis=0)  # a side that is infinite counts above
    total = _summed(rest)
    over = total - s.B + s.wrong + 4 * UNIT * (abs(total) + abs(s.B))
    return math.nextafter((length(wrong) + max(0.0, over)) * SLACK, math.inf)


def _summed(terms: np.ndarray) -> float:
    """The sum of long floats of any sign, rounded up."""
    return up(terms.sum() + (len(terms) + 8) * FINE * np.abs(terms).sum() * SLACK)


def exact_supremum(head: Head, weights: np.ndarray, rows: Dyadic, c: Dyadic) -> float | None:
    """The supremum of -(D.z + B) for whole-number weights, rounded up, if it is at most 0."""
    w = Dyadic(weights, 0)
    D, B = w @ rows, w @ c
    if head.inputs.shape == "ball":
        centred = head.inputs.centred
        squares = len(D.whole) * int((D.whole * D.whole).sum()) - (int(D.whole.sum()) ** 2 if centred else 0)
        over = Dyadic(np.array(squares, dtype=object), 2 * D.exponent) - B * B
        return 0.0 if over.ratio()[0] <= 0 <= B.ratio()[0] else None
    low, high = head.inputs.bounds(head.shape[1])
    sign = np.array([(v > 0) - (v < 0) for v in D.whole.tolist()])
    corner = np.where(sign > 0, low, np.where(sign < 0, high, 0.0))
    if np.isinf(corner).any():
        return None
    numerator, denominator = (D @ Dyadic.of(corner) + B).ratio()
    return -rounded(numerator, denominator, up=False) if numerator >= 0 else None
