"""After a norm: how near the surface a label can win.

An embedding after an RMSNorm or LayerNorm is  gain * z (+ shift)  with |z| below sqrt(d); the norm's epsilon keeps it
inside, and real states have |z| close to sqrt(d). A label that wins only where |z| is small wins where no state comes.

    reaches the surface   it wins at z0 and, biases and shift removed, in a direction u: then it wins at z0 + t u for
                          every t >= 0, out to |z| = sqrt(d)
    found                 the largest |z| / sqrt(d) at which it was seen to win, its witness pushed outward
    at most               with v_i at the centre of a ball of radius rho inside the hull of the others, a win at z needs
                          rho |z| < c_i - min_j c_j
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gonio.ask.candidates import Candidates
from gonio.core.head import Head
from gonio.core.inputs import Inputs, Problem
from gonio.core.status import WINS
from gonio.search.propose import propose

if TYPE_CHECKING:
    from jaxtyping import Float, Int

NEAR = 1 - 1e-6  # of sqrt(d): from here on a point counts as on the surface
SLIDES = 40  # turns of a witness on its way outward
WAYS = 12  # random directions in which a witness is pushed


@dataclass(frozen=True, eq=False)
class Surface:
    """How far out labels can win, as shares of sqrt(d).

    labels    those that can reach the top
    found     the largest |z| / sqrt(d) found; 1 where the surface is reached, or where no norm stands before the head
    at_most   a proven bound of it; 1 where none below 1 is proven
    """

    labels: Int[np.ndarray, " labels"]
    found: Float[np.ndarray, " labels"]
    at_most: Float[np.ndarray, " labels"]

    @property
    def not_reached(self) -> Int[np.ndarray, " some"]:
        """The labels that were not found to win near the surface."""
        return self.labels[self.found < NEAR]

    @property
    def only_inside(self) -> Int[np.ndarray, " some"]:
        """The labels that are proven not to win near the surface."""
        return self.labels[self.at_most < NEAR]


def surface_of(
    head: Head, candidates: Candidates, tops: np.ndarray, witnesses: Callable[[], Mapping[int, np.ndarray]]
) -> Surface:
    """How far out each label of `tops` wins; `witnesses` gives for each an embedding at which it does."""
    labels, inputs = np.sort(tops), head.inputs
    problem = None
    # A coordinate that is switched off can take up any length: such states are on the surface wherever they win.
    if inputs.shape == "ball" and inputs.gain_and_shift(head.shape[1])[0].all() and len(labels):
        problem = candidates.reduced(inputs.reduce(head.W.astype(np.float64), head.bias))
    # Where constants are equal, what wins at z wins at every multiple of z: the surface is reached without a look.
    if problem is not None and np.ptp(problem.c) > 0:
        known = witnesses()
        labels = np.array(sorted(known), np.int64)
        found, at_most = np.ones(len(labels)), np.ones(len(labels))
        if len(labels):
            at = _places(inputs, np.stack([known[int(i)] for i in labels]))
            _fill(problem, candidates.place[labels], at, inputs.centred, found, at_most)
    else:
        found, at_most = np.ones(len(labels)), np.ones(len(labels))
    for a in (labels, found, at_most):
        a.flags.writeable = False
    return Surface(labels, found, at_most)


def _places(inputs: Inputs, x: np.ndarray) -> np.ndarray:
    """z of embeddings x = gain * z (+ shift)."""
    gain, shift = inputs.gain_and_shift(x.shape[1])
    z = (x.astype(np.float64) - shift) / gain
    return z - z.mean(axis=1, keepdims=True) if inputs.centred else z


def _fill(
    problem: Problem, which: np.ndarray, at: np.ndarray, centred: bool, found: np.ndarray, at_most: np.ndarray
) -> None:
    assert problem.radius is not None
    plain = propose(replace(problem, c=np.zeros(len(problem.c))), labels=np.unique(which))
    outward = {int(i): plain.direction(int(i)) for i, s in zip(plain.labels, plain.status, strict=True) if s == WINS}
    unseen = _unseen(problem, centred)
    random = np.random.default_rng(0).standard_normal((WAYS, at.shape[1]))
    for k, (i, z) in enumerate(zip(which.tolist(), at, strict=True)):
        ways = [outward[i]] if i in outward else [unseen] if unseen is not None else [z, problem.V[i], *random]
        found[k] = max(_pushed(problem, i, z, way - way.mean() if centred else way) for way in ways)
        if unseen is None and i not in outward and found[k] < NEAR:
            at_most[k] = max(found[k], _bound(problem, i))


def _unseen(problem: Problem, centred: bool) -> np.ndarray | None:
    """A direction of z that changes no difference of scores, where there is one."""
    V = problem.V - problem.V.mean(axis=0)
    if centred:
        V = np.vstack([V, np.full((1, V.shape[1]), np.abs(V).max() or 1.0)])
    _, s, right = np.linalg.svd(V.T @ V)
    return right[-1] if s[-1] <= 1e-24 * max(s[0], 1e-300) else None


def _pushed(problem: Problem, i: int, z: np.ndarray, way: np.ndarray) -> float:
    """The largest |z| / radius met when z moves along `way`, turning along every rival that stops it."""
    V, c, radius = problem.V, problem.c, float(problem.radius or 1.0)
    rows = V[i] - V
    others = np.arange(len(V)) != i
    stops: list[np.ndarray] = []
    best = float(np.linalg.norm(z)) / radius
    way = way.astype(np.float64)
    for _ in range(SLIDES):
        length = np.linalg.norm(way)
        if not length > 1e-12:
            break
        way = way / length
        room, slope = rows @ z + (c[i] - c), rows @ way
        falling = others & (slope < 0)
        step = float((room[falling] / -slope[falling]).min(initial=np.inf))
        along = float(z @ way)
        rim = -along + float(np.sqrt(max(0.0, along * along + radius * radius - z @ z)))
        z = z + 0.999999 * min(step, rim) * way
        margin = (rows @ z + (c[i] - c))[others].min(initial=np.inf)
        if margin > 0:
            best = max(best, float(np.linalg.norm(z)) / radius)
        if rim <= step or best >= NEAR or not margin > 0:
            break
        nearest = int(np.flatnonzero(falling)[np.argmin(room[falling] / -slope[falling])])
        stops.append(rows[nearest])
        basis = np.linalg.qr(np.stack(stops).T)[0]
        way = z - basis @ (basis.T @ z)
    return min(best, 1.0) if best < NEAR else 1.0


def _bound(problem: Problem, i: int) -> float:
    """A proven bound of |z| / radius over the wins of candidate i; 1 where the ball found does not hold its row."""
    radius = float(problem.radius or 1.0)
    V, c = np.delete(problem.V, i, axis=0), np.delete(problem.c, i)
    away = V - problem.V[i]
    # The rows lie in a subspace (after a LayerNorm, that of sum zero); what rounding leaves outside of it is added.
    _, s, right = np.linalg.svd(away.T @ away)
    basis = right[s > 1e-10 * max(s[0], 1e-300)].T
    Y = away @ basis
    outside = float(np.linalg.norm(away - Y @ basis.T, axis=1).max(initial=0.0))
    most = float(problem.c[i] - c.min()) * (1 + 1e-9) + outside * radius
    squares = np.maximum(np.einsum("ij,ij->i", Y, Y), 1e-300)
    rho = max(_ball(Y, weights) for weights in (np.ones(len(Y)), 1 / squares, 1 / squares**2))
    return min(1.0, most / rho / radius) if rho > 0 else 1.0


def _ball(Y: np.ndarray, weights: np.ndarray) -> float:
    """The radius of a ball about 0 inside the hull of points Y; 0 where this way finds none.

    With weights p, mean m and M the inverse of the covariance C,  m + z = sum_j p_j (1 + z.M(y_j - m)) y_j  is in the
    hull for |z| <= 1 / max |M(y_j - m)|; the ball about m holds one about 0 that is smaller by |m|.
    """
    p = weights / weights.sum()
    m = p @ Y
    X = Y - m
    C = (X * p[:, None]).T @ X
    try:
        M = np.linalg.inv(C)
    except np.linalg.LinAlgError:
        return 0.0
    wrong = float(np.linalg.norm(C @ M - np.eye(len(C))))
    steepest = float(np.linalg.norm(X @ M, axis=1).max())
    return ((1 - 2 * wrong - 1e-9) / steepest if steepest > 0 else 0.0) - float(np.linalg.norm(m)) * (1 + 1e-9)
