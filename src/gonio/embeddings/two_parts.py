"""Two pipelines in one table: do the lengths of the rows (or their places along one direction) fall into two parts?

The values are cut where the variance between the two parts is largest (Otsu 1979), and the parts are as far apart as

    D = sqrt(2) |m_1 - m_2| / sqrt(s_1^2 + s_2^2)       (Ashman, Bird and Zepf 1994)

A normal sample cut in this way has D = 2.65, a uniform one 3.46; from 6 on, with a hundredth of the rows in the smaller
part, the parts hardly touch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.parallel import spans

if TYPE_CHECKING:
    from jaxtyping import Float

APART, LEAST = 6.0, 0.01
TOGETHER = 1 << 18  # values whose cuts are tried at once


@dataclass(frozen=True)
class TwoParts:
    """A cut of values into two parts: `low` and `high` are the parts' means, `share` that of the smaller one."""

    cut: float
    low: float
    high: float
    share: float
    apart: float

    @property
    def found(self) -> bool:
        """Whether the parts hardly touch and neither is a handful."""
        return self.apart >= APART and self.share >= LEAST


def two_parts(values: Float[np.ndarray, " rows"]) -> TwoParts | None:
    """The best cut of some values into two parts; None where they are too few or all alike.

    >>> rng = np.random.default_rng(0)
    >>> two_parts(rng.normal(size=1000)).found, two_parts(np.repeat([1.0, 7.0], 50) + rng.normal(size=100) / 9).found
    (False, True)
    """
    v = np.sort(np.asarray(values, np.float64))
    n = len(v)
    if n < 20 or v[-1] - v[0] <= 1e-6 * max(abs(v[0]), abs(v[-1])):
        return None
    at = _best_cut(v)
    low, high = v[:at], v[at:]
    spread = float(np.sqrt(low.var() + high.var()))
    floor = 1e-6 * (v[-1] - v[0])
    apart = float(np.sqrt(2) * (high.mean() - low.mean()) / max(spread, floor))
    return TwoParts(float((low[-1] + high[0]) / 2), float(low.mean()), float(high.mean()), min(at, n - at) / n, apart)


def _best_cut(v: Float[np.ndarray, " rows"]) -> int:
    """How many of the sorted values come before the cut with the largest variance between the parts."""
    n, total = len(v), v.sum()
    so_far, best, at = 0.0, -1.0, 1
    for start, stop in spans(n - 1, TOGETHER):  # a part at a time: values by the million need no copies by the dozen
        left = np.arange(start + 1, stop + 1)
        below = so_far + np.cumsum(v[start:stop])
        so_far = below[-1]
        between = left * (n - left) * (below / left - (total - below) / (n - left)) ** 2
        here = int(np.argmax(between))
        if between[here] > best:
            best, at = between[here], start + here + 1
    return at
