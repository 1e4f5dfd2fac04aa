"""Histograms of values that may be equal but for rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int

NARROW = 1e-9  # a spread below this share of the values is rounding: bins within it would say nothing


def histogram(
    values: Float[np.ndarray, " values"], bins: int
) -> tuple[Int[np.ndarray, " bins"], Float[np.ndarray, " edges"]]:
    """Counts and edges of `bins` equal bins; values that are equal but for rounding are all in one bin.

    >>> [int(n) for n in histogram(np.array([1.0, 1.0 + 2.0**-52]), 3)[0]]
    [0, 2, 0]
    """
    low, high = float(np.min(values)), float(np.max(values))
    size = max(abs(low), abs(high))
    if high - low <= NARROW * size:
        width = (size or 1.0) / bins
        low -= width * (bins // 2 + 0.5)  # so that they lie inside of one bin, not on the edge of two
        high = low + width * bins
    return np.histogram(values, bins=bins, range=(low, high))
