"""Hubs: against a naive count, on planted hubs, on Gaussian data, and what must not move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from gonio import GonioError, Head
from gonio.diagnostics import hubness, near_duplicates
from gonio.gauge import Rotation, gauge_of
from tests.strategies import heads


def naive(W, k):
    """N_k by sorting all cosines of each row, itself left out."""
    U = W / np.linalg.norm(W, axis=1, keepdims=True)
    counts = np.zeros(len(W), int)
    for i in range(len(W)):
        c = U @ U[i]
        c[i] = -np.inf
        for j in np.argsort(-c)[:k]:
            counts[j] += 1
    return counts


def test_counts_are_those_of_a_naive_sort():
    W = np.random.default_rng(0).standard_normal((300, 20)) + 0.3
    r = hubness(Head(W, link="softmax"), 7)
    expected = naive(W, 7)
    assert np.array_equal(r.counts, expected)
    from scipy.stats import skew

    assert r.skewness == pytest.approx(skew(expected), abs=1e-12)
    assert r.robin_hood == pytest.approx(sum(abs(c - 7) for c in expected) / (2 * sum(expected)), abs=1e-12)
    assert r.antihub_rate == np.mean([c == 0 for c in expected])
    assert r.hub_rate == np.mean([c >= 14 for c in expected])
    assert [i for i, _ in r.hubs] == sorted(np.flatnonzero(expected >= 14), key=lambda i: (-expected[i], i))


def test_gaussian_data_have_few_hubs_in_3_dimensions_and_many_in_300():
    rng = np.random.default_rng(0)
    small, large = (hubness(Head(rng.standard_normal((3000, d)), link="softmax"), measure="Euclid") for d in (3, 300))
    assert abs(small.skewness) < 0.5
    assert 7 < large.skewness < 14
    assert large.largest > 400
    assert 0.22 < large.antihub_rate < 0.33


def test_a_planted_hub_is_found_by_name():
    rng = np.random.default_rng(1)
    common = rng.standard_normal(40)
    W = 0.6 * rng.standard_normal((400, 40)) + common
    W[17] = common
    r = hubness(Head(W, link="softmax", labels=[f"w{i}" for i in range(400)]))
    assert r.named(1)[0] == ("w17", r.largest)
    assert r.largest > 300
    assert "'w17'" in r.explain()
    away = hubness(Head(W - W.mean(axis=0), link="softmax"))
    assert away.largest < 100


def test_given_lists_are_used_and_oneself_is_not_counted():
    W = np.random.default_rng(2).standard_normal((50, 6))
    head = Head(W, link="softmax")
    from gonio.similarity.nearest import nearest_by_cosine

    near = nearest_by_cosine(head.rows, 12)[0]
    assert np.array_equal(hubness(head, 5, neighbours=near).counts, hubness(head, 5).counts)
    own = np.column_stack([np.arange(50), near[:, :4]])
    with_self = hubness(head, 5, neighbours=own)
    assert np.array_equal(with_self.counts, hubness(head, 4).counts)


@settings(max_examples=40, deadline=None)
@given(heads(links=("softmax", "cosine")))
def test_all_choices_are_counted_and_rotation_and_length_do_not_matter(head):
    n, d = head.shape
    r = hubness(head, 1)
    live = int((head.norms > 0).sum())
    assert r.counts.sum() == (live if live > 1 else 0)
    assert r.voters == live
    assert not r.counts[head.zero_rows].any()
    rng = np.random.default_rng(0)
    if not head.twins and d > 1:
        U = head.W / np.where(head.norms > 0, head.norms, 1)[:, None]
        C = np.round(U @ U.T, 6)
        np.fill_diagonal(C, -2)
        top = np.sort(C, axis=1)
        if n > 2 and (top[:, -1] - top[:, -2] > 1e-3).all():
            turned = Rotation(np.linalg.qr(rng.standard_normal((d, d)))[0]).apply(head)
            assert np.array_equal(hubness(turned, 1).counts, r.counts)


def test_the_gauge_moves_cosine_hubs_and_not_those_of_an_invariant_measure():
    rng = np.random.default_rng(3)
    head = Head(rng.standard_normal((300, 12)), link="softmax")
    moved = gauge_of(head).random(head, rng, 2.0).apply(head)
    assert not np.array_equal(hubness(head).counts, hubness(moved).counts)
    firm = [hubness(h, measure="whitened-centred cosine").counts for h in (head, moved)]
    assert np.array_equal(*firm)


def test_equal_rows_are_said_to_be_tied():
    r = hubness(Head(np.ones((30, 3)), link="softmax"), 5)
    assert r.tied == 30
    assert "mean nothing" in r.explain()
    assert hubness(Head(np.zeros((30, 3)), link="softmax"), 5).counts.sum() == 0


@pytest.mark.parametrize("k", [0, 5, 2.5, True, -1])
def test_a_k_that_cannot_be_is_refused(k):
    with pytest.raises(GonioError, match=r"hubness: k is .* and the head has 5 labels; k from 1 to 4 is needed"):
        hubness(Head(np.eye(5), link="softmax"), k)


def test_bad_lists_are_refused():
    head = Head(np.eye(5), link="softmax")
    with pytest.raises(GonioError, match=r"shape \(5, 1\).*\(5, 2\) or wider"):
        hubness(head, 2, neighbours=np.zeros((5, 1), int))
    with pytest.raises(GonioError, match="names label 9; the head has labels 0 to 4"):
        hubness(head, 1, neighbours=np.full((5, 1), 9))
    with pytest.raises(GonioError, match="one label"):
        hubness(Head([[1.0]], link="softmax"), 1)


@pytest.mark.parametrize(("members", "pairs"), [(17, 136), (60, 1770)])
def test_every_pair_of_a_large_group_is_counted(members, pairs):
    rng = np.random.default_rng(members)
    W = rng.standard_normal((300, 24)).astype(np.float32)
    W[:members] = W[0] + 1e-3 * rng.standard_normal((members, 24))
    r = near_duplicates(Head(W, link="softmax"))
    assert (r.count, len(r.pairs), r.equal) == (pairs, pairs, 0)
    assert r.groups == (tuple(range(members)),)


@pytest.mark.parametrize("cosine", [0.999, 0.9, 0.2, -0.5])
def test_near_duplicates_are_those_of_the_whole_matrix(cosine):
    rng = np.random.default_rng(0)
    W = rng.standard_normal((150, 6))
    W[40:80] = W[rng.integers(0, 5, 40)] * rng.uniform(0.5, 2, (40, 1)) + 0.02 * rng.standard_normal((40, 6))
    W[90:94], W[100] = W[90], 0
    head = Head(W, link="softmax")
    U = W / np.where(W.any(axis=1), np.linalg.norm(W, axis=1), np.nan)[:, None]
    true = {(i, j) for i in range(150) for j in range(i + 1, 150) if U[i] @ U[j] >= cosine}
    r = near_duplicates(head, cosine)
    assert r.count == len(true)
    assert {tuple(p) for p in r.pairs.tolist()} == true
    assert r.equal == 6


def test_more_pairs_than_are_held_are_counted_all_the_same(monkeypatch):
    monkeypatch.setattr("gonio.diagnostics.duplicates.HELD", 100)
    r = near_duplicates(Head(np.ones((50, 3)) + 1e-6 * np.arange(150).reshape(50, 3), link="softmax"))
    assert (r.count, len(r.pairs), len(r.groups[0])) == (1225, 100, 50)


def test_near_duplicates_are_found_with_their_groups():
    rng = np.random.default_rng(4)
    W = rng.standard_normal((200, 16))
    W[10] = 3 * W[20] + 1e-4 * rng.standard_normal(16)
    W[11] = W[20]
    W[50] = W[51]
    r = near_duplicates(Head(W, link="softmax"))
    assert r.groups == ((10, 11, 20), (50, 51))
    assert r.twins == 2
    U = W / np.linalg.norm(W, axis=1, keepdims=True)
    C = np.triu(U @ U.T, 1)
    assert {tuple(p) for p in r.pairs.tolist()} == {tuple(p) for p in np.argwhere(C >= 0.999).tolist()}
    assert near_duplicates(Head(np.eye(4), link="softmax")).pairs.shape == (0, 2)
    assert near_duplicates(Head([[1.0, 2.0]], link="softmax")).groups == ()
    with pytest.raises(GonioError, match="from -1 to 1"):
        near_duplicates(Head(np.eye(4), link="softmax"), 2.0)
