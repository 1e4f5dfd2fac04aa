"""Certificates of wins prove what they claim and nothing else; exact rational arithmetic is the judge."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Head
from gonio.proofs.certificates import CertificateError, NeverWins, Wins
from tests.ask.judge import basic_weights, entries, equals, exact_lp, exact_margin, heads, interior_head, sides

rng = np.random.default_rng(4)


def never(head, i, multipliers):
    total = sum(multipliers.values())
    return NeverWins(head.digest, i, list(multipliers), [float(v / total) for v in multipliers.values()])


@settings(max_examples=250, deadline=None)
@given(heads())
def test_every_label_of_a_small_head_is_proven_one_way_or_the_other(head):
    n, d = head.shape
    low, high = sides(head.inputs, d)
    bias = np.zeros(n) if head.bias is None else head.bias.astype(float)
    for i in range(n):
        same = equals(head, i)
        t, z, multipliers = exact_lp(head.W.astype(float), bias, i, low, high, same)
        if t > 0:
            x = np.array([float(v) for v in z])
            inside = head.inputs.contains(x).all()
            margin = exact_margin(head, i, [Fraction(v) for v in x], same)
            proof = Wins(head.digest, i, x, same)
            if same:
                with pytest.raises(CertificateError):
                    Wins(head.digest, i, x).verify(head)
            if inside and margin > 0:
                assert 0 < proof.verify(head) <= margin
            else:  # rounding moved the exact witness out of the region
                with pytest.raises(CertificateError):
                    proof.verify(head)
        else:
            assert never(head, i, multipliers).verify(head) <= 0


@settings(max_examples=150, deadline=None)
@given(heads(), st.randoms(use_true_random=False))
def test_what_a_combination_proves_is_true_in_exact_arithmetic(head, random):
    """Any weights at all: where verify accepts them, the exact optimum says that the label cannot win."""
    n, d = head.shape
    low, high = sides(head.inputs, d)
    bias = np.zeros(n) if head.bias is None else head.bias.astype(float)
    i = random.randrange(n)
    rivals = [j for j in range(n) if j != i and random.random() < 0.7]
    weights = np.array([random.choice([1, 1, 2, 3, 0.1]) for _ in rivals])
    if not rivals:
        return
    try:
        value = NeverWins(head.digest, i, rivals, weights / weights.sum()).verify(head)
    except CertificateError:
        return
    assert value <= 0
    t, _, _ = exact_lp(head.W.astype(float), bias, i, low, high, equals(head, i))
    assert t <= 0


@settings(max_examples=200, deadline=None)
@given(heads(("all",)), st.data())
def test_the_margin_is_a_lower_bound_and_is_positive_when_it_must_be(head, data):
    n, d = head.shape
    i = data.draw(st.integers(0, n - 1))
    x = np.array(data.draw(st.lists(entries, min_size=d, max_size=d))) * data.draw(st.sampled_from([1, 1e200, 1e-200]))
    truth = exact_margin(head, i, [Fraction(v) for v in x])
    proof = Wins(head.digest, i, x)
    if truth >= Fraction(2) ** -1074:
        assert 0 < proof.verify(head) <= truth
    elif truth <= 0:
        with pytest.raises(CertificateError, match="does not win"):
            proof.verify(head)


# -- the norms' ellipsoids ---------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 6), st.integers(2, 5), st.integers(0, 2**32), st.booleans(), st.booleans(), st.booleans())
def test_wins_after_a_norm_are_those_of_the_exact_point(n, d, seed, centred, biased, dead):
    r = np.random.default_rng(seed)
    gain, shift = r.uniform(0.5, 2, d), r.standard_normal(d)
    if dead:
        gain[0] = 0
    inputs = AfterLayerNorm(gain, shift) if centred else AfterRMSNorm(gain)
    head = Head(r.standard_normal((n, d)), r.standard_normal(n) if biased else None, link="softmax", inputs=inputs)
    problem = inputs.reduce(head.W, head.bias)
    z = r.standard_normal(d)
    z *= r.choice([0.3, 0.99999, 1.2]) * np.sqrt(d) / np.linalg.norm(z - z.mean() * centred)
    x = problem.lift(z)
    i = int(np.argmax(head.W @ x + (0 if head.bias is None else head.bias)))
    exact_x = [Fraction(v) for v in x]
    zs = [
        (v - Fraction(s)) / Fraction(g)
        for v, s, g in zip(exact_x, shift if centred else np.zeros(d), gain, strict=True)
        if g
    ]
    squares, total = sum(v * v for v in zs), sum(zs)
    if centred and dead:
        squares += total * total
    elif centred:
        squares -= total * total / d
        exact_x = [v - Fraction(g) * total / d for v, g in zip(exact_x, gain, strict=True)]
    truth = exact_margin(head, i, exact_x)
    if squares < d and truth > 0:
        assert 0 < Wins(head.digest, i, x).verify(head) <= truth
    else:
        with pytest.raises(CertificateError):
            Wins(head.digest, i, x).verify(head)


def test_a_margin_of_rounding_size_after_a_layer_norm_is_decided_exactly():
    d = 5
    inputs = AfterLayerNorm(rng.uniform(0.5, 2, d), rng.standard_normal(d))
    row = rng.standard_normal(d)
    near = row.copy()
    near[0] = np.nextafter(near[0], 9)
    head = Head(np.array([row, near, -row]), link="softmax", inputs=inputs)
    z = rng.standard_normal(d)
    z *= 0.9 * np.sqrt(d) / np.linalg.norm(z - z.mean())
    x = inputs.reduce(head.W).lift(z)
    mean = (
        sum((Fraction(v) - Fraction(s)) / Fraction(g) for v, s, g in zip(x, inputs.shift, inputs.gain, strict=True)) / d
    )
    exact_x = [Fraction(v) - Fraction(g) * mean for v, g in zip(x, inputs.gain, strict=True)]
    answers = []
    for i in (0, 1):
        truth = exact_margin(head, i, exact_x)
        try:
            assert 0 < Wins(head.digest, i, x).verify(head) <= truth
            answers.append(True)
        except CertificateError:
            assert truth <= 0
            answers.append(False)
    assert sum(answers) <= 1


def ball_weights(V, c, i, radius):
    """Weights that make sqrt(d)|r| + beta small, by projected gradient on the simplex."""
    from scipy.optimize import minimize

    js = [j for j in range(len(V)) if j != i]
    A, b = V[js] - V[i], c[js] - c[i]

    def f(u):
        w = np.exp(u - u.max())
        w /= w.sum()
        return radius * np.sqrt((w @ A) @ (w @ A) + 1e-30) - w @ b

    u = minimize(f, np.zeros(len(js)), method="BFGS").x
    w = np.exp(u - u.max())
    return js, w / w.sum(), f(u)


@pytest.mark.parametrize("centred", [False, True])
def test_a_low_bias_keeps_a_label_from_winning_in_an_ellipsoid_though_it_wins_outside(centred):
    d, n = 4, 9
    r = np.random.default_rng(1)
    gain, shift = r.uniform(0.5, 2, d), 0.3 * r.standard_normal(d)
    W, b = r.standard_normal((n, d)), np.zeros(n)
    W[0] *= 3
    b[0] = -40.0
    inputs = AfterLayerNorm(gain, shift) if centred else AfterRMSNorm(gain)
    head = Head(W, b, link="softmax", inputs=inputs)
    p = inputs.reduce(W, b)
    js, w, value = ball_weights(p.V, p.c, 0, p.radius)
    assert value < 0
    proof = NeverWins(head.digest, 0, js, w)
    assert value - 1e-6 <= proof.verify(head) + 1e-9 <= 1e-9
    free = head.replace(inputs=AllInputs())
    with pytest.raises(CertificateError, match="undecided"):
        NeverWins(free.digest, 0, js, w).verify(free)


@pytest.mark.parametrize("centred", [False, True])
def test_weights_on_the_very_edge_of_a_proof_are_enough(centred):
    # From weights that prove nothing to weights that prove it: where sqrt(d)|r| + beta passes zero, rounding decides.
    d = 4
    r = np.random.default_rng(8)
    inputs = AfterLayerNorm(r.uniform(0.5, 2, d)) if centred else AfterRMSNorm(r.uniform(0.5, 2, d))
    W, b = r.standard_normal((8, d)), np.r_[-6.0, np.zeros(7)]
    head = Head(W, b, link="softmax", inputs=inputs)
    p = inputs.reduce(W, b)
    js, good, value = ball_weights(p.V, p.c, 0, p.radius)
    assert value < -0.1
    far = np.eye(7)[np.argmax(np.linalg.norm(p.V[1:] - p.V[0], axis=1))]

    def f(t):
        w = (1 - t) * good + t * far
        return p.radius * np.linalg.norm(w @ (p.V[1:] - p.V[0])) - w @ (p.c[1:] - p.c[0])

    assert f(1.0) > 0
    low, high = 0.0, 1.0
    for _ in range(60):
        low, high = ((low + high) / 2, high) if f((low + high) / 2) <= 0 else (low, (low + high) / 2)
    for t in (low, high):
        assert NeverWins(head.digest, 0, js, (1 - t) * good + t * far).verify(head) <= 0
    with pytest.raises(CertificateError):
        NeverWins(head.digest, 0, js, (1 - high - 0.01) * good + (high + 0.01) * far).verify(head)


@pytest.mark.parametrize("dead", [False, True])
@pytest.mark.parametrize("kind", ["rms", "layer"])
def test_interior_rows_never_win_after_a_norm_without_bias(kind, dead):
    d, n = 6, 30
    r = np.random.default_rng(2)
    gain = r.uniform(0.5, 2, d)
    if dead:
        gain[[1, 4]] = 0
    inputs = AfterRMSNorm(gain) if kind == "rms" else AfterLayerNorm(gain, np.zeros(d))
    W = r.standard_normal((n, d)).astype(np.float32)
    W[0] = W[1:].mean(axis=0)
    head = Head(W, link="softmax", inputs=inputs)
    p = inputs.reduce(W.astype(float))
    found = linprog(np.zeros(n - 1), A_eq=np.vstack([p.V[1:].T, np.ones(n - 1)]), b_eq=np.r_[p.V[0], 1])
    support = np.flatnonzero(found.x > 0)
    assert NeverWins(head.digest, 0, support + 1, found.x[support]).verify(head) == 0.0


# -- enclosing exact weights -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("bias", [False, True])
def test_a_basic_solution_is_enclosed(dtype, bias):
    head = interior_head(200, 24, dtype=dtype, bias=bias)
    rivals, weights = basic_weights(head)
    assert len(rivals) == 25
    value = NeverWins(head.digest, 0, rivals, weights).verify(head)
    assert value < 0 if bias else value == 0.0


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_scale_of_a_head_does_not_matter(scale):
    head = interior_head(100, 8, dtype=np.float64)
    rivals, weights = basic_weights(head)
    scaled = head.replace(W=head.W * scale)
    assert NeverWins(scaled.digest, 0, rivals, weights).verify(scaled) == 0.0


def test_a_tiny_residual_over_unbounded_inputs_proves_nothing_by_itself():
    # The row is 1e-12 above the mid-point of two others: a mean leaves a residual that no tolerance would see.
    head = Head([[0.0, 1e-12], [1.0, 0.0], [-1.0, 0.0]], link="softmax")
    with pytest.raises(CertificateError, match="undecided"):
        NeverWins(head.digest, 0, [1, 2], [0.5, 0.5]).verify(head)
    assert Wins(head.digest, 0, [0.0, 1.0]).verify(head) > 0
    flat = Head([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]], link="softmax")
    assert NeverWins(flat.digest, 0, [1, 2], [0.5, 0.5]).verify(flat) == 0.0


def test_the_thin_cell_is_feasible_and_no_weights_deny_it():
    # ALGORITHMS B.4: V = [[1, 0], [-1, 1e-11]] has a solution of V x > 0, as thin as it is.
    head = Head([[0.0, 0.0], [-1.0, 0.0], [1.0, -1e-11]], link="softmax")
    assert Wins(head.digest, 0, [1.0, 2e11]).verify(head) > 0
    for w in (0.5, 0.5 + 1e-12, 0.4999):
        with pytest.raises(CertificateError):
            NeverWins(head.digest, 0, [1, 2], [w, 1 - w]).verify(head)


def test_weights_that_no_float_holds_are_found_in_whole_numbers():
    # 1/3 of the way on a segment: exact weights 2/3 and 1/3, support smaller than the dimension.
    W = np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 0.0], [3.0, 6.0, 12.0], [9.0, 1.0, 1.0]])
    head = Head(W, link="softmax")
    assert NeverWins(head.digest, 0, [1, 2], [2 / 3, 1 / 3]).verify(head) == 0.0
    with pytest.raises(CertificateError):
        NeverWins(head.digest, 0, [1, 2], [0.6, 0.4]).verify(head)


def test_a_rank_deficient_head_is_proven_in_whole_numbers():
    r = np.random.default_rng(5)
    W = (r.integers(-4, 5, (25, 3)) @ r.integers(-3, 4, (3, 9))).astype(np.float32)
    head = Head(W, link="softmax")
    decided = 0
    for i in range(25):
        t, _, multipliers = exact_lp(W.astype(float), np.zeros(25), i, [-np.inf] * 9, [np.inf] * 9)
        if t <= 0:
            decided += 1
            assert never(head, i, multipliers).verify(head) == 0.0
    assert decided > 3


def test_twins_are_verified_by_value():
    head = Head([[1.0, -0.0], [1.0, 0.0], [0.0, 1.0]], [0.5, 0.5, 0.0], link="softmax")
    with pytest.raises(CertificateError, match="scores as label 0 does everywhere, which proves nothing"):
        NeverWins(head.digest, 0, [1], [1.0]).verify(head)
    assert Wins(head.digest, 0, [1.0, 0.0], [1]).verify(head) > 1.4
    with pytest.raises(CertificateError, match="named as an equal of label 0, and is not"):
        Wins(head.digest, 0, [0.0, 1.0], [1, 2]).verify(head)
    higher = head.replace(bias=[0.4, 0.5, 0.0])
    assert NeverWins(higher.digest, 0, [1], [1.0]).verify(higher) <= -0.09
    lower = head.replace(bias=[0.6, 0.5, 0.0])
    with pytest.raises(CertificateError):
        NeverWins(lower.digest, 0, [1], [1.0]).verify(lower)


def test_a_label_is_no_rival_of_its_own():
    head = Head([[1.0, 0.0], [0.0, 1.0]], link="softmax")
    with pytest.raises(CertificateError, match="its own rivals"):
        NeverWins(head.digest, 0, [0], [1.0]).verify(head)


def test_many_more_rivals_than_dimensions_are_enclosed_too():
    head = interior_head(400, 10)
    V = head.W.astype(float)
    A, rhs = np.vstack([V[1:].T, np.ones(399)]), np.r_[V[0], 1]
    w = np.full(399, 1 / 399)
    w += np.linalg.lstsq(A, rhs - A @ w, rcond=None)[0]
    assert (w > 0).all()
    assert NeverWins(head.digest, 0, np.arange(1, 400), w).verify(head) == 0.0
