"""Activations before the head that are spelled out: gates such as swish and hard swish, gelu."""

from __future__ import annotations

import math

from gonio.files.read.onnx.bounds import INF, Bounds, limit
from gonio.files.read.onnx.graph import Graph, Node

# The least values of  x sigmoid(x),  x Phi(x)  and  x tanh(softplus(x)),  rounded down.
SWISH, GELU, MISH = -0.2785, -0.1701, -0.3089


def affine(graph: Graph, name: str) -> list[tuple[str, float, float]]:
    """`name` as  scale * base + shift  for each base that sums and products with single numbers lead back to."""
    scale, shift = 1.0, 0.0
    out = [(name, scale, shift)]
    for _ in range(8):
        node = graph.producers.get(name)
        if node is None or node.op not in ("Add", "Sub", "Mul", "Div") or len(node.inputs) != 2:
            break
        name, k = node.inputs[0], graph.scalar(node.inputs[1])
        if k is None and node.op in ("Add", "Mul"):
            name, k = node.inputs[1], graph.scalar(node.inputs[0])
        if k is None or not math.isfinite(k) or (node.op in ("Mul", "Div") and k == 0):
            break
        if node.op in ("Add", "Sub"):
            shift += scale * k if node.op == "Add" else -scale * k
        else:
            scale = scale * k if node.op == "Mul" else scale / k
        out.append((name, scale, shift))
    return out


def gated(graph: Graph, name: str) -> Bounds | None:
    """x times a gate of x: swish, hard swish and gelu, however the factors are arranged."""
    base, k, shift = affine(graph, name)[-1]
    product = graph.producers.get(base)
    if product is None or product.op != "Mul" or shift != 0 or len(product.inputs) != 2:
        return None
    for value, gate in (product.inputs, product.inputs[::-1]):
        gate_base, g_scale, g_shift = affine(graph, gate)[-1]
        node = graph.producers.get(gate_base)
        if node is None:
            continue
        inner = {n: (c, d) for n, c, d in affine(graph, node.input(0))}
        for x, v_scale, v_shift in affine(graph, value):
            factor = k * v_scale * g_scale
            if v_shift == 0 and x in inner and factor > 0:
                low = _least(graph, node, *inner[x], g_shift / g_scale)
                if low is not None:
                    least, seen = low
                    return Bounds(_tidy(factor * least), INF, seen)
    return None


def _least(graph: Graph, node: Node, c: float, d: float, offset: float) -> tuple[float, str] | None:
    """The least value of  x (gate(c x + d) + offset),  and the activation's name."""
    if c <= 0:
        return None
    if node.op == "Sigmoid" and d == 0 and offset == 0:
        return SWISH / c, "swish (x * sigmoid(x))" if c == 1 else f"swish (x * sigmoid({c:g} x))"
    if node.op == "Erf" and d == 0 and abs(offset - 1) < 1e-6:
        return GELU * 2 / (c * math.sqrt(2)), "Gelu (x * (1 + erf(x / sqrt(2))) / 2)"
    if node.op == "HardSigmoid" and offset == 0:
        alpha = node.get("alpha", 0.2)
        slope, lift, top = alpha * c, alpha * d + node.get("beta", 0.5), 1.0
    elif node.op == "Clip" and offset == 0 and limit(graph, node, "min", 1, -INF) == 0:
        slope, lift, top = c, d, limit(graph, node, "max", 2, INF)
    else:
        return None
    # x clip(slope x + lift, 0, top) is least halfway to where the gate opens, if the gate is not full there yet.
    if top is None or slope <= 0 or not 0 <= lift / 2 <= top:
        return None
    return -lift * lift / (4 * slope), "hard swish (x * clip(x + 3, 0, 6) / 6)"


def _tidy(low: float) -> float:
    """-0.375 and its like, where factors stored in float32 (1/6, 1/sqrt(2)) leave the last digits astray."""
    return next((v for v in (SWISH, GELU, -0.375) if abs(low - v) < 1e-6), low)
