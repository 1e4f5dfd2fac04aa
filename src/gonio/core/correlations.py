"""Pearson's and Spearman's correlation, as numbers that are NaN where there is nothing to correlate."""

from __future__ import annotations

import numpy as np

LEAST = 3  # fewer pairs than this correlate with nothing


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's correlation; NaN for fewer than two pairs, or where one of the two varies by no more than rounding."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(x) < 2 or any(np.linalg.norm(v - v.mean()) <= 1e-12 * np.linalg.norm(v) for v in (x, y)):
        return float("nan")
    from scipy.stats import pearsonr

    return float(pearsonr(x, y)[0])  # type: ignore[arg-type]


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's correlation where both are known; NaN where fewer than three are, or one is constant."""
    ok = np.isfinite(x) & np.isfinite(y)
    x, y = np.asarray(x)[ok], np.asarray(y)[ok]
    if ok.sum() < LEAST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    from scipy.stats import spearmanr

    return float(spearmanr(x, y)[0])  # type: ignore[arg-type]
