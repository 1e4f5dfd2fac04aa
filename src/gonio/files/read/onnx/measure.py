"""What the features of a head are on random inputs: evidence for a reader, never a set of inputs."""

from __future__ import annotations

import numpy as np

from gonio.files.read.onnx.cut import ALLOWED, GraphPiece, piece, shapes
from gonio.files.read.onnx.graph import Graph, ops
from gonio.files.read.onnx.product import PRODUCTS, NotAHead
from gonio.files.read.onnx.sandbox import CannotRun

STEPS = (ALLOWED - set(PRODUCTS)) | ops(
    "Relu LeakyRelu Elu Selu Celu Gelu Mish HardSwish HardSigmoid Softsign Erf LayerNormalization LpNormalization"
)


def measured(graph: Graph, name: str, axis: int, width: int) -> str:
    """The range (and the length, where it is one) of the tensor `name` on random inputs to the steps before it."""
    part: GraphPiece | None = None
    names = [name]
    for u in names:  # grows while it is walked: the tensors before `name`, nearest first
        node = graph.producers.get(u)
        if node is not None and node.op in STEPS and len(names) < 40:
            names += [i for i in node.inputs if i and i not in names and graph.constant(i) is None]
        try:
            part = piece(graph, u, [name], STEPS)
        except NotAHead:
            continue
    if part is None or not part.nodes:
        return ""
    for shape in (s for tries in shapes(graph, part.start, axis, width) for s in tries):
        sizes = np.geomspace(0.1, 10, 64).reshape(-1, *[1] * len(shape))
        try:
            X = part.run(graph, np.random.default_rng(0).standard_normal((64, *shape)) * sizes)[name]
        except (CannotRun, KeyError):
            continue
        lengths = np.linalg.norm(X, axis=axis + 1 if axis >= 0 else axis)
        one = f", all of length {lengths.mean():.3g}" if np.ptp(lengths) < 1e-3 * lengths.mean() else ""
        return f"; measured on random inputs, which proves nothing: from {X.min():.3g} to {X.max():.3g}{one}"
    return ""
