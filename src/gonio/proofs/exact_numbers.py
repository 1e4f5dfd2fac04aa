"""Floats are rationals: sums and products of them without rounding.

A float is m 2^e with integers m and e. An array of them is held here as whole numbers times one power of two, on which
+, - and * are exact; python-flint solves the systems that such numbers make.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

LIMIT = 320  # unknowns of an exact solve: 0.02 s at 100, 1 s at 320 for float32 rows, 5 s for float64 rows
PRIME = (1 << 61) - 1


@dataclass(frozen=True, eq=False)
class Dyadic:
    """whole * 2^exponent, entry by entry; `whole` is an array of Python integers of any size."""

    whole: np.ndarray
    exponent: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "whole", np.asarray(self.whole, dtype=object))  # numpy unwraps what has no axes

    @classmethod
    def of(cls, a: Any) -> Dyadic:
        """The exact values of an array of finite floats."""
        a = np.asarray(a, dtype=np.float64)
        if not np.isfinite(a).all():
            raise ValueError("NaN and infinity are no rationals")
        fraction, exponent = np.frexp(a)
        m = np.ldexp(fraction, 53).astype(np.int64)
        # Trailing zero bits go into the exponent: a bfloat16 table has 45 of them, and a solve is the dearer for each.
        low = m & -m
        spare = np.where(m != 0, np.frexp(low.astype(np.float64))[1] - 1, 0)
        e = np.where(m != 0, exponent.astype(np.int64) - 53 + spare, 0)
        least = int(e[m != 0].min()) if m.any() else 0
        shift = np.where(m != 0, e - least, 0)
        m = m >> spare
        if shift.size and shift.max() + 54 - int(spare.min()) < 62:
            return cls((m << shift).astype(object), least)
        return cls(m.astype(object) << shift.astype(object), least)

    def _aligned(self, other: Dyadic) -> tuple[Any, Any, int]:
        e = min(self.exponent, other.exponent)
        return self.whole * (1 << (self.exponent - e)), other.whole * (1 << (other.exponent - e)), e

    def __add__(self, other: Dyadic) -> Dyadic:
        a, b, e = self._aligned(other)
        return Dyadic(a + b, e)

    def __sub__(self, other: Dyadic) -> Dyadic:
        a, b, e = self._aligned(other)
        return Dyadic(a - b, e)

    def __mul__(self, other: Dyadic) -> Dyadic:
        return Dyadic(self.whole * other.whole, self.exponent + other.exponent)

    def __matmul__(self, other: Dyadic) -> Dyadic:
        return Dyadic(np.dot(self.whole, other.whole), self.exponent + other.exponent)

    def __getitem__(self, which: Any) -> Dyadic:
        return Dyadic(self.whole[which], self.exponent)

    def ratio(self) -> tuple[int, int]:
        """The one number held, as numerator and positive denominator."""
        n = int(self.whole.reshape(-1)[0])
        return (n << self.exponent, 1) if self.exponent >= 0 else (n, 1 << -self.exponent)


def rounded(numerator: int, denominator: int, *, up: bool) -> float:
    """The quotient as a float that is not below it (up) or not above it (not up)."""
    if numerator == 0:
        return 0.0
    try:
        q = numerator / denominator  # Python divides whole numbers of any size with one rounding
    except OverflowError:
        big = math.inf if numerator > 0 else -math.inf
        return big if (big > 0) == up else math.copysign(1.7976931348623157e308, big)
    exact_n, exact_d = q.as_integer_ratio()
    off = numerator * exact_d - exact_n * denominator  # the sign of (exact - q), since denominators are positive
    if (off > 0) == up and off != 0:
        return math.nextafter(q, math.inf if up else -math.inf)
    return q


def quotients(numerators: Dyadic, denominators: Dyadic) -> list[Any]:
    """The exact quotients entry by entry, as flint rationals."""
    from flint import fmpq, fmpz

    e = numerators.exponent - denominators.exponent
    scale = fmpq(1 << e) if e >= 0 else fmpq(1, 1 << -e)
    return [fmpq(fmpz(int(a)), fmpz(int(b))) * scale for a, b in zip(numerators.whole, denominators.whole, strict=True)]


def total(terms: Iterable[Any]) -> Any:
    """The sum of rationals, added in pairs so that long denominators meet late."""
    from flint import fmpq

    terms = list(terms) or [fmpq(0)]
    while len(terms) > 1:
        terms = [sum(terms[i : i + 2], fmpq(0)) for i in range(0, len(terms), 2)]
    return terms[0]


def kernel_near(conditions: Dyadic, weights: np.ndarray) -> list[int] | None:
    """Whole numbers, in the ratios of an exact vector near `weights`, with  conditions @ vector = 0.

    conditions has one row a condition and one column a weight. The weights that are not needed to meet the conditions
    stay as they are, and the others are solved for; None where no such vector was found.
    """
    from flint import fmpz, fmpz_mat, nmod_mat

    count = conditions.whole.shape[1]
    order = np.argsort(-np.abs(weights), kind="stable")  # large weights bear a correction best
    table = [[int(v) for v in row] for row in conditions.whole[:, order]]
    modular = nmod_mat(len(table), count, [v % PRIME for row in table for v in row], PRIME)
    basic, rank = _pivots(modular)
    if rank == count:
        return None
    chosen = _pivots(modular.transpose())[0] if rank < len(table) else list(range(len(table)))
    rest = [k for k in range(count) if k not in set(basic)]
    w = Dyadic.of(weights[order])
    fixed = [int(v) for v in w.whole]
    if rank == 0:
        solved, denominator = [], 1
    else:
        # A determinant that is not zero modulo a prime is not zero: the chosen square is regular.
        square = fmpz_mat([[table[r][c] for c in basic] for r in chosen])
        right = fmpz_mat([[-sum(table[r][c] * fixed[c] for c in rest)] for r in chosen])
        solution: Any = square.solve(right)
        numerators, den = solution.numer_denom()
        solved, denominator = [int(numerators[k, 0]) for k in range(rank)], int(den)
    out = [0] * count
    for k, value in zip(basic, solved, strict=True):
        out[k] = value
    for k in rest:
        out[k] = fixed[k] * denominator
    vector = [fmpz(v) for v in out]
    if len(chosen) < len(table):
        left = set(range(len(table))) - set(chosen)
        if any(sum((fmpz(v) * x for v, x in zip(table[r], vector, strict=True) if v), fmpz(0)) != 0 for r in left):
            return None  # the conditions contradict each other
    back = [0] * count
    for place, value in zip(order, out, strict=True):
        back[place] = value
    # Nothing above fixes the scale: `out` is the vector times 2^-exponent times the denominator, which is positive.
    return back


def _pivots(m: Any) -> tuple[list[int], int]:
    reduced, rank = m.rref()
    at, out = 0, []
    for r in range(rank):
        while int(reduced[r, at]) == 0:
            at += 1
        out.append(at)
    return out, rank
