"""What feeds the head of an ONNX graph: the activation before it, and so which embeddings can reach it.

Bounds are those of the network in exact arithmetic. Rounding that is coarse enough to cross them (8-bit activations,
16-bit floats) widens them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from gonio import check
from gonio.inputs import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Inputs, Nonnegative
from gonio.load.onnx_graph import Constant, Graph, Node, ops

MOST_DEPTH = 80  # a few Python frames each, so that no graph runs into the recursion limit
INF = math.inf

# The least values of  x sigmoid(x),  x Phi(x)  and  x tanh(softplus(x)),  rounded down.
SWISH, GELU, MISH = -0.2785, -0.1701, -0.3089
SELU = -1.0507010221481323 * 1.6732631921768188

# Each gives out some of the numbers it was given (or means of them), so bounds pass.
KEEPING = ops(
    "Identity Reshape Squeeze Unsqueeze Transpose Flatten Slice Gather GatherND GatherElements Split Expand Tile "
    "Dropout MaxPool GlobalAveragePool GlobalMaxPool ReduceMean ReduceMax ReduceMin DepthToSpace SpaceToDepth "
    "TopK Compress ReverseSequence"
)

FIXED: dict[str, tuple[float, float]] = {
    "Relu": (0, INF),
    "Tanh": (-1, 1),
    "Sigmoid": (0, 1),
    "HardSigmoid": (0, 1),
    "Softmax": (0, 1),
    "LogSoftmax": (-INF, 0),
    "Softplus": (0, INF),
    "Softsign": (-1, 1),
    "HardSwish": (-0.375, INF),
    "Gelu": (GELU, INF),
    "FastGelu": (GELU, INF),
    "BiasGelu": (GELU, INF),
    "Mish": (MISH, INF),
    "Exp": (0, INF),
    "Abs": (0, INF),
    "Sqrt": (0, INF),
    "Erf": (-1, 1),
    "Sin": (-1, 1),
    "Cos": (-1, 1),
    "LpNormalization": (-1, 1),
}
DEFAULT_ACTIVATIONS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}


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


def fed_by(
    graph: Graph, name: str, *, axis: int, width: int, half: np.dtype | None = None, rounding: Rounding | None = None
) -> tuple[Inputs, str, bool]:
    """The inputs of a head that contracts `axis` of the tensor `name`, a sentence on why, and whether it is a guess.

    `half` is the 16-bit type in which the activations are computed, `rounding` how they become integers.
    """
    norm = _norm(graph, name, axis, width)
    if norm is not None:
        inputs, seen = norm
        if rounding is None:
            return inputs, f"fed by {seen}", False
        gain = np.abs(inputs.gain) * math.sqrt(width)
        shift = inputs.shift if isinstance(inputs, AfterLayerNorm) else np.zeros(width)
        around = Bounds(float((shift - gain).min()), float((shift + gain).max()), seen)
        b = rounding.applied(around)
    else:
        b = Walk(graph).bounds(name)
        if rounding is not None:
            b = rounding.applied(b)
    if b is None or (b.low, b.high) == (-INF, INF):
        return AllInputs(), f"fed by {_source(graph, name)}, which bounds nothing, so all inputs are allowed", True
    if half is not None:
        b = _widened(b, half)
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
class Walk:
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
            return _gated(graph, name) or self._arithmetic(node, depth)
        if op in DEFAULT_ACTIVATIONS:
            return self._recurrent(node, name)
        if op == "Cast":
            b = self.bounds(node.input(0), depth)
            half = {10: np.dtype(np.float16), 16: np.dtype("V2")}.get(node.integer("to", 0))
            if b is None or node.integer("to", 0) not in (1, 10, 11, 16):
                return None
            return b if half is None else _widened(b, _bfloat16() if half.kind == "V" else half)
        if op == "Clip":
            low = _limit(graph, node, "min", 1, -INF)
            high = _limit(graph, node, "max", 2, INF)
            if low is None or high is None or not low <= high:
                return None
            inner = self.bounds(node.input(0), depth)  # a Clip from above may follow a Relu
            if inner is not None and max(low, inner.low) <= min(high, inner.high):
                return Bounds(max(low, inner.low), min(high, inner.high), f"Clip({low:g}, {high:g})")
            return Bounds(low, high, f"Clip({low:g}, {high:g})")
        if op in ("Elu", "Celu", "Selu"):
            default = SELU if op == "Selu" else -1.0
            low = default if op == "Selu" else -node.number("alpha", 1.0)
            return Bounds(low, INF, op) if low <= 0 and not (op == "Selu" and node.attributes) else None
        if op in ("Swish", "QuickGelu"):
            alpha = node.number("alpha", 1.0 if op == "Swish" else 1.702)
            return Bounds(SWISH / alpha, INF, op) if alpha > 0 else None
        if op == "ThresholdedRelu":
            return Bounds(0, INF, op) if node.number("alpha", 1.0) >= 0 else None
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
        if node.op == "Pad" and node.text("mode", "constant") == "constant":
            fill = self.graph.scalar(node.input(2)) if node.input(2) else node.number("value", 0.0)
            return None if fill is None else replace(b, low=min(b.low, fill), high=max(b.high, fill))
        if node.op == "AveragePool":
            zeros = node.integer("count_include_pad", 0) and any(node.integers("pads") or ())
            return replace(b, low=min(b.low, 0), high=max(b.high, 0)) if zeros else b
        linear = node.op in ("Resize", "Upsample") and node.text("mode", "nearest") != "cubic"
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
        given = node.attributes.get("activations")
        names = tuple(v.decode("utf-8", "replace").lower() for v in given if isinstance(v, bytes)) if given else ()
        default = DEFAULT_ACTIVATIONS[node.op]
        if names not in ((), default, default * 2) or name not in node.outputs[:2]:  # the third output is the cell
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


def _bfloat16() -> np.dtype:
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def _limit(graph: Graph, node: Node, name: str, at: int, default: float) -> float | None:
    """A limit of a Clip: an attribute in old opsets, an input in new ones; None where it is computed."""
    if node.input(at):
        return graph.scalar(node.input(at))
    return node.number(name, default)


# -- activations spelled out --------------------------------------------------------------------------------------


def _affine(graph: Graph, name: str) -> list[tuple[str, float, float]]:
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


def _gated(graph: Graph, name: str) -> Bounds | None:
    """x times a gate of x: swish, hard swish and gelu, however the factors are arranged."""
    base, k, shift = _affine(graph, name)[-1]
    product = graph.producers.get(base)
    if product is None or product.op != "Mul" or shift != 0 or len(product.inputs) != 2:
        return None
    for value, gate in (product.inputs, product.inputs[::-1]):
        gate_base, g_scale, g_shift = _affine(graph, gate)[-1]
        node = graph.producers.get(gate_base)
        if node is None:
            continue
        inner = {n: (c, d) for n, c, d in _affine(graph, node.input(0))}
        for x, v_scale, v_shift in _affine(graph, value):
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
        alpha = node.number("alpha", 0.2)
        slope, lift, top = alpha * c, alpha * d + node.number("beta", 0.5), 1.0
    elif node.op == "Clip" and offset == 0 and _limit(graph, node, "min", 1, -INF) == 0:
        slope, lift, top = c, d, _limit(graph, node, "max", 2, INF)
    else:
        return None
    # x clip(slope x + lift, 0, top) is least halfway to where the gate opens, if the gate is not full there yet.
    if top is None or slope <= 0 or not 0 <= lift / 2 <= top:
        return None
    return -lift * lift / (4 * slope), "hard swish (x * clip(x + 3, 0, 6) / 6)"


def _tidy(low: float) -> float:
    """-0.375 and its like, where factors stored in float32 (1/6, 1/sqrt(2)) leave the last digits astray."""
    return next((v for v in (SWISH, GELU, -0.375) if abs(low - v) < 1e-6), low)


# -- normalisations -----------------------------------------------------------------------------------------------


def _norm(graph: Graph, name: str, axis: int, width: int) -> tuple[AfterLayerNorm | AfterRMSNorm, str] | None:
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
        moved = _axis_before(graph, node, axis, width)
        if moved is None:
            return None
        name, axis = node.input(0), moved
    return None


def _axis_before(graph: Graph, node: Node, axis: int, width: int) -> int | None:
    """Where the features lay before a change of shape; None where that cannot be told or the operation is another."""
    rank, before = graph.rank(node.outputs[0]), graph.rank(node.input(0))
    if node.op in ("Identity", "Dropout") or (node.op == "Cast" and node.integer("to", 0) in (1, 10, 11, 16)):
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
        return 1 if before == 2 and axis == 1 and node.integer("axis", 1) == 1 else None
    if node.op == "Slice":
        given = graph.integers(node.input(3)) if node.input(3) else node.integers("axes")
        return axis if given is not None and axis not in [a % rank for a in given] else None
    if node.op == "Gather":
        at, index = node.integer("axis", 0) % max(before, 1), graph.rank(node.input(1))
        if index is None or at <= axis < at + index:
            return None
        return axis if axis < at else axis - index + 1
    axes = graph.axes(node)
    if axes is None:
        return None
    if node.op == "Unsqueeze":
        new = [a % rank for a in axes]
        return None if axis in new else axis - sum(a < axis for a in new)
    if node.op == "Squeeze" or (node.op == "ReduceMean" and not node.integer("keepdims", 1)):
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
        if node.integer("axis", -1) not in (-1, None if rank is None else rank - 1):
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
        if c is not None and c.array.size == width and c.array.shape[-1:] == (width,) and check.is_float(c.array.dtype):
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
        inner = _affine(graph, root.input(0))[-1]
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
