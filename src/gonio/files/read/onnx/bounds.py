"""Bounds on what reaches the head, and the rounding of 8-bit numbers that widens them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gonio.core.inputs import AllInputs, Box, Inputs, Nonnegative
from gonio.files.read.onnx.graph import Graph, Node

MOST_DEPTH = 80  # a few Python frames each, so that no graph runs into the recursion limit
INF = math.inf


@dataclass(frozen=True)
class Bounds:
    """low <= x <= high for every number of a tensor, and what was seen that says so."""

    low: float
    high: float
    seen: str

    def inputs(self) -> Inputs:
        """The same as a set of embeddings."""
        if self.low == -INF and self.high == INF:
            return AllInputs()
        return Nonnegative() if (self.low, self.high) == (0, INF) else Box(self.low, self.high)

    def __str__(self) -> str:
        if self.low == -INF:
            return f"x <= {self.high:g}"
        return f"x >= {self.low:g}" if self.high == INF else f"{self.low:g} <= x <= {self.high:g}"

    def union(self, other: Bounds) -> Bounds:
        """Bounds that hold for both."""
        seen = self.seen if self.seen == other.seen else f"{self.seen} and {other.seen}"
        return Bounds(min(self.low, other.low), max(self.high, other.high), seen[:200])


@dataclass(frozen=True)
class Rounding:
    """How activations become 8-bit integers before the head: with scale and zero fixed, or found in each run."""

    kind: Literal["fixed", "dynamic", "unknown"]
    scale: float = 1.0
    zero: float = 0.0
    low: int = 0
    high: int = 255

    def applied(self, b: Bounds | None) -> Bounds | None:
        """Bounds of what comes back from 8 bits."""
        if self.kind == "fixed":
            step = np.float32(self.scale)
            least, most = self.low - self.zero, self.high - self.zero

            def back(steps: float) -> float:
                return float(np.float32(steps) * step)

            ends = [back(least), back(most)]
            if b is not None:  # rounding is monotone, so the ends of the old bounds show where the new ones lie
                old = [back(np.clip(np.rint(v / float(step)), least, most)) for v in (b.low, b.high)]
                ends = [max(ends[0], old[0]), min(ends[1], old[1])]
            return Bounds(ends[0], ends[1], f"{b.seen if b else 'activations'}, then 8 bits")
        if b is None or self.kind == "unknown":
            return None
        low, high = min(b.low, 0.0), max(b.high, 0.0)  # the range of a dynamic scale always holds zero
        if math.isfinite(low) and math.isfinite(high):
            low, high = low and low - (high - low) / 510, high and high + (high - low) / 510
        else:  # with a free scale, half a step is at most the distance from zero to the bound
            low, high = 2 * low, 2 * high
        return Bounds(low, high, f"{b.seen}, then 8 bits")


def rounding_of(graph: Graph, scale: str, zero: str) -> Rounding | None:
    """The rounding to 8 bits that a scale and a zero point (both constants) describe."""
    s = graph.scalar(scale)
    z = graph.constant(zero) if zero else None
    if s is None or not s > 0 or (zero and (z is None or z.array.size != 1 or z.array.dtype.kind not in "iu")):
        return None
    info = np.iinfo(np.uint8 if z is None else z.array.dtype)
    return Rounding("fixed", s, 0.0 if z is None else float(z.array.reshape(-1)[0]), int(info.min), int(info.max))


def rounding_before(graph: Graph, name: str) -> Rounding:
    """How the tensor of integers `name` was made from floats."""
    node = graph.producers.get(name)
    if node is not None and node.op == "DynamicQuantizeLinear":
        return Rounding("dynamic")
    fixed = rounding_of(graph, node.input(1), node.input(2)) if node and node.op == "QuantizeLinear" else None
    return fixed or Rounding("unknown")


def bfloat16() -> np.dtype:
    """The dtype bfloat16, which numpy itself does not have."""
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def limit(graph: Graph, node: Node, name: str, at: int, default: float) -> float | None:
    """A limit of a Clip: an attribute in old opsets, an input in new ones; None where it is computed."""
    if node.input(at):
        return graph.scalar(node.input(at))
    return node.get(name, default)
