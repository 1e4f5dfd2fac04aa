"""The products of a graph with a constant: which input is the weight, which way its labels lie, how it is dequantised."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gonio.load.draft import read_only
from gonio.load.onnx.bounds import Rounding, rounding_before, rounding_of
from gonio.load.onnx.graph import Constant, Graph, Node, ops, quantized, shaped

FOUR_BIT = ops("MatMulNBits MatMulBnb4 MatMulFpQ4")
CONVOLUTIONS = ops("Conv FusedConv ConvInteger QLinearConv")


@dataclass(frozen=True)
class Places:
    """Where a product has its inputs: the weight, its scale and zero, the scale and zero of x, the bias."""

    weight: int = 1
    scale: int | None = None
    zero: int | None = None
    x_scale: int | None = None
    x_zero: int | None = None
    bias: int | None = None


STATIC = Places(3, 4, 5, 1, 2, 6)
PRODUCTS = {
    "MatMul": Places(),
    "FusedMatMul": Places(),
    "Einsum": Places(),
    "MatMulInteger": Places(zero=3),
    "ConvInteger": Places(zero=3),
    "QLinearMatMul": replace(STATIC, bias=None),
    "QLinearConv": replace(STATIC, bias=8),
    "QGemm": STATIC,
    "DynamicQuantizeMatMul": Places(1, 2, 3, bias=4),
    "MatMulIntegerToFloat": Places(1, 3, 5, 2, 4, 6),
    "LinearClassifier": Places(),
} | dict.fromkeys(("Gemm", "FusedGemm", "Conv", "FusedConv"), Places(bias=2))


class NotAHead(Exception):  # noqa: N818  not an error: one path of several that leads nowhere
    """Why a path from an output leads to no head."""


@dataclass(frozen=True, eq=False)
class Product:
    """A node that multiplies the features `x` by a constant."""

    node: Node
    x: str
    weights: tuple[Constant, ...]  # (labels, dim); more than one where the graph does not tell which scale is meant
    axis: int = -1  # where the features lie in x
    rank: int | None = None
    rounding: Rounding | None = None
    bias: str = ""


def product_at(graph: Graph, node: Node) -> Product | None:
    """The product with a constant that `node` is, if it is one."""
    if node.op in FOUR_BIT:
        raise NotAHead(
            f"comes from a {node.op}, whose weight is packed in 4 bits: 8-bit or float weights are needed, "
            f"so export the model with its last layer left unquantised"
        )
    if node.op == "LinearClassifier":
        return Product(node, node.input(0), (classifier_tables(graph, node)[0],), bias="intercepts")
    if node.op not in PRODUCTS:
        return None
    at = PRODUCTS[node.op]
    x, stored = node.input(0), graph.constant(node.input(at.weight))
    left = stored is None and node.op in ("MatMul", "Einsum")
    if left:
        x, stored = node.input(1), graph.constant(node.input(0))
    if stored is None or stored.array.ndim < 2:
        return None
    labels_first, axis = _layout(node, left)
    c = _flat(node, stored)
    weights = _dequantised(graph, node, at, c, 0 if labels_first else 1)
    if not weights:
        return None
    before = graph.producers.get(x)
    rounding = None
    if at.x_scale is not None or node.op.endswith("Integer"):
        known = at.x_scale is not None and rounding_of(graph, node.input(at.x_scale), node.input(at.x_zero or 0))
        rounding = known or rounding_before(graph, x)
    elif node.op == "DynamicQuantizeMatMul":
        rounding = Rounding("dynamic")
    if rounding and before and before.op in ("QuantizeLinear", "DynamicQuantizeLinear"):
        x = before.input(0)  # the features are what was there before it was rounded
    if not labels_first:
        weights = tuple(replace(w, array=w.array.T, axis=None if w.axis is None else 1 - w.axis) for w in weights)
    rank = stored.array.ndim if node.op in CONVOLUTIONS else 2 if "Gemm" in node.op else None
    return Product(node, x, weights, axis, rank, rounding, node.input(at.bias) if at.bias else "")


def _layout(node: Node, left: bool) -> tuple[bool, int]:
    """Whether the labels are the first axis of the weight, and which axis of x the features are."""
    if node.op in CONVOLUTIONS:
        return True, 1
    if node.op == "Einsum":
        terms = node.text("equation", "").replace(" ", "").split("->")[0].split(",")
        if len(terms) != 2 or len(terms[1 - left]) != 2 or any(len(set(t)) < len(t.replace("...", ".")) for t in terms):
            raise NotAHead("comes from an Einsum that is not the product of features with a table")
        weight, x = terms[1 - left], terms[left].replace("...", ".")
        shared = [c for c in weight if c in x]
        if len(shared) != 1:
            raise NotAHead("comes from an Einsum that is not the product of features with a table")
        return weight[1] == shared[0], x.index(shared[0]) - (len(x) if "." in x else 0)
    if left:
        return True, -2
    if node.integer("transBatchA", 0) or node.integer("transBatchB", 0):
        raise NotAHead(f"comes from a {node.op} that turns its batches")
    return bool(node.integer("transB", 0)), -2 if node.integer("transA", 0) else -1


def _flat(node: Node, c: Constant) -> Constant:
    """The weight with two axes."""
    shape = c.array.shape
    if node.op in CONVOLUTIONS:
        if set(shape[2:]) != {1} or any(node.integers("pads") or ()) or node.integer("group", 1) != 1:
            raise NotAHead(
                f"comes from a {node.op} with kernel {shaped(shape[2:])}, padding or groups, which is no plain product"
            )
        return replace(c, array=c.array.reshape(shape[:2]))
    if len(shape) > 2 and (set(shape[:-2]) != {1} or c.axis is not None):
        raise NotAHead(f"comes from a {node.op} with a weight of shape {shaped(shape)}")
    return replace(c, array=c.array.reshape(shape[-2:]))


def _dequantised(graph: Graph, node: Node, at: Places, c: Constant, labels: int) -> tuple[Constant, ...]:
    zero = graph.constant(node.input(at.zero)) if at.zero and node.input(at.zero) else None
    if at.zero and node.input(at.zero) and zero is None:
        return ()
    if at.scale is not None:
        scale = graph.constant(node.input(at.scale))
        return () if scale is None else (quantized(graph, c, scale, zero, labels),)
    if not node.op.endswith("Integer"):
        return (c,)
    n = c.array.shape[labels]
    scales = [s for s in _factors(graph, node) if s.array.size in (1, n) and s.array.dtype.kind == "f"]
    return tuple(quantized(graph, c, replace(s, array=s.array.reshape(-1)), zero, labels) for s in scales)


def _factors(graph: Graph, node: Node) -> list[Constant]:
    """The constants that the scores are multiplied by soon after the node, alone or together with x's scale."""
    found: list[Constant | None] = []
    names = list(node.outputs)
    for _ in range(4):
        after = [n for name in names for n in graph.consumers.get(name, []) if n.op in ("Cast", "Mul", "Reshape")]
        for mul in (n for n in after if n.op == "Mul"):
            for other in mul.inputs:
                inner = graph.producers.get(other)
                within = inner.inputs if inner and inner.op == "Mul" and other not in names else ()
                found += [graph.constant(i) for i in (other, *within)]
        names = [o for n in after for o in n.outputs]
    return list({id(c): c for c in found if c is not None}.values())


def classifier_tables(graph: Graph, node: Node) -> tuple[Constant, Constant]:
    """Coefficients and intercepts of scikit-learn's linear models, as skl2onnx writes them."""
    coef, add = (node.attributes.get(k) or [] for k in ("coefficients", "intercepts"))
    count = len(add) or len(class_labels(node))
    if not count or not coef or len(coef) % count:
        raise graph.problem(
            f"its LinearClassifier has {len(coef)} coefficients and {count} intercepts; "
            f"the first must be a multiple of the second, so convert the model again."
        )
    weight = read_only(np.array(coef, np.float32).reshape(count, -1))
    return Constant("coefficients", weight), Constant("intercepts", np.array(add or [0.0] * count, np.float32))


def class_labels(node: Node) -> list[str]:
    """The names in a LinearClassifier."""
    texts, numbers = (node.attributes.get(f"classlabels_{k}") for k in ("strings", "ints"))
    return [v.decode("utf-8", "replace") for v in texts] if texts else [str(v) for v in numbers or []]
