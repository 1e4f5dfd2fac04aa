"""Study 2: the derivative is that of the correlation, the supremum is reached, and the verdict comes out both ways."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.studies.centred_logits import correlations
from gonio.studies.common_geometry import (
    against,
    common_geometry,
    held_out,
    mantel,
    verdict,
    with_interval,
)
from gonio.studies.gauge_extremes import correlation, correlation_and_gradient, lowest, split_one
from gonio.studies.study import Measured
from tests.studies.made import equivalent, random_head


def slow_correlation(X, Y):
    cos = lambda Z, i, j: Z[i] @ Z[j] / np.sqrt(Z[i] @ Z[i] * (Z[j] @ Z[j]))  # noqa: E731
    pairs = list(combinations(range(len(X)), 2))
    return np.corrcoef([cos(X, *p) for p in pairs], [cos(Y, *p) for p in pairs])[0, 1]


def test_the_correlation_and_its_derivative_against_loops_and_differences():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 3)), rng.normal(size=(9, 4))
    r, grads = correlation_and_gradient(X, Y)
    assert r == pytest.approx(slow_correlation(X, Y))
    assert correlation(X, Y) == pytest.approx(r)
    for k, Z in enumerate((X, Y)):
        for at in [(0, 0), (3, 2), (8, 1)]:
            step = np.zeros_like(Z)
            step[at] = 1e-6
            up = slow_correlation(*((Z + step, Y) if k == 0 else (X, Z + step)))
            down = slow_correlation(*((Z - step, Y) if k == 0 else (X, Z - step)))
            assert grads[k][at] == pytest.approx((up - down) / 2e-6, abs=1e-6)


@pytest.mark.theorem("GONIO.split")
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_supremum_is_approached_by_equivalent_forms(seed):
    rng = np.random.default_rng(seed)
    W, V = rng.normal(size=(40, 6)), rng.normal(size=(40, 8))
    form_a, form_b, label = split_one(W, V)
    assert np.linalg.matrix_rank(form_a.M) == 6
    X = form_a.apply(W)
    assert np.allclose(np.delete(correlations(X)[label], label), -1, atol=1e-3)
    assert correlation(X, form_b.apply(V)) > 0.999
    x = rng.normal(size=6)  # the same probabilities, with states mapped along
    z, moved = W @ x, X @ np.linalg.solve(form_a.M.T, x)
    assert np.allclose(z - z.mean(), moved - moved.mean(), atol=1e-6)


def test_no_supremum_is_claimed_where_no_label_is_found_to_win():
    square = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    assert split_one(square, np.zeros((4, 2)) + np.arange(4)[:, None] * [1.0, 0]) is not None  # an end of the line wins
    W = np.vstack([square, 0 * square[:1]])
    split = split_one(W, W)
    assert split is None or split[2] != 4


def test_the_lowest_found_is_reached_by_its_forms_and_lies_below_the_start():
    rng = np.random.default_rng(1)
    W = rng.normal(size=(30, 4))
    V = W @ rng.normal(size=(4, 5)) + 0.1 * rng.normal(size=(30, 5))
    low, form_a, form_b = lowest(W, V, steps=40)
    assert low < correlation(W, V) - 0.5
    assert correlation(form_a.apply(W), form_b.apply(V)) == pytest.approx(low, abs=1e-6)
    kept, form_a, form_b = lowest(W, V, steps=20, translate=(False, False))
    assert correlation(form_a.apply(W), form_b.apply(V)) == pytest.approx(kept, abs=1e-6)
    assert np.allclose(form_a.v, 0)
    moved, form_a, form_b = lowest(W, V, steps=20, translate=(True, False), linear=(False, True))
    C = W - W.mean(axis=0)
    assert np.allclose(C @ form_a.M.T @ form_a.M @ C.T, C @ C.T)  # beside a rotation only an offset is free
    assert np.allclose(form_b.v, 0)
    assert correlation(form_a.apply(W), form_b.apply(V)) == pytest.approx(moved, abs=1e-6)


def test_one_model_in_two_forms_agrees_by_its_logits_and_not_by_its_cosines():
    head, F = random_head(60, 5, 300)
    moved, G = equivalent(head, F, size=4)
    r = common_geometry(head, moved, states=(F, G), steps=10)
    assert r["logits"].value == pytest.approx(1)
    assert r["stored cosines"].value < 0.9
    assert "The models do agree" in r.verdict
    assert r.against.startswith("the stored cosines hide agreement")


def test_unrelated_models_are_not_shown_to_agree():
    (a, F), (b, G) = random_head(60, 5, 300, 1), random_head(60, 5, 300, 2)
    r = common_geometry(a, b, states=(F, G), steps=5)
    assert "is not shown" in r.verdict
    assert abs(r["logits"].value) < 0.15
    with pytest.raises(GonioError, match="the same inputs"):
        common_geometry(a, b, states=(F, G[:-1]), steps=1)


def test_a_common_offset_makes_cosines_agree_more_than_the_models():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(80, 1)) * [3.0, 0, 0, 0, 0]
    a, b = (Head(rng.normal(size=(80, 5)) + common, link="softmax") for _ in range(2))
    F = rng.normal(size=(300, 5)) * [1e-3, 1, 1, 1, 1]  # no input takes the common direction
    G = rng.normal(size=(300, 5)) * [1e-3, 1, 1, 1, 1]
    r = common_geometry(a, b, states=(F, G), steps=5)
    assert r.against.startswith("the stored cosines agree more")
    assert "is not shown" in r.verdict


def test_frequency_is_taken_out_where_it_is_all_there_is():
    rng = np.random.default_rng(0)
    f = rng.normal(size=70)
    a, b = (Head(np.column_stack([2 * f, 0.5 * rng.normal(size=(70, 3))]), link="softmax") for _ in range(2))
    r = common_geometry(a, b, frequency=f, lengths=rng.normal(size=70), steps=2)
    assert r["stored cosines"].low > 0.5
    assert r["stored cosines, frequency and length held"].value < r["stored cosines"].low


def test_pieces_against_loops():
    rng = np.random.default_rng(3)
    A, B = correlations(rng.normal(size=(12, 3))), correlations(rng.normal(size=(12, 3)))
    pairs = list(combinations(range(12), 2))
    x, y = ([C[p] for p in pairs] for C in (A, B))
    value, low, high = with_interval(A, B, rng)
    assert value == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert low < value < high
    f = rng.normal(size=12)
    left = held_out(A, [f])
    assert np.corrcoef([left[p] for p in pairs], [f[i] + f[j] for i, j in pairs])[0, 1] == pytest.approx(0, abs=1e-9)
    assert mantel(A, A, rng) == pytest.approx(1 / 200)
    assert mantel(A, -A, rng) > 0.5


def test_the_sentences_are_what_the_numbers_say():
    stored, low = Measured("stored cosines", 0.8, 0.7, 0.9), Measured("lowest found", -0.9)
    n = {m.name: m for m in (stored, low, Measured("supremum", 1.0), Measured("logits", 0.4, 0.3, 0.5))}
    assert "do agree" in verdict(n)
    assert against(n).startswith("the stored cosines agree more")
    n["logits"] = Measured("logits", 0.02, -0.1, 0.1)
    assert "is not shown" in verdict(n)
    n["logits"] = Measured("logits", 0.8, 0.7, 0.9)
    assert against(n) == ""
    assert "no equivalent form" in verdict({"stored cosines": stored})
