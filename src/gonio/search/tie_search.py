"""Which pairs of labels can share the top, strictly above all others?

Labels a and b tie  iff  some z of the set has  score_a = score_b > score_j  for all other j. In whitened coordinates:
keep directions orthogonal to u ~ v_a - v_b; projected along u the two rows are one point P, and the question is the one
of `propose` for P against all other rows. It is answered by the same cutting planes, with columns projected along u.

    ties       r.P > r.v_j for all j, r orthogonal to u (up to rounding, which the margin must outweigh)
    never      la v_a + lb v_b = sum_j w_j v_j (+ rays),  la + lb = 1 of any sign,  w_j >= 0, sum w_j = 1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.blas_pool import BlasPool, Report
from gonio.core.errors import GonioError
from gonio.core.inputs import Problem
from gonio.core.parallel import spans
from gonio.core.status import NEVER, UNDECIDED, WINS
from gonio.core.tasks import run
from gonio.search.cone import pose
from gonio.search.cut_batches import Outcome, combinations, nothing, outcome
from gonio.search.cuts import Cutter
from gonio.search.equal import Equal, equal_rows
from gonio.search.inscribed import Ball, inscribed, thinned
from gonio.search.points import best_margins
from gonio.search.proposals import STAGE, Ground
from gonio.search.support import basic_support
from gonio.search.targets import Targets
from gonio.search.whitening import WhitenedRows, prepare

if TYPE_CHECKING:
    from jaxtyping import Float, Int

BATCH = 10_000


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
            if both and (_equal_to(self.ground.problem, b, int(rivals[0])) or b in self.ground.far.labels):
                both = (0.0, 1.0)
            if both is None and self.ground.space is not None and self.stage[k] != STAGE["dominated"]:
                rivals, weights, share = basic_support(self.ground, a, rivals, weights, other=b)
                rivals, weights = self.ground.far.replaced(rivals, weights, (a, b))
                both = (1.0 - share, share)
            self._polished[k] = (rivals, weights, both or (1.0, 0.0))
        return self._polished[k]


def _equal_to(problem: Problem, i: int, j: int) -> bool:
    return bool((problem.V[i] == problem.V[j]).all())


class _TieLedger:
    """What has been settled so far of each pair; the only thing that an interrupt leaves behind."""

    def __init__(self, problem: Problem, pairs: np.ndarray, report: Report | None) -> None:
        m = len(pairs)
        self.pairs, self.report = pairs, report
        self.status, self.stage, self.margin = np.zeros(m, np.int8), np.zeros(m, np.int8), np.full(m, np.inf)
        self.inputs: dict[int, np.ndarray] = {}
        self.combined: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.ground = Ground(problem)

    @property
    def open(self) -> np.ndarray:
        return np.flatnonzero(self.status == UNDECIDED)

    def settle(self, k: int, status: int, stage: str) -> None:
        self.status[k], self.stage[k], self.margin[k] = status, STAGE[stage], 0.0

    def say(self, more: int = 0) -> None:
        """Tell how far the search is, `more` pairs being settled but not written down yet."""
        if self.report:
            m = len(self.pairs)
            self.report(min(m, m - len(self.open) + more), m, "ties")


def propose_ties(problem: Problem, pairs: np.ndarray, *, on_progress: Report | None = None) -> TieProposals:
    """Whether each pair (a, b) of labels can share the top over the set that the problem poses."""
    pairs = np.array(pairs, np.int64).reshape(-1, 2)
    n = len(problem.V)
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= n or (pairs[:, 0] == pairs[:, 1]).any()):
        raise GonioError(f"propose_ties: every pair must name two different labels of 0 to {n - 1}.")
    ledger, interrupted = _TieLedger(problem, pairs, on_progress), False
    _settle_equal_rows(problem, ledger)
    _settle_far(ledger)
    try:
        with BlasPool() as workers, np.errstate(all="ignore"):
            ledger.say()
            if problem.shape == "points":
                _at_points(problem, ledger, workers)
            elif len(ledger.open):
                _cut(problem, ledger, workers)
            ledger.say()
    except KeyboardInterrupt:
        interrupted = True
    except np.linalg.LinAlgError:
        pass  # numbers so far apart that their products are beyond floats: no more is proposed
    return TieProposals(
        pairs, ledger.status, ledger.stage, ledger.margin, interrupted, ledger.ground, ledger.inputs, ledger.combined
    )


def _settle_equal_rows(problem: Problem, ledger: _TieLedger) -> None:
    """The pairs that cannot tie because some rows are equal."""
    equal = equal_rows(problem)
    for k, (a, b) in enumerate(ledger.pairs.tolist()):
        blocked = _blocked(problem, equal, a, b)
        if blocked is not None:
            higher = blocked < 0 or problem.c[blocked] > min(problem.c[[a, b]])
            ledger.settle(k, NEVER, "dominated" if higher else "twin")
            ledger.combined[k] = (np.array([j for j in (blocked,) if j >= 0], np.int64), np.ones(int(blocked >= 0)))


def _settle_far(ledger: _TieLedger) -> None:
    """The pairs that cannot tie because one of them is far below the label of the largest bias at every input."""
    far = ledger.ground.far
    for k in ledger.open.tolist() if len(far.labels) else []:
        if np.isin(ledger.pairs[k], far.labels).any():
            ledger.settle(k, NEVER, "dominated")
            above = [] if far.top in ledger.pairs[k] else [far.top]
            ledger.combined[k] = (np.array(above, np.int64), np.ones(len(above)))


def _cut(problem: Problem, ledger: _TieLedger, workers: BlasPool) -> None:
    """Cutting planes for the open pairs, one batch after the other."""
    n = len(problem.V)
    space = prepare(pose(problem), workers)
    rows = thinned(np.arange(n), space.rank)
    ball = inscribed(space, rows, workers)
    ledger.ground = replace(ledger.ground, cone=space.cone, space=space.light(), ball=ball, pool=rows)
    left = ledger.open
    shared = _TieGround(space, ball, lambda T: ledger.say(int((T.status != 0).sum())))
    batches = [left[slice(*s)] for s in spans(len(left), max(256, min(BATCH, 8_000_000 // max(1, space.rank))))]
    try:
        run(
            "ties", _tie_batch, shared, [ledger.pairs[x] for x in batches], wide=True,
            key=(space.norms, space.L, ball.centre, ball.radius), after=ledger.say,
            each=lambda k, found: _keep(found, batches[k], n, ledger),
        )  # fmt: skip
    finally:
        for pairs, found in shared.stopped:
            at = next(x for x in batches if len(x) == len(pairs) and (ledger.pairs[x] == pairs).all())
            _keep(found, at, n, ledger)


@dataclass(eq=False)
class _TieGround:
    """What all batches of pairs share; see `cut_batches.CutGround`."""

    space: WhitenedRows
    ball: Ball
    said: Callable[[Targets], None] = nothing
    stopped: list[tuple[np.ndarray, Outcome]] = field(default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"said": nothing, "stopped": []}


def _tie_batch(ground: _TieGround, pairs: np.ndarray) -> Outcome:
    """The cutting planes of some pairs."""
    space, ball = ground.space, ground.ball
    T, centres = _targets(space, pairs, ball.centre)
    with BlasPool() as workers, np.errstate(all="ignore"):
        cutter = Cutter(space, T, workers, lambda: ground.said(T), None)
        try:
            for tau, name, width, most in _schedule(space.rank):
                aims = centres + (T.points - centres) / (1 - tau)
                cutter.rounds(aims, ball.tolerance(tau), STAGE[name], width, most)
        except KeyboardInterrupt:
            ground.stopped.append((pairs, outcome(T)))
            raise
    return outcome(T)


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
    """The pairs as points orthogonal to u ~ v_a - v_b, and for each pair the ball's centre made orthogonal to its u."""
    point, difference = space.V[pairs[:, 0]], space.V[pairs[:, 0]] - space.V[pairs[:, 1]]
    distance = np.linalg.norm(difference, axis=1, keepdims=True)
    u = np.where(distance > 0, difference / np.where(distance > 0, distance, 1), 0.0)  # equal rows: no direction
    for _ in range(2):  # a second time, since the first leaves the rounding of the first
        point = point - np.einsum("ij,ij->i", point, u)[:, None] * u
    centres = centre - (u @ centre)[:, None] * u
    return Targets(pairs, point, u, distance[:, 0]), centres


def _keep(found: Outcome, batch: np.ndarray, n: int, ledger: _TieLedger) -> None:
    """Write down what a batch of targets has come to."""
    status, won = found["status"], found["won"]
    ledger.margin[batch] = found["hull_distance"]
    ledger.margin[batch[status == NEVER]] = 0.0
    ledger.combined.update(zip(batch[found["lost"]].tolist(), combinations(found, n), strict=True))
    ledger.margin[batch[won]] = found["margin"][won]
    ledger.inputs.update(zip(batch[won].tolist(), found["inputs"], strict=True))
    settled = np.concatenate([won, np.flatnonzero(status == NEVER)])
    ledger.stage[batch[settled]], ledger.status[batch[settled]] = found["stage"][settled], status[settled]


def _at_points(problem: Problem, ledger: _TieLedger, workers: BlasPool) -> None:
    """At given points a tie is an equality of two numbers: pairs that come near at none of them are settled."""
    for k in ledger.open.tolist():
        a, b = ledger.pairs[k]
        keep = np.delete(np.arange(len(problem.V)), b)  # a alone against the others: where a ties with b on top it wins
        seen = best_margins(replace(problem, V=problem.V[keep], c=problem.c[keep]), workers)
        i = int(np.flatnonzero(keep == a)[0])
        if seen.high[i] <= 0:
            ledger.settle(k, NEVER, "points")
        else:
            ledger.margin[k] = float(seen.high[i])
