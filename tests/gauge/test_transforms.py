"""Laws of the groups: identity, inverse, composition, and what stays the same under them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gonio import AfterLayerNorm, AllInputs, GonioError, Head, Observed, gauge_of
from gonio.gauge import (
    BiasShift,
    Chain,
    Diagonal,
    InputShift,
    LayerNormShift,
    Linear,
    Rotation,
    RowScaling,
    Scaling,
    Translation,
)
from gonio.gauge.reach import cosine
from tests.strategies import heads

seeds = st.integers(0, 2**32 - 1)
calm = settings(max_examples=150, deadline=None)


def points(head, seed, count=12):
    return head.inputs.sample(count, head.shape[1], np.random.default_rng(seed))


def predictions(head, F):
    if head.link in ("softmax", "sigmoid"):
        return head.probabilities(F)
    if head.link == "cosine" and len(head.zero_rows):
        return np.zeros((len(F), 1))
    return head.logits(F)


@calm
@given(heads(inputs=True), seeds)
@pytest.mark.theorem("NG26.L3.1")
def test_the_gauge_leaves_every_prediction(head, seed):
    change = gauge_of(head).random(head, np.random.default_rng(seed), size=0.3)
    F = points(head, seed)
    if head.link == "cosine":
        F = F[np.linalg.norm(F, axis=1) > 1e-6]
        if not len(F):
            return
    moved = change.apply(head)
    assert np.allclose(predictions(head, F), predictions(moved, change.embeddings(F)), atol=1e-7)
    assert change in gauge_of(head)


@calm
@given(heads(inputs=True), seeds)
def test_a_change_and_its_inverse_undo_each_other(head, seed):
    change = gauge_of(head).random(head, np.random.default_rng(seed), size=0.3)
    F = points(head, seed)
    back = change.then(change.inverse())
    # A linear map takes the LayerNorm away, along which the way back would go.
    kinds = {type(s) for s in change.steps}
    assume(not (LayerNormShift in kinds and any(issubclass(k, Linear) for k in kinds)))
    again = back.apply(head)
    scale = 1 + head.norms.max()
    assert np.allclose(again.W, head.W, atol=1e-8 * scale)
    assert np.allclose(back.embeddings(F), F, atol=1e-8 * (1 + np.abs(F).max()))


@calm
@given(heads(links=("softmax",)), seeds)
def test_composition_is_one_after_the_other(head, seed):
    rng = np.random.default_rng(seed)
    d = head.shape[1]
    a, b, c = Translation(rng.standard_normal(d)), Scaling(-2.5), Translation(rng.standard_normal(d))
    left, right = a.then(b).then(c), a.then(b.then(c))
    assert np.allclose(left.apply(head).W, right.apply(head).W)
    assert np.allclose(left.apply(head).W, c.apply(b.apply(a.apply(head))).W)
    F = rng.standard_normal((3, d))
    assert np.allclose(left.embeddings(F), c.embeddings(b.embeddings(a.embeddings(F))))
    assert np.array_equal(Chain(()).apply(head).W, head.W)


def test_each_change_does_what_its_formula_says():
    rng = np.random.default_rng(0)
    W, b, F = rng.standard_normal((5, 3)), rng.standard_normal(5), rng.standard_normal((4, 3))
    head = Head(W, b, link="softmax", inputs=Observed(F))
    M, Q = rng.standard_normal((3, 3)), np.linalg.qr(rng.standard_normal((3, 3)))[0]
    u, v, d, s = rng.standard_normal(3), rng.standard_normal(3), rng.uniform(0.5, 2, 3), rng.uniform(0.5, 2, 5)
    wanted = {
        Translation(v): (W + v, b, F),
        Linear(M): (W @ M.T, b, F @ np.linalg.inv(M)),
        Rotation(Q): (W @ Q.T, b, F @ Q.T),
        Scaling(-2.5): (-2.5 * W, b, F / -2.5),
        Diagonal(d): (W / d, b, F * d),
        InputShift(u): (W, b - W @ u, F + u),
        BiasShift(0.7): (W, b + 0.7, F),
        RowScaling(s): (W * s[:, None], b * s, F),
    }
    for change, (rows, bias, embeddings) in wanted.items():
        moved = change.apply(head)
        assert np.allclose(moved.W, rows), change.name
        assert np.allclose(moved.bias, bias), change.name
        assert np.allclose(change.embeddings(F), embeddings), change.name
        if change.name != "translation":
            assert np.allclose(moved.inputs.F, embeddings), change.name
        assert np.allclose(moved["1"], rows[1])


@pytest.mark.theorem("GONIO.1.7e")
def test_rows_after_a_layer_norm_are_free_along_one_over_gain():
    rng = np.random.default_rng(1)
    gain, shift = rng.uniform(0.5, 2, 6), rng.standard_normal(6)
    for link in ("softmax", "sigmoid"):
        for beta in (np.zeros(6), shift):
            head = Head(rng.standard_normal((4, 6)), link=link, inputs=AfterLayerNorm(gain, beta))
            moved = LayerNormShift([3.0, -2.0, 0.5, 1.0]).apply(head)
            F = head.inputs.sample(50, 6, rng)
            assert np.allclose(head.probabilities(F), moved.probabilities(F), atol=1e-10)
            cosines = [cosine(h.W[0], h.W[1]) for h in (head, moved)]
            assert abs(cosines[0] - cosines[1]) > 0.1
            outside = rng.standard_normal((50, 6)) + 1
            assert not np.allclose(head.probabilities(outside), moved.probabilities(outside), atol=1e-3)


def test_the_gauge_follows_link_bias_inputs_and_training():
    W, b = np.eye(3), np.ones(3)
    names = lambda h, **k: {kind.__name__ for kind in gauge_of(h, **k).kinds}  # noqa: E731
    assert names(Head(W, link="softmax")) == {"Translation", "Linear"}
    assert names(Head(W, b, link="softmax")) == {"Translation", "Linear", "InputShift", "BiasShift"}
    assert names(Head(W, link="softmax", softcap=30)) == {"Linear"}
    assert names(Head(W, link="softmax", softcap=30), ranking_only=True) == {"Linear", "Translation"}
    assert names(Head(W, link="sigmoid")) == {"Linear"}
    assert names(Head(W, b, link="sigmoid")) == {"Linear", "InputShift"}
    assert names(Head(W, link="dot", trained="product")) == {"Linear"}
    assert names(Head(W, link="dot")) == {"Linear"}
    assert names(Head(W, link="dot", trained="factors")) == {"Rotation"}
    assert names(Head(W, link="dot"), ranking_only=True) == {"Linear", "Translation"}
    assert names(Head(W, link="cosine")) == {"Rotation", "RowScaling"}
    normed = Head(W, link="sigmoid", inputs=AfterLayerNorm(np.ones(3)))
    assert names(normed) == {"Linear", "LayerNormShift"}
    dead = Head(W, link="sigmoid", inputs=AfterLayerNorm([1, 0, 1]))
    assert names(dead) == {"Linear"}
    assert Rotation in gauge_of(Head(W, link="softmax"))
    assert Translation not in gauge_of(Head(W, link="sigmoid"))


@pytest.mark.theorem("GONIO.1.7f")
def test_a_soft_cap_breaks_translation_and_keeps_the_order():
    rng = np.random.default_rng(2)
    head = Head(rng.standard_normal((6, 3)) * 4, link="softmax", softcap=3.0)
    moved = Translation([2.0, -1.0, 3.0]).apply(head)
    F = rng.standard_normal((200, 3))
    assert np.abs(head.probabilities(F) - moved.probabilities(F)).max() > 0.1
    clear = np.abs(head.logits(F)).max(axis=1) < 2.9  # where tanh has not run into its rounding
    clear &= np.abs(moved.logits(F)).max(axis=1) < 2.9
    assert clear.sum() > 5
    assert np.array_equal(np.argsort(head.logits(F[clear])), np.argsort(moved.logits(F[clear])))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Linear([[1, 2], [2, 4]]), "singular"),
        (lambda: Linear(np.ones((2, 3))), "square"),
        (lambda: Rotation([[2, 0], [0, 1]]), "not orthogonal"),
        (lambda: Scaling(0), "other than zero"),
        (lambda: Diagonal([1, -1]), "positive"),
        (lambda: RowScaling([0, 1]), "positive"),
        (lambda: BiasShift(np.nan), "finite"),
        (lambda: Translation([np.nan, 1]), "nan"),
        (lambda: Translation([1, 2, 3]).apply(Head(np.eye(2), link="softmax")), "3 entries and the head 2"),
        (lambda: RowScaling([1, 2, 3]).apply(Head(np.eye(2), link="sigmoid")), "3 entries and the head 2"),
        (lambda: LayerNormShift([1, 2]).apply(Head(np.eye(2), link="softmax")), "after a LayerNorm"),
    ],
)
def test_changes_that_are_none_are_refused(make, said):
    with pytest.raises(GonioError, match=said):
        make()


def test_inputs_go_with_the_change():
    head = Head(np.eye(3), link="softmax", inputs=AfterLayerNorm(np.ones(3), np.ones(3)))
    assert Translation([1, 2, 3]).apply(head).inputs == head.inputs
    assert InputShift([1, 2, 3]).apply(head).inputs == AfterLayerNorm(np.ones(3), [2, 3, 4])
    assert Linear(np.eye(3) * 2).apply(head).inputs == AfterLayerNorm(np.ones(3) / 2, np.ones(3) / 2)
    assert Linear(np.eye(3) + 1).apply(head).inputs == AllInputs()
