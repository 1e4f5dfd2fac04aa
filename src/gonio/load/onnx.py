"""The output head of an ONNX model: found by walking back from the outputs, never by running anything.

Backwards from an output, through changes of shape, the link (Softmax, Sigmoid, also spelled out), scales and the bias,
to the product with a constant. Then forwards again along that path, to see which axis the labels lie on and what each
step does to their scores.
"""

from __future__ import annotations

import ast
import json
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gonio import check
from gonio.errors import LoadError
from gonio.head import Link
from gonio.load.draft import Draft, read_only
from gonio.load.onnx_graph import Constant, Graph, Node, ops, quantized, read
from gonio.load.onnx_inputs import Rounding, fed_by, rounding_before, rounding_of
from gonio.rows import Affine8, Rows, Scaled

SHAPES = ops(
    "Identity Cast Dropout Reshape Squeeze Unsqueeze Transpose Flatten Slice Gather GatherND GatherElements ReduceMean "
    "GlobalAveragePool Resize Upsample ArgMax TopK ReduceMax Expand QuantizeLinear DequantizeLinear ZipMap Normalizer "
    "Softmax LogSoftmax Sigmoid Log Tanh"
)
PRODUCTS = ops(
    "MatMul Gemm Conv FusedMatMul FusedGemm FusedConv QLinearMatMul QGemm DynamicQuantizeMatMul "
    "MatMulIntegerToFloat LinearClassifier"
)
FOUR_BIT = ops("MatMulNBits MatMulBnb4 MatMulFpQ4")
MOST_METADATA = 1 << 20  # a parse of more could take long


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


@dataclass
class Scores:
    """What the steps after the product make of its scores."""

    product: Product
    n: int
    axis: int | None  # where the labels lie, None where it cannot be told
    factor: float
    bias: np.ndarray | None = None
    bias_name: str = ""
    softcap: float | None = None
    link: Link | None = None
    single: bool = False  # whether the axes after the labels have length one
    span: slice = field(default_factory=lambda: slice(None))
    notes: list[str] = field(default_factory=list)
    link_note: str = ""


@np.errstate(over="ignore", invalid="ignore")  # numbers out of range are refused by name when the rows are surveyed
def draft(path: Path, tensor: str | None) -> Draft:
    """Read the output head of an ONNX model.

    Parameters
    ----------
    path : the .onnx file; external data must lie in its folder
    tensor : the weight's name (an initializer, or the output of a Constant node), where the guess is wrong
    """
    graph = read(Path(path))
    scores = _search(graph) if tensor is None else _named(graph, tensor)
    if scores is None:
        return _table(graph, str(tensor))
    p = scores.product
    rows = _rows(p.weight, scores.factor, scores.span)
    n, dim = rows.shape
    half = p.weight.array.dtype if check.is_float(p.weight.array.dtype) and p.weight.array.dtype.itemsize == 2 else None
    inputs, why, guess = fed_by(graph, p.x, axis=p.x_axis, width=dim, half=half, rounding=p.rounding)
    bias = None if scores.bias is None else scores.bias[scores.span]
    out = Draft(str(path), "onnx", rows, bias, scores.link or "softmax", inputs=inputs, softcap=scores.softcap)
    kind = f"{n} rows of {dim}, {p.weight.array.dtype.name}"
    way = "; ".join([f"{p.weight.name} ({kind}), which the {p.node.op} before the output multiplies", *scores.notes])
    out.decide("weight", way if tensor is None else f"{p.weight.name}, named by the caller")
    out.decide("bias", f"{scores.bias_name}, added after it" if bias is not None else "nothing is added to the scores")
    out.decide(
        "link", scores.link_note or "no Softmax or Sigmoid follows, so softmax is assumed", assumed=not scores.link
    )
    out.decide("inputs", why, assumed=guess)
    out.labels, out.decided["labels"] = _labels(graph, n, p.node)
    out.tensors = {"W": p.weight.name} | ({"bias": scores.bias_name} if bias is not None else {})
    out.bytes_read = graph.bytes_read
    return out


# -- which head -----------------------------------------------------------------------------------------------------


def _search(graph: Graph) -> Scores:
    """The head of the first output that has one; an output after a Softmax or Sigmoid goes first."""
    found: list[Scores] = []
    reasons: list[str] = []
    for output in graph.outputs[:64]:
        try:
            found.append(_scores(graph, output))
        except NotAHead as e:
            reasons.append(f"output {output!r} {e}")
    if not found:
        raise graph.problem(
            f"no label head leads to its outputs ({', '.join(dict.fromkeys(reasons[:3]))}); "
            f"a product of the features with a constant is needed, so name it with tensor=: {_candidates(graph)}."
        )
    linked = [s for s in found if s.link] or found
    best = next((s for s in linked if s.n > 1), linked[0])
    same = [s for s in linked if s.product.node is best.product.node]
    best = max(same, key=lambda s: len(s.notes))  # of a label and its probabilities, the longer story
    others = dict.fromkeys(s.product.weight.name for s in found)
    others.pop(best.product.weight.name)
    best.notes += [f"other outputs come from {', '.join(list(others)[:3])} (name one with tensor=)"] if others else []
    return best


def _named(graph: Graph, tensor: str) -> Scores | None:
    """The head whose weight is called `tensor`; None where it is a table that no product uses."""
    if tensor not in graph.tensors:
        raise graph.problem(f"there is no constant {tensor!r}; the tables are: {_candidates(graph)}.")
    best: Scores | None = None
    frontier, seen = [tensor], {tensor}
    for _ in range(24):  # far enough for weight, dequantisation, product, bias, scale, spelled-out softmax
        after = [o for name in frontier for node in graph.consumers.get(name, []) for o in node.outputs]
        frontier = [o for o in dict.fromkeys(after) if o not in seen][:200]
        seen.update(frontier)
        for name in frontier:
            try:
                s = _scores(graph, name)
            except NotAHead:
                continue
            if s.product.weight.name == tensor and (best is None or s.link or not best.link):
                best = s
        if best is not None and best.link:
            break
    return best


def _table(graph: Graph, tensor: str) -> Draft:
    """A table that no product uses, an embedding: taken as it is stored."""
    c = graph.constant(tensor)
    if c is None or c.array.ndim != 2 or not check.is_float(c.array.dtype):
        shape, kind = graph.describe(tensor)
        raise graph.problem(
            f"{tensor!r} is {_shaped(shape)} {kind} and no product of the graph uses it as rows of labels; "
            f"the tables are: {_candidates(graph)}."
        )
    out = Draft(str(graph.path), "onnx", Rows(c.array), bytes_read=graph.bytes_read, tensors={"W": tensor})
    out.decide("weight", f"{tensor}, named by the caller; no product uses it, so its rows are taken as stored")
    out.decide("bias", "no product uses the table, so none")
    out.labels, out.decided["labels"] = _labels(graph, c.array.shape[0], None)
    return out


def _candidates(graph: Graph, most: int = 8) -> str:
    shown: list[str] = []
    for name in graph.tensors:
        shape, kind = graph.describe(name)
        if len(shape) == 2 and min(shape) > 0 and ("float" in kind or kind in ("int8", "uint8")):
            shown.append(f"{name} ({_shaped(shape)} {kind})")
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return (", ".join(shown[:most]) + more) or "but no constant of the file has two axes"


def _shaped(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "a scalar"


# -- backwards ------------------------------------------------------------------------------------------------------


def _scores(graph: Graph, output: str) -> Scores:
    """The scores behind a tensor, or NotAHead with the reason."""
    name, path = output, []
    for _ in range(64):
        node = graph.producers.get(name)
        if node is None:
            raise NotAHead("comes straight from the graph's input" if name not in graph.tensors else "is a constant")
        product = _product(graph, node)
        if product is not None:
            return _forwards(graph, product, path[::-1])
        step = _spelled(graph, node) or _step(graph, node)
        path.append(step)
        name = step.input(0)
    raise NotAHead("is the end of a long chain (or a cycle) without a product in it")


def _step(graph: Graph, node: Node) -> Node:
    """A node that lets scores through, with the scores as its first input."""
    if node.op in FOUR_BIT:
        raise NotAHead(
            f"comes from a {node.op}, whose weight is packed in 4 bits: 8-bit or float weights are needed, "
            f"so export the model with its last layer left unquantised"
        )
    if node.op in SHAPES and node.inputs:
        return node
    if node.op in ("Add", "Mul", "Sub", "Div") and len(node.inputs) == 2:
        if graph.constant(node.inputs[1]) is not None:
            return node
        if node.op in ("Add", "Mul") and graph.constant(node.inputs[0]) is not None:
            return replace(node, inputs=node.inputs[::-1])
    raise NotAHead(f"comes from a {node.op}{' of computed values' if node.op in (*PRODUCTS, 'Add', 'Mul') else ''}")


def _spelled(graph: Graph, node: Node) -> Node | None:
    """Softmax, log-softmax or sigmoid written out in smaller steps, as the one step that it is."""

    def made(name: str) -> Node:
        return graph.producers.get(name) or Node("", (), (), {})

    def link(op: str, z: str, over: Node | None = None) -> Node | None:
        axes = graph.axes(over) if over else (-1,)
        if axes is None or len(axes) != 1:  # a sum over several axes is no softmax over labels
            return None
        shift = made(z)  # z - max(z): the usual guard against overflow
        if op != "Sigmoid" and shift.op == "Sub" and (m := made(shift.input(1))).op == "ReduceMax":
            over_max = graph.axes(m)  # a maximum over positions only would shift each label by another amount
            if m.input(0) == shift.input(0) and (over_max is None or set(axes) <= set(over_max)):
                z = shift.input(0)
        return Node(op, (z,), node.outputs, {"axis": axes[0], "spelled": 1})

    if node.op == "Div":
        top, bottom = made(node.input(0)), made(node.input(1))
        if top.op == "Exp" and bottom.op == "ReduceSum" and bottom.input(0) == node.input(0):
            return link("Softmax", top.input(0), bottom)
        inverse = bottom if graph.scalar(node.input(0)) == 1 else None
    else:
        inverse = made(node.input(0)) if node.op == "Reciprocal" else None
    if inverse is not None and inverse.op == "Add":  # 1 / (1 + exp(-z))
        for one, rest in (inverse.inputs, inverse.inputs[::-1]):
            if graph.scalar(one) == 1 and made(rest).op == "Exp" and made(made(rest).input(0)).op == "Neg":
                return link("Sigmoid", made(made(rest).input(0)).input(0))
    if node.op == "Sub":
        z, log = node.input(0), made(node.input(1))
        total = made(log.input(0)) if log.op == "Log" else log
        e = made(total.input(0))
        if log.op == "Log" and total.op == "ReduceSum" and e.op == "Exp" and e.input(0) == z:
            return link("LogSoftmax", z, total)
        if total.op == "ReduceLogSumExp" and total.input(0) == z:
            return link("LogSoftmax", z, total)
    return None


def _product(graph: Graph, node: Node) -> Product | None:
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
                f"comes from a {op} with kernel {_shaped(kernel)}, padding or groups, which is no plain product"
            )
        flat = replace(weight, array=weight.array.reshape(weight.array.shape[:2]))
        return Product(node, node.input(0), flat, label_axis=1, x_axis=1, bias=bias, link=link)
    if weight.array.ndim > 2 and set(weight.array.shape[:-2]) == {1} and weight.axis is None:
        weight = replace(weight, array=weight.array.reshape(weight.array.shape[-2:]))
    if weight.array.ndim != 2 or node.integer("transBatchA", 0) or node.integer("transBatchB", 0):
        raise NotAHead(f"comes from a {op} with a weight of shape {_shaped(weight.array.shape)}")
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
    count = len(add) or len(_class_labels(node))
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


# -- forwards -------------------------------------------------------------------------------------------------------


def _forwards(graph: Graph, p: Product, path: list[Node]) -> Scores:
    """Follow the scores from the product to the output."""
    n = p.weight.array.shape[0]
    s = Scores(p, n, p.label_axis, p.factor, link=p.link)
    s.link_note = f"the {p.node.op} ends in its {p.link}" if p.link else ""
    if p.bias is not None:
        s.bias, s.bias_name = _bias(p.bias, n, p.label_axis if p.label_axis < 0 else None), p.bias.name
    for node in path:
        if node.op in ("Add", "Sub", "Mul", "Div"):
            if s.link is None:
                _scale_or_shift(graph, s, node)
        elif node.op in ("Softmax", "LogSoftmax", "Sigmoid"):
            _take_link(graph, s, node)
        elif node.op == "Tanh":
            if s.softcap or s.link:
                raise NotAHead("has a Tanh after its link or after another")
            s.softcap = 1.0
        elif node.op == "Log" and s.link != "softmax":
            raise NotAHead("is a logarithm of scores that no Softmax made positive")
        elif node.op in ("ArgMax", "TopK", "ReduceMax"):
            break  # what follows is about winners, no longer about scores
        elif node.op == "Normalizer":
            s.notes.append("the model then divides each probability by their sum")
        elif node.op in ("QuantizeLinear", "DequantizeLinear"):
            s.notes.append("the model then rounds the scores to 8 bits")
        else:
            s.single = s.single or node.op == "GlobalAveragePool"
            s.axis = _moved(graph, s, node)
    if s.link is None and s.axis is None:
        raise NotAHead("reshapes its scores in a way that cannot be followed")
    return s


def _bias(c: Constant, n: int, axis: int | None = None) -> np.ndarray:
    """A constant with one entry a label; `axis`, counted from the end, is where they must lie."""
    a = c.dense()
    if a.size == 1:
        return np.full(n, a.reshape(-1)[0])
    astray = axis is not None and (a.ndim < -axis or a.shape[axis] != n)
    if a.size != n or max(a.shape) != n or astray:
        raise NotAHead(f"adds a constant of shape {_shaped(a.shape)} to the scores of {n} labels")
    return a.reshape(n)


def _scale_or_shift(graph: Graph, s: Scores, node: Node) -> None:
    c = graph.constant(node.input(1))
    assert c is not None  # _step let only constants through
    if node.op in ("Add", "Sub"):
        if s.softcap:
            raise NotAHead("adds to the scores after their soft-cap")
        rank = graph.rank(node.input(0))
        behind = s.axis if s.axis is None or s.axis < 0 else None if rank is None else s.axis - rank
        b = _bias(c, s.n, behind)
        b = b if node.op == "Add" else -b
        s.bias = b if s.bias is None else s.bias + b
        s.bias_name = f"{s.bias_name} + {c.name}" if s.bias_name else c.name
        return
    k = float(c.dense().reshape(-1)[0])
    if c.array.size != 1 or not math.isfinite(k) or k == 0 or (s.softcap and k < 0):
        raise NotAHead(f"multiplies the scores by {c.name!r}, which is not one number")
    k = 1 / k if node.op == "Div" else k
    s.factor = s.factor * k
    s.factor = 1.0 if abs(s.factor - 1) < 1e-6 else s.factor  # a soft-cap's 30 * (z / 30)
    s.bias = None if s.bias is None else s.bias * np.float32(k)
    s.softcap = s.softcap and s.softcap * k
    s.notes.append(f"scores are {'divided' if node.op == 'Div' else 'multiplied'} by a constant")


def _take_link(graph: Graph, s: Scores, node: Node) -> None:
    if s.link is not None:
        raise NotAHead(f"has a {node.op} after a {s.link}")
    if node.op == "Sigmoid":
        s.link, s.link_note = "sigmoid", "a Sigmoid of each score"
        return
    old = graph.opset < 13 and "spelled" not in node.attributes
    axis, rank = node.integer("axis", 1 if old else -1), graph.rank(node.input(0))
    name = f"{node.op}{' written out' if 'spelled' in node.attributes else ''}"
    if s.axis is None:
        s.link, s.link_note = "softmax", f"a {name} (its axis {axis} is taken to be that of the labels)"
        return
    same = _same_axis(axis, s.axis, rank)
    if same and old and rank is not None and s.axis % rank != rank - 1 and not s.single:
        same = False  # before opset 13 a Softmax runs over its axis and all that follow
    if same is False:
        s.link_note = f"the {name} runs over axis {axis} and not over the labels, so softmax over them is assumed"
        s.notes.append(f"a {node.op} over another axis follows")
        return
    s.link, s.link_note = "softmax", f"a {name} over the labels (axis {axis})"


def _same_axis(a: int, b: int, rank: int | None) -> bool | None:
    """Whether two axes are the same; None where that needs a rank that is not known."""
    if rank is not None and rank > 0:
        return a % rank == b % rank
    return a == b if (a < 0) == (b < 0) else None


def _moved(graph: Graph, s: Scores, node: Node) -> int | None:
    """Where a change of shape puts the labels; None where that cannot be told."""
    axis, before, after = s.axis, graph.rank(node.input(0)), graph.rank(node.outputs[0])
    if axis is None or node.op in ("Identity", "Cast", "Dropout", "GlobalAveragePool", "Resize", "Upsample", "ZipMap"):
        return axis
    if node.op == "Transpose" and (perm := node.integers("perm")):
        axis += len(perm) if axis < 0 else 0
        return perm.index(axis) if axis in perm else None
    if node.op == "Reshape":
        shape = graph.shape_of(node.input(1))
        if shape is None:
            return None
        if shape.count(s.n) == 1:
            return shape.index(s.n) - (len(shape) if axis == -1 and shape[-1] == s.n else 0)
        here = shape[axis] if -len(shape) <= axis < len(shape) else None
        if here is not None and here > 0 and here != s.n:
            raise NotAHead(f"splits the {s.n} scores into the shape {_shaped([d or 0 for d in shape])}")
        return len(shape) - 1 if len(shape) == 2 else None
    if node.op == "Flatten":
        at = node.integer("axis", 1)
        last = axis == -1 or (before is not None and axis == before - 1)
        return 1 if before == 2 or (axis == at == 1) or (last and before is not None and at == before - 1) else None
    if node.op == "Slice":
        return _sliced(graph, s, node, axis, before)
    if node.op == "Gather":
        at = node.integer("axis", 0)
        if _same_axis(at, axis, before):
            raise NotAHead("picks some of the scores with a Gather")
        index = graph.rank(node.input(1))
        if axis < 0 or index is None:
            return axis if axis == -1 else None
        return axis + index - 1 if at >= 0 and at < axis else axis
    axes = graph.axes(node)
    if axes is None or before is None or after is None or node.op not in ("Squeeze", "Unsqueeze", "ReduceMean"):
        return None
    at = axis % before
    if node.op == "Unsqueeze":
        kept = [i for i in range(after) if i not in [a % after for a in axes]]
        return kept[at] if at < len(kept) else None
    gone = [a % before for a in axes]
    if at in gone and s.n > 1:
        raise NotAHead(f"reduces the scores of all labels with a {node.op}")
    return at if node.op == "ReduceMean" and node.integer("keepdims", 1) else at - sum(a < at for a in gone)


def _sliced(graph: Graph, s: Scores, node: Node, axis: int, rank: int | None) -> int:
    """A Slice of positions changes nothing; one of labels (padding cut off) cuts the rows too."""
    starts, ends, axes = (
        graph.integers(node.input(i)) if node.input(i) else node.integers(k)
        for i, k in ((1, "starts"), (2, "ends"), (3, "axes"))
    )
    axes = axes if axes is not None else tuple(range(len(starts or ())))
    steps = graph.integers(node.input(4)) if node.input(4) else None
    for i, a in enumerate(axes):
        if not _same_axis(a, axis, rank):
            continue
        if starts is None or ends is None or max(len(starts), len(ends)) <= i or (steps and steps[i] != 1):
            raise NotAHead("picks some of the scores with a Slice")
        first, last, _ = slice(starts[i], ends[i]).indices(s.n)
        if s.span != slice(None) or first >= last:
            raise NotAHead("slices the scores twice, or away")
        if (first, last) != (0, s.n):
            s.span = slice(first, last)
            s.notes.append(f"only rows {first} to {last - 1} reach the output")
    return axis


def _rows(w: Constant, factor: float, span: slice) -> Rows:
    """The rows as stored, with what must be done to them when they are read."""
    stored = w.array[span]
    if w.scale is not None and w.zero is not None:
        if w.axis in (None, 0):
            scale, zero = (v if v.ndim == 0 else v[span] for v in (w.scale, w.zero))
            return Rows(read_only(stored), unpack=Affine8(scale * np.float32(factor), zero), kind=w.array.dtype.name)
        stored = w.dense()[span]  # scales along the features: no row has one scale
    elif not check.is_float(stored.dtype):
        raise LoadError(
            f"load: the weight {w.name!r} has type {stored.dtype}; floats, or integers with a scale, will do."
        )
    stored = read_only(stored)
    return Rows(stored) if factor == 1 else Rows(stored, unpack=Scaled(factor), kind=stored.dtype.name)


# -- labels ---------------------------------------------------------------------------------------------------------


def _class_labels(node: Node) -> list[str]:
    texts, numbers = (node.attributes.get(f"classlabels_{k}") for k in ("strings", "ints"))
    return [v.decode("utf-8", "replace") for v in texts] if texts else [str(v) for v in numbers or []]


def _labels(graph: Graph, n: int, node: Node | None) -> tuple[list[str] | None, str]:
    """Names of the rows from the classifier or the metadata, and a sentence on them."""
    if node is not None and node.op == "LinearClassifier":
        names = _class_labels(node)
        return (names, "the class labels of the LinearClassifier") if len(names) == n else (None, "none of that count")
    misses: list[str] = []
    for key in ("character", "names", "classes", "labels", "class_names"):
        for names in _spellings(key, graph.metadata.get(key, "")):
            if len(names) == n:
                return names, f"metadata {key!r}"
            if key == "character" and len(names) == n - 2:
                return ["blank", *names, " "], "metadata 'character', with the CTC blank before and the space after it"
            if key == "character" and len(names) == n - 1:
                return ["blank", *names], "metadata 'character', with the CTC blank before it"
            misses.append(f"metadata {key!r} has {len(names)} entries for {n} rows")
    return (
        None,
        f"none ({misses[0]}); rows go by their numbers" if misses else "none in the file; rows go by their numbers",
    )


def _spellings(key: str, text: str) -> Iterator[list[str]]:
    """The lists that a metadata text may mean."""
    if not text.strip() or len(text) > MOST_METADATA:
        return
    if key == "character":
        yield text.removesuffix("\n").split("\n")
        return
    value = None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an odd backslash in a name
                value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    if isinstance(value, dict):
        numbered = {str(k): v for k, v in value.items()}
        if all(str(i) in numbered for i in range(len(numbered))):
            yield [str(numbered[str(i)]) for i in range(len(numbered))]
        return
    if isinstance(value, (list, tuple)):
        yield [str(v) for v in value]
        return
    yield text.strip().split("\n")
    yield [part.strip() for part in text.split(",")]
