"""The cluster simulation at the paper's size: every choice's separation, within the tolerance that seeds leave."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import GonioError
from gonio.papers import factor_text as text
from gonio.papers.factor_pictures import draw
from gonio.papers.simulated_interactions import separation, simulate
from gonio.papers.steck_figure1 import EXPECTED, TOLERANCE, figure1, raw
from tests.factors.made import cosines


@pytest.fixture(scope="module")
def full():
    return figure1()


@pytest.mark.theorem("SEK24.F1")
def test_the_choices_separate_clusters_as_expected(full):
    assert {r.name for r in full.rows} == set(EXPECTED)
    for r in full.rows:
        assert (r.same, r.different, r.auc) == pytest.approx(EXPECTED[r.name], abs=TOLERANCE), r.name
    auc = {r.name: r.auc for r in full.rows}
    others = [auc[k] for k in ("V_k (s w)^1/2", "V_k s w^1/2", "penalty on factors")]
    assert auc["V_k"] < auc["D = I"] < min(others)
    assert full.survive == 8


def test_the_simulation_is_as_described(full):
    X = full.data.X
    assert X.shape == (20_000, 1_000)
    assert set(np.unique(X.data)) == {1.0}
    assert X.nnz / X.shape[0] / X.shape[1] == pytest.approx(0.34, abs=0.02)
    assert (np.diff(full.data.cluster) >= 0).all()
    popularity = X.sum(axis=0)
    for c in range(5):
        assert (np.diff(popularity[full.data.cluster == c]) <= 0).all()
    assert full.singular[:2] == pytest.approx([2199, 534], rel=0.02)


def test_a_seed_gives_the_same_data_and_another_gives_other_data():
    a, b, c = simulate(50, 20, seed=1), simulate(50, 20, seed=1), simulate(50, 20, seed=2)
    assert (a.X != b.X).nnz == 0
    assert a.X.nnz != c.X.nnz
    assert len(repr(a).splitlines()) == 2


def test_separation_is_the_chance_that_a_pair_of_one_cluster_is_more_alike():
    rng = np.random.default_rng(0)
    V, cluster = rng.integers(-1, 2, (12, 2)) + 0.5, np.repeat([0, 1, 2], 4)
    C = np.round(cosines(V), 12)
    same, other = [], []
    for i in range(12):
        for j in range(i):
            (same if cluster[i] == cluster[j] else other).append(C[i, j])
    wins = np.mean([(a > b) + 0.5 * (a == b) for a in same for b in other])
    r = separation("x", V, cluster)
    assert (r.same, r.different, r.auc) == pytest.approx((np.mean(same), np.mean(other), wins))
    with pytest.raises(GonioError, match="one cluster"):
        separation("x", V, np.zeros(12, int))


def test_raw_columns_have_their_own_cosines():
    X = simulate(60, 15, seed=3).X
    X = X[:, np.flatnonzero(X.sum(axis=0))]
    assert np.allclose(cosines(raw(X)), cosines(X.toarray().T), atol=1e-9)


def test_the_panels_are_drawn(full, tmp_path):
    path = draw(full, tmp_path / "panels.png")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert path.stat().st_size > 50_000
    with pytest.raises(GonioError, match=r"choose \.png"):
        draw(full, tmp_path / "panels.txt")
    with pytest.raises(GonioError, match="does not exist"):
        draw(full, tmp_path / "none" / "panels.png")


def test_the_table_is_told(full):
    said = text.figure1(full)
    assert "8 of 50 dimensions survive" in said
    assert said.count("\n") > 10
    assert len(repr(full).splitlines()) == 2
    assert full.to_dict()["rows"][0]["name"] == "V_k"


@pytest.mark.parametrize("kwargs", [{"users": 0}, {"items": 1}, {"clusters": 0}, {"users": 2.5}, {"items": True}])
def test_sizes_must_be_whole_numbers(kwargs):
    with pytest.raises(GonioError, match="whole number"):
        simulate(**({"users": 10, "items": 5} | kwargs))
