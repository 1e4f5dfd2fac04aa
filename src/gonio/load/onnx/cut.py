"""A piece of a graph, from the features of a product to the outputs, cut out so that it can be run alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gonio import check
from gonio.load.onnx import sandbox
from gonio.load.onnx.graph import MOST_STEPS, Graph, Node, ops
from gonio.load.onnx.norms import axis_before
from gonio.load.onnx.product import CONVOLUTIONS, PRODUCTS, NotAHead, Product, classifier_tables

# Arithmetic and changes of shape. No Loop, Scan or If, nothing of a domain of its own, nothing random.
ALLOWED = ops(
    "Add Sub Mul Div Neg Exp Log Pow Sqrt Reciprocal Abs Max Min Mean Sum Clip Where Equal Greater GreaterOrEqual Less "
    "LessOrEqual Not And Or IsNaN IsInf Sign Floor Ceil Round Mod ReduceMax ReduceMin ReduceMean ReduceSum ReduceProd "
    "ReduceLogSumExp ReduceLogSum ReduceSumSquare ReduceL1 ReduceL2 Identity Cast CastLike Dropout Reshape Flatten "
    "Squeeze Unsqueeze Transpose Expand Tile Slice Split Concat Gather GatherND GatherElements Pad Shape Size "
    "ConstantOfShape Range Softmax LogSoftmax Sigmoid Tanh Softplus ArgMax TopK GlobalAveragePool Resize Upsample "
    "QuantizeLinear DequantizeLinear DynamicQuantizeLinear ZipMap Normalizer"
) | frozenset(PRODUCTS)
MOST_NUMBERS = 1 << 22  # of one tensor in one run


@dataclass
class Piece:
    """Nodes in the order in which they run, and what they need besides the features."""

    start: str
    nodes: list[Node]
    protos: list[Any]
    constants: dict[str, np.ndarray]
    shapes: dict[str, str] = field(default_factory=dict)  # output of a Shape node -> the tensor, which is not in here

    def run(self, graph: Graph, feeds: np.ndarray) -> dict[str, np.ndarray]:
        """All tensors that depend on the features, stacked over the runs; `feeds` holds a run's features an entry."""
        from onnx import helper

        sizes = {}
        for name, of in self.shapes.items():
            declared = graph.shapes.get(of) or (None,) * feeds[0].ndim
            both = zip(declared, [*feeds.shape[1:], *[2] * len(declared)], strict=False)
            sizes[name] = np.array([d if isinstance(d, int) else free for d, free in both], np.int64)
        domains = [("", graph.opset), ("com.microsoft", 1), ("ai.onnx.ml", 3)]
        model = helper.make_model(
            helper.make_graph(self.protos, "piece", [], []),
            opset_imports=[helper.make_opsetid(d, v) for d, v in domains],
        )
        keep = [self.start, *(o for p in self.protos for o in p.output if o)]
        return sandbox.run(model.SerializeToString(), self.constants | sizes, {self.start: feeds}, keep)


def piece(graph: Graph, start: str, targets: list[str], allowed: frozenset[str] = ALLOWED) -> Piece:
    """What computes the targets from `start`; NotAHead where anything but constants and shapes is needed besides."""
    inside = _after(graph, start)
    out = Piece(start, [], [], {})
    state: dict[str, int] = {start: 2}
    stack = list(targets)
    while stack:
        name = stack[-1]
        node = graph.producers.get(name)
        if state.get(name) == 2 or not name or _constant(graph, name, out):
            stack.pop()
            continue
        if node is None:
            raise NotAHead(f"needs the graph's input {name!r} besides the features of that product")
        if node.op not in allowed:
            raise NotAHead(f"comes from a {node.op}")
        if state.get(name) == 1:
            stack.pop()
            if any(i and state.get(i) != 2 and i not in out.constants for i in node.inputs):
                raise NotAHead("runs in a circle")
            state |= dict.fromkeys(node.outputs, 2)
            out.nodes.append(node)
            out.protos += _plain(graph, node, out.constants)
        elif node.op == "Shape" and node.input(0) not in inside:
            out.shapes[name], state[name] = node.input(0), 2
        else:
            state[name] = 1
            if len(state) > MOST_STEPS:
                raise NotAHead("is the end of a long chain without a product in it")
            stack += [i for i in node.inputs if state.get(i) != 2]
    return out


def _constant(graph: Graph, name: str, out: Piece) -> bool:
    if name not in out.constants:
        c = graph.constant(name)
        if c is None:
            return False
        keep = c.scale is None and c.array.dtype.kind in "biu"
        out.constants[name] = c.array if keep else check.wide(c.dense())
    return True


def _after(graph: Graph, start: str) -> set[str]:
    """The tensors that depend on `start`."""
    inside, frontier = {start}, [start]
    while frontier:
        found = {o for name in frontier for node in graph.consumers.get(name, []) for o in node.outputs if o}
        frontier = list(found - inside)
        inside |= found
    return inside


def _plain(graph: Graph, node: Node, constants: dict[str, np.ndarray]) -> list[Any]:
    """The node as operators that the evaluator has: a product is parted from the activation in it."""
    from onnx import NodeProto, helper

    last = {"SOFTMAX": "Softmax", "LOGISTIC": "Sigmoid"}.get(node.text("post_transform", ""), "Identity")
    if node.op == "LinearClassifier":
        scores, z = node.outputs[1], node.outputs[1] + "/scores"
        w, b = (c.array for c in classifier_tables(graph, node))
        constants |= {"coefficients": w.T, "intercepts": b}
        steps = [("MatMul", [node.input(0), "coefficients"], z + "/product"), ("Add", [z + "/product", "intercepts"], z)]
        return [helper.make_node(op, i, [o]) for op, i, o in [*steps, (last, [z], scores)]]
    proto = NodeProto()
    proto.CopyFrom(node.proto)
    if proto.domain == "ai.onnx":
        proto.domain = ""
    activation = node.text("activation", "")
    if not activation:
        return [proto]
    if activation not in ("Sigmoid", "Tanh", "Relu"):
        raise NotAHead(f"comes from a {node.op} with a {activation} in it")
    proto.output[0] += "/product"
    return [proto, helper.make_node(activation, [proto.output[0]], [node.outputs[0]])]


def starts(graph: Graph, p: Product, width: int) -> Iterator[tuple[str, int]]:
    """Where to cut: at the features, then further back through changes of shape, with the axis of the features."""
    name, axis = p.x, p.axis
    for _ in range(12):
        yield name, axis
        node = graph.producers.get(name)
        if node is None:
            return
        before = axis if node.op.endswith("QuantizeLinear") else axis_before(graph, node, axis, width)
        if before is None:
            return
        name, axis = node.input(0), before


def shapes(graph: Graph, name: str, axis: int, width: int, rank: int | None) -> list[list[tuple[int, ...]]]:
    """Shapes to try for the tensor `name`: a list for each rank it may have, free lengths above one first."""
    declared = graph.shapes.get(name)
    rank = len(declared) if declared else rank if rank is not None else graph.rank(name)
    out = []
    for r in (2, 3, 4) if rank is None else (rank,):
        if not -r <= axis < r:
            continue
        tries: dict[tuple[int, ...], None] = {}
        for free in ((2, 3, 2, 2), (1, 1, 1, 1)):
            lengths = iter(free + (1,) * r)
            dims = [d if isinstance(d, int) and d > 0 else next(lengths) for d in declared or (None,) * r]
            dims[axis] = width
            if np.prod(dims, dtype=float) <= MOST_NUMBERS:
                tries[tuple(dims)] = None
        out.append(list(tries))
    return out
