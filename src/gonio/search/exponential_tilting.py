"""Stage 3: labels deep inside the hull, by tilting positive weights until their mean is the label.

    w_j ~ p_j exp(theta.v_j),   m(theta) = sum w_j v_j,   theta <- theta + alpha Cov_p^-1 (aim - m(theta))

m runs over the whole inside of the hull of the chosen rows, the weights are positive by construction, and near the
middle the step is Newton's. Two small products an iteration for all labels at once, where an active set would have to
gather hundreds of columns one by one. Only "inside" is ever concluded; the rest goes on to the cuts.
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

WIDE = 100  # dimensions from which gathering a support column by column is dearer than tilting
PUSH = 0.05
PIECE = 128


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
    """The rows to weigh, with their own covariance, and the ball that forgives the last residual."""

    def __init__(self, space: WhitenedRows, ball: Ball, pool: np.ndarray, workers: BlasPool) -> None:
        self.space, self.ball, self.pool, self.workers = space, ball, np.sort(pool), workers
        self.A = space.V[self.pool]
        self.A32 = self.A.astype(np.float32)
        p = 1 / np.maximum(np.einsum("ij,ij->i", self.A, self.A), 1e-3 * space.rank)
        self.p = p / p.sum()
        X = self.A - self.p @ self.A
        C = (X * self.p[:, None]).T @ X
        self.M = np.linalg.pinv(C, hermitian=True).astype(np.float32)
        self.aim_tol = ball.tolerance(PUSH)
        self.rounding = (len(pool) + 8) * UNIT * 2 * space.largest + space.fine

    def settle(self, T: Targets, stage: int, most: int) -> None:
        """Mark those of the open targets that lie inside; of a pair it is enough that the nearer row does."""
        if not self.aim_tol > 4 * self.rounding:
            return
        act = T.open
        piece = max(8, min(PIECE, -(-len(act) // self.workers.size)))
        inside = self.workers.run(lambda s: self._some(T, act[slice(*s)], most), spans(len(act), piece))
        for found in inside:
            T.status[found] = NEVER
            T.stage[found] = stage
            T.size[found] = 0  # the weights lie on the whole pool: `support` finds a few when asked

    def _some(self, T: Targets, act: np.ndarray, most: int) -> np.ndarray:
        both = T.labels[act]
        nearer = both[np.arange(len(act)), self.space.norms[both].argmin(axis=1)]
        aims = self.ball.aim(self.space.V[nearer], PUSH)
        N = len(self.pool)
        at = np.minimum(np.searchsorted(self.pool, both), N - 1)
        own = np.where(self.pool[at] == both, at, -1)
        base = self.p.astype(np.float32)
        theta = np.zeros(aims.shape, np.float32)
        alpha = np.ones((len(act), 1), np.float32)
        here, inside = np.arange(len(act)), []
        e = s = np.zeros_like(theta)
        shortest = np.full(len(act), np.inf)
        for k in range(most):
            S = self.workers.buffer("weights", PIECE * N)[: len(here) * N].reshape(len(here), N)
            np.matmul(theta, self.A32.T, out=S)
            total = _weigh(S, base, own[here])
            mean = (S @ self.A32) / total[:, None]
            fresh = aims[here].astype(np.float32) - mean
            left = np.linalg.norm(fresh, axis=1)
            near = np.flatnonzero(left < 0.9 * self.aim_tol)
            if len(near):
                w = S[near].astype(np.float64)
                exact = (w @ self.A) / w.sum(axis=1, keepdims=True) - aims[here[near]]
                inside.append(here[near[np.linalg.norm(exact, axis=1) + self.rounding <= self.aim_tol]])
            if k:  # Barzilai and Borwein's step, in the metric of the covariance
                drop = np.einsum("ij,ij->i", s, e - fresh)
                alpha = np.clip(alpha[:, 0] * np.einsum("ij,ij->i", s, e) / np.maximum(drop, 1e-30), 0.1, 20)[:, None]
                alpha = alpha.astype(np.float32)
            going = (left >= 0.9 * self.aim_tol) & np.isfinite(left)
            if k >= 3:  # too far to arrive at this pace
                pace = (left / shortest[here]) ** (1 / 3) if k % 3 == 0 else np.zeros(len(here))
                going &= left * pace ** (most - k) < self.aim_tol if k % 3 == 0 else True
            if k % 3 == 0:
                shortest[here] = left
            here, theta, alpha, e = here[going], theta[going], alpha[going], fresh[going]
            if not len(here):
                break
            s = alpha * (e @ self.M)
            theta = theta + s
        return act[np.concatenate(inside)] if inside else act[:0]
