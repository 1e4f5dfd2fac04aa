"""The rows of a problem over a box as climbing wants them: centred, and the box scaled to [-1, 1]^d.

With z = middle + half * u, the score of a row is  scaled_j.u + shifted_j  up to what all rows share. Of a box with
infinite sides a finite part is looked at: who wins there wins, and of who never does nothing is said.

Example: one input in [0, 4], rows 1 and 3 without constants: middle and half are 2, the mean row is 2, so the scaled
rows are -2 and 2 and the shifted constants -2 and 2; at u = -1, where z = 0, both have score 0.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gonio.core import byte_products
from gonio.core.byte_rows import ByteRows, rounded, worthwhile
from gonio.core.float_units import UNIT, UNIT32
from gonio.core.parallel import in_threads, spans
from gonio.proofs.row_maxima import FEWEST, row_max_of_bytes

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from gonio.core.inputs import Problem

PULL = 0.375  # how much of |v|_1 counts for a place in the pool
WARM = 0.7  # the smoothing to begin with, in typical scores at random corners
LEAST = (3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6)  # shares up to which rivals are left out of a proof, tried in turn
OUTWARDS = 4  # how far out infinite sides are taken, in what makes up for the constants
SLIGHT = 1e-3  # of the typical spread of a coordinate: less counts as this
HALFWAY = 0.5  # how far from where the climb begins to the sides a label's own direction goes
RIVALS = 8  # that a label which does not lead makes known
LARGE = 1e18  # scores that float32 holds with room to spare
PIECE = 512  # rows that are scaled at a time
CLEAR = 1e-7  # of the largest score: what a mean of rivals must be above the label by


class ScaledBox:
    """The centred rows of a problem over a box, scaled to [-1, 1]^d; `by_strength` has the strongest of them first."""

    def __init__(self, problem: Problem) -> None:
        low, high, self.whole = _finite_sides(problem)
        self.low, self.high = low, high
        self.middle, self.half = low / 2 + high / 2, high / 2 - low / 2
        self.rows, self.constants = problem.V, np.asarray(problem.c, np.float64)
        n, d = problem.V.shape
        self.scaled = np.empty((n, d), np.float32)
        far, mean = np.maximum(np.abs(low), np.abs(high)), problem.V.mean(axis=0, dtype=np.float64)
        moved, size, reach, square = np.empty((4, n))

        def scale(s: tuple[int, int]) -> np.ndarray:
            part = slice(*s)
            rows = problem.V[part].astype(np.float64)
            size[part] = np.abs(rows) @ far
            rows -= mean
            moved[part] = rows @ self.middle
            rows *= self.half
            reach[part], square[part] = np.abs(rows).sum(axis=1), np.einsum("ij,ij->i", rows, rows)
            self.scaled[part] = rows
            return np.einsum("ij,ij->j", rows, rows)

        spread = np.sqrt(sum(in_threads(scale, spans(n, PIECE))) / n)
        # Where rows differ little, a label is told from others only far out: to go there is as quick as elsewhere.
        usual = float(np.median(spread[spread > 0])) if spread.any() else 1.0
        self.pace = (1 / np.maximum(spread / usual, SLIGHT) ** 2).astype(np.float32)
        self.shifted = (self.constants + moved).astype(np.float32)
        self.largest = float((reach + np.abs(self.shifted)).max(initial=0.0))
        typical = np.median(reach) / np.sqrt(d)
        self.tau = WARM * float(typical) or 1.0
        most = float((size + np.abs(self.constants)).max(initial=0.0))
        self.rounding = (d + 3) * UNIT * 2.1 * most + 1e-300  # of two scores in float64
        self.longest = float(np.sqrt(square.max(initial=0.0))) * (1 + 1e-5)
        highest = float(np.abs(self.shifted).max(initial=0.0))
        # Of two scores in float32, both sides rounded first, for |u| = 1 at most.
        self.rounding32 = 2.1 * (d + 16) * UNIT32 * (self.longest + highest) + 1e-30
        self.by_strength = np.argsort(-(self.shifted + PULL * reach), kind="stable")
        # Infinite sides are climbed from z = 0, finite ones from the middle.
        least, most = _sides(problem)
        finite = np.isfinite(least) & np.isfinite(most)
        nearest_to_zero = np.clip(-self.middle / np.where(self.half > 0, self.half, 1), -1, 1)
        self.begin = np.where(finite, 0.0, nearest_to_zero).astype(np.float32)

    @staticmethod
    def possible(problem: Problem) -> bool:
        """Whether the inputs are a box, of whatever sides, and the numbers fit float32."""
        if problem.shape not in ("box", "orthant"):
            return False
        low, high, _ = _finite_sides(problem)
        most = np.maximum(np.abs(low), np.abs(high)).max(initial=0.0)
        return bool(np.abs(problem.V).max(initial=0.0) * max(1.0, most) * problem.V.shape[1] < LARGE)

    def _row(self, which: np.ndarray) -> Float[np.ndarray, "... dim"]:
        return self.rows[which].astype(np.float64)

    def starts(self, labels: Int[np.ndarray, " labels"]) -> Float[np.ndarray, "labels dim"]:
        """Where labels begin to climb: as far in their own direction as brings them half-way to the sides."""
        u = self.scaled[labels] * self.pace
        size = np.sqrt(np.einsum("ij,ij->i", u, u) / u.shape[1])
        u *= np.float32(HALFWAY) / np.maximum(size, np.float32(1e-30))[:, None]
        return np.clip(self.begin + u * (1 + np.abs(self.begin)), -1, 1)

    def leads(
        self,
        labels: Int[np.ndarray, " labels"],
        u: Float[np.ndarray, "labels dim"],
        top: Float[np.ndarray, " labels"],
        asked: Bool[np.ndarray, " rows"],
    ) -> tuple[Float[np.ndarray, "labels dim"], Float[np.ndarray, " labels"], Int[np.ndarray, " some"]]:
        """The inputs that places in the scaled box stand for, proven lower bounds of the leads of labels there, each at

        its own, and the strongest rivals of those that do not lead. `top` are the highest scores, in float32, of the
        rivals that were asked already.
        """
        z = np.clip(self.middle + self.half * u, self.low, self.high)
        if self.bytes is None:
            return z, *self._leads_by_floats(labels, u, z)
        return z, *self._leads_by_bytes(labels, u, z, top, asked)

    @cached_property
    def bytes(self) -> ByteRows | None:
        """The scaled rows in bytes, where all of them can be asked about sooner so."""
        n, d = self.scaled.shape
        return ByteRows.of(self.scaled) if worthwhile(n, n, d) else None

    def _leads_by_bytes(
        self, labels: np.ndarray, u: np.ndarray, z: np.ndarray, top: np.ndarray, asked: np.ndarray
    ) -> tuple[Float[np.ndarray, " labels"], Int[np.ndarray, " some"]]:
        """As by floats, which are asked where bytes leave a doubt about a rival that was not asked yet."""
        rows, n = self.bytes, len(self.scaled)
        assert rows is not None
        numbers, scale, rest, length = rounded(u)
        scratch = np.empty(byte_products.room(len(u), n), np.int32)
        S = byte_products.products(numbers, rows.packed, 0, n, numbers.shape[1], scratch)
        S[np.arange(len(u)), labels] = FEWEST
        # A score is at most so much more than in bytes: short rows, of which there are most, are hardly rounded.
        more = rest.max(initial=0) * rows.length + (length + rest).max(initial=0) * rows.rest
        highest = np.where(asked, -LARGE, self.shifted + 1.001 * more).astype(np.float32)
        others = np.empty(len(u), np.float32)
        row_max_of_bytes(S, rows.scale.astype(np.float32), (1 / scale).astype(np.float32), highest, others)
        own = np.einsum("ij,ij->i", u, self.scaled[labels], dtype=np.float64) + self.shifted[labels]
        leads = own - np.maximum(others * scale, top) - self._wrong(u)
        doubt = np.flatnonzero((leads <= 0) & (own - top > self._wrong(u)) & (leads > -2.1 * more.max()))
        for k in doubt.tolist():
            near = np.flatnonzero(S[k, :n] * rows.scale + highest / scale[k] >= own[k] / scale[k] * (1 - 1e-5))
            beside = (own - top - self._wrong(u))[k]
            mine = self._row(labels[k]) @ z[k] + self.constants[labels[k]]
            rivals = self._row(near) @ z[k] + self.constants[near]
            leads[k] = min(beside, mine - rivals.max(initial=-np.inf) - self.rounding)
        behind = ~(leads > 0)
        return leads, _strongest(S[behind, :n] * rows.scale + self.shifted / scale[behind, None])

    def _leads_by_floats(
        self, labels: np.ndarray, u: np.ndarray, z: np.ndarray
    ) -> tuple[Float[np.ndarray, " labels"], Int[np.ndarray, " some"]]:
        """Lower bounds of the leads, and the strongest rivals of labels that do not lead."""
        at = np.arange(len(labels)), labels
        scores = u @ self.scaled.T
        scores += self.shifted
        own = scores[at].astype(np.float64)
        scores[at] = -np.inf
        wrong = self._wrong(u)
        leads = own - scores.max(axis=1) - wrong
        doubt = np.flatnonzero((leads <= 0) & (leads > -2 * wrong))
        if len(doubt):
            exact = z[doubt] @ self.rows.astype(np.float64).T + self.constants
            some = np.arange(len(doubt)), labels[doubt]
            mine = exact[some].copy()
            exact[some] = -np.inf
            leads[doubt] = mine - exact.max(axis=1) - self.rounding
        return leads, _strongest(scores[~(leads > 0)])

    def _wrong(self, u: np.ndarray) -> Float[np.ndarray, " places"]:
        """What rounding to float32 and in it can do to the difference of two scores."""
        return self.rounding32 * (1 + np.linalg.norm(u, axis=1)) + 2 * self.rounding

    def means_above(
        self,
        labels: Int[np.ndarray, " labels"],
        pool: Int[np.ndarray, " pool"],
        shares: Float[np.ndarray, "labels pool"],
    ) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """The places of the labels that the mean of the pool with their shares is above in the whole box, with its

        rivals and weights.
        """
        found, left = {}, np.arange(len(labels))
        shares = shares / shares.sum(axis=1, keepdims=True)
        for least in LEAST:  # the fewer rivals, the sooner others have checked it
            if not len(left):
                break
            used = shares[left] > least
            some = np.flatnonzero(used.any(axis=0))
            weights = np.where(used, shares[left], 0)[:, some].astype(np.float64)
            weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
            away = weights @ self._row(pool[some]) - self._row(labels[left])
            above = weights @ self.constants[pool[some]] - self.constants[labels[left]] + away @ self.middle
            good = (above - np.abs(away) @ self.half > CLEAR * self.largest) & used.any(axis=1)
            for k, w in zip(left[good].tolist(), weights[good], strict=True):
                found[k] = pool[some[w > 0]], w[w > 0]
            left = left[~good]
        return found


def _strongest(scores: np.ndarray) -> Int[np.ndarray, " some"]:
    """The columns with the highest scores of all rows together, a few of each."""
    several = min(RIVALS, scores.shape[1]) - 1
    return np.unique(np.argpartition(-scores, several, axis=1)[:, : several + 1])


def _sides(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper sides of the box, an orthant being one."""
    d = problem.V.shape[1]
    low = np.zeros(d) if problem.low is None else np.asarray(problem.low, np.float64)
    return low, np.full(d, np.inf) if problem.high is None else np.asarray(problem.high, np.float64)


def is_bounded(problem: Problem) -> bool:
    """Whether all sides of the box are finite, if the inputs are one."""
    if problem.shape not in ("box", "orthant"):
        return True
    low, high = _sides(problem)
    return bool(np.isfinite(low).all() and np.isfinite(high).all())


def _finite_sides(problem: Problem) -> tuple[np.ndarray, np.ndarray, bool]:
    """The sides of the box, infinite ones so far out that rows weigh more than constants; whether none was."""
    low, high = _sides(problem)
    if is_bounded(problem):
        return low, high, True
    with np.errstate(all="ignore"):  # beyond float32 nothing is climbed
        spread = problem.V.std(axis=0, dtype=np.promote_types(problem.V.dtype, np.float32)).astype(np.float64)
    size = float(np.sqrt(np.mean(np.square(spread)))) or 1.0
    far = max(1.0, OUTWARDS * float(np.ptp(problem.c)) / (size * np.sqrt(len(low))))
    away = far * size / np.maximum(spread, SLIGHT * size)  # in units of the spread: as far in every coordinate
    low = np.where(np.isfinite(low), low, np.minimum(high, 0.0) - away)
    return low, np.where(np.isfinite(high), high, np.maximum(low, 0.0) + away), False
