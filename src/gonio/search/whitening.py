"""Whitening (stage 0): coordinates in which the rows are isotropic. Which labels can win does not depend on them; how
fast the search sees it does.

v_j = L (a_j - centre),  L = Cov^-1/2 on the directions in which rows (or rays) differ.

A direction r there is y = L'r here, and for ANY float L:  (a_i - a_j).y = r.(v_i - v_j)  up to |r| times `drift`
for each of the two rows, where drift >= |v_j as computed - L (a_j - centre)|.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.directions import unit
from gonio.core.float_units import UNIT, UNIT32
from gonio.core.parallel import spans
from gonio.proofs.mapped_rows import BLOCK, MappedRows, by_norm, map_rows, multiplied
from gonio.proofs.own_direction import OwnDirections
from gonio.search.cone import Cone

if TYPE_CHECKING:
    from jaxtyping import Float, Int

LARGE = 256  # from this width on the time of an inverse counts
FLOOR = 1e-13  # eigenvalues of a covariance below this part of the largest are rounding
ROUND = 1e-6  # the same where K has a shape: stretching directions with less than this would make K too thin


@dataclass(frozen=True, eq=False)
class WhitenedRows(MappedRows):
    """The whitened rows of a cone and its rays."""

    cone: Cone
    rays: Float[np.ndarray, "rays rank"]
    flat: int  # how many coordinates only the rays use

    @property
    def shaped(self) -> bool:
        """Whether directions are bound at all."""
        return len(self.rays) > 0 or self.cone.curved

    @cached_property
    def back(self) -> Float[np.ndarray, "homogeneous rank"]:
        """The pseudoinverse that takes y = L'r to r, as a matrix that acts on rows."""
        if self.rank == self.L.shape[1] >= LARGE:
            try:
                return np.linalg.inv(self.L)  # much sooner, and as good where L is not nearly singular
            except np.linalg.LinAlgError:
                pass
        return np.linalg.pinv(self.L)

    @cached_property
    def place(self) -> Int[np.ndarray, " labels"]:
        """Where each label stands in `order`."""
        out = np.empty(len(self.order), np.int64)
        out[self.order] = np.arange(len(out))
        return out

    @cached_property
    def falling(self) -> Float[np.ndarray, " labels"]:
        """The norms in `order`, negated: they rise, as searchsorted wants them."""
        return -self.norms[self.order]

    @property
    def kappa(self) -> float:
        """The entry that makes points out of rays: of the length of a typical row."""
        return max(1.0, np.sqrt(self.rank))

    @property
    def coarse(self) -> float:
        """What a float32 product of a unit vector and a row can be wrong by, both rounded to float32 first."""
        return (self.rank + 20) * UNIT32 * 1.05 * self.largest

    @property
    def fine(self) -> float:
        """What a float64 difference r.v_i - r.v_j, |r| = 1, can be wrong by as a difference of scores at y = L'r.

        Twice the dot product's own rounding; the drift of two rows; the rounding of y itself, which is no more.
        """
        return 2 * (self.rank + 8) * UNIT * self.largest + 4.2 * self.drift

    def light(self) -> WhitenedRows:
        """The coordinates without the rows."""
        return replace(self, V=self.V[:0].copy(), V32=self.V32[:0].copy())

    def vectors(self, which: np.ndarray) -> Float[np.ndarray, "some rank"]:
        """The v_j of some rows, computed anew (within `drift` of the truth, as the kept ones are)."""
        return (self.cone.rows(which) - self.centre) @ self.L.T

    def ray_drift(self, rays: np.ndarray) -> float:
        """What rounding can have done to a ray in these coordinates, at unit length."""
        if not len(rays):
            return 0.0
        off = np.linalg.norm(np.abs(rays) @ np.abs(self.L).T, axis=1)
        return (self.cone.width + 4) * UNIT * 1.01 * float((off / np.linalg.norm(rays @ self.L.T, axis=1)).max())

    def whitened(self, rays: np.ndarray) -> Float[np.ndarray, "rays rank"]:
        """Rays in these coordinates, at unit length."""
        return unit(rays @ self.L.T)


def prepare(cone: Cone, workers: BlasPool, *, own: OwnDirections | None = None, keep: bool = True) -> WhitenedRows:
    """The space of a cone; its rows come from `own` where the lemma of own directions is to be asked about them.

    Without `keep` the float64 rows are dropped once they have been rounded to float32.
    """
    n = len(cone.problem.V)
    centre, L, thin = _isotropic(cone, workers)
    flat = 0
    if thin:
        V, drift, _ = multiplied(cone.rows, n, centre, L, workers, 0.0)
        L, flat = _whitened_again(cone, centre, L, V, drift)
    if flat and cone.problem.shape == "space":
        return _without_idle(cone, centre, L, workers, keep)
    mapped = own.mapped(centre, L, workers, keep=keep) if own else map_rows(cone.rows, n, centre, L, workers, keep=keep)
    rays = np.zeros((0, len(L)))
    if len(cone.rays):
        rays = unit(cone.rays @ L.T)
    return WhitenedRows(**vars(mapped), cone=cone, rays=rays, flat=flat)


def _isotropic(cone: Cone, workers: BlasPool) -> tuple[np.ndarray, np.ndarray, bool]:
    """The mean of the rows, L = Cov^-1/2, and whether some direction has so little that L must be made again."""
    n = len(cone.problem.V)
    parts = list(spans(n, BLOCK))
    centre = np.sum(workers.run(lambda s: cone.rows(slice(*s)).sum(axis=0), parts), axis=0) / n

    def moments(s: tuple[int, int]) -> np.ndarray:
        A = cone.rows(slice(*s)) - centre
        return A.T @ A

    C = np.zeros((cone.width, cone.width))
    for piece in spans(len(parts), workers.size):  # a few d x d products at a time, not all of them
        for part in workers.run(moments, parts[slice(*piece)]):  # one by one: the sum is the same for any workers
            C += part
    values, vectors = np.linalg.eigh(C / n)
    top = max(float(values[-1]), np.finfo(float).tiny)
    L = (vectors / np.sqrt(np.maximum(values, (ROUND if cone.shaped else FLOOR) * top))).T[::-1].copy()
    return centre, L, bool(values[0] < 1e-9 * top)


def _without_idle(cone: Cone, centre: np.ndarray, L: np.ndarray, workers: BlasPool, keep: bool) -> WhitenedRows:
    """The space without its last coordinate, along which some y with t > 0 moves all scores alike.

    Only t > 0 is asked for, and adding that y to any direction gives it: the rays bind nothing, and are dropped.
    """
    V, drift, reach = multiplied(cone.rows, len(cone.problem.V), centre, L, workers, 0.0)
    idle = L[-1] if L[-1, -1] > 0 else -L[-1]
    cone = replace(cone, rays=cone.rays[:0], idle=idle, noise=float(np.abs(V[:, -1]).max()) + drift)
    L, V = L[:-1], np.ascontiguousarray(V[:, :-1])
    norms, V32, order = by_norm(V, workers)
    rows = V if keep else V[:0]
    return WhitenedRows(centre, L, rows, V32, order, norms, drift, reach, cone, np.zeros((0, len(L))), 0)


def _whitened_again(
    cone: Cone, centre: np.ndarray, L: np.ndarray, V: np.ndarray, drift: float
) -> tuple[np.ndarray, int]:
    """(L', k): L whitened a second time, where some directions carry next to nothing and are seen clearly only now.

    L' = T'L  with T = (eigenvectors of Cov(v)) / sqrt(eigenvalues), on the directions in which some row exceeds its
    own rounding. Of the other directions those that a ray uses are kept: they come last, and k is their number.
    """
    turn, complete = _above_rounding(cone, V, drift)
    span = _row_span(cone, centre, V, turn)
    again = (turn.T @ L) @ span @ span.T
    rays = cone.rays  # those of a ball are made from y = L'r and so lie in the rows' directions (and t) by themselves
    if not len(rays) or complete:
        return again, 0
    # What the rays do in the directions that are left, in the given coordinates: orthonormal to all the rows' ones.
    rest = rays - (rays @ span) @ span.T
    _, size, more = np.linalg.svd(rest, full_matrices=False)
    more = more[size > 1e-9]
    return np.vstack([again, more]), len(more)


def _above_rounding(cone: Cone, V: np.ndarray, drift: float) -> tuple[np.ndarray, bool]:
    """The whitening T of rows that are already whitened once (centred in place), and whether it has all directions."""
    V -= V.mean(axis=0)  # the centre is rounded too, and here that shows
    values, vectors = np.linalg.eigh(V.T @ V / len(V))
    order = np.argsort(-values)
    values, vectors = values[order], vectors[:, order]
    # The largest coordinate in each direction; for many rows, eight deviations stand for it.
    size = np.abs(V @ vectors).max(axis=0) if len(V) * len(vectors) < 1e8 else np.sqrt(np.maximum(values, 0)) * 8
    live = size > 8 * drift + 1e-14 * size.max()
    turn = vectors[:, live] / np.sqrt(np.maximum(values[live], 1.0 if cone.shaped else 1e-300))
    return turn, bool(live.all())


def _row_span(cone: Cone, centre: np.ndarray, V: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """An orthonormal basis, in the given coordinates, of the directions of the rows that T keeps.

    L is huge where the rows have nothing, and a trace of that in T would bend the rays: L' is projected onto this.
    """
    moments = np.zeros((cone.width, turn.shape[1]))
    for s in spans(len(V), BLOCK):
        moments += (cone.rows(slice(*s)) - centre).T @ (V[slice(*s)] @ turn)
    return np.linalg.qr(moments / np.maximum(np.linalg.norm(moments, axis=0), 1e-300))[0]


def recheck(space: WhitenedRows, own: np.ndarray, z: np.ndarray) -> float:
    """A lower bound of min_j (score_i - score_j) at z in the given numbers, float64 with its rounding bound."""
    problem = space.cone.problem
    d = problem.V.shape[1]
    with np.errstate(all="ignore"):
        low, high = np.inf, -np.inf
        for s in spans(len(problem.V), 4096):
            V = problem.V[slice(*s)].astype(np.float64)
            score = V @ z + problem.c[slice(*s)]
            wrong = (d + 3) * UNIT * 1.01 * (np.abs(V) @ np.abs(z) + np.abs(problem.c[slice(*s)])) + 1e-300
            up, down = score + wrong, score - wrong
            for i in own:
                if s[0] <= i < s[1]:
                    low = min(low, down[i - s[0]])
                    up[i - s[0]] = -np.inf
            high = max(high, up.max())
        left = low - high
    return float(left - 4 * UNIT * abs(left)) if np.isfinite(left) else 0.0
