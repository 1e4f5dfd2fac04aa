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
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.float_units import UNIT
from gonio.core.parallel import spans

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from gonio.core.inputs import Problem

FEW, WIDE = 64, 256  # open labels up to which, and widths below which, the cutting planes are soon done
# Up to which step a stage goes, and against a pool of how many rows at first.
STAGES = ((12, 1000), (40, 3000), (100, 3000), (300, 3000))
BRIEF = ((12, 500),)  # in narrow sets
BATCH, PIECES = 256, 4  # labels of a batch at most; batches at least, whatever the number of threads
PULL = 0.375  # how much of |v|_1 counts for a place in the pool
WARM, HALVED = 0.7, 60  # tau to begin with, in typical scores at random corners; steps in which it halves
STEP, MOMENTUM = 0.03, 0.98
LEAST = (3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6)  # shares up to which rivals are left out of a proof, tried in turn
OUTWARDS = 4  # how far out infinite sides are taken, in what makes up for the constants
LARGE = 1e18  # scores that float32 holds with room to spare
CLEAR = 1e-7  # of the largest score: what a mean of rivals must be above the label by


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


class BoxAscent:
    """The rows of a problem over a box, scaled to [-1, 1]^d, and a pool of the strongest of them.

    Of a box with infinite sides a part is looked at: who wins there wins, and of who never does nothing is said.
    """

    def __init__(self, problem: Problem) -> None:
        low, high, self.whole = _finite_sides(problem)
        self.low, self.high = low, high
        self.middle, self.half = low / 2 + high / 2, high / 2 - low / 2
        self.rows = problem.V.astype(np.float64)
        self.constants = np.asarray(problem.c, np.float64)
        self.scaled = (self.rows * self.half).astype(np.float32)
        self.shifted = (self.constants + self.rows @ self.middle).astype(np.float32)
        reach = np.abs(self.scaled).sum(axis=1)
        self.largest = float((reach + np.abs(self.shifted)).max(initial=0.0))
        typical = np.median(reach) / np.sqrt(low.size)
        self.tau = WARM * float(typical) or 1.0
        size = np.abs(self.rows) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(self.constants)
        self.rounding = float((low.size + 3) * UNIT * 2.1 * size.max(initial=0.0)) + 1e-300  # of two scores in float64
        self.by_strength = np.argsort(-(self.shifted + PULL * reach), kind="stable")

    @staticmethod
    def possible(problem: Problem) -> bool:
        """Whether the inputs are a box, of whatever sides, and the numbers fit float32."""
        if problem.shape not in ("box", "orthant"):
            return False
        low, high, _ = _finite_sides(problem)
        most = np.maximum(np.abs(low), np.abs(high)).max(initial=0.0)
        return bool(np.abs(problem.V).max(initial=0.0) * max(1.0, most) * problem.V.shape[1] < LARGE)

    def leads(
        self, labels: np.ndarray, z: np.ndarray
    ) -> tuple[Float[np.ndarray, " labels"], Int[np.ndarray, " labels"]]:
        """Proven lower bounds of the leads of labels, each at its own input, and the strongest rivals there."""
        scores = z @ self.rows.T + self.constants
        at = np.arange(len(scores)), labels
        own = scores[at].copy()
        scores[at] = -np.inf
        rivals = scores.argmax(axis=1)
        return own - scores[at[0], rivals] - self.rounding, rivals

    def mean_above(self, label: int, pool: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Rivals and weights of a mean that is above the label in the whole box, if that of these shares is."""
        for least in LEAST:  # the fewer rivals, the sooner others have checked it
            used = np.flatnonzero(shares > least)
            if not len(used):
                continue
            rivals, weights = pool[used], shares[used].astype(np.float64)
            weights /= weights.sum()
            away = weights @ self.rows[rivals] - self.rows[label]
            above = weights @ self.constants[rivals] - self.constants[label] + away @ self.middle
            if above - np.abs(away) @ self.half > CLEAR * self.largest:
                return rivals, weights
        return None


def _finite_sides(problem: Problem) -> tuple[np.ndarray, np.ndarray, bool]:
    """The sides of the box, infinite ones so far out that rows weigh more than constants; whether none was."""
    d = problem.V.shape[1]
    low = np.zeros(d) if problem.low is None else np.asarray(problem.low, np.float64)
    high = np.full(d, np.inf) if problem.high is None else np.asarray(problem.high, np.float64)
    if np.isfinite(low).all() and np.isfinite(high).all():
        return low, high, True
    size = float(np.sqrt(np.mean(np.square(problem.V, dtype=np.float64)))) or 1.0
    far = max(1.0, OUTWARDS * float(np.ptp(problem.c)) / (size * np.sqrt(d)))
    low = np.where(np.isfinite(low), low, np.minimum(high, 0.0) - far)
    return low, np.where(np.isfinite(high), high, np.maximum(low, 0.0) + far), False


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

    def __init__(self, box: BoxAscent, climbers: _Climbers, pool: int) -> None:
        self.box, self.labels, self.u, self.before = box, climbers.labels, climbers.u, climbers.before
        self.place = np.full(len(box.rows), -1, np.int64)  # of each label in the pool
        self.pool, self.rows, self.constants = np.zeros(0, np.int64), box.scaled[:0], box.shifted[:0]
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
        beaten_by = self._take_wins(np.flatnonzero(np.einsum("ij,ij->i", self.u, target) + level > top))
        shares = _soft_shares(scores, top, self.box.tau * 0.5 ** (step / HALVED))
        slope, base = shares @ self.rows - target, shares @ self.constants - level
        weight = np.float32((step + 1) ** 2)
        self.total += weight
        self.sums += weight * slope
        self.base += weight * base
        self._take_means(shares, base - np.abs(slope).sum(axis=1))
        shares *= weight
        self.shares += shares
        self._take_means(self.shares, (self.base - np.abs(self.sums).sum(axis=1)) / self.total)
        left = [k for k, a in enumerate(self.labels.tolist()) if a not in self.won and a not in self.never]
        if len(left) < len(self.labels):
            slope = slope[left]
            for name in ("labels", "u", "before", "shares", "sums", "base"):
                setattr(self, name, getattr(self, name)[left])
        self._join(beaten_by)
        return slope

    def _step(self, step: int, slope: np.ndarray) -> None:
        """Up the slope, and on in the direction of the last step."""
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        far = STEP * np.sqrt(self.u.shape[1]) / np.sqrt(step + 1)
        moved = np.clip(self.u - np.float32(far) * slope / np.maximum(length, np.float32(1e-30)), -1, 1)
        on = np.float32(MOMENTUM * step / (step + 3))
        self.u, self.before = np.clip(moved + on * (moved - self.before), -1, 1), moved

    def _take_wins(self, places: np.ndarray) -> Int[np.ndarray, " rivals"]:
        """Those above the pool are held against all rows; the rows that beat them."""
        box = self.box
        z = np.clip(box.middle + box.half * self.u[places], box.low, box.high)
        leads, rivals = box.leads(self.labels[places], z)
        for k in np.flatnonzero(leads > 0).tolist():
            self.won[int(self.labels[places[k]])] = z[k], float(leads[k])
        return np.unique(rivals[leads <= 0])

    def _take_means(self, shares: np.ndarray, above: np.ndarray) -> None:
        """Those below the mean of rivals with these shares, once it is looked at in float64."""
        if not self.box.whole:
            return
        for k in np.flatnonzero(above > CLEAR * self.box.largest).tolist():
            a = int(self.labels[k])
            if a not in self.won and a not in self.never:
                found = self.box.mean_above(a, self.pool, shares[k] / shares[k].sum())
                if found is not None:
                    self.never[a] = found

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
    np.exp(scores, out=scores)
    scores *= 1 / scores.sum(axis=1, keepdims=True)
    return scores


def climb(
    problem: Problem,
    labels: Int[np.ndarray, " open"],
    workers: BlasPool,
    stages: tuple[tuple[int, int], ...] = STAGES,
    after: Callable[[int], None] | None = None,
) -> Climbed:
    """Let labels climb, some to each thread, until each is settled or the steps of all stages are used up.

    Batches hang on the labels alone. `after(how many are settled)` is called now and then.
    """
    box = BoxAscent(problem)
    u = np.sign(box.scaled[labels]) * np.float32(0.5)
    left = _Climbers(labels, u, u)
    won: dict[int, tuple[np.ndarray, float]] = {}
    never: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    first = 0
    for last, pool in stages:

        def go(s: tuple[int, int], left=left, first=first, last=last, pool=pool) -> tuple[_Climb, _Climbers]:
            batch = _Climb(box, left.of(slice(*s)), pool)
            return batch, batch.go(first, last)

        done = workers.run(go, spans(len(left.labels), max(1, min(BATCH, -(-len(left.labels) // PIECES)))))
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
    winners, losers = sorted(won), sorted(never)
    inputs = np.array([won[a][0] for a in winners]).reshape(len(winners), len(box.low))
    margins = np.array([won[a][1] for a in winners])
    return Climbed(
        np.array(winners, np.int64), inputs, margins, np.array(losers, np.int64), tuple(never[a] for a in losers)
    )
