"""The nearest points of a cone, for many directions at once: where to try first, and which rays bind there.

The cone is K = {x : g_k.x <= 0} for unit rays g_k. The point of K nearest to v is  v - sum_k mu_k g_k  with

    mu = argmin over mu >= 0 of  |v - sum_k mu_k g_k|^2,

a projection of which all labels share the matrix of products g_k.g_l: descent with Nesterov's momentum takes one
product of all mu with it a step. A few steps are enough to try a direction; nothing rests on how near it is.

Example: K = {x >= 0} in the plane, v = (2, -1): mu = (0, 1) for the rays (-1, 0), (0, -1), and the point is (2, 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.parallel import spans

if TYPE_CHECKING:
    from jaxtyping import Float

STEPS = 12
FEWEST, MOST = 16, 256  # rays from which it pays, and up to which the products of all with all are cheap
AT_ONCE = 1024


def nearest_in_cone(
    points: Float[np.ndarray, "points rank"], rays: Float[np.ndarray, "rays rank"], workers: BlasPool
) -> tuple[Float[np.ndarray, "points rank"], Float[np.ndarray, "points rays"]]:
    """Nearly the nearest points of the cone, and the weights mu of the rays."""
    G = rays.astype(np.float32)
    Q = G @ G.T
    pace = np.float32(1 / max(float(np.linalg.norm(Q, 2)), 1e-30))
    near, weights = np.empty(points.shape), np.empty((len(points), len(rays)), np.float32)

    def descend(s: tuple[int, int]) -> None:
        part = slice(*s)
        V = points[part].astype(np.float32)
        aim = V @ G.T
        mu = ahead = np.zeros_like(aim)
        t = 1.0
        for _ in range(STEPS):
            new = np.maximum(ahead + pace * (aim - ahead @ Q), np.float32(0))
            t, before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
            ahead = new + np.float32((before - 1) / t) * (new - mu)
            mu = new
        near[part], weights[part] = V - mu @ G, mu

    workers.run(descend, spans(len(points), AT_ONCE))
    return near, weights
