"""Which pairs of labels can share the top, strictly above all others?

Labels a and b tie  iff  some z of the set has  score_a = score_b > score_j  for all other j. In whitened coordinates:
keep directions orthogonal to u ~ v_a - v_b; seen along u the two rows are one point P, and the question is the one of
`propose` for P against all other rows. It is answered by the same cuts, with columns taken off u.

    ties       r.P > r.v_j for all j, r orthogonal to u (up to rounding, which the margin must outweigh)
    never      la v_a + lb v_b = sum_j w_j v_j (+ rays),  la + lb = 1 of any sign,  w_j >= 0, sum w_j = 1
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool, Report
from gonio.core.errors import GonioError
from gonio.core.inputs import Problem
from gonio.core.parallel import spans
from gonio.core.status import NEVER, UNDECIDED, WINS
from gonio.search.cone import pose
from gonio.search.cuts import Cutter
from gonio.search.equal import Equal, equal_rows
from gonio.search.inscribed import inscribed
from gonio.search.points import best_margins
from gonio.search.proposals import STAGE, Ground
from gonio.search.support import basic_support
from gonio.search.targets import Targets
from gonio.search.whitening import WhitenedRows, prepare

if TYPE_CHECKING:
    from jaxtyping import Float, Int

BATCH = 4096


@dataclass(frozen=True, eq=False, repr=False)
class TieProposals:
    """One entry for each pair asked about.

    status   WINS: the two can share the top; NEVER: they cannot; UNDECIDED
    stage    an index into proposals.STAGES
    margin   WINS: a proven lower bound of  min(score_a, score_b) - max_j score_j  at direction(k); there the two scores
             are equal up to rounding, and an exact tie as good as that lies beside it.
             UNDECIDED: a bound of the margin over inputs of whitened length one, or infinity. NEVER: 0.
    """

    pairs: Int[np.ndarray, "pairs two"]
    status: Int[np.ndarray, " pairs"]
    stage: Int[np.ndarray, " pairs"]
    margin: Float[np.ndarray, " pairs"]
    interrupted: bool
    ground: Ground
    inputs: dict[int, np.ndarray]
    combined: dict[int, tuple[np.ndarray, np.ndarray]]
    _polished: dict[int, tuple] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for a in (self.pairs, self.status, self.stage, self.margin):
            a.flags.writeable = False

    def __repr__(self) -> str:
        yes, no, rest = (int((self.status == s).sum()) for s in (WINS, NEVER, UNDECIDED))
        return f"TieProposals({len(self.pairs):,} pairs)\n  {yes:,} can tie, {no:,} cannot, {rest:,} undecided"

    def direction(self, k: int) -> Float[np.ndarray, " reduced"]:
        """A z of the set at which both labels of pair k are equal (up to rounding) and above all others."""
        if self.status[k] != WINS:
            raise GonioError(f"propose_ties: pair {k} is not known to tie, so there is no direction to give.")
        return self.inputs[k].copy()

    def support(self, k: int) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
        """(rivals, weights, (la, lb)): la row_a + lb row_b is the convex combination of the rivals.

        Over shaped inputs "is" means: is nowhere on the set above. Empty where the rows are equal and the biases are
        not: then one of the two is always higher. For an undecided pair, the nearest that was found.
        """
        if self.status[k] == WINS:
            raise GonioError(f"propose_ties: pair {k} may tie, so there is no support to give.")
        if k not in self._polished:
            rivals, weights = self.combined.get(k, (np.zeros(0, np.int64), np.zeros(0)))
            a, b = (int(i) for i in self.pairs[k])
            both = (1.0, 0.0) if len(rivals) == 1 and self.stage[k] in (STAGE["twin"], STAGE["dominated"]) else None
            if both and _equal_to(self.ground.problem, b, int(rivals[0])):
                both = (0.0, 1.0)
            if both is None and self.ground.space is not None and self.stage[k] != STAGE["dominated"]:
                rivals, weights, share = basic_support(self.ground, a, rivals, weights, other=b)
                both = (1.0 - share, share)
            self._polished[k] = (rivals, weights, both or (1.0, 0.0))
        return self._polished[k]


def _equal_to(problem: Problem, i: int, j: int) -> bool:
    return bool((problem.V[i] == problem.V[j]).all())


def propose_ties(problem: Problem, pairs: np.ndarray, *, on_progress: Report | None = None) -> TieProposals:
    """Whether each pair (a, b) of labels can share the top over the set that the problem poses."""
    pairs = np.array(pairs, np.int64).reshape(-1, 2)
    n, m = len(problem.V), len(pairs)
    if m and (pairs.min() < 0 or pairs.max() >= n or (pairs[:, 0] == pairs[:, 1]).any()):
        raise GonioError(f"propose_ties: every pair must name two different labels of 0 to {n - 1}.")
    equal = equal_rows(problem)
    status, stage, margin = np.zeros(m, np.int8), np.zeros(m, np.int8), np.full(m, np.inf)
    inputs: dict[int, np.ndarray] = {}
    combined: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for k, (a, b) in enumerate(pairs.tolist()):
        blocked = _blocked(problem, equal, a, b)
        if blocked is not None:
            status[k], margin[k] = NEVER, 0.0
            stage[k] = STAGE["dominated" if blocked < 0 or problem.c[blocked] > min(problem.c[[a, b]]) else "twin"]
            combined[k] = (np.array([j for j in (blocked,) if j >= 0], np.int64), np.ones(int(blocked >= 0)))
    ground, interrupted = Ground(problem), False

    def say(extra: int = 0) -> None:
        if on_progress:
            on_progress(min(m, int((status != UNDECIDED).sum()) + extra), m, "ties")

    try:
        with BlasPool() as workers, np.errstate(all="ignore"):
            say()
            if problem.shape == "points":
                _at_points(problem, pairs, status, stage, margin, inputs, workers)
            elif (status == UNDECIDED).any():
                space = prepare(pose(problem), workers)
                rows = np.arange(n)[:: max(1, n // (12 * max(1, space.rank)))]
                ball = inscribed(space, rows)
                ground = replace(ground, cone=space.cone, space=space.light(), ball=ball, pool=rows)
                todo = np.flatnonzero(status == UNDECIDED)
                for s in spans(len(todo), max(256, min(BATCH, 8_000_000 // max(1, space.rank)))):
                    batch = todo[slice(*s)]
                    T, mu = _targets(space, pairs[batch], ball.centre)
                    cutter = Cutter(space, T, workers, lambda T=T: say(int((T.status != 0).sum())), None)
                    try:
                        for tau, name, width, most in _schedule(space.rank):
                            aims = mu + (T.points - mu) / (1 - tau)
                            cutter.rounds(aims, ball.tolerance(tau), STAGE[name], width, most)
                    finally:
                        _keep(T, batch, n, status, stage, margin, inputs, combined)
            say()
    except KeyboardInterrupt:
        interrupted = True
    return TieProposals(pairs, status, stage, margin, interrupted, ground, inputs, combined)


def _schedule(rank: int) -> tuple[tuple[float, str, int, int], ...]:
    """Push-out, stage, rivals taken in a round, rounds: pairs that cannot tie are mostly far from it, so push far."""
    return (
        (0.1, "cuts", 24, 30),
        (0.01, "cuts", 24, 30),
        (1e-6, "fine", rank + 64, 60),
        (1e-9, "knife edge", rank + 64, 60),
    )


def _blocked(problem: Problem, equal: Equal, a: int, b: int) -> int | None:
    """A third label that is never below one of the two; -1 where the two differ by a constant; None otherwise."""
    for i, other in ((a, b), (b, a)):
        if i in equal.below:
            return -1 if equal.below[i] == other else equal.below[i]
        if i in equal.twin_of:
            group = next(g for g in equal.twins if i in g)
            third = [int(j) for j in group if j not in (a, b)]
            if third:
                return third[0]
    if problem.c[a] != problem.c[b] and _equal_to(problem, a, b):
        return -1
    return None


def _targets(space: WhitenedRows, pairs: np.ndarray, centre: np.ndarray) -> tuple[Targets, np.ndarray]:
    """The pairs as points seen along u, and the ball's centre seen so."""
    va, vb = space.V[pairs[:, 0]], space.V[pairs[:, 1]]
    u = va - vb
    gap = np.linalg.norm(u, axis=1, keepdims=True)
    u = np.where(gap > 0, u / np.where(gap > 0, gap, 1), 0.0)  # twins: nothing to take off
    for _ in range(2):  # a second time, since the first leaves the rounding of the first
        va = va - np.einsum("ij,ij->i", va, u)[:, None] * u
    mu = centre - (u @ centre)[:, None] * u
    T = Targets(pairs, va, u)
    T.row_distance = gap[:, 0]
    return T, mu


def _keep(T: Targets, batch, n, status, stage, margin, inputs, combined) -> None:
    margin[batch] = T.hull_distance
    margin[batch[T.status == NEVER]] = 0.0
    for k in np.flatnonzero(T.status != WINS):
        used, w = T.columns[k, : T.size[k]].astype(np.int64), T.weights[k, : T.size[k]]
        combined[int(batch[k])] = (used[used < n], w[used < n] / max(w[used < n].sum(), 1e-300))
    won = np.array(sorted(T.inputs), np.int64)
    margin[batch[won]] = T.margin[won]
    inputs.update({int(batch[k]): T.inputs[int(k)] for k in won})
    settled = np.concatenate([won, np.flatnonzero(T.status == NEVER)])
    stage[batch[settled]], status[batch[settled]] = T.stage[settled], T.status[settled]


def _at_points(problem: Problem, pairs, status, stage, margin, inputs, workers: BlasPool) -> None:
    """At given points a tie is an equality of two numbers: exact arithmetic tells, for the points that come near."""
    assert problem.points is not None
    for k in np.flatnonzero(status == UNDECIDED):
        a, b = pairs[k]
        keep = np.delete(np.arange(len(problem.V)), b)  # a alone against the others: where a ties with b on top it wins
        seen = best_margins(replace(problem, V=problem.V[keep], c=problem.c[keep]), workers)
        i = int(np.flatnonzero(keep == a)[0])
        if seen.high[i] <= 0:
            status[k], stage[k], margin[k] = NEVER, STAGE["points"], 0.0
        else:
            margin[k] = float(seen.high[i])
