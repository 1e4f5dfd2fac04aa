"""Many labels inside the hull at once: one positive mean of long rows, tilted to where the open labels crowd.

With weights p_j > 0, sum 1, of rows v_j, their mean m and M = Cov_p^-1, for every point v

    v = sum_j p_j (1 + (v - m).M(v_j - m)) v_j,      a positive combination where  min_j (v - m).M(v_j - m) > -1,

so one product of all open labels with M(v_j - m) shows which of them lie inside. Untrained rows of real heads lie in
one tight cluster: p is tilted exponentially until m is in its middle (`exponential_tilting` does so for each alone).
Where the mean of the rivals' constants is not below the label's, it never wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.parallel import spans
from gonio.search.whitening import WhitenedRows

if TYPE_CHECKING:
    from jaxtyping import Float, Int

LEAST = 12  # open labels, or labels settled by a mean, below which another mean does not pay
MEANS = 6  # that are tried at most
WIDE = 48  # rows for each dimension, among which a mean is looked for
SUPPORT, LARGEST_SUPPORT = 8, 16  # rows of a mean for each dimension: so many are aimed at, and so many allowed
LOOKED_AT = 768  # open labels among which the most crowded place is looked for
STEPS, LARGEST_STEP = 40, 8.0  # of Newton's method, and by how much a step may change the log of a share
APART = 0.1  # of the length of a typical row: nearer to the crowd than this, a row is taken to be of it
NEAR_AIM = 0.01  # of its length: how near a mean must come to its aim
ROOM = 0.02  # of its share p_j that every row must keep
SLIGHT = 1e-3  # of the largest share: rows with less would leave nothing to prove that they count


@dataclass(frozen=True, eq=False)
class SharedMean:
    """Labels settled by one mean: each is the combination of `rivals` with its line of `weights`."""

    labels: Int[np.ndarray, " settled"]
    rivals: Int[np.ndarray, " rivals"]
    weights: Float[np.ndarray, "settled rivals"]


def shared_means(space: WhitenedRows, c: np.ndarray, left: np.ndarray, pool: np.ndarray) -> list[SharedMean]:
    """Means of rows of the pool that settle many of the labels `left`, as many means as pay; c are the constants."""
    found: list[SharedMean] = []
    pool = _some(pool, WIDE * space.rank)
    for _ in range(MEANS):
        if len(left) < LEAST:
            break
        aim = _most_crowded(space.V[_some(left, LOOKED_AT)])
        # Rows of the crowd itself would take all the weight, and could not be settled by it.
        rivals = pool[np.linalg.norm(space.V[pool] - aim, axis=1) > APART * np.sqrt(space.rank)]
        mean = _settled(space, c, left, rivals, aim) if len(rivals) >= 2 * space.rank + 2 else None
        if mean is None or len(mean.labels) < LEAST:
            break
        found.append(mean)
        left = np.setdiff1d(left, mean.labels)
    return found


def _some(labels: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the labels, evenly spaced."""
    return labels if len(labels) <= most else labels[np.linspace(0, len(labels) - 1, most).astype(int)]


def _most_crowded(points: np.ndarray) -> np.ndarray:
    """The mean of the points around the one whose near neighbours are nearest."""
    k = min(LEAST, len(points) - 1)
    square = np.einsum("ij,ij->i", points, points)
    away = square[:, None] + square - 2 * (points @ points.T)
    near = np.argpartition(away, k, axis=1)[:, : k + 1]
    radius = np.take_along_axis(away, near, axis=1).max(axis=1)
    return points[near[radius.argmin()]].mean(axis=0)


def _settled(
    space: WhitenedRows, c: np.ndarray, left: np.ndarray, rivals: np.ndarray, aim: np.ndarray
) -> SharedMean | None:
    """The labels that a mean of the rivals, tilted to the aim, shows to be inside."""
    tilted = _tilted(space.V[rivals], aim)
    if tilted is None:
        return None
    kept, p = tilted
    rivals, X = rivals[kept], space.V[rivals[kept]]
    m = p @ X
    X = X - m
    try:
        steep = np.linalg.solve((X * p[:, None]).T @ X, X.T)  # M (v_j - m), as columns
    except np.linalg.LinAlgError:
        return None
    left = np.setdiff1d(left, rivals)
    if len(left) < LEAST:
        return None
    inside, weights = [], []
    for s in spans(len(left), 1024):
        part = left[slice(*s)]
        share = 1 + (space.V[part] - m) @ steep
        w = share * p
        good = (share.min(axis=1) > ROOM) & ((w * (c[rivals] - c[part][:, None])).sum(axis=1) >= 0)
        inside.append(part[good])
        weights.append(w[good])
    return SharedMean(np.concatenate(inside), rivals, np.concatenate(weights))


def _tilted(V: np.ndarray, aim: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """(which rows, their shares): p_j ~ exp(theta.v_j) with a mean near the aim, of as few rows as it can be.

    None where no such shares are found: the aim is not well inside the hull of the rows.
    """
    rank = V.shape[1]
    kept, last = np.arange(len(V)), None
    theta = _newton(V, aim, np.zeros(rank))
    while theta is not None:
        p = _shares(V[kept], theta)
        large = np.flatnonzero(p > SLIGHT * p.max())
        if len(large) == len(kept):
            last = kept, p
            if len(kept) <= SUPPORT * rank:
                break
        fewer = max(SUPPORT * rank, len(kept) // 2)
        kept = kept[np.sort(large[np.argsort(-p[large], kind="stable")[:fewer]])]
        theta = _newton(V[kept], aim, theta) if len(kept) >= 2 * rank + 2 else None
    return last if last is not None and len(last[0]) <= LARGEST_SUPPORT * rank else None


def _newton(V: np.ndarray, aim: np.ndarray, theta: np.ndarray) -> np.ndarray | None:
    """The theta at which the shares exp(theta.v_j) have their mean near the aim, from Newton's method on

    log sum_j exp(theta.v_j) - theta.aim;  None where it does not arrive.
    """
    near = NEAR_AIM * float(np.linalg.norm(aim)) + 1e-9
    used = V
    for step_number in range(STEPS):
        p = _shares(used, theta)
        if step_number % 4 == 3:  # rows that have all but lost their share are left out on the way
            some = p > 1e-6 * p.max()
            used, p = used[some], p[some] / p[some].sum()
        m = p @ used
        gap = aim - m
        size = float(np.linalg.norm(gap))
        if not np.isfinite(size):
            return None
        if size <= near:
            return theta
        X = used - m
        try:
            step = np.linalg.solve((X * p[:, None]).T @ X, gap)
        except np.linalg.LinAlgError:
            return None
        length = min(1.0, LARGEST_STEP / max(float(np.abs(X @ step).max()), 1e-300))
        while np.linalg.norm(aim - _shares(used, theta + length * step) @ used) >= size:
            length /= 2
            if length < 1e-3:
                return None
        theta = theta + length * step
    return None


def _shares(V: np.ndarray, theta: np.ndarray) -> np.ndarray:
    score = V @ theta
    p = np.exp(score - score.max())
    return p / p.sum()
