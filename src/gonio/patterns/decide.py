"""Whether comparisons of scores can hold at once: the first proposal that a certificate accepts is the answer.

A Newton method proposes an input or a combination of comparisons that never holds, then a linear program does; observed
embeddings are looked through, and a ball with a bias is searched. What no certificate accepts stays open.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from gonio.head import Head
from gonio.inputs import Observed, Problem
from gonio.patterns.feasible import Proposal, System, newton, pose, program
from gonio.regions.claim import Certificate, CertificateError
from gonio.regions.comparison import NOBODY, Impossible, Open, Possible
from gonio.regions.margins import lifted

if TYPE_CHECKING:
    from jaxtyping import Int

SLIGHT = 1e-12  # weights this small against the largest are rounding


@dataclass(frozen=True, eq=False)
class Question:
    """Comparisons to hold at once: labels above labels (or ZERO), and `top` above all others."""

    above: Int[np.ndarray, " some"]
    below: Int[np.ndarray, " some"]
    top: Int[np.ndarray, " some"] = field(default_factory=lambda: NOBODY)


def decide(head: Head, problem: Problem, question: Question) -> Certificate:
    """The first proposal that a certificate accepts: the Newton method's, then a linear program's."""
    q = question
    if not len(q.above) and (not len(q.top) or len(q.top) == head.shape[0]):
        x = lifted(head.inputs, np.zeros(head.shape[1]))
        return Possible(head.digest, q.above, q.below, q.top, x)
    if isinstance(head.inputs, Observed):
        return _among(head, head.inputs, q)
    system = pose(problem, q.above, q.below, q.top)
    if system is None:
        return _by_search(head, problem, q)
    bound = np.inf
    for method in (newton, program):
        proposal = method(system)
        if proposal is None:
            continue
        for fewer in (True, False):
            claim = _claim(head, q, system, _basic(system, proposal) if fewer else proposal)
            try:
                claim.verify(head)
            except CertificateError:
                bound = min(bound, proposal.bound)
                if proposal.u is not None:
                    break
                continue
            return claim
    why = "the comparisons are on the edge between possible and not, or too large for exact arithmetic"
    return Open(head.digest, q.above, q.below, q.top, float(bound), why)


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


def _claim(head: Head, q: Question, system: System, proposal: Proposal) -> Certificate:
    if proposal.u is not None:
        z = system.input(proposal.u)
        if head.inputs.bounded and not system.constant:  # a ball about 0: any length will do
            z = z / max(float(np.linalg.norm(z)), 1e-300)
        return Possible(head.digest, q.above, q.below, q.top, lifted(head.inputs, z))
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


def _among(head: Head, inputs: Observed, q: Question) -> Certificate:
    """Over observed embeddings: the one at which the comparisons hold by most, or none."""
    F = inputs.F.astype(np.float64)
    score = np.column_stack(
        [F @ head.W.astype(np.float64).T + (0 if head.bias is None else head.bias), np.zeros(len(F))]
    )
    gap = np.full(len(F), np.inf)
    if len(q.above):
        gap = (score[:, q.above] - score[:, q.below]).min(axis=1)
    if len(q.top):
        others = np.setdiff1d(np.arange(head.shape[0]), q.top)
        gap = np.minimum(gap, score[:, q.top].min(axis=1) - score[:, others].max(axis=1))
    for k in np.argsort(-gap)[:3]:
        claim = Possible(head.digest, q.above, q.below, q.top, inputs.F[k])
        try:
            claim.verify(head)
        except CertificateError:
            continue
        return claim
    never = Impossible(head.digest, q.above, q.below, q.top, np.zeros(0))
    try:
        never.verify(head)
    except CertificateError:
        return Open(head.digest, q.above, q.below, q.top, float(gap.max()), "rounding leaves it open")
    return never


def _by_search(head: Head, problem: Problem, q: Question) -> Certificate:
    """A ball with a bias, or a box flat in some direction: can the number 0 win against all comparisons?

    A row of zeros wins at z against the rows -(v_above - v_below) iff all comparisons hold there.
    """
    from gonio.regions.propose import propose

    above, below = q.above, q.below
    if len(q.top):
        others = np.setdiff1d(np.arange(head.shape[0]), q.top)
        above = np.append(above, np.repeat(q.top, len(others)))
        below = np.append(below, np.tile(others, len(q.top)))
    V = np.vstack([problem.V.astype(np.float64), np.zeros((1, problem.V.shape[1]))])
    c = np.append(problem.c, 0.0)
    rows = np.vstack([np.zeros((1, V.shape[1])), V[below] - V[above]])
    asked = replace(problem, V=rows, c=np.append(0.0, c[below] - c[above]))
    found = propose(asked, labels=np.array([0]))
    why = "the search over these inputs could not settle it"
    if found.status[0] == 1:
        claim: Certificate = Possible(head.digest, q.above, q.below, q.top, lifted(head.inputs, found.direction(0)))
    elif found.status[0] == 2:
        rivals, weights = found.support(0)
        claim = Impossible(head.digest, above[rivals - 1], below[rivals - 1], NOBODY, weights)
    else:
        return Open(head.digest, q.above, q.below, q.top, float(found.margin[0]), why)
    try:
        claim.verify(head)
    except CertificateError:
        return Open(head.digest, q.above, q.below, q.top, float("inf"), why)
    return claim
