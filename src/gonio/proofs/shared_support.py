"""Many labels that never win, each a mean of the same rivals: one inverse proves them all.

A label is at no input above all of its rivals if, with weights w_j >= 0 of rows v_j and biases b_j,

    sum_j w_j (v_j - v_i) = D,      sum_j w_j (b_j - b_i) >= sup -D.x over the inputs,

whatever the weights of the label itself and of its equals: their terms are 0. Stored weights meet the first line up to
rounding only, while over unbounded inputs it must hold exactly. With

    A     the rivals' rows and a line of ones, as columns (more columns than lines)
    a     the label's row plus D, and 1, less what rivals of this label alone contribute
    R     a right inverse of A, rounded, and  q_k >= sum_l |I - A R|_kl,  q = max q_k < 1
    rho   a - A w

e = R y with (A R) y = rho solves A e = rho exactly, and |y_k| <= |rho_k| + q_k max|rho| / (1 - q). So exact weights
w + e exist, no further from w than r = |R| times that: positive where w > r, and their biases sum to at least
sum_j w_j (b_j - b_i) - r_j |b_j - b_i|. D may be any vector of floats: it is what the stored weights leave, 0 where it
is rounding or where the inputs are unbounded. R is made once; each label costs a few small products.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.float_units import TINY, UNIT
from gonio.core.head import Head
from gonio.core.parallel import in_threads, one_blas_thread, spans
from gonio.proofs.margins import SLACK
from gonio.proofs.never_below import NEAR

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

LABELS = 256  # that are looked at together
ENTRIES = 1 << 21  # of the rows of labels' own rivals that are held at once
ROUNDING = 64  # times the bound of the rounding: what is left of a coordinate below it is meant to vanish
SLIGHT = 1e-6  # of the largest typical weight: the least that a column of the inverse is made with


def never_above_means(
    head: Head,
    labels: Int[np.ndarray, " some"],
    rivals: Int[np.ndarray, " rivals"],
    weights: Float[np.ndarray, "some rivals"],
) -> Bool[np.ndarray, " some"]:
    """Which labels provably are never above a mean of the rivals, with exact weights near the given ones.

    Cost: an inverse of width dim + 1, and labels x rivals x dim.
    """
    shared = SharedRivals(head, rivals, weights.mean(axis=0))

    def look(span: tuple[int, int]) -> np.ndarray:
        return shared.never_above(labels[slice(*span)], weights[slice(*span)])

    return np.concatenate(in_threads(look, spans(len(labels), LABELS)))


class SharedRivals:
    """Rivals that many labels are means of; `typical` weights, any positive numbers, say how much each can give."""

    def __init__(self, head: Head, rivals: Int[np.ndarray, " rivals"], typical: Float[np.ndarray, " rivals"]) -> None:
        self.head, self.rivals = head, rivals
        self.same = head.first_equals
        A = _columns(head, rivals)
        # Each line divided by a power of two: exactly, and one bound serves lines of any size.
        with np.errstate(all="ignore"), one_blas_thread():
            self.power = np.frexp(np.abs(A).max(axis=1, initial=0))[1]
            self.A = np.ldexp(A, -self.power[:, None])
            self.spread, self.q = self._inverse(np.maximum(typical, SLIGHT * np.max(typical, initial=0)))

    def _inverse(self, typical: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """|R| and q; None where there is no inverse, or one too far off."""
        lines, s = self.A.shape
        R = _right_inverse(self.A, typical) if s >= lines else None
        if R is None:
            return None, np.zeros(lines)
        size, spread = np.abs(self.A), np.abs(R)
        off = np.abs(np.eye(lines) - _product(self.A, R)) + (s + 8) * UNIT * (_product(size, spread) + np.eye(lines))
        q = off.sum(axis=1) * SLACK
        return (spread, q) if q.max() < 0.5 else (None, q)

    def never_above(
        self,
        labels: Int[np.ndarray, " some"],
        weights: Float[np.ndarray, "some rivals"],
        more: Int[np.ndarray, "some more"] | None = None,
        more_weights: Float[np.ndarray, "some more"] | None = None,
    ) -> Bool[np.ndarray, " some"]:
        """Which labels provably are never above the rivals and `more` of their own, with weights near the given ones.

        Those of `more` are taken as they are. Over given embeddings nothing is proven.
        """
        none = np.zeros(len(labels), bool)
        if self.spread is None or self.head.inputs.points is not None or not len(labels):
            return none
        if more is None or more_weights is None:
            more, more_weights = np.zeros((len(labels), 0), np.int64), np.zeros((len(labels), 0))
        with np.errstate(all="ignore"):
            w, u = weights.astype(np.float64), more_weights.astype(np.float64)
            a = np.ldexp(_columns(self.head, labels), -self.power[:, None]).T
            total, rounding = self._combined(w, more, u)
            D = self._kept(total - a, rounding)
            rho = (np.abs(a - total + D) + rounding + 4 * UNIT * (np.abs(a) + np.abs(D))) * SLACK + TINY
            y = rho + self.q * (rho.max(axis=1, keepdims=True) / (1 - self.q.max()))
            radius = (y @ self.spread.T) * SLACK + TINY
            own = self.same[self.rivals] == self.same[labels][:, None]
            own_more = self.same[more] == self.same[labels][:, None]
            good = (((w > radius) & (radius <= NEAR)) | own).all(axis=1) & ((u >= 0) | own_more).all(axis=1)
            good &= ~own.all(axis=1)
            return good & (self._least_bias(labels, w, radius, more, u) >= self._most_without_bias(D))

    def _combined(self, w: np.ndarray, more: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The combination of the rivals, line by line, and a bound of its rounding; entries of A are below 1."""
        s, k = w.shape[1], u.shape[1]
        total = w @ self.A.T
        size = np.repeat(np.abs(w).sum(axis=1, keepdims=True), len(self.power), axis=1)
        for span in spans(len(w) if k else 0, max(1, ENTRIES // max(1, k * len(self.power)))):
            part = slice(*span)
            rows = self.head.rows[more[part].reshape(-1)].astype(np.float64).reshape(-1, k, len(self.power) - 1)
            rows = np.ldexp(np.concatenate([rows, np.ones((*rows.shape[:2], 1))], axis=2), -self.power)
            total[part] += np.einsum("mk,mkl->ml", u[part], rows)
            size[part] += np.einsum("mk,mkl->ml", np.abs(u[part]), np.abs(rows, out=rows))
        return total, (s + k + 16) * UNIT * size * SLACK

    def _kept(self, left: np.ndarray, rounding: np.ndarray) -> np.ndarray:
        """D in the scaled lines: what the weights leave, less what is rounding, and less what must vanish."""
        D = np.where(np.abs(left) > ROUNDING * rounding, left, 0.0)
        D[:, -1] = 0
        if self.head.inputs.shape != "ball":
            low, high = self.head.inputs.bounds(self.head.shape[1])
            D[:, :-1] = np.where(np.isinf(high), np.maximum(D[:, :-1], 0), D[:, :-1])
            D[:, :-1] = np.where(np.isinf(low), np.minimum(D[:, :-1], 0), D[:, :-1])
        return D

    def _most_without_bias(self, D: np.ndarray) -> np.ndarray:
        """The supremum of -D.x over the inputs, rounded up; NaN where it is not finite."""
        D, d = np.ldexp(D, self.power)[:, :-1], self.head.shape[1]
        if self.head.inputs.shape == "ball":
            gain, shift = (v.astype(np.float64) for v in self.head.inputs.gain_and_shift(d))
            norm = np.abs(D * gain).max(axis=1, initial=0)
            scaled = D * gain / np.where(norm > 0, norm, 1)[:, None]
            length = norm * np.sqrt((scaled * scaled).sum(axis=1)) * (math.sqrt(d) * (1 + (d + 16) * UNIT))
            moved, size = D @ shift, np.abs(D) @ np.abs(shift)
            return (length - moved) + (d + 16) * UNIT * (length + size) * SLACK + TINY * (norm > 0)
        low, high = self.head.inputs.bounds(d)
        terms = np.where(D > 0, -D * low, np.where(D < 0, -D * high, 0.0))
        terms = np.where(np.isfinite(terms), terms, np.nan)
        return terms.sum(axis=1) + (d + 8) * UNIT * np.abs(terms).sum(axis=1) * SLACK + TINY * (terms != 0).any(axis=1)

    def _least_bias(
        self, labels: np.ndarray, w: np.ndarray, radius: np.ndarray, more: np.ndarray, u: np.ndarray
    ) -> np.ndarray:
        """The least sum_j w_j (b_j - b_i) over all weights within the radius, rounded down."""
        bias = self.head.bias
        if bias is None:
            return np.zeros(len(labels))
        of_label = bias[labels].astype(np.float64)[:, None]
        gap, further = bias[self.rivals].astype(np.float64) - of_label, bias[more].astype(np.float64) - of_label
        terms = w.shape[1] + u.shape[1] + 8
        wrong = ((radius + terms * UNIT * np.abs(w)) * np.abs(gap)).sum(axis=1)
        wrong = (wrong + terms * UNIT * (np.abs(u) * np.abs(further)).sum(axis=1)) * SLACK
        return (w * gap).sum(axis=1) + (u * further).sum(axis=1) - wrong


def _right_inverse(A: np.ndarray, typical: np.ndarray) -> np.ndarray | None:
    """R = P A'(A P A')^-1 with P the typical weights: corrections in proportion to them; None where there is none."""
    weighted = A.T * typical[:, None]
    try:
        R = _product(weighted, np.linalg.inv(_product(A, weighted)))
    except np.linalg.LinAlgError:
        return None
    return _product(R, 2 * np.eye(len(A)) - _product(A, R))  # a step of Newton's takes back what squaring A has cost


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b, some rows of a to each thread where there are several to be had."""
    out = np.empty((len(a), b.shape[1]))

    def some(s: tuple[int, int]) -> None:
        np.matmul(a[slice(*s)], b, out=out[slice(*s)])

    in_threads(some, spans(len(a), 512))
    return out


def _columns(head: Head, labels: np.ndarray) -> np.ndarray:
    """The rows of some labels over ones, as columns, in float64: as stored, so exactly."""
    return np.vstack([head.rows[labels].astype(np.float64).T, np.ones(len(labels))])
