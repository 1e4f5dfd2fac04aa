"""Labels below means of their rivals over bounded inputs, many at once: in whole numbers, and against one at a time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Nonnegative, Observed
from gonio.proofs import bulk
from gonio.proofs.bounded_means import LABELS, have_sides, most_above_means
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import CertificateError, NeverWins
from tests.proofs.rationals import exact

SETS = {
    "box": lambda d: Box(-1, 2),
    "uneven box": lambda d: Box(np.linspace(-3, 0.5, d), np.linspace(0.5, 4, d)),
    "rms": lambda d: AfterRMSNorm(np.linspace(0.5, 2, d)),
    "layer": lambda d: AfterLayerNorm(np.linspace(0.5, 2, d), np.linspace(-1, 1, d)),
    "non-negative": lambda d: Nonnegative(),
    "half-infinite box": lambda d: Box(
        np.where(np.arange(d) % 3 == 1, -np.inf, 0.5), np.where(np.arange(d) % 3 == 0, np.inf, 2.0)
    ),
    "without end downwards": lambda d: Box(-np.inf, -0.5),
}
ENDLESS = ("non-negative", "half-infinite box", "without end downwards")


def made(rng, inputs, *, bias=True):
    """Low labels behind some rivals, with weights that leave a little of their rows."""
    d = int(rng.integers(1, 6))
    n, m = int(rng.integers(d + 2, d + 9)), 9
    W, b = rng.normal(size=(n, d)), rng.normal(size=n)
    weights = rng.dirichlet(np.ones(n), m)
    weights[rng.random(weights.shape) < 0.3] = 0
    weights[~weights.any(axis=1), 0] = 1
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    away = rng.normal(size=(m, d))
    if inputs in ENDLESS:  # most are below their means towards the infinite sides
        low, high = SETS[inputs](d).bounds(d)
        inwards = np.where(np.isinf(high), -1, np.where(np.isinf(low), 1, np.sign(away)))
        away = np.where(rng.random((m, 1)) < 0.8, inwards * np.abs(away), away)
    rows = weights @ W + rng.choice([0, 1e-9, 0.1], (m, 1)) * away
    lower = rng.choice([0, 1e-8, 1.0], m)
    head = Head(
        np.vstack([W, rows]),
        np.append(b, weights @ b - lower) if bias else None,
        link="softmax",
        inputs=SETS[inputs](d),
    )
    rivals = [np.flatnonzero(w) for w in weights]
    return head, np.arange(n, n + m), rivals, [w[r] for w, r in zip(weights, rivals, strict=True)]


def supremum(head, label, rivals, weights):
    """(a, b) with the supremum a + sqrt(b) of  sum_j w_j (score_i - score_j)  over the inputs, in whole numbers.

    a is infinite where the supremum is, b then 0.
    """
    d = head.shape[1]
    W, w = [exact(row) for row in head.W.astype(float)], exact(weights)
    bias = exact(np.zeros(head.shape[0]) if head.bias is None else head.bias.astype(float))
    gain, shift = (exact(v) for v in head.inputs.gain_and_shift(d))
    D = [sum(p * (W[j][k] - W[label][k]) for p, j in zip(w, rivals, strict=True)) for k in range(d)]
    B = sum(p * (bias[j] - bias[label]) for p, j in zip(w, rivals, strict=True))
    B += sum(a * s for a, s in zip(D, shift, strict=True))
    if head.inputs.shape == "ball":
        r = [a * g for a, g in zip(D, gain, strict=True)]
        mean = sum(r) / d if head.inputs.centred else 0
        return -B, d * sum((a - mean) ** 2 for a in r)
    most = -B
    for a, low, high in zip(D, *head.inputs.bounds(d), strict=True):
        if (a < 0 and high == np.inf) or (a > 0 and low == -np.inf):
            return np.inf, Fraction(0)
        if a:
            most += max(-a * Fraction(float(side)) for side in (low, high) if np.isfinite(side))
    return most, Fraction(0)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("inputs", SETS)
def test_the_bound_is_above_the_supremum_and_near_it(inputs, bias):
    rng = np.random.default_rng(list(SETS).index(inputs))
    below = 0
    for _ in range(25):
        head, labels, rivals, weights = made(rng, inputs, bias=bias)
        assert have_sides(head)
        for k, bound in enumerate(most_above_means(head, labels, rivals, weights)):
            a, b = supremum(head, int(labels[k]), rivals[k], weights[k])
            if bound == np.inf and inputs in ENDLESS:  # said where a mean is as high up to rounding, too
                assert a == np.inf or nearly_as_high(head, int(labels[k]), rivals[k], weights[k])
                continue
            over = Fraction(float(bound)) * sum(exact(weights[k])) - a  # at least sqrt(b)
            assert over >= 0
            assert over * over >= b
            assert float(over) <= float(b) ** 0.5 + 1e-11
            below += bound <= 0
    assert below > (20 if bias or inputs == "non-negative" else -1)


def nearly_as_high(head, label, rivals, weights):
    """Whether towards some infinite side the label and the mean rise by the same up to rounding."""
    low, high = head.inputs.bounds(head.shape[1])
    away = weights @ head.W[rivals] - weights.sum() * head.W[label]
    return bool((np.abs(away)[np.isinf(low) | np.isinf(high)] < 1e-12).any())


def test_rounding_of_many_weights_is_counted():
    """Thousands of rivals far out on both sides, whose mean is the label: what floats lose of it is in the bound."""
    rng = np.random.default_rng(2)
    half = rng.normal(size=(4000, 3)) * 1e6
    W = np.vstack([half, -half, np.zeros((1, 3))])
    head = Head(W, link="softmax", inputs=Box(-1, 1))
    weights = rng.dirichlet(np.ones(8000))
    bound = most_above_means(head, np.array([8000]), [np.arange(8000)], [weights])[0]
    a, _ = supremum(head, 8000, np.arange(8000), weights)
    assert Fraction(float(bound)) * sum(exact(weights)) >= a
    # The same rival many times over is the sum of its weights.
    twice = most_above_means(head, np.array([8000]), [np.repeat(np.arange(8000), 2)], [np.repeat(weights / 2, 2)])[0]
    assert twice == pytest.approx(bound, rel=1e-9)


def test_numbers_beyond_floats_prove_nothing():
    head = Head(np.array([[1e308, 0], [-1e308, 1], [0, 0.5]]), link="softmax", inputs=Box(-1e9, 1e9))
    with np.errstate(all="ignore"):
        most = most_above_means(head, np.array([2]), [np.array([0, 1])], [np.array([0.9, 0.1])])
    assert most.tolist() == [np.inf]


def test_a_mean_that_is_lower_anywhere_far_out_bounds_nothing():
    W = np.array([[1.0, 0.0], [0.0, 1.0], [0.4, 0.4], [0.6, 0.4]])
    weights = [np.array([0.5, 0.5])] * 2
    for inputs in (Nonnegative(), Box(0, np.inf)):
        head = Head(W, link="softmax", inputs=inputs)
        assert most_above_means(head, np.array([2, 3]), [np.array([0, 1])] * 2, weights).tolist() == [0, np.inf]
    head = Head(-W, link="softmax", inputs=Box(-np.inf, 0))  # the same scores at -x
    assert most_above_means(head, np.array([2, 3]), [np.array([0, 1])] * 2, weights).tolist() == [0, np.inf]


def test_a_ball_and_a_box_have_sides_if_no_coordinate_is_free_both_ways():
    W = np.ones((3, 2))
    bounded = {
        AllInputs(): False,
        Nonnegative(): True,
        Box(-1, np.inf): True,
        Box(-np.inf, 1): True,
        Box(np.array([-np.inf, 0]), np.array([np.inf, 1])): False,
        Observed(W): False,
        Box(-1, 1): True,
        AfterRMSNorm(np.ones(2)): True,
        AfterLayerNorm(np.ones(2)): True,
    }
    for inputs, whether in bounded.items():
        assert have_sides(Head(W, link="softmax", inputs=inputs)) == whether


@pytest.mark.parametrize("inputs", SETS)
def test_together_they_are_accepted_as_one_at_a_time(inputs, monkeypatch):
    """Also of forms that prove nothing: those are looked at one at a time, and refused in their own words."""
    rng = np.random.default_rng(11)
    head, labels, rivals, weights = made(rng, inputs)
    while sum(len(r) > 1 for r in rivals) < 8:
        head, labels, rivals, weights = made(rng, inputs)
    claims = [NeverWins(head.digest, int(i), r, w) for i, r, w in zip(labels, rivals, weights, strict=True)]
    some, j = claims[0], int(labels[1])
    claims += [
        NeverWins("0" * 64, some.label, some.rivals, some.weights),
        NeverWins(head.digest, some.label, some.rivals, some.weights * 0.5),
        NeverWins(head.digest, some.label, some.rivals, -some.weights),
        NeverWins(head.digest, some.label, some.rivals, some.weights[:-1]),
        NeverWins(head.digest, some.label, some.rivals[:0], some.weights[:0]),
        NeverWins(head.digest, some.label, some.rivals, np.where(np.arange(len(some.weights)), some.weights, np.nan)),
        NeverWins(head.digest, some.label, np.array([some.label]), np.ones(1)),
        NeverWins(head.digest, j, np.array([int(labels[2])]), np.ones(1)),
    ]
    seen = verify_all(head, claims)
    settled = bulk.most_above_means(head, labels, rivals, weights) <= 0
    assert settled.any() or inputs == "layer"
    for k, c in enumerate(claims):
        try:
            alone = c.verify(head)
        except CertificateError as e:
            assert seen.refused[k] == str(e)
            continue
        assert k not in seen.refused
        assert alone - 1e-9 <= seen.bounds[k] <= 0
    monkeypatch.setattr(bulk, "FEW", 1000)  # then nothing is looked at together
    assert verify_all(head, claims).refused == seen.refused


def test_more_labels_than_are_looked_at_together():
    rng = np.random.default_rng(4)
    n = 2 * LABELS + 3
    W = np.vstack([np.eye(3), -np.eye(3), 0.1 * rng.normal(size=(n, 3))])
    b = np.append(np.zeros(6), np.full(n, -1.0))
    head = Head(W, b, link="softmax", inputs=Box(-1, 1))
    rivals, weights = [np.arange(6)] * n, [np.full(6, 1 / 6)] * n
    most = most_above_means(head, np.arange(6, 6 + n), rivals, weights)
    assert most.shape == (n,)
    for k in (0, LABELS, n - 1):
        assert most[k] == pytest.approx(-1 + np.abs(W[6 + k]).sum(), abs=1e-12)
