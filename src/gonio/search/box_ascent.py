"""Inputs in a box: who wins, found by climbing, and who never does, from the rivals met on the way.

With z = middle + half * u, u in [-1, 1]^d, a label i climbs

    lead(u) = s_i(u) - tau log sum_j exp(s_j(u) / tau),       s_j(u) = v_j.u + c_j,

a smooth stand-in of its lead over the highest rival; tau falls from step to step. The slope is v_i - g with
g = sum_j p_j v_j the mean of rivals by their soft-max shares p. These shares are half of a proof themselves: if

    sum_j p_j c_j - c_i - |g - v_i|_1  >  0,

that mean of rivals is above the label everywhere in the box, and the label never wins (weak duality). So either end may
be reached at any step, for all labels of a batch by two products with a pool of strong rows. Most labels win within a
few steps against a small pool; those left of all batches go on together, in new batches, against a larger one.

Example: one input in [-1, 1], rows 1, -1 and 0 with c = (0, 0, -1). For the last label p = (1/2, 1/2) gives g = 0,
and 0 - (-1) - 0 = 1 > 0: it never wins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.parallel import spans
from gonio.search.box_program import Mean, Win, best_leads
from gonio.search.scaled_box import CLEAR, ScaledBox
from gonio.search.strong_rows import StrongRows

if TYPE_CHECKING:
    from jaxtyping import Float, Int

FEW, WIDE = 64, 256  # open labels up to which, and widths below which, the cutting planes are soon done
# Labels of a batch at most, and batches, or a multiple of these; two where they would have few labels, for then a
# product spends its time on packing the pool.
BATCH, PIECES, FEW_EACH = 256, 4, 96
MOMENTUM = 0.98
LOWEST = np.float32(-60)  # exp of less would be denormal numbers, with which products take up to 50 times as long


class Schedule(NamedTuple):
    """How labels climb.

    step     the first step, against the length of a corner; it falls as the root of their number
    halved   steps in which the smoothing tau halves
    stages   up to which step a stage goes, and against a pool of how many rows at first
    programs whether each label that is left then has a program of its own (`box_program`)
    """

    step: float
    halved: float
    stages: tuple[tuple[int, int], ...]
    programs: bool = False


# Where sides are finite, the labels that are left after a few steps are settled by care, elsewhere by haste or not.
CAREFUL = Schedule(0.03, 60, ((12, 1000), (40, 2000), (100, 3000), (200, 3000)), programs=True)
HASTY = Schedule(0.1, 16, ((1, 1000), (3, 1000), (12, 1000), (40, 2000)))
LONGER = HASTY._replace(stages=((100, 3000),))  # than that
BRIEF = Schedule(0.15, 8, ((12, 500), (24, 1000)))  # in narrow sets


@dataclass(frozen=True, eq=False)
class Climbers:
    """Labels on their way: where each is in the scaled box, where it was a step ago, and how many steps it took."""

    labels: Int[np.ndarray, " labels"]
    u: Float[np.ndarray, "labels dim"]
    before: Float[np.ndarray, "labels dim"]
    steps: int = 0

    @classmethod
    def below(cls, box: ScaledBox, labels: Int[np.ndarray, " labels"]) -> Climbers:
        """Labels that have not begun yet."""
        u = box.starts(labels)
        return cls(labels, u, u)

    def of(self, which: slice | np.ndarray) -> Climbers:
        """Some of them."""
        return Climbers(self.labels[which], self.u[which], self.before[which], self.steps)

    @staticmethod
    def together(parts: list[Climbers]) -> Climbers:
        """Those of several batches that took as many steps."""
        labels, u, before = (np.concatenate([getattr(x, name) for x in parts]) for name in ("labels", "u", "before"))
        return Climbers(labels, u, before, parts[0].steps)


@dataclass(frozen=True, eq=False)
class Climbed:
    """What labels have come to.

    won       labels that win, their inputs and margins (proven lower bounds)
    never     labels that never win, with rivals and weights (sum 1) for each
    left      the others, where they are
    """

    won: Int[np.ndarray, " won"]
    inputs: Float[np.ndarray, "won dim"]
    margins: Float[np.ndarray, " won"]
    never: Int[np.ndarray, " never"]
    means: tuple[tuple[np.ndarray, np.ndarray], ...]
    left: Climbers


class _Climb:
    """One batch in one stage; rows outside of the pool that beat a label join it."""

    def __init__(self, box: ScaledBox, climbers: Climbers, schedule: Schedule, strong: StrongRows) -> None:
        self.box, self.schedule, self.strong = box, schedule, strong
        self.labels, self.u, self.before = climbers.labels, climbers.u, climbers.before
        self.pool, self.rows, self.constants = strong.labels, strong.rows, strong.constants
        self.place = np.full(len(box.rows), -1, np.int64)  # of each label in the pool
        self.place[self.pool] = np.arange(len(self.pool))
        self.settled = np.zeros(len(self.labels), bool)
        self.shares = np.zeros((len(self.labels), len(self.pool)), np.float32)  # summed over steps, the later ones more
        self.sums, self.base, self.total = np.zeros_like(self.u), np.zeros(len(self.u), np.float32), np.float32(0.0)
        self.won: dict[int, Win] = {}
        self.never: dict[int, Mean] = {}

    def go(self, first: int, last: int) -> Climbers:
        """The steps from `first` to before `last`; the labels that are left."""
        for step in range(first, last):
            slope = self._look(step)
            if not len(self.labels):
                break
            self._step(step, slope)
        return Climbers(self.labels, self.u, self.before, last)

    def _look(self, step: int) -> Float[np.ndarray, "labels dim"]:
        """Settle the labels that win where they are now, and those below a mean of rivals; the slopes of the others."""
        target, level = self.box.scaled[self.labels], self.box.shifted[self.labels]
        scores = self._scores()
        top, mine = scores.max(axis=1), np.einsum("ij,ij->i", self.u, target) + level
        leading, sure = np.flatnonzero(mine > top), top
        if self.strong.bytes is not None and len(leading):
            sure = top.copy()
            sure[leading] = self._scores_by_floats(leading).max(axis=1)
            leading = leading[mine[leading] > sure[leading]]
        beaten_by = self._take_wins(leading, sure)
        left = self._keep_open()
        shares = _soft_shares(scores[left], top[left], self.box.tau * 0.5 ** (step / self.schedule.halved))
        slope = self._means(shares) - target[left]
        if self.box.whole:
            self._take_below(step, shares, slope, shares @ self.constants - level[left])
            slope = slope[self._keep_open()]
        self._join(beaten_by)
        return slope

    def _scores(self) -> Float[np.ndarray, "labels pool"]:
        """The scores of the rivals in the pool, nearly where bytes are faster; -inf for the label itself."""
        if self.strong.bytes is None:
            return self._scores_by_floats(np.arange(len(self.labels)))
        scores = np.empty((len(self.labels), len(self.pool)), np.float32)
        first = len(self.strong.labels)
        self.strong.scores_by_bytes(self.u, scores[:, :first])
        if first < len(self.pool):
            scores[:, first:] = self.u @ self.rows[first:].T + self.constants[first:]
        return self._without_own(scores, np.arange(len(self.labels)))

    def _scores_by_floats(self, places: np.ndarray) -> Float[np.ndarray, "places pool"]:
        """The same of some labels, in float32."""
        scores = self.u[places] @ self.rows.T
        scores += self.constants
        return self._without_own(scores, places)

    def _without_own(self, scores: np.ndarray, places: np.ndarray) -> Float[np.ndarray, "places pool"]:
        own = self.place[self.labels[places]]
        inside = np.flatnonzero(own >= 0)
        scores[inside, own[inside]] = -np.inf
        return scores

    def _means(self, shares: Float[np.ndarray, "labels pool"]) -> Float[np.ndarray, "labels dim"]:
        """The sums of the rows of the pool by shares, nearly where bytes are faster."""
        if self.strong.bytes is None:
            return shares @ self.rows
        first = len(self.strong.labels)
        means = self.strong.means_by_bytes(shares[:, :first])
        if first < len(self.pool):
            means += shares[:, first:] @ self.rows[first:]
        return means

    def _keep_open(self) -> Int[np.ndarray, " open"]:
        """Let settled labels go; where the others were."""
        left = np.flatnonzero(~self.settled)
        if len(left) < len(self.labels):
            for name in ("labels", "u", "before", "shares", "sums", "base", "settled"):
                setattr(self, name, getattr(self, name)[left])
        return left

    def _step(self, step: int, slope: np.ndarray) -> None:
        """Up the slope, and on in the direction of the last step."""
        slope *= self.box.pace
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        far = self.schedule.step * np.sqrt(self.u.shape[1]) / np.sqrt(step + 1)
        moved = np.clip(self.u - np.float32(far) * slope / np.maximum(length, np.float32(1e-30)), -1, 1)
        on = np.float32(MOMENTUM * step / (step + 3))
        self.u, self.before = np.clip(moved + on * (moved - self.before), -1, 1), moved

    def _take_wins(self, places: np.ndarray, top: np.ndarray) -> Int[np.ndarray, " rivals"]:
        """Those above the pool are held against all rows; the rows that beat them."""
        z, leads, rivals = self.box.leads(self.labels[places], self.u[places], top[places], self.place >= 0)
        won = np.flatnonzero(leads > 0)
        self.settled[places[won]] = True
        self.won |= {int(self.labels[places[k]]): (z[k], float(leads[k])) for k in won.tolist()}
        return rivals

    def _take_below(self, step: int, shares: np.ndarray, slope: np.ndarray, base: np.ndarray) -> None:
        """Settle the labels below the mean of rivals of this step, and those below that of all steps."""
        weight = np.float32((step + 1) ** 2)
        self.total += weight
        self.sums += weight * slope
        self.base += weight * base
        self._take_means(shares, base - np.abs(slope).sum(axis=1))
        shares *= weight
        self.shares += shares
        self._take_means(self.shares, (self.base - np.abs(self.sums).sum(axis=1)) / self.total)

    def _take_means(self, shares: np.ndarray, above: np.ndarray) -> None:
        """Those below the mean of rivals with these shares, once it is looked at in float64."""
        left = np.flatnonzero((above > CLEAR * self.box.largest) & ~self.settled)
        for k, mean in self.box.means_above(self.labels[left], self.pool, shares[left]).items():
            self.settled[left[k]], self.never[int(self.labels[left[k]])] = True, mean

    def _join(self, rivals: np.ndarray) -> None:
        """Let more rows into the pool."""
        new = rivals[self.place[rivals] < 0]
        if len(new):
            self.place[new] = len(self.pool) + np.arange(len(new))
            self.pool = np.concatenate([self.pool, new])
            self.rows = np.vstack([self.rows, self.box.scaled[new]])
            self.constants = np.concatenate([self.constants, self.box.shifted[new]])
            self.shares = np.hstack([self.shares, np.zeros((len(self.shares), len(new)), np.float32)])


def _soft_shares(scores: np.ndarray, top: np.ndarray, tau: float) -> Float[np.ndarray, "labels pool"]:
    """exp(score / tau) by rows, in the place of the scores, at sum 1."""
    scores -= top[:, None]
    scores *= np.float32(1 / tau)
    np.maximum(scores, LOWEST, out=scores)
    np.exp(scores, out=scores)
    scores *= 1 / scores.sum(axis=1, keepdims=True)
    return scores


def _batch_size(count: int) -> int:
    """How many of so many labels are done together."""
    several = PIECES if count >= PIECES * FEW_EACH else 2
    return -(-count // (several * -(-count // (several * BATCH))))


def climb(
    box: ScaledBox,
    climbers: Climbers,
    workers: BlasPool,
    schedule: Schedule = CAREFUL,
    after: Callable[[int], None] | None = None,
) -> Climbed:
    """Let labels climb, some to each thread, until each is settled or the steps of all stages are used up.

    Batches hang on the labels alone. `after(how many are settled)` is called now and then.
    """
    won: dict[int, Win] = {}
    never: dict[int, Mean] = {}
    left = climbers
    for last, size in schedule.stages:
        if not len(left.labels):
            break
        pool = StrongRows.of(box, size)

        def go(s: tuple[int, int], left=left, last=last, pool=pool) -> tuple[_Climb, Climbers]:
            batch = _Climb(box, left.of(slice(*s)), schedule, pool)
            return batch, batch.go(left.steps, last)

        done = workers.run(go, spans(len(left.labels), _batch_size(len(left.labels))))
        for batch, _ in done:
            won |= batch.won
            never |= batch.never
        left = Climbers.together([some for _, some in done])
        if after:
            after(len(won) + len(never))
    if schedule.programs:
        by_programs = best_leads(box, left.labels, left.u, workers)
        won |= by_programs[0]
        never |= by_programs[1]
        left = left.of(np.array([i not in won and i not in never for i in left.labels.tolist()], bool))
    winners, losers = sorted(won), sorted(never)
    inputs = np.array([won[a][0] for a in winners]).reshape(len(winners), len(box.low))
    margins = np.array([won[a][1] for a in winners])
    return Climbed(
        np.array(winners, np.int64), inputs, margins, np.array(losers, np.int64), tuple(never[a] for a in losers), left
    )
