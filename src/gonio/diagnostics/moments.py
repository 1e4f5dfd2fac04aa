"""Sums over all rows that several diagnoses need, from one pass in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import spans

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
    total, second, directions = np.zeros(d), np.zeros((d, d)), np.zeros(d)
    norms = head.norms
    for s, e in spans(n, ROWS):
        X = head.rows[s:e].astype(np.float64)
        size = norms[s:e]
        directions += (1 / np.where(size > 0, size, np.inf)) @ X
        X -= first
        total += X.sum(axis=0)
        second += X.T @ X
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
