"""Study 1: its statistics are facts of the model, its nulls are matched, and its verdict comes out both ways."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gonio
from gonio.core.head import Head
from gonio.studies.centred_logits import correlations, logit_coordinates, mean_probability
from gonio.studies.cosine_spread import cosine_spread, mean_square, whitened, without_frequency
from gonio.studies.different_from_random import STATISTICS, different_from_random, edges, p_value, statistics, verdict
from gonio.studies.label_meaning import label_meaning
from gonio.studies.random_heads import of_one_spectrum, of_one_spectrum_and_norms, spectrum_missed
from gonio.studies.study import Measured
from tests.studies.made import clustered_head, equivalent, random_head


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), link=st.sampled_from(["softmax", "sigmoid"]), bias=st.booleans())
def test_no_equivalent_form_has_other_statistics(seed, link, bias):
    head, F = random_head(60, 4, 90, seed, link, bias)
    moved, G = equivalent(head, F, seed + 1)
    a, b = (statistics(logit_coordinates(h, X)) for h, X in ((head, F), (moved, G)))
    for s in STATISTICS:
        assert a[s] == pytest.approx(b[s], rel=1e-6, abs=1e-8), s


def test_stored_cosines_move_where_the_statistics_do_not():
    head, F = random_head()
    moved, _ = equivalent(head, F, size=5)
    spread = [correlations(h.W)[np.triu_indices(len(h), 1)].std() for h in (head, moved)]
    assert abs(spread[0] - spread[1]) > 0.05


def test_statistics_against_loops_over_the_logits_themselves():
    head, F = random_head(45, 4, 300, 3)
    Z = F @ head.W.T
    Z = Z - Z.mean(axis=1, keepdims=True)
    K, C = np.cov(Z.T, bias=True), np.corrcoef(Z.T)
    found = statistics(logit_coordinates(head, F))
    off = [C[i, j] for i, j in combinations(range(45), 2)]
    assert found["spread"] == pytest.approx(np.std(off))
    best = [max(C[i, j] for j in range(45) if j != i) for i in range(45)]
    assert found["nearest"] == pytest.approx(np.mean(best))
    rival = [max(K[i, j] for j in range(45) if j != i) for i in range(45)]
    assert found["own way"] == np.mean([K[i, i] > r for i, r in enumerate(rival)])
    assert found["margin"] == pytest.approx(np.mean([(K[i, i] - r) / K[i, i] for i, r in enumerate(rival)]))
    count = np.zeros(45)
    for i in range(45):
        for j in sorted((j for j in range(45) if j != i), key=lambda j: -C[i, j])[:10]:
            count[j] += 1
    assert found["hubs"] == pytest.approx(np.mean((count - count.mean()) ** 3) / count.std() ** 3)


def test_edges_of_the_hull_are_the_pairs_that_can_tie():
    points = np.random.default_rng(0).normal(size=(14, 3))
    tie = gonio.can_tie(Head(points, link="softmax"), pairs=list(combinations(range(14), 2)))
    assert edges(points) == pytest.approx(np.mean([a == "yes" for a in tie.answers]))


def test_rankings_of_a_few_labels_are_as_many_for_trained_and_random_rows():
    """Counts of feasible rankings tell nothing: general position fixes them, so no study needs to count them."""
    clustered = clustered_head(5, 3, 2)[0]
    assert gonio.rankings(clustered).count == gonio.rankings(random_head(5, 3)[0]).count == 72


@pytest.mark.parametrize("centred", [True, False])
def test_random_heads_match_spectrum_and_sizes(centred):
    A = clustered_head(200, 8)[0].W * np.linspace(0.3, 3, 200)[:, None]
    A = A - A.mean(axis=0) if centred else A
    rng = np.random.default_rng(0)
    B = of_one_spectrum(A, rng, centred=centred)
    assert np.allclose(np.linalg.svd(B, compute_uv=False), np.linalg.svd(A, compute_uv=False))
    assert np.allclose(B.sum(axis=0), 0) == centred
    C = of_one_spectrum_and_norms(A, rng, centred=centred)
    assert np.allclose(np.linalg.norm(C, axis=1), np.linalg.norm(A, axis=1))
    assert spectrum_missed(A, C) < 1e-3
    assert spectrum_missed(A, B) < 1e-9


def test_a_random_head_is_not_shown_to_differ_and_a_clustered_one_is():
    head, F = random_head(60, 5, 200)
    r = different_from_random(head, F, draws=139)
    assert r.verdict.startswith("None of 6 statistics is shown to differ")
    head, F, _ = clustered_head(70, 5, 7, 200, names=True)
    r = different_from_random(head, F, draws=139)
    assert "statistics differ from random heads" in r.verdict
    assert "nearest" in r.verdict.split("not shown")[0]
    assert r["nearest spelled alike"].value > 0.95
    assert r["nearest spelled alike, dealt freely"].high < 0.3


def test_the_verdict_is_what_the_numbers_say():
    numbers = {
        m.name: m for m in (Measured("stored cosines", 0.5), Measured("offset", 0.2), Measured("covariance", 0.05))
    }
    said = verdict({"spread": 0.004, "hubs": 0.5}, numbers)
    assert said.startswith("1 of 2 statistics differ")
    assert "not shown to differ: hubs" in said
    assert "50% is due to the offset and the covariance" in said
    none = verdict({"spread": 0.04, "hubs": 0.5}, {**numbers, "offset": Measured("offset", 0.0)}, centred=True)
    assert none.startswith("None of 2")
    assert "10%" in none


def test_the_p_value_is_even_where_there_is_nothing():
    rng = np.random.default_rng(0)
    ps = [p_value(rng.normal(), rng.normal(size=99)) for _ in range(400)]
    assert 0.02 < np.mean([p <= 0.05 for p in ps]) < 0.09


def test_parts_of_the_spread_add_up_and_an_offset_is_called_one():
    rng = np.random.default_rng(0)
    W, f = rng.normal(size=(150, 6)), rng.normal(size=150)
    plain = {m.name: m for m in cosine_spread(W, f, np.random.default_rng(1))}
    far = {m.name: m for m in cosine_spread(W + 4, f, np.random.default_rng(1))}
    for parts in (plain, far):
        total = sum(parts[k].value for k in ("offset", "covariance", "frequency", "rest"))
        assert total == pytest.approx(parts["stored cosines"].value)
    assert far["offset"].low > 0.5 > plain["offset"].high
    assert far["rest"].value == pytest.approx(plain["rest"].value, abs=1e-6)
    assert plain["rest if the rows were random"].value == pytest.approx(1 / 6)


def test_formulas_of_the_spread_against_loops():
    rng = np.random.default_rng(2)
    X, f = rng.normal(size=(20, 3)), rng.normal(size=20)
    C = correlations(X)
    pairs = list(combinations(range(20), 2))
    assert mean_square(C, np.ones((1, 20)))[0] == pytest.approx(np.mean([C[i, j] ** 2 for i, j in pairs]))
    assert np.allclose(whitened(X) @ whitened(X).T, X @ np.linalg.inv(X.T @ X) @ X.T)
    left = without_frequency(C, f)
    z = (f - f.mean()) / f.std()
    for g in (lambda i, j: z[i] + z[j], lambda i, j: abs(z[i] - z[j]), lambda i, j: z[i] * z[j]):
        assert np.corrcoef([left[p] for p in pairs], [g(*p) for p in pairs])[0, 1] == pytest.approx(0, abs=1e-9)


def test_meaning_is_seen_where_planted_and_not_where_names_are_dealt():
    head, F, _ = clustered_head(120, 6, 12, names=True)
    near = np.argsort(-(correlations(head.W) - 2 * np.eye(120)), axis=1)[:, 0]
    planted = {m.name: m for m in label_meaning(head.labels, near, mean_probability(head, F), np.random.default_rng(0))}
    dealt = tuple(np.random.default_rng(3).permutation(head.labels))
    chance = {m.name: m for m in label_meaning(dealt, near, mean_probability(head, F), np.random.default_rng(0))}
    assert planted["nearest spelled alike"].value > planted["nearest spelled alike, dealt freely"].high
    assert chance["nearest spelled alike"].value <= chance["nearest spelled alike, dealt freely"].high + 0.05
