"""From a direction that wins in whitened coordinates to an input z of the problem's set at which the label wins.

A direction r is y = L'r in the given coordinates, and z is a point of the set near y. What moving and rounding cost of
the margin is taken off; a target whose margin does not survive is stalled, not settled.
"""

from __future__ import annotations

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.float_units import UNIT
from gonio.core.parallel import spans
from gonio.search.cutting_round import STALLED
from gonio.search.targets import Targets
from gonio.search.whitening import WhitenedRows, recheck

AT_ONCE = 512  # targets that one thread takes


def store_inputs(space: WhitenedRows, targets: Targets, won: np.ndarray, workers: BlasPool) -> None:
    """The inputs and margins of the targets `won`; those with no margin left at their input become stalled."""
    workers.run(lambda s: _store(space, targets, won[slice(*s)]), spans(len(won), AT_ONCE))


def _store(space: WhitenedRows, targets: Targets, won: np.ndarray) -> None:
    """The same of some of them."""
    y = targets.directions[won] @ space.L
    length = np.linalg.norm(targets.directions[won], axis=1) + 4 * UNIT
    z, margin = space.cone.fit(y, targets.margin[won] / length, space.reach)
    for k in np.flatnonzero(~(margin > 0)):
        margin[k] = recheck(space, targets.labels[won[k]], z[k])
    if targets.pairs:
        z, margin = _with_equal_scores(space, targets.labels[won], z, margin)
    good = (margin > 0) & np.isfinite(z).all(axis=1)
    targets.margin[won] = np.where(good, margin, 0.0)
    targets.status[won[~good]] = STALLED
    for k in np.flatnonzero(good):
        targets.inputs[int(won[k])] = z[k]


def _with_equal_scores(
    space: WhitenedRows, pairs: np.ndarray, z: np.ndarray, margin: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Move each z until the scores of its pair are equal again; what is left of the margins, 0 where that fails.

    z moves along V_a - V_b in the coordinates that are free to move. No lead shrinks by more than twice the longest
    row (from the centre) times the distance moved.
    """
    problem = space.cone.problem
    a, b = pairs.T
    difference = problem.V[a].astype(np.float64) - problem.V[b]
    constant = problem.c[a] - problem.c[b]
    longest = np.ldexp(space.reach, space.cone.scale)
    low, high = problem.low, problem.high
    if problem.shape == "orthant":
        low, high = np.zeros(z.shape[1]), np.full(z.shape[1], np.inf)
    way = difference if low is None or high is None else np.where((z > low) & (z < high), difference, 0.0)
    square = np.einsum("ij,ij->i", way, way)
    for _ in range(2):
        off = np.einsum("ij,ij->i", difference, z) + constant
        move = np.where(square > 0, -off / np.where(square > 0, square, 1), 0.0)[:, None] * way
        z, margin = z + move, margin - 2 * longest * np.linalg.norm(move, axis=1) * (1 + 1e-9)
    off = np.abs(np.einsum("ij,ij->i", difference, z) + constant)
    size = np.einsum("ij,ij->i", np.abs(difference), np.abs(z)) + np.abs(problem.c[a]) + np.abs(problem.c[b])
    valid = off <= 1e-12 * size + 1e-300
    if low is not None and high is not None:
        valid &= ((z >= low) & (z <= high)).all(axis=1)
    if problem.shape == "ball":
        assert problem.radius is not None
        valid &= np.linalg.norm(z, axis=1) < problem.radius
    return z, np.where(valid, margin - 2 * off, 0.0)
