"""Numbers that papers print or that follow from their formulas by hand, and the flaws of formulas as printed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from gonio import GonioError, Head
from gonio.similarity import (
    csls,
    measure,
    migrate_threshold,
    null,
    score_to_percentile,
    soft_cosine,
    word_rotators_distance,
    word_rotators_distances,
)
from gonio.similarity.logits import complete
from gonio.similarity.rotator import transport


def test_scaled_sim_is_unbounded_and_does_not_see_signs():
    x = np.array([0.6, 0.8])
    m = measure("SCALED_SIM")(Head([x, x, 10 * x, -100 * x], link="dot"))
    assert m.pairs([0, 0, 0], [1, 2, 3]).tolist() == pytest.approx([1.5, 6, 50])
    assert "without bound" in m.caveat


def test_wrd_as_printed_is_asymmetric_and_negative_and_repaired_is_not():
    x = np.array([0.6, 0.8])
    head = Head([x, 10 * x], link="dot")
    m = measure("WRD as printed")(head)
    assert (m(0, 1), m(1, 0)) == pytest.approx((-9, 9))
    assert not m.symmetric
    repaired = measure("WRD as printed")(head, repaired=True)
    assert (repaired(0, 1), repaired(1, 0)) == pytest.approx((9, 9))
    assert repaired.symmetric


def test_soft_cosine_of_different_words_is_their_similarity():
    S = [[1, 0.8], [0.8, 1]]
    assert soft_cosine([[1, 0]], [[0, 1]], S)[0] == pytest.approx(0.8)
    assert np.isnan(soft_cosine([[0, 0]], [[0, 1]], S)[0])
    W = np.random.default_rng(0).standard_normal((6, 3))
    m, plain = measure("soft cosine")(Head(W, link="dot"), features=np.eye(3)), measure("cosine")(Head(W, link="dot"))
    assert m(1, 2) == pytest.approx(plain(1, 2))
    with pytest.raises(GonioError, match="one shape"):
        soft_cosine([[1, 0]], [[1, 0], [0, 1]], S)
    with pytest.raises(GonioError, match="positive semidefinite"):
        soft_cosine([[1, -1]], [[1, 0]], [[1, 3], [3, 1]])


def test_word_rotators_distance_of_one_word_each_is_one_minus_cosine():
    a, b = np.array([[1.0, 2, 3]]), np.array([[-1.0, 0.5, 2]])
    cos = float(a[0] @ b[0] / np.linalg.norm(a) / np.linalg.norm(b))
    assert word_rotators_distance(a, b) == pytest.approx(1 - cos)
    assert word_rotators_distance(7 * a, b) == pytest.approx(1 - cos)


def test_word_rotators_distance_against_an_assignment_of_split_words():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 4)), rng.standard_normal((2, 4))
    x *= np.array([1, 2, 3])[:, None] / np.linalg.norm(x, axis=1, keepdims=True)
    y *= np.array([2, 4])[:, None] / np.linalg.norm(y, axis=1, keepdims=True)
    # Weights 1/6, 2/6, 3/6 and 2/6, 4/6: split every word into sixths, then moving words is an assignment.
    u = np.repeat(x / np.linalg.norm(x, axis=1, keepdims=True), [1, 2, 3], axis=0)
    v = np.repeat(y / np.linalg.norm(y, axis=1, keepdims=True), [2, 4], axis=0)
    cost = 1 - u @ v.T
    rows, columns = linear_sum_assignment(cost)
    assert word_rotators_distance(x, y) == pytest.approx(cost[rows, columns].mean())
    assert word_rotators_distances([x, y], [y, x]) == pytest.approx([cost[rows, columns].mean()] * 2)
    assert word_rotators_distance(x, x[::-1]) == pytest.approx(0, abs=1e-12)
    assert np.isnan(word_rotators_distance(0 * x, y))
    assert word_rotators_distance(np.vstack([x, np.zeros(4)]), y) == pytest.approx(word_rotators_distance(x, y))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: word_rotators_distance([[1, 2]], [[1, 2, 3]]), "one width"),
        (lambda: word_rotators_distance([1, 2], [[1, 2]]), "two axes"),
        (lambda: word_rotators_distances([[[1.0]]], []), "as many"),
        (lambda: transport(np.ones((2, 2)), np.array([1.0, 1]), np.array([0.5, 0.1])), "both must sum to 1"),
        (lambda: csls([[1.0, 0]], [[1.0]], 1), "one width"),
        (lambda: csls(np.eye(2), np.eye(2), 3), "from 1 to 2"),
    ],
)
def test_bad_texts_get_one_sentence(ask, said):
    with pytest.raises(GonioError, match=said):
        ask()


def test_csls_of_two_sets_counts_the_other_side():
    rng = np.random.default_rng(1)
    Q, C = rng.standard_normal((8, 3)), rng.standard_normal((6, 3))
    u, v = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (Q, C))
    cos = u @ v.T
    got = csls(Q, C, 2)
    for i in range(8):
        for j in range(6):
            r_q, r_c = sorted(cos[i])[-2:], sorted(cos[:, j])[-2:]
            assert got[i, j] == pytest.approx(2 * cos[i, j] - np.mean(r_q) - np.mean(r_c))


def test_local_scaling_has_its_exponential_and_leaves_out_the_point_itself():
    head = Head([[0.0], [1], [3]], link="dot")
    m = measure("local scaling")(head, k=1, distance="euclid")
    assert m.around.tolist() == pytest.approx([1, 1, 2])  # 0 if a label were its own neighbour
    assert m(0, 2) == pytest.approx(1 - np.exp(-9 / 2))
    assert m.invariant == frozenset("TSR")
    assert measure("NICDM")(head, k=2, distance="euclid")(0, 1) == pytest.approx(1 / np.sqrt(2 * 1.5))
    same = measure("local scaling")(Head(np.ones((4, 2)), link="dot"), k=2)
    assert same(0, 1) == 0


def test_hub_corrections_bring_hubs_down():
    """300-dimensional Gaussians have hubs; every correction lowers the skew of how often a label is a neighbour."""
    from scipy.stats import skew

    head = Head(np.random.default_rng(0).standard_normal((600, 300)) + 0.15, link="cosine")

    def spread(name: str) -> float:
        return float(skew(np.bincount(measure(name)(head).nearest(10).near.ravel(), minlength=600)))

    plain = spread("Euclid")
    assert plain > 3
    assert all(spread(x) < 0.5 * plain for x in ("CSLS", "NICDM", "local scaling", "mutual proximity"))


@pytest.mark.theorem("GONIO.centred-complete")
def test_centred_logits_are_a_complete_invariant():
    """Same centred logits of full rank: the map and the translation are recovered; other logits: another model."""
    rng = np.random.default_rng(0)
    W, F = rng.standard_normal((9, 4)), rng.standard_normal((30, 4))
    M, v = np.eye(4) + 0.4 * rng.standard_normal((4, 4)), rng.standard_normal(4)
    W2, F2 = W @ M.T + v, F @ np.linalg.inv(M)
    a, b = Head(W, link="softmax"), Head(W2, link="softmax")
    assert np.allclose(a.probabilities(F), b.probabilities(F2))
    assert complete(a, F, b, F2).same
    found = np.linalg.lstsq(W - W.mean(axis=0), W2 - W2.mean(axis=0), rcond=None)[0].T
    assert np.allclose(found, M)
    assert np.allclose(W2, W @ found.T + (W2 - W @ found.T)[0])
    assert not complete(a, F, b, F).same
    with pytest.raises(GonioError, match="as many"):
        complete(a, F, Head(W[:3], link="softmax"), F)


def test_intervals_cover_the_truth_and_shrink_with_inputs():
    rng = np.random.default_rng(0)
    head = Head(rng.standard_normal((6, 3)), link="softmax")
    Wc = head.W - head.W.mean(axis=0)
    truth = Wc[0] @ Wc[1] / np.linalg.norm(Wc[0]) / np.linalg.norm(Wc[1])  # standard normal embeddings: S = I
    hits = 0
    for _ in range(40):
        i = measure("centred-logit correlation")(head, rng.standard_normal((80, 3))).intervals([0], [1], resamples=200)[
            0
        ]
        assert i.low <= i.value <= i.high
        hits += i.low <= truth <= i.high
    assert 33 <= hits <= 40
    few, many = (
        measure("centred-logit correlation")(head, rng.standard_normal((n, 3))).intervals([0], [1])[0]
        for n in (50, 5000)
    )
    assert many.high - many.low < 0.3 * (few.high - few.low)
    assert set(few.to_dict()) == {"value", "low", "high", "level"}
    for name in ("log-probability correlation", "expected log-ratio", "which inputs"):
        m = measure(name)(head, rng.standard_normal((100, 3)))
        i = m.intervals([0, 2], [1, 3])[1]
        assert i.low <= i.value <= i.high or name == "which inputs"  # a divergence is biased in small samples
        assert i.high - i.low > 0


def test_a_score_is_placed_among_the_model_s_own_pairs():
    rng = np.random.default_rng(0)
    loose, crowded = (Head(rng.standard_normal((300, 16)) + s, link="cosine") for s in (0, 2))
    low, high = (score_to_percentile(h, 0.7) for h in (crowded, loose))
    assert low.percentile < 20
    assert high.percentile > 99
    U = loose.W / np.linalg.norm(loose.W, axis=1, keepdims=True)
    every = (U @ U.T)[np.triu_indices(300, 1)]
    assert score_to_percentile(loose, 0.1).percentile == pytest.approx(100 * np.mean(every < 0.1), abs=0.01)
    drawn = score_to_percentile(null(loose, pairs=1000), 0.1)
    assert drawn.low < drawn.percentile < drawn.high
    assert drawn.low < 100 * np.mean(every < 0.1) < drawn.high
    moved = migrate_threshold(loose, crowded, 0.3)
    again = migrate_threshold(crowded, loose, moved.there)
    assert moved.there > 0.7
    assert again.there == pytest.approx(0.3, abs=0.01)
    assert "there" in str(moved)
    assert "% [" in str(drawn)
    for ask, said in (
        (lambda: score_to_percentile(loose, float("nan")), "finite"),
        (lambda: score_to_percentile(loose, 0.5, level=1), "between 0 and 1"),
        (lambda: null(Head([[1.0]], link="dot")), "one label"),
        (lambda: null(Head([[0.0], [0.0]], link="dot")), "no pair"),
        (lambda: null(loose, pairs=3), "at least 100"),
    ):
        with pytest.raises(GonioError, match=said):
            ask()


def test_a_judged_score_learns_what_the_cosine_hides():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 10))
    X[:, 5:] *= 4  # loud coordinates that no judge heeds
    pairs = rng.integers(0, 120, (600, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    quiet = X[:, :5] / np.linalg.norm(X, axis=1, keepdims=True)
    y = np.einsum("ij,ij->i", quiet[pairs[:, 0]], quiet[pairs[:, 1]])
    head = Head(X, link="cosine")
    m = measure("judged")(head, pairs=pairs, judgements=y)
    from scipy.stats import spearmanr

    assert m.held_out > 0.9 > 0.6 > spearmanr(measure("cosine")(head).pairs(pairs[:, 0], pairs[:, 1]), y).statistic
    assert m(3, 4) == pytest.approx(m(4, 3))
    for bad, said in (
        ((pairs[:5], y[:5]), "at least 10"),
        ((pairs, y[:-1]), "one entry per pair"),
        ((pairs + 100, y), "rows 0 to 119"),
        ((pairs * 1.0, y), "whole numbers"),
        ((pairs, 0 * y), "all judgements are 0"),
    ):
        with pytest.raises(GonioError, match=said):
            measure("judged")(head, pairs=bad[0], judgements=bad[1])
