"""The remedies the paper names, as item vectors on the same table."""

from __future__ import annotations

import numpy as np
import pytest

from gonio.factors import fit
from gonio.factors.remedies import Standardise
from gonio.papers import factor_text as text
from gonio.papers.factor_remedies import BEFORE, remedied
from gonio.papers.movielens import genre_agreement, read
from gonio.papers.simulated_interactions import simulate
from gonio.papers.steck_figure1 import figure1
from tests.factors.made import cosines
from tests.real import wheel

DATA = simulate(400, 60, seed=2)


@pytest.fixture(scope="module")
def vectors():
    return remedied(DATA.X, 6, 30.0, steps=40)


def test_every_remedy_gives_one_vector_an_item(vectors):
    assert set(vectors) == {
        "trained on the cosine",
        *(f"{name}, {how}" for name in BEFORE for how in ("as fitted", "projected back")),
    }
    assert all(V.shape == (60, 6) and np.isfinite(V).all() for V in vectors.values())


def test_the_cosine_is_trained_on_rows_of_length_one(vectors):
    assert np.allclose(np.linalg.norm(vectors["trained on the cosine"], axis=1), 1)


def test_a_changed_table_gets_its_strength_in_proportion(vectors):
    x = DATA.X.toarray().astype(np.float64)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    model = fit(z, 6, "product", lam=30.0 * (z**2).sum() / (x**2).sum(), signed=True)
    assert np.allclose(cosines(vectors["standardised, as fitted"]), cosines(model.items), atol=1e-7)
    scores = z @ model.A @ model.items.T
    assert np.allclose(cosines(vectors["standardised, projected back"]), cosines(scores.T), atol=1e-7)
    assert str(BEFORE["standardised"]) == str(Standardise())


def test_the_remedies_stand_beside_the_plain_choices():
    f = figure1(400, 60, rank=6, lam_product=30.0, lam_factors=5.0, seed=2, remedies=True)
    assert len(f.rows) == 14
    lines = [line for r in f.rows for line in text.figure1(f).splitlines() if line.startswith(f"  {r.name}  ")]
    assert len(lines) == 14
    assert len({len(line) for line in lines}) == 1


def test_sampled_negatives_find_most_genres_on_movielens_and_the_trained_cosine_fewest():
    g = genre_agreement(read(wheel("recbole")), remedies=True)
    best, worst = g.row("negative sampling, as fitted"), g.row("trained on the cosine")
    assert best.share > g.row("projected back").share
    assert worst.share < g.row("V_k").share - 2 * worst.error
