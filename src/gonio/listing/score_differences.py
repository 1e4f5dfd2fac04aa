"""Differences of the rows of labels, exactly: what the rankings of a head are the sign vectors of.

w_i - w_j for labels i < j; with a bias the rows are (w_i, b_i) and the extra row (0, .., 0, 1) joins them, on whose
plus side the inputs lie.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

from gonio.listing.arrangement import fractions


def differences_from_0(table: np.ndarray, extra_row: bool) -> list[list[Fraction]]:
    """w_i - w_0 for every label i, the extra row last."""
    exact = fractions(table)
    rows = [_minus(row, exact[0]) for row in exact]
    return [*rows, _extra(table.shape[1])] if extra_row else rows


def all_differences(table: np.ndarray, extra_row: bool) -> list[list[Fraction]]:
    """w_i - w_j for all labels i < j, in lexicographic order, the extra row first."""
    exact = fractions(table)
    rows = [_minus(a, b) for a, b in combinations(exact, 2)]
    return [_extra(table.shape[1]), *rows] if extra_row else rows


def _minus(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    return [x - y for x, y in zip(a, b, strict=True)]


def _extra(width: int) -> list[Fraction]:
    return [Fraction(int(c == width - 1)) for c in range(width)]
