"""Certificates prove what they claim and nothing else; exact rational arithmetic is the judge."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, GonioError, Head, Nonnegative, Observed
from gonio.regions.bulk import compact, verify_all
from gonio.regions.certificate import CertificateError, NeverTies, NeverWins, Ties, Undecided, Wins, of_dict

rng = np.random.default_rng(4)


# -- the judge: a simplex method in fractions --------------------------------------------------------------------------


def exact_lp(V, c, i, low, high):
    """max t <= 1 with (v_i - v_j).z + c_i - c_j >= t for all j and low <= z <= high: (t, z, multipliers of the rivals)."""
    n, d = len(V), len(V[0])
    V, c = [[Fraction(v) for v in row] for row in V], [Fraction(v) for v in c]
    # z = base + direction * (non-negative variables)
    base, variables = [Fraction(0)] * d, []
    for k in range(d):
        if np.isfinite(low[k]):
            base[k] = Fraction(low[k])
            variables.append((k, 1))
        elif np.isfinite(high[k]):
            base[k] = Fraction(high[k])
            variables.append((k, -1))
        else:
            variables += [(k, 1), (k, -1)]
    rows, right = [], []
    rivals = [j for j in range(n) if j != i]
    for j in rivals:
        diff = [a - b for a, b in zip(V[i], V[j], strict=True)]
        rows.append([-diff[k] * s for k, s in variables] + [Fraction(1), Fraction(-1)])
        right.append(sum((a * b for a, b in zip(diff, base, strict=True)), c[i] - c[j]))
    rows.append([Fraction(0)] * len(variables) + [Fraction(1), Fraction(-1)])
    right.append(Fraction(1))
    for q, (k, s) in enumerate(variables):
        if s == 1 and np.isfinite(low[k]) and np.isfinite(high[k]):
            rows.append([Fraction(int(p == q)) for p in range(len(variables))] + [Fraction(0)] * 2)
            right.append(Fraction(high[k]) - Fraction(low[k]))
    m, w = len(rows), len(variables) + 2
    T = [
        row + [Fraction(int(r == s)) for s in range(m)] + [b]
        for r, (row, b) in enumerate(zip(rows, right, strict=True))
    ]
    T.append([Fraction(0)] * (w - 2) + [Fraction(-1), Fraction(1)] + [Fraction(0)] * (m + 1))
    basis = [w + r for r in range(m)]

    def pivot(r, col):
        p = T[r][col]
        T[r] = [v / p for v in T[r]]
        for s in range(m + 1):
            if s != r and T[s][col]:
                f = T[s][col]
                T[s] = [a - f * b for a, b in zip(T[s], T[r], strict=True)]
        basis[r] = col

    worst = min(range(m), key=lambda r: T[r][-1])
    if T[worst][-1] < 0:
        pivot(worst, w - 1)  # t low enough makes every rival's row hold
    while True:
        col = next((k for k in range(w + m) if T[m][k] < 0), None)
        if col is None:
            break
        choices = [(T[r][-1] / T[r][col], basis[r], r) for r in range(m) if T[r][col] > 0]
        pivot(min(choices)[2], col)
    value = {b: T[r][-1] for r, b in enumerate(basis)}
    z = base[:]
    for q, (k, s) in enumerate(variables):
        z[k] += s * value.get(q, Fraction(0))
    return T[m][-1], z, {j: T[m][w + r] for r, j in enumerate(rivals) if T[m][w + r]}


def sides(inputs, d):
    return {
        AllInputs: lambda: ([-np.inf] * d, [np.inf] * d),
        Nonnegative: lambda: ([0.0] * d, [np.inf] * d),
        Box: lambda: (np.broadcast_to(inputs.low, d), np.broadcast_to(inputs.high, d)),
    }[type(inputs)]()


def exact_margin(head, i, x, but=()):
    W, b = (
        [[Fraction(float(v)) for v in row] for row in head.W],
        head.bias if head.bias is not None else np.zeros(len(head)),
    )
    scores = [
        sum((p * q for p, q in zip(row, x, strict=True)), Fraction(float(v))) for row, v in zip(W, b, strict=True)
    ]
    return min(scores[i] - s for j, s in enumerate(scores) if j != i and j not in but)


def never(head, i, multipliers):
    total = sum(multipliers.values())
    return NeverWins(head.digest, i, list(multipliers), [float(v / total) for v in multipliers.values()])


entries = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.0, 0.25, 0.1, 1.0, 1.0, 1 / 3, 2.0, 3.0, 1e-9, -1e-9])
shapes = st.tuples(st.integers(2, 7), st.integers(1, 4))


@st.composite
def heads(draw, kinds=("all", "nonnegative", "box", "swish", "mixed")):
    n, d = draw(shapes)
    W = np.array(draw(st.lists(st.lists(entries, min_size=d, max_size=d), min_size=n, max_size=n)))
    for _ in range(draw(st.integers(0, 2))):  # duplicates, mid-points, collinear and interior rows
        a, b, c = (draw(st.integers(0, n - 1)) for _ in range(3))
        W[c] = draw(st.sampled_from([W[a], (W[a] + W[b]) / 2, W[a] + 2 * (W[b] - W[a]), W.mean(axis=0), np.zeros(d)]))
    W = W * draw(st.sampled_from([1.0, 1.0, 1e-30, 1e30, 1e150, 1e-150]))
    bias = draw(st.none() | st.lists(entries, min_size=n, max_size=n))
    kind = draw(st.sampled_from(kinds))
    inputs = {
        "all": AllInputs(),
        "nonnegative": Nonnegative(),
        "box": Box(-1, 1),
        "swish": Box(-0.2785, np.inf),
        "mixed": Box(np.array([0, -np.inf, -1, 2.0])[:d], np.array([6, 0.5, np.inf, 2])[:d]),
    }[kind]
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    with np.errstate(all="ignore"):
        narrow = W.astype(dtype)
    return Head(narrow if np.isfinite(narrow).all() else W, bias, link="softmax", inputs=inputs)


@settings(max_examples=250, deadline=None)
@given(heads())
def test_every_label_of_a_small_head_is_proven_one_way_or_the_other(head):
    n, d = head.shape
    low, high = sides(head.inputs, d)
    bias = np.zeros(n) if head.bias is None else head.bias.astype(float)
    for i in range(n):
        t, z, multipliers = exact_lp(head.W.astype(float), bias, i, low, high)
        if t > 0:
            x = np.array([float(v) for v in z])
            inside = head.inputs.contains(x).all()
            wins = inside and exact_margin(head, i, [Fraction(v) for v in x]) > 0
            proof = Wins(head.digest, i, x)
            if wins:
                assert 0 < proof.verify(head) <= exact_margin(head, i, [Fraction(v) for v in x])
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
    t, _, _ = exact_lp(head.W.astype(float), bias, i, low, high)
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


def interior_head(n, d, seed=0, dtype=np.float32, bias=False):
    r = np.random.default_rng(seed)
    W = r.standard_normal((n, d))
    W[0] = r.dirichlet(np.ones(n - 1)) @ W[1:]
    b = r.standard_normal(n) if bias else None
    if bias:
        b[0] = b.min() - 1
    return Head(W.astype(dtype), b, link="softmax")


def basic_weights(head, i=0):
    V, others = head.W.astype(float), np.delete(np.arange(len(head)), i)
    b = np.zeros(len(head)) if head.bias is None else head.bias
    A, rhs = np.vstack([V[others].T, np.ones(len(others))]), np.r_[V[i], 1]
    found = linprog(-b[others], A_eq=A, b_eq=rhs, method="highs-ds")
    assert found.status == 0
    support = np.flatnonzero(found.x > 1e-12)
    refined = np.linalg.lstsq(A[:, support], rhs, rcond=None)[0]
    return others[support], refined


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
    assert NeverWins(head.digest, 0, [1], [1.0]).verify(head) == 0.0
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


# -- observed embeddings -----------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(heads(("all",)), st.data())
def test_observed_embeddings_are_looked_at_one_by_one(head, data):
    n, d = head.shape
    F = np.array(data.draw(st.lists(st.lists(entries, min_size=d, max_size=d), min_size=1, max_size=4)))
    head = head.replace(inputs=Observed(F))
    for i in range(n):
        margins = [exact_margin(head, i, [Fraction(v) for v in x]) for x in F]
        if max(margins) > 0:
            with pytest.raises(CertificateError):
                NeverWins(head.digest, i, [], []).verify(head)
        else:
            value = NeverWins(head.digest, i, [], []).verify(head)
            assert max(margins) <= value <= 0
    a, b = 0, 1
    tied = [
        exact_margin(head, a, [Fraction(v) for v in x], (b,)) > 0 and exact_margin(head, b, [Fraction(v) for v in x], (a,)) > 0
        and exact_margin(Head(head.W[[a, b]], None if head.bias is None else head.bias[[a, b]], link="dot"), 0, [Fraction(v) for v in x]) == 0
        for x in F
    ] if n > 2 else []  # fmt: skip
    if n > 2 and any(tied):
        with pytest.raises(CertificateError, match="share the top"):
            NeverTies(head.digest, a, b, [], [], []).verify(head)
        x = F[tied.index(True)]
        assert Ties(head.digest, a, b, x, x).verify(head) > 0
    elif n > 2:
        assert NeverTies(head.digest, a, b, [], [], []).verify(head) == 0.0


def test_an_embedding_that_was_not_observed_is_refused():
    head = Head(np.eye(3), link="softmax", inputs=Observed([[1.0, 0, 0]]))
    assert Wins(head.digest, 0, [1.0, 0, 0]).verify(head) == pytest.approx(1)
    with pytest.raises(CertificateError, match="not one of the head's inputs"):
        Wins(head.digest, 0, [1.0, 0.5, 0]).verify(head)
    both = Head(np.eye(3), link="softmax", inputs=Observed([[1.0, 0.9, 0], [0.9, 1.0, 0]]))
    with pytest.raises(CertificateError, match="not convex"):
        Ties(both.digest, 0, 1, [1.0, 0.9, 0], [0.9, 1.0, 0]).verify(both)


# -- ties --------------------------------------------------------------------------------------------------------------

FIG2 = np.array([[1.4, -1], [1.4, 1], [-0.9, 0.3], [-1, 0], [-0.9, -0.3]])


def test_the_figure_of_the_paper_ties_where_it_can_and_nowhere_else():
    head = Head(FIG2, link="softmax")
    assert Ties(head.digest, 0, 1, [1.0, -0.01], [1.0, 0.01]).verify(head) > 0
    # Labels 2 and 4 (cosine 0.8) cannot: label 3 wins between them.  3 = s (2) + (1-s) (4) + something outwards.
    with pytest.raises(CertificateError, match="strictly above all others"):
        Ties(head.digest, 2, 4, [-1.0, 0.01], [-1.0, -0.01]).verify(head)
    # s g_2 + (1-s) g_4 = sum of weights on 3 and on 0, 1: the mid-point (-0.9, 0) lies between 3 and the right side.
    share = 0.1 / 2.4
    proof = NeverTies(head.digest, 2, 4, [3, 0, 1], [1 - share, share / 2, share / 2], [0.5, 0.5])
    assert proof.verify(head) == 0.0
    with pytest.raises(CertificateError):
        NeverTies(head.digest, 0, 1, [2, 3, 4], [0.3, 0.4, 0.3], [0.5, 0.5]).verify(head)


def tie_lp(V, c, a, b, low, high):
    """Float weights on rivals and on the pair, from the LP dual: max t with both scores equal and t above all others."""
    n, d = V.shape
    js = [j for j in range(n) if j not in (a, b)]
    A = np.column_stack([V[js] - V[a], np.ones(len(js))])
    found = linprog(
        np.r_[np.zeros(d), -1], A_ub=A, b_ub=c[a] - c[js], A_eq=[np.r_[V[a] - V[b], 0]], b_eq=[c[b] - c[a]],
        bounds=[*zip([None if np.isinf(v) else v for v in low], [None if np.isinf(v) else v for v in high], strict=True), (None, 1)],
    )  # fmt: skip
    return found, js


@settings(max_examples=80, deadline=None)
@given(
    st.integers(3, 9),
    st.integers(2, 4),
    st.integers(0, 2**32),
    st.sampled_from(["all", "nonnegative", "box"]),
    st.booleans(),
)
def test_pairs_are_proven_to_tie_or_not_to(n, d, seed, kind, biased):
    r = np.random.default_rng(seed)
    inputs = {"all": AllInputs(), "nonnegative": Nonnegative(), "box": Box(-1, 1)}[kind]
    head = Head(r.standard_normal((n, d)), r.standard_normal(n) if biased else None, link="softmax", inputs=inputs)
    low, high = sides(inputs, d)
    c = np.zeros(n) if head.bias is None else head.bias
    found, js = tie_lp(head.W, c, 0, 1, low, high)
    if found.status == 2:  # the two are never equal
        assert NeverTies(head.digest, 0, 1, [], [], []).verify(head) < 0
        return
    assert found.status == 0
    if -found.fun > 1e-6:
        x = found.x[:d]
        u = head.W[0] - head.W[1]
        step = 1e-9 * max(1, np.abs(x).max()) / np.abs(u).max()
        span = np.clip(x + step * u, low, high), np.clip(x - step * u, low, high)
        try:
            assert Ties(head.digest, 0, 1, *span).verify(head) > 0
        except CertificateError:
            assert kind != "all"  # at the border a step cannot always be taken in both ways
    elif -found.fun < -1e-6 or kind != "box":
        lam = -found.ineqlin.marginals
        total = lam.sum()
        mu = found.eqlin.marginals[0] / total
        keep = lam / total > 1e-12
        for p in (mu, -mu):
            try:
                proof = NeverTies(head.digest, 0, 1, np.array(js)[keep], (lam / total)[keep], [1 - p, p])
                assert proof.verify(head) <= 0
                return
            except CertificateError:
                continue
        raise AssertionError("neither sign of the pair's weight was proven")


def test_rows_alike_with_different_biases_never_tie():
    head = Head([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]], [0.0, 0.1, 5.0], link="softmax")
    assert NeverTies(head.digest, 0, 1, [], [], []).verify(head) == pytest.approx(-0.1, abs=1e-9)
    with pytest.raises(CertificateError, match="always the higher"):
        NeverTies(head.digest, 0, 2, [], [], []).verify(head)


def test_twins_tie_where_they_win():
    head = Head([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], link="softmax")
    assert Ties(head.digest, 0, 1, [1.0, 0.0], [1.0, 0.0]).verify(head) == pytest.approx(1)


# -- what must fail ----------------------------------------------------------------------------------------------------


def test_a_certificate_of_another_head_is_refused():
    head = Head(np.eye(3), link="softmax")
    other = Head(np.eye(3), link="softmax", inputs=Nonnegative())
    with pytest.raises(CertificateError, match="was checked against"):
        Wins(head.digest, 0, [1.0, 0, 0]).verify(other)


@pytest.mark.parametrize("label", [-1, 3, 10**9])
def test_a_label_out_of_range_is_refused(label):
    head = Head(np.eye(3), link="softmax")
    for proof in (Wins(head.digest, label, [1.0, 0, 0]), NeverWins(head.digest, label, [0, 1], [0.5, 0.5])):
        with pytest.raises(CertificateError, match="out of range"):
            proof.verify(head)
    with pytest.raises(CertificateError, match="among the labels"):
        NeverWins(head.digest, 0, [1, label], [0.5, 0.5]).verify(head)


def test_tampered_weights_are_refused():
    head = interior_head(60, 6)
    rivals, weights = basic_weights(head)
    assert NeverWins(head.digest, 0, rivals, weights).verify(head) == 0.0
    for change in (1.1, 0.0, -1.0, np.nan, 1 + 1e-4):
        bad = weights.copy()
        bad[2] *= change
        for w in (bad, bad / bad.sum()):
            with pytest.raises(CertificateError):
                NeverWins(head.digest, 0, rivals, w).verify(head)
    with pytest.raises(CertificateError):
        NeverWins(head.digest, 0, rivals, weights[::-1]).verify(head)
    with pytest.raises(CertificateError, match="one weight per rival"):
        NeverWins(head.digest, 0, rivals, weights[:-1]).verify(head)
    label = int(np.setdiff1d(np.arange(60), rivals)[1])
    with pytest.raises(CertificateError):
        NeverWins(head.digest, label, rivals, weights).verify(head)


@pytest.mark.parametrize(
    ("inputs", "x", "why"),
    [
        (AllInputs(), [np.nan, 0, 0], "NaN"),
        (AllInputs(), [np.inf, 0, 0], "NaN or infinity"),
        (AllInputs(), [1.0, 0], "width 3"),
        (Nonnegative(), [1.0, -1e-300, 0], "non-negative"),
        (Box(-1, 1), [1 + 2e-16, 0, 0], "box"),
        (AfterRMSNorm([1, 1, 1]), [1.7320508075688774, 0, 0], "norm"),
        (AfterRMSNorm([1, 0, 1]), [1.0, 1e-9, 0], "gain is 0"),
        (AfterLayerNorm([1, 1, 1]), [1.0, 0, 0], "sum to zero"),
        (AfterLayerNorm([1, 1, 1], 1.0), [3.0, -1.0, 1.0], "norm"),
        (AfterLayerNorm([1, 1, 0], 1.0), [2.0, 1.0, 1.5], "gain is 0"),
    ],
)  # fmt: skip
def test_an_embedding_outside_the_inputs_is_refused(inputs, x, why):
    head = Head(np.eye(3), link="softmax", inputs=inputs)
    with pytest.raises(CertificateError, match=why):
        Wins(head.digest, 0, x).verify(head)
    assert why in verify_all(head, [Wins(head.digest, 0, x)]).refused[0]


def test_the_edge_of_the_ball_is_decided_exactly():
    head = Head(np.eye(3), link="softmax", inputs=AfterRMSNorm([1, 1, 1]))
    assert Wins(head.digest, 0, [1.7320508075688772, 0, 0]).verify(head) > 1.7  # its square is below 3


def test_things_that_are_no_numbers_are_refused_when_made():
    for bad in ("text", [[1.0]], [1.5], [None]):
        with pytest.raises(GonioError):
            NeverWins("d", 0, bad, [1.0])
    with pytest.raises(GonioError):
        Wins("d", 0, [[1.0, 2.0]])


def test_a_cosine_head_is_refused():
    head = Head(np.eye(3), link="cosine")
    with pytest.raises(CertificateError, match="unit_rows"):
        Wins(head.digest, 0, [1.0, 0, 0]).verify(head)


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_undecided_proves_only_its_bound():
    head = Head([[0.0, 1e-12], [1.0, 0.0], [-1.0, 0.0]], link="softmax")
    near = Undecided(head.digest, 0, 1e-11, "the search stopped", [1, 2], [0.5, 0.5])
    assert near.verify(head) == 1e-11
    with pytest.raises(CertificateError, match="prove a bound"):
        Undecided(head.digest, 0, 1e-13, "", [1, 2], [0.5, 0.5]).verify(head)
    with pytest.raises(CertificateError, match="proves nothing"):
        Undecided(head.digest, 0, 1.0, "no time").verify(head)
    box = head.replace(inputs=Box(-2, 2))
    assert Undecided(box.digest, 0, 2.1e-12, "", [1, 2], [0.5, 0.5]).verify(box) == 2.1e-12
    with pytest.raises(CertificateError, match="prove a bound"):
        Undecided(box.digest, 0, 1.9e-12, "", [1, 2], [0.5, 0.5]).verify(box)


@settings(max_examples=100, deadline=None)
@given(heads(), st.data())
def test_an_undecided_bound_holds_in_exact_arithmetic(head, data):
    n, d = head.shape
    x = np.array(data.draw(st.lists(entries, min_size=d, max_size=d)))
    low, high = sides(head.inputs, d)
    x = np.clip(x, low, high)
    w = np.full(n - 1, 1 / (n - 1))
    from gonio.regions.mean import Mean, beyond, sums, supremum

    mean = Mean(head, 0, np.arange(1, n), w, np.zeros(n - 1, bool))
    with np.errstate(all="ignore"):
        s = sums(mean)
        value = (supremum(head, s) if head.inputs.bounded else beyond(head, s)) / mean.scale
    size = max(1, sum(Fraction(v) ** 2 for v in x)) if not head.inputs.bounded else 1
    margin = exact_margin(head, 0, [Fraction(v) for v in x])
    if margin > 0 and np.isfinite(value):
        assert margin**2 <= Fraction(value) ** 2 * size * Fraction(1 + 1e-6)


def test_one_label_alone_always_wins():
    head = Head([[1.0, 2.0]], link="softmax")
    assert Wins(head.digest, 0, [0.0, 0.0]).verify(head) == np.inf
    assert verify_all(head, [Wins(head.digest, 0, [0.0, 0.0])] * 40).bounds.min() == np.inf


def test_certificates_are_equal_by_value_and_survive_a_dict():
    head = Head(np.eye(3), link="softmax")
    kinds = [
        Wins(head.digest, 0, [1.0, 0, 0]),
        NeverWins(head.digest, 0, [1, 2], [0.5, 0.5]),
        Ties(head.digest, 0, 1, [1.0, 1, 0], [1.0, 1, 0]),
        NeverTies(head.digest, 0, 1, [2], [1.0], [0.5, 0.5]),
        Undecided(head.digest, 0, 0.1, "no time"),
    ]
    for k, c in enumerate(kinds):
        assert of_dict(c.to_dict()) == c
        assert hash(of_dict(c.to_dict())) == hash(c)
        assert all(c != other for j, other in enumerate(kinds) if j != k)
        assert len(repr(c).splitlines()) == 2
    with pytest.raises(GonioError, match="not those of a certificate"):
        of_dict({"kind": "pardon"})


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("biased", [False, True])
def test_many_wins_are_verified_together_as_one_by_one(dtype, biased):
    r = np.random.default_rng(3)
    W = r.standard_normal((300, 40)).astype(dtype)
    W[1] = W[0]
    W[2] = W[3]
    W[2, 0] = np.nextafter(W[3, 0], np.asarray(9, dtype))
    head = Head(W, 0.1 * r.standard_normal(300) if biased else None, link="softmax")
    wide = np.asarray(W, dtype=float)
    xs = wide - wide.mean(axis=0)
    proofs = [Wins(head.digest, i, xs[i]) for i in range(300)]
    together = verify_all(head, proofs)
    for i, proof in enumerate(proofs):
        try:
            alone = proof.verify(head)
            assert 0 < together.bounds[i] <= alone * (1 + 1e-3)
        except CertificateError as e:
            assert together.refused[i] == str(e)
            assert np.isnan(together.bounds[i])
    assert len(together.refused) < 60
    small = compact(head, proofs)
    assert sum(c.x.dtype == np.float32 for c in small) > 200
    assert verify_all(head, small).refused.keys() == together.refused.keys()


@pytest.mark.parametrize("scale", [1e-300, 1e-40, 1e40, 1e300])
def test_huge_and_tiny_heads_are_screened_rightly(scale):
    r = np.random.default_rng(6)
    W = r.standard_normal((60, 5)) * scale
    head = Head(W, link="softmax")
    for size in (1e-100, 1.0, 1e100, 1e-300, 1e300):
        xs = W / scale * size
        together = verify_all(head, [Wins(head.digest, i, xs[i]) for i in range(60)])
        for i in range(60):
            truth = exact_margin(head, i, [Fraction(v) for v in xs[i]])
            assert (i in together.refused) == (truth < Fraction(2) ** -1074)
            if i not in together.refused:
                assert together.bounds[i] <= truth


def test_mixed_certificates_are_verified_together():
    head = Head(FIG2, link="softmax")
    share = 0.1 / 2.4
    proofs = [
        Ties(head.digest, 0, 1, [1.0, -0.01], [1.0, 0.01]),
        Ties(head.digest, 2, 4, [-1.0, 0.01], [-1.0, -0.01]),
        Ties(head.digest, 0, 0, [1.0, -0.01], [1.0, 0.01]),
        NeverTies(head.digest, 2, 4, [3, 0, 1], [1 - share, share / 2, share / 2], [0.5, 0.5]),
        Wins(head.digest, 0, [1.0, -1.0]),
        Wins(head.digest, 1, [1.0, -1.0]),
        Wins("0" * 64, 1, [1.0, -1.0]),
        Wins(head.digest, 1, [np.nan, -1.0]),
    ]
    seen = verify_all(head, proofs)
    assert set(seen.refused) == {1, 2, 5, 6, 7}
    assert "label 0 scores at least as high" in seen.refused[5]
    assert len(repr(seen).splitlines()) == 2
