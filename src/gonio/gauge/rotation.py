"""The rotation that takes one head's rows to another's: weighted orthogonal Procrustes, brought to rounding."""

from __future__ import annotations

import numpy as np

from gonio.core.parallel import in_threads, one_blas_thread
from gonio.gauge.fit import Regression
from gonio.gauge.leftover import Weighted, leftover
from gonio.gauge.rounding import RoundedTable, pieces


def rotate(a: RoundedTable, b: RoundedTable) -> Regression:
    """The orthogonal Q with y = x Q, as far as it goes, and what it leaves.

    Q is the polar factor of X'Y, then corrected twice: with A = (XQ)'XQ and R what is left, the skew S that solves
    A S + S A = (XQ)'R - R'XQ  turns Q to Q (I + S), so that the condition of X'Y is not felt.
    """
    n = len(a.which)

    def rounding(span: tuple[int, int]) -> np.ndarray:
        return np.sqrt((a.block(span)[1] ** 2).mean(axis=1) + (b.block(span)[1] ** 2).mean(axis=1))

    with one_blas_thread():
        errors = np.concatenate(in_threads(rounding, pieces(n)))
        typical = float(np.median(errors)) or float(errors.max()) or 1.0
        zero = np.zeros(a.width)
        data = Weighted(a, b, False, typical / np.maximum(errors, 1e-3 * typical), zero, zero)

        def moments(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
            x, y = data.block(span)
            return x.T @ x, x.T @ y

        gram, cross = (np.sum(p, axis=0) for p in zip(*in_threads(moments, pieces(n)), strict=True))
        left, _, right = np.linalg.svd(cross)
        Q = left @ right
        for _ in range(2):
            Q = _corrected(data, Q, gram, n)
        values, vectors = np.linalg.eigh(gram)
        keep = values > 1e-13 * values[-1] if values[-1] > 0 else np.zeros(len(values), bool)
        whiten = vectors[:, keep] / np.sqrt(values[keep])
        return Regression(Q, zero, False, bool(keep.all()), leftover(data, Q, whiten, False, rounded_map=True))


def _corrected(data: Weighted, Q: np.ndarray, gram: np.ndarray, n: int) -> np.ndarray:
    def left(span: tuple[int, int]) -> np.ndarray:
        x, y = data.block(span)
        return np.asarray(x.T @ (y - x @ Q))

    B = Q.T @ np.sum(in_threads(left, pieces(n)), axis=0)
    values, vectors = np.linalg.eigh(Q.T @ gram @ Q)
    sums = values[:, None] + values[None, :]
    skew = vectors.T @ (B - B.T) @ vectors
    S = vectors @ np.where(sums > 1e-13 * abs(values[-1]), skew / np.where(sums > 0, sums, 1.0), 0.0) @ vectors.T
    left_, _, right_ = np.linalg.svd(Q + Q @ S)
    return np.asarray(left_ @ right_)
