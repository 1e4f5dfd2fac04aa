"""Which pairs can share the top: against one linear programme a pair, and cases one can see."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.core.inputs import AllInputs, Box, Nonnegative
from gonio.core.status import NEVER, UNDECIDED, WINS
from gonio.search.tie_search import propose_ties
from tests.ask.made import awkward, kinds_of_inputs, realistic
from tests.search.lp import best
from tests.search.test_propose import assert_in_set


def assert_ties_hold(p, found):
    V = p.V.astype(np.float64)
    for k, (a, b) in enumerate(found.pairs):
        if found.status[k] == WINS:
            z = found.direction(k)
            assert_in_set(p, z)
            s = V @ z + p.c
            size = (np.abs(V[[a, b]]) @ np.abs(z) + np.abs(p.c[[a, b]])).max()
            assert abs(s[a] - s[b]) <= 1e-11 * size
            assert min(s[a], s[b]) > np.delete(s, [a, b]).max(initial=-np.inf)
        if found.status[k] == NEVER:
            rivals, weights, (la, lb) = found.support(k)
            assert la + lb == pytest.approx(1)
            if not len(rivals):
                reach = p.radius if p.low is None else np.abs([p.low, p.high]).max()  # of a coordinate of z
                far = reach is not None and np.abs(V[a] - V[b]).sum() * reach < abs(p.c[a] - p.c[b])
                assert (V[a] == V[b]).all() or far
                continue
            assert not {int(a), int(b)} & set(rivals.tolist())
            assert (weights > 0).all()
            assert abs(weights.sum() - 1) < 1e-12
            if p.shape == "space":
                size = (abs(la) + abs(lb)) * np.abs(V).max()
                assert np.abs(weights @ V[rivals] - la * V[a] - lb * V[b]).max() <= 1e-8 * (size or 1)
                high = (abs(la) + abs(lb)) * np.abs(p.c).max()
                assert weights @ p.c[rivals] - la * p.c[a] - lb * p.c[b] >= -1e-8 * high


@pytest.mark.parametrize("part", range(2))
def test_pairs_of_small_awkward_heads_agree_with_one_lp_a_pair(part):
    late = 0
    for seed in range(60 * part, 60 * part + 60):
        rng = np.random.default_rng(1000 + seed)
        W, b = awkward(rng)
        if len(W) < 3:
            continue
        inputs = kinds_of_inputs(W.shape[1], rng)[seed % 8 if seed % 2 else 0]
        p = inputs.reduce(W, b)
        pairs = np.array([rng.choice(len(W), 2, replace=False) for _ in range(10)])
        found = propose_ties(p, pairs)
        assert_ties_hold(p, found)
        for k, (i, j) in enumerate(pairs):
            most, said = best(p, (i, j)), found.status[k]
            assert said != NEVER or most < 1e-7, (seed, k, str(inputs), most)
            assert said != WINS or most > 1e-12, (seed, k, str(inputs), most)
            late += said == UNDECIDED and most > 1e-6
    assert late <= 25  # shaped sets: not always natural


def test_the_edges_of_a_square_tie_and_its_diagonals_do_not():
    W = np.array([[1.0, 1], [1, -1], [-1, -1], [-1, 1.0]])
    found = propose_ties(AllInputs().reduce(W), [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2], [1, 3]])
    assert found.status[:4].tolist() == [WINS] * 4
    assert (found.status[4:] != WINS).all()
    wide = np.array([[1.0, 0], [-1, 0], [0, 2.0], [0, -2]])
    found = propose_ties(AllInputs().reduce(wide), [[0, 1], [0, 2]])
    assert found.status.tolist() == [NEVER, WINS] or found.status[1] == WINS


def test_twins_tie_where_they_win_and_a_third_of_them_spoils_it():
    W = np.array([[1.0, 0], [1, 0], [0, 1], [-1, -1], [0, 1], [0, 1]])
    found = propose_ties(AllInputs().reduce(W), [[0, 1], [2, 4], [0, 3]])
    assert found.status[:2].tolist() == [WINS, NEVER]
    assert found.status[2] == NEVER  # 1 is as high as 0 everywhere


def test_rows_that_differ_by_their_bias_only_never_tie():
    W = np.array([[1.0, 0], [1, 0], [0, 1], [-1, -1]])
    found = propose_ties(AllInputs().reduce(W, np.array([0.0, 1, 0, 0])), [[0, 1]])
    assert found.status.tolist() == [NEVER]
    assert len(found.support(0)[0]) == 0


def test_neighbours_in_a_wide_head_tie_almost_always():
    W, _ = realistic(3000, 96, seed=1)
    rng = np.random.default_rng(0)
    b = rng.standard_normal(3000)
    pairs = np.array([rng.choice(3000, 2, replace=False) for _ in range(200)])
    for p in (AllInputs().reduce(W), AllInputs().reduce(W, b)):
        found = propose_ties(p, pairs)
        assert (found.status == WINS).mean() > 0.9
        assert (found.status == UNDECIDED).sum() == 0
        assert_ties_hold(p, found)


def test_ties_over_shaped_inputs_lie_in_them():
    W, _ = realistic(300, 12, seed=2)
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(300, 2, replace=False) for _ in range(60)])
    for inputs in (Nonnegative(), Box(-1, 1)):
        p = inputs.reduce(W)
        found = propose_ties(p, pairs)
        assert (found.status == WINS).any()
        assert_ties_hold(p, found)


def test_a_pair_of_one_label_is_refused():
    with pytest.raises(gonio.GonioError, match="two different labels"):
        propose_ties(AllInputs().reduce(np.eye(3)), [[1, 1]])
