"""Many labels that never win over inputs with sides, each below a mean of its own rivals: all in two products.

With scores g.x + b, weights w_j >= 0 of sum s, x = gain * z + shift (gain 1 and shift 0 but after a norm) and

    D = gain * (sum_j w_j g_j - s g_i),      B = sum_j w_j b_j - s b_i + (sum_j w_j g_j - s g_i).shift,

the label i is above the mean of its rivals by at most the supremum of -(D.z + B) / s over the inputs z. It is finite
where these are, or where D has the right sign towards every infinite side by more than rounding: no exact weights need
to be found, as over all inputs (`never_below`). Here D and B come from float64 products of the weights of many labels
with the rows of all their rivals, each with a bound of its rounding; what these bounds do not settle, `RivalMean` looks
at again in long floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.float_units import TINY, UNIT
from gonio.core.head import Head
from gonio.core.parallel import in_threads, spans
from gonio.proofs.margins import SLACK

if TYPE_CHECKING:
    from jaxtyping import Float, Int

LABELS = 128  # that are looked at together


def have_sides(head: Head) -> bool:
    """Whether the inputs of the head are a ball, or a box of which each coordinate has a finite side."""
    if head.inputs.shape == "ball":
        return True
    if head.inputs.shape not in ("box", "orthant"):
        return False
    low, high = head.inputs.bounds(head.shape[1])
    return bool((np.isfinite(low) | np.isfinite(high)).all())


def most_above_means(
    head: Head, labels: Int[np.ndarray, " some"], rivals: Sequence[np.ndarray], weights: Sequence[np.ndarray]
) -> Float[np.ndarray, " some"]:
    """Upper bounds of what each label can be above the mean of its rivals by, over its inputs; inf where none is.

    The weights of a label are positive somewhere and nowhere negative.
    """

    def look(span: tuple[int, int]) -> np.ndarray:
        part = slice(*span)
        with np.errstate(all="ignore"):
            return _most(head, labels[part], rivals[part], weights[part])

    return np.concatenate([np.zeros(0), *in_threads(look, spans(len(labels), LABELS))])


def _most(
    head: Head, labels: np.ndarray, rivals: Sequence[np.ndarray], weights: Sequence[np.ndarray]
) -> Float[np.ndarray, " some"]:
    count = np.array([len(r) for r in rivals])
    used, at = np.unique(np.concatenate(rivals), return_inverse=True)
    w = np.zeros((len(labels), len(used)))
    np.add.at(w, (np.repeat(np.arange(len(labels)), count), at), np.concatenate(weights))
    # A weight may be added up from several, a sum of weights from all, a sum of products from as many again.
    unit = (2 * len(used) + int(count.max()) + 16) * UNIT * SLACK
    sums = w.sum(axis=1)
    G, own = head.rows[used].astype(np.float64), head.rows[labels].astype(np.float64)
    D = w @ G - sums[:, None] * own
    error = unit * (w @ np.abs(G) + sums[:, None] * np.abs(own)) + TINY
    B, wrong = np.zeros(len(labels)), np.zeros(len(labels))
    if head.bias is not None:
        b, b_own = head.bias[used].astype(np.float64), head.bias[labels].astype(np.float64)
        B = w @ b - sums * b_own
        wrong = unit * (w @ np.abs(b) + sums * np.abs(b_own)) + TINY
    most, off = _supremum(head, D, error)
    value = (most - B + wrong + off + 4 * UNIT * (np.abs(most) + np.abs(B))) / sums
    return np.where(np.isfinite(value), value + unit * np.abs(value), np.inf)


def _supremum(head: Head, D: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The supremum of -D.x over the inputs x, D within `error`, and a bound of what rounding did to it."""
    d = head.shape[1]
    if head.inputs.shape == "ball":
        gain, shift = (v.astype(np.float64) for v in head.inputs.gain_and_shift(d))
        r = D * gain
        size = np.sqrt(np.square(r).sum(axis=1))
        off = np.sqrt(np.square(error * gain).sum(axis=1)) + 4 * UNIT * size
        if head.inputs.centred:
            r = r - r.mean(axis=1, keepdims=True)
            off = off + (d + 8) * UNIT / math.sqrt(d) * np.abs(D * gain).sum(axis=1)
        length = np.sqrt(np.square(r).sum(axis=1))
        far = math.sqrt(d) * (length * (1 + (d + 16) * UNIT) + off * SLACK)
        moved, terms = D @ shift, np.abs(D) @ np.abs(shift)
        return far - moved, (error @ np.abs(shift) + (d + 8) * UNIT * terms) * SLACK + TINY
    low, high = head.inputs.bounds(d)
    # Towards an infinite side -D.x must provably not grow; then its supremum lies at the other side.
    grows = (np.isinf(high) & (error > D)) | (np.isinf(low) & (-error < D))
    low, high = np.where(np.isinf(low), high, low), np.where(np.isinf(high), low, high)
    low, high = (np.where(np.isinf(side), 0.0, side) for side in (low, high))
    reach = np.maximum(np.abs(low), np.abs(high))
    terms = np.maximum(-D * low, -D * high)
    off = error @ reach + (d + 8) * UNIT * np.abs(terms).sum(axis=1)
    off = off * SLACK + TINY if reach.any() else np.zeros(len(D))  # at 0 nothing is rounded
    return np.where(grows.any(axis=1), np.inf, terms.sum(axis=1)), off
