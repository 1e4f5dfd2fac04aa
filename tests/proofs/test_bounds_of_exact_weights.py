"""Each term of the bounds at exact weights, by itself: none is left out, none is smaller than stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Nonnegative
from gonio.core.float_units import TINY, UNIT
from gonio.proofs import CertificateError, NeverTies, NeverWins, Wins
from gonio.proofs.margins import SLACK
from gonio.proofs.never_below import (
    NEAR,
    Conditions,
    _distance,
    _downhill,
    _EdgeSums,
    _enclosed,
    _exact_weights_nearby,
    _sums_with_edge,
    proven,
)
from gonio.proofs.rival_mean import FINE, LONG, RivalMean, sums, supremum
from tests.proofs.rationals import exact


def small_mean(inputs, d=3, seed=0, rivals=5):
    rng = np.random.default_rng(seed)
    W, b = rng.integers(-3, 4, (rivals + 1, d)).astype(float), rng.integers(-3, 4, rivals + 1).astype(float)
    head = Head(W, b, link="softmax", inputs=inputs)
    w = np.arange(1.0, rivals + 1)
    return RivalMean(head, 0, np.arange(1, rivals + 1), w / w.sum(), np.zeros(rivals, bool))


def near(got, stated):
    return np.allclose(np.asarray(got, LONG), np.asarray(stated, LONG), rtol=1e-17, atol=0)


@pytest.mark.parametrize("reference", [None, 0, 1, 2])
@pytest.mark.parametrize("corner", [(0.0, 0, 0), (1.0, -2, 0), (-1.0, 0, 4)])
def test_the_sums_and_their_errors_are_those_stated(reference, corner):
    mean = small_mean(AfterLayerNorm(np.ones(3), np.array([1.0, 2, -1])) if reference is not None else Box(-1, 1))
    D, B = np.array([3, -5, 7], LONG), -11.0
    s = replace(
        sums(mean),
        D=D,
        error=2.0 ** np.array([-40, -38, -35], LONG),
        size=np.array([5, 6, 9], LONG),
        B=B,
        wrong=2.0**-37,
    )
    edge, order = np.array(corner), np.array([4, 1])
    must = Conditions(np.array([1]), np.zeros(3, int), edge, reference)
    got = _sums_with_edge(mean, s, must, order)
    rows, c, terms = mean.columns(order)
    error, size = s.error, np.abs(rows)
    if reference is not None:
        error = s.error + s.error[reference] + FINE * (np.abs(D) + np.abs(D[reference]))
        size = np.abs(rows) + np.abs(rows[:, [reference]])
        rows, D = rows - rows[:, [reference]], D - D[reference]
    live = edge != 0
    doubt = np.abs(edge[live]) @ error[live] + s.wrong + 11 * FINE * (np.abs(edge[live]) @ s.size[live] + 11)
    assert near(got.D, np.append(D, edge @ D + B))
    assert near(got.error, np.append(error, doubt * SLACK))
    assert near(got.edge_error, doubt)
    assert near(got.rows, np.column_stack([rows, rows @ edge + c]))
    assert near(got.size, np.column_stack([size, 11 * (size @ np.abs(edge) + terms)]))


def test_what_does_not_count_may_be_infinite():
    mean = small_mean(Box(-1, 1))
    infinite = np.array([1, np.inf, 1], LONG)
    s = replace(sums(mean), D=infinite, size=infinite, error=infinite)
    got = _sums_with_edge(
        mean, s, Conditions(np.array([0]), np.zeros(3, int), np.array([1.0, 0, 1]), None), np.arange(2)
    )
    assert np.isfinite(got.D[-1])
    assert np.isfinite(got.edge_error)


@pytest.mark.parametrize("way", [1, -1])
def test_a_sum_keeps_its_sign_where_it_is_above_its_error_and_what_moving_the_weights_changes(way):
    """D_0 is to vanish, D_1 to have a sign: moved weights change it by what is stated, and not by more."""
    mean = small_mean(Box([-1, -1, -1], [1, 1, 1]), seed=3)
    must = Conditions(np.array([0]), np.array([0, way, 0]), np.zeros(3), None)
    error = np.array([0, 2.0**-30, 0], LONG)
    s = replace(sums(mean), D=np.array([2.0**-24, 0, 0], LONG), error=error, B=100.0, wrong=0.0)
    order = np.argsort(-mean.weights, kind="stable")
    edged = _sums_with_edge(mean, s, must, order)
    moving, distance = _exact_weights_nearby(mean, edged, order, must.zero)
    assert len(moving) == 1
    assert 0 < distance[0] < 1e-6
    change = (distance.astype(LONG) @ (np.abs(edged.rows[moving]) + 8 * FINE * edged.size[moving])) * SLACK
    assert change[1] > 0
    for room, fine in ((1e-6, True), (-1e-6, False), (-1.0, False)):
        D = np.array([2.0**-24, way * (error[1] + change[1]) * (1 + room), 0], LONG)
        assert (_enclosed(mean, replace(s, D=D), must, False) is not None) == fine
    D = np.array([2.0**-24, -way, 0], LONG)
    assert _enclosed(mean, replace(s, D=D), must, False) is None


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_what_is_left_is_that_of_the_edge_less_its_error_and_the_moving_of_weights(scale):
    mean = small_mean(Box([-1, -1, -1], [1, 1, 1]), seed=3)
    mean = replace(mean, weights=mean.weights * scale)
    must = Conditions(np.array([0]), np.zeros(3, int), np.array([0.0, 1, 0]), None)
    s = replace(
        sums(mean), D=np.array([2.0**-24, 2, 0], LONG), error=2.0 ** np.array([-60, -12, -9], LONG), wrong=2.0**-14
    )
    order = np.argsort(-mean.weights, kind="stable")
    for B in (100.0, 1.0):
        edged = _sums_with_edge(mean, replace(s, B=B), must, order)
        moving, distance = _exact_weights_nearby(mean, edged, order, must.zero)
        change = distance.astype(LONG) @ (np.abs(edged.rows[moving]) + 8 * FINE * edged.size[moving]) * SLACK
        least = (2 + B) - (edged.edge_error + change[-1]) * SLACK - 4 * UNIT * (2 + B)
        stated = -least * (1 - distance.sum() / scale * SLACK)
        assert _enclosed(mean, replace(s, B=B), must, False) == pytest.approx(float(stated), rel=4e-16)
    assert _enclosed(mean, replace(s, B=-2.0), must, False) is None


def stated_distance(A, A_error, D, error):
    """y + q max(y) / (1 - q): q bounds |I - RA| for every matrix meant, y the solution by R."""
    t, R = len(D), np.linalg.inv(A)
    q = np.abs(np.eye(t) - R @ A).sum(axis=1) + (t + 4) * UNIT * (np.abs(R) @ np.abs(A).sum(axis=1) + 1)
    q = (q + np.abs(R) @ A_error.sum(axis=1)) * SLACK
    y = (np.abs(R @ D) + np.abs(R) @ ((t + 8) * UNIT * np.abs(D) + error)) * SLACK + TINY
    return (y + q * (y.max() / (1 - q.max()))) * SLACK


@pytest.mark.parametrize("size", [0.0, 1e-16, 1e-3])
@pytest.mark.parametrize("error", [0.0, 1e-20, 1e-3])
def test_the_distance_to_exact_weights_is_the_one_stated(size, error):
    """Rows of a diagonal matrix whose own condition is met show what the others add."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        t = 2 + seed % 3
        A = np.diag(2.0 ** rng.integers(-3, 4, t)) * rng.choice([-1, 1], t)
        A = A if seed % 2 else np.triu(rng.integers(-3, 4, (t, t)), 1) + A + rng.standard_normal((t, t)) * 1e-3
        D = np.append(np.zeros(t - 1), [-(2.0**-20)]) if seed % 4 else rng.standard_normal(t)
        A_error, off = rng.random((t, t)) * size, rng.random(t) * error
        if seed % 2:
            off[0] = 0.0
        got = _distance(A, A_error, D.astype(LONG), off.astype(LONG))
        assert got == pytest.approx(stated_distance(A, A_error, D, off), rel=1e-10, abs=0)
    for A, D in (  # solutions that cancel, and an inverse that is none: 49 (1 / 49) is not 1
        (np.array([[1.0, 1], [1, -1]]), np.array([1.0, -1]) * 2.0**-20),
        (np.array([[1.0, 1], [1, -1]]), np.array([-1.0, -1]) * 2.0**-20),
        (np.diag([49.0, 1.0]), np.array([0.0, 2.0**-20])),
    ):
        got = _distance(A, np.zeros((2, 2)), D.astype(LONG), np.zeros(2, LONG))
        assert got == pytest.approx(stated_distance(A, np.zeros((2, 2)), D, np.zeros(2)), rel=1e-10, abs=0)
    # A matrix whose inverse is far from exact: what R A leaves of I counts by its size, row by row.
    for t in (9, 10):
        A, D = 1 / (np.arange(t)[:, None] + np.arange(t) + 1.0), np.full(t, 1e-9)
        got = _distance(A, np.zeros((t, t)), D.astype(LONG), np.zeros(t, LONG))
        assert got == pytest.approx(stated_distance(A, np.zeros((t, t)), D, np.zeros(t)), rel=1e-6, abs=0)
    assert _distance(np.eye(2), np.full((2, 2), 0.5), np.ones(2, LONG), np.zeros(2, LONG)) is None
    assert _distance(np.ones((2, 2)), np.zeros((2, 2)), np.ones(2, LONG), np.zeros(2, LONG)) is None


@pytest.mark.parametrize("size", [0.0, 1e-290, 7.0, 1e6])
def test_the_rounding_of_the_moving_columns_is_part_of_the_distance(size):
    mean = small_mean(Box(-1, 1))
    rows = np.array([[4.0, 0, 0, 1], [0, -2, 0, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0]], LONG)
    D = np.array([0, 2.0**-24, 0, 1], LONG)
    edged = _EdgeSums(D, np.zeros(4, LONG), LONG(0), rows, np.full((5, 4), size, LONG))
    order, zero = np.arange(5), np.array([0, 1])
    moving, distance = _exact_weights_nearby(mean, edged, order, zero)
    assert sorted(moving.tolist()) == [0, 1]
    table = rows[:, zero].T.astype(float)[:, moving]
    table_error = np.full((2, 2), (UNIT + 4 * FINE) * size + TINY)
    assert distance == pytest.approx(
        stated_distance(table, table_error, D[zero].astype(float), np.zeros(2)), rel=1e-10, abs=0
    )
    far = replace(edged, D=np.array([0, 2.1e-6, 0, 1], LONG))  # a weight would have to move by more than a millionth
    assert _exact_weights_nearby(mean, far, order, zero) is None
    tiny = replace(mean, weights=np.array([1e-9, 1e-9, 0.5, 0.25, 0.25]))  # below what it has to move by
    assert _exact_weights_nearby(tiny, edged, order, zero) is None
    free = replace(tiny, free=np.array([True, True, False, False, False]))
    assert _exact_weights_nearby(free, edged, order, zero) is not None


# -- the bound is that of a mean, whatever the sum of the weights ------------------------------------------------------

ROWS = {
    "one rival": (np.array([[1.0, 2], [1, 2]]), [1.0]),
    "about the label": (np.array([[1.0, 2], [3, 2], [-1, 2]]), [0.5, 0.5]),
    "in the plane": (np.array([[0.0, 0], [3, 0], [-1, 2], [-2, -2]]), [1 / 3, 1 / 3, 1 / 3]),
}


@pytest.mark.parametrize("more", [1 + 9e-7, 1 - 9e-7, 1.0])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(
    "inputs",
    [AllInputs(), Nonnegative(), Box(-1, 1), AfterRMSNorm(np.ones(2)), AfterLayerNorm(np.ones(2)), Box([-1, 0], [np.inf, 1])],
    ids=str,
)  # fmt: skip
def test_a_mean_that_is_above_by_one_everywhere_is_never_said_to_be_above_by_more(inputs, name, more):
    """The rivals' biases are 1 above the label's, and where all rows are equal, so is every score."""
    W, w = ROWS[name]
    head = Head(W, np.r_[0.0, np.ones(len(w))], link="softmax", inputs=inputs)
    value = NeverWins(head.digest, 0, np.arange(1, len(W)), np.array(w) * more).verify(head)
    assert exact(value) >= -1
    assert value < -0.999 or isinstance(inputs, (AfterRMSNorm, AfterLayerNorm, Box))
    assert value <= 0
    if name == "one rival":
        assert value < -0.9999
        with_free = NeverTies(head.digest, 0, 1, [], [], []).verify(head)
        assert -1 <= exact(with_free) <= 0


@pytest.mark.parametrize("more", [1 + 9e-7, 1 - 9e-7])
@pytest.mark.parametrize("norm", [AfterRMSNorm, AfterLayerNorm])
def test_at_the_surface_of_a_ball_the_bound_is_true(norm, more):
    """B = sqrt(d) |D|: the mean touches the label at the surface of the ball, and a step downhill has room."""
    for d, row in ((4, [3.0, -3, 1, -1]), (2, [0.3, -0.3]), (8, [1.0, -1] * 4)):
        D = np.array(row)
        for slack in (0.0, 2.0**-30, -(2.0**-30)):
            b = np.sqrt(d) * np.linalg.norm(D) + slack
            W = np.array([np.zeros(d), D, D / 2])
            head = Head(W, np.array([0.0, b, b / 2]), link="softmax", inputs=norm(np.ones(d)))
            true = d * sum(v * v for v in exact(D))
            for weights in ([1.0, 0.0], [0.5, 0.5], [0.25, 0.75]):
                try:
                    value = NeverWins(head.digest, 0, [1, 2], np.array(weights) * more).verify(head)
                except CertificateError:
                    assert slack <= 0
                    continue
                assert exact(b) ** 2 >= true
                assert -1e-6 - slack <= value <= 0
                # The largest lead is that over label 2: (sqrt(d) |D| - b) / 2, less than 0 by half of the slack.
                assert exact(value) >= -(exact(b) - exact(np.nextafter(np.sqrt(float(true)), 0)))


@pytest.mark.parametrize("inputs", [AfterRMSNorm(np.ones(3)), AfterLayerNorm(np.ones(3), 0.5)], ids=str)
def test_a_step_downhill_lowers_the_supremum_and_keeps_weights_that_prove_something(inputs):
    """Near the stored weights, none below 0 but the one of a tie's partner; where D vanishes, no step."""
    for seed in range(30):
        mean = small_mean(inputs, seed=seed)
        tiny = replace(mean, weights=np.append(mean.weights[:-2], [1e-9, 3e-300]))
        free = replace(mean, weights=np.append(mean.weights[:-1], -0.25), free=np.arange(5) == 4)
        for given in (mean, tiny, free):
            s = sums(given)
            step = _downhill(given, s)
            assert (step.weights[~given.free] > 0).all()
            assert (np.abs(step.weights - given.weights) <= NEAR).all()
            assert np.abs(step.weights - given.weights).max() > NEAR / 100
            if given is not tiny:
                assert supremum(given.head, sums(step)) < supremum(given.head, s) - NEAR / 100
    zero = replace(mean, head=Head(np.ones((6, 3)), link="softmax", inputs=inputs))
    with np.errstate(all="ignore"):
        assert _downhill(zero, sums(zero)) is zero


@pytest.mark.parametrize("norm", [AfterRMSNorm, AfterLayerNorm])
def test_after_a_step_downhill_the_bound_is_of_a_mean_of_the_moved_weights(norm):
    """On the edge with all weight on one rival, and a hair on one with room: the step adds to the sum of the weights."""
    head = Head([[0.0, 0], [1, -1], [0.5, -0.5]], [0.0, 2, 1.5], link="softmax", inputs=norm(np.ones(2)))
    mean = RivalMean(head, 0, np.array([1, 2]), np.array([1.0, 1e-12]), np.zeros(2, bool))
    assert supremum(head, sums(mean)) > 0
    moved = _downhill(mean, sums(mean))
    assert abs(moved.scale - 1) > 1e-7
    value = supremum(head, sums(moved))
    assert value < 0
    assert proven(mean) == pytest.approx(value / moved.scale * (1 - 1e-12), rel=1e-14, abs=0)


@pytest.mark.parametrize("more", [1.0, 1 + 8e-7, 1 - 8e-7])
@pytest.mark.parametrize("inputs", [Box(-1, 1), AllInputs()], ids=str)
def test_a_proven_bound_is_that_of_the_mean_with_room_for_the_sum_of_the_weights(inputs, more):
    """Four rivals around the label whose biases are 3 above its own: with room to spare, and at exact weights."""
    W = np.array([[0.0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])
    head = Head(W, np.array([0.0, 3, 3, 3, 3]), link="softmax", inputs=inputs)
    value = NeverWins(head.digest, 0, np.arange(1, 5), np.full(4, 0.25) * more).verify(head)
    assert exact(value) >= -3
    assert (3 + value) / 3 == pytest.approx(1e-12, rel=0.01, abs=0)


@pytest.mark.parametrize(
    "inputs",
    [
        AllInputs(),
        Box(-1, 1),
        Box([-np.inf, -1], [np.inf, 1]),
        Box([-1, -1], [np.inf, np.inf]),
        AfterRMSNorm(np.ones(2)),
        AfterLayerNorm(np.ones(2)),
    ],
    ids=str,
)
def test_a_sum_that_vanishes_only_by_rounding_proves_nothing(inputs):
    """Where the two rivals are 0 the label is above them by less than any sum of numbers of size 1 can tell."""
    for tiny in (2.0**-70, -(2.0**-70)):
        head = Head([[0.0, tiny], [1, 1], [-1, -1]], link="softmax", inputs=inputs)
        assert (sums(RivalMean(head, 0, np.array([1, 2]), np.full(2, 0.5), np.zeros(2, bool))).D == 0).all()
        with pytest.raises(CertificateError, match="undecided"):
            NeverWins(head.digest, 0, [1, 2], [0.5, 0.5]).verify(head)


@pytest.mark.parametrize("shift", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_after_a_layer_norm_a_coordinate_in_which_no_row_differs_counts_beside_those_that_do(shift):
    """D is (3, 0, 3) / 2, up to its order: not the same everywhere, so the label wins where both rivals are below 0."""
    W = np.array([[0.0, 0, 0], [1, 0, 2], [2, 0, 1]])[:, list(shift)]
    head = Head(W, link="softmax", inputs=AfterLayerNorm(np.ones(3)))
    Wins(head.digest, 0, np.array([-0.5, 1, -0.5])[list(shift)]).verify(head)
    with pytest.raises(CertificateError, match="undecided"):
        NeverWins(head.digest, 0, [1, 2], [0.5, 0.5]).verify(head)


def test_the_rounding_of_an_inverse_times_its_matrix_is_bounded_row_by_row():
    A, D = np.array([[1.0, 2.0**30], [0, 1]]), np.array([1, 0], LONG)
    got = _distance(A, np.zeros((2, 2)), D, np.zeros(2, LONG))
    q = 6 * UNIT * (np.array([2.0**31 + 1, 1]) + 1) * SLACK
    y = np.array([1 + 10 * UNIT, 0]) * SLACK + TINY
    assert got == pytest.approx((y + q * (y.max() / (1 - q.max()))) * SLACK, rel=1e-12, abs=0)
