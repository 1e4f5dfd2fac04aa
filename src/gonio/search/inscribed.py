"""Stage 1b: a ball proved to lie inside the hull, so that "inside" needs no residual to be exactly zero.

With rows v_j of weights p_j > 0, sum 1, rays g_k of weights q_k >= 0, m = sum p v, mu = m + sum q g, and
M = (sum p (v - m)(v - m)' + sum q g g')^-1:

    mu + z = sum_j p_j (1 + z.M(v_j - m)) v_j + sum_k q_k (1 + z.M g_k) g_k,

and no weight is negative where |z| <= r0 = 1 / max(|M(v_j - m)|, |M g_k|). So B(mu, r0) lies in conv + cone.

Use: push label i out to v+ = mu + (v_i - mu)/(1 - tau). If some p of conv + cone has |p - v+| <= tau r0 / (1 - tau),
then v_i = (1 - tau) p + tau b with b in the ball. The rows of the ball may include i itself: with its weight w < 1 in
b, dividing by 1 - tau w leaves a combination of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.search.whitening import WhitenedRows

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Ball:
    """A ball inside the hull of the rows plus the cone of the rays."""

    centre: Float[np.ndarray, " rank"]
    radius: float

    def aim(self, points: np.ndarray, tau: float) -> Float[np.ndarray, "some rank"]:
        """The points pushed away from the centre by 1 / (1 - tau)."""
        return self.centre + (points - self.centre) / (1 - tau)

    def tolerance(self, tau: float) -> float:
        """How near a combination must come to an aim."""
        return tau * self.radius / (1 - tau)


def inscribed(space: WhitenedRows, rows: np.ndarray) -> Ball:
    """The ball that some rows span; it is empty (radius 0) where they do not span the space."""
    rank = space.rank
    if not len(rows) or not rank:
        return Ball(np.zeros(rank), 0.0)
    if len(rows) > 24 * rank + 200:
        rows = rows[:: len(rows) // (24 * rank)]
    A = space.V[rows]
    p = 1 / np.maximum(np.einsum("ij,ij->i", A, A), 1e-3 * rank)
    p /= p.sum()
    m = p @ A
    X = A - m
    C = (X * p[:, None]).T @ X
    mu, G = m, np.zeros((0, rank))
    if space.flat:
        G = space.rays
        if space.cone.curved:
            assert space.cone.radius is not None
            d = space.cone.width - 1
            axes = np.column_stack([np.vstack([np.eye(d), -np.eye(d)]), np.full(2 * d, -space.cone.radius)])
            G = np.vstack([G, space.whitened(axes)])
        C += G.T @ G / len(G)
        mu = m + G.mean(axis=0)
    try:
        M = np.linalg.inv(C)
    except np.linalg.LinAlgError:
        return Ball(mu, 0.0)
    # M is an inverse up to `wrong`; the weights above then miss z by as much, and the ball shrinks by it.
    wrong = float(np.linalg.norm(C @ M - np.eye(rank)))
    steepest = float(np.sqrt(max(np.max(np.einsum("ij,ij->i", Y, Y)) for Y in (X @ M, G @ M) if len(Y))))
    radius = (1 - 2 * wrong - 1e-9) / steepest - 4 * space.drift
    return Ball(mu, max(radius, 0.0) if np.isfinite(radius) else 0.0)
