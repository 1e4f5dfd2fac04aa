"""A small support out of a large or pushed-out one: rivals in general position, weights positive, residual rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import one_blas_thread
from gonio.search.kernels import nnls

if TYPE_CHECKING:
    from gonio.search.proposals import Ground
    from gonio.search.whitening import WhitenedRows

ROUNDS = 60


def basic_support(
    ground: Ground, label: int, rivals: np.ndarray, weights: np.ndarray, other: int | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Rivals and weights whose combination is the label itself; for a tie also the share of the `other` label."""
    with one_blas_thread():
        return _basic(ground, label, rivals, weights, other)


def _basic(
    ground: Ground, label: int, rivals: np.ndarray, weights: np.ndarray, other: int | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Non-negative least squares over the columns of the proof.

    The deciding stage proves that v_i is a combination of its rivals, the rows of the inscribed ball and rays, but
    gives no weights for it. Least squares over these columns finds them; its passive set is basic. For
    a tie the aim is v_a + share (v_b - v_a) with a free share: everything is seen along v_b - v_a.
    """
    space = ground.space
    assert space is not None
    extra = np.setdiff1d(rivals, ground.pool)
    pool = np.concatenate([ground.pool, extra])
    v = space.vectors(np.array([label]))[0]
    u = np.zeros(space.rank) if other is None else space.vectors(np.array([other]))[0] - v
    u = u / max(float(np.linalg.norm(u)), 1e-300)
    # As seen from the label, at unit length: near duplicates of it stay apart, and the aim is the origin.
    points = np.concatenate([ground.pool_vectors, space.vectors(extra)])
    points -= v
    if other is not None:
        points = _off(_off(points, u), u)
    away = np.maximum(np.sqrt(np.einsum("ij,ij->i", points, points)), 1e-300)
    own = np.flatnonzero((pool == label) | (pool == (label if other is None else other)))
    given = space.cone.rays  # the rays in the given coordinates; those here are the same at unit length
    rays = _off(space.rays, u)
    b = np.append(np.zeros(space.rank), 1.0)

    def columns(which: np.ndarray) -> np.ndarray:
        """(point, 1) and (ray, 0): the pool first, then the rays."""
        out = np.zeros((len(which), len(b)))
        row = which < len(pool)
        out[row, :-1], out[row, -1] = points[which[row]] / away[which[row], None], 1.0
        out[~row, :-1] = rays[which[~row] - len(pool)]
        return out

    order = np.argsort(pool, kind="stable")
    held = order[np.searchsorted(pool, rivals, sorter=order)]
    kept = ~np.isin(held, own)
    held = held[kept]
    lam = weights[kept] * away[held]
    lam = lam / max(float(lam.sum()), 1e-300)
    best, smallest = (held, lam), np.inf
    M, passive, known = np.empty((len(b) + 1, len(b) + 1)), np.empty(len(b) + 1, np.int64), 0
    for _ in range(ROUNDS):
        B = columns(held)
        r = b - lam @ B
        if space.cone.curved:
            out, more = space.cone.curved_rays((r[:-1] / max(np.linalg.norm(r[:-1]), 1e-300))[None] @ space.L)
            if len(out):
                given = np.vstack([given, more])
                rays = np.vstack([rays, _off(space.whitened(more), u)])
        gain = np.concatenate([points @ r[:-1] / away + r[-1], rays @ r[:-1]])
        gain[held] = gain[own] = -np.inf
        new = np.argsort(-gain)[: max(16, len(b) // 8)]
        new = new[gain[new] > 1e-15 * np.linalg.norm(r)]
        held, lam = np.concatenate([held, new]), np.append(lam, np.zeros(len(new)))
        B = np.concatenate([B, columns(new)])
        p = nnls(B, b, lam, M, passive, known, 4 * len(held) + 50)
        held, lam, B = held[passive[:p]], lam[passive[:p]], B[passive[:p]]
        left = float(np.linalg.norm(b - lam @ B))
        known = p if left < smallest else 0  # no nearer: the factor may be worn out, and is made anew
        settled = left < 1e-13 or (left < 1e-10 and left > 0.5 * smallest)  # `_finish` sees to the last digits
        if left < smallest:
            best, smallest = (held, lam), left
        if settled or not len(new):
            break
    held, lam = best
    rows = held < len(pool)
    chosen, w = pool[held[rows]], lam[rows] / away[held[rows]]
    if not len(chosen):
        return chosen, w, 0.0
    on = held[~rows] - len(pool)
    mu = lam[~rows] / np.linalg.norm(given[on] @ space.L.T, axis=1)
    return _finish(space, label, other, chosen, w / w.sum(), given[on], mu / w.sum())


def _off(points: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Points taken off u."""
    return points - np.outer(points @ u, u)


def _finish(
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
    up = np.append(cone.rays[-1], 0.0) if cone.affine and len(cone.rays) else None
    if up is not None and not any((ray == cone.rays[-1]).all() for ray in rays):
        # A simplex step that brings in the ray of t: the bias goes up until a rival is not needed any more.
        step = _solved(B.T, up)
        if np.linalg.norm(step @ B - up) < 1e-9 and ((step > 1e-12) & ~free).any():
            with np.errstate(all="ignore"):
                room = np.where((step > 1e-12) & ~free, x / step, np.inf)
            out = int(np.argmin(room))
            stay = np.arange(len(x)) != out
            x = np.append((x - room[out] * step)[stay], room[out])
            B, free = np.vstack([B[stay], up]), np.append(free[stay], False)
            rivals, k = (np.delete(rivals, out), k - 1) if out < k else (rivals, k)
            x = _refined(B, x, free, aim)
    w = np.maximum(x[:k], 0)
    share = float(x[free][0]) if free.any() else 0.0
    rivals, w = rivals[w > 0], w[w > 0]
    return rivals, w / w.sum(), share


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
