"""Stage 1b: a ball proved to lie inside the hull, so that "inside" needs no residual to be exactly zero.

With rows of shares p_j > 0, sum 1, rays of shares q_k >= 0, mu = sum p v + sum q g, and the columns a and the inverse M
of `positive_means`, the point mu + z is the combination of rows with weights p_j (1 + (z, 0).M a_j), of rays alike.
None is negative where |z| <= r0 = 1 / max |M a|, of M a the part that z meets. So B(mu, r0) lies in conv + cone.

Use: push label i out to v+ = mu + (v_i - mu)/(1 - tau). If some p of conv + cone has |p - v+| <= tau r0 / (1 - tau),
then v_i = (1 - tau) p + tau b with b in the ball. The rows of the ball may include i itself: with its weight w < 1 in
b, dividing by 1 - tau w leaves a combination of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.parallel import spans
from gonio.search.positive_means import COLUMNS, PositiveMean, made_of
from gonio.search.whitening import WhitenedRows

if TYPE_CHECKING:
    from jaxtyping import Float


LEAST, SMALL, WIDE = 1e-3, 2e-3, 256
PER_DIMENSION, AT_LEAST = 10, 2400  # rows that make a ball


def enough(rank: int) -> int:
    """How many rows a ball is made of."""
    return max(PER_DIMENSION * rank, AT_LEAST)


def thinned(rows: np.ndarray, rank: int) -> np.ndarray:
    """Rows for a ball, evenly spaced."""
    return rows[:: -(-len(rows) // enough(rank)) or 1]


@dataclass(frozen=True, eq=False)
class Ball:
    """A ball inside the hull of the rows plus the cone of the rays, and the mean that it is about."""

    centre: Float[np.ndarray, " rank"]
    radius: float
    mean: PositiveMean | None = None

    def aim(self, points: np.ndarray, tau: float) -> Float[np.ndarray, "some rank"]:
        """The points pushed away from the centre by 1 / (1 - tau)."""
        return self.centre + (points - self.centre) / (1 - tau)

    def tolerance(self, tau: float) -> float:
        """How near a combination must come to an aim."""
        return tau * self.radius / (1 - tau)


def inscribed(space: WhitenedRows, rows: np.ndarray, workers: BlasPool) -> Ball:
    """The ball that some rows span; it is empty (radius 0) where they do not span the space."""
    ball = _spanned(space, rows, workers, LEAST)
    # Where rows of next to no length have most of the shares, even ones do better; narrow spaces need no larger ball.
    if 0 < ball.radius < SMALL and space.rank >= WIDE:
        other = _spanned(space, rows, workers, 1.0)
        return other if other.radius > ball.radius else ball
    return ball


def _spanned(space: WhitenedRows, rows: np.ndarray, workers: BlasPool, least: float) -> Ball:
    """The ball of shares 1/|v|^2, where |v|^2 counts as `least` of its mean at least."""
    rank = space.rank
    if not len(rows) or not rank:
        return Ball(np.zeros(rank), 0.0)
    if len(rows) > 2 * enough(rank):
        rows = thinned(rows, rank)
    A = space.V[rows]
    p = 1 / np.maximum(np.einsum("ij,ij->i", A, A), least * rank)  # whitened rows have |v|^2 = rank on average
    p /= p.sum()
    rays = np.zeros((0, rank))
    if space.flat:
        rays = space.rays
        if space.cone.curved:
            assert space.cone.radius is not None
            d = space.cone.width - 1
            axes = np.column_stack([np.vstack([np.eye(d), -np.eye(d)]), np.full(2 * d, -space.cone.radius)])
            rays = np.vstack([rays, space.whitened(axes)])
    mean = made_of(space, rows, p, rays, np.full(len(rays), 1 / max(1, len(rays))), workers)
    if mean is None:
        return Ball(p @ A, 0.0)
    # M is an inverse up to `wrong`; the weights above then miss z by as much, and the ball shrinks by it.
    wrong = float(np.linalg.norm(mean.moments @ mean.inverse - np.eye(rank + 1)))

    def steepest(s: tuple[int, int]) -> float:
        steep = mean.columns[slice(*s)] @ mean.inverse[:, :rank]
        return float(np.einsum("ij,ij->i", steep, steep).max())

    most = np.sqrt(np.max(workers.run(steepest, spans(len(mean.columns), COLUMNS))))
    radius = (1 - 2 * wrong - 1e-9) / float(most) - 4 * space.drift
    good = np.isfinite(radius) and radius > 0
    return Ball(mean.centre, radius if good else 0.0, mean if good else None)
