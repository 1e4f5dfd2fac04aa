"""Runs a piece of a graph, in the process that sandbox.py starts for it.

Floats are computed in float64, and 8-bit operators without their rounding, x -> x / scale + zero: it is the exact
arithmetic of the graph that a head is compared with.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

MOST_ANSWER = 1 << 30  # bytes


class GraphError(Exception):
    """A piece of a graph that cannot be run."""


def limit(memory: int, seconds: int) -> None:
    """At most so many bytes more than now, and so many seconds of computing from now on."""
    try:
        import resource
    except ImportError:  # Windows: the clock of sandbox.py alone
        return
    bounds = [(resource.RLIMIT_CPU, int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + seconds + 1)]
    if os.path.exists("/proc/self/statm"):
        with open("/proc/self/statm", encoding="ascii") as f:
            bounds.append((resource.RLIMIT_AS, int(f.read().split()[0]) * resource.getpagesize() + memory))
    for which, value in bounds:
        hard = resource.getrlimit(which)[1]
        resource.setrlimit(which, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def run(piece: dict[str, Any], memory: int, seconds: int) -> dict[str, np.ndarray]:
    """The tensors `keep` of a model, stacked over the runs; `feeds` holds the tensor `start` of each run."""
    limit(memory, seconds)
    try:
        kept = _run(**piece)
    except MemoryError:
        raise
    except Exception as e:  # a graph can be wrong in any way
        raise GraphError(f"{type(e).__name__}: {e}"[:200]) from None
    if sum(a.nbytes for a in kept.values()) > MOST_ANSWER:
        raise MemoryError
    return kept


def _run(
    raw: bytes, constants: dict[str, np.ndarray], start: str, feeds: np.ndarray, keep: list[str]
) -> dict[str, Any]:
    import onnx
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    model = onnx.ModelProto.FromString(raw)
    old = model.opset_import[0].version < 13
    for node in model.graph.node:
        for a in node.attribute:
            if node.op_type == "Cast" and a.name == "to" and a.i in (1, 10, 16):
                a.i = onnx.TensorProto.DOUBLE
        if old and node.op_type in OLD and not node.attribute:
            node.attribute.append(onnx.helper.make_attribute("axis", 1))

    def as_operator(domain: str, name: str, function: Callable[..., Any]) -> type:
        def _run(self: OpRun, *args: Any, **attributes: Any) -> tuple:
            out = function(*args, **attributes)
            return out if isinstance(out, tuple) else (np.asarray(out),)

        return type(name, (OpRun,), {"op_domain": domain, "_run": _run})

    tables = {"": STANDARD | (OLD if old else {})} | OTHER
    ops = [as_operator(d, n, f) for d, table in tables.items() for n, f in table.items()]
    evaluator = ReferenceEvaluator(model, new_ops=ops)
    constants = {n: _f(a) if a.dtype.kind == "f" else a for n, a in constants.items()}
    with np.errstate(all="ignore"):
        runs = [evaluator.run(None, constants | {start: x}, intermediate=True) for x in feeds]
    kept = {name: [np.asarray(values[name]) for values in runs] for name in keep}  # type: ignore[call-overload]
    return {n: np.stack(k) for n, k in kept.items() if k[0].dtype.kind in "iufb" and len({a.shape for a in k}) == 1}


# -- operators in exact arithmetic ------------------------------------------------------------------------------------


def _f(v: Any) -> np.ndarray:
    return np.asarray(0.0 if v is None else v, np.float64)


def _at(v: Any, x: np.ndarray, axis: int) -> np.ndarray:
    """One number for all of x, or one for each index of its axis."""
    v = _f(v)
    return v.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]) if v.size > 1 else v.reshape(())


def _round(x: Any, scale: Any, zero: Any = None, *, axis: int = 1, **_: Any) -> np.ndarray:
    return x if scale is None else x / _at(scale, x, axis) + _at(zero, x, axis)


def _back(q: Any, scale: Any, zero: Any = None, *, axis: int = 1, **_: Any) -> np.ndarray:
    return (_f(q) - _at(zero, q, axis)) * _at(scale, q, axis)


def _times(a: Any, b: Any) -> np.ndarray:
    return _f(a) @ _f(b)


def _gemm(a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0, **_) -> np.ndarray:
    return alpha * _times(a.swapaxes(-1, -2) if transA else a, b.swapaxes(-1, -2) if transB else b) + beta * _f(c)


def _conv(x, w, b=None, **_) -> np.ndarray:
    y = np.moveaxis(
        _times(np.moveaxis(x, 1, -1), w.reshape(w.shape[:2]).T), -1, 1
    )  # product.py lets 1x1 kernels through
    return y + _at(b, y, 1)


def _qgemm(a, sa, za, b, sb, zb, c=None, sy=None, zy=None, *, alpha=1.0, transB=0, **turned) -> np.ndarray:
    y = _gemm(_back(a, sa, za), _back(b, sb, zb, axis=1 - transB), alpha=alpha, transB=transB, **turned)
    return _round(y + alpha * _f(c) * _f(sa) * _f(sb), sy, zy)


def _qconv(x, sx, zx, w, sw, zw, sy, zy, b=None, **_) -> np.ndarray:
    return _round(_conv(_back(x, sx, zx), _back(w, sw, zw, axis=0), _f(b) * _f(sx) * _f(sw)), sy, zy)


def log_softmax(z: np.ndarray, axis: int = -1, **_: Any) -> np.ndarray:
    """z - log sum exp z  over an axis and all that follow, as before opset 13."""
    flat = z.reshape((*z.shape[: axis % z.ndim], -1))
    flat = flat - flat.max(axis=-1, keepdims=True)
    return (flat - np.log(np.exp(flat).sum(axis=-1, keepdims=True))).reshape(z.shape)


STANDARD: dict[str, Callable[..., Any]] = {
    "MatMul": _times,
    "Gemm": _gemm,
    "Conv": _conv,
    "QuantizeLinear": _round,
    "DequantizeLinear": _back,
    "DynamicQuantizeLinear": lambda x: (x, np.array(1.0), np.array(0.0)),
    "MatMulInteger": lambda a, b, za=None, zb=None: _times(_f(a) - _at(za, a, -2), _f(b) - _at(zb, b, -1)),
    "ConvInteger": lambda x, w, zx=None, zw=None, **_: _conv(_f(x) - _f(zx), _f(w) - _at(zw, w, 0)),
    "QLinearMatMul": lambda a, sa, za, b, sb, zb, sy, zy: _qgemm(a, sa, za, b, sb, zb, None, sy, zy),
    "QLinearConv": _qconv,
}
OLD = {"Softmax": lambda z, axis, **_: np.exp(log_softmax(z, axis)), "LogSoftmax": log_softmax}
OTHER: dict[str, dict[str, Callable[..., Any]]] = {
    "com.microsoft": {
        "FusedMatMul": _gemm,
        "FusedGemm": _gemm,
        "FusedConv": _conv,
        "QGemm": _qgemm,
        "DynamicQuantizeMatMul": lambda a, b, s, z=None, c=None: _times(a, _back(b, s, z)) + _f(c),
        "MatMulIntegerToFloat": lambda a, b, sa, sb, za=None, zb=None, c=None: (
            _times(_back(a, sa, za), _back(b, sb, zb)) + _f(c)
        ),
    },
    "ai.onnx.ml": {"ZipMap": lambda p, **_: p, "Normalizer": lambda p, **_: p / np.abs(p).sum(axis=-1, keepdims=True)},
}
