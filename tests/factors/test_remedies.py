"""What may be done before or during fitting: each against its formula written again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gonio import GonioError
from gonio.factors import NegativeSampling, Propensity, Standardise, fit
from gonio.factors.interactions import Interactions
from gonio.factors.item_cosine import evaluate
from tests.factors.made import cosines, interactions

X = interactions(50, 9, seed=6)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("centre", [True, False])
def test_standardised_columns_without_making_them_dense(make, centre):
    Z = (X - X.mean(axis=0)) / X.std(axis=0) if centre else X / np.sqrt((X**2).mean(axis=0))
    for penalty, strength in (("product", {"lam": 4.0}), ("factors", {"lam": 2.0}), ("dropout", {"rate": 0.3})):
        found = fit(make(X), 3, penalty, remedy=Standardise(centre=centre), **strength)
        wanted = fit(Z, 3, penalty, signed=True, **strength)
        assert np.allclose(found.scores(), wanted.scores(), atol=1e-9)
        assert found.objective == pytest.approx(wanted.objective, rel=1e-10)
    # all columns have one length now, so dropout is the product penalty
    drop = fit(make(X), 3, "dropout", rate=0.3, remedy=Standardise(centre=centre))
    same = fit(make(X), 3, "product", lam=0.3 / 0.7 * len(X), remedy=Standardise(centre=centre))
    assert np.allclose(drop.scores(), same.scores(), atol=1e-8)


def test_columns_without_variance_become_zero():
    x = np.column_stack([X, np.ones(50)])
    m = fit(x, 3, "product", lam=1.0, remedy=Standardise())
    assert np.allclose(m.items[-1], 0)
    with pytest.raises(GonioError, match="no column of X varies"):
        fit(np.ones((4, 3)), 1, "product", lam=1.0, remedy=Standardise())


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_inverse_propensity_scales_the_columns(make):
    counts = X.sum(axis=0)
    theta = np.sqrt(counts / counts.max())
    assert np.allclose(Propensity().propensities(counts), theta)
    found = fit(make(X), 3, "product", lam=2.0, remedy=Propensity())
    assert np.allclose(found.scores(), fit(X / theta, 3, "product", lam=2.0).scores(), atol=1e-10)
    # the weighted estimate of the loss differs from ||x/theta - score||^2 by what no model changes
    S = np.random.default_rng(0).random(X.shape)
    weighted = (X / theta * (1 - S) ** 2 + (1 - X / theta) * S**2).sum()
    other = (X / theta * 1 + 0 * S).sum()
    assert weighted - other == pytest.approx(((X / theta - S) ** 2 - (X / theta) ** 2).sum())


@pytest.mark.parametrize("make", [np.asarray, sparse.coo_array])
def test_sampled_negatives_have_the_logistic_optimum_as_their_table(make):
    counts = X.sum(axis=0)
    q = counts**0.75 / (counts**0.75).sum()
    remedy = NegativeSampling(1, 0.75)
    assert np.allclose(remedy.probabilities(counts), q)
    table = remedy.apply(Interactions(make(X)))
    dense = table.table.toarray() if table.sparse else table.table
    # one score s_ui for each pair: minimise -x log sigma(s) - count r_u q_i log sigma(-s) by a fine search
    u, i = np.argwhere(dense > 0)[3]
    grid = np.linspace(-6, 6, 240_001)
    rate = X[u].sum() * q[i]
    loss = X[u, i] * np.log1p(np.exp(-grid)) + rate * np.log1p(np.exp(grid))
    assert dense[u, i] == pytest.approx(grid[loss.argmin()], abs=1e-4)
    assert (dense >= 0).all()
    assert not dense[X == 0].any()
    model = fit(make(X), 2, "product", lam=0.1, remedy=remedy)
    assert np.allclose(model.scores(), fit(dense, 2, "product", lam=0.1).scores(), atol=1e-9)
    with pytest.raises(GonioError, match="take fewer"):
        fit(X, 2, "product", lam=0.1, remedy=NegativeSampling(1e9))


def test_the_users_own_table_is_left_as_it_is():
    x = sparse.csr_array(X)
    before = x.data.copy()
    for remedy in (Standardise(), Propensity(), NegativeSampling(1), None):
        fit(x, 2, "product", lam=1.0, remedy=remedy)
    assert np.array_equal(x.data, before)


def test_the_gradient_of_training_on_the_cosine():
    table = Interactions(X)
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 9, 3))
    value, gradient, c = evaluate(table, A, B)
    P, Q = X @ A, B
    P, Q = (M / np.linalg.norm(M, axis=1, keepdims=True) for M in (P, Q))
    assert value == pytest.approx(((X - c * P @ Q.T) ** 2).sum(), rel=1e-12)
    x, step = np.concatenate([A.ravel(), B.ravel()]), 1e-6
    for k in range(0, len(x), 5):
        e = np.zeros(len(x))
        e[k] = step
        up, down = (evaluate(table, *(x + s * e).reshape(2, 9, 3))[0] for s in (1, -1))
        assert gradient[k] == pytest.approx((up - down) / (2 * step), abs=1e-5)


def test_training_on_the_cosine_leaves_only_rotations():
    m = fit(X, 3, link="cosine", steps=400)
    assert np.allclose(np.linalg.norm(m.items, axis=1), 1)
    assert np.allclose(np.linalg.norm(m.users, axis=1), 1)
    assert m.objective == pytest.approx(((X - m.scores()) ** 2).sum(), rel=1e-10)
    start = fit(X, 3, "factors", lam=0.0)
    after = cosine_objective(start.users, start.items)
    assert m.objective < after  # better than normalising what was trained otherwise
    rng = np.random.default_rng(0)
    for _ in range(10):  # a rescaling of the learnt vectors is a worse model
        d = np.exp(0.3 * rng.standard_normal(3))
        assert cosine_objective(m.users * d, m.items / d) > m.objective * (1 + 1e-6)
        Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        assert cosine_objective(m.users @ Q, m.items @ Q) == pytest.approx(m.objective, rel=1e-9)
    assert m.head().link == "cosine"
    assert m.gauge.predictions == "cosines"
    again = fit(X, 3, link="cosine", steps=400, seed=5)
    assert np.abs(cosines(m.items) - cosines(again.items)).mean() < 0.02
    assert np.allclose(m.embed(X[:4]), m.users[:4], atol=1e-9)


def cosine_objective(P, B):
    P, B = (M / np.linalg.norm(M, axis=1, keepdims=True) for M in (P, B))
    S = P @ B.T
    c = (X * S).sum() / (S**2).sum()
    return ((X - c * S) ** 2).sum()


def test_bad_remedies_are_refused():
    with pytest.raises(GonioError, match="floor"):
        Propensity(floor=0)
    with pytest.raises(GonioError, match="count"):
        NegativeSampling(0)
    with pytest.raises(GonioError, match="no penalty"):
        fit(X, 2, link="cosine", lam=1.0)
    m = fit(X, 2, "product", lam=1.0, remedy=Propensity())
    with pytest.raises(GonioError, match="remedy"):
        m.embed(X)
