"""Sums, products, quotients and solutions of floats without rounding, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from gonio.proofs.exact_numbers import Dyadic, kernel_near, quotients, rounded, total
from tests.proofs.rationals import dot, exact

AWKWARD = np.array([0.1, -0.0, 0.0, 1 / 3, -5e-324, 1.7e308, 3.0, -(2.0**-1060), 2.0**53 + 2, -1e22, 0.75])


def value(d):
    """The fractions that a Dyadic holds."""
    scale = Fraction(2) ** d.exponent
    return [int(v) * scale for v in np.ravel(d.whole)]


@pytest.mark.parametrize("a", [AWKWARD, AWKWARD[:1], AWKWARD[3:4] * 8, np.zeros(3), np.float32([0.1, 2.5]), np.arange(5.0), np.zeros(0), 2.0 ** np.arange(-20, 40, 3.0)], ids=repr)  # fmt: skip
def test_floats_are_held_as_they_are(a):
    held = Dyadic.of(a)
    assert value(held) == exact(a)
    assert all(type(v) is int for v in held.whole)


def test_trailing_zeros_go_into_the_exponent():
    assert (Dyadic.of([3.0, 8.0]).whole.tolist(), Dyadic.of([3.0, 8.0]).exponent) == ([3, 8], 0)
    assert (Dyadic.of([12.0]).whole.tolist(), Dyadic.of([12.0]).exponent) == ([3], 2)
    assert (Dyadic.of([0.0, 0.25]).whole.tolist(), Dyadic.of([0.0, 0.25]).exponent) == ([0, 1], -2)
    assert Dyadic.of([0.0]).exponent == 0


@pytest.mark.parametrize("gap", range(0, 70, 3))
def test_shifts_beyond_64_bits_are_exact(gap):
    for a in (
        [1 / 3, 2.0**-gap / 3],
        [1.0, 2.0**-gap],
        [1 + 2.0**-52, 2.0**-gap],
        [1 + 2.0**-52, 2.0**-gap, 3.0],
        [0.0, 7 * 2.0**gap, -1.0],
    ):
        assert value(Dyadic.of(a)) == exact(np.array(a))


def test_sums_differences_and_products_are_exact():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = (rng.standard_normal(4) * 10.0 ** rng.integers(-30, 30, 4) for _ in range(2))
        p, q = Dyadic.of(a), Dyadic.of(b)
        for x, y in ((p, q), (q, p)):
            u, v = value(x), value(y)
            assert value(x + y) == [s + t for s, t in zip(u, v, strict=True)]
            assert value(x - y) == [s - t for s, t in zip(u, v, strict=True)]
            assert value(x * y) == [s * t for s, t in zip(u, v, strict=True)]
            assert value(x @ y) == [dot(u, v)]
        assert Fraction(*p[2].ratio()) == exact(a[2])
        assert Fraction(*(p[1] - q[3]).ratio()) == exact(a[1]) - exact(b[3])
        assert value(p[1:3]) == exact(a[1:3])
    assert Dyadic.of([6.0])[0].ratio() == (6, 1)
    assert Dyadic.of([-0.75])[0].ratio() == (-3, 4)


@pytest.mark.parametrize("up", [False, True])
def test_a_quotient_is_rounded_to_the_side_asked_for(up):
    rng = np.random.default_rng(1)
    for _ in range(300):
        n, d = int(rng.integers(-(10**9), 10**9)), int(rng.integers(1, 10**9))
        q = rounded(n, d, up=up)
        true = Fraction(n, d)
        assert Fraction(q) >= true if up else Fraction(q) <= true
        if Fraction(q) != true:  # the next float is on the other side
            other = Fraction(math.nextafter(q, -math.inf if up else math.inf))
            assert other < true if up else other > true
    assert rounded(3, 4, up=up) == 0.75
    assert rounded(-3, 4, up=up) == -0.75
    assert rounded(0, 7, up=up) == 0.0


def test_quotients_that_no_float_holds_are_rounded_outward():
    big, top = 10**400, math.nextafter(math.inf, 0)
    assert rounded(big, 1, up=True) == math.inf
    assert rounded(big, 1, up=False) == top
    assert rounded(-big, 1, up=True) == -top
    assert rounded(-big, 1, up=False) == -math.inf
    assert rounded(1, big, up=True) == 5e-324
    assert rounded(1, big, up=False) == 0.0
    assert rounded(-1, big, up=True) == 0.0
    assert rounded(-1, big, up=False) == -5e-324


def test_quotients_and_their_total_are_exact():
    a, b = np.array([0.1, -3.0, 1e-9, 7.0, 0.0]), np.array([0.3, 0.7, 1e12, -2.0, 5.0])
    for x, y in ((a, b), (a * 2.0**70, b), (a, b * 2.0**70)):
        found = quotients(Dyadic.of(x), Dyadic.of(y))
        true = [s / t for s, t in zip(exact(x), exact(y), strict=True)]
        assert [Fraction(int(v.p), int(v.q)) for v in found] == true
        for k in range(6):
            t = total(found[:k])
            assert Fraction(int(t.p), int(t.q)) == sum(true[:k], Fraction(0))


def solution(table, weights):
    found = kernel_near(Dyadic(np.array(table, dtype=object), 0), np.array(weights, float))
    if found is not None:
        assert all(dot(row, found) == 0 for row in table)
    return found


def ratio(found, k=0):
    return [Fraction(v, found[k]) for v in found]


def test_a_vector_that_meets_the_conditions_is_found_near_the_weights():
    # 2 a = 3 b and a + b = c: one dimension is left.
    found = solution([[2, -3, 0], [1, 1, -1]], [0.6, 0.4000001, 1.0])
    assert ratio(found) == [1, Fraction(2, 3), Fraction(5, 3)]
    assert found[0] > 0


def test_weights_that_are_not_needed_stay_as_they_are():
    w = [0.1, 0.7, 0.3]
    found = solution([[1, -1, 1]], w)  # the largest weight is the one that is solved for
    assert Fraction(found[0], found[2]) == Fraction(0.1) / Fraction(0.3)
    assert found[1] == found[0] + found[2]
    assert all(v > 0 for v in found)


def test_conditions_that_only_zero_meets_have_no_vector():
    assert solution([[1, 0], [0, 1]], [0.5, 0.5]) is None
    assert solution([[1, 2], [3, 4], [5, 6]], [0.5, 0.5]) is None


def test_conditions_said_twice_are_one_condition():
    found = solution([[1, -2, 0], [2, -4, 0], [-3, 6, 0]], [0.5, 0.25, 0.25])
    assert ratio(found) == [1, Fraction(1, 2), Fraction(1, 2)]


def test_no_condition_at_all_keeps_the_weights():
    assert ratio(solution([[0, 0, 0]], [0.5, 0.25, 0.125])) == [1, Fraction(1, 2), Fraction(1, 4)]


def test_a_condition_that_vanishes_modulo_the_prime_is_not_taken_for_met():
    """Its row is 0 modulo the prime, so the rank is too low: the check in whole numbers sees it."""
    from gonio.proofs.exact_numbers import PRIME

    for table in ([[1, -1], [PRIME, PRIME]], [[1, -1], [2, -2], [PRIME, PRIME]]):
        assert kernel_near(Dyadic(np.array(table, dtype=object), 0), np.array([0.5, 0.5])) is None


def test_the_sign_is_that_of_the_weights_whatever_the_determinant():
    rng = np.random.default_rng(2)
    for _ in range(60):
        w = rng.integers(1, 9, 5)
        table = rng.integers(-5, 6, (3, 5))
        table[:, 4] = 0
        w5 = np.append(w[:4], 1)
        # the last column closes every row, so that w itself is a solution
        table[:, 4] = -(table[:, :4] @ w5[:4])
        found = solution(table.tolist(), w5 + rng.standard_normal(5) * 1e-9)
        assert found is not None
        free = np.flatnonzero(np.array(found))
        assert all(found[k] > 0 for k in free) or np.linalg.matrix_rank(table) < 3


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_rational_is_refused(bad):
    with pytest.raises(ValueError, match="no rationals"):
        Dyadic.of([1.0, bad])
