"""The three experiments and the restarts, on a small simulation."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import GonioError
from gonio.factors import fit, rescale
from gonio.papers import factor_text as text
from gonio.papers.factor_comparison import compare
from gonio.papers.factor_experiments import dropout_against_decay, projecting, rescaling, restarts
from gonio.papers.simulated_interactions import simulate
from tests.factors.made import cosines

X = simulate(1500, 120, seed=0).X


def test_dropout_and_weight_decay_agree_in_scores_and_not_in_cosines():
    e = dropout_against_decay(X, rank=8)
    decay = e.rows[0]
    assert decay.scores > 0.98
    assert decay.cosine_moves > 0.1
    again = e.rows[2:]
    assert all(r.score_change < 1e-10 and r.objective_change == pytest.approx(0, abs=1e-10) for r in again)
    assert max(r.cosine_moves for r in again) > 0.1
    assert "weight decay" in text.experiment(e)


def test_both_are_compared_at_the_same_residual():
    e = dropout_against_decay(X, rank=8, rate=0.3)
    wanted = fit(X, 8, "dropout", rate=0.3).residual
    for row, penalty in zip(e.rows, ("factors", "product"), strict=False):
        lam = float(row.name.split("lam ")[1])
        assert fit(X, 8, penalty, lam=lam).residual == pytest.approx(wanted, rel=1e-3)


def test_the_objective_does_not_notice_a_rescaling_that_moves_cosines():
    e = rescaling(X, rank=8, lam_product=500.0, lam_factors=20.0)
    (_, product), (_, factors) = e.groups
    for r in product:
        assert abs(r.objective_change) < 1e-10
        assert r.score_change < 1e-10
        assert r.cosine_moves > 0.02
    for r in factors:
        assert r.score_change < 1e-10
        if r.name == "balanced":  # its own scaling
            assert abs(r.objective_change) < 1e-10
        else:
            assert r.objective_change > 1e-3
    assert "objective" in text.experiment(e)
    assert e.to_dict()["groups"][0]["rows"][0]["name"] == "items orthonormal"


def test_projecting_back_is_the_same_for_every_rescaling():
    e = projecting(X, rank=8, lam=500.0)
    assert max(r.projected_moves for r in e.rows) < 1e-10
    assert min(r.projected_lists for r in e.rows) > 0.999
    assert max(r.cosine_moves for r in e.rows) > 0.1
    assert len(repr(e).splitlines()) == 2


def test_restarts_are_refused_where_one_dimension_survives():
    with pytest.raises(GonioError, match="1 of 3 dimensions survive"):
        restarts(X, 3, lam_product=500.0, lam_factors=80.0, starts=1)


def test_restarts_differ_where_theory_says():
    e = restarts(X, 3, lam_product=500.0, lam_factors=20.0, starts=2)
    for title, rows in e.groups:
        for r in rows:
            assert abs(r.objective_change) < 1e-8, title
            assert r.score_change < 1e-3
            assert r.projected_moves < 1e-3
            assert (r.cosine_moves < 1e-3) == title.startswith("penalty on each factor")


def test_a_comparison_is_that_of_the_score_matrices():
    a, b = fit(X, 4, "product", lam=500.0), fit(X, 4, "factors", lam=30.0)
    r = compare("b", a, b)
    S, T = a.scores(), b.scores()
    assert r.scores == pytest.approx(np.corrcoef(S.ravel(), T.ravel())[0, 1], rel=1e-9)
    assert r.score_change == pytest.approx(np.linalg.norm(S - T) / np.linalg.norm(S), rel=1e-9)
    off = ~np.eye(120, dtype=bool)
    assert r.cosine_moves == pytest.approx(np.abs(cosines(a.items) - cosines(b.items))[off].mean(), rel=0.02)
    assert np.isnan(r.objective_change)
    same = compare("a", a, rescale(a, np.array([1.0, 2, 3, 4])))
    assert same.score_change < 1e-13
    with pytest.raises(GonioError, match="same users and items"):
        compare("c", a, fit(X[:100], 4, "product", lam=500.0))
