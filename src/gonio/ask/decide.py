"""Whether comparisons of scores can hold at once: the first proposal that a certificate accepts is the answer.

A Newton method proposes an input or a combination of comparisons that never holds, then a linear program does; a ball
with a bias has a program of its own; observed embeddings are looked through. What no certificate accepts stays open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gonio.ask.loop import first_verified
from gonio.core.head import Head
from gonio.core.inputs import Problem
from gonio.proofs.certificate_base import Certificate
from gonio.proofs.comparisons import Impossible, Open, Possible
from gonio.proofs.score_gaps import NOBODY
from gonio.search import ball_program
from gonio.search.feasible import Proposal, System, newton, pose, program

if TYPE_CHECKING:
    from jaxtyping import Int

SLIGHT = 1e-12  # weights this small against the largest are rounding
LOWEST = 64  # comparisons that a program over a ball takes in at a time
Claims = Iterator[tuple[Certificate, float]]
EDGE = "the comparisons are on the edge between possible and not, or too large for exact arithmetic"


@dataclass(frozen=True, eq=False)
class Question:
    """Comparisons to hold at once: labels above labels (or ZERO), and `top` above all others."""

    above: Int[np.ndarray, " some"]
    below: Int[np.ndarray, " some"]
    top: Int[np.ndarray, " some"] = field(default_factory=lambda: NOBODY)


def decide(head: Head, problem: Problem, question: Question) -> Certificate:
    """The first proposal that `verify` accepts; Open, with how near the search came, where there is none."""
    q = question
    if not len(q.above) and (not len(q.top) or len(q.top) == head.shape[0]):
        x = head.inputs.lift(np.zeros(head.shape[1]))
        return Possible(head.digest, q.above, q.below, q.top, x)
    if head.inputs.points is not None:
        claims = _among(head, head.inputs.points, q)
    elif problem.shape == "ball" and problem.c.any():
        claims = _in_ball(head, problem, q)
    else:
        claims = _by_system(head, _without_flat(problem), q)
    with np.errstate(all="ignore"):  # what is proposed may be beyond floats; `verify` decides
        found, nearest = first_verified(head, claims)
    return found or Open(head.digest, q.above, q.below, q.top, float(nearest), EDGE)


def _by_system(head: Head, problem: Problem, q: Question) -> Claims:
    """The Newton method's proposal, then a linear program's; each with as few rows as needed first."""
    system = pose(problem, q.above, q.below, q.top)
    for method in (newton, program):
        proposal = method(system)
        if proposal is None:
            continue
        yield _claim(head, problem, q, system, _basic(system, proposal)), proposal.bound
        if proposal.u is None:
            yield _claim(head, problem, q, system, proposal), proposal.bound


def _without_flat(problem: Problem) -> Problem:
    """The same problem without the coordinates in which a box has no width: they add a constant to each score."""
    low, high = problem.low, problem.high
    if low is None or high is None or (low < high).all():
        return problem
    free, fixed = low < high, np.where(low < high, 0.0, low)

    def lift(z: np.ndarray) -> np.ndarray:
        whole = fixed.copy()
        whole[free] = z
        return problem.lift(whole)

    with np.errstate(all="ignore"):
        c = problem.c + problem.V.astype(np.float64) @ fixed
    if not np.isfinite(c).all():
        return problem
    return replace(problem, V=problem.V[:, free], c=c, low=low[free], high=high[free], lift=lift)


def _basic(system: System, proposal: Proposal) -> Proposal:
    """The same combination with as few rows as needed, at most one more than there are unknowns."""
    use = np.flatnonzero(proposal.weights > SLIGHT * proposal.weights.max(initial=0))
    if proposal.u is not None or len(use) > 4000:
        return proposal
    from scipy.optimize import nnls

    A = np.vstack([system.V[use].T, np.ones(len(use))])
    try:
        w, _ = nnls(A, np.append(np.zeros(len(A) - 1), 1.0))
    except RuntimeError:
        return proposal
    weights = np.zeros(len(system.V))
    weights[use] = w
    return Proposal(None, weights, proposal.bound) if w.sum() > 0 else proposal


def _claim(head: Head, problem: Problem, q: Question, system: System, proposal: Proposal) -> Certificate:
    if proposal.u is not None:
        z = system.input(proposal.u)
        if problem.radius is not None:  # a ball about 0: any length inside will do
            z = z * (0.5 * problem.radius / max(float(np.linalg.norm(z)), 1e-300))
        return Possible(head.digest, q.above, q.below, q.top, problem.lift(z))
    w = proposal.weights[: system.asked] / np.where(
        system.lengths[: system.asked] > 0, system.lengths[: system.asked], 1
    )
    if not w.sum() > 0:
        w = np.ones(system.asked)
    w = np.where(w > SLIGHT * w.max(), w, 0)
    m = len(q.above)
    above, below, weights = q.above[w[:m] > 0], q.below[w[:m] > 0], w[:m][w[:m] > 0]
    if len(q.top):
        others = np.setdiff1d(np.arange(head.shape[0]), q.top)
        a, b, v = _matched(q.top, w[m : m + len(q.top)], others, w[m + len(q.top) :])
        above, below, weights = np.append(above, a), np.append(below, b), np.append(weights, v)
    return Impossible(head.digest, above, below, NOBODY, weights / weights.sum())


def _matched(high: np.ndarray, given: np.ndarray, low: np.ndarray, taken: np.ndarray):
    """Weights of labels above and below the threshold as weights of pairs: the one side's are handed to the other's."""
    given, taken = given / max(given.sum(), 1e-300), taken / max(taken.sum(), 1e-300)
    i = j = 0
    a, b, v = [], [], []
    left, need = float(given[0]), float(taken[0])
    while i < len(high) and j < len(low):
        amount = min(left, need)
        if amount > SLIGHT:
            a.append(int(high[i]))
            b.append(int(low[j]))
            v.append(amount)
        left, need = left - amount, need - amount
        if left <= need:
            i += 1
            left = float(given[i]) if i < len(high) else 0.0
        else:
            j += 1
            need = float(taken[j]) if j < len(low) else 0.0
    return np.array(a, np.int64), np.array(b, np.int64), np.array(v)


def _among(head: Head, points: np.ndarray, q: Question) -> Claims:
    """Over observed embeddings: those at which the comparisons hold by most, or none."""
    F = points.astype(np.float64)
    score = np.column_stack(
        [F @ head.W.astype(np.float64).T + (0 if head.bias is None else head.bias), np.zeros(len(F))]
    )
    gap = np.full(len(F), np.inf)
    if len(q.above):
        gap = (score[:, q.above] - score[:, q.below]).min(axis=1)
    if len(q.top):
        others = np.setdiff1d(np.arange(head.shape[0]), q.top)
        gap = np.minimum(gap, score[:, q.top].min(axis=1) - score[:, others].max(axis=1))
    most = float(gap.max())
    for k in np.argsort(-gap)[:3]:
        yield Possible(head.digest, q.above, q.below, q.top, points[k]), most
    yield Impossible(head.digest, q.above, q.below, q.top, np.zeros(0)), most


def _in_ball(head: Head, problem: Problem, q: Question) -> Claims:
    """A ball with a bias: who is above whom depends on where in the ball, which one program maximises over."""
    answer = ball_program.solve(problem, partial(_lowest, q))
    above, below = answer.pairs.T
    claims: list[Certificate] = [Possible(head.digest, q.above, q.below, q.top, problem.lift(answer.z))]
    if len(answer.weights):
        claims.append(Impossible(head.digest, above, below, NOBODY, answer.weights))
    for claim in claims if answer.least > 0 else claims[::-1]:
        yield claim, max(0.0, answer.most)


def _lowest(q: Question, scores: np.ndarray) -> np.ndarray:
    """The comparisons with the smallest difference at these scores (a 0 stands last, for ZERO), as pairs."""
    pairs = np.column_stack([q.above, q.below])
    if len(q.top):
        others = np.setdiff1d(np.arange(len(scores) - 1), q.top)
        top = q.top[np.argsort(scores[q.top])[:8]]
        others = others[np.argsort(-scores[others])[:8]]
        pairs = np.vstack([pairs, np.column_stack([np.repeat(top, len(others)), np.tile(others, len(top))])])
    lead = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    return pairs[np.argsort(lead, kind="stable")[:LOWEST]]
