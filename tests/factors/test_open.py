"""What training leaves open: invariance of one objective, uniqueness of the other, noise that is the one and not the other."""

from __future__ import annotations

from itertools import pairwise
from itertools import product as every

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import GonioError
from gonio.factors import cosine_range, fit, rescale, user_item_range
from tests.factors.made import best_of, cosines, interactions, objective

X = interactions()


@pytest.mark.theorem("SEK24.invariant")
@settings(deadline=None)
@given(seed=st.integers(0, 10_000), diagonal=st.booleans(), penalty=st.sampled_from(["product", "dropout"]))
def test_every_invertible_map_leaves_the_product_objective_and_the_scores(seed, diagonal, penalty):
    model = fit(X, 3, penalty, lam=2.0)
    rng = np.random.default_rng(seed)
    M = np.exp(rng.standard_normal(3)) if diagonal else np.eye(3) + rng.standard_normal((3, 3))
    if not diagonal and np.linalg.cond(M) > 1e4:
        return
    moved = rescale(model, M)
    assert np.allclose(moved.scores(), model.scores(), atol=1e-9)
    assert np.allclose(moved.users, X @ moved.A, atol=1e-9)
    assert objective(X, moved.A, moved.items, penalty, 2.0) == pytest.approx(model.objective, rel=1e-9)
    assert moved.objective == pytest.approx(model.objective, rel=1e-9)


@pytest.mark.theorem("SEK24.unique")
def test_the_factor_objective_is_least_at_one_model_up_to_rotation():
    lam = 2.0
    model = fit(X, 3, "factors", lam=lam)
    rng = np.random.default_rng(0)
    for _ in range(30):  # no map but a rotation keeps the value
        Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        turned = rescale(model, Q)
        assert turned.objective == pytest.approx(model.objective, rel=1e-12)
        assert np.allclose(cosines(turned.items), cosines(model.items), atol=1e-9)
        bent = rescale(model, Q * np.exp(0.3 * rng.standard_normal(3)))
        assert bent.objective > model.objective * (1 + 1e-6)
        assert bent.objective == pytest.approx(objective(X, bent.A, bent.items, "factors", lam), rel=1e-11)
    # and every start that ends at the least value ends at the same cosines
    runs = [r for r in best_of(X, 3, "factors", lam, starts=8) if r[0] < model.objective * (1 + 1e-10)]
    assert len(runs) >= 3
    for _, A, B in runs:
        assert np.allclose(B @ B.T, model.items @ model.items.T, atol=1e-3)
        assert np.allclose(X @ A @ B.T, model.scores(), atol=1e-3)


def test_restarts_of_the_product_penalty_agree_in_scores_and_not_in_cosines():
    closed = fit(X, 3, "product", lam=5.0)
    found = [fit(X, 3, "product", lam=5.0, by="als", seed=s, steps=3000, tolerance=1e-15) for s in range(3)]
    for m in found:
        assert np.abs(m.scores() - closed.scores()).max() < 1e-4
    assert min(np.abs(cosines(a.items) - cosines(b.items)).max() for a, b in pairwise(found)) > 0.05
    unique = [fit(X, 3, "factors", lam=2.0, by="als", seed=s, steps=5000, tolerance=1e-16) for s in range(3)]
    for m in unique[1:]:
        assert np.abs(cosines(m.items) - cosines(unique[0].items)).max() < 1e-4


@pytest.mark.theorem("SEK24.full")
def test_at_full_rank_one_choice_makes_all_items_orthogonal_and_another_gives_raw_cosines_of_users():
    x = interactions(40, 6, seed=2)
    assert np.linalg.matrix_rank(x) == 6
    model = fit(x, 6, "product", lam=7.0)
    w = 1 / (1 + 7.0 / model.singular**2)
    flat = rescale(model, np.sqrt(w))
    assert np.allclose(cosines(flat.items), np.eye(6), atol=1e-12)
    # there the user-item cosine ranks items as the dot product does
    u = flat.users / np.linalg.norm(flat.users, axis=1, keepdims=True)
    b = flat.items / np.linalg.norm(flat.items, axis=1, keepdims=True)
    assert np.array_equal(np.argsort(u @ b.T, axis=1), np.argsort(flat.scores(), axis=1))
    other = rescale(model, 1 / np.sqrt(w))
    assert np.allclose(cosines(other.users), cosines(x), atol=1e-10)
    # rank below the number of items: the normalised projector instead
    low = np.hstack([x[:, :3], x[:, :3].sum(axis=1, keepdims=True)])
    low = low[low.any(axis=1)]
    small = fit(low, 3, "product", lam=7.0)
    V = np.linalg.svd(low)[2][:3].T
    assert np.allclose(cosines(rescale(small, "items").items), cosines(V @ V.T), atol=1e-9)
    assert np.abs(cosines(rescale(small, "items").items) - np.eye(4)).max() > 0.1


@pytest.mark.theorem("SEK24.denoise")
def test_additive_noise_on_the_input_is_exactly_the_product_penalty():
    # Noise of +-sqrt(tau) has the second moments of a normal one, and its expectation is a finite sum.
    x, tau = interactions(4, 5, seed=1), 0.7
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 5, 2))
    total = 0.0
    for row in x:
        noisy = [row + np.sqrt(tau) * np.array(e) for e in every((-1, 1), repeat=5)]
        total += np.mean([((row - r @ A @ B.T) ** 2).sum() for r in noisy])
    assert total == pytest.approx(objective(x, A, B, "product", len(x) * tau), rel=1e-12)


@pytest.mark.theorem("GONIO.dropout-is-weighted")
@pytest.mark.parametrize("rate", [0.3, 0.5])
def test_dropout_is_a_popularity_weighted_penalty_and_not_the_product_penalty(rate):
    x = interactions(4, 6, seed=1)
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 6, 2))
    total = 0.0
    for row in x:
        for mask in every((0, 1), repeat=6):
            chance = np.prod([(1 - rate) if m else rate for m in mask])
            total += chance * ((row - (row * mask / (1 - rate)) @ A @ B.T) ** 2).sum()
    lam = rate / (1 - rate)
    assert total == pytest.approx(objective(x, A, B, "dropout", lam), rel=1e-12)
    # With columns of unequal length no strength of the product penalty is it, for two models at once:
    other = rng.standard_normal((2, 6, 2))
    extra = [objective(x, *m, "dropout", lam) - objective(x, *m, "product", 0.0) for m in ((A, B), other)]
    per = [objective(x, *m, "product", 1.0) - objective(x, *m, "product", 0.0) for m in ((A, B), other)]
    assert abs(extra[0] / per[0] - extra[1] / per[1]) > 0.01
    # with columns of one length it is.
    even = x / np.linalg.norm(x, axis=0)
    same = [objective(even, *m, "dropout", lam) - objective(even, *m, "product", lam) for m in ((A, B), other)]
    assert np.allclose(same, 0, atol=1e-9)


def test_named_choices_are_what_they_say():
    model = fit(X, 3, "product", lam=2.0)
    _, t, Vt = np.linalg.svd(model.scores(), full_matrices=False)
    for name, power in (("items", 0), ("balanced", 0.5), ("users", 1)):
        m = rescale(model, name)
        assert np.allclose(m.items @ m.items.T, Vt[:3].T * t[:3] ** (2 * power) @ Vt[:3], atol=1e-9)
        assert np.allclose(m.scores(), model.scores(), atol=1e-10)
        assert np.allclose(m.users, X @ m.A, atol=1e-10)
        assert m.objective == pytest.approx(model.objective, rel=1e-11)
    assert rescale(model, "identity") is model
    factors = fit(X, 3, "factors", lam=1.0)  # its own scaling is the balanced one
    assert np.allclose(cosines(rescale(factors, "balanced").items), cosines(factors.items), atol=1e-9)


@pytest.mark.theorem("GONIO.2.2")
@settings(deadline=None)
@given(seed=st.integers(0, 1000))
def test_no_rescaling_leaves_the_range_of_a_pair(seed):
    rng = np.random.default_rng(seed)
    model = fit(X, 3, "product", lam=2.0)
    a, b = (int(i) for i in rng.choice(8, 2, replace=False))
    user = int(rng.integers(0, len(X)))
    reach, beside = cosine_range(model, a, b), user_item_range(model, user, a)
    moved = rescale(model, np.exp(2 * rng.standard_normal(3)))
    c = cosines(moved.items)[a, b]
    assert reach.low - 1e-12 <= c <= reach.high + 1e-12
    p, q = moved.users[user], moved.items[a]
    assert beside.low - 1e-12 <= p @ q / np.linalg.norm(p) / np.linalg.norm(q) <= beside.high + 1e-12


def test_where_each_factor_was_penalised_a_pair_has_one_cosine():
    model = fit(X, 3, "factors", lam=1.0)
    reach = cosine_range(model, 0, 1)
    assert reach.low == reach.high == pytest.approx(cosines(model.items)[0, 1])
    assert user_item_range(model, 2, 1).low == user_item_range(model, 2, 1).high


def test_bad_rescalings_are_refused():
    model = fit(X, 3, "product", lam=2.0)
    for D, said in (
        (np.ones(2), "3 columns"),
        (np.array([1.0, -1, 1]), "positive"),
        (np.ones((3, 3)), "singular"),
        ("sideways", "choose one of"),
        (np.array([1.0, np.nan, 1]), "finite"),
    ):
        with pytest.raises(GonioError, match=said):
            rescale(model, D)
    with pytest.raises(GonioError, match="trained on the cosine"):
        rescale(fit(X, 2, link="cosine", steps=5), np.ones(2))
    with pytest.raises(GonioError, match="user 99"):
        user_item_range(model, 99, 0)
