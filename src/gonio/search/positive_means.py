"""Many labels inside the hull at once: positive shares of the same rows, bent until their mean is the label.

The columns are a_j = (v_j - centre, kappa) for rows and (g_k, 0) for rays, with shares p_j > 0 whose mean is where the
open labels crowd, and M = (sum_j p_j a_j a_j')^-1. A label with the point t = (v - centre, kappa) is looked for as

    t = sum_j w_j a_j,      w_j = p_j bend(y.a_j),      bend(s) = 1 + s, or 1/(-4s) where s < -1/2

by  y <- y + M (t - sum_j w_j a_j)  with Nesterov's momentum: bend rises, and nowhere by more than s does, so this is
descent on a convex function. It has arrived where the next step, taken with the shares unbent, leaves all weights
positive: w_j + p_j (M r).a_j > 0, r what is left. An iteration is two small products for all labels at once, where an
active set would gather a hundred columns one by one; untrained rows of real heads, which crowd in one place, need a
few. Only "inside" is ever concluded: what does not arrive goes on to the cutting planes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.compiled import njit
from gonio.core.parallel import spans
from gonio.search.whitening import WhitenedRows

if TYPE_CHECKING:
    from jaxtyping import Float, Int

LEAST = 12  # open labels, or labels settled by a mean, below which another mean does not pay
MEANS = 6  # that are tried at most
WIDE = 32  # rows for each dimension, among which a mean is looked for
LOOKED_AT = 768  # open labels among which the most crowded place is looked for
STEPS, LARGEST_STEP = 40, 8.0  # of Newton's method, and by how much a step may change the log of a share
APART = 0.1  # of the length of a typical row: nearer to the crowd than this, a row is taken to be of it
NEAR_AIM = 0.01  # of its length: how near a mean must come to its aim
SLIGHT = 1e-4  # of the largest share: columns with less would leave nothing to prove that they count
LARGEST_POOL = 6000  # of these, or 8 for each dimension
COLUMNS = 2048  # that one thread multiplies at a time
PIECE = 128  # labels that are bent together
PIECES = 4  # at least, whatever the number of threads: BLAS rounds by the shape of a product
FIRST, FEW = 64, 8  # labels that are tried first; one in so many must arrive for more to be tried
PACE_EVERY = 3  # iterations over which what is left must shrink
ROOM = 1e-3  # of its share p_j that every column must keep
UPWARDS = 1e-10  # of the spread of the constants


class Patience(NamedTuple):
    """How long labels are bent to: iterations at most, and what a few of them must leave of what is left at most."""

    bends: int
    pace: float


BRIEFLY, LONG = Patience(16, 0.5), Patience(40, 0.9)  # where cutting planes come next, and where they would be dear


@dataclass(frozen=True, eq=False)
class PositiveMean:
    """Rows and rays with positive shares; `weights` writes labels as combinations of them."""

    rivals: Int[np.ndarray, " rows"]
    columns: Float[np.ndarray, "columns augmented"]  # those of the rows first
    shares: Float[np.ndarray, " columns"]
    moments: Float[np.ndarray, "augmented augmented"]  # sum_j p_j a_j a_j'
    inverse: Float[np.ndarray, "augmented augmented"]  # of them
    centre: Float[np.ndarray, " rank"]
    kappa: float

    def targets(self, points: np.ndarray) -> Float[np.ndarray, "some augmented"]:
        """Points as the combinations are to have them."""
        return np.column_stack([points - self.centre, np.full(len(points), self.kappa)])

    def weights(self, targets: np.ndarray, bent: np.ndarray, scale: np.ndarray) -> Float[np.ndarray, "some rows"]:
        """The weights of the rows: scale p_j bend(y.a_j), moved until the combination is the target to rounding."""
        kind = self.columns.dtype
        w = bend(bent.astype(kind, copy=False) @ self.columns.T)
        w *= scale * self.shares
        for _ in range(2):
            left = (targets - w @ self.columns) @ self.inverse
            w += (left.astype(kind, copy=False) @ self.columns.T) * self.shares
        return w[:, : len(self.rivals)]


@dataclass(frozen=True, eq=False)
class Spread:
    """Labels whose weights are spread over the rows of one mean, and over a few rivals of their own.

    The combination of the mean's rows is the label's target; that of its own rivals is not part of the target.
    """

    mean: PositiveMean
    labels: Int[np.ndarray, " some"]
    targets: Float[np.ndarray, "some augmented"]
    bent: Float[np.ndarray, "some augmented"]  # the y that bends the shares
    scale: Float[np.ndarray, " some"]  # the sum of the shares
    own: Int[np.ndarray, "some own"]
    own_weights: Float[np.ndarray, "some own"]

    def weights(self, part: slice) -> Float[np.ndarray, "part rows"]:
        """The weights of the mean's rows, for some of the labels."""
        return self.mean.weights(self.targets[part], self.bent[part], self.scale[part, None])

    @classmethod
    def without_own(cls, mean: PositiveMean, space: WhitenedRows, labels: np.ndarray, bent: np.ndarray) -> Spread:
        """Of labels that are combinations of the mean's rows alone."""
        nobody = np.zeros((len(labels), 0))
        targets = mean.targets(space.V[labels] + upwards(space))
        return cls(mean, labels, targets, bent, np.ones(len(labels)), nobody.astype(np.int64), nobody)


def upwards(space: WhitenedRows) -> Float[np.ndarray, " rank"]:
    """A little more of the constant, where it counts: combinations aimed that much higher have room for rounding."""
    return UPWARDS * max(1.0, space.cone.spread) * space.L[:, -1] if space.cone.affine else np.zeros(space.rank)


def positive_means(
    space: WhitenedRows, flat: PositiveMean | None, left: np.ndarray, pool: np.ndarray, workers: BlasPool
) -> Iterator[Spread]:
    """Means that settle many of the labels `left`: the `flat` one first, then means of the pool, as many as pay."""
    if flat is not None and len(left):
        found = bent_to(flat, space, left, workers)
        left = np.setdiff1d(left, found.labels)
        if len(found.labels):
            yield found
    pool = evenly(pool, min(WIDE * space.rank, max(LARGEST_POOL, 8 * space.rank)))
    for _ in range(MEANS):
        if len(left) < max(LEAST, space.rank // 4):  # the wider, the dearer is a mean
            return
        aim = _most_crowded(space.V[evenly(left, LOOKED_AT)])
        mean = mean_at(space, pool, aim, workers)
        found = bent_to(mean, space, left, workers) if mean else None
        if found is None or len(found.labels) < LEAST:
            return
        yield found
        left = np.setdiff1d(left, found.labels)


def mean_at(space: WhitenedRows, pool: np.ndarray, aim: np.ndarray, workers: BlasPool) -> PositiveMean | None:
    """A positive mean of rows of the pool and of rays near the aim; None where none is found."""
    # Rows of the crowd itself would take all the weight, and could not be settled by it.
    rivals = pool[np.linalg.norm(space.V[pool] - aim, axis=1) > APART * np.sqrt(space.rank)]
    found = _tilted(space.V[rivals], space.rays, aim) if len(rivals) > space.rank else None
    return (
        None if found is None else made_of(space, rivals[found[0]], found[1], space.rays[found[2]], found[3], workers)
    )


def made_of(
    space: WhitenedRows, rivals: np.ndarray, p: np.ndarray, rays: np.ndarray, q: np.ndarray, workers: BlasPool
) -> PositiveMean | None:
    """The mean of these rows and rays with shares p and q; None where they do not span the space."""
    return mean_of(rivals, space.V[rivals], space.kappa, p, rays, q, workers)


def mean_of(
    rivals: np.ndarray, V: np.ndarray, kappa: float, p: np.ndarray, rays: np.ndarray, q: np.ndarray, workers: BlasPool
) -> PositiveMean | None:
    """The same for rivals whose rows are V, its columns as precise as these."""
    centre = p @ V + q @ rays
    columns = np.zeros((len(V) + len(rays), len(centre) + 1), V.dtype)
    np.subtract(V, centre, out=columns[: len(V), :-1])
    columns[: len(V), -1], columns[len(V) :, :-1] = kappa, rays
    shares = np.concatenate([p, q])

    def weighed(s: tuple[int, int]) -> np.ndarray:
        some = columns[slice(*s)]
        return (some * shares[slice(*s), None].astype(V.dtype)).T @ some

    moments = sum(workers.run(weighed, spans(len(columns), COLUMNS)), np.zeros((len(centre) + 1, len(centre) + 1)))
    try:
        inverse = np.linalg.inv(moments)
    except np.linalg.LinAlgError:
        return None
    whole = np.isfinite(inverse).all()
    return PositiveMean(rivals, columns, shares, moments, inverse, centre, kappa) if whole else None


def bend(s: np.ndarray) -> np.ndarray:
    """1 + s, or 1/(-4s) where s < -1/2: positive everywhere, and smooth once."""
    return 0.25 / np.maximum(-s, 0.5) + np.maximum(s + 0.5, 0)


def bent_to(mean: PositiveMean, space: WhitenedRows, left: np.ndarray, workers: BlasPool) -> Spread:
    """Those of the labels `left` that some bent shares of the mean have as their combination.

    The nearest to the mean are tried first, and the rest no more once few of those tried arrive.
    """
    narrow = NarrowMean(mean)
    left = left[np.argsort(np.linalg.norm(space.V[left] - mean.centre, axis=1), kind="stable")]
    order = np.argsort(mean.rivals, kind="stable")
    at = np.minimum(np.searchsorted(mean.rivals, left, sorter=order), len(order) - 1)
    own = np.where(mean.rivals[order[at]] == left, order[at], -1)
    which, bent = [np.zeros(0, np.int64)], [np.zeros((0, len(mean.inverse)))]

    def one(s: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        part = slice(*s)
        arrived, y = narrow.bent(mean.targets(space.V[left[part]]).astype(np.float32), own[part], workers)
        return s[0] + arrived, y

    start, size = 0, FIRST
    while start < len(left):
        stop = min(start + size, len(left))
        piece = max(8, min(PIECE, -(-(stop - start) // PIECES)))
        found = workers.run(one, [(start + a, start + b) for a, b in spans(stop - start, piece)])
        which += [w for w, _ in found]
        bent += [y for _, y in found]
        if sum(len(w) for w, _ in found) * FEW < stop - start:
            break
        start, size = stop, 2 * size
    return Spread.without_own(mean, space, left[np.concatenate(which)], np.concatenate(bent))


class NarrowMean:
    """A mean in float32, for the iterations."""

    def __init__(self, mean: PositiveMean) -> None:
        self.columns = mean.columns.astype(np.float32)
        self.shares, self.inverse = mean.shares.astype(np.float32), mean.inverse.astype(np.float32)

    def bent(
        self, targets: np.ndarray, own: np.ndarray, workers: BlasPool, patience: Patience = BRIEFLY
    ) -> tuple[np.ndarray, np.ndarray]:
        """(which targets arrived, the y of each). The column own_i is of the label itself and takes no part."""
        n = len(self.columns)
        room = workers.buffer("bending", 4 * len(targets) * n).reshape(4, len(targets), n)
        here = np.arange(len(targets))
        y = earlier = np.zeros_like(targets)
        S, before, W, D = room
        S[:] = before[:] = 0
        W[:] = self.shares
        W[own >= 0, own[own >= 0]] = 0
        arrived, found, then = [], [], np.full(len(targets), np.inf)
        for k in range(patience.bends):
            m = len(here)
            residual = targets[here] - W[:m] @ self.columns
            step = residual @ self.inverse
            np.matmul(step, self.columns.T, out=D[:m])
            momentum, short = np.float32(k / (k + 3)), np.empty(m, np.float32)
            _bent_once(S[:m], before[:m], W[:m], D[:m], self.shares, own[here], momentum, np.float32(ROOM), short)
            size = np.einsum("ij,ij->i", residual, step)
            good = (short == 0) & np.isfinite(size)
            arrived.append(here[good])
            found.append(y[good])
            going = ~good & np.isfinite(size)
            if k % PACE_EVERY == 0:
                going &= size < patience.pace * then[here]
                then[here] = size
            y, earlier = _with_momentum(y, earlier, step, k)
            if going.all():
                continue
            stay = np.flatnonzero(going)
            if not len(stay):
                break
            here, y, earlier = here[stay], y[stay], earlier[stay]
            for A in (S, before, W):
                A[: len(stay)] = A[stay]
        return np.concatenate(arrived), np.concatenate(found).astype(np.float64)


def _with_momentum(y: np.ndarray, earlier: np.ndarray, step: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The next y and the step without momentum, as `_bent_once` has it for the products."""
    plain = y + step
    return plain + np.float32(k / (k + 3)) * (plain - earlier), plain


@njit(nogil=True, cache=True, fastmath=True)
def _bent_once(S, before, W, D, shares, own, momentum, room, short):
    """Steps S by D with momentum and writes the next weights to W; short_i = sum_j of room - bend(S) - D above 0.

    Three loops a row, each without a branch: so they run at the speed of memory.
    """
    half, quarter, zero = np.float32(0.5), np.float32(0.25), np.float32(0)
    for i in range(S.shape[0]):
        s, b, w, d = S[i], before[i], W[i], D[i]
        if own[i] >= 0:  # it counts nowhere
            s[own[i]] = b[own[i]] = d[own[i]] = zero
        missing = zero
        for j in range(len(s)):
            x = s[j]
            missing += max(room - quarter / max(-x, half) - max(x + half, zero) - d[j], zero)
        short[i] = missing
        for j in range(len(s)):
            plain = s[j] + d[j]
            s[j] = plain + momentum * (plain - b[j])
            b[j] = plain
        for j in range(len(s)):
            x = s[j]
            w[j] = shares[j] * (quarter / max(-x, half) + max(x + half, zero))
        if own[i] >= 0:
            w[own[i]] = zero


def evenly(labels: np.ndarray, most: int) -> np.ndarray:
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


def _tilted(
    V: np.ndarray, rays: np.ndarray, aim: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """(rows, their shares, rays, their shares): exp(theta.v_j) with the mean near the aim, slight ones left out.

    None where no such shares are found: the aim is not well inside the hull.
    """
    kept, beams = np.arange(len(V)), np.arange(len(rays))
    theta = np.zeros(V.shape[1])
    for _ in range(8):
        found = _newton(V[kept], rays[beams], aim, theta)
        if found is None:
            return None
        theta, p, q = found
        large, bright = p > SLIGHT * p.max(), q > SLIGHT * q.max(initial=0.0)
        if large.all() and bright.all():
            return kept, p, beams, q
        kept, beams = kept[large], beams[bright]
    return None


def _newton(
    V: np.ndarray, rays: np.ndarray, aim: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """theta and the shares exp(theta.v_j) / sum, exp(theta.g_k) / rays with their sum near the aim, from Newton on

    log sum_j exp(theta.v_j) + sum_k exp(theta.g_k) / rays - theta.aim;  None where it does not arrive.
    """
    near = NEAR_AIM * float(np.linalg.norm(aim)) + 1e-9

    def shares(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        score = V @ theta
        p, q = np.exp(score - score.max()), np.exp(np.minimum(rays @ theta, 300)) / max(1, len(rays))
        p /= p.sum()
        return p, q, aim - p @ V - q @ rays

    p, q, gap = shares(theta)
    for _ in range(STEPS):
        size = float(np.linalg.norm(gap))
        if not np.isfinite(size):
            return None
        if size <= near:
            return theta, p, q
        m = p @ V
        C = (V * p[:, None]).T @ V - np.outer(m, m) + (rays * q[:, None]).T @ rays
        try:
            step = np.linalg.solve(C, gap)
        except np.linalg.LinAlgError:
            return None
        fastest = max(float(np.abs(V @ step - m @ step).max()), float(np.abs(rays @ step).max(initial=0)))
        length = min(1.0, LARGEST_STEP / max(fastest, 1e-300))
        while True:
            p, q, gap = shares(theta + length * step)
            if np.linalg.norm(gap) < size:
                break
            length /= 2
            if length < 1e-3:
                return None
        theta = theta + length * step
    return None
