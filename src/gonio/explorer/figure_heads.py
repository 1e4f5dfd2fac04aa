"""The heads of the plane in the papers' figures."""

from __future__ import annotations

import math

FIGURE_1 = [[1, 0.5], [0.5, 1], [-1, 0.4], [-0.8, -0.8], [0.9, -1.2]]
S = math.sqrt(1 - 0.95**2)
FIGURE_2_LEFT = [[1.4, -1], [1.4, 1], [-0.9, 0.3], [-1, 0], [-0.9, -0.3]]
FIGURE_2_RIGHT = [[0.95, S], [-0.95, S], [-1, 0], [-0.95, -S], [0.95, -S], [1, 0]]
FIGURE_3 = [[5 * math.cos(math.radians(t)), 5 * math.sin(math.radians(t))] for t in (0, 45, 90, 135, 180, 225, 315)]
FIGURE_4_A = [[-0.8, 1], [0.8, 1], [0.55, -0.5], [-1, -1], [1, -1]]
FIGURE_4_B = [[-1, 1], [1, 1], [0.35, -0.5], [-0.8, -1], [0.8, -1]]


def moved(W: list[list[float]], v: tuple[float, float]) -> list[list[float]]:
    """The rows with one vector added to all."""
    return [[x + v[0], y + v[1]] for x, y in W]
