"""What a map leaves of every entry, held to what rounding explains of it.

Rounding errors of the entries are taken as independent and evenly spread over half a step to either side. Then with
s^2_ik = (step_b(ik)^2 + sum_l step_a(il)^2 M_lk^2) / 3  and h_i the leverage of row i, a fit leaves of entry ik
something of variance  (1 - h_i)^2 s^2_ik + h_i (1 - h_i) mean s^2_k.  Entries, rows and all of them together are held
to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gonio.core.parallel import in_threads
from gonio.gauge.rounding import RoundedTable, pieces

U = 2.0**-53
CLIP = 36.0  # in the mean over all entries none counts for more than six standard deviations
SEEN = 0.02  # the share of x's rounding that is still allowed for where none is seen
ALMOST_CERTAIN, BEYOND_DOUBT = 25.0, 40.0  # chances of e^-25 and e^-40 that rounding alone makes a row so large


class Target(Protocol):
    """What is to be explained: values and how far rounding may have moved each."""

    def block(self, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]: ...


@dataclass(frozen=True, eq=False)
class Weighted:
    """Rows of a table and a target, centred if wanted, times the weight of their row."""

    a: RoundedTable
    target: Target
    near: bool
    weights: np.ndarray
    mean_x: np.ndarray
    mean_y: np.ndarray

    def block(self, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        w = self.weights[span[0] : span[1], None]
        return (self.a.block(span)[0] - self.mean_x) * w, (self.target.block(span)[0] - self.mean_y) * w


@dataclass(frozen=True, eq=False)
class Leftover:
    """What a map leaves, in units of what rounding explains.

    residual, rounding   root mean squares of what is left and of what rounding would leave, over the size of the target
    entry      the largest entry over its standard deviation
    beyond     whether an entry exceeds what the rounding of its numbers can add up to
    row        the largest mean square of a row over what chance e^-25 allows, and over what e^-40 does
    amplified  what the map makes of a's rounding, over b's own
    returned   about what b's rounding would leave of a's rows on the way back, over their size
    overall    root mean square of all entries over their standard deviations, outliers clipped
    spread     the same without clipping
    errors     for each label its largest entry over its standard deviation
    """

    residual: float
    rounding: float
    entry: float
    beyond: bool
    row: tuple[float, float]
    amplified: float
    returned: float
    overall: float
    spread: float
    errors: np.ndarray


def leftover(data: Weighted, M: np.ndarray, whiten: np.ndarray, shifts: bool, *, rounded_map: bool = False) -> Leftover:
    """Hold what M leaves of every entry, of every row and of all to what rounding explains.

    `rounded_map`: M is not free, like a rotation, which float64 holds to a few roundings of each row's length.
    """
    a, target, w = data.a, data.target, data.weights
    n, (da, db) = len(w), M.shape
    squares = M**2
    # What a product in float64 adds: about sqrt(d) roundings of x M, and those of a step with the offset added first.
    back = np.zeros(da) if data.near or da != db or not shifts else _taken_back(M, data.mean_y)
    added = 0.0 if data.near else 4 * da * U * U
    columns = np.sum(in_threads(lambda s: (a.block(s)[0] ** 2).sum(axis=0), pieces(n)), axis=0)
    added_is_small = a.storage.kind not in ("float64",) and getattr(target, "storage", a.storage).kind != "float64"
    share = columns / (columns.sum() or 1.0)  # a small entry may be the difference of numbers as large as its row's

    def steps(span: tuple[int, int]) -> tuple[np.ndarray, ...]:
        """x, y, their steps squared, and what computing adds to those of x, all times the weights."""
        v = w[span[0] : span[1], None]
        (x, ex), (y, ey) = a.block(span), target.block(span)
        if rounded_map:
            ey = np.sqrt(ey**2 + 48 * U * U * (x**2).sum(axis=1, keepdims=True))
        more = added * (x**2 + (x**2).sum(axis=1, keepdims=True) * share + back**2) * v**2
        return (x - data.mean_x) * v, (y - data.mean_y) * v, (ex * v) ** 2, (ey * v) ** 2, more

    short = squares.astype(np.float32) if 1e-15 < squares.max() < 1e15 else squares

    def mapped(of_a: np.ndarray) -> np.ndarray:
        if data.near:
            return of_a
        scale = float(of_a.max()) or 1.0  # of variances a few digits are enough
        return (of_a / scale).astype(short.dtype) @ short * np.float64(scale)

    def sums(span: tuple[int, int]) -> tuple[np.ndarray, ...]:
        x, _, *squared = steps(span)
        return (x**2).sum(axis=0), *(p.sum(axis=0) for p in squared)

    of_x, mean_a, mean_b, mean_added = (np.sum(p, axis=0) / n for p in zip(*in_threads(sums, pieces(n)), strict=True))
    size_x = float(np.sqrt(of_x.sum() * n))
    typical = (mapped(mean_a + mean_added) + mean_b) / 3  # of each column, over the rows
    typical_exact = (SEEN * mapped(mean_a + mean_added) + mean_b) / 3
    # Rounding of x makes the fit of M too small by this much at most, where it is not small beside x.
    bias = whiten @ (whiten.T @ (n / 3 * (mean_a + mean_added)[:, None] * (M + np.eye(da) if data.near else M)))
    biased = float(np.abs(bias).max()) > 1e-7 * float(np.abs(M).max()) and not data.near
    # Where the image of x's rounding is as large as y's and yet not seen, x is exact, and y's alone is what counts.
    sharp = not data.near and float(mapped(mean_a).sum()) > 0.3 * float(mean_b.sum()) and added_is_small
    limits = [_row_limit(M, mean_a + mean_added, mean_b, data.near, x) for x in (ALMOST_CERTAIN, BEYOND_DOUBT)]
    one = 1 / float((w**2).sum()) if shifts else 0.0

    scale_x = size_x / np.sqrt(n) or 1.0
    flat = (whiten * scale_x).astype(np.float32)

    def look(span: tuple[int, int]) -> tuple[Any, ...]:
        x, y, ea, eb, more = steps(span)
        left = y - x @ M
        of_a = mapped(ea + more)
        h = np.minimum(
            (((x / scale_x).astype(np.float32) @ flat) ** 2).sum(axis=1, dtype=np.float64)
            + one * w[span[0] : span[1]] ** 2,
            1.0,
        )[:, None]
        also = np.full((1, 1), 1e-300)
        if biased:
            also = (x @ bias) ** 2
        elif data.near:  # the small product x M is rounded, and so is the difference from it
            also = (U * left) ** 2 + da * U * U * ((x**2) @ squares) + 1e-300
        ratio = left**2 / (_variance((of_a + eb) / 3, typical, h) + also)
        exact = left**2 / (_variance((SEEN * of_a + eb) / 3, typical_exact, h) + also)
        slack = 6 * np.sqrt(
            3 * h * (1 - h) * typical + (0.0 if added_is_small or data.near else 1.0) * mapped(more) + also
        )
        beyond = _beyond(left, ratio, np.sqrt(ea), np.sqrt(eb), M, data.near, slack)
        return (
            (left**2).sum(), (of_a + eb).sum() / 3, ((x if data.near else y) ** 2).sum(), beyond, ratio.mean(axis=1),
            [(r.max(), np.minimum(r, CLIP).sum(), r.sum(), np.sqrt(r.max(axis=1))) for r in (ratio, exact)],
        )  # fmt: skip

    squares_left, explained, size, beyond, row, figures = zip(*in_threads(look, pieces(n)), strict=True)
    scale = np.sqrt(sum(size)) or 1.0
    widest = float(np.concatenate(row).max())
    both, exact = ([f[k] for f in figures] for k in (0, 1))
    exactly = sharp and np.sqrt(sum(f[1] for f in exact) / (n * db)) <= 1.15
    chosen = exact if exactly else both
    errors = np.concatenate([f[3] for f in chosen])
    overall = float(np.sqrt(sum(f[1] for f in chosen) / (n * db)))
    if (
        data.near and overall < 0.5
    ):  # most entries are exact: those that are not have no rounding of others to hide behind
        slack = 12 * overall * np.sqrt(typical)
        for i in np.argsort(-errors)[:64]:
            x, y, ea, eb, _ = steps((int(i), int(i) + 1))
            limit = (np.sqrt(ea) + np.sqrt(eb)) * (1 + 2.0**-7) + slack
            beyond = (*beyond, bool((np.abs(y - x @ M) > limit).any()))
    return Leftover(
        float(np.sqrt(sum(squares_left)) / scale),
        float(np.sqrt(sum(explained)) / scale),
        float(np.sqrt(max(f[0] for f in chosen))),
        any(beyond),
        (widest / limits[0], widest / limits[1]),
        float(np.sqrt(mapped(mean_a).sum() / mean_b.sum())) if mean_b.any() else np.inf,
        _returned(M, mean_b, size_x / np.sqrt(n)) if da == db and not data.near else 0.0,
        overall,
        float(np.sqrt(sum(f[2] for f in chosen) / (n * db))),
        errors,
    )


def _variance(own: np.ndarray, typical: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The variance of what a fit leaves of entries of variance `own` in columns of variance `typical`.

    (1 - h)^2 own + sum over the others of h_ij^2 times theirs, of which the sum of h_ij^2 is h (1 - h); columns whose
    variance differs from row to row are allowed three times the usual.
    """
    return (1 - h) ** 2 * own + 3 * h * (1 - h) * typical


def _returned(M: np.ndarray, of_b: np.ndarray, size: float) -> float:
    """sqrt(sum_k of_b_k (M^-1)_kl^2 / 3) over the size of x's rows."""
    if np.linalg.cond(M) > 1e12:
        return 0.0  # then ranks decide
    return float(np.sqrt((of_b @ np.linalg.inv(M) ** 2).sum() / 3)) / (size or 1.0)


def _taken_back(M: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The mean of y before M, where M can be undone: how large a step in between may have been."""
    if np.linalg.cond(M) > 1e8:
        return np.zeros(len(M))
    return np.asarray(np.linalg.solve(M.T, mean))


def _row_limit(M: np.ndarray, of_a: np.ndarray, of_b: np.ndarray, near: bool, x: float) -> float:
    """What the mean square of a row, each entry over its variance, exceeds with chance e^-x at most.

    With P the correlation of a row's errors: 1 + 2 sqrt(x) |P| / d + 2 x max eigenvalue / d (Laurent & Massart).
    """
    d = M.shape[1]
    if near:
        return 1 + 2 * np.sqrt(x / d) + 2 * x / d
    C = np.diag(of_b) + (M.T * of_a) @ M
    size = np.sqrt(np.diag(C))
    size[size == 0] = 1.0
    P = C / np.outer(size, size)
    return float(1 + 2 * np.sqrt(x) * np.linalg.norm(P) / d + 2 * x * np.linalg.eigvalsh(P)[-1] / d)


def _beyond(
    left: np.ndarray, ratio: np.ndarray, ea: np.ndarray, eb: np.ndarray, M: np.ndarray, near: bool, slack: np.ndarray
) -> bool:
    """Whether some entry is larger than all roundings of its numbers together can make it.

    Only entries beyond three standard deviations are asked, the largest first: sums of many roundings never get there,
    and sums of few have a limit that is nearer than any chance.
    """
    i, k = np.nonzero(ratio > 9.0)
    if len(i) > 500:
        most = np.argsort(-ratio[i, k])[:500]
        i, k = i[most], k[most]
    if not len(i):
        return False
    of_a = ea[i, k] if near else np.einsum("ij,ji->i", ea[i], np.abs(M)[:, k])
    limit = (of_a + eb[i, k]) * (1 + 2.0**-7) + slack[i, k]
    return bool((np.abs(left[i, k]) > limit).any())
