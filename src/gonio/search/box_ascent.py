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
from gonio.search.box_program import best_leads
from gonio.search.scaled_box import CLEAR, ScaledBox

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from gonio.core.inputs import Problem

FEW, WIDE = 64, 256  # open labels up to which, and widths below which, the cutting planes are soon done
SMALLEST, BATCH, PIECES = 32, 256, 4  # labels of a batch; batches at least, whatever the number of threads
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
CAREFUL = Schedule(0.03, 60, ((12, 1000), (40, 3000), (100, 3000), (300, 3000)), programs=True)
HASTY = Schedule(0.1, 16, ((1, 1000), (3, 1000), (12, 1000), (40, 2000), (100, 3000)))
BRIEF = Schedule(0.15, 8, ((12, 500), (24, 1000)))  # in narrow sets


@dataclass(frozen=True, eq=False)
class Climbed:
    """What labels have come to.

    won       labels that win, their inputs and margins (proven lower bounds)
    never     labels that never win, with rivals and weights (sum 1) for each
    """

    won: Int[np.ndarray, " won"]
    inputs: Float[np.ndarray, "won dim"]
    margins: Float[np.ndarray, " won"]
    never: Int[np.ndarray, " never"]
    means: tuple[tuple[np.ndarray, np.ndarray], ...]


@dataclass(eq=False)
class _Climbers:
    """Labels on their way: where each is in the scaled box, and where it was a step ago."""

    labels: Int[np.ndarray, " labels"]
    u: Float[np.ndarray, "labels dim"]
    before: Float[np.ndarray, "labels dim"]

    def of(self, which: slice | np.ndarray) -> _Climbers:
        return _Climbers(self.labels[which], self.u[which], self.before[which])


class _Climb:
    """One batch in one stage; rows outside of the pool that beat a label join it."""

    def __init__(self, box: ScaledBox, climbers: _Climbers, schedule: Schedule, pool: int) -> None:
        self.box, self.schedule = box, schedule
        self.labels, self.u, self.before = climbers.labels, climbers.u, climbers.before
        self.place = np.full(len(box.rows), -1, np.int64)  # of each label in the pool
        self.pool, self.rows, self.constants = np.zeros(0, np.int64), box.scaled[:0], box.shifted[:0]
        self.settled = np.zeros(len(self.labels), bool)
        self.shares = np.zeros((len(self.labels), 0), np.float32)  # summed over steps, the later ones more
        self._join(np.sort(box.by_strength[:pool]))
        self.sums, self.base, self.total = np.zeros_like(self.u), np.zeros(len(self.u), np.float32), np.float32(0.0)
        self.won: dict[int, tuple[np.ndarray, float]] = {}
        self.never: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def go(self, first: int, last: int) -> _Climbers:
        """The steps from `first` to before `last`; the labels that are left."""
        for step in range(first, last):
            slope = self._look(step)
            if not len(self.labels):
                break
            self._step(step, slope)
        return _Climbers(self.labels, self.u, self.before)

    def _look(self, step: int) -> Float[np.ndarray, "labels dim"]:
        """Settle the labels that win where they are now, and those below a mean of rivals; the slopes of the others."""
        target, level = self.box.scaled[self.labels], self.box.shifted[self.labels]
        scores = self.u @ self.rows.T
        scores += self.constants
        own = self.place[self.labels]
        inside = np.flatnonzero(own >= 0)
        scores[inside, own[inside]] = -np.inf
        top = scores.max(axis=1)
        beaten_by = self._take_wins(np.flatnonzero(np.einsum("ij,ij->i", self.u, target) + level > top), top)
        left = self._keep_open()
        shares = _soft_shares(scores[left], top[left], self.box.tau * 0.5 ** (step / self.schedule.halved))
        slope = shares @ self.rows - target[left]
        if self.box.whole:
            self._take_below(step, shares, slope, shares @ self.constants - level[left])
            slope = slope[self._keep_open()]
        self._join(beaten_by)
        return slope

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


def climb(
    problem: Problem,
    labels: Int[np.ndarray, " open"],
    workers: BlasPool,
    schedule: Schedule = CAREFUL,
    after: Callable[[int], None] | None = None,
) -> Climbed:
    """Let labels climb, some to each thread, until each is settled or the steps of all stages are used up.

    Batches hang on the labels alone. `after(how many are settled)` is called now and then.
    """
    box = ScaledBox(problem)
    u = box.starts(labels)
    left = _Climbers(labels, u, u)
    won: dict[int, tuple[np.ndarray, float]] = {}
    never: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    first = 0
    for last, pool in schedule.stages:

        def go(s: tuple[int, int], left=left, first=first, last=last, pool=pool) -> tuple[_Climb, _Climbers]:
            batch = _Climb(box, left.of(slice(*s)), schedule, pool)
            return batch, batch.go(first, last)

        done = workers.run(go, spans(len(left.labels), int(np.clip(-(-len(left.labels) // PIECES), SMALLEST, BATCH))))
        for batch, _ in done:
            won |= batch.won
            never |= batch.never
        rest = [some for _, some in done]
        left = _Climbers(*(np.concatenate([getattr(x, name) for x in rest]) for name in ("labels", "u", "before")))
        first = last
        if after:
            after(len(won) + len(never))
        if not len(left.labels):
            break
    if schedule.programs:
        by_programs = best_leads(box, left.labels, left.u, workers)
        won |= by_programs[0]
        never |= by_programs[1]
    winners, losers = sorted(won), sorted(never)
    inputs = np.array([won[a][0] for a in winners]).reshape(len(winners), len(box.low))
    margins = np.array([won[a][1] for a in winners])
    return Climbed(
        np.array(winners, np.int64), inputs, margins, np.array(losers, np.int64), tuple(never[a] for a in losers)
    )
