"""Cutting planes for many labels at once (stages 2, 4 and 5): each is separated from the hull of its rivals, or in it.

Each target keeps the nearest point of a growing inner hull (`cutting_round`); the residual is the next direction to
try. A round is one float32 product of all directions with all rivals, then one small projection for each target:

    no rival beats the label in its direction          it wins there (re-checked in float64)
    the combination comes within tau r0/(1 - tau)       it never wins (by the ball of `inscribed`)
    otherwise                                           the strongest rivals become columns
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.directions import unit
from gonio.search.cone_projection import FEWEST, MOST, nearest_in_cone
from gonio.search.cutting_round import (
    NEVER,
    OPEN,
    STALLED,
    WINS,
    ColumnArrays,
    RoundingBounds,
    TrialArrays,
    cutting_round,
)
from gonio.search.rival_scan import RivalScan
from gonio.search.targets import Targets
from gonio.search.whitening import WhitenedRows
from gonio.search.winning_inputs import store_inputs

FIRST = 2  # the stage of the first cuts
FIRST_RIVALS = 48  # taken in the first round, where long rows are asked first
NARROW_ROUNDS = 4  # after so many rounds more rivals are taken in each


class Cutter:
    """The rounds of a batch of targets."""

    def __init__(
        self,
        space: WhitenedRows,
        targets: Targets,
        workers: BlasPool,
        after: Callable[[], None],
        long_rows: np.ndarray | None,
    ):
        self.space, self.targets, self.workers, self.after = space, targets, workers, after
        self.scan = RivalScan(space, workers, after, long_rows)
        self.rays = space.rays  # grows by need where the cone is curved
        self.ray_drift = space.ray_drift(space.cone.rays)

    def rounds(self, aims: np.ndarray, tolerance: float, stage: int, width: int, most: int) -> None:
        """At most `most` rounds towards `aims` for the open targets, `width` rivals each; the stalled are reopened."""
        T = self.targets
        for done in range(most):
            active = T.open
            if not len(active):
                break
            trials = self._trials(active, stage, width, done)
            self._run_round(trials, aims, tolerance, first_round=done == 0)
            store_inputs(self.space, T, active[T.status[active] == WINS], self.workers)
            T.stage[active[(T.status[active] == WINS) | (T.status[active] == NEVER)]] = stage
            self.after()
        T.status[T.status == STALLED] = OPEN

    def first_tries(self, stage: int) -> None:
        """Settle the targets that win in the direction they begin with: most do, and need no projection."""
        T, active = self.targets, self.targets.open
        X = unit(T.directions[active])
        if FEWEST <= len(self.rays) <= MOST and not self.space.cone.curved:
            X = unit(nearest_in_cone(X, self.rays, self.workers)[0])
        X = self._in_cone(X)
        X32, floor = X.astype(np.float32), self._floor(X, active)
        if self.scan.long_rows is not None:
            count = self.scan.among_long(X32, floor, T.labels[active], 1, neighbours=False)[1]
        else:
            count = self.scan.among_all(X32, floor, T.labels[active], 1)[1]
        won = active[count == 0]
        T.directions[won], T.margin[won] = X[count == 0], self.space.coarse - self.space.fine
        T.status[won], T.stage[won] = WINS, stage
        store_inputs(self.space, T, won, self.workers)
        T.status[T.status == STALLED] = OPEN
        self.after()

    def _floor(self, X: np.ndarray, active: np.ndarray) -> np.ndarray:
        """The scores of the targets in their directions, less what float32 can be wrong by."""
        own = np.einsum("ij,ij->i", X, self.targets.points[active])
        return (own - 2 * self.space.coarse).astype(np.float32)

    def _trials(self, active: np.ndarray, stage: int, width: int, done: int) -> TrialArrays:
        """The directions of this round and the rivals found in them."""
        residuals, rounding = unit(self.targets.directions[active]), np.zeros(len(active))
        if self.targets.pairs:
            residuals, rounding = self._orthogonal_to_pairs(active, residuals)
        extra_ray = self._curved_rays(residuals)
        directions = self._in_cone(residuals)
        rivals, count = self._rivals(active, directions, stage, width, done)
        return TrialArrays(active, residuals, directions, rounding, extra_ray, rivals, count)

    def _run_round(self, trials: TrialArrays, aims: np.ndarray, tolerance: float, first_round: bool) -> None:
        """The compiled round, some targets to each thread."""
        T, space = self.targets, self.space
        active, room = trials.number, trials.rivals.shape[1]
        # A round adds the rivals that fit; rays come in besides, up to the whole rank.
        new = np.full(len(active), space.rank + 1) if len(self.rays) else np.minimum(trials.rival_count, room)
        factors, targets = T.factor_memory(active, new), T.arrays(aims)
        columns = ColumnArrays(space.V, self.rays, len(space.rays), space.kappa)
        bounds = RoundingBounds(space.coarse, space.fine, self.ray_drift, tolerance)

        cutting_round(trials, targets, columns, factors, bounds, first_round, self.workers, self.after)
        T.swap_factors()

    def _orthogonal_to_pairs(self, active: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions made orthogonal to the differences of their pairs, and what of a margin the rounding may cost.

        If r.(v_a - v_b) = e, then r - e (v_a - v_b)/gap^2 ties exactly, and no score there moves by more than
        e |v|/gap: a margin above e (1 + 2 largest/gap) outlives it.
        """
        T, space = self.targets, self.space
        U = T.across[active]
        for _ in range(2):
            X = X - np.einsum("ij,ij->i", X, U)[:, None] * U
        X = unit(X)
        difference = space.V[T.labels[active, 0]] - space.V[T.labels[active, 1]]
        defect = np.abs(np.einsum("ij,ij->i", X, difference)) + space.fine
        gap = T.row_distance[active]
        return X, np.where(gap > 0, defect * (1 + 2 * space.largest / np.where(gap > 0, gap, 1)), 0.0)

    def _curved_rays(self, X: np.ndarray) -> np.ndarray:
        """For each direction the number of the ray made for it, -1 where it needs none."""
        extra = np.full(len(X), -1)
        if self.space.cone.curved:
            out, rays = self.space.cone.curved_rays(X @ self.space.L)
            extra[out] = len(self.rays) + np.arange(len(out))
            self.rays = np.vstack([self.rays, self.space.whitened(rays)])
            self.ray_drift = max(self.ray_drift, self.space.ray_drift(rays))
        return extra

    def _in_cone(self, X: np.ndarray) -> np.ndarray:
        """The directions to try: those of the residuals, brought into the cone."""
        space = self.space
        if not space.shaped or self.targets.pairs:
            return X
        Y = space.cone.into(X @ space.L) @ space.back
        length = np.linalg.norm(Y, axis=1, keepdims=True)
        return np.where(length > 0, Y / np.where(length > 0, length, 1), X)

    def _rivals(
        self, active: np.ndarray, X: np.ndarray, stage: int, width: int, done: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The strongest rivals of each direction among those above, or too near to tell, and how many there are."""
        T, space = self.targets, self.space
        X32, own, floor = X.astype(np.float32), T.labels[active], self._floor(X, active)
        room = max(width, min(space.rank // 4, 128)) if done >= NARROW_ROUNDS else width
        # Most directions lose to a long row at first; later, the rivals that matter are found among all rows only.
        if self.scan.long_rows is not None and stage == FIRST:
            # In the first round neighbours come along: they will be needed soon.
            room = room if done else FIRST_RIVALS
            return self.scan.among_long(X32, floor, own, room, neighbours=not done)
        # Most pairs tie at the first try, and then the leading coordinates show it.
        first_try_of_pairs = T.pairs and not done and stage == FIRST
        return self.scan.among_all(X32, floor, own, room, by_leading=first_try_of_pairs)
