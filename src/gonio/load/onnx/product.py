"""The product of a constant with the embeddings, in all the ways ONNX writes it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gonio.head import Link
from gonio.load.draft import read_only
from gonio.load.onnx.bounds import Rounding, rounding_before, rounding_of
from gonio.load.onnx.graph import Constant, Graph, Node, ops, quantized, shaped

PRODUCTS = ops(
    "MatMul Gemm Conv FusedMatMul FusedGemm FusedConv QLinearMatMul QGemm DynamicQuantizeMatMul "
    "MatMulIntegerToFloat LinearClassifier"
)


FOUR_BIT = ops("MatMulNBits MatMulBnb4 MatMulFpQ4")


class NotAHead(Exception):  # noqa: N818  not an error: one path of several that leads nowhere
    """Why a path from an output leads to no head."""


@dataclass(frozen=True, eq=False)
class Product:
    """Scores = factor * rows @ x + bias, as one node (or a quantised group of nodes) computes them."""

    node: Node
    x: str
    weight: Constant  # two axes: (labels, dim)
    label_axis: int = -1
    x_axis: int = -1
    factor: float = 1.0
    bias: Constant | None = None
    rounding: Rounding | None = None
    link: Link | None = None


def product_at(graph: Graph, node: Node) -> Product | None:
    """The product with a constant that `node` is, if it is one."""
    op, con = node.op, graph.constant
    if op == "Mul":
        return _integer_product(graph, node)
    if op not in PRODUCTS:
        return None
    if op == "LinearClassifier":
        return _linear_classifier(graph, node)
    if op == "QLinearMatMul":
        weight = _quantized_at(graph, node, 3, axis=1)
        rounding = rounding_of(graph, node.input(1), node.input(2)) or Rounding("unknown")
        return weight and Product(node, _float_side(graph, node.input(0)), _turned(weight), rounding=rounding)
    if op == "QGemm":
        return _qgemm(graph, node)
    if op in ("DynamicQuantizeMatMul", "MatMulIntegerToFloat"):
        at = 1 if op == "MatMulIntegerToFloat" else 0
        weight = _quantized_at(graph, node, 1, axis=1, scale=2 + at, zero=3 + 2 * at)
        bias = con(node.input(4 + 2 * at)) if node.input(4 + 2 * at) else None
        x = _float_side(graph, node.input(0)) if at else node.input(0)
        rounding = rounding_before(graph, node.input(0)) if at else Rounding("dynamic")
        return weight and Product(node, x, _turned(weight), bias=bias, rounding=rounding)
    weight, first = con(node.input(1)), con(node.input(0)) if op == "MatMul" else None
    if weight is None and first is not None and first.array.ndim == 2:
        return Product(node, node.input(1), first, label_axis=-2, x_axis=-2)
    if weight is None:
        return None
    bias = con(node.input(2)) if node.input(2) else None
    if node.input(2) and bias is None:
        raise NotAHead(f"comes from a {op} that adds computed values")
    link = _fused_link(node)
    if op in ("Conv", "FusedConv"):
        kernel = weight.array.shape[2:]
        if (
            set(kernel) != {1}
            or weight.axis not in (None, 0, 1)
            or any(node.integers("pads") or ())
            or node.integer("group", 1) != 1
        ):
            raise NotAHead(
                f"comes from a {op} with kernel {shaped(kernel)}, padding or groups, which is no plain product"
            )
        flat = replace(weight, array=weight.array.reshape(weight.array.shape[:2]))
        return Product(node, node.input(0), flat, label_axis=1, x_axis=1, bias=bias, link=link)
    if weight.array.ndim > 2 and set(weight.array.shape[:-2]) == {1} and weight.axis is None:
        weight = replace(weight, array=weight.array.reshape(weight.array.shape[-2:]))
    if weight.array.ndim != 2 or node.integer("transBatchA", 0) or node.integer("transBatchB", 0):
        raise NotAHead(f"comes from a {op} with a weight of shape {shaped(weight.array.shape)}")
    factor = node.number("alpha", 1.0)
    beta = node.number("beta", 1.0)
    if bias is not None and beta != 1:
        bias = Constant(bias.name, bias.dense() * np.float32(beta))
    return Product(
        node,
        node.input(0),
        weight if node.integer("transB", 0) else _turned(weight),
        x_axis=-2 if node.integer("transA", 0) else -1,
        factor=factor,
        bias=bias,
        link=link,
    )


def _fused_link(node: Node) -> Link | None:
    name = node.text("activation", "")
    if name not in ("", "Sigmoid"):
        raise NotAHead(f"comes from a {node.op} with a {name} in it")
    return "sigmoid" if name else None


def _turned(c: Constant) -> Constant:
    return replace(c, array=c.array.T, axis=None if c.axis is None else 1 - c.axis)


def _quantized_at(
    graph: Graph, node: Node, at: int, *, axis: int, scale: int | None = None, zero: int | None = None
) -> Constant | None:
    """A two-dimensional constant of integers at an input, with its scale and zero at others."""
    scale, zero = scale or at + 1, zero or at + 2
    c, s = graph.constant(node.input(at)), graph.constant(node.input(scale))
    z = graph.constant(node.input(zero)) if node.input(zero) else None
    if c is None or s is None or c.array.ndim != 2 or (node.input(zero) and z is None):
        return None
    return quantized(graph, c, s, z, axis)


def _float_side(graph: Graph, name: str) -> str:
    """What a tensor of 8-bit activations was before it was rounded."""
    node = graph.producers.get(name)
    return node.input(0) if node and node.op in ("QuantizeLinear", "DynamicQuantizeLinear") else name


def _qgemm(graph: Graph, node: Node) -> Product | None:
    turned = bool(node.integer("transB", 0))
    weight = _quantized_at(graph, node, 3, axis=0 if turned else 1)
    s = graph.scalar(node.input(1))
    if weight is None or weight.scale is None or s is None:
        return None
    c = graph.constant(node.input(6)) if node.input(6) else None
    alpha = node.number("alpha", 1.0)
    bias = None if c is None else Constant(c.name, (c.dense() * weight.scale * s * alpha).astype(np.float32))
    rounding = rounding_of(graph, node.input(1), node.input(2)) or Rounding("unknown")
    weight = weight if turned else _turned(weight)
    return Product(node, _float_side(graph, node.input(0)), weight, factor=alpha, bias=bias, rounding=rounding)


def _integer_product(graph: Graph, mul: Node) -> Product | None:
    """What onnxruntime's dynamic quantisation writes: Mul(Cast(MatMulInteger(x, W)), x's scale * W's scale)."""
    for cast_name, scales in (mul.inputs[:2], mul.inputs[:2][::-1]):
        cast = graph.producers.get(cast_name)
        node = graph.producers.get(cast.input(0)) if cast and cast.op == "Cast" else None
        if node is None or node.op != "MatMulInteger":
            continue
        both = graph.producers.get(scales)
        c = graph.constant(node.input(1))
        if both is None or both.op != "Mul" or c is None or c.array.ndim != 2:
            continue
        for mine in both.inputs:
            scale = graph.constant(mine)
            zero = graph.constant(node.input(3)) if node.input(3) else None
            if scale is not None and (zero is not None or not node.input(3)):
                weight = _turned(quantized(graph, c, scale, zero, 1))
                x, rounding = _float_side(graph, node.input(0)), rounding_before(graph, node.input(0))
                return Product(node, x, weight, rounding=rounding)
    return None


def _linear_classifier(graph: Graph, node: Node) -> Product:
    """scikit-learn's linear models, as skl2onnx writes them."""
    coef, add = (node.attributes.get(k) or [] for k in ("coefficients", "intercepts"))
    count = len(add) or len(class_labels(node))
    if not count or not coef or len(coef) % count:
        raise graph.problem(
            f"its LinearClassifier has {len(coef)} coefficients and {count} intercepts; "
            f"the first must be a multiple of the second, so convert the model again."
        )
    weight = Constant("coefficients", read_only(np.array(coef, np.float32).reshape(count, -1)))
    bias = Constant("intercepts", np.array(add, np.float32)) if add else None
    post = node.text("post_transform", "NONE")
    link: Link | None = {"SOFTMAX": "softmax", "LOGISTIC": "sigmoid"}.get(post)  # type: ignore[assignment]
    return Product(node, node.input(0), weight, bias=bias, link=link)


def class_labels(node: Node) -> list[str]:
    texts, numbers = (node.attributes.get(f"classlabels_{k}") for k in ("strings", "ints"))
    return [v.decode("utf-8", "replace") for v in texts] if texts else [str(v) for v in numbers or []]
