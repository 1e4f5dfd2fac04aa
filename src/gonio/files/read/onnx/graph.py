"""An ONNX model as a graph to walk: nodes by what they give out, and constants followed to where they are stored.

Nothing is executed: what folds into a constant (a transpose, a cast, a dequantisation) is done when it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.archive import read_only
from gonio.core.errors import LoadError
from gonio.files.read.onnx.tensors import MOST_AXES, array_of, described, dtype_of, problem, type_name

MOST_STEPS = 1000  # how far a walk goes before it gives up: a graph with a cycle must end it too


def ops(names: str) -> frozenset[str]:
    """A set of operations, written as a line of names."""
    return frozenset(names.split())


SAME_RANK = ops(
    "Identity Cast CastLike Dropout Relu Sigmoid Tanh Clip Softmax LogSoftmax LayerNormalization BatchNormalization "
    "Gelu Erf Sqrt Exp Log Neg Abs HardSwish HardSigmoid Elu Selu LeakyRelu PRelu Softplus Slice Pad MaxPool Swish "
    "AveragePool GlobalAveragePool GlobalMaxPool InstanceNormalization GroupNormalization Resize Upsample "
    "QuantizeLinear DequantizeLinear DynamicQuantizeLinear RMSNormalization SimplifiedLayerNormalization Mish "
    "Reciprocal Pow SkipLayerNormalization SkipSimplifiedLayerNormalization Expand Add Sub Mul Div MatMul"
)


@dataclass(frozen=True, eq=False)
class Node:
    """One operation: what goes in and out, by name."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    proto: Any = None

    def input(self, i: int) -> str:
        """The i-th input, "" where it is absent."""
        return self.inputs[i] if i < len(self.inputs) else ""

    def get(self, name: str, default: Any) -> Any:
        """An attribute of the type of the default, or the default."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, type(default)) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, None where it is absent."""
        value = self.attributes.get(name)
        return tuple(value) if isinstance(value, list) and all(isinstance(v, int) for v in value) else None


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant as stored; `scale`, `zero` (and `axis`, None for one scale in all) where it is quantised."""

    name: str
    array: np.ndarray
    scale: np.ndarray | None = None
    zero: np.ndarray | None = None
    axis: int | None = None

    @property
    def is_real(self) -> bool:
        """Whether it stands for real numbers, and is no list of integers, truths or texts."""
        return self.scale is not None or checks.is_float(self.array.dtype)

    def dense(self) -> np.ndarray:
        """The numbers it stands for, in a float type."""
        if self.scale is None or self.zero is None:
            return checks.wide(self.array) if checks.is_float(self.array.dtype) else self.array.astype(np.float64)
        shape = [1] * self.array.ndim
        if self.axis is not None:
            shape[self.axis] = -1
        return (self.array.astype(np.float64) - self.zero.reshape(shape)).astype(np.float32) * self.scale.reshape(shape)


@dataclass
class Graph:
    """The nodes, constants and metadata of a model file."""

    path: Path
    producers: dict[str, Node] = field(default_factory=dict)
    consumers: dict[str, list[Node]] = field(default_factory=dict)
    tensors: dict[str, Any] = field(default_factory=dict)  # name -> TensorProto, or an array that a node spells out
    outputs: list[str] = field(default_factory=list)
    shapes: dict[str, tuple[int | str | None, ...]] = field(default_factory=dict)  # as the file declares them
    metadata: dict[str, str] = field(default_factory=dict)
    opset: int = 1
    bytes_read: int = 0
    seconds_run: float = 0.0  # that pieces of it have been run
    _known: dict[str, Constant | None] = field(default_factory=dict)

    def problem(self, what: str) -> LoadError:
        """A complaint about this file."""
        return problem(self.path, what)

    def constant(self, name: str, depth: int = 0) -> Constant | None:
        """The constant called `name`, followed through transposes, reshapes, casts and dequantisation; else None."""
        if name not in self._known:
            self._known[name] = None  # what a cycle meets
            self._known[name] = self._constant(name, depth)
        return self._known[name]

    def _constant(self, name: str, depth: int) -> Constant | None:
        if name in self.tensors:  # texts are names of labels, which no step after the scores computes with
            return None if self.describe(name)[1] == "string" else Constant(name, self._read(name))
        node = self.producers.get(name)
        if node is None or depth > 20 or not node.inputs or node.op not in _FOLDS:
            return None
        inner = self.constant(node.input(0), depth + 1)
        try:
            return None if inner is None else _FOLDS[node.op](self, node, inner)
        except (ValueError, IndexError, TypeError) as e:  # a perm, a shape or an axis that does not fit
            if isinstance(e, LoadError):
                raise
            raise self.problem(f"the {node.op} after the constant {inner and inner.name!r} does not fit it.") from None

    def _read(self, name: str) -> np.ndarray:
        t = self.tensors[name]
        if isinstance(t, np.ndarray):
            return t
        a = array_of(self.path, name, t)
        if isinstance(a, np.memmap):  # a file of its own, beside the model's
            self.bytes_read += a.nbytes
        return a

    def scalar(self, name: str) -> float | None:
        """A constant that is one number; None where it is not."""
        c = self.constant(name) if name else None
        return float(c.dense().reshape(-1)[0]) if c is not None and c.array.size == 1 else None

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A constant list of integers (axes, a shape)."""
        c = self.constant(name) if name else None
        return None if c is None or c.array.dtype.kind not in "iu" else tuple(int(v) for v in c.array.reshape(-1)[:64])

    def axes(self, node: Node, at: int = 1) -> tuple[int, ...] | None:
        """The axes of a Squeeze, Unsqueeze or Reduce: an attribute in old opsets, an input in new ones."""
        given = node.integers("axes")
        return given if given is not None else self.integers(node.input(at))

    def shape_of(self, name: str) -> tuple[int | None, ...] | None:
        """A shape that is computed in the graph, as far as constants tell it: (None, None, 64)."""
        known = self.integers(name)
        node = self.producers.get(name)
        if known is not None or node is None or node.op != "Concat":
            return known
        parts = [self.integers(i) for i in node.inputs]  # torch and paddle give each unknown length alone
        return tuple(v for part in parts for v in (part if part is not None else (None,)))

    def describe(self, name: str) -> tuple[tuple[int, ...], str]:
        """Shape and type of a stored tensor, without reading it."""
        return described(self.tensors[name])

    def rank(self, name: str) -> int | None:
        """How many axes a tensor has, where the file tells."""
        more = 0
        for _ in range(MOST_STEPS):
            if name in self.shapes or name in self.tensors:
                return len(self.shapes[name] if name in self.shapes else self.describe(name)[0]) + more
            node = self.producers.get(name)
            if node is None:
                return None
            if node.op in ("Gemm", "Flatten"):
                return 2 + more
            if node.op in ("Reshape", "Transpose"):
                shape = self.shape_of(node.input(1)) if node.op == "Reshape" else node.integers("perm")
                return None if shape is None else len(shape) + more
            if node.op in ("Squeeze", "Unsqueeze") and self.axes(node) is not None:
                more += len(self.axes(node) or ()) * (1 if node.op == "Unsqueeze" else -1)
            elif node.op == "Gather" and (node.input(1) in self.tensors or node.input(1) in self.shapes):
                more += (self.rank(node.input(1)) or 0) - 1
            elif node.op in ("ReduceMean", "ReduceMax", "ReduceSum") and self.axes(node) is not None:
                more -= 0 if node.get("keepdims", 1) else len(self.axes(node) or ())
            elif node.op in ("Conv", "FusedConv") and node.input(1) in self.tensors:
                return len(self.describe(node.input(1))[0]) + more
            elif node.op not in SAME_RANK:
                return None
            name = next((i for i in node.inputs if i and i not in self.tensors), "")
        return None


def _dequantize(graph: Graph, node: Node, c: Constant) -> Constant:
    scale, zero = graph.constant(node.input(1)), graph.constant(node.input(2)) if node.input(2) else None
    if scale is None or (zero is None and node.input(2)) or c.scale is not None:
        raise graph.problem(f"the scale of {c.name!r} is computed while the model runs; a constant one is needed.")
    return quantized(graph, c, scale, zero, node.get("axis", 1))


def quantized(graph: Graph, c: Constant, scale: Constant, zero: Constant | None, axis: int) -> Constant:
    """`c` read as  (q - zero) * scale,  one scale for all or one for each index of `axis`."""
    s = scale.dense().astype(np.float32)
    z = np.zeros(1) if zero is None else zero.dense()
    if not np.isfinite(s).all() or not np.isfinite(z).all():
        raise graph.problem(f"the scale of {c.name!r} is not finite; fetch the file again.")
    if s.size == 1 and z.size == 1:
        return replace(c, scale=s.reshape(()), zero=z.reshape(()), axis=None)
    axis += c.array.ndim if axis < 0 else 0
    size = c.array.shape[axis]
    if s.ndim > 1 or s.size not in (1, size) or z.size not in (1, size):
        raise graph.problem(
            f"{c.name!r} has shape {c.array.shape} and scales of shape {s.shape}; one scale per label is handled and "
            f"scales by block are not, so export the last layer in 8 bits per channel, or in float."
        )
    spread = [np.broadcast_to(v.reshape(-1), (size,)) for v in (s, z)]
    return replace(c, scale=spread[0], zero=spread[1], axis=axis)


def _reshape(graph: Graph, node: Node, c: Constant) -> Constant | None:
    old, array = c.array.shape, c.array
    if node.op == "Reshape":
        shape = graph.integers(node.input(1))
        if shape is None:
            return None
        array = array.reshape([old[i] if d == 0 and not node.get("allowzero", 0) else d for i, d in enumerate(shape)])
    elif node.op == "Flatten":
        array = array.reshape(math.prod(old[: node.get("axis", 1)]), -1)
    else:
        axes = graph.axes(node)
        if node.op == "Unsqueeze" and (axes is None or len(axes) > MOST_AXES):
            return None
        array = np.squeeze(array, axes) if node.op == "Squeeze" else np.expand_dims(array, axes or ())
    if c.axis is None:
        return replace(c, array=read_only(array))
    kept = [i for i, d in enumerate(array.shape) if d == old[c.axis]]
    return replace(c, array=read_only(array), axis=kept[0]) if len(kept) == 1 and old[c.axis] > 1 else None


def _transpose(graph: Graph, node: Node, c: Constant) -> Constant:
    perm = node.integers("perm") or tuple(range(c.array.ndim))[::-1]
    axis = None if c.axis is None else perm.index(c.axis)
    return replace(c, array=c.array.transpose(perm), axis=axis)


def _cast(graph: Graph, node: Node, c: Constant) -> Constant | None:
    to = dtype_of(type_name(node.get("to", 0)))
    if to is None or c.scale is not None:
        return c if c.scale is not None and to == np.float32 else None
    if checks.is_float(to) and checks.is_float(c.array.dtype) and to.itemsize >= c.array.dtype.itemsize:
        return c  # widening changes no value, and rows are widened a block at a time anyway
    return replace(c, array=read_only(c.array.astype(to)))


_FOLDS = {"Identity": lambda graph, node, c: c, "Cast": _cast, "Transpose": _transpose, "DequantizeLinear": _dequantize}
_FOLDS |= dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _reshape)


def shaped(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "a scalar"
