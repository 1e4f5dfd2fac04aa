"""Intervals of what was estimated from a sample: a share, a quantile, a mean.

share      Wilson's interval of k of m; the exact one (Clopper and Pearson) for many shares at once
quantile   the order statistics whose ranks are the binomial's 2.5 % and 97.5 %
mean       Student's interval, clipped to the values that can occur
"""

from __future__ import annotations

import numpy as np

from gonio.core.errors import GonioError
from gonio.similarity.bootstrap import Interval

LEVEL = 0.95


def share_interval(count: int, total: int, level: float = LEVEL) -> Interval:
    """Wilson's interval of a share.

    >>> print(share_interval(5, 100))
    0.050 [0.022, 0.112]
    """
    from scipy.special import ndtri

    if total < 1:
        raise GonioError("check: a share of nothing was asked for; at least one pair is needed.")
    z, p = float(ndtri((1 + level) / 2)), count / total
    middle = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z * np.sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return Interval(p, max(0.0, float(middle - half)), min(1.0, float(middle + half)), level)


def share_of_many(count: int, total: int, many: int, level: float = LEVEL) -> Interval:
    """An interval of one share that was picked after looking at `many`: at this level all of them hold together.

    >>> print(share_of_many(40, 100, 1000))
    0.400 [0.216, 0.606]
    """
    from scipy.special import betaincinv

    tail = (1 - level) / (2 * many)
    low = float(betaincinv(count, total - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 1 - tail)) if count < total else 1.0
    return Interval(count / total, low, high, level)


def quantile_interval(values: np.ndarray, at: float, level: float = LEVEL) -> Interval:
    """The quantile of a sample, between two of its order statistics; an end beyond the sample is infinite."""
    from scipy.stats import binom

    v = np.sort(np.asarray(values, np.float64))
    m = len(v)
    low = int(binom.ppf((1 - level) / 2, m, at)) - 1  # P(Bin <= low) < 2.5 %: the rank below is under the quantile
    high = int(binom.ppf((1 + level) / 2, m, at))
    return Interval(
        float(np.quantile(v, at)),
        float(v[low]) if low >= 0 else -np.inf,
        float(v[high]) if high < m else np.inf,
        level,
    )


def mean_interval(
    values: np.ndarray, level: float = LEVEL, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> Interval:
    """Student's interval of the mean of independent values; undefined (NaN) below ten of them."""
    from scipy.stats import t

    v = np.asarray(values, np.float64)
    m = len(v)
    mean = float(v.mean()) if m else float("nan")
    if m < 10:
        return Interval(mean, float("nan"), float("nan"), level)
    half = float(t.ppf((1 + level) / 2, m - 1) * v.std(ddof=1) / np.sqrt(m))
    return Interval(mean, max(bounds[0], mean - half), min(bounds[1], mean + half), level)
