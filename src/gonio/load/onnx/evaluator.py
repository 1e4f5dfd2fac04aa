"""Runs a piece of a graph in a process of its own: numbers come in and go out through pipes, and nothing else does.

sandbox.py starts this file, which imports numpy and onnx alone. Floats are computed in float64, and 8-bit operators
without their rounding, x -> x / scale + zero: it is the exact arithmetic of the graph that a head is compared with.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np

BIG = 1 << 22  # a table of more numbers than this stays in float32
PATIENCE = 60  # seconds without a question after which the process ends
MOST_ANSWER = 1 << 28  # bytes


def send(stream: BinaryIO, header: dict[str, Any], arrays: Sequence[np.ndarray]) -> None:
    """Write a message: the length of a line of JSON, the line, and the bytes of the arrays it describes."""
    line = json.dumps(header | {"arrays": [(a.dtype.str, a.shape) for a in arrays]}).encode()
    stream.write(len(line).to_bytes(8, "little") + line)
    for a in arrays:
        stream.write(np.ascontiguousarray(a).reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Read a message; EOFError where the other side is gone."""

    def exactly(count: int) -> bytes:
        got = stream.read(count)
        if len(got) < count:
            raise EOFError
        return got

    header = json.loads(exactly(int.from_bytes(exactly(8), "little")))
    kinds = [(np.dtype(kind), shape) for kind, shape in header.pop("arrays")]
    arrays = [np.frombuffer(exactly(t.itemsize * int(np.prod(s, dtype=np.int64))), t).reshape(s) for t, s in kinds]
    return header, arrays


def serve(given: BinaryIO, answers: BinaryIO) -> None:
    """Answer questions until there are no more."""
    while os.name != "posix" or select.select([given], [], [], PATIENCE)[0]:
        header, arrays = receive(given)
        try:
            limit(header["memory"], header["seconds"])
            kept = run(header, arrays)
            if sum(a.nbytes for a in kept.values()) > MOST_ANSWER:
                raise MemoryError
            send(answers, {"names": list(kept)}, list(kept.values()))
        except MemoryError:
            send(answers, {"error": "memory"}, [])
        except Exception as e:  # a graph can be wrong in any way, and the process must live on
            send(answers, {"error": f"{type(e).__name__}: {e}"[:300]}, [])


def limit(memory: int, seconds: int) -> None:
    """At most so many bytes more than now, and so many seconds of computing from now on."""
    try:
        import resource
    except ImportError:  # Windows: the clock of sandbox.py alone
        return

    def soft(which: int, value: int) -> None:
        hard = resource.getrlimit(which)[1]
        resource.setrlimit(which, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))

    soft(resource.RLIMIT_CPU, int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + seconds + 1)
    if os.path.exists("/proc/self/statm"):
        with open("/proc/self/statm", encoding="ascii") as f:
            soft(resource.RLIMIT_AS, int(f.read().split()[0]) * resource.getpagesize() + memory)


def run(header: dict[str, Any], arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors named by "keep", stacked over the runs; arrays are the model, its constants, the feeds of all runs."""
    import onnx
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    model = onnx.ModelProto.FromString(arrays[0].tobytes())
    opset = model.opset_import[0].version
    for node in model.graph.node:
        for a in node.attribute:
            if node.op_type == "Cast" and a.name == "to" and a.i in (1, 10, 16):
                a.i = onnx.TensorProto.DOUBLE
        if opset < 13 and node.op_type in ("Softmax", "LogSoftmax") and not node.attribute:
            node.attribute.append(onnx.helper.make_attribute("axis", 1))

    def as_operator(domain: str, name: str, function: Callable[..., Any]) -> type:
        def _run(self: OpRun, *args: Any, **attributes: Any) -> tuple:
            out = function(*args, **attributes)
            return out if isinstance(out, tuple) else (np.asarray(out),)

        return type(name, (OpRun,), {"op_domain": domain, "_run": _run})

    replaced = STANDARD | (OLD if opset < 13 else {})
    ops = [as_operator(d, n, f) for d, table in (("", replaced), *OTHER.items()) for n, f in table.items()]
    evaluator = ReferenceEvaluator(model, new_ops=ops)
    count = len(header["constants"])
    constants = {n: _float(a) if a.dtype.kind == "f" else a for n, a in zip(header["constants"], arrays[1:])}  # noqa: B905
    feeds = dict(zip(header["feeds"], arrays[1 + count :], strict=True))
    kept: dict[str, list[np.ndarray]] = {name: [] for name in header["keep"]}
    with np.errstate(all="ignore"):
        for i in range(len(next(iter(feeds.values())))):
            values = evaluator.run(None, constants | {k: v[i] for k, v in feeds.items()}, intermediate=True)
            for name, found in kept.items():
                found.append(np.asarray(values[name]))
    return {
        name: np.stack(found)
        for name, found in kept.items()
        if found[0].dtype.kind in "iufb" and all(a.shape == found[0].shape for a in found)
    }


# -- operators in exact arithmetic --------------------------------------------------------------------------------------


def _float(v: Any) -> np.ndarray:
    v = np.asarray(0.0 if v is None else v)
    return v.astype(np.float64 if v.size <= BIG else np.float32, copy=False)


def _along(v: Any, x: np.ndarray, axis: int) -> np.ndarray:
    """One number for all of x, or one for each index of its axis."""
    v = _float(v)
    return v.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]) if v.size > 1 else v.reshape(())


def _quantize(x: np.ndarray, scale: Any, zero: Any = None, *, axis: int = 1, **_: Any) -> np.ndarray:
    return x / _along(scale, x, axis) + _along(zero, x, axis)


def _dequantize(q: np.ndarray, scale: Any, zero: Any = None, *, axis: int = 1, **_: Any) -> np.ndarray:
    return (_float(q) - _along(zero, q, axis)) * _along(scale, q, axis)


def _times(a: Any, b: Any) -> np.ndarray:
    a, b = _float(a), _float(b)
    narrow = np.float32 in (a.dtype, b.dtype)  # a big table is not widened for this
    return (a.astype(np.float32) @ b.astype(np.float32) if narrow else a @ b).astype(np.float64)


def _gemm(a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0, **_):  # noqa: ANN001, ANN202, N803
    return alpha * _times(a.T if transA else a, b.T if transB else b) + beta * _float(c)


def _fused_matmul(a, b, *, alpha=1.0, transA=0, transB=0, **_):  # noqa: ANN001, ANN202, N803
    return alpha * _times(np.swapaxes(a, -1, -2) if transA else a, np.swapaxes(b, -1, -2) if transB else b)


def _conv(x, w, b=None, **_):  # noqa: ANN001, ANN202
    """A kernel of one point: what product.py lets through."""
    y = np.moveaxis(_times(np.moveaxis(x, 1, -1), w.reshape(w.shape[:2]).T), -1, 1)
    return y + _along(b, y, 1)


def _rounded(y, scale, zero):  # noqa: ANN001, ANN202
    return y if scale is None else _quantize(y, scale, zero)


def _qgemm(a, sa, za, b, sb, zb, c=None, sy=None, zy=None, *, alpha=1.0, transA=0, transB=0):  # noqa: ANN001, ANN202, N803
    y = _gemm(
        _dequantize(a, sa, za), _dequantize(b, sb, zb, axis=0 if transB else 1), alpha=alpha, transA=transA, transB=transB
    )
    return _rounded(y + alpha * _float(c) * _float(sa) * _float(sb), sy, zy)


def _qconv(x, sx, zx, w, sw, zw, sy, zy, b=None, **_):  # noqa: ANN001, ANN202
    bias = _float(b) * _float(sx) * _float(sw)
    return _rounded(_conv(_dequantize(x, sx, zx), _dequantize(w, sw, zw, axis=0), bias), sy, zy)


def _flat(function: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """Before opset 13 a softmax runs over its axis and all that follow."""

    def run(x: np.ndarray, *, axis: int, **_: Any) -> np.ndarray:
        return function(x.reshape((*x.shape[: axis % x.ndim], -1))).reshape(x.shape)

    return run


def log_softmax(z: np.ndarray) -> np.ndarray:
    """z - log sum exp z  over the last axis."""
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


STANDARD: dict[str, Callable[..., Any]] = {
    "MatMul": _times,
    "Gemm": _gemm,
    "Conv": _conv,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": lambda x: (x, np.array(1.0), np.array(0.0)),
    "MatMulInteger": lambda a, b, za=None, zb=None: _times(_float(a) - _along(za, a, -2), _float(b) - _along(zb, b, -1)),
    "ConvInteger": lambda x, w, zx=None, zw=None, **_: _conv(_float(x) - _float(zx), _float(w) - _along(zw, w, 0)),
    "QLinearMatMul": lambda a, sa, za, b, sb, zb, sy, zy: _rounded(
        _times(_dequantize(a, sa, za), _dequantize(b, sb, zb)), sy, zy
    ),
    "QLinearConv": _qconv,
}
OLD = {"Softmax": _flat(lambda z: np.exp(log_softmax(z))), "LogSoftmax": _flat(log_softmax)}
OTHER: dict[str, dict[str, Callable[..., Any]]] = {
    "com.microsoft": {
        "FusedMatMul": _fused_matmul,
        "FusedGemm": _gemm,
        "FusedConv": _conv,
        "QGemm": _qgemm,
        "DynamicQuantizeMatMul": lambda a, b, s, z=None, c=None: _times(a, _dequantize(b, s, z)) + _float(c),
        "MatMulIntegerToFloat": lambda a, b, sa, sb, za=None, zb=None, c=None: (
            _times(_dequantize(a, sa, za), _dequantize(b, sb, zb)) + _float(c)
        ),
    },
    "ai.onnx.ml": {"ZipMap": lambda p, **_: p, "Normalizer": lambda p, **_: p / np.abs(p).sum(axis=-1, keepdims=True)},
}

if __name__ == "__main__":
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        pass
