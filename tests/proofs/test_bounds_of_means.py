"""The sums of a weighted mean of rivals, and their supremum over the inputs, against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Nonnegative
from gonio.proofs.exact_numbers import Dyadic
from gonio.proofs.never_below import _conditions
from gonio.proofs.rival_mean import FINE, LONG, MeanSums, RivalMean, beyond, exact_supremum, length, sums, supremum
from tests.proofs.rationals import dot, exact, supremum_of, weighted

SETS = [
    Box(-1, 1),
    Box(0.25, 3),
    Box(-5, -0.1),
    Box([-1, 0, 2], [0.5, 7, 2]),
    AfterRMSNorm([0.3, 1.1, 2.0]),
    AfterRMSNorm([0.3, 0.0, 2.0]),
    AfterLayerNorm([0.3, 1.1, 2.0], [0.1, -0.7, 1.3]),
    AfterLayerNorm([1.0, 1.0, 0.7]),
]


def mean_of(rows, weights, inputs, bias=None):
    """Label 0 against all others."""
    head = Head(np.asarray(rows, float), bias, link="softmax", inputs=inputs)
    n = len(rows) - 1
    return RivalMean(head, 0, np.arange(1, n + 1), np.asarray(weights, float), np.zeros(n, bool))


def plain_means(inputs, seed=0, trials=12):
    """Random heads, with a bias and without."""
    rng = np.random.default_rng(seed)
    for trial in range(trials):
        n = int(rng.integers(1, 5))
        bias = rng.standard_normal(n + 1) * 3 if trial % 2 else None
        yield mean_of(rng.standard_normal((n + 1, 3)), rng.dirichlet(np.ones(n)), inputs, bias)


def lossy_mean(inputs, count=60, sign=1.0, bias=False, back=True):
    """Rivals 1, many of the size that adding to 1 loses, and (back) -1: the sums come out as 0 and are not."""
    rows = np.full((count + 3, 3), sign * FINE * 0.999)
    rows[0], rows[1], rows[-1] = 0, 1, -float(back)
    return (
        mean_of(rows * 0, np.ones(count + 2), inputs, rows[:, 0]) if bias else mean_of(rows, np.ones(count + 2), inputs)
    )


@pytest.mark.parametrize("inputs", SETS, ids=str)
def test_the_errors_of_the_sums_are_bounded(inputs):
    lossy = [lossy_mean(inputs, sign=s, bias=b, back=k) for s in (1, -1) for b in (False, True) for k in (False, True)]
    for mean in (*plain_means(inputs), *lossy):
        D, B = weighted(mean)
        s = sums(mean)
        for a, b, error in zip(exact(s.D), D, exact(s.error), strict=True):
            assert abs(a - b) <= error
        assert abs(exact(s.B) - B) <= exact(s.wrong)
        rows = np.abs(mean.weights[:, None] * mean.columns(np.arange(len(mean.weights)))[0])
        assert np.allclose(s.size.astype(float), rows.sum(axis=0).astype(float), rtol=1e-12)
        assert (s.error <= (len(mean.rivals) + 9) * FINE * s.size).all()  # and no looser than the formula


def test_lossy_sums_lose_what_the_bound_allows():
    """The data above is as bad as can be: nearly all of the bound is used."""
    mean = lossy_mean(Box(-1, 1), back=False)
    s = sums(mean)
    off = abs(exact(s.D[0]) - weighted(mean)[0][0])
    assert float(off) > 0.8 * s.error[0]


def check_supremum(inputs, s, D, B):
    value = supremum(Head(np.zeros((1, 3)), link="softmax", inputs=inputs), s)
    true = supremum_of(inputs, D, B)
    if true is None or not np.isfinite(value):
        assert true is None or value == np.inf or np.isnan(value)
        return None
    if inputs.shape == "ball":
        above = exact(value) + B
        assert above >= 0
        assert above**2 >= true
        return float(above) - math.sqrt(true)
    assert exact(value) >= true
    return value - float(true)


@pytest.mark.parametrize("inputs", SETS, ids=str)
def test_the_supremum_is_not_below_the_exact_one(inputs):
    for mean in (*plain_means(inputs, 1, 60), *(lossy_mean(inputs, sign=s) for s in (1, -1))):
        D, B = weighted(mean)
        over = check_supremum(inputs, sums(mean), D, B)
        assert over < 1e-7 * (1 + max(map(abs, D)) + abs(B))


@pytest.mark.parametrize("inputs", [Box(-1, 1), Box(1, 2), AfterRMSNorm(np.ones(3)), AfterLayerNorm(np.ones(3))], ids=str)  # fmt: skip
def test_the_supremum_covers_the_errors_it_is_given(inputs):
    """Any D and B within the stated errors of the sums: the supremum over all of them is covered."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        D, error = rng.standard_normal(3).astype(LONG), rng.random(3).astype(LONG)
        B, wrong = float(rng.standard_normal()) * 4, float(rng.random())
        s = MeanSums(D, error, np.abs(D) + error, B, wrong, 1.0)
        for turn in rng.choice([-1, 1], (4, 3)):
            worst = [a + b * int(t) for a, b, t in zip(exact(D), exact(error), turn, strict=True)]
            check_supremum(inputs, s, worst, exact(B) - exact(wrong))


def test_a_side_that_is_infinite_makes_the_supremum_infinite_unless_the_sum_vanishes_there():
    two = mean_of([[0, 0], [1, 0], [1, 0]], [0.5, 0.5], Nonnegative())
    s = sums(two)
    assert s.error[1] == 0
    down = mean_of([[0, 0], [-1e-9, 0]], [1.0], Nonnegative())
    with np.errstate(all="ignore"):
        assert -1e-12 < supremum(two.head, s) <= 1e-12
        assert supremum(two.head.replace(inputs=AllInputs()), s) == np.inf
        assert supremum(down.head, sums(down)) == np.inf


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200, 5e-324])
def test_a_length_is_rounded_up_whatever_its_size(scale):
    rng = np.random.default_rng(0)
    for d in (1, 2, 50):
        for _ in range(30):
            v = (rng.standard_normal(d) * scale).astype(LONG)
            assert exact(length(v)) ** 2 >= dot(exact(v), exact(v))
            assert length(v) <= float(np.sqrt(((v / scale) ** 2).sum())) * scale * (1 + 3e-9) + 1e-323
    assert length(np.zeros(3)) == 0.0
    assert length(np.zeros(0)) == 0.0


UNBOUNDED = [AllInputs(), Nonnegative(), Box(-0.2785, np.inf), Box([-1, -np.inf, 0.5], [np.inf, 2, 3])]


@pytest.mark.parametrize("inputs", UNBOUNDED, ids=str)
def test_over_unbounded_inputs_the_bound_grows_with_the_norm(inputs):
    rng = np.random.default_rng(2)
    low, high = inputs.bounds(3)
    for mean in (*plain_means(inputs, 2, 20), *(lossy_mean(inputs, sign=s) for s in (1, -1))):
        D, B = weighted(mean)
        value = exact(beyond(mean.head, sums(mean)))
        for k in range(60):
            z = exact(
                np.clip(
                    rng.choice([-1, 0, 1], 3) * 10.0 ** rng.integers(-3, 9, 3) if k else -np.array(D, float) * 1e9,
                    low,
                    high,
                )
            )
            most = -(dot(D, z) + B)
            assert most <= 0 or most**2 <= value**2 * max(1, dot(z, z))
        assert value <= 1e-6 + 2 * (sum(abs(v) * (1 + 3) for v in D) + abs(B))


def test_beyond_counts_only_what_can_grow():
    """Over x >= 0 a positive D never helps the label, and B below 0 counts once."""
    mean = mean_of([[0.0, 0], [3.0, 4.0]], [1.0], Nonnegative(), [2.0, 0.0])
    assert beyond(mean.head, sums(mean)) == pytest.approx(2.0, rel=1e-8)
    mean = mean_of([[3.0, 4.0], [0.0, 0]], [1.0], Nonnegative(), [0.0, 2.0])
    assert beyond(mean.head, sums(mean)) == pytest.approx(5.0, rel=1e-8)
    mean = mean_of([[0.0], [1.0]], [1.0], Box(-2, np.inf))
    assert beyond(mean.head, sums(mean)) == pytest.approx(2.0, rel=1e-8)
    mean = mean_of([[0.0], [-1.0]], [1.0], Box(-np.inf, 7))
    assert beyond(mean.head, sums(mean)) == pytest.approx(7.0, rel=1e-8)
    mean = mean_of([[0.0], [-1.0]], [1.0], Box(-np.inf, -3))
    assert beyond(mean.head, sums(mean)) <= 1e-8
    both = mean_of([[0.0, 0], [-3.0, 4.0]], [1.0], Box(-np.inf, np.inf), [1.0, 0.0])
    assert beyond(both.head, sums(both)) == pytest.approx(6.0, rel=1e-8)


@pytest.mark.parametrize("inputs", [*SETS, *UNBOUNDED], ids=str)
@pytest.mark.parametrize("far", [0.0, 3.0, 50.0])
def test_the_exact_supremum_is_that_of_fractions(inputs, far):
    rng = np.random.default_rng(4)
    told = 0
    for _ in range(25):
        n = int(rng.integers(1, 4))
        W = rng.integers(-3, 4, (n + 1, 3)) * 0.1
        if (far and isinstance(inputs, (Nonnegative, AllInputs))) or inputs in UNBOUNDED:
            W[1:] = W[0] + abs(W[1:] - W[0]) * (far < 50)
        mean = mean_of(W, np.ones(n), inputs, np.append(-far, rng.integers(-1, 2, n)))
        whole = rng.integers(1, 5, n).astype(object)
        D, B = weighted(RivalMean(mean.head, 0, mean.rivals, whole.astype(float), mean.free))
        value = exact_supremum(mean.head, whole, *mean.exactly())
        true = supremum_of(inputs, D, B)
        if inputs.shape == "ball":
            assert (value is not None) == (true <= B * B and B >= 0)
            assert value in (None, 0.0)
        elif true is None or true > 0:
            assert value is None
        else:
            assert value == min(0.0, float(true)) or 0 <= exact(value) - true < abs(true) * Fraction(1, 10**15)
        told += value is not None
    assert told or far < 50


def test_a_tie_of_the_supremum_with_zero_is_told_exactly():
    """B = sqrt(d) |D|, and one rounding off it on either side."""
    for bias, holds in ((2.0, True), (np.nextafter(2.0, 0), False), (np.nextafter(2.0, 9), True), (-2.0, False)):
        mean = mean_of([[0, 0, 0, 0], [1, 0, 0, 0]], [1.0], AfterRMSNorm(np.ones(4)), [0.0, bias])
        value = exact_supremum(mean.head, Dyadic.of(np.ones(1)).whole, *mean.exactly())
        assert (value is not None) == holds
    centred = mean_of([[0, 0], [1, 0]], [1.0], AfterLayerNorm(np.ones(2)), [0.0, 1.0])  # |D - mean| = sqrt(1/2)
    assert exact_supremum(centred.head, np.array([1], object), *centred.exactly()) == 0.0
    alike = mean_of([[1, 2], [1, 2]], [1.0], AfterRMSNorm(np.ones(2)))  # D and B vanish
    assert exact_supremum(alike.head, np.array([1], object), *alike.exactly()) == 0.0
    for inputs in (AllInputs(), Nonnegative()):  # a coordinate in which D vanishes may be as large as it likes
        alike = mean_of([[1, 2], [1, 2]], [1.0], inputs)
        assert exact_supremum(alike.head, np.array([1], object), *alike.exactly()) == 0.0


def test_many_rivals_are_added_block_by_block():
    rng = np.random.default_rng(5)
    W, b = rng.integers(-9, 10, (1300, 3)).astype(float), rng.integers(-9, 10, 1300).astype(float)
    mean = mean_of(W, rng.integers(1, 4, 1299), AfterLayerNorm(np.ones(3), [0.5, 0.0, -2.0]), b)
    D, B = weighted(mean)
    s = sums(mean)
    assert exact(s.D) == D
    assert exact(s.B) == B
    rows = W[1:] - W[0]
    assert (s.size == mean.weights @ np.abs(rows)).all()
    assert s.weight == mean.weights @ (np.abs(b[1:] - b[0]) + np.abs(rows) @ [0.5, 0.0, 2.0])


def test_a_partner_with_a_weight_below_zero_counts_by_its_size_and_not_in_the_mean():
    mean = mean_of([[0.0], [1.0], [2.0]], [1.0, -3.0], Box(-1, 1), [0.0, 5.0, 7.0])
    free = RivalMean(mean.head, 0, mean.rivals, mean.weights, np.array([False, True]))
    s = sums(free)
    assert (s.D, s.size, s.B, s.weight) == (-5, 7, -16, 26)
    assert free.scale == 1.0


@pytest.mark.parametrize("scale", [2.0**-27, 2.0**27])
def test_the_shift_of_a_norm_loses_what_the_bound_allows(scale):
    """c_j - c_i is a dot product with the shift: of 1, many numbers that are lost beside it, and -1."""
    d = 300
    row = np.r_[1.0, np.full(d - 2, FINE * 0.999), -1.0] * scale
    mean = mean_of([row * 0, row], [1.0], AfterLayerNorm(np.full(d, 1e-30), np.ones(d)))
    s = sums(mean)
    off = abs(weighted(mean)[1] - exact(s.B))
    assert off <= exact(s.wrong)
    assert float(off) > 0.5 * d * FINE * scale


@pytest.mark.parametrize("inputs", UNBOUNDED, ids=str)
def test_what_grows_with_the_norm_covers_the_errors_it_is_given(inputs):
    rng = np.random.default_rng(6)
    low, high = inputs.bounds(3)
    head = Head(np.zeros((1, 3)), link="softmax", inputs=inputs)
    for _ in range(40):
        D, error = (rng.standard_normal(3) * 0.1).astype(LONG), rng.random(3).astype(LONG)
        B, wrong = float(rng.standard_normal()) * 0.1, float(rng.random())
        value = exact(beyond(head, MeanSums(D, error, np.abs(D) + error, B, wrong, 1.0)))
        for turn in rng.choice([-1, 1], (4, 3)):
            worst = [a + b * int(t) for a, b, t in zip(exact(D), exact(error), turn, strict=True)]
            for size in (0.0, 1.0, 1e6):
                z = exact(np.clip(-np.array(worst, float) * size, low, high))
                most = -(dot(worst, z) + exact(B) - exact(wrong))
                assert most <= 0 or most**2 <= value**2 * max(1, dot(z, z))


def test_sums_too_large_for_the_type_meet_no_conditions():
    """Where long floats are floats of 64 bits a sum may overflow; then nothing is proven by them."""
    head = Head([[1.0], [2.0]], link="softmax")
    mean = RivalMean(head, 0, np.array([1]), np.ones(1), np.zeros(1, bool))
    for D, size in ((np.inf, 1.0), (1.0, np.inf)):
        seen = MeanSums(np.array([D]), np.zeros(1), np.array([size]), 0.0, 0.0, 1.0)
        with np.errstate(all="ignore"):
            assert _conditions(mean, seen) is None
