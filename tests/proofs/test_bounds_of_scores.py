"""Scores and margins at an embedding: every bound of rounding against exact arithmetic, on data that uses it up."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Head
from gonio.core.float_units import TINY, UNIT
from gonio.proofs.margins import Places, _Scaled, beats, least_margins
from gonio.proofs.score_gaps import scores_with_bounds
from tests.proofs.rationals import exact, mean_z, meant, score

WIDE = 1024


def layer_norm(d, rng):
    return AfterLayerNorm(rng.uniform(0.3, 3, d), rng.standard_normal(d))


def plain_cases(trials=40):
    """Small heads with a bias and without, at random embeddings, over all inputs and after a LayerNorm."""
    rng = np.random.default_rng(0)
    for k in range(trials):
        n, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        inputs = layer_norm(d, rng) if k % 4 == 3 else AllInputs()
        bias = rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4) if k % 2 else None
        yield Head(rng.standard_normal((n, d)), bias, link="softmax", inputs=inputs), rng.standard_normal((1, d))


def lossy_cases():
    """Embeddings of 1 and of numbers that are lost when they are added to it, up or down."""
    for sign in (1, -1):
        x = np.r_[1.0, np.full(WIDE - 1, sign * UNIT * 0.99)][None]
        W = np.ones((3, WIDE))
        W[1], W[2] = -1, 0
        yield Head(W, link="softmax"), x
        yield Head(np.c_[W[:, :1], W[:, 1:] * (1 + 2.0**-20)], link="softmax"), x


def drifting_cases():
    """After a LayerNorm whose z does not sum to zero: the embedding meant lies beside the floats."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        d = 5
        inputs = layer_norm(d, rng)
        z = rng.standard_normal(d)
        z -= z.mean() - rng.choice([-1, 1]) * 1e-7
        yield Head(rng.standard_normal((3, d)), link="softmax", inputs=inputs), (inputs.gain * z + inputs.shift)[None]


CASES = [*plain_cases(), *lossy_cases(), *drifting_cases()]


def test_scores_are_within_their_bounds():
    for head, x in CASES:
        places = Places(head.inputs, x)
        value, bound = scores_with_bounds(head, places)
        point = meant(head.inputs, x[0])
        for i in range(head.shape[0]):
            off = abs(exact(value[i]) - score(head, i, point))
            assert off <= exact(bound[i])
        some = np.array([head.shape[0] - 1, 0])
        again = scores_with_bounds(head, places, some)
        assert np.allclose(again[0], value[some], rtol=1e-12, atol=1e-12)
        assert np.allclose(again[1], bound[some], rtol=1e-9)


def test_a_drift_is_not_below_the_mean_of_z():
    for head, x in drifting_cases():
        places = Places(head.inputs, x)
        true = mean_z(head.inputs, x[0])
        assert abs(true) <= exact(places.drift[0]) <= abs(true) * 2
        found = places.exact_drift(0)
        assert Fraction(int(found.p), int(found.q)) == true
    # z that sums to zero in floats and not exactly
    inputs = AfterLayerNorm(np.ones(WIDE))
    dust = np.r_[1.0, np.full(WIDE - 1, UNIT * 0.99)]
    for x in (dust, -dust, np.r_[1e16, 1.0, -1e16, np.zeros(WIDE - 3)], np.r_[0.1, 0.2, -0.3, np.zeros(WIDE - 3)]):
        assert abs(mean_z(inputs, x)) <= exact(Places(inputs, x[None]).drift[0])
    assert Places(AllInputs(), x[None]).drift[0] == 0
    assert Places(AfterRMSNorm(np.ones(WIDE)), x[None]).drift[0] == 0
    assert Places(AfterLayerNorm(np.r_[0.0, np.ones(WIDE - 1)]), x[None]).drift[0] == 0


def test_how_far_a_label_beats_a_rival_is_never_overstated():
    for head, x in CASES:
        places, point = Places(head.inputs, x), meant(head.inputs, x[0])
        n = head.shape[0]
        for i in range(n):
            rivals = np.delete(np.arange(n), i)
            for j, low in zip(rivals.tolist(), beats(head, i, rivals, places, 0), strict=True):
                true = score(head, i, point) - score(head, j, point)
                assert exact(low) <= true
                if places.drift[0] < 1e-6:
                    assert float(true) - low <= 1e-9 * (1 + abs(float(true))) + 1e-5 * bool(places.drift[0])


def test_differences_near_zero_are_told_exactly():
    """Where products cancel but for a rounding, the difference is the exact one, rounded down."""
    rng = np.random.default_rng(2)
    for trial in range(40):
        a, b = rng.uniform(0.5, 2, 2)
        inputs = layer_norm(3, rng) if trial % 2 else AllInputs()
        x = np.array([[0.3, 0.2, 0.1], [b, a, 0.5]])
        if trial % 2:  # a z that floats do not make sum to zero
            z = np.array([b, a, -a - b])
            x = np.array([z, z]) * inputs.gain + inputs.shift
            a, b = x[1, 1] * (1 + trial % 4 * UNIT), x[1, 0]
        bias = np.array([0.1, 0.1 + trial * 2.0**-56]) if trial % 3 else None
        head = Head(np.array([[a, 0, 0], [0, b, 0]]), bias, link="softmax", inputs=inputs)
        point = meant(inputs, x[1])
        true = score(head, 0, point) - score(head, 1, point)
        assert abs(true) < 1e-13
        (low,) = beats(head, 0, np.array([1]), Places(inputs, x), 1)
        assert exact(low) <= true
        assert exact(np.nextafter(low, np.inf)) > true


def scaled_cases():
    rng = np.random.default_rng(3)
    for kind in (np.float32, np.float64):
        for size in (1.0, 1e-200, 1e200, 1e-20):
            for bias in (None, rng.standard_normal(5) * size, rng.standard_normal(5)):
                W = rng.standard_normal((5, 3)) * size
                yield Head(W, bias, link="softmax"), rng.standard_normal((40, 3)) * rng.choice([1, 1e-150, 1e150]), kind
        # products that a float32 or a float64 loses, up and down
        for sign in (1, -1):
            unit = 2.0**-24 if kind == np.float32 else UNIT
            x = np.r_[1.0, np.full(WIDE - 1, sign * unit * 0.99)]
            yield (
                Head(
                    np.array([np.ones(WIDE), -np.ones(WIDE), np.r_[1, np.zeros(WIDE - 1)]]),
                    np.array([0.0, 1.0, -1.0]),
                    link="softmax",
                ),
                x[None],
                kind,
            )
        for inputs in (layer_norm(4, rng), layer_norm(4, rng)):
            z = rng.standard_normal((20, 4))
            z = z - z.mean(axis=1, keepdims=True) + 1e-7 * rng.choice([-1, 1], (20, 1))
            yield Head(rng.standard_normal((5, 4)), link="softmax", inputs=inputs), inputs.gain * z + inputs.shift, kind


def test_scaled_scores_are_bounded_from_below_for_the_label_and_from_above_for_rivals():
    for head, x, kind in scaled_cases():
        with np.errstate(all="ignore"):
            scaled = _Scaled.of(head, Places(head.inputs, x), kind)
            n = head.shape[0]
            upper = scaled.point_columns() @ scaled.row_columns(0, n).T
            assert upper.dtype == kind
            own = np.array([scaled.own_scores(np.full(len(x), i)) for i in range(n)]).T
        if not np.isfinite(upper).all():  # a bias beyond float32: nothing is told, and each rival is looked at alone
            assert kind == np.float32
            assert np.abs(scaled.bias).max() > 1e38
            continue
        tiny = 2.0**-110 if kind == np.float32 else TINY
        for p in range(0, len(x), 7):
            power = Fraction(2) ** int(scaled.x_powers[p] + scaled.row_power)
            point = meant(head.inputs, x[p])
            for i in range(n):
                true = score(head, i, point) * power
                lost = exact(tiny) * exact(1 + scaled.t[p] + np.abs(scaled.bias).max())  # by underflow, at most
                assert exact(own[p, i]) + lost / 2 <= true <= exact(upper[p, i]) + lost / 2
                loose = (1e-3 if kind == np.float32 else 1e-9) * (
                    1 + abs(float(true)) + abs(scaled.bias[i]) * scaled.t[p]
                )
                loose += 1e-6 * head.inputs.centred
                assert float(upper[p, i]) - own[p, i] <= loose
        assert np.abs(scaled.x).max() <= 1


def test_a_bias_far_larger_than_the_products_does_not_overflow():
    """Rows and embeddings that are tiny beside a bias stay tiny."""
    for count in (1, 40):
        head = Head(np.array([[1e-200], [-1e-200]]), np.array([1e30, 0.0]), link="softmax")
        x = np.full((count, 1), 1e-100)
        got = least_margins(head, np.zeros(count, int), Places(head.inputs, x))
        assert (got > 0.999e30).all()
        assert (got <= 1e30).all()


@pytest.mark.parametrize("count", [3, 40])
def test_least_margins_are_below_the_exact_ones_and_near_them(count):
    rng = np.random.default_rng(4)
    for inputs in (AllInputs(), layer_norm(6, rng)):
        for bias in (None, rng.standard_normal(9)):
            W = rng.standard_normal((9, 6))
            W[1] = W[0]
            W[2] = W[0] * (1 + 2.0**-50)
            head = Head(W, bias, link="softmax", inputs=inputs)
            x = rng.standard_normal((count, 6))
            if inputs.centred:
                x = inputs.gain * (x - x.mean(axis=1, keepdims=True)) + inputs.shift
            labels = rng.integers(0, 9, count)
            labels[:3] = 0, 1, 2
            but = [rng.choice(9, 2, replace=False) for _ in range(count)]
            for skipped in (None, but):
                got = least_margins(head, labels, Places(inputs, x), skipped)
                for p in range(count):
                    point = meant(inputs, x[p])
                    own = score(head, int(labels[p]), point)
                    left = [j for j in range(9) if j != labels[p] and (skipped is None or j not in skipped[p])]
                    true = min(own - score(head, j, point) for j in left)
                    assert exact(got[p]) <= true
                    assert (got[p] > 0) == (true > 0)
                    assert float(true) - got[p] < 1e-4


def test_blocks_of_labels_and_of_points_are_looked_at_to_the_end():
    """The only rival that counts is the last of thousands, the only bad point the last of thousands."""
    n = 2100
    W = np.zeros((n, 1))
    W[0], W[-1] = 1, 2
    head = Head(W, link="softmax")
    assert least_margins(head, np.array([0]), Places(head.inputs, np.ones((1, 1))))[0] <= -1
    assert least_margins(head, np.array([n - 1]), Places(head.inputs, np.ones((1, 1))))[0] > 0.99
    assert least_margins(head, np.array([2048]), Places(head.inputs, np.ones((1, 1))))[0] <= -2  # the first of a block
    many = Head(np.array([[1.0], [0.0]]), link="softmax")
    x = np.ones((4100, 1))
    x[-1] = -1
    got = least_margins(many, np.zeros(4100, int), Places(many.inputs, x))
    assert (got[:-1] > 0.99).all()
    assert got[-1] <= -1
    rivals = np.arange(1, n)
    assert beats(head, 0, rivals, Places(head.inputs, np.ones((1, 1))), 0)[-1] <= -1


@pytest.mark.parametrize("count", [1, 40])
def test_a_margin_beyond_floats_is_the_largest_float(count):
    head = Head([[1e200], [-1e200]], link="softmax")
    x = np.full((count, 1), 1e200)
    assert (least_margins(head, np.zeros(count, int), Places(head.inputs, x)) == np.finfo(float).max).all()
    alone = Head([[1e200]], link="softmax")
    assert (least_margins(alone, np.zeros(count, int), Places(alone.inputs, x)) == np.inf).all()


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-38, 1e-36, 3e38, 1e300])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_at_the_ends_of_the_floats_are_scaled(size, dtype):
    with np.errstate(all="ignore"):
        W = (np.array([[1.0, 0.5], [-0.5, 0.25], [0.25, -1.0]]) * size).astype(dtype)
    if not (np.isfinite(W).all() and W.any()):
        return
    head = Head(W, link="softmax")
    for count in (1, 40):
        x = np.tile([[1.0, 0.3]], (count, 1))
        for label in range(3):
            got = least_margins(head, np.full(count, label), Places(head.inputs, x))
            point = exact(x[0])
            true = min(score(head, label, point) - score(head, j, point) for j in range(3) if j != label)
            assert all(exact(v) <= true for v in got)
            assert all((v > 0) == (true >= Fraction(2) ** -1074) for v in got)
