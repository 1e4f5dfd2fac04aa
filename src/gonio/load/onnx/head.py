"""The output head of an ONNX model: found by walking back from the outputs, never by running anything.

Backwards from an output, through changes of shape, the link (Softmax, Sigmoid, also spelled out), scales and the bias,
to the product with a constant. Then forwards again along that path, to see which axis the labels lie on and what each
step does to their scores.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from gonio import check
from gonio.load.draft import Draft
from gonio.load.onnx.file import read
from gonio.load.onnx.graph import Graph, Node, ops, shaped
from gonio.load.onnx.inputs import fed_by
from gonio.load.onnx.labels import labels_of
from gonio.load.onnx.product import FOUR_BIT, PRODUCTS, NotAHead, product_at
from gonio.load.onnx.scores import Scores, forwards, rows_of
from gonio.rows import Rows

SHAPES = ops(
    "Identity Cast Dropout Reshape Squeeze Unsqueeze Transpose Flatten Slice Gather GatherND GatherElements ReduceMean "
    "GlobalAveragePool Resize Upsample ArgMax TopK ReduceMax Expand QuantizeLinear DequantizeLinear ZipMap Normalizer "
    "Softmax LogSoftmax Sigmoid Log Tanh"
)


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
    rows = rows_of(p.weight, scores.factor, scores.span)
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
    out.labels, out.decided["labels"] = labels_of(graph, n, p.node)
    out.tensors = {"W": p.weight.name} | ({"bias": scores.bias_name} if bias is not None else {})
    out.bytes_read = graph.bytes_read
    return out


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
            f"{tensor!r} is {shaped(shape)} {kind} and no product of the graph uses it as rows of labels; "
            f"the tables are: {_candidates(graph)}."
        )
    out = Draft(str(graph.path), "onnx", Rows(c.array), bytes_read=graph.bytes_read, tensors={"W": tensor})
    out.decide("weight", f"{tensor}, named by the caller; no product uses it, so its rows are taken as stored")
    out.decide("bias", "no product uses the table, so none")
    out.labels, out.decided["labels"] = labels_of(graph, c.array.shape[0], None)
    return out


def _candidates(graph: Graph, most: int = 8) -> str:
    shown: list[str] = []
    for name in graph.tensors:
        shape, kind = graph.describe(name)
        if len(shape) == 2 and min(shape) > 0 and ("float" in kind or kind in ("int8", "uint8")):
            shown.append(f"{name} ({shaped(shape)} {kind})")
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return (", ".join(shown[:most]) + more) or "but no constant of the file has two axes"


def _scores(graph: Graph, output: str) -> Scores:
    """The scores behind a tensor, or NotAHead with the reason."""
    name, path = output, []
    for _ in range(64):
        node = graph.producers.get(name)
        if node is None:
            raise NotAHead("comes straight from the graph's input" if name not in graph.tensors else "is a constant")
        product = product_at(graph, node)
        if product is not None:
            return forwards(graph, product, path[::-1])
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
