"""The closed forms against optimisation from many starts, and against the formulas written again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gonio import GonioError
from gonio.factors import fit
from gonio.factors.interactions import Interactions
from gonio.factors.ridge import Ridge
from gonio.factors.spectrum import spectrum
from tests.factors.made import best_of, gradient, interactions, objective

X = interactions()


def both(penalty, lam, k=3, x=X):
    model = fit(x, k, penalty, lam=lam)
    return model, objective(x, model.A, model.items, penalty, lam)


@pytest.mark.theorem("SEK24.E1")
@pytest.mark.parametrize("lam", [0.5, 5.0, 60.0])
def test_the_closed_form_of_the_product_penalty_is_the_best_of_many_starts(lam):
    model, value = both("product", lam)
    assert model.objective == pytest.approx(value, rel=1e-12)
    assert max(np.abs(g).max() for g in gradient(X, model.A, model.items, "product", lam)) < 1e-10
    runs = best_of(X, 3, "product", lam, starts=8)
    assert runs[0][0] == pytest.approx(value, rel=1e-9)
    assert value <= runs[0][0] * (1 + 1e-12)


@pytest.mark.theorem("SEK24.E2")
@pytest.mark.parametrize("lam", [0.5, 2.0, 4.0])
def test_the_closed_form_of_the_factor_penalty_is_the_best_of_many_starts(lam):
    model, value = both("factors", lam)
    assert model.objective == pytest.approx(value, rel=1e-12)
    assert max(np.abs(g).max() for g in gradient(X, model.A, model.items, "factors", lam)) < 1e-10
    runs = best_of(X, 3, "factors", lam, starts=8)
    assert runs[0][0] == pytest.approx(value, rel=1e-9)
    assert value <= runs[0][0] * (1 + 1e-12)


@pytest.mark.theorem("GONIO.dropout")
@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_the_closed_form_of_dropout_is_the_best_of_many_starts_and_beats_the_product_form(rate):
    lam = rate / (1 - rate)
    model = fit(X, 3, "dropout", rate=rate)
    value = objective(X, model.A, model.items, "dropout", lam)
    assert model.objective == pytest.approx(value, rel=1e-12)
    runs = best_of(X, 3, "dropout", lam, starts=8)
    assert runs[0][0] == pytest.approx(value, rel=1e-9)
    assert value <= runs[0][0] * (1 + 1e-12)
    # The other closed form, at its best strength, is worse: dropout is not that penalty.
    others = [fit(X, 3, "product", lam=x) for x in np.geomspace(0.01, 100, 60)]
    assert min(objective(X, m.A, m.items, "dropout", lam) for m in others) > value * 1.0001


def test_the_formulas_written_again():
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    k, lam = 4, 3.0
    w = np.diag([1 / (1 + lam / x**2) for x in s[:k]])
    product = fit(X, k, "product", lam=lam)
    assert np.allclose(product.A @ product.items.T, Vt[:k].T @ w @ Vt[:k], atol=1e-12)
    assert np.array_equal(product.A, product.items)
    a = np.diag([np.sqrt(max(0, 1 - lam / x) / x) for x in s[:k]])
    b = np.diag([np.sqrt(max(0, 1 - lam / x) * x) for x in s[:k]])
    factors = fit(X, k, "factors", lam=lam)
    assert np.allclose(factors.A @ factors.items.T, Vt[:k].T @ a @ b @ Vt[:k], atol=1e-12)
    assert np.allclose(factors.items @ factors.items.T, Vt[:k].T @ b @ b @ Vt[:k], atol=1e-11)
    # dropout: C'C = X'X + Lam, A B' = C^-1 [C^-T X'X]_k
    G = X.T @ X
    c = 0.25 / 0.75
    C = np.linalg.cholesky(G + c * np.diag(np.diag(G))).T
    u, t, v = np.linalg.svd(np.linalg.inv(C).T @ G)
    wanted = np.linalg.inv(C) @ (u[:, :k] * t[:k]) @ v[:k]
    dropout = fit(X, k, "dropout", rate=0.25)
    assert np.allclose(dropout.A @ dropout.items.T, wanted, atol=1e-11)
    for m in (product, factors, dropout):
        assert np.allclose(m.users, X @ m.A, atol=1e-12)
        assert np.allclose(m.scores(), X @ m.A @ m.items.T, atol=1e-11)
        assert m.residual == pytest.approx(((X - X @ m.A @ m.items.T) ** 2).sum(), rel=1e-11)
        assert np.allclose(m.embed(X[:3]), m.users[:3], atol=1e-12)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_every_way_to_the_singular_vectors_agrees(shape, make, monkeypatch):
    x = interactions(*shape, seed=3)
    table = Interactions(make(x))
    _, s, Vt = np.linalg.svd(x, full_matrices=False)
    seen = {}
    for way in ("gram of items", "gram of users", "lanczos"):
        monkeypatch.setattr("gonio.factors.spectrum.choose", lambda *_, way=way: way)
        f = seen[way] = spectrum(table, 4)
        assert np.allclose(f.s, s[:4], rtol=1e-12)
        assert np.allclose(f.V @ f.V.T, Vt[:4].T @ Vt[:4], atol=1e-9)
        assert np.allclose(f.XV, x @ f.V, atol=1e-12)
    assert np.allclose(seen["lanczos"].V, seen["gram of items"].V, atol=1e-8)  # signs too


@pytest.mark.parametrize(("shape", "rate"), [((300, 120), 0.4), ((300, 120), 0.9), ((90, 160), 0.2)])
def test_items_too_many_for_a_square_matrix_are_iterated_to_the_same_dropout(shape, rate, monkeypatch):
    x = interactions(*shape, seed=5)
    x[:, 7] = 0  # an item that nobody took
    with pytest.warns(UserWarning, match="no interaction"):
        wanted = fit(sparse.csr_array(x), 4, "dropout", rate=rate)
    monkeypatch.setattr("gonio.factors.ridge.DENSE", 10)
    with pytest.warns(UserWarning, match="no interaction"):
        again = fit(sparse.csr_array(x), 4, "dropout", rate=rate)
    assert "LOBPCG" in again.how
    assert again.objective == pytest.approx(wanted.objective, rel=1e-13)
    assert np.allclose(again.A @ again.items.T, wanted.A @ wanted.items.T, atol=1e-7)


def test_iterated_dropout_of_a_table_of_low_rank_has_that_rank(monkeypatch):
    rng = np.random.default_rng(1)
    x = rng.random((80, 2)) @ rng.random((2, 70))
    monkeypatch.setattr("gonio.factors.ridge.DENSE", 10)
    model = fit(x, 4, "dropout", rate=0.5)
    assert np.linalg.matrix_rank(model.scores(), tol=1e-6) == 2
    G = x.T @ x
    S = G + np.diag(np.diag(G))
    assert np.allclose(x @ np.linalg.solve(S, G), x @ np.linalg.pinv(S) @ G)
    best = np.linalg.eigvalsh(G @ np.linalg.solve(S, G))[-4:].sum()
    assert model.objective == pytest.approx((x**2).sum() - best, rel=1e-9)


def test_alternating_with_too_many_items_for_a_square_matrix_solves_by_conjugate_gradients(monkeypatch):
    x = sparse.csr_array(interactions(60, 25, seed=5))
    wanted = fit(x, 4, "dropout", rate=0.4, by="als", seed=2)
    monkeypatch.setattr(Ridge, "small", property(lambda self: False))
    again = fit(x, 4, "dropout", rate=0.4, by="als", seed=2)
    assert np.allclose(again.A @ again.items.T, wanted.A @ wanted.items.T, atol=1e-8)


def test_iteration_that_stops_short_says_so(monkeypatch):
    monkeypatch.setattr("gonio.factors.ridge.DENSE", 10)
    monkeypatch.setattr("gonio.factors.pencil.STEPS", 1)
    with pytest.warns(UserWarning, match="after 1 steps"):
        fit(interactions(300, 120, seed=5), 4, "dropout", rate=0.1)


@pytest.mark.parametrize("penalty", ["product", "factors", "dropout"])
def test_alternating_least_squares_reaches_the_closed_form(penalty):
    lam = {"product": 5.0, "factors": 1.0, "dropout": 0.5}[penalty]
    closed = fit(X, 3, penalty, lam=lam)
    for seed in range(3):
        again = fit(X, 3, penalty, lam=lam, by="als", seed=seed, steps=3000, tolerance=1e-15)
        assert again.objective == pytest.approx(closed.objective, rel=1e-10)
        assert again.objective == pytest.approx(objective(X, again.A, again.items, penalty, lam), rel=1e-11)
        assert np.allclose(again.scores(), closed.scores(), atol=1e-4)


def test_rank_beyond_that_of_the_data_leaves_zero_columns():
    x = np.outer([1.0, 1, 2, 1], [1.0, 3, 1])
    for penalty in ("product", "factors", "dropout"):
        m = fit(x, 3, penalty, lam=0.5)
        assert m.survive.tolist() == [0], penalty
        assert not m.items[:, 1:].any()
        assert np.isfinite(m.objective)
    m = fit(np.tile([[1.0, 1, 1]], (4, 1)), 2, "product", lam=0.0)
    assert m.residual == pytest.approx(0, abs=1e-12)
    assert len(m.survive) == 1


def test_a_penalty_of_zero_on_each_factor_leaves_everything_open():
    assert fit(X, 2, "factors", lam=0.0).trained == "product"
    assert fit(X, 2, "factors", lam=0.1).trained == "factors"
    assert fit(X, 2, "dropout", rate=0.5).trained == "product"
    assert fit(X, 2, "product", lam=1.0).head().trained == "product"


def test_a_model_is_read_only_and_tells_itself():
    m = fit(X, 2, "product", lam=1.0)
    with pytest.raises(ValueError, match="read-only"):
        m.items[0, 0] = 1
    assert len(repr(m).splitlines()) == 2
    said = m.to_dict()
    assert said["trained"] == "product"
    assert 0 < said["explained"] < 1
    head = m.head()
    assert np.allclose(head.logits(m.users), m.scores())
    with pytest.raises(GonioError, match="8 items"):
        m.embed(X[:, :3])
