"""One program for one pair: what the search for ties left open, and the two inputs that prove a tie.

Over a box, an orthant or all inputs a linear program, over a ball the program of `ball_program`, over observed
embeddings a look at each. Whether the two labels are equal anywhere at all is part of the question. All are proposals:
`verify` decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from gonio.core.head import Head
from gonio.core.inputs import Problem
from gonio.proofs import observed_inputs
from gonio.proofs.certificates import Certificate, CertificateError, NeverTies, Ties
from gonio.search import ball_program, linear

RIVALS = 64  # of a pair that a program over a ball takes in at a time
STEPS = 8  # sizes of the way from one side of a tie to the other that are tried


def why_open(problem: Problem) -> str:
    """In words, why a pair stays open after its program."""
    if problem.shape == "ball" or linear.can_pose(problem):
        return "the pair is within rounding of the edge between tying and not"
    return "the search left it open, and the head is too large for a linear program"


def claims_about(head: Head, problem: Problem, a: int, b: int) -> Iterator[tuple[Certificate, float]]:
    """What may prove a pair's verdict, with a bound of the margin where the program gives one."""
    apart = NeverTies(head.digest, a, b, np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    if head.inputs.points is not None:
        at = observed_inputs.tied(head, a, b, np.zeros(0, np.int64))
        yield apart if at is None else Ties(head.digest, a, b, *[head.inputs.points[at].astype(np.float64)] * 2), np.inf
    elif problem.shape == "ball":
        answer = ball_program.solve_tie(problem, partial(_lowest, a, b), a, b)
        if answer is None:
            yield apart, 0.0
            return
        most = max(0.0, answer.most)
        if answer.least > 0:
            yield Ties(head.digest, a, b, *around(head, problem, answer.z, answer.least, a, b)), most
        both = np.array([1 - answer.share, answer.share])
        yield NeverTies(head.digest, a, b, answer.pairs[:, 1], answer.weights, both), most
        yield apart, most
    elif linear.can_pose(problem):
        yield apart, np.inf
        for found in linear.answers(problem, a, b):
            yield from _by_program(head, problem, found, a, b)


def _by_program(
    head: Head, problem: Problem, found: linear.ProgramAnswer, a: int, b: int
) -> Iterator[tuple[Certificate, float]]:
    """What one linear program says about a pair."""
    if found.z is not None:
        scores = problem.V.astype(np.float64) @ found.z + problem.c
        others = np.delete(scores, [a, b])
        margin = float(min(scores[a], scores[b]) - others.max()) if len(others) else np.inf
        if margin > 0:
            yield Ties(head.digest, a, b, *around(head, problem, found.z, margin, a, b)), margin
    for share in (found.share, -found.share):  # the sign of an equation's multiplier is the solver's convention
        both = np.array([1 - share, share])
        yield NeverTies(head.digest, a, b, found.rivals, found.weights, both), 0.0


def _lowest(a: int, b: int, scores: np.ndarray) -> np.ndarray:
    """The highest rivals of a tie, as the pairs (a, rival)."""
    others = np.delete(np.arange(len(scores) - 1), [a, b])
    if len(others) > RIVALS:
        others = others[np.argpartition(-scores[others], RIVALS)[:RIVALS]]
    return np.column_stack([np.full(len(others), a), others])


@dataclass(frozen=True, eq=False)
class BothSides:
    """Two inputs around a proposed tie z: at one a is not below b, at the other b is not below a.

    The proposed z has equal scores only up to rounding, so it is moved along +-(V_a - V_b), in the coordinates that
    are free to move, by as little as tells the two apart and as far as the margin over all others allows.
    """

    problem: Problem
    z: np.ndarray
    step: np.ndarray  # the largest that the margin allows, along the way; zero where nothing can move

    @classmethod
    def of(
        cls, problem: Problem, z: np.ndarray, margin: float, a: int, b: int, longest: tuple[float, float]
    ) -> BothSides:
        """The sides of a tie of a and b with a margin over all others; `longest` is what `longest_row` gives."""
        z, way, room = _free(problem, z, problem.V[a].astype(np.float64) - problem.V[b])
        if not way.any():
            return cls(problem, z, np.zeros_like(way))
        way = way / np.abs(way).max()  # squares of large numbers are beyond floats, those of small ones are 0
        way = way / np.linalg.norm(way)
        # No lead over a third label shrinks by more than |V_i - V_j| times the step.
        size, length = longest
        step = min(margin / size / (8 * length), room / 2, 0.01 * max(1.0, float(np.abs(z).max())))
        return cls(problem, z, step * way)

    def at(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The two inputs, for size 0, 1, ... STEPS - 1 nearer and nearer to the tie."""
        step = self.step / 16.0**size
        return self.problem.lift(self.z + step), self.problem.lift(self.z - step)


def around(head: Head, problem: Problem, z: np.ndarray, margin: float, a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
    """Two inputs around z that prove a tie, as near as it takes; the nearest tried where none does."""
    sides = BothSides.of(problem, z, margin, a, b, longest_row(problem))
    x, y = sides.at(0)
    for size in range(STEPS if sides.step.any() else 0):
        x, y = sides.at(size)
        try:
            Ties(head.digest, a, b, x, y).verify(head)
        except CertificateError:
            continue
        break
    return x, y


def longest_row(problem: Problem) -> tuple[float, float]:
    """(size, length): the longest row is size * length long, and neither overflows; a block at a time."""
    size = max(float(problem.V.max()), -float(problem.V.min())) or 1.0
    blocks = (problem.V[s : s + 4096].astype(np.float64) / size for s in range(0, len(problem.V), 4096))
    return size, float(np.sqrt(max((block**2).sum(axis=1).max() for block in blocks))) or 1.0


def _free(problem: Problem, z: np.ndarray, way: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """z with what is on a bound exactly there, the part of `way` in coordinates free to move, and how far they are."""
    if problem.shape == "ball":
        assert problem.radius is not None
        return z, way, problem.radius * (1 - 1e-15) - float(np.linalg.norm(z))
    if problem.shape == "space":
        return z, way, np.inf
    low = np.zeros(len(z)) if problem.low is None else problem.low
    high = np.full(len(z), np.inf) if problem.high is None else problem.high
    near = 1e-12 * np.maximum(1.0, np.abs(z))
    z = np.where(z <= low + near, low, np.where(z >= high - near, high, z))
    free = (z > low) & (z < high)
    room = np.minimum(z - low, high - z)[free & (way != 0)]
    return z, np.where(free, way, 0.0), float(room.min(initial=np.inf))
