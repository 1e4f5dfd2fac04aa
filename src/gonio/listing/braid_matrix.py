"""The braid matrix: it turns the scores of labels into all their differences."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def braid(n: int) -> np.ndarray:
    """B, the n(n-1)/2 x n matrix with rows e_i - e_j, i < j, in lexicographic order."""
    pairs = list(combinations(range(n), 2))
    B = np.zeros((len(pairs), n))
    for k, (i, j) in enumerate(pairs):
        B[k, i], B[k, j] = 1, -1
    return B
