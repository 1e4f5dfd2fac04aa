"""Differences of scores at one input and weighted sums of them, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Observed
from gonio.core.float_units import UNIT
from gonio.proofs.certificates import CertificateError
from gonio.proofs.comparisons import Impossible, Possible, WeightedComparisons
from gonio.proofs.margins import Places
from gonio.proofs.score_gaps import NOBODY, ZERO, least_gap
from tests.proofs.rationals import dot, exact, meant, score

NORM = AfterLayerNorm(np.array([0.5, -2.0, 1.25]), np.array([0.5, 0.0, -1.5]))
SETS = [AllInputs(), Box(-1, 1), AfterRMSNorm(np.array([0.5, 2.0, -3.0])), NORM]


def gap(head, above, below, top, point):
    """The smallest difference that was asked for, exactly."""
    of = lambda i: Fraction(0) if i == ZERO else score(head, int(i), point)  # noqa: E731
    gaps = [of(i) - of(j) for i, j in zip(above, below, strict=True)]
    gaps += [of(i) - of(j) for i in top for j in range(head.shape[0]) if j not in top]
    return min(gaps, default=np.inf)


def questions(rng, n):
    """Some comparisons of labels with each other and with zero, and some labels above all others."""
    pairs = [(i, j) for i in range(ZERO, n) for j in range(ZERO, n) if i != j]
    some = [pairs[k] for k in rng.integers(0, len(pairs), int(rng.integers(0, 4)))]
    top = rng.choice(n, int(rng.integers(0, n)), replace=False)
    if not some and not len(top):
        some = [pairs[0]]
    above, below = (np.array([p[k] for p in some], np.int64) for k in (0, 1))
    return above, below, top


@pytest.mark.parametrize("inputs", SETS, ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_the_least_gap_encloses_the_exact_one(inputs, biased):
    rng = np.random.default_rng(biased)
    held = 0
    for _ in range(60):
        n = int(rng.integers(2, 5))
        W = rng.integers(-3, 4, (n, 3)) * 0.1
        bias = rng.integers(-2, 3, n) * 0.1 if biased else None
        head = Head(W, bias, link="softmax", inputs=inputs)
        x = rng.integers(-3, 4, 3) * 0.1
        if inputs.centred:
            z = x - x.mean()
            x = inputs.gain * z + inputs.shift
        above, below, top = questions(rng, n)
        found = least_gap(head, above, below, top, Places(inputs, x[None]))
        true = gap(head, above, below, top, meant(inputs, x))
        assert (found.at_least > 0) == (found.at_most > 0) == (true > 0)
        if true != np.inf:
            assert exact(found.at_least) <= true <= exact(found.at_most)
            assert found.at_most - found.at_least < 1e-9
        held += found.at_least > 0
    assert held > 3


@pytest.mark.parametrize("inputs", [AllInputs(), NORM], ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_gaps_that_rounding_hides_are_exact(inputs, biased):
    """Products that cancel but for a rounding: the difference is the exact one, rounded down."""
    rng = np.random.default_rng(5)
    for trial in range(24):
        z = np.append(v := rng.uniform(0.5, 2, 2), -v.sum())
        x = inputs.gain * z + inputs.shift if inputs.centred else z
        W = np.array([[x[1] * (1 + trial % 3 * 2 * UNIT), 0, 0], [0, x[0], 0], [-99.0, 0, 0] / np.sign(x[0])])
        bias = np.array([0.3, 0.3 + (trial % 2) * 2.0**-54, -9]) if biased else None
        head, point = Head(W, bias, link="softmax", inputs=inputs), meant(inputs, x)
        true = score(head, 0, point) - score(head, 1, point)
        assert abs(true) < 1e-13
        for i, j, sign in ((0, 1, 1), (1, 0, -1)):
            found = least_gap(head, np.array([i]), np.array([j]), NOBODY, Places(inputs, x[None]))
            assert (
                exact(found.at_least) <= sign * true <= exact(found.at_most) <= exact(np.nextafter(found.at_least, 1))
            )
            top = least_gap(head, NOBODY, NOBODY, np.array([i]), Places(inputs, x[None]))
            assert (top.at_least > 0) == (sign * true > 0)
            assert exact(top.at_least) <= sign * true <= exact(top.at_most)
        # the same rows against the number 0
        zero = Head(
            np.array([W[0] - W[1], W[2]]), None if bias is None else bias[:2] - bias[1], link="softmax", inputs=inputs
        )
        true = score(zero, 0, point)
        for above, below, sign in ((0, ZERO, 1), (ZERO, 0, -1)):
            found = least_gap(zero, np.array([above]), np.array([below]), NOBODY, Places(inputs, x[None]))
            assert (
                exact(found.at_least) <= sign * true <= exact(found.at_most) <= exact(np.nextafter(found.at_least, 1))
            )


def test_scores_beside_those_that_overlap_count_by_their_bounds():
    """Labels 0 and 2 have scores 5 and -5 that floats leave open by 1e5; 1 and 3 are far above and below."""
    W = [[1e20, -1e20, 5], [0, 0, 1e7], [1e20, -1e20, -5], [0, 0, -1e7]]
    head = Head(W, link="softmax")
    found = least_gap(head, NOBODY, NOBODY, np.array([0, 1]), Places(head.inputs, np.ones((1, 3))))
    assert found.at_least == found.at_most == 10


@pytest.mark.parametrize("inputs", SETS, ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_weighted_comparisons_are_their_exact_columns(inputs, biased):
    rng = np.random.default_rng(6)
    W = rng.integers(-5, 6, (6, 3)).astype(float)
    bias = rng.integers(-5, 6, 6).astype(float) if biased else None
    head = Head(W, bias, link="softmax", inputs=inputs)
    above, below = np.array([0, ZERO, 5, 1, 1]), np.array([1, 0, ZERO, 2, 5])
    used = np.array([0, 1, 2, 4])
    mean = WeightedComparisons(head, -1, used, np.full(4, 0.25), np.zeros(4, bool), above, below)
    gain, shift = (exact(v) for v in inputs.gain_and_shift(3))
    row = lambda i: [Fraction(0)] * 3 if i == ZERO else exact(W[i])  # noqa: E731
    b = lambda i: Fraction(0) if i == ZERO or bias is None else exact(bias[i])  # noqa: E731
    rows, c, size = mean.columns(np.array([0, 2, 3]))
    exact_rows, exact_c = mean.exactly()
    scale = [Fraction(2) ** v.exponent for v in (exact_rows, exact_c)]
    for k, at in enumerate(used.tolist()):
        low, high = below[at], above[at]
        diff = [p - q for p, q in zip(row(low), row(high), strict=True)]
        want = [p * g for p, g in zip(diff, gain, strict=True)]
        constant = b(low) - b(high) + dot(diff, shift)
        assert [int(v) * scale[0] for v in exact_rows.whole[k]] == want
        assert int(exact_c.whole[k]) * scale[1] == constant
        if k in (0, 2, 3):
            place = [0, 2, 3].index(k)
            assert exact(rows[place]) == want
            assert exact(c[place]) == constant
            assert exact(size[place]) == abs(b(low) - b(high)) + sum(
                abs(p * s) for p, s in zip(diff, shift, strict=True)
            )


@pytest.mark.parametrize("biased", [False, True])
def test_a_cycle_is_impossible_wherever_it_is_asked(biased):
    """0 > 1 > zero > 0: the sum is 0 in whole numbers, over every kind of inputs."""
    rng = np.random.default_rng(7)
    for inputs in SETS:
        head = Head(
            rng.standard_normal((3, 3)), rng.standard_normal(3) if biased else None, link="softmax", inputs=inputs
        )
        d = head.digest
        assert Impossible(d, [0, 1, ZERO], [1, ZERO, 0], [], [1 / 3] * 3).verify(head) == 0.0
        for above, below in (([0, 1, ZERO], [1, ZERO, 2]), ([0, 1, ZERO], [1, 2, 0])):
            try:  # no cycle: where it is proven at all, it is with room to spare
                assert Impossible(d, above, below, [], [1 / 3] * 3).verify(head) < 0
            except CertificateError as e:
                assert "undecided" in str(e)


def test_labels_beside_the_range_are_refused():
    head = Head(np.eye(3), link="softmax")
    for above, below, top in (([0, 3], [1, 1], []), ([-2, 0], [1, 1], []), ([1], [3], []), ([1], [-2], []), ([], [], [0, 3]), ([], [], [-1, 2])):  # fmt: skip
        with pytest.raises(CertificateError, match="not among 0 to 2"):
            Possible(head.digest, above, below, top, [1.0, 0, 0]).verify(head)
    assert Possible(head.digest, [0], [2], [], [1.0, 0, -1]).verify(head) == pytest.approx(2)
    assert Possible(head.digest, [0, ZERO], [ZERO, 2], [], [1.0, 0, -1]).verify(head) == pytest.approx(1)
    assert Possible(head.digest, [0], [1], [0, 1], [2.0, 1.0, -1]).verify(head) == pytest.approx(1)
    assert Possible(head.digest, [0], [1], [0, 1], [9.0, 1.0, -1]).verify(head) == pytest.approx(2)
    for bad in (Possible(head.digest, [0], [0], [], [1.0, 0, 0]), Impossible("0", [0], [1], [], [1.0]), Possible("0", [0], [1], [], [1.0, 0, 0])):  # fmt: skip
        with pytest.raises(CertificateError):
            bad.verify(head)


def test_a_tie_is_no_comparison_that_holds():
    head = Head([[1.0, 1], [1, -1], [0, 0]], link="softmax")
    for above, below, top in (([0], [1], []), ([], [], [0]), ([0, ZERO], [2, 1], [])):
        with pytest.raises(CertificateError, match="not all"):
            Possible(head.digest, above, below, top, [1.0, 0.0]).verify(head)
    seen = head.replace(inputs=Observed([[1.0, 0.0], [0.0, -1.0]]))
    assert Impossible(seen.digest, [0], [1], [], []).verify(seen) == 0.0
    with pytest.raises(CertificateError, match="hold at one of the observed"):
        Impossible(seen.digest, [1], [0], [], []).verify(seen)
