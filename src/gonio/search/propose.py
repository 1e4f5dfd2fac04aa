"""For every label of a head: can it win? This search proposes answers; certificates prove them.

Label i wins  iff  some z of the problem's set has  (V_i - V_j).z + c_i - c_j > 0  for all j != i.

Stages: 0 whiten; 1 accept those that win in their own direction (`proofs.own_direction`), find a ball inside the hull
(`inscribed`); 2 settle many labels by means of the same rows (`positive_means`); 3, 4, 5 cutting planes with the aim
pushed out by 2 %, 1e-6 and 1e-9 (`cuts`). What is left is undecided, with a bound of its margin.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gonio.core.blas_pool import BlasPool, Report
from gonio.core.directions import unit
from gonio.core.float_units import UNIT, UNIT32
from gonio.core.inputs import Problem
from gonio.core.parallel import spans
from gonio.core.status import NEVER, UNDECIDED, WINS
from gonio.core.tasks import run
from gonio.proofs.own_direction import OwnDirections
from gonio.search.box_ascent import BRIEF, CAREFUL, FEW, HASTY, LONGER, WIDE, Climbed, Climbers, Schedule, climb
from gonio.search.cone import Cone, pose
from gonio.search.cut_batches import CutGround, Outcome, combinations, cut_batch, spread_of
from gonio.search.cuts import Cutter
from gonio.search.equal import Equal, equal_rows
from gonio.search.inscribed import Ball, inscribed, thinned
from gonio.search.orthant_means import below_means
from gonio.search.points import best_margins
from gonio.search.positive_means import Spread, positive_means
from gonio.search.proposals import STAGE, Ground, Proposals, from_own
from gonio.search.scaled_box import ScaledBox
from gonio.search.targets import Targets
from gonio.search.whitening import WhitenedRows, prepare

LONG_ROWS = 2500  # so many of the longest rows are asked first, where that pays
CLIMBS_FIRST, PAYS = 16, 4  # one label in so many tries whether climbing pays: it does if one in so many of these wins
BATCH = 4096  # labels whose first directions are tried together
RARE, FIRST_CUTS = 0.01, 12  # of the labels open: then so many rounds of cuts come before all that tells who never wins
LEAD, SEVERAL = 8, 128  # one label in so many goes first; in wide spaces, where there are more than a few
VERTICES = 8  # labels for each dimension that must be known to win for the others to be left out of the means
MANY = 0.15  # of the labels open: then most directions lose to a few long rows, and these are asked first


class Ledger:
    """What has been settled so far, for all rows; the only thing that an interrupt leaves behind."""

    def __init__(self, problem: Problem, asked: np.ndarray, report: Report | None) -> None:
        n = len(problem.V)
        self.status = np.zeros(n, np.int8)
        self.stage = np.zeros(n, np.int8)
        self.margin = np.full(n, np.inf)
        self.asked, self.wanted = asked, np.zeros(n, bool)
        self.wanted[asked] = True
        self.inputs: dict[int, np.ndarray] = {}
        self.combined: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.spread: list[Spread] = []
        self.ground = Ground(problem)
        self.report = report
        self.total = int(self.wanted.sum())

    def settle(self, label: int, status: int, stage: str, margin: float = 0.0) -> None:
        self.status[label], self.stage[label], self.margin[label] = status, STAGE[stage], margin

    @property
    def open(self) -> np.ndarray:
        return np.flatnonzero(self.wanted & (self.status == UNDECIDED))

    def say(self, doing: str, more: int = 0) -> None:
        """Tell how far we are, `more` being settled but not written down yet."""
        if self.report:
            self.report(min(self.total, self.total - len(self.open) + more), self.total, doing)

    def proposals(self, equal: Equal, interrupted: bool) -> Proposals:
        at = self.asked
        return Proposals(
            at.copy(), self.status[at], self.stage[at], self.margin[at], equal.twins, interrupted,
            self.ground, self.inputs, self.combined, tuple(self.spread),
        )  # fmt: skip


def propose(
    problem: Problem,
    *,
    labels: np.ndarray | None = None,
    own: OwnDirections | None = None,
    on_progress: Report | None = None,
) -> Proposals:
    """Which of `labels` (all, if not given) can win, over the set that the problem poses.

    `own` takes up what the lemma of own directions proves. `on_progress(decided, asked, stage)` is called now and
    then. An interrupt (Ctrl-C) ends the work: what has been decided is given back, `interrupted` is set, and the rest
    is undecided.
    """
    n = len(problem.V)
    asked = np.arange(n) if labels is None else np.asarray(labels, np.int64).reshape(-1)
    ledger = Ledger(problem, asked, on_progress)
    equal = equal_rows(problem)
    for i, j in (equal.below | equal.twin_of).items():
        ledger.settle(i, NEVER, "twin" if i in equal.twin_of else "dominated")
        ledger.combined[i] = (np.array([j]), np.ones(1))
    for i in ledger.ground.far.labels.tolist():
        if ledger.status[i] == UNDECIDED:
            ledger.settle(i, NEVER, "dominated")
            ledger.combined[i] = (np.array([ledger.ground.far.top]), np.ones(1))
    interrupted = False
    try:
        with BlasPool() as workers, np.errstate(all="ignore"):
            ledger.say("preparing")
            if n == 1:
                _alone(problem, ledger)
            elif problem.shape == "points":
                _at_points(problem, ledger, workers)
            elif len(ledger.open):
                _decide(problem, ledger, workers, own or OwnDirections(problem))
            ledger.say("done")
    except KeyboardInterrupt:
        interrupted = True
    except np.linalg.LinAlgError:
        pass  # numbers so far apart that their products are beyond floats: no more is proposed, the rest is undecided
    return ledger.proposals(equal, interrupted)


def _at_points(problem: Problem, ledger: Ledger, workers: BlasPool) -> None:
    """Over finitely many inputs: the best margin of each label, enclosed, tells."""
    seen = best_margins(problem, workers)
    assert problem.points is not None
    for i in np.flatnonzero(ledger.wanted).tolist():
        if ledger.status[i] == NEVER:
            ledger.margin[i] = min(0.0, float(seen.high[i]))
        elif seen.low[i] > 0:
            ledger.settle(i, WINS, "points", float(seen.low[i]))
            ledger.inputs[i] = problem.points[seen.point[i]].astype(np.float64)
        elif seen.high[i] < 0 or (seen.low[i] == seen.high[i] == 0):
            ledger.settle(i, NEVER, "points", float(seen.high[i]))
        else:
            ledger.margin[i] = float(seen.high[i])


def _alone(problem: Problem, ledger: Ledger) -> None:
    """One label wins everywhere: at the point of the set nearest to 0."""
    z = np.zeros(problem.V.shape[1])
    if problem.low is not None and problem.high is not None:
        z = np.clip(z, problem.low, problem.high)
    if problem.points is not None:
        z = problem.points[0].astype(np.float64)
    ledger.settle(0, WINS, "alone", np.inf)
    ledger.inputs[0] = z


def _decide(problem: Problem, ledger: Ledger, workers: BlasPool, own: OwnDirections) -> None:
    """All stages over a set that is a cone or can be written as one."""
    cone = pose(problem)
    ledger.ground = replace(ledger.ground, cone=cone)
    space = _own_directions(problem, cone, ledger, workers, own)
    early = problem.V.shape[1] >= WIDE and problem.shape in (
        "box",
        "orthant",
    )  # then climbing costs less than whitening
    if early:
        _climb_wide(problem, ledger, workers)
    if not len(ledger.open):
        return
    space = space or prepare(cone, workers)
    if space.cone.shaped and not early:
        _first_tries(space, ledger, workers)
        _climb_narrow(problem, ledger, workers)
    if not space.shaped and len(ledger.open) <= RARE * len(problem.V):
        _first_cuts(space, ledger, workers)
    if not len(ledger.open):
        return
    pool = _ball_rows(ledger, space.rank)
    ball = inscribed(space, pool, workers)
    ledger.ground = replace(ledger.ground, space=space.light(), ball=ball, pool=pool)
    _settle_by_means(space, ball, ledger, workers)
    _cut(space, ball, ledger, workers)


def _first_tries(space: WhitenedRows, ledger: Ledger, workers: BlasPool) -> None:
    """Settle the labels that win in their own direction brought into the cone, where the lemma has nothing to say."""
    long_rows, left = _long_rows(space, ledger), ledger.open
    for s in spans(len(left), BATCH):
        batch = left[slice(*s)]
        T = Targets(np.column_stack([batch, batch]), space.V[batch], np.zeros((0, space.rank)))
        Cutter(space, T, workers, lambda: ledger.say("first tries"), long_rows).first_tries(STAGE["first try"])
        _keep_wins(T, batch, ledger)


def _first_cuts(space: WhitenedRows, ledger: Ledger, workers: BlasPool) -> None:
    """Settle those of a few open labels that win within a few rounds: where all do, no ball is needed."""
    left = ledger.open
    T = Targets(np.column_stack([left, left]), space.V[left], np.zeros((0, space.rank)))
    Cutter(space, T, workers, lambda: ledger.say("first cuts"), None).rounds(
        T.points, -1.0, STAGE["cuts"], 24, FIRST_CUTS
    )
    _keep_wins(T, left, ledger)


def _climb_wide(problem: Problem, ledger: Ledger, workers: BlasPool) -> None:
    """Settle the labels of a wide box that win where they climb, or that a mean of the rivals met there is above."""
    if len(ledger.open) <= FEW or not ScaledBox.possible(problem):
        return
    ledger.say("climbing")
    box = ScaledBox(problem)
    if box.whole:
        _go(Climbers.below(box, ledger.open), CAREFUL, box, ledger, workers)
        return
    left = _go(Climbers.below(box, ledger.open), HASTY, box, ledger, workers).left
    _below_orthant_means(problem, ledger, workers)
    _go(left.of(ledger.status[left.labels] == UNDECIDED), LONGER, box, ledger, workers)


def _climb_narrow(problem: Problem, ledger: Ledger, workers: BlasPool) -> None:
    """The same in narrow sets, if it pays: a part goes first, and the others follow where enough of it wins."""
    if len(ledger.open) <= FEW or problem.V.shape[1] >= WIDE or not ScaledBox.possible(problem):
        return
    ledger.say("climbing")
    box, first = ScaledBox(problem), ledger.open[::CLIMBS_FIRST]
    if PAYS * len(_go(Climbers.below(box, first), BRIEF, box, ledger, workers).won) > len(first):
        _go(Climbers.below(box, ledger.open), BRIEF, box, ledger, workers)


def _go(climbers: Climbers, schedule: Schedule, box: ScaledBox, ledger: Ledger, workers: BlasPool) -> Climbed:
    """Let labels climb, and write down what is settled."""
    found = climb(box, climbers, workers, schedule, lambda more: ledger.say("climbing", more))
    ledger.margin[found.won], ledger.stage[found.won], ledger.status[found.won] = found.margins, STAGE["ascent"], WINS
    ledger.inputs.update(zip(found.won.tolist(), found.inputs, strict=True))
    for i, mean in zip(found.never.tolist(), found.means, strict=True):
        ledger.settle(i, NEVER, "ascent")
        ledger.combined[i] = mean
    return found


def _below_orthant_means(problem: Problem, ledger: Ledger, workers: BlasPool) -> None:
    """Over x >= 0: settle the labels that some mean of rivals is above in every coordinate."""
    if problem.shape != "orthant" or not len(ledger.open):
        return
    ledger.say("positive means")
    for i, mean in below_means(problem, ledger.open, np.flatnonzero(ledger.status == WINS), workers).items():
        ledger.settle(i, NEVER, "ascent")
        ledger.combined[i] = mean


def _settle_by_means(space: WhitenedRows, ball: Ball, ledger: Ledger, workers: BlasPool) -> None:
    """Settle the labels that crowd inside the hull, many by means of the same rows."""
    won = np.flatnonzero(ledger.status == WINS)
    if len(won) < VERTICES * space.rank:  # hardly any are known to win yet: then all rows
        won = np.flatnonzero(ledger.status != NEVER)
    for found in positive_means(space, ball.mean, ledger.open, won, workers):
        for i in found.labels.tolist():
            ledger.settle(i, NEVER, "positive mean")
        ledger.spread.append(found)
        ledger.say("positive means")


def _own_directions(
    problem: Problem, cone: Cone, ledger: Ledger, workers: BlasPool, own: OwnDirections
) -> WhitenedRows | None:
    """Stage 1: the labels that win in their own direction. The whitened rows, if the later stages can use them."""
    n = len(problem.V)
    # Without rays, or with the ray of the bias only (a win without bias is a win with it, far enough out).
    possible = problem.shape == "space" or not (cone.affine or len(cone.rays))
    if not possible or len(ledger.open) <= n // 8:
        return None
    plain = pose(replace(problem, c=np.zeros(n))) if cone.affine else cone
    rows = prepare(plain, workers, own=own, keep=not cone.affine)
    if rows.rank:
        asked = ledger.wanted & (ledger.status == UNDECIDED)
        try:
            own.decide(rows, asked, workers, lambda lead: ledger.say("own direction", int((lead > 0).sum())))
        finally:  # an interrupt keeps what has been accepted so far
            ledger.ground = replace(ledger.ground, own=rows.light(), lead=own.lead.copy())
            _keep_own_directions(ledger, rows, own.lead, workers)
    return None if cone.affine else rows


def _ball_rows(ledger: Ledger, rank: int) -> np.ndarray:
    """The rows that the inscribed ball is made of: vertices of the hull if enough are known, else all; thinned out."""
    early = np.isin(ledger.stage, [STAGE[name] for name in ("own direction", "first try", "ascent")])
    rows = np.flatnonzero(early & (ledger.status == WINS))
    rows = rows if len(rows) >= 4 * rank else np.arange(len(ledger.status))
    return thinned(rows, rank)


def _keep_own_directions(ledger: Ledger, own: WhitenedRows, lead: np.ndarray, workers: BlasPool) -> None:
    """Write down who wins in its own direction, with the margin that is left in the problem's own set."""
    won = np.flatnonzero(lead > 0)
    left = np.empty(len(won))
    cone = ledger.ground.cone
    assert cone is not None
    if cone.problem.shape == "space":  # the length of y is all that matters, and |y| <= |L|
        lost = 32 * UNIT * own.reach * float(np.linalg.norm(own.L))
        left = lead[won] * (1 - 1e-12) - lost
        if cone.affine:
            left = np.ldexp(4 * cone.spread * (0.75 - lost / lead[won]) * (1 - 1e-12), cone.lift)
    elif cone.problem.shape == "ball":  # as from_own, with bounds of the lengths |y|
        length = _lengths(own, won, workers)
        left = (lead[won] - 17 * UNIT * own.reach * length) * (1 - 1e-12) * cone.longest / length
    else:

        def measure(s: tuple[int, int]) -> None:
            some = won[slice(*s)]
            left[slice(*s)] = from_own(ledger.ground, unit(own.V[some]), lead[some])[1] * (1 - 1e-12)

        workers.run(measure, spans(len(won), 4096))
    won, left = won[left > 0], left[left > 0]
    ledger.margin[won], ledger.stage[won], ledger.status[won] = left, STAGE["own direction"], WINS


def _lengths(own: WhitenedRows, labels: np.ndarray, workers: BlasPool) -> np.ndarray:
    """Upper bounds of |L'V_i| / |V_i| for some labels, from products in float32."""
    L32, out = own.L.astype(np.float32), np.empty(len(labels))
    wrong = 1.05 * (own.rank + 8) * UNIT32 * float(np.linalg.norm(own.L))

    def measure(s: tuple[int, int]) -> None:
        some = labels[slice(*s)]
        Y = (own.V32[own.place[some]] / own.norms[some, None].astype(np.float32)) @ L32
        out[slice(*s)] = np.sqrt(np.einsum("ij,ij->i", Y, Y, dtype=np.float64)) * (1 + 1e-6) + wrong

    workers.run(measure, spans(len(labels), 1024))
    return out


def _cut(space: WhitenedRows, ball: Ball, ledger: Ledger, workers: BlasPool) -> None:
    """Stages 3 to 5, in batches of open labels."""
    left = ledger.open
    # One label in LEAD first: the others of its cluster, if it is in one, begin with its columns.
    leads = len(left) > SEVERAL or space.rank < WIDE
    leaders, others = (left[::LEAD], np.delete(left, np.s_[::LEAD])) if leads else (left[:0], left)
    ground = CutGround(space, ball, ledger.ground.pool, _long_rows(space, ledger))
    ground.said = lambda T: ledger.say("cuts", int((T.status != 0).sum()))
    for group in (leaders, others):
        size = max(512, min(4096, 15_000_000 // max(1, space.rank)))
        batches = [group[slice(*s)] for s in spans(len(group), size)]
        try:
            found = run(
                "cuts", cut_batch, ground, batches, wide=True,
                key=(space.norms, space.L, ball.centre, ball.radius, left, len(leaders) if group is leaders else 0),
                each=lambda k, found, batches=batches: _keep(found, batches[k], space, ball, ledger),
                after=lambda: ledger.say("cuts"),
            )  # fmt: skip
        finally:
            for batch, part in ground.stopped:
                _keep(part, batch, space, ball, ledger)
        if group is leaders and found:
            ground.leaders = found[-1] | {"labels": batches[-1]}


def _long_rows(space: WhitenedRows, ledger: Ledger) -> np.ndarray | None:
    """The longest rows, of labels known to win if there are enough; None where asking them first does not pay."""
    n = len(space.V)
    if len(ledger.open) <= MANY * n or n <= 2 * LONG_ROWS:
        return None
    won = np.flatnonzero(ledger.status == WINS)
    won = won if len(won) >= LONG_ROWS else np.arange(n)
    return np.sort(won[np.argsort(-space.norms[won], kind="stable")[:LONG_ROWS]])


def _keep(found: Outcome, batch: np.ndarray, space: WhitenedRows, ball: Ball, ledger: Ledger) -> None:
    """Write down what a batch of targets has come to."""
    status, won = found["status"], found["won"]
    ledger.margin[batch] = found["hull_distance"]
    ledger.margin[batch[status == NEVER]] = 0.0
    for k, (rivals, weights) in zip(batch[found["lost"]].tolist(), combinations(found, len(space.V)), strict=True):
        assert k not in rivals
        ledger.combined[k] = (rivals, weights)
    ledger.margin[batch[won]] = found["margin"][won]
    ledger.inputs.update(zip(batch[won].tolist(), found["inputs"], strict=True))
    settled = np.concatenate([won, np.flatnonzero(status == NEVER)])
    ledger.stage[batch[settled]] = found["stage"][settled]
    ledger.status[batch[settled]] = status[settled]
    ledger.spread += spread_of(space, ball, found, batch)


def _keep_wins(T: Targets, batch: np.ndarray, ledger: Ledger) -> None:
    """Write down the targets of a batch that win."""
    won = np.array(sorted(T.inputs), np.int64)
    ledger.margin[batch[won]] = T.margin[won]
    ledger.inputs.update({int(batch[k]): T.inputs[int(k)] for k in won})
    ledger.stage[batch[won]], ledger.status[batch[won]] = T.stage[won], WINS
