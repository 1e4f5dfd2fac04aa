"""Exact weights near the stored ones: they are proven to exist where they do, and nowhere else."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Nonnegative
from gonio.proofs.certificates import CertificateError, NeverTies, NeverWins, Wins
from gonio.proofs.never_below import Conditions, _conditions, _distance, _enclosed, _solved, proven
from gonio.proofs.rival_mean import LONG, RivalMean, sums
from tests.ask.judge import exact_lp, interior_head, sides
from tests.proofs.rationals import dot, exact, supremum_of, weighted


def solved(A, right):
    """The exact solution of A e = right, by elimination."""
    T = [[*row, r] for row, r in zip(A, right, strict=True)]
    n = len(T)
    for k in range(n):
        p = next(r for r in range(k, n) if T[r][k])
        T[k], T[p] = T[p], T[k]
        T[k] = [v / T[k][k] for v in T[k]]
        for r in range(n):
            if r != k:
                T[r] = [a - T[r][k] * b for a, b in zip(T[r], T[k], strict=True)]
    return [row[-1] for row in T]


def systems():
    """Matrices from harmless to nearly singular, with errors from none to large."""
    rng = np.random.default_rng(0)
    for k in range(60):
        t = int(rng.integers(1, 5))
        A = rng.standard_normal((t, t)) + 2 * np.eye(t)
        if k % 3 == 1 and t > 1:  # two rows nearly alike
            A[1] = A[0] + rng.standard_normal(t) * 10.0 ** -rng.integers(3, 13)
        A_error = np.abs(A) * (0 if k % 2 else 10.0 ** -rng.integers(1, 14))
        D = (rng.standard_normal(t) + rng.standard_normal(t) * 2.0**-54).astype(LONG)
        error = np.abs(rng.standard_normal(t)).astype(LONG) * (k % 4 == 2)
        yield A, A_error, D, error
    # what the rounding of D to float64 hides: R D is 0 in floats, and 2^-54 is not
    yield np.array([[1.0, 1], [0, 1]]), np.zeros((2, 2)), np.array([1 + LONG(2) ** -54, 1], LONG), np.zeros(2, LONG)


def test_a_distance_covers_every_system_within_the_errors():
    rng = np.random.default_rng(1)
    seen = 0
    for A, A_error, D, error in systems():
        found = _distance(A, A_error, D, error)
        if found is None:
            continue
        seen += 1
        for _ in range(6):
            turn, bend = rng.choice([-1, 1], A.shape), rng.choice([-1, 1], D.shape)
            B = [[a + e * int(t) for a, e, t in zip(*r, strict=True)] for r in zip(exact(A), exact(A_error), turn, strict=True)]  # fmt: skip
            right = [-(a + e * int(t)) for a, e, t in zip(exact(D), exact(error), bend, strict=True)]
            for e, bound in zip(solved(B, right), exact(found), strict=True):
                assert abs(e) <= bound
        if not A_error.any() and not error.any() and np.linalg.cond(A) < 100:
            true = np.abs(np.array(solved(exact(A), exact(D)), float))
            assert (found <= true + 1e-12 + 1e-8 * true.max()).all()
    assert seen > 40


def test_a_system_that_may_be_singular_has_no_distance():
    one = np.ones(1, LONG)
    assert _distance(np.zeros((1, 1)), np.zeros((1, 1)), one, one * 0) is None
    assert _distance(np.ones((1, 1)), np.full((1, 1), 1.0), one, one * 0) is None
    assert _distance(np.ones((1, 1)), np.full((1, 1), 0.5), one, one * 0)[0] >= 2
    assert _distance(np.array([[1.0, 1], [1, 1 + 2.0**-52]]), np.full((2, 2), 1e-15), np.ones(2, LONG), np.zeros(2, LONG)) is None  # fmt: skip


INPUTS = {
    "all": AllInputs(),
    "nonnegative": Nonnegative(),
    "box": Box(-1, 1),
    "half": Box([-1, 0, -np.inf], [np.inf, np.inf, 2]),
    "point": Box([0.5, -np.inf, 0], [0.5, np.inf, 0]),
}


def means_with_room(kind, room, trials, seed=0):
    """Rivals whose exact mean is label 0, moved by `room` outwards or inwards, at weights that are a rounding off."""
    rng = np.random.default_rng(seed)
    d = 3 if kind in ("half", "point") else 2
    for k in range(trials):
        m = int(rng.integers(2, 8))
        W = rng.integers(-3, 4, (m + 1, d)).astype(float)
        w = rng.integers(1, 5, m)
        w[0] += 32 - w.sum()
        w = w / 32
        W[0] = w @ W[1:]
        b = rng.integers(-3, 4, m + 1).astype(float) if k % 2 else None
        if b is not None:
            b[0] = w @ b[1:] - (k % 4 == 3)
        W[0] += room * rng.integers(-2, 3, d)
        if b is not None:
            b[0] += room * rng.integers(-2, 3)
        noise = w * rng.standard_normal(m) * 10.0 ** -rng.integers(9, 17)
        yield Head(W, b, link="softmax", inputs=INPUTS[kind]), (w + noise) / (w + noise).sum()


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("room", [0.0, 2.0**-30, 2.0**-45])
def test_what_is_proven_never_wins_in_exact_arithmetic(kind, room):
    taken = 0
    for head, w in means_with_room(kind, room, 32):
        n, d = head.shape
        if len(head.equals(0)):
            continue
        try:
            value = NeverWins(head.digest, 0, np.arange(1, n), w).verify(head)
        except CertificateError:
            continue
        taken += 1
        assert value <= 0
        bias = np.zeros(n) if head.bias is None else head.bias
        t, _, _ = exact_lp(head.W, bias, 0, *sides(head.inputs, d))
        assert t <= 0
        assert exact(value) >= t
    assert taken > (8 if not room else 0)


OUTSIDE = np.array([[1.0, 0], [0, 0], [1, 1], [-1, -1]])  # (-room, 0) lies outside their hull, (room, 0) inside


@pytest.mark.parametrize("rivals", [[1, 2, 3, 4], [1, 3, 4], [1, 2, 3, 4, 5, 6]])
@pytest.mark.parametrize("room", [2.0**-21, 2.0**-30, 2.0**-40, 2.0**-52])
def test_weights_that_would_have_to_be_negative_are_refused(rivals, room):
    """The exact weight of rival 1 is -room: near the stored one, and no weight."""
    for sign in (1, -1):
        W = np.vstack([[[sign * room, 0]], OUTSIDE, OUTSIDE[2:] * 3])
        head = Head(W, link="softmax")
        w = np.array([2.0**-60 if sign < 0 else room, 0.25, 0.25, 0.25, 0.125, 0.125])[np.array(rivals) - 1]
        proof = NeverWins(head.digest, 0, rivals, w / w.sum())
        if sign > 0:
            assert proof.verify(head) == 0.0
        else:
            with pytest.raises(CertificateError, match="undecided"):
                proof.verify(head)


def test_a_mean_that_meets_rows_and_biases_exactly_is_enclosed():
    """D and B vanish together: exact weights near the stored ones make both zero, though no floats do."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        m, d = 12, 3
        W = rng.integers(-8, 9, (m + 1, d)).astype(float)
        b = rng.integers(-8, 9, m + 1).astype(float)
        w = rng.integers(1, 6, m)
        w[0] += 64 - w.sum()
        w = w / 64
        W[0], b[0] = w @ W[1:], w @ b[1:]
        near = w * (1 + rng.standard_normal(m) * 1e-13)
        mean = RivalMean(Head(W, b, link="softmax"), 0, np.arange(1, m + 1), near, np.zeros(m, bool))
        s = sums(mean)
        must = _conditions(mean, s)
        assert must.zero.tolist() == [0, 1, 2]
        assert not must.sign.any()
        assert _enclosed(mean, s, must, True) == 0.0
        assert _enclosed(mean, s, must, False) is None  # B may be just below 0
        assert proven(mean) == 0.0
        low = RivalMean(mean.head.replace(bias=np.append(b[0] - 1, b[1:])), 0, mean.rivals, near, mean.free)
        value = _enclosed(low, sums(low), must, False)
        assert -1 - 1e-9 < value < -1 + 1e-9
        high = RivalMean(mean.head.replace(bias=np.append(b[0] + 1, b[1:])), 0, mean.rivals, near, mean.free)
        assert _enclosed(high, sums(high), must, False) is None


def test_a_sum_with_a_sign_must_keep_it_when_the_weights_move():
    """Over x >= 0: D_1 is a hair above 0 and moving to the exact weights may take it below."""
    for hair, fine in ((2.0**-12, True), (2.0**-28, False)):
        W = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0 + 2 * hair], [3.0, 3.0], [-3.0, -3.0 + 6 * hair]])
        mean = RivalMean(Head(W, link="softmax", inputs=Nonnegative()), 0, np.arange(1, 5), np.array([0.25 + 1e-9, 0.25, 0.25, 0.25]), np.zeros(4, bool))  # fmt: skip
        s = sums(mean)
        must = _conditions(mean, s)
        if fine:
            assert must.sign.tolist() in ([0, 1], [1, 1])
            assert _enclosed(mean, s, must, False) is not None
        assert proven(mean) in ((0.0, -0.0) if fine else (0.0, -0.0, None))


def test_huge_rows_are_proven_in_whole_numbers():
    """Their differences are beyond float64, so no inverse of them is."""
    head = Head([[-1e308], [1.7e308], [-1.7e308], [0.5e308]], link="softmax")
    assert NeverWins(head.digest, 0, [1, 2, 3], [0.125, 0.75, 0.125]).verify(head) == 0.0
    with pytest.raises(CertificateError, match="undecided"):
        NeverWins(head.digest, 2, [1, 0, 3], [0.25, 0.5, 0.25]).verify(head)


@pytest.mark.parametrize("inputs", [AllInputs(), AfterRMSNorm(np.ones(1050))], ids=str)
def test_what_is_too_large_for_whole_numbers_is_undecided(inputs):
    """A thousand rivals of one line, in a thousand dimensions: floats cannot tell, and whole numbers take too long."""
    d, m = 1050, 1000
    row = np.linspace(1, 2, d)
    W = np.vstack([row * 0, np.outer(np.tile([1.0, -1.0], m // 2), row)])
    if inputs.shape == "ball":
        W[1:] += 1
    head = Head(W, link="softmax", inputs=inputs)
    with pytest.raises(CertificateError, match="undecided"):
        NeverWins(head.digest, 0, np.arange(1, m + 1), np.full(m, 1 / m)).verify(head)


# -- balls, and the signs that only one side needs -----------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [AfterRMSNorm([1.0, 2.0]), AfterLayerNorm([1.0, 2.0, 0.5], [0.5, 0.0, -1.0]), AfterLayerNorm([1.0, 0.0, 0.5])], ids=str)  # fmt: skip
def test_what_is_proven_over_a_ball_is_true_in_exact_arithmetic(inputs):
    """Weights from well inside a proof to well outside: where some are accepted, exact ones near them prove it."""
    rng = np.random.default_rng(4)
    d, seen = inputs.width, 0
    for _ in range(60):
        m = int(rng.integers(1, 5))
        W = rng.integers(-4, 5, (m + 1, d)) * 0.25
        w = rng.dirichlet(np.ones(m))
        D, B = weighted(RivalMean(Head(W, link="dot", inputs=inputs), 0, np.arange(1, m + 1), w, np.zeros(m, bool)))
        edge = float(supremum_of(inputs, D, B)) ** 0.5 - float(B)
        b = np.append(-edge + rng.choice([-1e-3, -1e-12, 0, 1e-12, 1e-3]), np.zeros(m))
        head = Head(W, b, link="softmax", inputs=inputs)
        mean = RivalMean(head, 0, np.arange(1, m + 1), w, np.zeros(m, bool))
        value = proven(mean)
        D, B = weighted(mean)
        true = supremum_of(inputs, D, B)
        if value is None:
            assert B < 0 or true > B * B - Fraction(1, 10**5)
            continue
        seen += 1
        assert value <= 0
        assert B >= 0 or Fraction(1, 10**5) > -B
        assert true <= (B + Fraction(1, 10**5)) ** 2
        if value < -1e-5:  # the value itself is a bound at the stored weights
            assert (exact(value) + B) ** 2 >= true
    assert seen > 15


def test_a_bound_of_a_mean_is_that_of_weights_with_sum_one():
    """Stored weights may sum to a little more or less than 1: the bound is of the mean."""
    for scale in (1 - 9e-7, 1, 1 + 9e-7):
        head = Head([[0.0], [1.0], [2.0]], [0.0, 5.0, 9.0], link="softmax", inputs=Box(-1, 1))
        value = NeverWins(head.digest, 0, [1, 2], np.array([0.5, 0.5]) * scale).verify(head)
        assert exact(value) >= Fraction(-11, 2)
        assert value == pytest.approx(-5.5, rel=1e-11)
    tight = interior_head(30, 3, bias=True)
    from tests.ask.judge import basic_weights

    rivals, w = basic_weights(tight)
    values = [NeverWins(tight.digest, 0, rivals, w * s).verify(tight) for s in (1, 1 + 5e-7)]
    assert values[0] == pytest.approx(values[1], rel=1e-8)
    true = dot(exact(w), exact(tight.bias[rivals])) / sum(exact(w)) - exact(tight.bias[0])
    assert values[0] == pytest.approx(-float(true), rel=1e-9)


def test_the_weight_of_a_partner_may_have_any_sign_and_no_other():
    """Labels 0 and 1 share the top nowhere: 2 is above their line on both sides."""
    head = Head([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0], [2.0, -1.0]], link="softmax")
    # where 0 and 1 are equal, x_0 = 0, and 2 or 3 is not below: the mean of both rows is (2, 0) = -1 (0, 0) + 2 (1, 0)
    assert NeverTies(head.digest, 0, 1, [2, 3], [0.5, 0.5], [-1.0, 2.0]).verify(head) == 0.0
    assert NeverTies(head.digest, 1, 0, [2, 3], [0.5, 0.5], [2.0, -1.0]).verify(head) == 0.0
    for pair in ([2.0, -1.0], [-1.0, 2.1], [-1.0, 2.0 + 1e-5], [np.nan, 1.0], [1.0], [-1.0, 2.0, 0.0]):
        with pytest.raises(CertificateError):
            NeverTies(head.digest, 0, 1, [2, 3], [0.5, 0.5], pair).verify(head)
    large = Head([[0.0, 0.0], [1.0, 0.0], [2e9, 1.0], [2e9, -1.0]], link="softmax")
    p = [1 - 2e9, 2e9 + 100]  # off by 101 of 2e9: within rounding of numbers of this size
    assert NeverTies(large.digest, 0, 1, [2, 3], [0.5, 0.5], [1 - 2e9, 2e9]).verify(large) == 0.0
    with pytest.raises(CertificateError, match="two numbers that sum to 1"):
        NeverTies(large.digest, 0, 1, [2, 3], [0.5, 0.5], [p[0], p[1] * 1.001]).verify(large)


def test_weights_that_would_have_to_be_negative_prove_nothing():
    """Exact weights within a millionth of the stored ones exist, 1, -2^-40 and 2^-40; but one of them is below zero."""
    tiny = 2.0**-40
    head = Head([[0, 0], [0, -tiny], [1, 0], [1, 1]], link="softmax")
    assert Wins(head.digest, 0, [-2, 1]).verify(head) > 0
    with pytest.raises(CertificateError, match="do not prove"):
        NeverWins(head.digest, 0, [1, 2, 3], [1 - 3 * tiny, 2 * tiny, tiny]).verify(head)
    weights = np.array([1 - 3 * tiny, 2 * tiny, tiny])
    mean = RivalMean(head, 0, np.array([1, 2, 3]), weights, np.zeros(3, bool))
    must = Conditions(np.array([0, 1]), np.zeros(2, np.int64), np.zeros(2), None)
    assert _solved(mean, must) is None
    free = RivalMean(head, 0, mean.rivals, weights, np.array([False, True, False]))  # as the partner of a tie may be
    assert _solved(free, must) == 0.0


def test_a_distance_covers_every_matrix_within_the_error_of_the_one_given():
    """Matrices whose computed inverse is off on one side, or in one row: |A e = -D| stays within the bound, row by row."""
    rng = np.random.default_rng(0)
    kept = 0
    for trial in range(200):
        t = int(rng.integers(1, 4))
        A = rng.integers(-3, 4, (t, t)).astype(float)
        if abs(np.linalg.det(A)) < 0.5:
            continue
        A_error = np.abs(rng.standard_normal((t, t))) * 10.0 ** -rng.integers(1, 4) * (rng.random((t, 1)) < 0.7)
        D, error = rng.standard_normal(t) * 1e-3, np.full(t, 1e-5)
        bound = _distance(A, A_error, D.astype(LONG), error.astype(LONG))
        if bound is None:
            continue
        kept += 1
        for corner in range(8):
            signs = np.random.default_rng(corner).choice([-1.0, 1.0], (t, t + 1))
            e = np.linalg.solve(A + signs[:, :t] * A_error, -(D + signs[:, t] * error))
            assert (np.abs(e) <= bound * (1 + 1e-12)).all(), trial
    assert kept > 50
