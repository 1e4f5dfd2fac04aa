"""Agreement of two models: against naive matrices, and what equivalent forms may and may not do to it."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import GonioError, Head
from gonio.diagnostics import agreement
from gonio.gauge import gauge_of
from gonio.similarity import measure

RNG = np.random.default_rng(0)
W = RNG.standard_normal((120, 10)) + 0.5
F = RNG.standard_normal((300, 10)) * np.linspace(0.3, 2, 10)
A = Head(W, link="softmax", labels=[f"w{i}" for i in range(120)])
B = A.replace(W=W + 0.7 * RNG.standard_normal(W.shape))


def test_correlations_are_those_of_naive_matrices():
    r = agreement(A, B, embeddings=(F, F), gauges=2)
    i, j = np.triu_indices(120, 1)
    for kind, name in (
        ("raw", "cosine"),
        ("centred", "centred cosine"),
        ("whitened", "whitened-centred cosine"),
        ("logit", "centred-logit correlation"),
    ):
        x, y = (measure(name)(h, F).pairs(i, j) for h in (A, B))
        assert r[kind].correlation == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-8), kind
    U = [h.W / np.linalg.norm(h.W, axis=1, keepdims=True) for h in (A, B)]
    lists = [np.argsort(-(u @ u.T - 3 * np.eye(120)), axis=1)[:, :10] for u in U]
    shared = np.mean([len(set(p) & set(q)) / 10 for p, q in zip(*lists, strict=True)])
    assert r["raw"].neighbours == pytest.approx(shared)
    assert r["raw"].chance == pytest.approx(10 / 119)


def test_equivalent_forms_move_raw_and_centred_and_leave_whitened_and_logit():
    change = gauge_of(A).random(A, np.random.default_rng(1))
    r = agreement(A, change.apply(A), embeddings=(F, change.embeddings(F)), gauges=3)
    assert r["raw"].correlation < 0.9
    assert r["centred"].correlation < 0.99
    for kind in ("whitened", "logit"):
        assert r[kind].correlation == pytest.approx(1, abs=1e-6)
        assert r[kind].itself == pytest.approx((1, 1), abs=1e-6)
        assert r[kind].gauge == pytest.approx((1, 1), abs=1e-6)
        assert r[kind].neighbours == pytest.approx(1)
        assert r[kind].invariant
    assert not r["raw"].invariant


def test_the_same_head_agrees_with_itself_and_unrelated_ones_do_not():
    assert agreement(A, A, gauges=1)["raw"].correlation == pytest.approx(1)
    assert agreement(A, A, gauges=1).dimension == pytest.approx(1)
    other = A.replace(W=np.random.default_rng(2).standard_normal((120, 7)))
    r = agreement(A, other, gauges=1)
    assert abs(r["whitened"].correlation) < 0.1
    assert r["whitened"].neighbours < 0.2


def test_labels_are_matched_by_name():
    order = np.random.default_rng(3).permutation(120)[:80]
    shuffled = Head(W[order], link="softmax", labels=[f"w{i}" for i in order])
    r = agreement(A, shuffled, gauges=1)
    assert r.count == r.shared == 80
    assert r["raw"].correlation == pytest.approx(1)
    assert agreement(A, shuffled, gauges=1, sample=40).count == 40


def test_a_sigmoid_keeps_its_origin():
    s = Head(W, link="sigmoid")
    change = gauge_of(s).random(s, np.random.default_rng(4))
    r = agreement(s, change.apply(s), embeddings=(F, change.embeddings(F)), gauges=1)
    assert r["whitened"].correlation == pytest.approx(1, abs=1e-6)
    assert r["logit"].correlation == pytest.approx(1, abs=1e-6)


def test_few_labels_make_whitening_say_nothing_and_it_says_so():
    few = Head(np.random.default_rng(5).standard_normal((8, 10)), link="softmax")
    r = agreement(few, few, gauges=1, k=2)
    assert "tells nothing" in r["whitened"].caveat
    assert "do not span" in agreement(A, B, embeddings=(F[:5], F[:5]), gauges=1)["logit"].caveat


def test_bad_input_is_refused_in_a_sentence():
    with pytest.raises(GonioError, match="share 0 label names"):
        agreement(A, Head(W, link="softmax", labels=[f"x{i}" for i in range(120)]))
    with pytest.raises(GonioError, match="120 and 50 labels and are not both named"):
        agreement(A, Head(W[:50], link="softmax"))
    with pytest.raises(GonioError, match="the same inputs"):
        agreement(A, B, embeddings=(F, F[:7]))
    with pytest.raises(GonioError, match="k is 500"):
        agreement(A, B, k=500)
    with pytest.raises(GonioError, match="no similarity 'x'"):
        agreement(A, A, gauges=1)["x"]
    constant = Head(np.ones((20, 3)), link="softmax")
    assert np.isnan(agreement(constant, constant, gauges=1)["raw"].correlation)
