"""Floats as the rationals they are, and what proofs bound, computed with them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def exact(a):
    """A float, or the floats of an array in lists of its shape, as fractions."""
    if np.ndim(a) == 1 and np.asarray(a).dtype == np.float64:
        return [Fraction(v) for v in np.asarray(a).tolist()]
    if np.ndim(a):
        return [exact(v) for v in a]
    return Fraction(*np.longdouble(a).as_integer_ratio())


def dot(a, b):
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))


def score(head, i, x):
    """The exact score of a label at an x of fractions."""
    return dot(exact(head.rows[i : i + 1][0].astype(float)), x) + (0 if head.bias is None else exact(head.bias[i]))


def mean_z(inputs, x):
    """mean((x - shift) / gain), exactly."""
    gain, shift = (exact(v) for v in inputs.gain_and_shift(len(x)))
    return sum((a - s) / g for a, s, g in zip(exact(x), shift, gain, strict=True)) / len(x)


def meant(inputs, x):
    """The exact embedding that the floats x stand for: after a LayerNorm, x - gain * mean(z)."""
    if not inputs.centred or (inputs.gain_and_shift(len(x))[0] == 0).any():
        return exact(x)
    m = mean_z(inputs, x)
    return [a - m * g for a, g in zip(exact(x), exact(inputs.gain_and_shift(len(x))[0]), strict=True)]


def weighted(mean):
    """D and B of a RivalMean, and the sums of the sizes of B's terms, exactly."""
    head, d = mean.head, mean.head.shape[1]
    gain, shift = (exact(v) for v in head.inputs.gain_and_shift(d))
    own = exact(head.rows[[mean.label]][0].astype(float))
    own_bias = Fraction(0) if head.bias is None else exact(head.bias[mean.label])
    D, B = [Fraction(0)] * d, Fraction(0)
    for j, w in zip(mean.rivals.tolist(), exact(mean.weights), strict=True):
        row = [a - b for a, b in zip(exact(head.rows[[j]][0].astype(float)), own, strict=True)]
        D = [a + w * v * g for a, v, g in zip(D, row, gain, strict=True)]
        B += w * (dot(row, shift) + (0 if head.bias is None else exact(head.bias[j]) - own_bias))
    return D, B


def supremum_of(inputs, D, B):
    """The exact supremum of -(D.z + B) over a box, None where it is infinite; over a ball the square of sqrt(d) |D|."""
    if inputs.shape == "ball":
        m = sum(D) / len(D) if inputs.centred else 0
        return len(D) * sum((v - m) ** 2 for v in D)
    total = -B
    for v, low, high in zip(D, *inputs.bounds(len(D)), strict=True):
        side = low if v > 0 else high
        if v and np.isinf(side):
            return None
        total -= v * exact(side) if v else 0
    return total
