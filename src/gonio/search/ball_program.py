"""One program for one question over a ball: what the linear program is to polyhedral inputs.

    max t   with   score_i(z) - score_j(z) >= t  for all pairs (i, j) asked,   |z| < radius,
                   and for a tie   score_a(z) = score_b(z):  z in the slice  p + u, u orthogonal to V_a - V_b.

In units of the (sliced) ball, with rows g and constants h of the pairs, any weights w >= 0 of sum 1 bound it:

    t  <=  h.w + |g'w|,

with equality at the best w. For a given t the weights that violate  g u + h >= t  the most are those of the nearest
point of that polyhedron, a non-negative least squares problem; t = h.w + |g'w| for these is the next t (Dinkelbach),
falling to the optimum. Only the pairs that are lowest at the points met take part. The answer is a proposal:
`verify` decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.inputs import Problem
from gonio.core.parallel import spans
from gonio.search.cone import without_far_biases

if TYPE_CHECKING:
    from jaxtyping import Float, Int

ROUNDS = 200  # of taking in pairs; one or two suffice for a small head, some dozens for a vocabulary
SLIGHT = 1e-13  # weights this small against the largest are rounding
NEAR = 1e-14  # a gain in t below this part of the scores' size is rounding
BLOCK = 4096

Lowest = Callable[[np.ndarray], np.ndarray]  # all scores at a point (a 0 after them) -> the pairs that are lowest there


@dataclass(frozen=True, eq=False)
class Answer:
    """The largest t lies between `least` (attained at z) and `most` (by the weights of the pairs)."""

    z: Float[np.ndarray, " reduced"]
    least: float
    pairs: Int[np.ndarray, "some two"]
    weights: Float[np.ndarray, " some"]
    share: float  # of label b in a tie: sum_j w_j score_j >= (1 - share) score_a + share score_b on the ball
    most: float


@dataclass(frozen=True, eq=False)
class Slice:
    """A part of the ball: where two scores are equal, or all of it."""

    across: Float[np.ndarray, " reduced"]  # V_a - V_b
    constant: float  # c_a - c_b
    centre: Float[np.ndarray, " reduced"]
    radius: float

    @classmethod
    def whole(cls, problem: Problem) -> Slice:
        """The ball itself."""
        assert problem.radius is not None
        zero = np.zeros(problem.V.shape[1])
        return cls(zero, 0.0, zero, problem.radius)

    @classmethod
    def of(cls, problem: Problem, a: int, b: int) -> Slice | None:
        """Where the scores of two labels are equal; None where they are so nowhere in the ball."""
        assert problem.radius is not None
        across = problem.V[a].astype(np.float64) - problem.V[b]
        constant = float(problem.c[a] - problem.c[b])
        square = float(across @ across)
        if square == 0:
            return cls.whole(problem) if constant == 0 else None
        away = abs(constant) / math.sqrt(square)  # from 0; its square may be beyond floats
        left = (problem.radius - away) * (problem.radius + away) if away < problem.radius else 0.0
        return cls(across, constant, -constant / square * across, math.sqrt(left)) if left > 0 else None

    def seen(self, rows: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and constants of comparisons, as functions of u in the unit ball: z = centre + radius u."""
        square = float(self.across @ self.across)
        h = rows @ self.centre + c
        for _ in range(2 if square else 0):  # a second time, since the first leaves the rounding of the first
            rows = rows - np.outer(rows @ self.across / square, self.across)
        return rows * self.radius, h

    def share(self, weights: np.ndarray, rows: np.ndarray) -> float:
        """The s at which the most of  (w'rows - s across).z - s constant  over the ball is least."""
        square = float(self.across @ self.across)
        if not square:
            return 0.0
        total = weights @ rows
        along = float(total @ self.across) / square
        rest = float(np.linalg.norm(total - along * self.across))
        size = float(weights @ np.linalg.norm(rows, axis=1))
        s = along + (self.constant * rest / (square * self.radius) if rest > SLIGHT * size else 0.0)
        return s if abs(s) * np.sqrt(square) > SLIGHT * size else 0.0


def solve_tie(problem: Problem, lowest: Lowest, a: int, b: int) -> Answer | None:
    """The answer of one program for inputs at which labels a and b are equal; None where there are none."""
    scaled, power = _scaled(without_far_biases(problem))
    part = Slice.of(scaled, a, b)
    return None if part is None else _solved(scaled, lowest, part, power)


def solve(problem: Problem, lowest: Lowest) -> Answer:
    """The answer of one program over the ball."""
    scaled, power = _scaled(problem)
    return _solved(scaled, lowest, Slice.whole(scaled), power)


def _scaled(problem: Problem) -> tuple[Problem, int]:
    """The problem with scores times 2^-power, so that neither they nor their squares are beyond floats."""
    largest = max(float(np.abs(problem.c).max()), float(problem.V.max()), -float(problem.V.min()))
    power = math.frexp(largest)[1]
    if abs(power) < 100:
        return problem, 0
    V, c = (np.ldexp(a.astype(np.float64), -power) for a in (problem.V, problem.c))
    return replace(problem, V=V, c=c), power


def _solved(problem: Problem, lowest: Lowest, part: Slice, power: int) -> Answer:
    best, most, z = -np.inf, np.inf, part.centre
    at, asked = z, np.zeros((0, 2), np.int64)
    G, h = np.zeros((0, len(z))), np.zeros(0)
    weights, seen = np.zeros(0), set()
    for _ in range(ROUNDS):
        scores = _scores(problem, at)
        new = lowest(scores)
        if not len(new):  # nothing is compared: every point of the slice will do
            return Answer(z, np.inf, new.reshape(0, 2), np.zeros(0), 0.0, np.inf)
        lead = float((scores[new[:, 0]] - scores[new[:, 1]]).min())
        if lead > best:
            best, z = lead, at
        if most <= 0 or best > most / 2 > 0:
            break
        new = np.array([p for p in new.tolist() if tuple(p) not in seen], np.int64).reshape(-1, 2)
        if not len(new):
            break
        seen |= {tuple(p) for p in new.tolist()}
        asked = np.vstack([asked, new])
        more = part.seen(_rows(problem, new), _constants(problem, new))
        G, h = np.vstack([G, more[0]]), np.append(h, more[1])
        u, weights, most = _restricted(G, h)
        at = part.centre + part.radius * u
    use = np.flatnonzero(weights > SLIGHT * weights.max())
    w = weights[use] / weights[use].sum()
    share = part.share(w, _rows(problem, asked[use]))
    return Answer(z, float(np.ldexp(best, power)), asked[use], w, share, float(np.ldexp(most, power)))


def _scores(problem: Problem, z: np.ndarray) -> np.ndarray:
    scores = [problem.V[slice(*s)].astype(np.float64) @ z for s in spans(len(problem.V), BLOCK)]
    return np.append(np.concatenate(scores) + problem.c, 0.0)


def _rows(problem: Problem, pairs: np.ndarray) -> np.ndarray:
    """V_i - V_j of the pairs; the label -1 stands for the number 0."""
    rows = problem.V[np.maximum(pairs, 0)].astype(np.float64) * (pairs >= 0)[:, :, None]
    return rows[:, 0] - rows[:, 1]


def _constants(problem: Problem, pairs: np.ndarray) -> np.ndarray:
    """c_i - c_j of the pairs."""
    c = np.append(problem.c, 0.0)[pairs]
    return c[:, 0] - c[:, 1]


def _restricted(G: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """(u, w, t) of  max t  with  G u + h >= t, |u| <= 1: a point a little inside where t > 0, and the best weights."""
    size = float(np.abs(h).max() + np.linalg.norm(G, axis=1).max())
    if not size:
        return np.zeros(G.shape[1]), np.eye(1, len(h))[0], 0.0
    G, h = G / size, h / size
    alone = h + np.linalg.norm(G, axis=1)
    weights, t = np.eye(1, len(h), int(alone.argmin()))[0], float(alone.min())
    u = np.zeros(G.shape[1])
    for _ in range(100):
        near, lever = _nearest(G, h, t)
        if near is not None:
            u = near
        if lever is None:
            break
        new = float(h @ lever + np.linalg.norm(lever @ G))
        if not new < t - NEAR:
            weights = lever if new < t else weights
            t = min(t, new)
            break
        weights, t = lever, new
    if t > 0:  # strictly inside of the ball, at the price of half of t
        near, _ = _nearest(G, h, t / 2)
        u = u if near is None else near
    length = float(np.linalg.norm(u))
    return u / max(1.0, length), weights, t * size


def _nearest(G: np.ndarray, h: np.ndarray, t: float) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The shortest u with G u + h >= t (None where there is none) and its multipliers, of sum 1 (None for u = 0)."""
    from scipy.optimize import nnls

    table = np.vstack([G.T, t - h])
    try:
        y, _ = nnls(table, np.eye(1, len(table), len(table) - 1)[0])
    except RuntimeError:
        return None, None
    if not y.sum() > 0:
        return np.zeros(G.shape[1]), None
    room = 1.0 - float((t - h) @ y)
    lever = y / y.sum()
    return (y @ G / room if room > NEAR else None), lever
