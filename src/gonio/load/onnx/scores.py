"""From the product forwards to the output: which axis the labels lie on, and what each step does to their scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gonio import check
from gonio.errors import LoadError
from gonio.head import Link
from gonio.load.draft import read_only
from gonio.load.onnx.graph import Constant, Graph, Node, shaped
from gonio.load.onnx.product import NotAHead, Product
from gonio.rows import Affine8, Rows, Scaled


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


def forwards(graph: Graph, p: Product, path: list[Node]) -> Scores:
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
        raise NotAHead(f"adds a constant of shape {shaped(a.shape)} to the scores of {n} labels")
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
            raise NotAHead(f"splits the {s.n} scores into the shape {shaped([d or 0 for d in shape])}")
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


def rows_of(w: Constant, factor: float, span: slice) -> Rows:
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
