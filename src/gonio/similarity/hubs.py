"""Cosines and distances corrected for hubs: what is near to everything counts less.

    CSLS             2 cos(i, j) - r_i - r_j,                r_i the mean cosine of i with its k nearest
    local scaling    1 - exp(-d^2 / (s_i s_j)),              s_i the distance of i to its k-th nearest
    NICDM            d / sqrt(m_i m_j),                      m_i the mean distance of i to its k nearest
    mutual proximity 1 - SF_i(d) SF_j(d),                    SF_i of a normal fitted to all distances of i

A label is never its own neighbour here: counting it would make every s, m and r too near.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.similarity.measures import Measure, register
from gonio.similarity.nearest import nearest
from gonio.similarity.of_cosine import OfCosine, moments_of_cosines
from gonio.similarity.rows import Cosine, Euclid

if TYPE_CHECKING:
    from jaxtyping import Float

Distance = Literal["cosine", "euclid"]


def _around(measure: Measure, k: int, who: str) -> Float[np.ndarray, "labels near"]:
    """The values of each label's k nearest."""
    n = measure.head.shape[0]
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise GonioError(f"{who}: k is {k}; the number of neighbours to look at, from 1 up, is needed.")
    if n < 2:
        raise GonioError(f"{who}: the head has one label, which has no neighbours; at least two are needed.")
    if k >= n:
        raise GonioError(f"{who}: k is {k} and the head has {n} labels; k from 1 to {n - 1} is needed.")
    return measure.nearest(int(k)).values


def _mean_defined(near: np.ndarray) -> Float[np.ndarray, " labels"]:
    """The mean over the neighbours that are some (zero rows are none); NaN where a label has none."""
    count = np.isfinite(near).sum(axis=1)
    return np.where(count > 0, np.nan_to_num(near).sum(axis=1) / np.maximum(count, 1), np.nan)


@register
class CSLS(OfCosine):
    """CSLS(i, j) = 2 cos(i, j) - r_i - r_j, r the mean cosine to the k nearest (Conneau et al. 2018).

    Zero rows: NaN.
    """

    name = "CSLS"
    invariant = frozenset("SRP")

    def __init__(self, head: Head, k: int | None = None) -> None:
        super().__init__(head)
        k = min(10, max(1, head.shape[0] - 1)) if k is None else k
        self.around = _mean_defined(_around(Cosine(head), k, self.name))

    def value(self, cosine, i, j):
        return 2 * cosine - self.around[i] - self.around[j]

    def _nearest(self, k, which):
        V = self.space.screen(unit=True)
        return nearest(V, k, which=which, column=-0.5 * np.nan_to_num(self.around), barred=self._barred())[0]


def csls(queries: Any, keys: Any, k: int = 10) -> Float[np.ndarray, "queries keys"]:
    """CSLS of two sets of vectors: 2 cos(q, c) - r(q) - r(c), each r over the k nearest of the other side.

    Gives the whole table, so for sets of moderate size.
    """
    Q, C = (
        checks.wide(checks.matrix(x, "csls", n, axes=(n, "dim"))) for x, n in ((queries, "queries"), (keys, "keys"))
    )
    if Q.shape[1] != C.shape[1]:
        raise GonioError(f"csls: queries have width {Q.shape[1]} and keys {C.shape[1]}; one width is needed.")
    if not 1 <= k <= min(len(Q), len(C)):
        raise GonioError(f"csls: k is {k}; from 1 to {min(len(Q), len(C))} are there on both sides.")
    U, V = (x.astype(np.float64) / _or_one(np.linalg.norm(x.astype(np.float64), axis=1))[:, None] for x in (Q, C))
    cosines = U @ V.T
    of_query = np.sort(cosines, axis=1)[:, -k:].mean(axis=1)
    of_key = np.sort(cosines, axis=0)[-k:].mean(axis=0)
    return 2 * cosines - of_query[:, None] - of_key[None, :]


def _or_one(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 1)


def _apart(cosine: np.ndarray) -> np.ndarray:
    """1 - cos; what rounding leaves of it for parallel rows is 0."""
    d = 1 - cosine
    return np.where(d < 1e-14, 0.0, d)


class _Scaled(Measure):
    """Distances over what is usual around each of the two labels."""

    nearer = -1

    def __init__(self, head: Head, k: int | None = None, distance: Distance = "cosine") -> None:
        super().__init__(head)
        checks.one_of(distance, get_args(Distance), self.name, "distance")
        self.distance = distance
        self.base: Cosine | Euclid = Cosine(head) if distance == "cosine" else Euclid(head)
        if distance == "euclid":
            self.invariant = frozenset("TSR")  # type: ignore[misc]
        k = min(10, max(1, head.shape[0] - 1)) if k is None else k
        near = _around(self.base, k, self.name)
        self.around = self._usual(_apart(near) if distance == "cosine" else near)

    def _usual(self, near: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _far(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        values = self.base._pairs(i, j)
        return _apart(values) if self.distance == "cosine" else values

    def _nearest(self, k, which):
        # For one i the order is that of d^2 / s_j (Euclid) or d / sqrt(s_j) (cosine): linear in (q, 1, |q|^2).
        space = self.base.space
        V = space.screen(unit=self.distance == "cosine")
        around = np.nan_to_num(self.around, nan=1.0)
        largest = float(around.max())
        # Only ratios matter for the order; duplicates have nothing around them, so that any distance is far.
        around = np.maximum(around / largest, 1e-9) if largest > 0 else np.ones(len(around))
        if self.distance == "cosine":
            weight = 1 / np.sqrt(around)
            Q = np.column_stack([V, np.ones(len(V), np.float32)])
            C = np.column_stack([V, -np.ones(len(V), np.float32)]) * weight[:, None]
        else:
            weight = 1 / around
            squares = np.einsum("ij,ij->i", V, V)
            Q = np.column_stack([2 * V, np.ones(len(V), np.float32), squares])
            C = np.column_stack([V, -squares, -np.ones(len(V), np.float32)]) * weight[:, None]
        asked = np.arange(len(V)) if which is None else which
        return nearest(C, k, queries=Q[asked], which=asked, barred=self._barred())[0]

    def _barred(self):
        return self.head.norms == 0 if self.distance == "cosine" else None


@register
class LocalScaling(_Scaled):
    """1 - exp(-d^2 / (s_i s_j)), s_i the distance of i to its k-th nearest (Zelnik-Manor and Perona 2004).

    `distance` "cosine" is 1 - cos, "euclid" |g_i - g_j|. Duplicates (d = 0) have 0; a label with k duplicates has s = 0
    and every other label at 1.
    """

    name = "local scaling"
    invariant = frozenset("SRP")

    def _usual(self, near):
        return np.where(np.isfinite(near).any(axis=1), np.nanmax(near, axis=1, initial=0), np.nan)

    def _pairs(self, i, j):
        d, s = self._far(i, j), self.around[i] * self.around[j]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(d == 0, 0.0, np.where(np.isnan(d), np.nan, -np.expm1(-(d * d) / s)))


@register
class NICDM(_Scaled):
    """d / sqrt(m_i m_j), m_i the mean distance of i to its k nearest (Jegou et al. 2007). Duplicates (d = 0) have 0."""

    name = "NICDM"
    invariant = frozenset("SRP")

    def _usual(self, near):
        return _mean_defined(near)

    def _pairs(self, i, j):
        d, s = self._far(i, j), np.sqrt(self.around[i] * self.around[j])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(d == 0, 0.0, np.where(np.isnan(d), np.nan, d / s))


@register
class MutualProximity(OfCosine):
    """1 - SF_i(d) SF_j(d), d = 1 - cos, SF_i the chance that a normal fitted to i's distances exceeds d.

    (Schnitzer et al. 2012.)

    Mean and variance of each label's distances to all others come in closed form from sum u and U'U.
    """

    name = "mutual proximity"
    invariant = frozenset("SRP")
    nearer = -1

    def __init__(self, head: Head) -> None:
        super().__init__(head)
        self.mean, self.spread = moments_of_cosines(head)

    def value(self, cosine, i, j):
        from scipy.special import ndtr

        # SF(d) of a normal with mean 1 - m and spread s, at d = 1 - cos, is Phi((cos - m) / s).
        with np.errstate(divide="ignore", invalid="ignore"):
            a = (cosine - self.mean[i]) / self.spread[i]
            b = (cosine - self.mean[j]) / self.spread[j]
        both = ndtr(np.where(np.isnan(a), 0, a)) * ndtr(np.where(np.isnan(b), 0, b))  # all distances equal: a half
        return np.where(np.isnan(cosine), np.nan, 1 - both)
