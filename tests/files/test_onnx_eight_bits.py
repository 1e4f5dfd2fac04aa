"""ONNX models of eight bits: weights and activations as onnxruntime rounds them."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.core.errors import LoadError
from gonio.core.inputs import AllInputs, Nonnegative
from tests.files.onnx_made import (
    PLAIN,
    SCALES,
    SOFTMAX,
    ZEROS,
    B,
    D,
    N,
    Q,
    W,
    check_agrees,
    features,
    model,
    numpy_helper,
    onnx,
    op,
    ort,
    run,
    save,
)


@pytest.mark.parametrize("way", ["one scale", "a scale a label", "a scale a feature", "unsigned"])
def test_dequantised_weights_are_read_in_eight_bits(way, tmp_path):
    w = {"q": Q.T, "s": np.float32(0.01), "o": np.int8(3)}
    axis = 1
    if way == "a scale a label":
        w = {"q": Q.T, "s": SCALES, "o": ZEROS}
    elif way == "a scale a feature":
        w, axis = (
            {
                "q": Q.T,
                "s": np.full(D, 0.01, np.float32) * np.arange(1, D + 1, dtype=np.float32),
                "o": np.zeros(D, np.int8),
            },
            0,
        )
    elif way == "unsigned":
        w = {"q": (Q.T.astype(int) + 128).astype(np.uint8), "s": np.float32(0.01), "o": np.uint8(128)}
    nodes = [op("Relu", "x", "f"), op("DequantizeLinear", "q s o", "w", axis=axis), *SOFTMAX]
    head = check_agrees(save(tmp_path, model(nodes, w | {"b": B})), features())
    assert head.rows.kind == ("float32" if way == "a scale a feature" else w["q"].dtype.name)
    assert head.source.tensors["W"] == "q"


def test_scales_follow_a_transpose(tmp_path):
    nodes = [op("Relu", "x", "f"), op("DequantizeLinear", "q s", "d", axis=0), op("Transpose", "d", "w", perm=[1, 0])]
    head = check_agrees(save(tmp_path, model([*nodes, *SOFTMAX], {"q": Q, "s": SCALES, "b": B})), features())
    assert head.rows.kind == "int8"


@pytest.mark.parametrize("before", ["Relu", "Tanh", "Identity"])
def test_activations_rounded_to_eight_bits_bound_the_inputs(before, tmp_path):
    nodes = [op(before, "x", "a"), op("QuantizeLinear", "a as ao", "aq"), op("DequantizeLinear", "aq as ao", "f")]
    nodes += [op("DequantizeLinear", "q s", "w"), *SOFTMAX]
    constants = {"as": np.float32(0.03), "ao": np.uint8(100), "q": Q.T, "s": np.float32(0.01), "b": B}
    head = check_agrees(save(tmp_path, model(nodes, constants)), features())
    low, high = float(head.inputs.low), float(head.inputs.high)
    assert low == pytest.approx({"Relu": 0, "Tanh": -0.99, "Identity": -3}[before])
    assert high == pytest.approx({"Relu": 4.65, "Tanh": 0.99, "Identity": 4.65}[before])


@pytest.mark.parametrize("before", ["Relu", "Tanh", "HardSwish"])
def test_onnxruntimes_dynamic_quantisation_is_read(before, tmp_path):
    from onnxruntime.quantization import quantize_dynamic

    source = save(tmp_path, model([op(before, "x", "f"), *SOFTMAX], PLAIN, rank=("points", N)))
    path = tmp_path / "q.onnx"
    quantize_dynamic(source, path, reduce_range=True)  # without it the integer kernels of AVX2 saturate, and so err
    made = {n.op_type: n for n in onnx.load_model(path).graph.node}
    assert "MatMulInteger" in made
    head = gonio.load(path)
    assert head.rows.kind in ("int8", "uint8")
    dynamic = made["DynamicQuantizeLinear"].output
    x = features()
    x[0, :2] = 100, -1.5  # one large number makes the steps coarse, and the least of a hard swish rounds below itself
    q, scale, zero, P = run(path, x, [*dynamic, "p"])
    F = (q.astype(np.float32) - zero) * scale  # what the integers stand for is what meets the rows
    np.testing.assert_allclose(head.probabilities(F), P, rtol=1e-4, atol=1e-5)
    assert head.inputs.contains(F).all()
    assert not isinstance(head.inputs, AllInputs)


class Images:
    """What onnxruntime's calibration asks for."""

    def __init__(self):
        self.left = [{"x": features()}]

    def get_next(self):
        return self.left.pop() if self.left else None


@pytest.mark.parametrize("way", ["QDQ", "QOperator"])
@pytest.mark.parametrize("product", ["Gemm", "MatMul"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_onnxruntimes_static_quantisation_is_read(way, product, per_channel, tmp_path):
    from onnxruntime.quantization import QuantFormat, quantize_static

    last = [op("Gemm", "f w b", "z", transB=1)] if product == "Gemm" else [op("MatMul", "f w", "z")]
    nodes = [op("Tanh", "x", "f"), *last, op("Softmax", "z", "p")]
    constants = {"w": W, "b": B} if product == "Gemm" else {"w": W.T}
    source = save(tmp_path, model(nodes, constants, rank=("points", N)))
    path = tmp_path / "q.onnx"
    quantize_static(
        source, path, Images(), quant_format=QuantFormat[way], per_channel=per_channel, reduce_range=True,
        op_types_to_quantize=[product],
    )  # fmt: skip
    head = gonio.load(path)
    assert head.rows.kind in ("int8", "uint8")
    assert (head.bias is None) is (product == "MatMul")
    graph = onnx.load_model(path).graph
    quantize = next(n for n in graph.node if n.op_type == "QuantizeLinear")
    step = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    q, P = run(path, features(), [quantize.output[0], "p"])
    F = (q.astype(np.float32) - step[quantize.input[2]].astype(np.float32)) * step[quantize.input[1]]
    np.testing.assert_allclose(head.probabilities(F), P, atol=0.03)  # the network rounds its scores to 8 bits too
    assert head.inputs.contains(F).all()
    assert head.inputs.bounded


def test_quantised_products_fused_by_onnxruntime_are_read(tmp_path):
    from onnxruntime.quantization import quantize_dynamic

    source = save(tmp_path, model([op("Relu", "x", "f"), *SOFTMAX], PLAIN, rank=("points", N)))
    quantize_dynamic(source, tmp_path / "q.onnx", reduce_range=True)
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level = 4
    ort.InferenceSession(str(tmp_path / "q.onnx"), options)
    fused = {n.op_type for n in onnx.load_model(tmp_path / "fused.onnx").graph.node}
    assert fused & {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"}
    a, b = gonio.load(tmp_path / "fused.onnx"), gonio.load(tmp_path / "q.onnx")
    np.testing.assert_array_equal(a.W, b.W)
    np.testing.assert_array_equal(a.bias, b.bias)
    assert a.inputs == b.inputs == Nonnegative()


def test_qlinear_matmul_is_read(tmp_path):
    nodes = [op("Relu", "x", "a"), op("QuantizeLinear", "a as ao", "aq")]
    nodes += [op("QLinearMatMul", "aq as ao q s o ys yo", "y"), op("DequantizeLinear", "y ys yo", "m")]
    nodes += [op("DequantizeLinear", "aq as ao", "f"), op("Add", "m b", "z"), op("Softmax", "z", "p")]
    scales = {"as": np.float32(0.03), "s": np.float32(0.01), "ys": np.float32(0.2)}
    zeros = {"ao": np.uint8(0), "o": np.int8(0), "yo": np.uint8(128)}
    path = save(tmp_path, model(nodes, scales | zeros | {"q": Q.T, "b": B}))
    head = gonio.load(path)
    F, Z = run(path, features(), ["f", "z"])
    assert np.abs(head.logits(F) - Z).max() <= 0.1001  # the network rounds its scores to steps of 0.2
    assert head.inputs.contains(F).all()
    assert "8 bits" in head.source.decided["weight"]


def test_four_bit_products_are_refused_with_what_to_do(tmp_path):
    nodes = [op("MatMulNBits", "x w s", "p", K=D, N=N, bits=4, block_size=32, domain="com.microsoft")]
    path = save(tmp_path, model(nodes, {"w": np.zeros((N, 1, 16), np.uint8), "s": np.ones(N, np.float32)}))
    with pytest.raises(LoadError, match="4 bits: 8-bit or float weights are needed, so export"):
        gonio.load(path)
