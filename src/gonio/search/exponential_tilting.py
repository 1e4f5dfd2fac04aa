"""Exponential tilting (stage 3): positive weights of the rows are tilted until their mean is the label.

    w_j ~ p_j exp(theta.v_j),   m(theta) = sum w_j v_j,   theta <- theta + alpha Cov_p^-1 (aim - m(theta))

m runs over the whole inside of the hull of the chosen rows, the weights are positive by construction, and near the
middle the step is Newton's. Meant for labels deep inside the hull: an iteration is two small products for all labels
at once, where an active set would have to gather hundreds of columns one by one. Only "inside" is ever concluded; what
is not shown to be inside goes on to the cutting planes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gonio.core.blas_pool import BlasPool
from gonio.core.float_units import UNIT
from gonio.core.parallel import spans
from gonio.search.cutting_round import NEVER
from gonio.search.inscribed import Ball
from gonio.search.targets import Targets
from gonio.search.whitening import WhitenedRows

WIDE = 100  # dimensions from which gathering a support column by column costs more than tilting
PUSH = 0.05  # tau, by which the aims are pushed out
PIECE = 128  # targets that are tilted together
PACE_EVERY = 3  # iterations over which the pace is measured: those that would not arrive in time are given up
NEARLY = 0.9  # of the tolerance: nearer than this in float32 is looked at in float64


@njit(nogil=True, cache=True, fastmath=True)
def _weigh(S, base, skip):
    """S_ij <- base_j exp(S_ij - max_j S_ij), 0 for the two columns skip_i; the row sums."""
    m, n = S.shape
    total = np.empty(m, np.float32)
    for i in range(m):
        top = np.float32(-3e38)
        for j in range(n):
            top = S[i, j] if S[i, j] > top else top
        for j in range(n):
            S[i, j] = base[j] * np.exp(S[i, j] - top)
        for j in skip[i]:
            if j >= 0:
                S[i, j] = 0
        t = np.float32(0)
        for j in range(n):
            t += S[i, j]
        total[i] = t
    return total


class Tilter:
    """The rows to weigh, their covariance, and the ball within which a residual may be left (`inscribed`)."""

    def __init__(self, space: WhitenedRows, ball: Ball, pool: np.ndarray, workers: BlasPool) -> None:
        self.space, self.ball, self.pool, self.workers = space, ball, np.sort(pool), workers
        self.A = space.V[self.pool]
        self.A32 = self.A.astype(np.float32)
        p = 1 / np.maximum(np.einsum("ij,ij->i", self.A, self.A), 1e-3 * space.rank)
        p = p / p.sum()
        self.p32 = p.astype(np.float32)
        X = self.A - p @ self.A
        C = (X * p[:, None]).T @ X
        self.M = np.linalg.pinv(C, hermitian=True).astype(np.float32)
        self.aim_tol = ball.tolerance(PUSH)
        self.rounding = (len(pool) + 8) * UNIT * 2 * space.largest + space.fine

    def settle(self, T: Targets, stage: int, most: int) -> None:
        """Mark those of the open targets that lie inside; of a pair it is enough that the nearer row does."""
        if not self.aim_tol > 4 * self.rounding:
            return
        act = T.open
        piece = max(8, min(PIECE, -(-len(act) // 4)))  # whatever the number of threads
        inside = self.workers.run(lambda s: self._inside(T, act[slice(*s)], most), spans(len(act), piece))
        for found in inside:
            T.status[found] = NEVER
            T.stage[found] = stage
            T.size[found] = 0  # the weights lie on the whole pool: `support` finds a few when asked

    def _inside(self, T: Targets, some: np.ndarray, most: int) -> np.ndarray:
        """Those of some targets for which positive weights were found whose mean is near enough to the aim."""
        both = T.labels[some]
        nearer = both[np.arange(len(some)), self.space.norms[both].argmin(axis=1)]
        aims = self.ball.aim(self.space.V[nearer], PUSH)
        at = np.minimum(np.searchsorted(self.pool, both), len(self.pool) - 1)
        own = np.where(self.pool[at] == both, at, -1)
        theta = np.zeros(aims.shape, np.float32)
        alpha = np.ones((len(some), 1), np.float32)
        here, inside = np.arange(len(some)), []
        residual = step = np.zeros_like(theta)
        earlier = np.full(len(some), np.inf)  # distances when the pace was last measured
        for k in range(most):
            weights, mean = self._tilted_mean(theta, own[here])
            fresh = aims[here].astype(np.float32) - mean
            distance = np.linalg.norm(fresh, axis=1)
            inside.append(here[self._confirmed(weights, aims[here], distance)])
            if k:
                alpha = _step_length(alpha, step, residual, fresh)
            going = (distance >= NEARLY * self.aim_tol) & np.isfinite(distance)
            if k % PACE_EVERY == 0:
                if k:
                    going &= self._arrives(distance, earlier[here], most - k)
                earlier[here] = distance
            here, theta, alpha, residual = here[going], theta[going], alpha[going], fresh[going]
            if not len(here):
                break
            step = alpha * (residual @ self.M)
            theta = theta + step
        return some[np.concatenate(inside)] if inside else some[:0]

    def _tilted_mean(self, theta: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights p_j exp(theta.v_j), up to a factor for each target and 0 for its own rows, and their mean row."""
        n = len(self.pool)
        S = self.workers.buffer("weights", PIECE * n)[: len(theta) * n].reshape(len(theta), n)
        np.matmul(theta, self.A32.T, out=S)
        total = _weigh(S, self.p32, own)
        return S, (S @ self.A32) / total[:, None]

    def _confirmed(self, weights: np.ndarray, aims: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Which means are near enough to their aims in float64 too, of those that are in float32."""
        near = np.flatnonzero(distance < NEARLY * self.aim_tol)
        if not len(near):
            return near
        w = weights[near].astype(np.float64)
        exact = (w @ self.A) / w.sum(axis=1, keepdims=True) - aims[near]
        return near[np.linalg.norm(exact, axis=1) + self.rounding <= self.aim_tol]

    def _arrives(self, distance: np.ndarray, earlier: np.ndarray, left: int) -> np.ndarray:
        """Whether the distance, shrinking at the mean pace of the last iterations, gets below the tolerance in time."""
        pace = (distance / earlier) ** (1 / PACE_EVERY)
        return distance * pace**left < self.aim_tol


def _step_length(alpha: np.ndarray, step: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Barzilai and Borwein's next alpha, in the metric of the covariance: alpha s.e / s.(e - e'), s the last step."""
    drop = np.einsum("ij,ij->i", step, before - after)
    longer = alpha[:, 0] * np.einsum("ij,ij->i", step, before) / np.maximum(drop, 1e-30)
    return np.clip(longer, 0.1, 20)[:, None].astype(np.float32)
