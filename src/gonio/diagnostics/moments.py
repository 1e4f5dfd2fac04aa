"""Sums over all rows that several diagnoses need, from one pass in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import batches, cores, in_threads, spans

if TYPE_CHECKING:
    from jaxtyping import Float

ROWS = 4096


@dataclass(frozen=True, eq=False)
class Moments:
    """mean row; X'X / n; sum of the rows at length 1; how many rows have a length."""

    mean: Float[np.ndarray, " dim"]
    second: Float[np.ndarray, "dim dim"]
    directions: Float[np.ndarray, " dim"]
    live: int

    @property
    def covariance(self) -> Float[np.ndarray, "dim dim"]:
        """The covariance of the rows, over n."""
        return self.second - np.outer(self.mean, self.mean)


def moments(head: Head) -> Moments:
    """The moments of a head's rows.

    The second moment is summed about the first rows' mean and moved back, so that a large common part does not drown
    what differs.
    """
    n, d = head.shape
    largest = float(head.norms.max())
    if not 1e-150 < largest < 1e150 and largest > 0:
        raise GonioError(
            f"moments: the longest row has length {largest:.3g}, whose square no float holds; divide all rows by "
            f"{largest:.0e} first."
        )
    first = head.rows[0 : min(n, 256)].astype(np.float64).mean(axis=0)
    norms = head.norms

    def sums(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        X = head.rows[slice(*span)].astype(np.float64)
        size = norms[slice(*span)]
        directions = (1 / np.where(size > 0, size, np.inf)) @ X
        X -= first
        return X.sum(axis=0), X.T @ X, directions

    total, second, directions = np.zeros(d), np.zeros((d, d)), np.zeros(d)
    for some in batches(spans(n, ROWS), 2 * cores()):  # a few d x d matrices at a time, added in order
        for t, s, u in in_threads(sums, some):
            total, second, directions = total + t, second + s, directions + u
    off = total / n
    mean = first + off
    cov = second / n - np.outer(off, off)
    return Moments(mean, cov + np.outer(mean, mean), directions, int((norms > 0).sum()))


def spectrum(head: Head) -> tuple[Float[np.ndarray, " dim"], Float[np.ndarray, "dim dim"], Moments]:
    """Variances along the principal axes, largest first, and the axes as columns."""
    m = moments(head)
    values, vectors = np.linalg.eigh(m.covariance)
    top = max(float(values[-1]), 0.0)
    # What is only rounding of the squares of rows is no variance.
    floor = max(top * 1e-13, float(np.trace(m.second)) * 1e-15)
    values = np.where(values > floor, values, 0.0)
    return values[::-1].copy(), vectors[:, ::-1].copy(), m
