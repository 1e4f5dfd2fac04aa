"""Few rivals whose convex combination is the label: v_i = sum_j w_j v_j (+ rays), w_j > 0, the v_j in general position.

The search proves that such weights exist (the label is in the hull of rivals, rows of an inscribed ball, and rays)
without giving them. Non-negative least squares over these columns finds them: its passive columns are independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.parallel import one_blas_thread
from gonio.search.kernels import nnls

if TYPE_CHECKING:
    from gonio.search.proposals import Ground
    from gonio.search.whitening import WhitenedRows

ROUNDS = 60
CLOSE, CLOSE_ENOUGH = 1e-13, 1e-10  # residuals that end the search: at once, or once they no longer halve


def basic_support(
    ground: Ground, label: int, rivals: np.ndarray, weights: np.ndarray, other: int | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """(rivals, weights, share): the convex combination of the rivals is row + share (row of `other` - row).

    The share is 0 for a single label; for a tie with the label `other` it is free. The rivals and weights given are
    where the search starts.
    """
    with one_blas_thread():
        columns = _Columns.seen_from(ground, label, rivals, other)
        used, lam = _least_squares(columns, *columns.start(rivals, weights))
        is_row = used < len(columns.pool)
        chosen, w = columns.pool[used[is_row]], lam[is_row] / columns.length[used[is_row]]
        if not len(chosen):
            return chosen, w, 0.0
        space = columns.space
        rays = columns.given_rays[used[~is_row] - len(columns.pool)]
        mu = lam[~is_row] / np.linalg.norm(rays @ space.L.T, axis=1)
        return _in_given_coordinates(space, label, other, chosen, w / w.sum(), rays, mu / w.sum())


@dataclass(eq=False)
class _Columns:
    """Columns (v_j - v_i, 1) and (ray, 0), each first part at unit length: the rows of `pool` first, then the rays.

    As seen from the label, near duplicates of it stay apart, and the aim is (0, 1). For a tie all is made orthogonal
    to `across`, the direction of v_b - v_a, which leaves the share free.
    """

    space: WhitenedRows
    pool: np.ndarray  # labels of the rows
    points: np.ndarray  # v_j - v_i
    length: np.ndarray  # |v_j - v_i|
    barred: np.ndarray  # places in the pool of the label itself, and of the other
    across: np.ndarray
    given_rays: np.ndarray  # in the given coordinates
    rays: np.ndarray  # the same, whitened, at unit length

    @classmethod
    def seen_from(cls, ground: Ground, label: int, rivals: np.ndarray, other: int | None) -> _Columns:
        space = ground.space
        assert space is not None
        extra = np.setdiff1d(rivals, ground.pool)
        pool = np.concatenate([ground.pool, extra])
        v = space.vectors(np.array([label]))[0]
        across = np.zeros(space.rank) if other is None else space.vectors(np.array([other]))[0] - v
        across = across / max(float(np.linalg.norm(across)), 1e-300)
        points = np.concatenate([ground.pool_vectors, space.vectors(extra)])
        points -= v
        if other is not None:
            points = _orthogonal(_orthogonal(points, across), across)
        length = np.maximum(np.sqrt(np.einsum("ij,ij->i", points, points)), 1e-300)
        barred = np.flatnonzero((pool == label) | (pool == (label if other is None else other)))
        rays = _orthogonal(space.rays, across)
        return cls(space, pool, points, length, barred, across, space.cone.rays, rays)

    def start(self, rivals: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the columns of the rivals, and their weights lam."""
        order = np.argsort(self.pool, kind="stable")
        numbers = order[np.searchsorted(self.pool, rivals, sorter=order)]
        usable = ~np.isin(numbers, self.barred)
        numbers = numbers[usable]
        lam = weights[usable] * self.length[numbers]
        return numbers, lam / max(float(lam.sum()), 1e-300)

    def matrix(self, numbers: np.ndarray) -> np.ndarray:
        """The columns of these numbers, as rows."""
        out = np.zeros((len(numbers), self.space.rank + 1))
        is_row = numbers < len(self.pool)
        rows = numbers[is_row]
        out[is_row, :-1], out[is_row, -1] = self.points[rows] / self.length[rows, None], 1.0
        out[~is_row, :-1] = self.rays[numbers[~is_row] - len(self.pool)]
        return out

    def add_curved_ray(self, direction: np.ndarray) -> None:
        """Where the cone is curved: one more ray, if the direction leaves the cone."""
        space = self.space
        if space.cone.curved:
            out, more = space.cone.curved_rays((direction / max(np.linalg.norm(direction), 1e-300))[None] @ space.L)
            if len(out):
                self.given_rays = np.vstack([self.given_rays, more])
                self.rays = np.vstack([self.rays, _orthogonal(space.whitened(more), self.across)])

    def steepest(self, residual: np.ndarray, used: np.ndarray) -> np.ndarray:
        """Numbers of the unused columns that reduce the residual the fastest."""
        gain = np.concatenate(
            [self.points @ residual[:-1] / self.length + residual[-1], self.rays @ residual[:-1]],
        )
        gain[used] = gain[self.barred] = -np.inf
        new = np.argsort(-gain)[: max(16, len(residual) // 8)]
        return new[gain[new] > 1e-15 * np.linalg.norm(residual)]


def _least_squares(columns: _Columns, used: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """min |(0, 1) - sum lam_j c_j| over lam >= 0: the numbers of the columns in use, and their weights.

    Columns are priced in: each round adds the steepest ones to those in use and solves anew.
    """
    aim = np.append(np.zeros(columns.space.rank), 1.0)
    best, smallest = (used, lam), np.inf
    inverse, passive = np.empty((len(aim) + 1, len(aim) + 1)), np.empty(len(aim) + 1, np.int64)
    known = 0  # rows of the inverse factor that hold for the columns in use
    for _ in range(ROUNDS):
        B = columns.matrix(used)
        residual = aim - lam @ B
        columns.add_curved_ray(residual[:-1])
        new = columns.steepest(residual, used)
        used, lam = np.concatenate([used, new]), np.append(lam, np.zeros(len(new)))
        B = np.concatenate([B, columns.matrix(new)])
        p = nnls(B, aim, lam, inverse, passive, known, 4 * len(used) + 50)
        used, lam, B = used[passive[:p]], lam[passive[:p]], B[passive[:p]]
        left = float(np.linalg.norm(aim - lam @ B))
        known = p if left < smallest else 0  # no nearer: rounding may have spoilt the factor, and it is made anew
        done = left < CLOSE or (CLOSE_ENOUGH > left > 0.5 * smallest)  # the last digits are for _in_given_coordinates
        if left < smallest:
            best, smallest = (used, lam), left
        if done or not len(new):
            break
    return best


def _orthogonal(points: np.ndarray, across: np.ndarray) -> np.ndarray:
    """p - (p.u) u  for each row p, u the unit vector `across` (or 0)."""
    return points - np.outer(points @ across, across)


def _in_given_coordinates(
    space: WhitenedRows,
    label: int,
    other: int | None,
    rivals: np.ndarray,
    w: np.ndarray,
    rays: np.ndarray,
    mu: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """The weights again in the given coordinates, with the bias of the combination strictly above where it can be.

    sum w_j (a_j - a_i) + sum mu_k g_k - share (a_b - a_i) = 0,  sum w_j = 1.
    """
    cone = space.cone
    origin = cone.rows(np.array([label]))[0]
    k = len(rivals)
    B = np.zeros((k + len(rays) + (other is not None), cone.width + 1))
    B[:k, :-1], B[:k, -1] = cone.rows(rivals) - origin, 1.0
    B[k : k + len(rays), :-1] = rays
    x = np.concatenate([w, mu])
    if other is not None:
        B[-1, :-1] = origin - cone.rows(np.array([other]))[0]
        gap = max(float(B[-1] @ B[-1]), 1e-300)
        x = np.append(x, -(x @ B[:-1] @ B[-1]) / gap)
    free = np.zeros(len(x), bool)
    free[k + len(rays) :] = True
    aim = np.zeros(cone.width + 1)
    aim[-1] = 1.0
    x = _refined(B, x, free, aim)
    if cone.affine and len(cone.rays) and not any((ray == cone.rays[-1]).all() for ray in rays):
        out, moved = _bring_in(B, x, free, np.append(cone.rays[-1], 0.0))
        if out is not None:
            stay = np.arange(len(x)) != out
            B, free = np.vstack([B[stay], np.append(cone.rays[-1], 0.0)]), np.append(free[stay], False)
            rivals, k = (np.delete(rivals, out), k - 1) if out < k else (rivals, k)
            x = _refined(B, moved, free, aim)
    w = np.maximum(x[:k], 0)
    share = float(x[free][0]) if free.any() else 0.0
    rivals, w = rivals[w > 0], w[w > 0]
    return rivals, w / w.sum(), share


def _bring_in(B: np.ndarray, x: np.ndarray, free: np.ndarray, up: np.ndarray) -> tuple[int | None, np.ndarray]:
    """A simplex step that brings in the column `up`, the ray of the bias: it grows until some weight reaches 0.

    (which column leaves, the weights of the others followed by that of `up`); (None, x) where no step is possible.
    """
    step = _solved(B.T, up)
    leaving = (step > 1e-12) & ~free
    if not (np.linalg.norm(step @ B - up) < 1e-9 and leaving.any()):
        return None, x
    with np.errstate(all="ignore"):
        room = np.where(leaving, x / step, np.inf)
    out = int(np.argmin(room))
    return out, np.append(np.delete(x - room[out] * step, out), room[out])


def _refined(B: np.ndarray, x: np.ndarray, free: np.ndarray, aim: np.ndarray) -> np.ndarray:
    """x with x B = aim to rounding, if that leaves all but the free entries positive."""
    for _ in range(3):
        better = x + _solved(B.T, aim - x @ B)
        if not ((better > 0) | free).all() or np.linalg.norm(aim - better @ B) >= np.linalg.norm(aim - x @ B):
            break
        x = better
    return x


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution of A x = b, by elimination where A is square and regular, else the shortest by least squares."""
    if A.shape[0] == A.shape[1]:
        try:
            x = np.linalg.solve(A, b)
        except np.linalg.LinAlgError:
            pass
        else:
            if np.isfinite(x).all() and np.linalg.norm(A @ x - b) <= 1e-6 * np.linalg.norm(b):
                return x
    return np.linalg.lstsq(A, b, rcond=None)[0]
