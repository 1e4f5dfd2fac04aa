"""Bounds as short numbers that are still true: a lower bound is rounded down, an upper bound up."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def at_least(x: float, digits: int = 3) -> str:
    """The largest number of so many digits that is not above x.

    >>> at_least(4.759), at_least(1e-9 / 3, 2), at_least(-0.0126, 2)
    ('4.75', '3.3e-10', '-0.013')
    """
    return _rounded(x, digits, ROUND_FLOOR)


def at_most(x: float, digits: int = 3) -> str:
    """The smallest number of so many digits that is not below x.

    >>> at_most(4.751), at_most(0.0), at_most(float("inf"))
    ('4.76', '0', 'inf')
    """
    return _rounded(x, digits, ROUND_CEILING)


def _rounded(x: float, digits: int, way: str) -> str:
    if not math.isfinite(x) or x == 0:
        return f"{x:g}"
    return f"{float(Context(prec=digits, rounding=way).create_decimal(Decimal(x))):.{digits}g}"
