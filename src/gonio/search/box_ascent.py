"""Inputs in a box: who wins, found by climbing, and who never does, from the rivals met on the way.

With z = middle + half * u, u in [-1, 1]^d, a label i climbs

    lead(u) = s_i(u) - tau log sum_j exp(s_j(u) / tau),       s_j(u) = v_j.u + c_j,

a smooth stand-in of its lead over the highest rival; tau falls from step to step. The slope is v_i - g with
g = sum_j p_j v_j the mean of rivals by their soft-max shares p. These shares are half of a proof themselves: if

    sum_j p_j c_j - c_i - |g - v_i|_1  >  0,

that mean of rivals is above the label everywhere in the box, and the label never wins (weak duality). So either end may
be reached at any step, for all labels of a batch by two products with a pool of strong rows.

Example: one input in [-1, 1], rows 1, -1 and 0 with c = (0, 0, -1). For the last label p = (1/2, 1/2) gives g = 0,
and 0 - (-1) - 0 = 1 > 0: it never wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.float_units import UNIT
from gonio.core.parallel import spans

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from gonio.core.inputs import Problem

FEW, WIDE = 64, 256  # open labels up to which, and widths below which, the cutting planes are done sooner
POOL = 3000  # rows that the rivals are taken from at first
BATCH = 256
STEPS = 300
PULL = 0.375  # how much of |v|_1 counts for a place in the pool
WARM, HALVED = 3, 40  # tau to begin with, in typical scores at random corners; steps in which it halves
STEP, MOMENTUM = 0.03, 0.95
LEAST = (3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6)  # shares up to which rivals are left out of a proof, tried in turn
OUTWARDS = 4  # how far out infinite sides are taken, in what makes up for the constants
LARGE = 1e18  # scores that float32 holds with room to spare
CLEAR = 1e-7  # of the largest score: what a mean of rivals must be above the label by


@dataclass(frozen=True, eq=False)
class Climbed:
    """What one batch has come to.

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
        size = np.abs(self.rows) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(self.constants)
        self.rounding = float((low.size + 3) * UNIT * 2.1 * size.max(initial=0.0)) + 1e-300  # of two scores in float64
        strongest = np.argsort(-(self.shifted + PULL * reach), kind="stable")[:POOL]
        self.strongest = np.sort(strongest)

    @staticmethod
    def possible(problem: Problem) -> bool:
        """Whether the inputs are a wide box, or one with infinite sides, and the numbers fit float32."""
        if problem.shape not in ("box", "orthant") or problem.V.shape[1] < WIDE:
            return False
        low, high, _ = _finite_sides(problem)
        most = np.maximum(np.abs(low), np.abs(high)).max(initial=0.0)
        return bool(np.abs(problem.V).max(initial=0.0) * max(1.0, most) * problem.V.shape[1] < LARGE)

    def climb(self, labels: Int[np.ndarray, " labels"]) -> Climbed:
        """Let all labels climb together until each is settled or the steps are used up."""
        climb = _Climb(self, labels)
        for step in range(STEPS):
            climb.look(step)
            if not len(climb.open):
                break
            climb.step(step)
        return climb.settled()

    def leads(
        self, labels: np.ndarray, z: np.ndarray
    ) -> tuple[Float[np.ndarray, " labels"], Int[np.ndarray, " labels"]]:
        """Proven lower bounds of the leads of labels, each at its own input, and the strongest rivals there."""
        out, rivals = np.empty(len(labels)), np.empty(len(labels), np.int64)
        for s in spans(len(labels), BATCH):
            part = slice(*s)
            scores = z[part] @ self.rows.T + self.constants
            at = np.arange(len(scores)), labels[part]
            own = scores[at].copy()
            scores[at] = -np.inf
            rivals[part] = scores.argmax(axis=1)
            out[part] = own - scores[at[0], rivals[part]] - self.rounding
        return out, rivals

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


class _Climb:
    """One batch on its way; rows outside of the pool that beat a label join it."""

    def __init__(self, box: BoxAscent, labels: np.ndarray) -> None:
        self.box, self.labels = box, labels
        self.open = np.arange(len(labels))
        self.u = np.sign(box.scaled[labels]) * np.float32(0.5)
        self.before = self.u.copy()
        self.pool = box.strongest
        self.rows, self.constants = box.scaled[self.pool], box.shifted[self.pool]
        self.shares = np.zeros((len(labels), len(self.pool)), np.float32)  # summed over steps, the later ones more
        self.slope, self.sums = np.zeros_like(self.u), np.zeros_like(self.u)
        self.base, self.total = np.zeros(len(labels), np.float32), np.float32(0.0)
        typical = np.median(np.abs(box.scaled).sum(axis=1)) / np.sqrt(box.scaled.shape[1])
        self.tau = WARM * float(typical) or 1.0
        self.won: dict[int, tuple[np.ndarray, float]] = {}
        self.never: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def look(self, step: int) -> None:
        """The scores where each label is now: settle those that win there, and those below a mean of rivals."""
        labels = self.labels[self.open]
        target, level = self.box.scaled[labels], self.box.shifted[labels]
        scores = self.u @ self.rows.T + self.constants
        scores[labels[:, None] == self.pool] = -np.inf
        top = scores.max(axis=1)
        beaten_by = self._take_wins(np.flatnonzero(np.einsum("ij,ij->i", self.u, target) + level > top))
        shares = _soft_shares(scores, top, self.tau * 0.5 ** (step / HALVED))
        self.slope, base = shares @ self.rows - target, shares @ self.constants - level
        weight = np.float32((step + 1) ** 2)
        self.total += weight
        self.shares += weight * shares
        self.sums += weight * self.slope
        self.base += weight * base
        self._take_means(shares, base - np.abs(self.slope).sum(axis=1))
        self._take_means(self.shares, (self.base - np.abs(self.sums).sum(axis=1)) / self.total)
        self._keep([k for k, a in enumerate(self.open) if a not in self.won and a not in self.never])
        self._join(beaten_by)

    def step(self, step: int) -> None:
        """Up the slope, and on in the direction of the last step."""
        length = np.linalg.norm(self.slope, axis=1, keepdims=True)
        far = STEP * np.sqrt(self.u.shape[1]) / np.sqrt(step + 1)
        moved = np.clip(self.u - np.float32(far) * self.slope / np.maximum(length, np.float32(1e-30)), -1, 1)
        on = np.float32(MOMENTUM * step / (step + 3))
        self.u, self.before = np.clip(moved + on * (moved - self.before), -1, 1), moved

    def _take_wins(self, places: np.ndarray) -> Int[np.ndarray, " rivals"]:
        """Those above the pool are held against all rows; the rows that beat them."""
        box = self.box
        z = np.clip(box.middle + box.half * self.u[places], box.low, box.high)
        leads, rivals = box.leads(self.labels[self.open[places]], z)
        for k in np.flatnonzero(leads > 0).tolist():
            self.won[int(self.open[places[k]])] = z[k], float(leads[k])
        return np.unique(rivals[leads <= 0])

    def _take_means(self, shares: np.ndarray, above: np.ndarray) -> None:
        """Those below the mean of rivals with these shares, once it is looked at in float64."""
        if not self.box.whole:
            return
        for k in np.flatnonzero(above > CLEAR * self.box.largest).tolist():
            a = int(self.open[k])
            if a not in self.won and a not in self.never:
                found = self.box.mean_above(int(self.labels[a]), self.pool, shares[k] / shares[k].sum())
                if found is not None:
                    self.never[a] = found

    def _keep(self, left: list[int]) -> None:
        """Go on with these only."""
        for name in ("open", "u", "before", "shares", "slope", "sums", "base"):
            setattr(self, name, getattr(self, name)[left])

    def _join(self, rivals: np.ndarray) -> None:
        """Let more rows into the pool."""
        new = np.setdiff1d(rivals, self.pool)
        if len(new):
            self.pool = np.concatenate([self.pool, new])
            self.rows = np.vstack([self.rows, self.box.scaled[new]])
            self.constants = np.concatenate([self.constants, self.box.shifted[new]])
            self.shares = np.hstack([self.shares, np.zeros((len(self.shares), len(new)), np.float32)])

    def settled(self) -> Climbed:
        won, never = sorted(self.won), sorted(self.never)
        inputs = np.array([self.won[a][0] for a in won]).reshape(len(won), len(self.box.low))
        margins = np.array([self.won[a][1] for a in won])
        return Climbed(self.labels[won], inputs, margins, self.labels[never], tuple(self.never[a] for a in never))


def _soft_shares(scores: np.ndarray, top: np.ndarray, tau: float) -> Float[np.ndarray, "labels pool"]:
    """exp(score / tau) by rows, in the place of the scores, at sum 1."""
    scores -= top[:, None]
    scores /= np.float32(tau)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def climb_in_batches(problem: Problem, labels: Int[np.ndarray, " open"], workers: BlasPool) -> list[Climbed]:
    """All labels, some to each thread; batches hang on the labels alone."""
    box = BoxAscent(problem)
    return workers.run(box.climb, [labels[slice(*s)] for s in spans(len(labels), BATCH)])
