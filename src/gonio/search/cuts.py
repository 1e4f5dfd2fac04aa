"""Stages 2, 4 and 5: who separates from the hull, who lies in it, for many labels at once.

For each label the nearest point of a growing inner hull: min |(v+, kappa) - sum lam_j (v_j, kappa)|, lam >= 0. Its
residual is the next direction to try. Each round is one float32 product of all directions with all rivals:

    no rival beats the label in its direction          it wins there (float64 re-check of the near ones)
    the combination comes within tau r0/(1 - tau)       it never wins (the argument of `inscribed`)
    otherwise                                           the strongest rivals become columns
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.directions import unit
from gonio.core.float_units import UNIT, UNIT32
from gonio.core.parallel import spans
from gonio.proofs.own_direction import leading, tail_lengths
from gonio.proofs.row_maxima import row_max_with_tails
from gonio.search.cutting_round import NEVER, OPEN, STALLED, WINS, step
from gonio.search.kernels import strongest
from gonio.search.whitening import WhitenedRows, recheck

FIRST = 2  # the stage of the first cuts
KEPT = 4_000_000  # numbers of inverse factors that are kept from round to round; beyond it they are made anew
GATHER, DEVIATIONS = 48, 1.8  # the first rivals among the hot rows: at most so many, at least so strong


@dataclass(eq=False)
class Targets:
    """Points to separate from all rows but their own (two of them for a tie), and what is known of each."""

    labels: np.ndarray  # the rows a target stands for: (targets, 2), the same twice for a single label
    P: np.ndarray  # the points
    across: np.ndarray  # unit vectors that directions are orthogonal to, for ties; no rows otherwise
    gaps: np.ndarray = field(default_factory=lambda: np.zeros(0))  # how far apart the two rows of a tie are
    R: np.ndarray = field(init=False)  # directions: the next to try, or the one that won
    sets: np.ndarray = field(init=False)
    weights: np.ndarray = field(init=False)
    size: np.ndarray = field(init=False)
    factors: np.ndarray = field(init=False)  # the inverse factors of the sets, one after the other
    spare: np.ndarray = field(init=False)  # where those of the next round go
    place: np.ndarray = field(init=False)  # where in `factors` a target's begins, or -1
    status: np.ndarray = field(init=False)
    stage: np.ndarray = field(init=False)
    margin: np.ndarray = field(init=False)
    gap: np.ndarray = field(init=False)
    z: dict[int, np.ndarray] = field(init=False, default_factory=dict)  # the inputs at which the winners win

    def __post_init__(self) -> None:
        m, rank = self.P.shape
        self.R = self.P.copy()
        self.sets = np.zeros((m, rank + 2), np.int32)
        self.weights = np.zeros((m, rank + 2))
        self.size = np.zeros(m, np.int64)
        self.factors, self.spare = np.zeros(0), np.zeros(0)
        self.place = np.full(m, -1)
        self.status = np.zeros(m, np.int8)
        self.stage = np.zeros(m, np.int8)
        self.margin = np.zeros(m)
        self.gap = np.full(m, np.inf)

    @property
    def open(self) -> np.ndarray:
        return np.flatnonzero(self.status == OPEN)


def _step(act: np.ndarray, args: tuple, chosen: np.ndarray) -> None:
    step(chosen, act, *args)


class Cutter:
    """The rounds of a batch of targets."""

    def __init__(
        self,
        space: WhitenedRows,
        targets: Targets,
        workers: BlasPool,
        after: Callable[[], None],
        hot: np.ndarray | None,
    ):
        self.space, self.targets, self.workers, self.after = space, targets, workers, after
        self.hot = hot
        self.hot_rows = None if hot is None else space.V[hot].astype(np.float32)
        self.rays = space.rays  # grows by need where the cone is curved
        self.fixed = len(space.rays)
        self.ray_drift = space.ray_drift(space.cone.rays)
        self.tails: dict[int, np.ndarray] | None = None

    def rounds(self, aims: np.ndarray, tol: float, stage: int, width: int, most: int, *, wider: bool = True) -> None:
        """At most `most` rounds towards `aims` for the targets that are open; the stalled ones are open again after."""
        T, space = self.targets, self.space
        for done in range(most):
            act = T.open
            if not len(act):
                break
            K = max(width, min(space.rank // 4, 128)) if wider and done >= 4 else width
            hot = self.hot is not None and stage == FIRST  # later, the rivals that matter are found among all rows only
            K = GATHER if hot and not done else K
            length = np.linalg.norm(T.R[act], axis=1, keepdims=True)
            X = T.R[act] / np.where(length > 0, length, 1)
            slack = np.zeros(len(act))
            if len(T.across):
                X, slack = self._across(act, X)
            extra = self._curved(X)
            Y = self._allowed(X)
            # Most pairs tie at the first try, and then the leading coordinates show it.
            tails = self._tails() if len(T.across) and done == 0 and stage == FIRST else None
            found, count = self._rivals(act, Y, K, tails, hot, gather=not done)
            room = self._room(act, np.minimum(count, K))
            begins = T.place[act]
            T.place[:] = -1  # who is left out this time loses his place
            args = (space.V, self.rays, self.fixed, extra, T.P, aims, T.across, X, Y, found, count,
                    T.sets, T.weights, T.size, T.factors, begins, T.spare, room, T.place,
                    T.R, T.status, T.margin, T.gap, slack,
                    space.kappa, space.coarse, space.fine, self.ray_drift, tol, done == 0)  # fmt: skip
            piece = max(1, min(512, len(act) // (4 * self.workers.size) + 1))
            jobs = [np.arange(*s) for s in spans(len(act), piece)]
            self.workers.run(partial(_step, act, args), jobs, self.after)
            T.factors, T.spare = T.spare, T.factors
            won = act[T.status[act] == WINS]
            self._bring_home(won)
            T.stage[act[(T.status[act] == WINS) | (T.status[act] == NEVER)]] = stage
            self.after()
        T.status[T.status == STALLED] = OPEN

    def _room(self, act: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Where in the spare memory each inverse factor of this round goes, -1 where there is no more room."""
        T, rank = self.targets, self.space.rank
        new = np.full(len(act), rank + 1) if len(self.rays) else new  # rays come in besides
        size = np.minimum(T.size[act] + new, rank + 1)
        ends = np.cumsum(size * (size + 1) // 2)
        fit = ends <= KEPT
        if fit.any() and len(T.spare) < ends[fit][-1]:
            T.spare = np.empty(ends[fit][-1])
        return np.where(fit, ends - size * (size + 1) // 2, -1)

    def _across(self, act: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions made orthogonal to the differences of their pairs, and what of a margin the rounding may cost.

        If r.(v_a - v_b) = e, then r - e (v_a - v_b)/gap^2 ties exactly, and no score there moves by more than
        e |v|/gap: a margin above e (1 + 2 largest/gap) outlives it.
        """
        T, space = self.targets, self.space
        U = T.across[act]
        for _ in range(2):
            X = X - np.einsum("ij,ij->i", X, U)[:, None] * U
        X = unit(X)
        apart = space.V[T.labels[act, 0]] - space.V[T.labels[act, 1]]
        defect = np.abs(np.einsum("ij,ij->i", X, apart)) + space.fine
        gap = T.gaps[act]
        return X, np.where(gap > 0, defect * (1 + 2 * space.largest / np.where(gap > 0, gap, 1)), 0.0)

    def _allowed(self, X: np.ndarray) -> np.ndarray:
        """The directions to try: those of the residuals, brought into the cone."""
        space = self.space
        if not space.shaped or len(self.targets.across):
            return X
        Y = space.cone.into(X @ space.L) @ space.back
        length = np.linalg.norm(Y, axis=1, keepdims=True)
        return np.where(length > 0, Y / np.where(length > 0, length, 1), X)

    def _curved(self, X: np.ndarray) -> np.ndarray:
        """For each direction the ray made for it, -1 where it needs none."""
        extra = np.full(len(X), -1)
        if self.space.cone.curved:
            out, rays = self.space.cone.curved_rays(X @ self.space.L)
            extra[out] = len(self.rays) + np.arange(len(out))
            self.rays = np.vstack([self.rays, self.space.whitened(rays)])
            self.ray_drift = max(self.ray_drift, self.space.ray_drift(rays))
        return extra

    def _tails(self) -> dict[int, np.ndarray]:
        if self.tails is None:
            self.tails = tail_lengths(self.space.V32, self.workers)
        return self.tails

    def _rivals(self, act, X, K: int, tails, hot: bool, gather: bool) -> tuple[np.ndarray, np.ndarray]:
        """The K strongest rivals of each direction among those above, or too near to tell, and how many there are."""
        T, space = self.targets, self.space
        X32 = X.astype(np.float32)
        floor = (np.einsum("ij,ij->i", X, T.P[act]) - 2 * space.coarse).astype(np.float32)
        own = T.labels[act]
        if not hot or self.hot is None or self.hot_rows is None:
            return self._all_rivals(X32, floor, own, K, tails)
        low = floor
        if gather:  # not only those that beat it: its neighbours will be needed soon
            typical = np.sqrt(np.square(self.hot_rows).mean())  # of a score in a random direction
            low = np.minimum(floor, np.float32(DEVIATIONS * typical))
        # Most directions lose to one of the hot rows: only those that beat them all see every rival.
        at = np.minimum(np.searchsorted(self.hot, own), len(self.hot) - 1)
        found, count = self._scan(self.hot_rows, None, X32, low, np.where(self.hot[at] == own, at, -1), K)
        found = self.hot[found]
        rest = np.flatnonzero(count == 0)
        found = np.where(np.arange(K) < count[:, None], found, found[:, :1])
        count[count > 0] = K + 1  # a list of hot rows only proves nothing by being short
        if len(rest):
            found[rest], count[rest] = self._all_rivals(X32[rest], floor[rest], own[rest], K)
        return found, count

    def _all_rivals(self, X32, floor, own, K, tails=None) -> tuple[np.ndarray, np.ndarray]:
        space = self.space
        by = np.argsort(-floor, kind="stable")  # alike floors together, so that each piece can stop early
        found, count = np.empty((len(by), K), np.int64), np.empty(len(by), np.int64)
        found[by], count[by] = self._scan(space.V32, space.falling, X32[by], floor[by], space.place[own[by]], K, tails)
        return space.order[found], count

    def _scan(self, rows, falling, X32, floor, own, K, tails=None) -> tuple[np.ndarray, np.ndarray]:
        """The strongest rivals among `rows`; with `falling` norms (negated) only down to those that can matter."""
        m = len(X32)
        found, value, count = np.zeros((m, K), np.int64), np.empty((m, K), np.float32), np.zeros(m, np.int64)
        piece = max(16, min(256, -(-m // self.workers.size)))

        def look(s: tuple[int, int]) -> None:
            part = slice(*s)
            scratch = self.workers.buffer("scores", 256 * 4096)
            a, b = np.ascontiguousarray(own[part].T)
            n = len(rows)
            if falling is not None:  # |x| = 1: a rival of norm below the floor stays below it
                n = int(np.searchsorted(falling, -float(floor[part].min()) * (1 - 1e-5)))
            if falling is not None and tails:
                out = found[part], value[part], count[part]
                self._scan_leading(rows, falling, tails, X32[part], floor[part], a, b, n, out)
                return
            for start, stop in spans(n, 4096):
                S = scratch[: (s[1] - s[0]) * (stop - start)].reshape(s[1] - s[0], stop - start)
                np.matmul(X32[part], rows[start:stop].T, out=S)
                strongest(S, a, b, floor[part], start, found[part], value[part], count[part])

        self.workers.run(look, spans(m, piece), self.after)
        return found, count

    def _scan_leading(self, rows, falling, tails, X, floor, a, b, n, out) -> None:
        """A scan that sees whole rows only where x.v <= (leading part) + (tail of x)(tail of v) does not settle it."""
        found, value, count = out
        m, rank = X.shape
        rest = {k: np.linalg.norm(X[:, k:], axis=1).astype(np.float32) * np.float32(1 + 1e-6) for k in tails}
        peak = np.empty(m, np.float32)
        lowest = float(floor.min())
        for start, stop in spans(n, 2048):
            k = leading(-falling[start] / lowest, rank) if lowest > 0 else rank
            doubt = np.arange(m)
            if k < rank:
                S = self.workers.buffer("scores", 256 * 4096)[: m * (stop - start)].reshape(m, stop - start)
                np.matmul(X[:, :k], rows[start:stop, :k].T, out=S)
                row_max_with_tails(S, rest[k], tails[k][start:stop], peak)
                doubt = np.flatnonzero(peak * (1 + 8 * UNIT32 * np.sign(peak)) > floor)
            if len(doubt):
                size = len(doubt) * (stop - start)
                S = self.workers.buffer("whole", 256 * 2048)[:size].reshape(len(doubt), stop - start)
                np.matmul(X[doubt], rows[start:stop].T, out=S)
                f, v, c = found[doubt], value[doubt], count[doubt]
                strongest(S, a[doubt], b[doubt], floor[doubt], start, f, v, c)
                found[doubt], value[doubt], count[doubt] = f, v, c

    def _bring_home(self, won: np.ndarray) -> None:
        """The inputs z of the winners; who does not survive the way back is stalled."""
        T, space = self.targets, self.space
        if not len(won):
            return
        Y = T.R[won] @ space.L
        length = np.linalg.norm(T.R[won], axis=1) + 4 * UNIT
        z, left = space.cone.fit(Y, T.margin[won] / length, space.reach)
        for k in np.flatnonzero(~(left > 0)):
            left[k] = recheck(space, T.labels[won[k]], z[k])
        if len(T.across):
            z, left = self._even(won, z, left)
        good = (left > 0) & np.isfinite(z).all(axis=1)
        T.margin[won] = np.where(good, left, 0.0)
        T.status[won[~good]] = STALLED
        for k in np.flatnonzero(good):
            T.z[int(won[k])] = z[k]

    def _even(self, won: np.ndarray, z: np.ndarray, left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Make the two scores of each tie equal again after the way back, and the margins that are left then.

        z moves along V_a - V_b in the coordinates that are free to move; nobody's lead shrinks by more than twice the
        longest row (from the centre) times the way.
        """
        problem, cone = self.space.cone.problem, self.space.cone
        a, b = self.targets.labels[won].T
        w = problem.V[a].astype(np.float64) - problem.V[b]
        longest = np.ldexp(self.space.reach, cone.scale)
        low, high = problem.low, problem.high
        if problem.shape == "orthant":
            low, high = np.zeros(z.shape[1]), np.full(z.shape[1], np.inf)
        way = w if low is None or high is None else np.where((z > low) & (z < high), w, 0.0)
        square = np.einsum("ij,ij->i", way, way)
        for _ in range(2):
            off = np.einsum("ij,ij->i", w, z) + (problem.c[a] - problem.c[b])
            move = np.where(square > 0, -off / np.where(square > 0, square, 1), 0.0)[:, None] * way
            z, left = z + move, left - 2 * longest * np.linalg.norm(move, axis=1) * (1 + 1e-9)
        off = np.abs(np.einsum("ij,ij->i", w, z) + (problem.c[a] - problem.c[b]))
        size = np.einsum("ij,ij->i", np.abs(w), np.abs(z)) + np.abs(problem.c[a]) + np.abs(problem.c[b])
        fair = off <= 1e-12 * size + 1e-300
        if low is not None and high is not None:
            fair &= ((z >= low) & (z <= high)).all(axis=1)
        if problem.shape == "ball":
            assert problem.radius is not None
            fair &= np.linalg.norm(z, axis=1) < problem.radius
        return z, np.where(fair, left - 2 * off, 0.0)
