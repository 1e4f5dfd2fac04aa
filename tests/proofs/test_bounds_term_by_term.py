"""The float bounds of scores and sums, term by term: each is what the proof needs, with the room stated and no less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Observed
from gonio.core.float_units import TINY, UNIT
from gonio.proofs.margins import SLACK, SMALLEST, Places, _Scaled, beats, least_margins, lengths
from gonio.proofs.rival_mean import FINE, LONG, RivalMean, _summed, beyond, length, sums, supremum, up
from gonio.proofs.score_gaps import scores_with_bounds
from tests.proofs.rationals import exact, mean_z, score


def mean_of(inputs, scale=1.0, rivals=5, d=3, bias=True):
    rng = np.random.default_rng(rivals)
    W = rng.integers(-3, 4, (rivals + 1, d)) * scale
    b = rng.integers(1, 4, rivals + 1) * scale * np.resize([1, -1], rivals + 1) if bias else None
    w = rng.integers(1, 5, rivals) / 8
    return RivalMean(Head(W, b, link="softmax", inputs=inputs), 0, np.arange(1, rivals + 1), w, np.zeros(rivals, bool))


def same(got, stated):
    return np.allclose(np.asarray(got, LONG), np.asarray(stated, LONG), rtol=4e-16, atol=0)


@pytest.mark.parametrize("scale", [1.0, 1e-290, 2.0**900])
@pytest.mark.parametrize(("rivals", "d"), [(2, 3), (40, 3), (600, 2)])
@pytest.mark.parametrize("bias", [True, False])
def test_sums_carry_the_errors_stated(scale, rivals, d, bias):
    mean = mean_of(Box(-1, 1), scale, rivals, d, bias)
    s = sums(mean)
    rows, _, terms = mean.columns(np.arange(rivals))
    w = mean.weights.astype(LONG)
    size, weight = w @ np.abs(rows), w @ terms
    assert same(s.size, size)
    assert same(s.error, (rivals + 8) * LONG(FINE) * size * SLACK + TINY * (size > 0))
    wrong = (rivals + d + 16) * LONG(FINE) * weight * SLACK + TINY * (weight > 0) + 2 * LONG(UNIT) * abs(LONG(s.B))
    assert s.wrong == pytest.approx(float(wrong), rel=1e-14, abs=0)
    assert s.weight == float(weight)


def given(mean, D, error, B, wrong, size=None):
    D = np.array(D, LONG)
    return replace(
        sums(mean), D=D, error=np.array(error, LONG), B=B, wrong=wrong, size=np.abs(D) if size is None else size
    )


@pytest.mark.parametrize("error", [0.0, 2.0**-10])
@pytest.mark.parametrize(("B", "wrong"), [(0.0, 0.0), (3.0, 0.0), (-3.0, 2.0**-12)])
def test_the_supremum_over_a_ball_is_the_one_stated(error, B, wrong):
    for inputs, D in ((AfterRMSNorm(np.ones(3)), [2.0, -3, 6]), (AfterLayerNorm(np.ones(3)), [8.0, 2, 2])):
        mean = mean_of(inputs)
        s = given(mean, D, [error] * 3, B, wrong)
        norm = 7.0 if not inputs.centred else np.sqrt(24)
        centring = 11 * FINE * float(np.abs(s.D).sum())
        total = np.sqrt(3) * (norm * SLACK + np.sqrt(3) * error * SLACK + centring) * SLACK
        stated = total - B + wrong + 4 * UNIT * (total + abs(B))
        assert supremum(mean.head, s) == pytest.approx(stated, rel=3e-16)
        assert supremum(mean.head, replace(s, size=np.zeros(3, LONG))) == -B + wrong + 4 * UNIT * abs(B)


@pytest.mark.parametrize(("B", "wrong"), [(0.0, 0.0), (3.0, 0.0), (-3.0, 2.0**-12), (5.0, 2.0**-3), (100.0, 1.0)])
@pytest.mark.parametrize("error", [0.0, 2.0**-10])
def test_the_bound_over_unbounded_inputs_is_the_one_stated(B, wrong, error):
    mean = mean_of(Box([0, -np.inf, -1], [np.inf, 2, 1]))
    for D in ([-3.0, 4, 2], [3.0, -4, -2], [0.0, 0, 0]):
        s = given(mean, D, [error] * 3, B, wrong)
        low, high = s.D - s.error, s.D + s.error
        outside = np.array([max(0, -low[0]), max(0, high[1]), 0], LONG)
        terms = [LONG(0), max(-2 * low[1], -2 * high[1], 0), max(abs(low[2]), abs(high[2]))]
        total = sum(terms)
        over = total - B + wrong + 4 * UNIT * (total + abs(B))
        stated = (np.sqrt((outside * outside).sum()) * SLACK + max(0, over)) * SLACK
        assert beyond(mean.head, s) == pytest.approx(float(stated), rel=1e-15, abs=1e-323)


def test_sums_and_lengths_are_rounded_up_and_by_little():
    rng = np.random.default_rng(0)
    for k in range(300):
        terms = rng.standard_normal(1 + k % 7).astype(LONG) * LONG(10) ** int(rng.integers(-30, 30))
        terms += rng.standard_normal(len(terms))
        true = sum(exact(terms))
        room = (len(terms) + 8) * FINE * float(np.abs(terms).sum())
        got = _summed(terms)
        assert true + exact(room) * (1 - exact(1e-6)) <= exact(got)
        assert got <= float(true) + 1.01 * room + 4 * UNIT * abs(float(true)) + 1e-300
        square = sum(v * v for v in exact(terms))
        assert square <= exact(length(terms)) ** 2 <= square * exact(1 + 3e-9)
        assert square * exact(1 + 1.9e-9) <= exact(length(terms)) ** 2
        for v in terms:
            assert exact(v) <= exact(up(v))
            assert up(v) == float(v) or np.nextafter(up(v), -np.inf) < v
    assert up(LONG(1.5)) == 1.5
    assert length(np.zeros(3, LONG)) == 0.0
    assert _summed(np.zeros(2, LONG)) == 0.0


@pytest.mark.parametrize("size", [5e-324, 1e-200, 1.0, 1e200, 1e308])
def test_lengths_of_float_rows_are_rounded_up_whatever_their_size(size):
    rows = np.array([[1.0, 1, 1], [0, 0, 0], [-1, 0.5, 0], [0, 0, -1], [1, 0, 1]]) * size
    got = lengths(rows * (1.0 if size < 1e300 else 0.5))
    rows = rows * (1.0 if size < 1e300 else 0.5)
    assert got[1] == 0.0
    for v, row in zip(got, rows, strict=True):
        square = sum(x * x for x in exact(row))
        assert square <= exact(v) ** 2
        assert float(v) <= float(np.sqrt(float(square / exact(size) ** 2))) * size * (1 + 3e-9) + 1e-323


# -- scores ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1.0, 2.0**30])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("bias", [None, (2.0, -5.0)])
def test_scaled_scores_are_lowered_and_raised_by_the_bounds_stated(size, kind, bias):
    inputs = AfterLayerNorm(np.array([1.0, 2, 4]) * size, 0.0)
    head = Head(np.array([[0.0, 3, 4], [6, 0, 8]]), bias, link="softmax", inputs=inputs)
    s = _Scaled.of(head, Places(inputs, size * np.array([[0.3, 0.4, -1.1], [0.5, -1.0, 0.1]])), kind)
    labels = np.array([1, 0])
    b = s.bias[labels]
    rows = np.ldexp(np.asarray(head.W, float)[labels], s.row_power)
    norms = np.array([10.0, 5.0]) * 2.0**s.row_power * SLACK
    scores = (rows * s.x).sum(axis=1) + b * s.t
    tiny = TINY + (2.0**-110 if kind == np.float32 else TINY)
    lowered = (
        11 * UNIT * (s.length * norms + np.abs(b) * s.t) + s.dust * norms + tiny * (1 + s.t + np.abs(s.bias).max())
    )
    assert scores - s.own_scores(labels) == pytest.approx(lowered, rel=0.2)
    # Without the score's own digits in the way: at an x of nothing.
    bare = replace(s, x=np.zeros((2, 3)), bias=np.zeros(2), t=np.zeros(2))
    for change in ({}, {"dust": np.zeros(2)}, {"length": np.zeros(2)}, {"dust": np.zeros(2), "length": np.zeros(2)}):
        one = replace(bare, **change)
        stated = 11 * UNIT * one.length * norms + one.dust * norms + tiny
        assert -one.own_scores(labels) == pytest.approx(stated, rel=1e-12, abs=0)
    biased = replace(bare, bias=np.array([0.0, -1e250]), dust=np.zeros(2), length=np.zeros(2), norms=np.zeros(2))
    assert -biased.own_scores(np.zeros(2, int)) == pytest.approx(tiny * 1e250, rel=1e-12)
    g = (3 + 16) * (2.0**-24 if kind == np.float32 else UNIT) * 1.01
    stated = np.column_stack([s.x, s.t, (g * s.length + s.dust) * 1.01, g * s.t])
    assert s.point_columns() == pytest.approx(stated, rel=1e-6 if kind == np.float32 else 1e-12)
    assert s.norms == pytest.approx(np.array([5.0, 10.0]) * 2.0**s.row_power * SLACK, rel=1e-12)


def test_tiny_norms_and_drifts_keep_the_smallest_float():
    head = Head(np.full((2, 2), 5e-324), link="softmax")
    s = _Scaled.of(head, Places(head.inputs, np.ones((1, 2))), np.float64)
    assert (s.norms >= np.sqrt(2) * np.ldexp(5e-324, s.row_power)).all()
    assert (s.norms >= np.ldexp(head.norms, s.row_power) + np.ldexp(SMALLEST, s.row_power)).all()
    assert (s.dust == 0).all()


@pytest.mark.parametrize("gain", [(1.0, 2.0, 4.0), (-1.0, 2.0, -4.0)])
@pytest.mark.parametrize("bias", [None, (2.0, -50.0, 0.0)])
def test_scores_at_one_place_have_the_bounds_stated(gain, bias):
    W = np.array([[3.0, -4, 5], [0, 0, 0], [-7, 2, 1]])
    inputs = AfterLayerNorm(np.array(gain), 0.0)
    head = Head(W, bias, link="softmax", inputs=inputs)
    places = Places(inputs, np.array([[0.3, -1.4, 1.6]]) * gain / np.abs(gain))
    x, drift = places.x[0], places.drift[0]
    assert drift > 0
    for labels in (None, np.array([2, 0])):
        score, bound = scores_with_bounds(head, places, labels)
        which = np.arange(3) if labels is None else labels
        stated = 11 * UNIT * (np.abs(W) @ np.abs(x)) + drift * (np.abs(W) @ np.abs(gain))
        b = np.zeros(3) if bias is None else np.array(bias)
        stated = stated + (0 if bias is None else 8 * UNIT * (np.abs(W @ x) + np.abs(b)))
        assert score == pytest.approx((W @ x + b)[which], rel=1e-12)
        assert bound == pytest.approx((stated * SLACK + TINY)[which], rel=1e-10, abs=0)


def test_scores_at_no_drift_have_the_bounds_stated():
    for inputs in (AllInputs(), Observed([[1.0, -2.0]])):
        head = Head(np.array([[3.0, 1], [0, 0]]), np.array([7.0, 0]), link="softmax", inputs=inputs)
        _, bound = scores_with_bounds(head, Places(inputs, np.array([[1.0, -2.0]])))
        assert bound == pytest.approx([(10 * UNIT * 5 + 8 * UNIT * 8) * SLACK + TINY, TINY], rel=1e-12, abs=0)


def test_a_drift_has_the_bound_stated():
    plain = AfterLayerNorm(np.ones(3))
    for x, total, terms in (([1.0, -1, 0], 0, 2), ([3.0, -1, -1.5], 0.5, 5.5), ([-3.0, 1, 1.5], 0.5, 5.5)):
        stated = (total + 7 * UNIT * terms) / 3 * SLACK + TINY
        assert Places(plain, np.array([x])).drift == pytest.approx([stated], rel=1e-14, abs=0)
    # A z that vanishes by underflow: the embedding meant is not the floats, and the drift says so.
    inputs = AfterLayerNorm([3.0, 1, 1])
    x = np.array([5e-324, 0, 0])
    assert 0 < mean_z(inputs, x) <= exact(Places(inputs, x[None]).drift[0])


@pytest.mark.parametrize("gain", [(1.0, 2.0, 4.0), (-1.0, 2.0, -4.0)])
@pytest.mark.parametrize("bias", [None, (2.0, -50.0, 0.0)])
@pytest.mark.parametrize("off", [0.0, 1e-7])
def test_how_far_a_label_beats_others_has_the_bound_stated(gain, bias, off):
    W = np.array([[3.0, -4, 5], [0, 0, 0], [-70, 2, 1]])
    inputs = AfterLayerNorm(np.array(gain), 0.0)
    head = Head(W, bias, link="softmax", inputs=inputs)
    x = (np.array([0.3, -0.7, 0.4]) + off) * gain
    places = Places(inputs, np.array([-x, x]))
    b = np.zeros(3) if bias is None else np.array(bias)
    for label, rivals in ((0, np.array([2, 1])), (1, np.array([0])), (2, np.array([0, 1]))):
        rows, more = W[label] - W[rivals], b[label] - b[rivals]
        bound = 11 * UNIT * (np.abs(rows) @ np.abs(x) + np.abs(more)) + places.drift[1] * (np.abs(rows) @ np.abs(gain))
        stated = rows @ x + more - bound * SLACK - TINY
        assert beats(head, label, rivals, places, 1) == pytest.approx(stated, rel=2e-15, abs=0)


def test_large_terms_that_cancel_widen_the_bound_of_how_far_a_label_beats_another():
    head = Head([[1e20, -1e20, 1e6], [0, 0, 0]], link="softmax")
    low = beats(head, 0, np.array([1]), Places(head.inputs, np.ones((1, 3))), 0)
    assert low == pytest.approx([1e6 - 11 * UNIT * (2e20 + 1e6) * SLACK], rel=1e-12)
    tiny = Head([[2.0**-995, 0], [0, 0]], link="softmax")
    low = beats(tiny, 0, np.array([1]), Places(tiny.inputs, np.ones((1, 2))), 0)
    assert low == pytest.approx([2.0**-995 * (1 - 10 * UNIT) - 2.0**-1000], rel=1e-12, abs=0)


def test_rivals_that_are_looked_at_exactly_keep_their_places_among_thousands():
    W = np.zeros((2101, 1))
    W[0] = W[2100] = 1
    head = Head(W, link="softmax")
    low = beats(head, 0, np.arange(1, 2101), Places(head.inputs, np.ones((1, 1))), 0)
    assert low[-1] == 0
    assert low[:-1] == pytest.approx(np.ones(2099), rel=1e-12)


@pytest.mark.parametrize("count", [2, 40])
@pytest.mark.parametrize("size", [0.75, 1.75, 2.75, 3.25])
def test_margins_among_the_smallest_floats_are_rounded_down(count, size):
    head = Head([[size], [0.0], [-9.0]], link="softmax")
    x = np.tile([[5e-324], [-5e-324]], (count // 2, 1))
    labels = np.tile([0, 2], count // 2)
    got = least_margins(head, labels, Places(head.inputs, x))
    assert (got == np.tile([int(size) * 5e-324, 9 * 5e-324], count // 2)).all()
    # with the middle one left out: beside another rival
    got = least_margins(head, labels, Places(head.inputs, x), [[1]] * count)
    assert (got == np.tile([int(size + 9) * 5e-324, int(size + 9) * 5e-324], count // 2)).all()
    true = score(head, 0, exact(x[0])) - score(head, 2, exact(x[0]))
    assert exact(got[0]) <= true
