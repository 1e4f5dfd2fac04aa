"""The products of a graph with a constant: which input is the weight, which way it lies, how it is dequantised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gonio.core.archive import read_only
from gonio.files.read.onnx.bounds import Rounding, rounding_before, rounding_of
from gonio.files.read.onnx.graph import Constant, Graph, Node, ops, quantized, shaped

FOUR_BIT = ops("MatMulNBits MatMulBnb4 MatMulFpQ4")
CONVOLUTIONS = ops("Conv FusedConv ConvInteger QLinearConv")


class ProductPlaces(NamedTuple):
    """Where a product has its inputs; 0, which is the place of x, where it has none."""

    weight: int = 1
    scale: int = 0
    zero: int = 0
    x_scale: int = 0
    x_zero: int = 0
    bias: int = 0


PRODUCTS = {
    "QLinearMatMul": ProductPlaces(3, 4, 5, 1, 2),
    "QLinearConv": ProductPlaces(3, 4, 5, 1, 2, 8),
    "QGemm": ProductPlaces(3, 4, 5, 1, 2, 6),
    "DynamicQuantizeMatMul": ProductPlaces(1, 2, 3, bias=4),
    "MatMulIntegerToFloat": ProductPlaces(1, 3, 5, 2, 4, 6),
}
PRODUCTS |= dict.fromkeys(("MatMul", "FusedMatMul", "Einsum", "LinearClassifier"), ProductPlaces())
PRODUCTS |= dict.fromkeys(("Gemm", "FusedGemm", "Conv", "FusedConv"), ProductPlaces(bias=2))
PRODUCTS |= dict.fromkeys(("MatMulInteger", "ConvInteger"), ProductPlaces(zero=3))


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
    table: tuple[str, int] | None = None  # the node's own name for the weight, and the axis of the features in it


def product_at(graph: Graph, node: Node) -> Product | None:
    """The product with a constant that `node` is, if it is one."""
    if node.op in FOUR_BIT:
        raise NotAHead(
            f"comes from a {node.op}, whose weight is packed in 4 bits: 8-bit or float weights are needed, "
            f"so export the model with its last layer left unquantised"
        )
    if node.op == "LinearClassifier":
        bias = "intercepts" if node.get("intercepts", []) else ""
        return Product(node, node.input(0), (classifier_tables(graph, node)[0],), bias=bias)
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
    weights = _dequantised(graph, node, at, _flat(node, stored), 0 if labels_first else 1)
    if not weights:
        return None
    if not labels_first:
        weights = tuple(replace(w, array=w.array.T, axis=None if w.axis is None else 1 - w.axis) for w in weights)
    rounding = None
    if at.x_scale or node.op.endswith("Integer"):
        rounding = at.x_scale and rounding_of(graph, node.input(at.x_scale), node.input(at.x_zero))
        rounding = rounding or rounding_before(graph, x)
        before = graph.producers.get(x)
        if before and before.op in ("QuantizeLinear", "DynamicQuantizeLinear"):
            x = before.input(0)  # the features are what was there before it was rounded
    elif node.op == "DynamicQuantizeMatMul":
        rounding = Rounding("dynamic")
    rank = stored.array.ndim if node.op in CONVOLUTIONS else 2 if "Gemm" in node.op else None
    features = 1 if node.op in CONVOLUTIONS else stored.array.ndim - (1 if labels_first else 2)
    table = node.input(0 if left else at.weight), features
    return Product(node, x, weights, axis, rank, rounding, node.input(at.bias) if at.bias else "", table)


def _layout(node: Node, left: bool) -> tuple[bool, int]:
    """Whether the labels are the first axis of the weight, and which axis of x the features are."""
    if node.op in CONVOLUTIONS:
        return True, 1
    if node.op == "Einsum":
        terms = node.get("equation", "").replace(" ", "").replace("...", ".").split("->")[0].split(",")
        weight, x = (terms[1 - left], terms[left]) if len(terms) == 2 else ("", "")
        shared = set(weight) & set(x)
        if len(shared) != 1 or len(set(weight)) != 2 or len(weight) != 2 or len(set(x)) != len(x):
            raise NotAHead("comes from an Einsum that is not the product of features with a table")
        return weight[1] in x, x.index(shared.pop()) - (len(x) if "." in x else 0)
    if node.get("transBatchA", 0) or node.get("transBatchB", 0):
        raise NotAHead(f"comes from a {node.op} that turns its batches")
    return left or bool(node.get("transB", 0)), -2 if left or node.get("transA", 0) else -1


def _flat(node: Node, c: Constant) -> Constant:
    """The weight with two axes."""
    shape = c.array.shape
    if node.op in CONVOLUTIONS:
        if set(shape[2:]) != {1} or any(node.integers("pads") or ()) or node.get("group", 1) != 1:
            raise NotAHead(
                f"comes from a {node.op} with kernel {shaped(shape[2:])}, padding or groups, which is no plain product"
            )
        return replace(c, array=c.array.reshape(shape[:2]))
    if len(shape) > 2 and (set(shape[:-2]) != {1} or c.axis is not None):
        raise NotAHead(f"comes from a {node.op} with a weight of shape {shaped(shape)}")
    return replace(c, array=c.array.reshape(shape[-2:]))


def _dequantised(graph: Graph, node: Node, at: ProductPlaces, c: Constant, labels: int) -> tuple[Constant, ...]:
    zero = graph.constant(node.input(at.zero)) if at.zero and node.input(at.zero) else None
    scales = [graph.constant(node.input(at.scale))] if at.scale else []
    if node.op.endswith("Integer"):
        n = c.array.shape[labels]
        scales = [s for s in _factors(graph, node) if s.array.size in (1, n) and s.array.dtype.kind == "f"]
    elif not at.scale:
        return (c,)
    if at.zero and node.input(at.zero) and zero is None:
        return ()
    flat = [replace(s, array=s.array.reshape(-1)) for s in scales if s is not None]
    return tuple(quantized(graph, c, s, zero, labels) for s in flat)


def _factors(graph: Graph, node: Node) -> list[Constant]:
    """The constants that the scores are multiplied by soon after the node, alone or together with x's scale."""
    names, found = list(node.outputs), {}
    for _ in range(4):
        after = [n for name in names for n in graph.consumers.get(name, []) if n.op in ("Cast", "Mul", "Reshape")]
        factors = [i for n in after if n.op == "Mul" for i in n.inputs if i not in names]
        inner = [graph.producers[i] for i in factors if i in graph.producers]
        for name in [*factors, *(i for n in inner if n.op == "Mul" for i in n.inputs)]:
            found[name] = graph.constant(name)
        names = [o for n in after for o in n.outputs]
    return [c for c in found.values() if c is not None]


def classifier_tables(graph: Graph, node: Node) -> tuple[Constant, Constant]:
    """Coefficients and intercepts of scikit-learn's linear models, as skl2onnx writes them."""
    coef, add = (node.get(k, []) for k in ("coefficients", "intercepts"))
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
    return [str(v) for v in node.get("classlabels_strings", []) or node.get("classlabels_ints", [])]
