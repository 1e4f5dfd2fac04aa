"""Measures that bring the lengths of vectors back in (You 2025), as printed, with what is wrong with them said."""

from __future__ import annotations

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.similarity.measures import register
from gonio.similarity.of_cosine import OfCosine


@register
class ScaledSim(OfCosine):
    """SCALED_SIM(x, y) = alpha cos(x, y) + (1 - alpha)(|x| + |y|), as printed.

    Not a similarity unless lengths are bounded: it has no largest value and does not see the sign. For |x| = 1 and
    alpha = 0.5: SS(x, x) = 1.5, SS(x, 10 x) = 6, SS(x, -100 x) = 50. Zero vectors: NaN.
    """

    name = "SCALED_SIM"
    invariant = frozenset("R")

    def __init__(self, head: Head, alpha: float = 0.5) -> None:
        super().__init__(head)
        if not 0 <= alpha <= 1:
            raise GonioError(f"SCALED_SIM: alpha is {alpha}; a number from 0 to 1 is needed.")
        self.alpha = float(alpha)
        self.caveat = "grows with the lengths without bound and does not see opposite directions as different"

    def value(self, cosine, i, j):
        r = self.head.norms
        return self.alpha * cosine + (1 - self.alpha) * (r[i] + r[j])


@register
class PrintedRotation(OfCosine):
    """WRD(x, y) = |x| - |y| + weight arccos cos(x, y), as printed by You 2025.

    It is asymmetric and can be negative: WRD(x, 10 x) = -9 and WRD(10 x, x) = 9 for |x| = 1. With `repaired` the
    difference of lengths is taken without sign. It is not the Word Rotator's Distance of Yokoi et al. 2020, in spite of
    its name: that is `gonio.similarity.word_rotators_distance`. Zero vectors: NaN.
    """

    name = "WRD as printed"
    invariant = frozenset("R")
    nearer = -1
    symmetric = False

    def __init__(self, head: Head, weight: float = 1.0, *, repaired: bool = False) -> None:
        super().__init__(head)
        if not (np.isfinite(weight) and weight >= 0):
            raise GonioError(f"WRD as printed: weight is {weight}; a number from 0 up is needed.")
        self.weight, self.repaired = float(weight), bool(repaired)
        self.symmetric = self.repaired  # type: ignore[misc]
        self.caveat = "" if repaired else "asymmetric, and negative where the second vector is longer"

    def value(self, cosine, i, j):
        gap = self.head.norms[i] - self.head.norms[j]
        return (np.abs(gap) if self.repaired else gap) + self.weight * np.arccos(np.clip(cosine, -1, 1))


class _AgainstMedian(OfCosine):
    """Measures that weigh lengths against the median length of the head's rows."""

    def __init__(self, head: Head) -> None:
        super().__init__(head)
        alive = head.norms[head.norms > 0]
        if not len(alive):
            raise GonioError(f"{self.name}: all rows are zero; no length can be weighed.")
        self.median = float(np.median(alive))


@register
class RadiallyWeighted(_AgainstMedian):
    """w(|x|) w(|y|) cos(x, y),  w(r) = r / (r + r0),  r0 the median length: long vectors count as sure.

    You 2025 asks for confidence weights and gives no formula; this is one. A vector has less than 1 with itself.
    """

    name = "radially weighted angle"
    invariant = frozenset("SR")

    def value(self, cosine, i, j):
        r = self.head.norms
        w = r / (r + self.median)
        return w[i] * w[j] * cosine


@register
class AugmentedCosine(_AgainstMedian):
    """The cosine of (x/|x|, |x|/r0) and (y/|y|, |y|/r0), r0 the median length: direction and length as features.

    = (cos + ab) / sqrt((1 + a^2)(1 + b^2)) with a, b the lengths over r0. For very long vectors it tends to 1.
    """

    name = "augmented cosine"
    invariant = frozenset("SR")

    def value(self, cosine, i, j):
        a = self.head.norms / self.median
        return (cosine + a[i] * a[j]) / np.sqrt((1 + a[i] ** 2) * (1 + a[j] ** 2))
