"""Mean and covariance of rows, a block at a time, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from gonio.core.parallel import spans

if TYPE_CHECKING:
    from jaxtyping import Float

BLOCK = 4096
SMALL = 512


def mean_of(X: np.ndarray) -> Float[np.ndarray, " dim"]:
    """The mean row."""
    total = np.zeros(X.shape[1])
    for s, e in spans(len(X), BLOCK):
        total += X[s:e].sum(axis=0, dtype=np.float64)
    return total / len(X)


def covariance_of(X: np.ndarray, mean: np.ndarray) -> Float[np.ndarray, "dim dim"]:
    """(X - mean)'(X - mean) / rows."""
    out = np.zeros((X.shape[1],) * 2)
    for _, _, block in centred_blocks(X, mean):
        out += block.T @ block
    return out / len(X)


def centred_blocks(X: np.ndarray, mean: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """(first, last, X[first:last] - mean) in float64, each block in the place of the one before."""
    held = np.empty((min(BLOCK, len(X)), X.shape[1]))
    for s, e in spans(len(X), BLOCK):
        yield s, e, np.subtract(X[s:e], mean, out=held[: e - s])


def axes_of(
    X: np.ndarray, mean: np.ndarray, shrinkage: float = 0.0
) -> tuple[Float[np.ndarray, " rank"], Float[np.ndarray, "rank dim"]]:
    """Variances, largest first, and their directions; those without variance beyond rounding are left out.

    With `shrinkage` s the covariance is (1 - s) C + s (tr C / dim) I, and every direction stays. Fewer rows than
    dimensions: from the rows' singular values, which costs less and keeps more digits.
    """
    from scipy.linalg import eigh, svd

    n, d = X.shape
    if n < d and not shrinkage:
        _, sizes, right = svd(X.astype(np.float64) - mean, full_matrices=False)
        variances = sizes * sizes / n
    else:
        C = covariance_of(X, mean)
        if shrinkage:
            C = (1 - shrinkage) * C + shrinkage * np.trace(C) / d * np.eye(d)
        with threadpool_limits(1 if d <= SMALL else None, "blas"):  # threads cost more than they save on a small matrix
            variances, right = eigh(C)
        variances, right = variances[::-1], right.T[::-1]
    # Squares carry twice the relative rounding of the entries: below this a variance is noise.
    floor = max(n, d) * 2.0**-52 * max(float(variances[0]), float(mean @ mean) * 2.0**-20)
    alive = variances > max(floor, 0.0)
    # The sign of a direction is free: make its largest entry positive, so that a fit can be repeated.
    right = right[alive]
    if len(right):
        top = np.abs(right).argmax(axis=1)
        right = right * np.where(right[np.arange(len(right)), top] < 0, -1.0, 1.0)[:, None]
    return variances[alive], np.ascontiguousarray(right)
