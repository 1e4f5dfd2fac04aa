"""A problem over a simple set of z, written as a cone: label i wins iff (a_i - a_j).y > 0 for all j, for some y in K.

    inputs                     y        K                          the rays g with g.y <= 0 on K
    space, c all equal         z        everything                 none
    orthant, c all equal       z        z >= 0                     -e_k
    box about 0, c all equal   z        signs of the box at 0      -e_k where low = 0, e_k where high = 0
    ball, c all equal          z        everything                 none
    space, orthant             (z, t)   t > 0 (and z >= 0)         -e_t (and -e_k)
    box                        (z, t)   low t <= z <= high t       e_k - high_k e_t, low_k e_t - e_k, -e_t
    ball                       (z, t)   |z| <= radius t            u - radius e_t for the unit vectors u

a_j is the row V_j, with c_j appended where y has a t. Label i never wins iff a_i is a convex combination of the other
a_j plus a non-negative combination of rays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.directions import unit
from gonio.core.float_units import UNIT
from gonio.core.inputs import Problem

if TYPE_CHECKING:
    from jaxtyping import Float, Int

NEARER = 4  # times that the sides are found anew at which a point is clipped
FAR = 4.0  # times the largest entry, the largest |z_k| and the width: scores without bias differ by half of it at most


@dataclass(frozen=True, eq=False)
class Cone:
    """The rows a_j and the rays of K, V scaled by 2^-scale and c by 2^-lift (exactly) to numbers of size one."""

    problem: Problem
    affine: bool
    scale: int
    lift: int
    rays: Float[np.ndarray, "rays homogeneous"]
    low: np.ndarray | None
    high: np.ndarray | None
    radius: float | None
    live: np.ndarray  # the coordinates of z in which rows differ; the others move all scores alike
    idle: np.ndarray | None = None  # a y that moves all scores alike (by rounding: `noise`), with t > 0
    noise: float = 0.0

    @property
    def width(self) -> int:
        """The dimension of y."""
        return self.problem.V.shape[1] + self.affine

    @property
    def shaped(self) -> bool:
        """Whether more than t > 0 is asked of y, so that who wins depends on lengths and not on directions only."""
        return self.curved or len(self.rays) > self.affine

    @property
    def curved(self) -> bool:
        """Whether K needs rays beyond the listed ones, made where they are violated."""
        return self.radius is not None and self.affine

    @property
    def longest(self) -> float:
        """Of a ball, where there is no t: the length to which y is scaled."""
        assert self.problem.radius is not None
        return float(np.ldexp(self.problem.radius, self.scale)) * (1 - 1e-9)

    def rows(self, which: slice | np.ndarray) -> Float[np.ndarray, "some homogeneous"]:
        """The scaled a_j in float64."""
        V = np.ldexp(self.problem.V[which].astype(np.float64), -self.scale)
        if not self.affine:
            return V
        return np.column_stack([V, np.ldexp(self.problem.c[which], -self.lift)])

    @property
    def spread(self) -> float:
        """The largest difference of two scaled c."""
        return float(np.ldexp(self.problem.c.max() - self.problem.c.min(), -self.lift)) if self.affine else 0.0

    def into(self, Y: Float[np.ndarray, "some homogeneous"]) -> Float[np.ndarray, "some homogeneous"]:
        """Points of K near the rows of Y: where a search may start."""
        z, t = self._split(Y)
        if self.affine:
            with np.errstate(all="ignore"):
                if self.radius is not None:
                    least = np.linalg.norm(z, axis=1) / self.radius
                elif self.low is not None and self.high is not None:
                    least = self._nearest_t(z, t)
                else:
                    least = np.zeros(len(z))
            t = np.maximum(np.maximum(t, least), 1e-9 * np.linalg.norm(z, axis=1))
            t = np.where(t > 0, t, 1.0)
            return np.column_stack([self._clip(z / t[:, None]) * t[:, None], t])
        z = self._clip(z)
        if self.low is not None and self.high is not None:  # nothing left: begin in the middle of the cone
            middle = np.where(self.high > 0, 1.0, 0.0) - np.where(self.low < 0, 1.0, 0.0)
            z = np.where((z[:, self.live] != 0).any(axis=1, keepdims=True), z, middle)
        return z

    def _nearest_t(self, z: np.ndarray, t: np.ndarray) -> np.ndarray:
        """The t of the nearest points of the cone over a box: where the sum of squares left by clipping is least.

        With the sides fixed at which z is clipped, t is a ratio of sums; they are found anew a few times.
        """
        assert self.low is not None
        assert self.high is not None
        low, high = (np.where(np.isfinite(v), v, 0.0) for v in (self.low, self.high))
        for _ in range(NEARER):
            above, below = (z > self.high * t[:, None]) & np.isfinite(self.high), (z < self.low * t[:, None])
            below &= np.isfinite(self.low)
            total = t + (z * np.where(above, high, np.where(below, low, 0.0))).sum(axis=1)
            t = np.maximum(total / (1 + (above @ (high * high)) + (below @ (low * low))), 0)
        return t

    def curved_rays(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which rows of Y = (z, t) have |z| > radius t, and the ray that says so for each of those."""
        assert self.radius is not None
        z, t = self._split(Y)
        length = np.linalg.norm(z, axis=1)
        out = np.flatnonzero(length > self.radius * np.maximum(t, 0) + 1e-13 * length)
        rays = np.column_stack([z[out] / length[out, None], np.full(len(out), -self.radius)])
        return out, rays

    def fit(self, Y: np.ndarray, margin: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
        """Points z of the problem's set near the rows of Y, and the margins that are left of those proven at Y.

        Where (a_i - a_j).y >= margin for all j, the score at z of i exceeds every other by at least what is given
        back: with t' the t that is used, (margin - 2 reach |z t' - y_z| - spread |t' - y_t| - rounding) / t', where
        reach >= |a_j - centre| for all j. Without t, z is y scaled into the set.
        """
        if self.idle is not None:  # the bias is a linear function of the row: go up in t for free
            more = np.maximum(0, 0.1 * np.linalg.norm(Y, axis=1) - Y[:, -1]) / self.idle[-1]
            Y, margin = Y + more[:, None] * self.idle, margin - 2 * more * self.noise
        z, t = self._split(Y)
        size = np.linalg.norm(z, axis=1)
        with np.errstate(all="ignore"):
            if self.affine:
                spread = self.spread
                # A win at t <= 0 is a win at a small t > 0 too: spend a quarter of the margin on it.
                safe = margin / (4 * spread) if spread > 0 else 1e-9 * size
                used = np.maximum(t, safe)
                used = np.where(used > 0, used, 1.0)
                point = self._clip(z / used[:, None], strictly=True)
                moved = np.linalg.norm((point * used[:, None] - z)[:, self.live], axis=1)
                left = margin - 2 * reach * (moved + 8 * UNIT * size) - (1 + 8 * UNIT) * spread * np.abs(used - t)
                left = np.ldexp((left - 8 * UNIT * np.abs(left)) / used, self.lift)
                return np.ldexp(point, self.lift - self.scale), left
            point = self._clip(z) if len(self.rays) else z
            moved = np.linalg.norm((point - z)[:, self.live], axis=1)
            left = margin - 2 * reach * (moved + 8 * UNIT * size)
            factor = self._room(point)
            return np.ldexp(point * factor[:, None], -self.scale), (left - 8 * UNIT * np.abs(left)) * factor

    def _split(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (Y[:, :-1], Y[:, -1]) if self.affine else (Y, np.ones(len(Y)))

    def _clip(self, z: np.ndarray, strictly: bool = False) -> np.ndarray:
        """The nearest points of the set at t = 1, or of the cone where there is no t."""
        if self.low is not None and self.high is not None:
            return np.clip(z, self.low, self.high)
        if self.radius is not None and self.affine:
            most = self.radius * (1 - 1e-12) if strictly else self.radius
            length = np.linalg.norm(z, axis=1, keepdims=True)
            return np.where(length > most, z * (most / np.maximum(length, 1e-300)), z)
        return z

    def _room(self, z: np.ndarray) -> np.ndarray:
        """By how much each row may be scaled (a power of two where the set is a cone) to stay in the set."""
        p = self.problem
        if p.shape == "ball":
            return self.longest / np.maximum(np.linalg.norm(z, axis=1), 1e-300)
        if p.shape == "box":
            assert p.low is not None
            assert p.high is not None
            low, high = np.ldexp(p.low, self.scale), np.ldexp(p.high, self.scale)
            ratio = np.where(z > 0, high / z, np.where(z < 0, low / z, np.inf)).min(axis=1)
            return np.where(np.isfinite(ratio), ratio * (1 - 1e-9), 1.0)
        return np.ones(len(z))


def pose(problem: Problem) -> Cone:
    """The cone of a problem over space, orthant, box or ball."""
    problem = without_far_biases(problem)
    V, c = problem.V, problem.c
    d = V.shape[1]
    scale, plain = _exponent(max(V.max(), -V.min())), bool((c == c[0]).all())
    low, high, radius = problem.low, problem.high, None
    if problem.shape == "orthant":
        low, high = np.zeros(d), np.full(d, np.inf)
    around = low is not None and high is not None and bool(((low <= 0) & (high >= 0)).all())
    affine = not plain or (problem.shape == "box" and not around)
    # t in units of the set where it is bounded, otherwise of the biases.
    size = _size_of_bounds(problem)
    lift = _exponent(np.abs(c - c.mean()).max()) if size is None else scale + size
    live = V.max(axis=0) != V.min(axis=0)
    up = np.zeros((0, d))
    if not affine:
        if low is not None and high is not None:
            low, high = np.where(low < 0, -np.inf, 0.0), np.where(high > 0, np.inf, 0.0)
            up = np.vstack([-np.eye(d)[live & (low == 0)], np.eye(d)[live & (high == 0)]])
            if not len(up):
                low = high = None
        return Cone(problem, False, scale, 0, up, low, high, None, live)
    with np.errstate(over="ignore"):
        if problem.shape == "ball":
            assert problem.radius is not None
            radius = float(np.ldexp(problem.radius, scale - lift))
        if low is not None and high is not None:
            low, high = np.ldexp(low, scale - lift), np.ldexp(high, scale - lift)
            above, below = np.flatnonzero(live & np.isfinite(high)), np.flatnonzero(live & np.isfinite(low))
            up = np.vstack(
                [
                    np.column_stack([np.eye(d)[above], -high[above]]),
                    np.column_stack([-np.eye(d)[below], low[below]]),
                ]
            )
        else:
            up = np.zeros((0, d + 1))
    rays = np.vstack([up, np.append(np.zeros(d), -1.0)])
    rays /= np.abs(rays).max(axis=1, keepdims=True)
    return Cone(problem, True, scale, lift, unit(rays), low, high, radius, live)


@dataclass(frozen=True, eq=False)
class FarBelow:
    """Over a bounded set: labels that are below the one of the largest c at every input, whichever their rows."""

    labels: Int[np.ndarray, " far"]
    top: int
    least: float  # how much less than the largest their c is, at least

    @classmethod
    def of(cls, problem: Problem) -> FarBelow:
        """Those of a problem; none where its set is not bounded."""
        V, c = problem.V, problem.c
        far, least, largest = np.zeros(0, np.int64), np.inf, problem.radius if problem.shape == "ball" else None
        if problem.shape == "box" and problem.low is not None and problem.high is not None:
            largest = float(np.maximum(np.abs(problem.low), np.abs(problem.high)).max())
        if largest:
            with np.errstate(over="ignore"):
                least = FAR * V.shape[1] * float(max(V.max(), -V.min())) * largest
                if 0 < least < np.inf:
                    far = np.flatnonzero(c - c.max() < -least)
        return cls(far, int(c.argmax()), least)

    def replaced(self, rivals: np.ndarray, weights: np.ndarray, own: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """A combination with the top in place of those far below it, which only raises its score.

        Where the top is one of its own labels, the far ones are left out: they are below it anyway.
        """
        away = np.isin(rivals, self.labels)
        if not away.any():
            return rivals, weights
        moved = float(weights[away].sum())
        rivals, weights = rivals[~away], weights[~away]
        if self.top not in own:
            if self.top not in rivals:
                rivals, weights = np.append(rivals, self.top), np.append(weights, 0.0)
            weights = np.where(rivals == self.top, weights + moved, weights)
        return rivals, weights / (weights.sum() or 1.0)


def without_far_biases(problem: Problem) -> Problem:
    """Over a bounded set, c of labels far below the top raised to where they still never reach it.

    Beside a mask of -1e9 the digits of all else would fade, beside -1e156 its squares. The top stays what it is at
    every z.
    """
    far = FarBelow.of(problem)
    return replace(problem, c=np.maximum(problem.c - problem.c[far.top], -far.least)) if len(far.labels) else problem


def _size_of_bounds(problem: Problem) -> int | None:
    """The exponent of a typical finite bound of the set, in one coordinate."""
    if problem.radius is not None:
        return _exponent(problem.radius / np.sqrt(problem.V.shape[1]))
    if problem.low is None or problem.high is None:
        return None
    both = np.abs(np.concatenate([problem.low, problem.high]))
    both = both[np.isfinite(both) & (both > 0)]
    return _exponent(float(np.median(both))) if len(both) else None


def _exponent(largest: float) -> int:
    """e with largest in [2^(e-1), 2^e); 0 for zero."""
    return math.frexp(float(largest))[1] if largest > 0 else 0
