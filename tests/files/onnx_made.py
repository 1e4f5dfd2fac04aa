"""ONNX models made by hand, run by onnxruntime, and what a head read from them must agree with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gonio
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.files.read.onnx import draft

onnx = pytest.importorskip("onnx", reason="onnx is not installed; make test installs it")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; make test installs it")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

N, D = 7, 8
RNG = np.random.default_rng(7)
W = RNG.standard_normal((N, D)).astype(np.float32)
B = RNG.standard_normal(N).astype(np.float32)
Q = RNG.integers(-127, 128, (N, D)).astype(np.int8)
SCALES = RNG.uniform(0.005, 0.02, N).astype(np.float32)
ZEROS = RNG.integers(-5, 6, N).astype(np.int8)
GAIN = RNG.uniform(0.5, 2, D).astype(np.float32)
SHIFT = RNG.standard_normal(D).astype(np.float32)


def op(kind, inputs, output, **attributes):
    """A node; inputs and outputs as words."""
    return helper.make_node(kind, inputs.split(" "), output.split(" "), **attributes)


def model(nodes, constants, *, shape=("points", D), output="p", opset=17, metadata=None, as_nodes=False, rank=None):
    """A model of one input x; its constants are initializers, or Constant nodes."""
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    if as_nodes:
        nodes = [helper.make_node("Constant", [], [t.name], value=t) for t in tensors] + list(nodes)
    outputs = [
        helper.make_tensor_value_info(o, TensorProto.FLOAT, rank) if rank else helper.make_empty_tensor_value_info(o)
        for o in output.split(" ")
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [x], outputs, [] if as_nodes else tensors)
    domains = [
        helper.make_opsetid("", opset),
        helper.make_opsetid("com.microsoft", 1),
        helper.make_opsetid("ai.onnx.ml", 3),
    ]
    m = helper.make_model(graph, opset_imports=domains, ir_version=8)
    if metadata:
        helper.set_model_props(m, metadata)
    return m


def save(folder: Path, m) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(m.SerializeToString())
    return path


def run(path: Path, x, names):
    """The named tensors of the graph, as onnxruntime computes them; inner ones are made outputs."""
    m = onnx.load_model(path)
    have = {o.name for o in m.graph.output}
    for name in names:
        if name not in have:
            m.graph.output.append(helper.make_empty_tensor_value_info(name))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(m.SerializeToString(), options)
    return session.run(list(names), {session.get_inputs()[0].name: x})


def check_agrees(
    path: Path, x, feed="f", output="p", *, axis=-1, scores="probabilities", atol=1e-5, tensor=None, slack=0.0
) -> Head:
    """What the head computes from the tensor that feeds it is what the network gives out."""
    head = gonio.load(path, tensor=tensor)
    F, P = run(path, x, [feed, output])
    F = np.moveaxis(F.astype(np.float32), axis, -1).reshape(-1, head.shape[1])
    P = np.moveaxis(P.astype(np.float32), axis, -1).reshape(-1, head.shape[0])
    np.testing.assert_allclose(getattr(head, scores)(F), P, rtol=1e-4, atol=atol)
    assert head.inputs.contains(F * (1 - slack)).all()
    assert set(head.source.decided) == {"weight", "bias", "link", "inputs", "labels"}
    return head


def features(*shape, scale=3.0):
    return (np.random.default_rng(3).standard_normal(shape or (40, D)) * scale).astype(np.float32)


def refuse(path: Path, tensor=None) -> None:
    """Both doors give one sentence, and no other kind of error."""
    with pytest.raises(GonioError) as e:
        draft(path, tensor).finish()
    with pytest.raises(GonioError):
        gonio.load(path, tensor=tensor)
    said = str(e.value)
    assert said.endswith(".")
    assert "\n" not in said
    assert len(said) < 700


SOFTMAX = [op("MatMul", "f w", "m"), op("Add", "m b", "z"), op("Softmax", "z", "p", axis=-1)]
PLAIN = {"w": W.T, "b": B}
NORM_STEPS = [
    op("ReduceMean", "x", "mu", axes=[-1]),
    op("Sub", "x mu", "c"),
    op("Pow", "c two", "c2"),
    op("ReduceMean", "c2", "v", axes=[-1]),
    op("Add", "v eps", "ve"),
    op("Sqrt", "ve", "sd"),
    op("Div", "c sd", "n"),
    op("Mul", "n gain", "g"),
]
