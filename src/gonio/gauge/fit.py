"""The map that takes one head's rows to another's, fitted with weights by their rounding.

y_i = x_i M + v  is fitted by least squares with weights 1 / rounding of row i, so that long rows do not drown short
ones; what it leaves is judged in `gonio.gauge.leftover`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gonio.core.parallel import in_threads, one_blas_thread
from gonio.core.triangular_factor import triangular_factor
from gonio.gauge.leftover import Leftover, Target, U, Weighted, leftover
from gonio.gauge.rounding import RoundedTable, pieces

WELL = 1e-8  # squared condition above which normal equations with corrections are as good as a QR


@dataclass(frozen=True, eq=False)
class Difference:
    """y - x: what a map near the identity has to explain, without the rounding of a product with the identity."""

    a: RoundedTable
    b: RoundedTable

    def block(self, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        x, _ = self.a.block(span)
        y, step = self.b.block(span)
        gap = y - x
        return gap, step + U * np.abs(gap)


@dataclass(frozen=True, eq=False)
class RegressionColumn:
    """One number a label: the difference of two biases."""

    values: np.ndarray
    steps: np.ndarray

    def block(self, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        part = slice(*span)
        return self.values[part, None], self.steps[part, None]


@dataclass(frozen=True, eq=False)
class Regression:
    """y = x M + v  (y - x = x M + v where `near`), and what it leaves. `full`: x is clearly of full rank."""

    M: np.ndarray
    v: np.ndarray
    near: bool
    full: bool
    left: Leftover

    @property
    def matrix(self) -> np.ndarray:
        """The whole map, the identity counted."""
        return self.M + np.eye(len(self.M)) if self.near else self.M


def regress(a: RoundedTable, target: Target, *, shifts: bool, near: bool = False) -> Regression:
    """Fit the target by the rows of a, with an offset where `shifts`."""
    n = len(a.which)
    with one_blas_thread():  # a thread a block, and no barriers inside
        data = _weighted(a, target, shifts, near)
        data, M, whiten, full = _solve(data, n, shifts)
        v = data.mean_y - data.mean_x @ M
        left = leftover(data, M, whiten, shifts)
    return Regression(M, v, near, full, left)


def _weighted(a: RoundedTable, target: Target, shifts: bool, near: bool) -> Weighted:
    """Weights by rounding, and the means that go with them."""
    n = len(a.which)
    middle = int(np.argsort(a.head.norms[a.which])[n // 2])
    x0, y0 = (t.block((middle, middle + 1))[0][0] * shifts for t in (a, target))  # sums about a row of usual size

    def look(span: tuple[int, int]) -> tuple[np.ndarray, ...]:
        (x, ex), (y, ey) = a.block(span), target.block(span)
        x, y = x - x0, y - y0
        if not near:  # what was computed in float64 carries roundings of its largest numbers
            ex = np.sqrt(ex**2 + 4 * len(x0) * U * U * ((x + x0) ** 2).mean(axis=1, keepdims=True))
            ey = np.sqrt(ey**2 + 4 * len(x0) * U * U * (y0**2).mean())
        return (ex**2).mean(axis=1), (ey**2).mean(axis=1), x.sum(0), y.sum(0), (x**2).sum(0), (y**2).sum(0)

    ra, rb, *sums = zip(*in_threads(look, pieces(n)), strict=True)
    sx, sy, qx, qy = (np.sum(s, axis=0) for s in sums)
    spread_x, spread_y = (float((q - shifts * s * s / n).mean()) for q, s in ((qx, sx), (qy, sy)))
    stretch = 1.0 if near else max(spread_y, 0.0) / spread_x if spread_x > 0 else 1.0
    rounding = np.sqrt(stretch * np.concatenate(ra) + np.concatenate(rb))
    typical = float(np.median(rounding)) or float(rounding.max()) or 1.0
    weights = typical / np.maximum(rounding, 1e-3 * typical)
    zero_x, zero_y = np.zeros(len(x0)), np.zeros(len(y0))
    if not shifts:
        return Weighted(a, target, near, weights, zero_x, zero_y)
    square = weights**2

    def means(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        w = square[span[0] : span[1]]
        return w @ (a.block(span)[0] - x0), w @ (target.block(span)[0] - y0)

    mx, my = (np.sum(p, axis=0) / square.sum() for p in zip(*in_threads(means, pieces(n)), strict=True))
    return Weighted(a, target, near, weights, x0 + mx, y0 + my)


def _solve(data: Weighted, n: int, shifts: bool) -> tuple[Weighted, np.ndarray, np.ndarray, bool]:
    """The data about corrected means, M, a matrix that whitens the rows of x, and whether x is clearly of full rank.

    Normal equations with corrections where the columns, scaled alike, are well conditioned; else the triangular factor
    of [x y], folded together from blocks, which holds the problem without squaring its condition, and one correction.
    """

    def moments(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        x, y = data.block(span)
        return x.T @ x, x.T @ y

    gram, cross = (np.sum(p, axis=0) for p in zip(*in_threads(moments, pieces(n)), strict=True))
    size = np.sqrt(np.diag(gram))
    size[size == 0] = 1.0
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    full = bool(values[0] > WELL * values[-1]) and n > len(size)
    if full:
        whiten = vectors / np.sqrt(values) / size[:, None]
        M = whiten @ (whiten.T @ cross)
    else:
        whiten, M = _by_triangle(data, n, size)

    def left(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        x, y = data.block(span)
        rest = y - x @ M
        return x.T @ rest, data.weights[span[0] : span[1]] @ rest

    fine = "float64" in (data.a.storage.kind, getattr(data.target, "storage", data.a.storage).kind)
    for _ in range(2 if full and fine else 1):
        slope, offset = (np.sum(p, axis=0) for p in zip(*in_threads(left, pieces(n)), strict=True))
        M = M + whiten @ (whiten.T @ slope)
        if shifts:
            data = replace(data, mean_y=data.mean_y + offset / (data.weights**2).sum())
    return data, M, whiten, full


def _by_triangle(data: Weighted, n: int, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The whitening matrix and M from the triangular factor of [x y], columns of x scaled alike."""
    da = len(size)

    def columns(span: tuple[int, int]) -> np.ndarray:
        x, y = data.block(span)
        return np.column_stack([x / size, y])

    R = triangular_factor(columns, n, da + len(data.mean_y))
    left, values, right = np.linalg.svd(R[:, :da], full_matrices=False)
    keep = values > 1e-13 * values[0] if values[0] > 0 else np.zeros(len(values), bool)
    whiten = right[keep].T / values[keep] / size[:, None]
    return whiten, whiten @ (left[:, keep].T @ R[:, da:])
