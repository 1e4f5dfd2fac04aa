"""The same-model test, canonical forms and completeness."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import AfterLayerNorm, GonioError, Head, canonical, gauge_of, same_model
from gonio.gauge import LayerNormShift, Linear, RowScaling, Translation

rng = np.random.default_rng(0)
W, b, F = rng.standard_normal((80, 6)), rng.standard_normal(80), rng.standard_normal((40, 6))
LINKS = ["softmax", "sigmoid", "dot", "cosine"]


@pytest.mark.theorem("GONIO.complete")
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("bias", [None, b], ids=["plain", "biased"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_a_gauge_transform_is_recognised_and_recovered(link, bias, kind):
    if link == "cosine" and bias is not None:
        return
    h = Head(W.astype(kind), bias, link=link)
    change = gauge_of(h).random(h, np.random.default_rng(5))
    moved = change.apply(h)
    result = same_model(h, moved)
    assert result.same is True
    rounded = moved.replace(W=moved.W.astype(kind))  # as a file of that type would hold it
    assert same_model(h, rounded).same is True
    if link != "cosine":
        again = result.transform.apply(h)
        assert np.allclose(again.W, moved.W, atol=1e-9)
        if bias is not None:
            gap = again.bias - moved.bias
            assert np.allclose(gap - (gap.mean() if link == "softmax" else 0), 0, atol=1e-9)
        assert same_model(h, moved, (F, change.embeddings(F))).same is True


@pytest.mark.parametrize("link", LINKS)
def test_a_changed_row_is_noticed_and_named(link):
    h = Head(W, link=link, labels=[f"w{i}" for i in range(80)])
    moved = gauge_of(h).random(h, np.random.default_rng(5)).apply(h)
    rows = moved.W.copy()
    rows[[7, 33]] += 0.3 * rng.standard_normal((2, 6))
    result = same_model(h, moved.replace(W=rows))
    assert result.same is False
    assert set(result.worst[:2].tolist()) == {7, 33}
    assert result.residual > 100 * result.rounding


def test_sixteen_bit_rounding_counts_as_the_same_and_more_does_not():
    h = Head(W.astype(np.float32), link="softmax")
    moved = Translation(rng.standard_normal(6)).apply(h)
    assert same_model(h, moved.replace(W=moved.W.astype(np.float16))).same is True
    assert same_model(h, moved.replace(W=moved.W + 1e-2 * rng.standard_normal(W.shape))).same is False


def test_one_changed_row_of_many_is_noticed_even_in_sixteen_bits():
    many = rng.standard_normal((5000, 24)).astype(np.float32)
    h = Head(many.astype(np.float16), link="softmax")
    other = many.copy()
    other[1234] *= 1.2
    result = same_model(h, Head(other.astype(np.float16), link="softmax"))
    assert result.same is False
    assert result.worst[0] == 1234
    noisy = many * (1 + 0.05 * rng.standard_normal(many.shape)).astype(np.float32)
    assert same_model(h, Head(noisy.astype(np.float16), link="softmax")).same is False


def test_a_bias_that_masks_one_label_does_not_hide_the_others():
    mask = np.zeros(80, np.float32)
    mask[3] = -1e9
    first = Head(W.astype(np.float32), mask, link="softmax")
    second = Head(
        W.astype(np.float32), mask + np.where(mask == 0, rng.standard_normal(80), 0).astype(np.float32), link="softmax"
    )
    assert same_model(first, second).same is False
    one = b.copy()
    one[17] += 1
    result = same_model(Head(W, b, link="softmax"), Head(W, one, link="softmax"))
    assert result.same is False
    assert result.worst[0] == 17


@pytest.mark.parametrize("power", [3, 6, 9, 11])
def test_badly_conditioned_maps_are_recovered_too(power):
    U, V = (np.linalg.qr(rng.standard_normal((6, 6)))[0] for _ in range(2))
    M = (U * np.logspace(0, -power, 6)) @ V
    h = Head(W, link="softmax")
    assert same_model(h, Head(W @ M.T, link="softmax")).same in ((True,) if power < 11 else (True, None))
    assert same_model(h, Head(rng.standard_normal((80, 6)) @ M.T, link="softmax")).same is not True


def test_where_rounding_swamps_everything_nothing_is_claimed():
    small = rng.standard_normal((80, 6))
    first, second = (Head((small + far).astype(np.float32), link="softmax") for far in (1e7, 2e7))
    assert same_model(first, second).same is None
    assert same_model(first, first).same is True


@pytest.mark.theorem("GONIO.1.7g")
def test_heads_alone_cannot_tell_when_rank_is_n_minus_one():
    for n, d in ((5, 8), (9, 8)):
        first, second = (Head(rng.standard_normal((n, d)), link="softmax") for _ in range(2))
        result = same_model(first, second)
        assert result.same is None
        assert result.residual < 1e-10  # unrelated heads, and yet a map takes one to the other
        assert "only embeddings can tell" in result.reason
        G = rng.standard_normal((30, d))
        assert same_model(first, second, (G, G)).same is False
    first, second = (Head(rng.standard_normal((5, 8)), link="sigmoid") for _ in range(2))
    assert same_model(first, second).same is None


def test_labels_are_matched_by_name_and_order_does_not_matter():
    names = [f"w{i}" for i in range(80)]
    h = Head(W, link="softmax", labels=names)
    order = rng.permutation(80)[:60]
    moved = Translation(np.ones(6)).apply(Linear(np.eye(6) * 2).apply(h))
    other = Head(moved.W[order], link="softmax", labels=[names[i] for i in order])
    result = same_model(h, other)
    assert result.same is True
    assert result.labels == 60
    assert "matched by name" in result.reason


def test_low_rank_heads_and_other_widths_are_handled():
    low = W @ np.diag([1, 1, 1, 0, 0, 0])
    h = Head(low, link="softmax")
    moved = gauge_of(h).random(h, np.random.default_rng(1)).apply(h)
    result = same_model(h, moved)
    assert result.same is True
    assert np.allclose(result.transform.apply(h).W, moved.W, atol=1e-9)
    assert same_model(h, Head(W, link="softmax")).same is False
    assert "rank 3 and 6" in same_model(h, Head(W, link="softmax")).reason
    wider = Head(np.column_stack([W, W[:, :1]]), link="softmax")  # one more column, no more information
    assert same_model(Head(W, link="softmax"), wider).same is True
    assert same_model(Head(W, link="softmax"), wider).transform is None


def test_what_differs_outright_is_said():
    h = Head(W, link="softmax")
    assert "links differ" in same_model(h, h.replace(link="sigmoid")).reason
    assert "soft-caps differ" in same_model(h, h.replace(softcap=3)).reason
    assert same_model(h, RowScaling(rng.uniform(0.5, 2, 80)).apply(h)).same is False
    with pytest.raises(GonioError, match="80 and 79 labels"):
        same_model(h, Head(W[:-1], link="softmax"))
    with pytest.raises(GonioError, match=r"pair \(F_a, F_b\)"):
        same_model(h, h, F[0, 0])
    with pytest.raises(GonioError, match="both need one row an input"):
        same_model(h, h, (F, F[:-1]))


def test_heads_after_layer_norm_are_compared_as_the_norm_sees_them():
    h = Head(W, link="softmax", inputs=AfterLayerNorm(np.linspace(0.5, 2, 6), np.ones(6)))
    moved = LayerNormShift(rng.standard_normal(80)).apply(h)
    assert np.abs(moved.W - h.W).max() > 0.5
    result = same_model(h, moved)
    assert result.same is True
    assert "LayerNorm" in result.reason
    assert same_model(h.replace(inputs=None), moved.replace(inputs=None)).same is False


@pytest.mark.parametrize("link", ["softmax", "sigmoid", "dot"])
@pytest.mark.parametrize("seen", [False, True], ids=["rows", "embeddings"])
def test_the_canonical_form_is_one_for_the_whole_orbit(link, seen):
    h = Head(W, b if seen else None, link=link)
    form = canonical(h, F if seen else None)
    for seed in range(3):
        change = gauge_of(h).random(h, np.random.default_rng(seed))
        other = canonical(change.apply(h), change.embeddings(F) if seen else None)
        assert np.allclose(form.head.W, other.head.W, atol=1e-6 * np.abs(form.head.W).max())
        assert np.array_equal(form.anchors, other.anchors)
    top = form.head.W[form.anchors]
    assert np.allclose(np.triu(top, 1), 0, atol=1e-9 * np.abs(top).max())
    assert (np.diag(top) > 0).all()
    if seen:
        centred = W - W.mean(axis=0) if link == "softmax" else W
        G = F - F.mean(axis=0)
        assert np.allclose(form.head.W @ form.head.W.T, centred @ (G.T @ G / len(G)) @ centred.T)


@pytest.mark.theorem("GONIO.1.7d")
def test_whitened_by_rows_alone_every_head_of_rank_n_minus_one_looks_the_same():
    forms = [canonical(Head(rng.standard_normal((5, 8)), link="softmax")) for _ in range(3)]
    for form in forms:
        assert np.allclose(form.head.W @ form.head.W.T, np.eye(5) - 1 / 5)
        assert "give embeddings" in form.caveat
    assert canonical(Head(W, link="softmax")).caveat == ""


def test_rounding_is_not_taken_for_rank():
    low = (rng.standard_normal((60, 3)) @ rng.standard_normal((3, 6))).astype(np.float32)
    h = Head(low, link="softmax")
    assert canonical(h).head.shape == (60, 3)
    moved = gauge_of(h).random(h, np.random.default_rng(2)).apply(h)
    again = canonical(moved.replace(W=moved.W.astype(np.float32)))
    assert np.allclose(canonical(h).head.W, again.head.W, atol=1e-3)


def test_canonical_refuses_what_has_no_form():
    with pytest.raises(GonioError, match="all rows are equal"):
        canonical(Head(np.ones((4, 2)), link="softmax"))
    with pytest.raises(GonioError, match="cosine"):
        canonical(Head(W, link="cosine"))
