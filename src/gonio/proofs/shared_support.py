"""Many labels that never win, each a mean of the same rivals: one inverse proves them all.

A label whose row is a mean of its rivals' rows, with a bias not above the mean of theirs, is at no input above all of
them, whatever the inputs. Stored weights w meet  A w = a  up to rounding only; with

    A     the rivals' rows and a line of ones, as columns (more columns than lines)
    a     the label's row and 1
    R     a right inverse of A, rounded, and  q_k >= sum_l |I - A R|_kl,  q = max q_k < 1
    rho   a - A w

e = R y with (A R) y = rho solves A e = rho exactly, and |y_k| <= |rho_k| + q_k max|rho| / (1 - q). So exact weights
w + e exist, no further from w than r = |R| times that: positive where w > r, and their mean of the biases less the
label's is at least  sum_j w_j (b_j - b_i) - r_j |b_j - b_i|.  R is made once; each label costs a few small products.
"""

from __future__ import annotations

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


def never_above_means(
    head: Head,
    labels: Int[np.ndarray, " some"],
    rivals: Int[np.ndarray, " rivals"],
    weights: Float[np.ndarray, "some rivals"],
) -> Bool[np.ndarray, " some"]:
    """Which labels provably are never above a mean of the rivals, with exact positive weights near the given ones.

    That no rival is the label itself or its equal is for the caller to see. Cost: an inverse of width dim + 1, and
    labels x rivals x dim.
    """
    none = np.zeros(len(labels), bool)
    A = _columns(head, rivals)
    lines, s = A.shape
    if s < lines:
        return none
    with np.errstate(all="ignore"), one_blas_thread():
        # Each line divided by a power of two: exactly, and one bound serves lines of any size.
        power = np.frexp(np.abs(A).max(axis=1))[1]
        A = np.ldexp(A, -power[:, None])
        R = _right_inverse(A)
        if R is None:
            return none
        size, spread = np.abs(A), np.abs(R)
        off = np.abs(np.eye(lines) - A @ R) + (s + 8) * UNIT * (size @ spread + np.eye(lines))
        q = off.sum(axis=1) * SLACK
        if not q.max() < 0.5:
            return none

    def look(span: tuple[int, int]) -> np.ndarray:
        part = slice(*span)
        with np.errstate(all="ignore"):
            w, a = weights[part].astype(np.float64), np.ldexp(_columns(head, labels[part]), -power[:, None]).T
            rho = (np.abs(a - w @ A.T) + (s + 8) * UNIT * (np.abs(a) + np.abs(w) @ size.T)) * SLACK + TINY
            y = rho + q * (rho.max(axis=1, keepdims=True) / (1 - q.max()))
            radius = (y @ spread.T) * SLACK + TINY
            good = ((w > radius) & (radius <= NEAR)).all(axis=1)
            return good & _bias_is_not_above(head, labels[part], rivals, w, radius)

    return np.concatenate(in_threads(look, spans(len(labels), LABELS)))


def _bias_is_not_above(
    head: Head, labels: np.ndarray, rivals: np.ndarray, w: np.ndarray, radius: np.ndarray
) -> Bool[np.ndarray, " some"]:
    """Whether sum_j u_j (b_j - b_i) >= 0 for all weights u within the radius of w."""
    if head.bias is None:
        return np.ones(len(labels), bool)
    gap = head.bias[rivals].astype(np.float64) - head.bias[labels].astype(np.float64)[:, None]
    wrong = ((radius + (len(rivals) + 8) * UNIT * w) * np.abs(gap)).sum(axis=1) * SLACK
    return (w * gap).sum(axis=1) >= wrong


def _right_inverse(A: np.ndarray) -> np.ndarray | None:
    """R with A R ~ I, from A' = Q T; None where T has no inverse."""
    Q, T = np.linalg.qr(A.T)
    try:
        return Q @ np.linalg.inv(T).T
    except np.linalg.LinAlgError:
        return None


def _columns(head: Head, labels: np.ndarray) -> np.ndarray:
    """The rows of some labels over ones, as columns, in float64: as stored, so exactly."""
    return np.vstack([head.rows[labels].astype(np.float64).T, np.ones(len(labels))])
