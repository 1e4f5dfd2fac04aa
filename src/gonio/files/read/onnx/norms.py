"""Normalisations before the head, as one operator or spelled out."""

from __future__ import annotations

import numpy as np

from gonio.core import checks
from gonio.core.inputs import AfterLayerNorm, AfterRMSNorm
from gonio.files.read.onnx.activations import affine
from gonio.files.read.onnx.bounds import MOST_DEPTH
from gonio.files.read.onnx.graph import Constant, Graph, Node


def norm_before(graph: Graph, name: str, axis: int, width: int) -> tuple[AfterLayerNorm | AfterRMSNorm, str] | None:
    """The LayerNorm or RMSNorm that feeds the head, if it normalises exactly the axis that the head contracts."""
    for _ in range(MOST_DEPTH):
        node = graph.producers.get(name)
        if node is None:
            return None
        rank = graph.rank(name)
        if axis == -1 or (rank is not None and axis == rank - 1):
            found = _norm_at(graph, node, name, width)
            if found is not None:
                return found
        elif node.op.endswith("Normalization"):
            return None
        moved = axis_before(graph, node, axis, width)
        if moved is None:
            return None
        name, axis = node.input(0), moved
    return None


def axis_before(graph: Graph, node: Node, axis: int, width: int) -> int | None:
    """Where the features lay before a change of shape; None where that cannot be told or the operation is another."""
    rank, before = graph.rank(node.outputs[0]), graph.rank(node.input(0))
    if node.op in ("Identity", "Dropout") or (node.op == "Cast" and node.get("to", 0) in (1, 10, 11, 16)):
        return axis
    if node.op == "Transpose":
        perm = node.integers("perm")
        return perm[axis] if perm and -len(perm) <= axis < len(perm) else None
    if node.op == "Reshape":
        shape = graph.shape_of(node.input(1))
        last = axis in (-1, len(shape) - 1) if shape else False
        return -1 if shape and last and shape[-1] == width else None
    if rank is None or before is None:
        return None
    axis += rank if axis < 0 else 0
    if node.op == "Flatten":
        return before - 1 if axis == 1 and node.get("axis", 1) % max(before, 1) == before - 1 else None
    if node.op == "Slice":
        given = graph.integers(node.input(3)) if node.input(3) else node.integers("axes")
        return axis if given is not None and axis not in [a % rank for a in given] else None
    if node.op == "Gather":
        at, index = node.get("axis", 0) % max(before, 1), graph.rank(node.input(1))
        if index is None or at <= axis < at + index:
            return None
        return axis if axis < at else axis - index + 1
    axes = graph.axes(node)
    if axes is None:
        return None
    if node.op == "Unsqueeze":
        new = [a % rank for a in axes]
        return None if axis in new else axis - sum(a < axis for a in new)
    if node.op == "Squeeze" or (node.op == "ReduceMean" and not node.get("keepdims", 1)):
        kept = [i for i in range(before) if i not in [a % before for a in axes]]
        return kept[axis] if axis < len(kept) else None
    if node.op == "ReduceMean":  # means over positions stay inside the solid ellipsoid
        return axis if axis not in [a % before for a in axes] else None
    return None


def _norm_at(graph: Graph, node: Node, name: str, width: int) -> tuple[AfterLayerNorm | AfterRMSNorm, str] | None:
    at = {"SkipLayerNormalization": 2, "SkipSimplifiedLayerNormalization": 2}.get(node.op, 1)
    if node.op in ("LayerNormalization", "SkipLayerNormalization"):
        return _made(graph, node.op, node, node.input(at), node.input(at + 1), width)
    if node.op in ("RMSNormalization", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"):
        return _made(graph, node.op, node, node.input(at), None, width)
    gain = shift = ""
    if node.op == "Add":
        name, shift = _split_vector(graph, node, width)
        node = _beyond_casts(graph, name) or node
    if node.op == "Mul":
        core, gain = _split_vector(graph, node, width)
        node = _beyond_casts(graph, core) or node if gain else node
    centred = _normalised(graph, node)
    if centred is None or (shift and not centred):
        return None
    return _made(graph, "LayerNorm" if centred else "RMSNorm", None, gain, shift if centred else None, width)


def _made(
    graph: Graph, seen: str, node: Node | None, gain: str, shift: str | None, width: int
) -> tuple[AfterLayerNorm | AfterRMSNorm, str] | None:
    if node is not None and node.outputs and "axis" in node.attributes:
        rank = graph.rank(node.outputs[0])
        if node.get("axis", -1) not in (-1, None if rank is None else rank - 1):
            return None
    parts: list[np.ndarray] = []
    for name, default in ((gain, 1.0), (shift, 0.0)):
        c = graph.constant(name) if name else Constant("", np.full(width, default, np.float32))
        if c is None or c.array.size != width or not np.isfinite(c.dense()).all():
            return None
        parts.append(c.dense().reshape(width))
    if shift is None:
        return AfterRMSNorm(parts[0]), f"{seen} over the features, so x = gain * z with |z| < sqrt({width})"
    tail = f"so x = gain * z + shift with sum z = 0 and |z| < sqrt({width})"
    return AfterLayerNorm(parts[0], parts[1]), f"{seen} over the features, {tail}"


def _split_vector(graph: Graph, node: Node, width: int) -> tuple[str, str]:
    """The operands of a sum or product as (computed, constant vector of the features), "" where there is none."""
    for value, vector in (node.inputs[:2], node.inputs[:2][::-1]):
        c = graph.constant(vector)
        if (
            c is not None
            and c.array.size == width
            and c.array.shape[-1:] == (width,)
            and checks.is_float(c.array.dtype)
        ):
            return value, vector
    return node.outputs[0], ""


def _beyond_casts(graph: Graph, name: str) -> Node | None:
    node = graph.producers.get(name)
    for _ in range(8):
        if node is None or node.op not in ("Cast", "Identity"):
            break
        node = graph.producers.get(node.input(0))
    return node


def _normalised(graph: Graph, node: Node) -> bool | None:
    """Whether x / sqrt(mean(x^2) + eps) is of a centred x; None if the node computes nothing of the kind."""
    if len(node.inputs) != 2 or node.op not in ("Div", "Mul"):
        return None
    for top, bottom in (node.inputs, node.inputs[::-1]) if node.op == "Mul" else (node.inputs,):
        root = _beyond_casts(graph, bottom)
        if node.op == "Mul":
            if root is None or root.op != "Reciprocal":
                continue
            root = _beyond_casts(graph, root.input(0))
        if root is None or root.op != "Sqrt":
            continue
        inner = affine(graph, root.input(0))[-1]
        mean = _beyond_casts(graph, inner[0])
        if inner[1] != 1 or inner[2] < 0 or mean is None or not _over_last(graph, mean):
            continue
        square = _beyond_casts(graph, mean.input(0))
        if square is None or len(square.inputs) != 2:
            continue
        x, y = square.inputs
        if not (square.op == "Pow" and graph.scalar(y) == 2) and not (square.op == "Mul" and x == y):
            continue
        of, squared = _centred(graph, top), _centred(graph, x)
        if of == squared:
            return of[1]
    return None


def _centred(graph: Graph, name: str) -> tuple[str, bool]:
    """(x, True) where `name` is x minus its mean, else (name, False); casts do not count."""
    for _ in range(8):
        node = graph.producers.get(name)
        if node is None or node.op not in ("Cast", "Identity"):
            break
        name = node.input(0)
    node = graph.producers.get(name)
    if node is not None and node.op == "Sub" and len(node.inputs) == 2:
        mean = graph.producers.get(node.inputs[1])
        if mean is not None and mean.input(0) == node.inputs[0] and _over_last(graph, mean):
            return node.inputs[0], True
    return name, False


def _over_last(graph: Graph, node: Node) -> bool:
    if node.op != "ReduceMean":
        return False
    axes, rank = graph.axes(node), graph.rank(node.input(0))
    return axes is not None and (axes == (-1,) or (rank is not None and axes == (rank - 1,)))
