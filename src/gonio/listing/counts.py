"""How many label sets and rankings there are, in closed form, for heads in general position.

Cover 1965: the sign vectors of n generic rows of rank d are  2 sum_{i<d} C(n-1, i);  with a bias  sum_{i<=d} C(n, i).
Cover 1967, Good and Tideman 1977: the rankings by n generic rows of rank d are  2 sum_{i<d} e_i(2, ..., n-1);  with a
bias  sum_{i<=d} e_i(1, ..., n-1),  the unsigned Stirling numbers |s(n, n-i)|.  Here e_i is the i-th elementary
symmetric polynomial. Every head has at most so many; a head that is not generic has fewer.
"""

from __future__ import annotations

import math

from gonio.core.errors import GonioError


def count_label_sets(n: int, d: int, *, bias: bool = False) -> int:
    """The label sets of n rows of rank d in general position (zero scores left out).

    >>> count_label_sets(10, 5), count_label_sets(5, 3), count_label_sets(5, 3, bias=True)
    (512, 22, 26)

    Claims: COV65.signs
    """
    _check(n, d, "count_label_sets")
    if n == 0:
        return 1
    if d == 0:
        return int(bias)  # every score is its bias, for every input
    return sum(math.comb(n, i) for i in range(d + 1)) if bias else 2 * sum(math.comb(n - 1, i) for i in range(d))


def count_rankings(n: int, d: int, *, bias: bool = False) -> int:
    """The rankings without ties by n rows whose differences have rank d, in general position.

    >>> [count_rankings(5, d) for d in (1, 2, 3, 4)], count_rankings(5, 3, bias=True)
    ([2, 20, 72, 120], 96)

    Claims: COV67.rankings
    """
    _check(n, d, "count_rankings")
    if n < 2:
        return 1
    if d == 0:
        return int(bias)
    return sum(_symmetric(range(1, n), d)) if bias else 2 * sum(_symmetric(range(2, n), d - 1))


def _symmetric(values: range, most: int) -> list[int]:
    """e_0, ..., e_most of the values."""
    e = [1] + [0] * most
    for v in values:
        for k in range(most, 0, -1):
            e[k] += v * e[k - 1]
    return e


def _check(n: int, d: int, who: str) -> None:
    if n < 0 or d < 0:
        raise GonioError(f"{who}: {n} rows of rank {d} were given; neither can be negative.")
