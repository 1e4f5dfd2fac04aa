"""Measures of the rows alone: cosine, dot product, distances. None survives all that leaves a softmax alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.directions import cosines
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.similarity.measures import Measure, register
from gonio.similarity.nearest import nearest
from gonio.similarity.space import Space

if TYPE_CHECKING:
    from jaxtyping import Float


class Angle(Measure):
    """The cosine of vectors of a space."""

    space: Space

    def _pairs(self, i, j):
        return self.space.cosines(i, j)

    def _values(self, asked, found):
        mine = np.repeat(self.space[asked], found.shape[1], axis=0)  # mapped once, not once a neighbour
        return cosines(mine, self.space[found.ravel()]).reshape(found.shape)

    def _nearest(self, k, which):
        return nearest(self.space.screen(unit=True), k, which=which, barred=self.space.zero())[0]


class Inner(Measure):
    """The inner product of vectors of a space."""

    space: Space

    def _pairs(self, i, j):
        return np.einsum("ij,ij->i", self.space[i], self.space[j])

    def _nearest(self, k, which):
        return nearest(self.space.screen(unit=False), k, which=which)[0]


@register
class Cosine(Angle):
    """cos(i, j) = g_i . g_j / (|g_i| |g_j|).

    For a head trained with cosines it is what was trained. For softmax and sigmoid heads it is convention: a
    translation or an invertible map gives a pair any value (gonio.dial). Zero rows: NaN.
    """

    name = "cosine"
    invariant = frozenset("SRP")

    def __init__(self, head: Head) -> None:
        super().__init__(head)
        self.space = Space(head)


@register
class CentredCosine(Angle):
    """cos(g_i - m, g_j - m), m the mean row: the rows of J W.

    Survives the softmax's translation, not an invertible map. For two labels it is -1; a row equal to the mean: NaN.
    """

    name = "centred cosine"
    invariant = frozenset("TSR")

    def __init__(self, head: Head) -> None:
        super().__init__(head)
        self.space = Space(head, centre=True)


@register
class Dot(Inner):
    """g_i . g_j: survives rotations only."""

    name = "dot"
    invariant = frozenset("R")

    def __init__(self, head: Head) -> None:
        super().__init__(head)
        self.space = Space(head)


@register
class Euclid(Measure):
    """|g_i - g_j|: survives translation and rotation; ratios of distances survive scaling too."""

    name = "Euclid"
    invariant = frozenset("TR")
    nearer = -1
    unit = False

    def __init__(self, head: Head) -> None:
        super().__init__(head)
        # Distances do not see the origin; far from it, float32 would lose them.
        self.space = Space(head, unit=self.unit, centre=not self.unit)

    def _pairs(self, i, j):
        out = np.linalg.norm(self.space[i] - self.space[j], axis=1)
        if self.unit:
            out[(self.head.norms[i] == 0) | (self.head.norms[j] == 0)] = np.nan
        return out

    def _nearest(self, k, which):
        V = self.space.screen(unit=False)
        # -|q - c|^2 = 2 q.c - |c|^2 - |q|^2, the last the same for all c
        return nearest(V, k, which=which, column=-0.5 * np.einsum("ij,ij->i", V, V), barred=self._barred())[0]


@register
class NormalisedEuclid(Euclid):
    """| g_i/|g_i| - g_j/|g_j| | = sqrt(2 - 2 cos): the cosine in other words. Zero rows: NaN."""

    name = "normalised Euclid"
    invariant = frozenset("SRP")
    unit = True

    def _barred(self):
        return self.head.norms == 0


@register
class DifferenceCosine(Measure):
    """cos(g_i - g_j, g_k - g_l), for two pairs of labels (the rows of B W): whether two differences point alike.

    `pairs(a, b)` takes two arrays of shape (count, 2). Survives translation; all of these together fix every ranking.
    Two equal labels: NaN.
    """

    name = "cosine of differences"
    invariant = frozenset("TSR")

    def pairs(self, a: Any, b: Any) -> Float[np.ndarray, " pairs"]:
        first, second = (self._two(x) for x in (a, b))
        if len(first) != len(second):
            raise GonioError(f"{self.name}: {len(first)} and {len(second)} differences were given; pairs need as many.")
        rows = self.head.rows
        u, v = (rows[p[:, 0]].astype(np.float64) - rows[p[:, 1]].astype(np.float64) for p in (first, second))
        return cosines(u, v)

    def __call__(self, a: Any, b: Any) -> float:
        return float(self.pairs([a], [b])[0])

    def _two(self, x: Any) -> np.ndarray:
        several = list(x)
        if not several or any(isinstance(p, (str, int, np.integer)) or len(p) != 2 for p in several):
            raise GonioError(f"{self.name}: a difference is of two labels; pass a list of pairs such as [(0, 1)].")
        return np.array([[self.head.index(y if isinstance(y, str) else int(y)) for y in p] for p in several])

    def nearest(self, k=10, labels=None):
        raise GonioError(
            f"{self.name}: it compares differences of labels, and a label alone has no neighbours; ask pairs, or "
            f"use the centred cosine."
        )
