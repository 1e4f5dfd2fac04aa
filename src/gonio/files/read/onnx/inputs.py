"""What feeds the head of an ONNX graph: the activation before it, and so which embeddings can reach it.

Bounds are those of the network in exact arithmetic. Rounding that is coarse enough to cross them (8-bit activations,
16-bit floats) widens them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from gonio.core.inputs import AllInputs, Inputs
from gonio.files.read.onnx.activations import GELU, MISH, SWISH, gated
from gonio.files.read.onnx.bounds import INF, MOST_DEPTH, Bounds, Rounding, bfloat16, limit, rounding_of
from gonio.files.read.onnx.graph import Graph, Node, ops
from gonio.files.read.onnx.norms import norm_before

SELU = -1.0507010221481323 * 1.6732631921768188
# Each gives out some of the numbers it was given (or means of them), so bounds pass.
KEEPING = ops(
    "Identity Reshape Squeeze Unsqueeze Transpose Flatten Slice Gather GatherND GatherElements Split Expand Tile "
    "Dropout MaxPool GlobalAveragePool GlobalMaxPool ReduceMean ReduceMax ReduceMin DepthToSpace SpaceToDepth "
    "TopK Compress ReverseSequence"
)


_RANGES = {
    (0, INF): "Relu Softplus Exp Abs Sqrt",
    (-1, 1): "Tanh Softsign Erf Sin Cos LpNormalization",
    (0, 1): "Sigmoid HardSigmoid Softmax",
    (-INF, 0): "LogSoftmax",
    (-0.375, INF): "HardSwish",
    (GELU, INF): "Gelu FastGelu BiasGelu",
    (MISH, INF): "Mish",
}
FIXED: dict[str, tuple[float, float]] = {op: ends for ends, names in _RANGES.items() for op in names.split()}
DEFAULT_ACTIVATIONS = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}


def fed_by(
    graph: Graph, name: str, *, axis: int, width: int, half: np.dtype | None = None, rounding: Rounding | None = None
) -> tuple[Inputs, str, bool]:
    """The inputs of a head that contracts `axis` of the tensor `name`, a sentence on why, and whether it is a guess.

    `half` is the 16-bit type in which the activations are computed, `rounding` how they become integers.
    """
    norm = norm_before(graph, name, axis, width)
    if norm is not None and rounding is None:
        return norm[0], f"fed by {norm[1]}", False
    if norm is not None:
        inputs, seen = norm
        gain, shift = inputs.gain_and_shift(width)
        gain = np.abs(gain) * math.sqrt(width)
        b: Bounds | None = Bounds(float((shift - gain).min()), float((shift + gain).max()), seen)
    else:
        b = InputWalk(graph).bounds(name)
    b = rounding.applied(b) if rounding is not None else b
    if b is None or (b.low, b.high) == (-INF, INF):
        return AllInputs(), f"fed by {_source(graph, name)}, which bounds nothing, so all inputs are allowed", True
    b = b if half is None else _widened(b, half)
    return b.inputs(), f"fed by {b.seen}, so {b}", False


def _widened(b: Bounds, half: np.dtype) -> Bounds:
    step = 2**-6 if half.name == "bfloat16" else 2**-9

    def slack(v: float) -> float:  # no rounding crosses a number that the type holds exactly
        return 0.0 if not math.isfinite(v) or float(np.array(v).astype(half)) == v else abs(v) * step

    return replace(b, low=b.low - slack(b.low), high=b.high + slack(b.high))


def _source(graph: Graph, name: str) -> str:
    """The first operation before `name` that is more than a change of shape."""
    for _ in range(MOST_DEPTH):
        node = graph.producers.get(name)
        if node is None:
            return f"the graph's own input {name!r}"
        if node.op not in KEEPING and node.op != "Cast":
            return node.op if node.op not in ("LSTM", "GRU", "RNN") else f"{node.op} with unusual settings"
        name = node.input(0)
    return "a long chain of reshapes"


@dataclass
class InputWalk:
    """Bounds of tensors, found by walking back to the operations that make them."""

    graph: Graph
    known: dict[str, Bounds | None] = field(default_factory=dict)

    def bounds(self, name: str, depth: int = 0) -> Bounds | None:
        """Bounds of every number of the tensor; None where nothing is known."""
        if name not in self.known:
            self.known[name] = None  # what a cycle meets
            node = self.graph.producers.get(name)
            if node is not None and depth < MOST_DEPTH:
                self.known[name] = self._of(node, name, depth + 1)
        return self.known[name]

    def _of(self, node: Node, name: str, depth: int) -> Bounds | None:
        graph, op = self.graph, node.op
        if op in FIXED:
            return Bounds(*FIXED[op], op)
        if op in KEEPING:
            return self.bounds(node.input(0), depth) if name == node.outputs[0] or op == "Split" else None
        if op in ("Add", "Sub", "Mul", "Div"):
            return gated(graph, name) or self._arithmetic(node, depth)
        if op in DEFAULT_ACTIVATIONS:
            return self._recurrent(node, name)
        if op == "Cast":
            b = self.bounds(node.input(0), depth)
            half = {10: np.dtype(np.float16), 16: np.dtype("V2")}.get(node.get("to", 0))
            if b is None or node.get("to", 0) not in (1, 10, 11, 16):
                return None
            return b if half is None else _widened(b, bfloat16() if half.kind == "V" else half)
        if op == "Clip":
            low = limit(graph, node, "min", 1, -INF)
            high = limit(graph, node, "max", 2, INF)
            if low is None or high is None or not low <= high:
                return None
            said = f"Clip({low:g}, {high:g})"
            inner = self.bounds(node.input(0), depth) or Bounds(-INF, INF, said)  # a Clip from above may follow a Relu
            ends = max(low, inner.low), min(high, inner.high)
            return Bounds(*ends, said) if ends[0] <= ends[1] else Bounds(low, high, said)
        if op in ("Elu", "Celu", "Selu"):
            low = SELU if op == "Selu" else -node.get("alpha", 1.0)
            return Bounds(low, INF, op) if low <= 0 and not (op == "Selu" and node.attributes) else None
        if op in ("Swish", "QuickGelu"):
            alpha = node.get("alpha", 1.0 if op == "Swish" else 1.702)
            return Bounds(SWISH / alpha, INF, op) if alpha > 0 else None
        if op == "ThresholdedRelu":
            return Bounds(0, INF, op) if node.get("alpha", 1.0) >= 0 else None
        if op == "DequantizeLinear":
            return self._dequantized(node, depth)
        return self._merged(node, depth)

    def _merged(self, node: Node, depth: int) -> Bounds | None:
        """Operations that bring several tensors together, or zeros in."""
        if node.op in ("Concat", "Where", "Max", "Min"):
            parts = [self.bounds(i, depth) or self._constant(i) for i in node.inputs[node.op == "Where" :]]
            if node.op in ("Max", "Min") and parts:
                side = max if node.op == "Max" else min
                free = Bounds(-INF, INF, node.op)
                low, high = (side(getattr(p or free, end) for p in parts) for end in ("low", "high"))
                return Bounds(low, high, "Relu" if (low, high) == (0, INF) else node.op)
            if not parts or None in parts:
                return None
            out = parts[0]
            for p in parts[1:]:
                out = out.union(p) if out and p else None
            return out
        b = self.bounds(node.input(0), depth)
        if b is None:
            return None
        if node.op == "Pad" and node.get("mode", "constant") == "constant":
            fill = self.graph.scalar(node.input(2)) if node.input(2) else node.get("value", 0.0)
            return None if fill is None else replace(b, low=min(b.low, fill), high=max(b.high, fill))
        if node.op == "AveragePool":
            zeros = node.get("count_include_pad", 0) and any(node.integers("pads") or ())
            return replace(b, low=min(b.low, 0), high=max(b.high, 0)) if zeros else b
        linear = node.op in ("Resize", "Upsample") and node.get("mode", "nearest") != "cubic"
        return b if node.op == "Pad" or linear else None

    def _constant(self, name: str) -> Bounds | None:
        c = self.graph.constant(name) if name else None
        if c is None:
            return None
        a = c.dense()
        low, high = float(a.min()), float(a.max())
        return Bounds(low, high, "a constant") if math.isfinite(low) and math.isfinite(high) else None

    def _arithmetic(self, node: Node, depth: int) -> Bounds | None:
        """Sums and products of two bounded tensors, one of which may be a constant."""
        if len(node.inputs) != 2:
            return None
        a, b = (self.bounds(i, depth) or self._constant(i) for i in node.inputs)
        if a is None or b is None:
            return None
        fixed = [s for s in (a, b) if s.seen != "a constant"]
        seen = " and ".join(dict.fromkeys(s.seen for s in fixed))[:200]
        if node.op == "Div":
            if b.low <= 0:
                return None
            b = Bounds(1 / b.high, 1 / b.low, b.seen)
        if node.op in ("Add", "Sub"):
            low, high = (b.low, b.high) if node.op == "Add" else (-b.high, -b.low)
            return Bounds(a.low + low, a.high + high, seen)
        corners = [0.0 if 0 in (p, q) else p * q for p in (a.low, a.high) for q in (b.low, b.high)]
        return Bounds(min(corners), max(corners), seen)

    def _recurrent(self, node: Node, name: str) -> Bounds | None:
        default, names = DEFAULT_ACTIVATIONS[node.op], [v.lower() for v in node.get("activations", [])]
        if names not in ([], default, default * 2) or name not in node.outputs[:2]:  # the third output is the cell
            return None
        if node.op == "GRU" and node.input(5) and not self._zero(node.input(5)):
            return None  # a GRU mixes the state it starts from into what it gives out
        return Bounds(-1, 1, node.op)

    def _zero(self, name: str) -> bool:
        for _ in range(MOST_DEPTH):
            c = self.graph.constant(name)
            node = self.graph.producers.get(name)
            if c is not None:
                return not c.dense().any()
            if node is None or node.op not in KEEPING | {"ConstantOfShape"}:
                return False
            if node.op == "ConstantOfShape":
                value = node.attributes.get("value")
                return value is None or not any(value.raw_data or value.float_data)
            name = node.input(0)
        return False

    def _dequantized(self, node: Node, depth: int) -> Bounds | None:
        before = self.graph.producers.get(node.input(0))
        inner = self.bounds(before.input(0), depth) if before and before.op == "QuantizeLinear" else None
        fixed = rounding_of(self.graph, node.input(1), node.input(2))
        return None if fixed is None else fixed.applied(inner)
