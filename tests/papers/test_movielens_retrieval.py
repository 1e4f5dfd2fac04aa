"""MovieLens with the last film of every user held out: every measure and remedy looks for it."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main
from gonio.papers.movielens import read
from gonio.papers.movielens_retrieval import last_films, leave_last_out
from tests.real import wheel


@pytest.fixture(scope="module")
def data():
    return read(wheel("recbole"))


def test_the_last_film_of_a_user_is_held_out_and_nothing_else(data):
    held = last_films(data)
    assert held.X.nnz == 100_000 - 943
    assert not held.seen[np.arange(943), held.last].any()
    assert held.seen[np.arange(943), held.before].all()
    users, films = data.order
    assert (np.diff(users) >= 0).all()
    assert films[users == 0][-1] == held.last[0]


@pytest.mark.slow
def test_what_finds_the_last_film_is_measured_for_both_objectives(data):
    h = leave_last_out(data)
    assert {(t.vectors, t.asks) for t in h.tables} == {
        ("penalty on the product", "users"),
        ("penalty on the product", "films"),
        ("penalty on each factor", "users"),
        ("penalty on each factor", "films"),
        ("projected back", "films"),
    }
    assert h.table("penalty on each factor", "users").row("cosine").verdict == "worse"
    assert h.table("penalty on the product", "films").row("dot").verdict == "better"
    for t in h.tables:
        for r in t.rows:
            assert r.ndcg.low <= r.ndcg.value <= r.ndcg.high
            assert r.ndcg.value <= r.recall.value  # with one relevant film nDCG is at most recall
    answers = {r.name: r for r in h.answers}
    assert answers["V_k"].ndcg.value < answers["D = I"].ndcg.value < answers["projected back"].ndcg.value
    assert answers["projected back"].verdict == "better"
    assert len(h.to_dict()["tables"]) == 5
    assert len(repr(h).splitlines()) == 2


@pytest.mark.slow
def test_ndcg_of_users_by_dot_product_is_that_of_a_plain_loop(data):
    from gonio.factors.fitting import fit

    held = last_films(data)
    with pytest.warns(UserWarning, match="item"):
        m = fit(held.X, 20, "product", lam=400.0)
    total = 0.0
    for u, film in enumerate(held.last):
        scores = m.items @ m.users[u]
        scores[held.seen[u] | ~m.items.any(axis=1)] = -np.inf
        rank = int((scores > scores[film]).sum())
        total += 1 / np.log2(rank + 2) if rank < 10 and np.isfinite(scores[film]) else 0
    found = leave_last_out(data, 20).table("penalty on the product", "users").row("dot")
    assert found.ndcg.value == pytest.approx(total / 943, abs=2e-4)


@pytest.mark.slow
def test_the_command_prints_the_tables():
    done = CliRunner().invoke(main, ["factors", "movielens", str(wheel("recbole")), "--leave-last-out", "--rank", "20"])
    assert done.exit_code == 0, done.output
    assert "cosines of each answer; films ask" in done.output
    assert "worse" in done.output
