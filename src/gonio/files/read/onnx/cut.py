"""A piece of a graph, from the features of a product to the outputs, cut out so that it can be run alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.files.read.onnx import sandbox
from gonio.files.read.onnx.graph import MOST_STEPS, Constant, Graph, Node, ops
from gonio.files.read.onnx.norms import axis_before
from gonio.files.read.onnx.product import PRODUCTS, NotAHead, Product, classifier_tables

# Arithmetic and changes of shape. No Loop, Scan or If, nothing of a domain of its own, nothing random.
ALLOWED = ops(
    "Add Sub Mul Div Neg Exp Log Pow Sqrt Reciprocal Abs Max Min Mean Sum Clip Where Equal Greater GreaterOrEqual Less "
    "LessOrEqual Not And Or IsNaN IsInf Sign Floor Ceil Round Mod ReduceMax ReduceMin ReduceMean ReduceSum ReduceProd "
    "ReduceLogSumExp ReduceLogSum ReduceSumSquare ReduceL1 ReduceL2 Identity Cast CastLike Dropout Reshape Flatten "
    "Squeeze Unsqueeze Transpose Expand Tile Slice Split Concat Gather GatherND GatherElements Pad Shape Size "
    "ConstantOfShape Range Softmax LogSoftmax Sigmoid Tanh Softplus ArgMax TopK GlobalAveragePool Resize Upsample "
    "QuantizeLinear DequantizeLinear DynamicQuantizeLinear ZipMap Normalizer"
) | frozenset(PRODUCTS)
MOST_SECONDS = 90  # for all pieces of a file
MOST_NUMBERS = 1 << 20  # of the features in one run


@dataclass
class GraphPiece:
    """Nodes in the order in which they run, and what they need besides the tensor `start`."""

    start: str
    nodes: list[Node] = field(default_factory=list)
    protos: list[Any] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)
    shapes: dict[str, str] = field(default_factory=dict)  # output of a Shape node -> the tensor, which is not in here

    def run(self, graph: Graph, feeds: np.ndarray) -> dict[str, np.ndarray]:
        """All its tensors, stacked over the runs; `feeds` holds the tensor `start` of each."""
        from onnx import helper

        sizes = {}
        for name, of in self.shapes.items():  # as long as the features where the file does not tell
            declared = graph.shapes.get(of) or (None,) * (feeds.ndim - 1)
            both = zip(declared, [*feeds.shape[1:], *[2] * len(declared)], strict=False)
            sizes[name] = np.array([d if isinstance(d, int) else free for d, free in both], np.int64)
        domains = [helper.make_opsetid(d, v) for d, v in (("", graph.opset), ("com.microsoft", 1), ("ai.onnx.ml", 3))]
        model = helper.make_model(helper.make_graph(self.protos, "piece", [], []), opset_imports=domains)
        keep = [self.start, *(o for p in self.protos for o in p.output if o)]
        numbers = {k: checks.wide(c.dense()) if c.is_real else c.array for k, c in self.constants.items()}
        if graph.seconds_run > MOST_SECONDS:
            raise sandbox.CannotRun(f"that took more than {MOST_SECONDS} seconds in all", final=True)
        began = time.monotonic()
        try:
            return sandbox.run(model.SerializeToString(), numbers | sizes, self.start, feeds, keep)
        finally:
            graph.seconds_run += time.monotonic() - began

    def thin(self, p: Product, picked: np.ndarray) -> None:
        """Leave of the weight what meets the picked features: where the others are zero, the products are the same."""
        from onnx import helper

        name, axis = p.table or ("", 0)
        users = [proto for proto in self.protos if name in proto.input]
        if not name or len(users) != 1:
            return
        c = self.constants[name]
        scales = {k: getattr(c, k)[picked] for k in ("scale", "zero")} if c.axis == axis else {}
        self.constants |= {name: replace(c, array=np.take(c.array, picked, axis), **scales)}
        self.constants["gonio/picked"] = Constant("", picked)
        at = 1 - list(users[0].input).index(name) if users[0].op_type in ("MatMul", "Einsum") else 0
        gather = helper.make_node("Gather", [users[0].input[at], "gonio/picked"], ["gonio/thin"], axis=p.axis)
        self.protos.insert(self.protos.index(users[0]), gather)
        users[0].input[at] = "gonio/thin"


def piece(graph: Graph, start: str, targets: list[str], allowed: frozenset[str] = ALLOWED) -> GraphPiece:
    """What computes the targets from `start`; NotAHead where more than constants and shapes is needed besides."""
    inside = {start}  # all that depends on it
    frontier = [start]
    while frontier:
        found = {o for name in frontier for node in graph.consumers.get(name, []) for o in node.outputs if o}
        frontier, inside = list(found - inside), inside | found
    out = GraphPiece(start)
    open_, done = set[str](), {start, ""}
    stack = list(targets)
    while stack:
        name = stack.pop()
        node = graph.producers.get(name)
        if name in done or _is_constant(graph, name, out):
            done.add(name)
        elif node is None:
            raise NotAHead(f"needs the graph's input {name!r} besides the features of a product")
        elif node.op not in allowed:
            raise NotAHead(f"comes from a {node.op}")
        elif node.op == "Shape" and node.input(0) not in inside:
            out.shapes[name] = node.input(0)
            done.add(name)
        elif name not in open_ and len(open_) < MOST_STEPS:
            open_.add(name)
            stack += [name, *(i for i in node.inputs if i not in done)]
        elif done.issuperset(node.inputs):
            done.update(node.outputs)
            out.nodes.append(node)
            out.protos += _plain(graph, node, out.constants)
        else:
            raise NotAHead("is the end of a long chain, or of a circle")
    return out


def _is_constant(graph: Graph, name: str, out: GraphPiece) -> bool:
    c = graph.constant(name)
    if c is not None:
        out.constants[name] = c
    return c is not None


def _plain(graph: Graph, node: Node, constants: dict[str, Constant]) -> list[Any]:
    """The node as operators that the evaluator has: a product is parted from the link in it."""
    from onnx import NodeProto, helper

    if node.op == "LinearClassifier":
        w, b = classifier_tables(graph, node)
        constants |= {"coefficients": replace(w, array=w.array.T), "intercepts": b}
        last = {"SOFTMAX": "Softmax", "LOGISTIC": "Sigmoid"}.get(node.get("post_transform", ""), "Identity")
        p = node.outputs[1]
        steps = [
            ("MatMul", node.input(0), "coefficients", p + "/product"),
            ("Add", p + "/product", "intercepts", p + "/sum"),
        ]
        steps += [(last, p + "/sum", p)]
        return [helper.make_node(op, i, [o]) for op, *i, o in steps]
    proto = NodeProto()
    proto.CopyFrom(node.proto)
    proto.domain = "" if proto.domain == "ai.onnx" else proto.domain
    activation = node.get("activation", "")
    if not activation:
        return [proto]
    if activation not in ("Sigmoid", "Tanh"):
        raise NotAHead(f"comes from a {node.op} with a {activation} in it")
    proto.output[0] += "/sum"
    return [proto, helper.make_node(activation, [proto.output[0]], [node.outputs[0]])]


def starts(graph: Graph, p: Product, width: int) -> Iterator[tuple[str, int]]:
    """Where to cut: at the features, then further back through changes of shape, with the axis of the features."""
    name, axis = p.x, p.axis
    for _ in range(12):
        yield name, axis
        node = graph.producers.get(name)
        before = node and (axis if node.op.endswith("QuantizeLinear") else axis_before(graph, node, axis, width))
        if node is None or before is None:
            return
        name, axis = node.input(0), before


def shapes(
    graph: Graph, name: str, axis: int, width: int, rank: int | None = None, free: tuple[int, ...] = (2, 3, 2)
) -> list[list[tuple[int, ...]]]:
    """Shapes to try for the tensor `name`: a list for each rank it may have, free lengths above one first."""
    declared = graph.shapes.get(name)
    rank = len(declared) if declared else rank or graph.rank(name)
    out = []
    for r in (2, 3, 4) if rank is None else (rank,):
        tries: dict[tuple[int, ...], None] = {}
        for lengths in (iter(free + (1,) * r), iter((1,) * r)):
            dims = [d if isinstance(d, int) and d > 0 else next(lengths) for d in declared or (None,) * r]
            if -r <= axis < r and np.prod(dims, dtype=float) * width <= MOST_NUMBERS * dims[axis]:
                dims[axis] = width
                tries[tuple(dims)] = None
        out.append(list(tries))
    return out
