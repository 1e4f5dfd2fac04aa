"""The head of an ONNX graph, its bias and its link: what gonio reads must be what onnxruntime computes."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.core.errors import LoadError
from gonio.core.inputs import Box, Nonnegative
from tests import real
from tests.files.onnx_made import (
    PLAIN,
    RNG,
    SOFTMAX,
    B,
    D,
    N,
    Q,
    W,
    check_agrees,
    features,
    model,
    op,
    refuse,
    run,
    save,
)

OCR3 = ("rapidocr_onnxruntime-1.2.3", "rapidocr_onnxruntime/models/ch_PP-OCRv3_rec_infer.onnx")
OCR4 = ("rapidocr_onnxruntime-1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx")
TURN = ("rapidocr_onnxruntime-1.2.3", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx")

# -- real files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "feed", "output", "size", "shape", "labels"),
    [
        (OCR3, "transpose_17.tmp_0", "softmax_5.tmp_0", (1, 3, 48, 96), (6625, 64), True),
        (OCR4, "transpose_51.tmp_0", "softmax_11.tmp_0", (1, 3, 48, 96), (6625, 120), True),
        (TURN, "reshape2_0.tmp_0", "save_infer_model/scale_0.tmp_1", (3, 3, 48, 192), (2, 200), False),
    ],
    ids=["PP-OCRv3", "PP-OCRv4", "turned"],
)
def test_the_head_of_a_real_network_gives_the_networks_own_output(file, feed, output, size, shape, labels, tmp_path):
    path = real.extract(*file, tmp_path)
    image = np.random.default_rng(0).uniform(-1, 1, size).astype(np.float32)
    head = check_agrees(path, image, feed, output)
    assert head.shape == shape
    assert head.link == "softmax"
    assert not head.source.assumed
    assert head.inputs == Box(-0.2785 if labels else -0.375, np.inf)
    assert head.source.bytes_read == path.stat().st_size
    if labels:
        assert (head.labels[0], head.labels[1], head.labels[-1]) == ("blank", "'", " ")
        assert head.source.decided["inputs"] == "fed by swish (x * sigmoid(x)), so x >= -0.2785"
    else:
        assert not head.named


@pytest.mark.parametrize("version", ["3", "4"])
def test_a_text_detector_has_no_label_head_and_the_error_says_what_its_output_comes_from(version, tmp_path):
    wheel = OCR3[0] if version == "3" else OCR4[0]
    path = real.extract(wheel, f"rapidocr_onnxruntime/models/ch_PP-OCRv{version}_det_infer.onnx", tmp_path)
    with pytest.raises(LoadError, match="comes from a ConvTranspose"):
        gonio.load(path)


# -- the product, the bias, the link ----------------------------------------------------------------------------------


@pytest.mark.parametrize("as_nodes", [False, True])
def test_constants_may_be_initializers_or_constant_nodes(as_nodes, tmp_path):
    path = save(tmp_path, model([op("Relu", "x", "f"), *SOFTMAX], PLAIN, as_nodes=as_nodes))
    head = check_agrees(path, features())
    np.testing.assert_array_equal(head.W, W)
    assert dict(head.source.tensors) == {"W": "w", "bias": "b"}
    assert head.inputs == Nonnegative()


@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 2.0)])
def test_gemm_honours_its_transposes_and_factors(trans_b, alpha, beta, tmp_path):
    gemm = op("Gemm", "f w b", "z", transB=trans_b, alpha=alpha, beta=beta)
    constants = {"w": W if trans_b else W.T, "b": B}
    path = save(tmp_path, model([op("Tanh", "x", "f"), gemm, op("Softmax", "z", "p")], constants))
    head = check_agrees(path, features())
    assert head.inputs == Box(-1, 1)
    np.testing.assert_allclose(head.bias, B * beta)


def test_gemm_of_a_turned_input_keeps_its_rows(tmp_path):
    nodes = [op("Relu", "x", "r"), op("Transpose", "r", "f", perm=[1, 0])]
    nodes += [op("Gemm", "f w b", "z", transA=1, transB=1), op("Softmax", "z", "p")]
    path = save(tmp_path, model(nodes, {"w": W, "b": B}))
    head = gonio.load(path)
    F, P = run(path, features(), ["f", "p"])
    np.testing.assert_allclose(head.probabilities(F.T), P, rtol=1e-4, atol=1e-5)
    assert head.inputs == Nonnegative()


BIASES = {
    "before": [op("Add", "b m", "z")],
    "after": [op("Add", "m b", "z")],
    "none": [op("Identity", "m", "z")],
    "minus": [op("Sub", "m b", "z")],
    "twice": [op("Add", "m b", "z1"), op("Add", "z1 b", "z")],
    "scaled": [op("Add", "m b", "z1"), op("Mul", "z1 two", "z")],
    "cooled": [op("Add", "m b", "z1"), op("Div", "z1 two", "z")],
    "row": [op("Unsqueeze", "b zero", "b2"), op("Add", "m b2", "z")],
}


@pytest.mark.parametrize("way", BIASES)
def test_the_bias_is_found_on_either_side_and_scales_are_kept(way, tmp_path):
    nodes = [op("Relu", "x", "f"), op("MatMul", "f w", "m"), *BIASES[way], op("Softmax", "z", "p")]
    constants = PLAIN | {"two": np.float32(2), "zero": np.array([0])}
    head = check_agrees(save(tmp_path, model(nodes, constants)), features())
    assert (head.bias is None) == (way == "none")


LINKS = {
    "softmax": [op("Softmax", "z", "p")],
    "log softmax": [op("LogSoftmax", "z", "l"), op("Exp", "l", "p")],
    "plain": [op("Exp", "z", "e"), op("ReduceSum", "e last", "s"), op("Div", "e s", "p")],
    "guarded": [
        op("ReduceMax", "z", "t", axes=[-1]),
        op("Sub", "z t", "g"),
        op("Exp", "g", "e"),
        op("ReduceSum", "e last", "s"),
        op("Div", "e s", "p"),
    ],
    "sigmoid": [op("Sigmoid", "z", "p")],
    "sigmoid in steps": [op("Neg", "z", "n"), op("Exp", "n", "e"), op("Add", "e one", "o"), op("Div", "one o", "p")],
    "sigmoid by inverse": [
        op("Neg", "z", "n"),
        op("Exp", "n", "e"),
        op("Add", "one e", "o"),
        op("Reciprocal", "o", "p"),
    ],
}


@pytest.mark.parametrize("way", [k for k in LINKS if k != "log softmax"])
def test_the_link_is_seen_however_it_is_written(way, tmp_path):
    constants = PLAIN | {"last": np.array([-1]), "one": np.float32(1)}
    nodes = [op("Relu", "x", "f"), *SOFTMAX[:2], *LINKS[way]]
    head = check_agrees(save(tmp_path, model(nodes, constants)), features())
    assert head.link == ("sigmoid" if "sigmoid" in way else "softmax")
    assert "link" not in head.source.assumed


LOGS = {
    "op": [op("LogSoftmax", "z", "p")],
    "log of softmax": [op("Softmax", "z", "s"), op("Log", "s", "p")],
    "in steps": [op("Exp", "z", "e"), op("ReduceSum", "e last", "s"), op("Log", "s", "l"), op("Sub", "z l", "p")],
    "log-sum-exp": [op("ReduceLogSumExp", "z", "l", axes=[-1]), op("Sub", "z l", "p")],
}


@pytest.mark.parametrize("way", LOGS)
def test_a_log_softmax_is_a_softmax(way, tmp_path):
    nodes = [op("Relu", "x", "f"), *SOFTMAX[:2], *LOGS[way]]
    path = save(tmp_path, model(nodes, PLAIN | {"last": np.array([-1])}))
    head = gonio.load(path)
    F, log_p = run(path, features(), ["f", "p"])
    assert head.link == "softmax"
    assert not head.source.assumed
    np.testing.assert_allclose(np.log(head.probabilities(F)), log_p, rtol=1e-4, atol=1e-4)


AFTER = {
    "identity": [op("Identity", "z", "p")],
    "argmax": [op("ArgMax", "z", "best", axis=-1), op("Identity", "z", "p")],
    "shapes": [op("Unsqueeze", "z axis", "z1"), op("Squeeze", "z1 axis", "z2"), op("Cast", "z2", "p", to=1)],
}


@pytest.mark.parametrize("way", AFTER)
def test_without_a_link_softmax_is_assumed_and_that_is_said(way, tmp_path):
    nodes = [op("Relu", "x", "f"), *SOFTMAX[:2], *AFTER[way]]
    output = "best p" if way == "argmax" else "p"
    head = check_agrees(
        save(tmp_path, model(nodes, PLAIN | {"axis": np.array([1])}, output=output)),
        features(),
        scores="logits",
        atol=1e-4,
    )
    assert head.link == "softmax"
    assert "link" in head.source.assumed
    assert "assumed" in head.source.decided["link"]


def test_a_softmax_over_positions_is_not_taken_for_the_link(tmp_path):
    nodes = [op("Relu", "x", "f"), *SOFTMAX[:2], op("Softmax", "z", "p", axis=1)]
    head = gonio.load(save(tmp_path, model(nodes, PLAIN, shape=(2, 5, D))))
    assert "link" in head.source.assumed
    assert "not over the labels" in head.source.decided["link"]


def test_before_opset_13_a_softmax_over_several_axes_is_not_the_link(tmp_path):
    nodes = [op("Relu", "x", "f"), *SOFTMAX[:2], op("Softmax", "z", "p")]
    for shape, assumed in (((2, 5, D), True), ((5, D), False)):
        head = gonio.load(save(tmp_path, model(nodes, PLAIN, shape=shape, opset=11)))
        assert ("link" in head.source.assumed) is assumed


def test_labels_are_followed_through_a_transpose(tmp_path):
    nodes = [op("Relu", "x", "f"), *SOFTMAX[:2], op("Transpose", "z", "t", perm=[0, 2, 1])]
    for axis, assumed in ((1, False), (2, True)):
        m = model([*nodes, op("Softmax", "t", "p", axis=axis)], PLAIN, shape=(2, 5, D))
        head = gonio.load(save(tmp_path, m))
        assert ("link" in head.source.assumed) is assumed


def test_scores_split_into_groups_are_no_head_unless_the_table_is_named(tmp_path):
    w = RNG.standard_normal((D, 6)).astype(np.float32)
    nodes = [op("MatMul", "x w", "z"), op("Reshape", "z shape", "r"), op("Softmax", "r", "p", axis=-1)]
    path = save(tmp_path, model(nodes, {"w": w, "shape": np.array([-1, 2, 3])}))
    with pytest.raises(LoadError, match=r"splits the 6 scores.*w \(8x6 float32\)"):
        gonio.load(path)
    assert gonio.load(path, tensor="w").shape == (6, D)


def test_padding_cut_off_the_scores_is_cut_off_the_rows(tmp_path):
    nodes = [op("Relu", "x", "f"), *SOFTMAX[:2], op("Slice", "z from to axis", "c"), op("Softmax", "c", "p")]
    constants = PLAIN | {"from": np.array([0]), "to": np.array([5]), "axis": np.array([1])}
    head = check_agrees(save(tmp_path, model(nodes, constants)), features())
    assert head.shape == (5, D)


def test_a_constant_per_position_is_not_taken_for_the_bias(tmp_path):
    nodes = [op("Relu", "x", "f"), op("MatMul", "f w", "m"), op("Add", "m b", "z")]
    constants = {"w": W.T, "b": B[:, None]}
    refuse(save(tmp_path, model([*nodes, op("Sigmoid", "z", "p")], constants, shape=(N, D))))
    # A softmax takes no notice of it: the probabilities are those of the head without a bias.
    path = save(tmp_path, model([*nodes, op("Softmax", "z", "p")], constants, shape=(N, D)))
    assert check_agrees(path, features(N, D)).bias is None


def test_of_several_outputs_the_one_with_a_link_is_taken_and_the_others_are_named(tmp_path):
    v = RNG.standard_normal((D, 3)).astype(np.float32)
    nodes = [op("Relu", "x", "f"), op("MatMul", "f v", "e"), *SOFTMAX]
    path = save(tmp_path, model(nodes, PLAIN | {"v": v}, output="e p"))
    head = check_agrees(path, features())
    assert "other outputs come from v" in head.source.decided["weight"]
    assert gonio.load(path, tensor="v").shape == (3, D)


def test_logits_and_probabilities_of_one_product_are_one_head(tmp_path):
    path = save(tmp_path, model([op("Relu", "x", "f"), *SOFTMAX], PLAIN, output="z p"))
    assert not check_agrees(path, features()).source.assumed


def test_a_soft_cap_is_read(tmp_path):
    nodes = [op("Relu", "x", "f"), op("MatMul", "f w", "m"), op("Div", "m cap", "u"), op("Tanh", "u", "t")]
    nodes += [op("Mul", "t cap", "z"), op("Softmax", "z", "p")]
    head = check_agrees(save(tmp_path, model(nodes, {"w": W.T, "cap": np.float32(3)})), features())
    assert head.softcap == 3


@pytest.mark.parametrize("link", ["Softmax", "Sigmoid"])
def test_a_one_by_one_convolution_is_a_head(link, tmp_path):
    last = op("Softmax", "z", "p", axis=1) if link == "Softmax" else op("Sigmoid", "z", "p")
    nodes = [op("Relu", "x", "f"), op("Conv", "f w b", "z"), last]
    path = save(tmp_path, model(nodes, {"w": W[:, :, None, None], "b": B}, shape=(2, D, 4, 3)))
    head = check_agrees(path, features(2, D, 4, 3), axis=1)
    assert head.link == link.lower()
    assert not head.source.assumed


def test_a_pooled_convolution_of_eight_bits_is_a_head_in_old_opsets_too(tmp_path):
    nodes = [op("Relu", "x", "r"), op("GlobalAveragePool", "r", "f"), op("DequantizeLinear", "q s", "w", axis=0)]
    nodes += [op("Conv", "f w b", "c"), op("Flatten", "c", "z"), op("Softmax", "z", "p", axis=1)]
    q = {"q": Q[:, :, None, None], "s": np.float32(0.01), "b": B}
    head = check_agrees(save(tmp_path, model(nodes, q, shape=(2, D, 4, 3))), features(2, D, 4, 3), axis=1)
    assert (head.rows.kind, head.inputs) == ("int8", Nonnegative())
    nodes = [op("Relu", "x", "f"), op("Conv", "f w b", "c"), op("GlobalAveragePool", "c", "z")]
    m = model(
        [*nodes, op("Softmax", "z", "p", axis=1)], {"w": W[:, :, None, None], "b": B}, shape=(2, D, 4, 3), opset=9
    )
    assert not gonio.load(save(tmp_path, m)).source.assumed


def test_a_maximum_over_positions_does_not_make_a_softmax(tmp_path):
    steps = [op("ReduceMax", "z", "t", axes=[1]), op("Sub", "z t", "g"), *LINKS["plain"][1:]]
    nodes = [op("Relu", "x", "f"), *SOFTMAX[:2], *steps[:2], op("Exp", "g", "e"), *steps[2:]]
    refuse(save(tmp_path, model(nodes, PLAIN | {"last": np.array([-1])}, shape=(2, 5, D))))


def test_a_convolution_that_mixes_positions_is_not(tmp_path):
    nodes = [op("Conv", "x w", "z"), op("Softmax", "z", "p", axis=1)]
    path = save(tmp_path, model(nodes, {"w": np.ones((N, D, 3, 3), np.float32)}, shape=(2, D, 4, 3)))
    with pytest.raises(LoadError, match="kernel 3x3"):
        gonio.load(path)


def test_the_weight_may_stand_on_the_left(tmp_path):
    nodes = [op("Relu", "x", "f"), op("MatMul", "w f", "z"), op("Softmax", "z", "p", axis=0)]
    check_agrees(save(tmp_path, model(nodes, {"w": W}, shape=(D, 6))), features(D, 6), axis=0)


FOLDS = {
    "transpose": ([op("Transpose", "w0", "w", perm=[1, 0])], W),
    "identity": ([op("Identity", "w0", "w")], W.T),
    "half": ([op("Cast", "w0", "w", to=1)], W.T.astype(np.float16)),
    "reshape": ([op("Reshape", "w0 shape", "w")], W.T.reshape(-1)),
    "squeeze": ([op("Squeeze", "w0 axis", "w")], W.T[None]),
}


@pytest.mark.parametrize("way", FOLDS)
def test_the_weight_is_followed_through_changes_of_shape_and_type(way, tmp_path):
    nodes, stored = FOLDS[way]
    constants = {"w0": stored, "b": B, "shape": np.array([D, N]), "axis": np.array([0])}
    path = save(tmp_path, model([op("Relu", "x", "f"), *nodes, *SOFTMAX], constants))
    head = check_agrees(path, features(), tensor="w0" if way == "half" else None)
    assert head.source.tensors["W"] == "w0"


@pytest.mark.parametrize("kind", ["FusedMatMul", "FusedGemm"])
def test_fused_products_of_onnxruntime_are_read(kind, tmp_path):
    fused = {
        "FusedMatMul": op("FusedMatMul", "f w", "m", transB=1, alpha=0.5, domain="com.microsoft"),
        "FusedGemm": op("FusedGemm", "f w b", "m", transB=1, activation="Sigmoid", domain="com.microsoft"),
    }[kind]
    last = op("Softmax", "m", "p") if kind == "FusedMatMul" else op("Identity", "m", "p")
    path = save(tmp_path, model([op("Relu", "x", "f"), fused, last], {"w": W, "b": B}))
    head = check_agrees(path, features())
    assert head.link == ("softmax" if kind == "FusedMatMul" else "sigmoid")
