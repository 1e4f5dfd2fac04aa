"""Undertrained rows: the published indicators written plainly, planted untrained rows, what a translation does."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio import GonioError, Head, Source
from gonio.diagnostics import find_unused, undertrained
from gonio.gauge import Translation


def planted(n=500, d=24, untrained=15, seed=0):
    """Trained rows spread about a common part; untrained ones keep near one far point, as softmax training leaves them."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, d)) + 0.5
    which = rng.choice(n, untrained, replace=False)
    W[which] = 2 * rng.standard_normal(d) + 0.05 * rng.standard_normal((untrained, d))
    return W, np.sort(which)


def naive(W, unused):
    u = W[unused].mean(axis=0)

    def distance(E, r):
        return np.array([1 - e @ r / max(np.linalg.norm(e) * np.linalg.norm(r), 1e-6) for e in E])

    v = np.linalg.svd(W - W.mean(axis=0))[2][0]
    removed = np.array([e - (e @ v) * v for e in W])
    centred = W - W.mean(axis=0)
    return {
        "cosine distance": distance(W, u),
        "cosine distance without first PC": distance(removed, removed[unused].mean(axis=0)),
        "centred cosine distance": distance(centred, centred[unused].mean(axis=0)),
        "l2 distance": np.array([np.sqrt(((e - u) ** 2).sum()) for e in W]),
    }


def test_the_indicators_are_those_of_the_definitions():
    W, which = planted()
    W[3] = 0
    r = undertrained(Head(W, np.arange(500.0), link="softmax"), which[:5])
    for name, values in naive(W, which[:5]).items():
        assert np.allclose(r.indicators[name], values, atol=1e-10), name
    assert r.indicators["cosine distance"][3] == 1
    assert np.array_equal(r.indicators["bias"], np.arange(500.0))
    assert np.allclose(r.indicators["norm"], np.linalg.norm(W, axis=1))


def test_planted_rows_are_the_first_candidates():
    W, which = planted()
    r = undertrained(Head(W, link="softmax"), which[:5].tolist())
    assert len(r.candidates) == np.ceil(0.02 * 495)
    assert set(r.candidates[:10].tolist()) == set(which[5:].tolist())
    assert not np.isin(r.reference, r.candidates).any()


@pytest.mark.theorem("LB24.invariant")
def test_a_translation_moves_the_raw_indicators_and_not_the_invariant_ones():
    W, which = planted()
    head = Head(W, link="softmax")
    before = undertrained(head, which[:5])
    after = undertrained(Translation(np.random.default_rng(1).standard_normal(24) * 2).apply(head), which[:5])
    assert before.invariant == ("centred cosine distance", "l2 distance")
    for name in before.invariant:
        assert np.allclose(before.indicators[name], after.indicators[name], atol=1e-9), name
    assert np.array_equal(before.candidates, after.candidates)
    for name in ("cosine distance", "cosine distance without first PC"):
        assert np.abs(before.indicators[name] - after.indicators[name]).max() > 0.2, name


def test_unused_labels_are_found_by_padding_by_name_and_by_byte():
    W = np.random.default_rng(2).standard_normal((40, 4))
    names = [f"t{i}" for i in range(40)]
    padded = Head(W, link="softmax", labels=names, source=Source("x", "npy", padded=(38, 39)))
    assert find_unused(padded)[0].tolist() == [38, 39]
    reserved = [*names[:38], "[unused3]", "<|reserved_special_token_7|>"]
    assert find_unused(Head(W, link="softmax", labels=reserved))[0].tolist() == [38, 39]
    assert find_unused(Head(W, link="softmax", labels=[*names[:39], "<0xF5>"]))[0].tolist() == [39]
    byte_level = [f"Ġ{i}" for i in range(38)] + ["À", "é"]
    found, how = find_unused(Head(W, link="softmax", labels=byte_level))
    assert found.tolist() == [38]
    assert "UTF-8" in how
    assert not len(find_unused(Head(W, link="softmax", labels=[*names[:39], "À"]))[0])  # a letter, not a byte


def test_without_a_reference_there_are_no_candidates_and_it_says_so():
    r = undertrained(Head(np.eye(5), link="softmax"))
    assert len(r.candidates) == 0
    assert r.invariant == ()
    assert "No label is known to be unused" in r.explain()


def test_a_tight_cluster_is_the_reference_where_no_label_is_known_to_be_unused():
    W, which = planted(untrained=41)
    W[which[:30]] = W[which[0]] + 1e-3 * np.random.default_rng(5).standard_normal((30, 24))
    r = undertrained(Head(W, link="softmax"))
    assert set(which[:30].tolist()) <= set(r.reference.tolist()) <= set(which.tolist())
    assert r.how == f"a cluster of {len(r.reference)} nearly equal rows, assumed to be untrained"
    left = set(which.tolist()) - set(r.reference.tolist())
    assert left <= set(r.candidates.tolist())
    assert "assumed to be untrained" in r.explain()


def test_rows_that_share_an_offset_are_no_cluster():
    W = np.random.default_rng(0).standard_normal((200, 8)) + 1000
    r = undertrained(Head(W, link="softmax"))
    assert r.how == "none found"
    twins = np.random.default_rng(0).standard_normal((200, 8))
    twins[1] = twins[0]  # two equal rows are no cluster either
    assert undertrained(Head(twins, link="softmax")).how == "none found"


def test_who_can_never_win_is_told_with_the_candidates():
    W = np.random.default_rng(3).standard_normal((60, 2))
    W[:6] = 0.01 * np.random.default_rng(4).standard_normal((6, 2)) + [0.3, 0.1]  # inside the hull: they never win
    head = Head(W, link="softmax")
    r = undertrained(head, [0, 1, 2], can_win=gonio.can_win(head))
    assert r.never_win is not None
    assert set(r.never_win.tolist()) <= set(r.candidates.tolist())
    assert set(r.never_win.tolist()) == set(r.candidates.tolist()) & set(gonio.can_win(head).never.tolist())


@pytest.mark.parametrize(
    ("unused", "sentence"),
    [([], "names no label"), ([99], "out of range"), (["zz"], "no label is called 'zz'"), (3.5, "is a float")],
)
def test_bad_references_are_refused(unused, sentence):
    with pytest.raises(GonioError, match=sentence):
        undertrained(Head(np.eye(5), link="softmax"), unused)


def test_equal_rows_have_defined_indicators():
    r = undertrained(Head(np.ones((50, 3)), link="softmax"), [0])
    assert np.allclose(r.indicators["centred cosine distance"], 1)
    assert np.allclose(r.indicators["l2 distance"], 0)
