"""The numbers of an ONNX tensor: read only after their size is checked, external ones memory-mapped."""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.archive import read_only
from gonio.core.errors import LoadError

MOST_AXES = 16  # numpy stops at 64; no weight has more than five

# Tensors without raw bytes keep their numbers in a field that several types share (onnx.proto, TensorProto).
_FIELDS = {"float32": "float_data", "float64": "double_data", "int64": "int64_data", "uint32": "uint64_data"}
_FIELDS |= {"uint64": "uint64_data"}


def problem(path: Path, what: str) -> LoadError:
    """A complaint about a model file."""
    return LoadError(f"load: {path}: {what}")


def described(t: Any) -> tuple[tuple[int, ...], str]:
    """Shape and type of a TensorProto, or of an array that a node spells out, without reading it."""
    if isinstance(t, np.ndarray):
        return t.shape, t.dtype.name
    return tuple(t.dims), type_name(t.data_type)


def array_of(path: Path, name: str, t: Any) -> np.ndarray:
    """The numbers of the tensor `t`, which the model at `path` calls `name`; its size is checked before any is read."""
    shape, kind = described(t)
    if kind in ("string", "complex64", "complex128", "int4", "uint4", "int2", "uint2", "float4e2m1"):
        raise problem(path, f"{name!r} is stored as {kind}; 8-bit integers or floats are needed, so export it so.")
    dtype = dtype_of(kind)
    if dtype is None:
        raise problem(path, f"{name!r} has the unknown type number {t.data_type}; write the file again.")
    if len(shape) > MOST_AXES or any(d <= 0 for d in shape):
        raise problem(path, f"{name!r} has shape {shape[:MOST_AXES]}; at most {MOST_AXES} axes, none empty, will do.")
    count = math.prod(shape)
    if t.data_location == 1:
        return _external(path, name, {as_text(e.key): as_text(e.value) for e in t.external_data}, shape, dtype)
    raw = t.raw_data if t.HasField("raw_data") else None
    values = getattr(t, _FIELDS.get(kind, "int32_data"))
    held = len(values) if raw is None else len(raw) / dtype.itemsize
    if held != count:
        raise problem(
            path,
            f"{name!r} claims shape {shape}, which is {count:,} numbers, and the file holds {held:,.0f} of them; "
            f"the file is damaged, so fetch it again.",
        )
    if raw is not None:
        return read_only(np.frombuffer(raw, dtype).reshape(shape))
    if kind in _FIELDS:
        a = np.array(values, dtype)
    else:  # int32_data holds bit patterns of 16- and 8-bit floats, and values of small integers
        bits = np.array(values, np.int32)
        a = bits.astype(f"u{dtype.itemsize}").view(dtype) if checks.is_float(dtype) else bits.astype(dtype)
    return read_only(a.reshape(shape))


def _external(path: Path, name: str, where: dict[str, str], shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    location = where.get("location", "")
    windows = PureWindowsPath(location)
    if not location or "\0" in location or windows.drive or windows.root or ".." in windows.parts:
        raise problem(path, f"{name!r} lies in {location!r}; its file must be inside the folder of the model.")
    file = path.parent / PurePosixPath(location)
    # Both may be links into one store (the hub's cache keeps files so): beside where the model really lies is fine.
    folders = {path.parent.resolve(), path.resolve().parent}
    if not any(file.resolve().is_relative_to(folder) for folder in folders):
        raise problem(
            path, f"{name!r} lies in {location!r}, a link that leaves the folder of the model; copy it there."
        )
    if not file.is_file():
        raise problem(path, f"{name!r} lies in {location!r}, which is not there; put that file beside the model.")
    needed = math.prod(shape) * dtype.itemsize
    try:
        offset, length = int(where.get("offset") or 0), int(where.get("length") or needed)
    except ValueError:
        raise problem(path, f"{name!r} has an offset or length that is no number; write the file again.") from None
    if offset < 0 or length != needed or offset + needed > file.stat().st_size:
        raise problem(
            path,
            f"{name!r} has shape {shape}, so {needed:,} bytes, and claims {length:,} at offset {offset:,} of "
            f"{location!r}, which has {file.stat().st_size:,}; the files do not belong together or are damaged.",
        )
    return np.memmap(file, dtype, "r", offset=offset, shape=shape)


def type_name(number: int) -> str:
    """The name of an ONNX type, as numpy spells it where it has it."""
    import onnx

    try:
        name = onnx.TensorProto.DataType.Name(number).lower()
    except ValueError:
        return f"type {number}"
    return {"float": "float32", "double": "float64"}.get(name, name)


def dtype_of(kind: str) -> np.dtype | None:
    """The dtype of a type name, None where no array can hold it."""
    import ml_dtypes

    if kind in ("bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"):
        return np.dtype(getattr(ml_dtypes, kind.replace("float8e", "float8_e")))
    plain = {"bool", "float16", "float32", "float64"} | {f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)}
    return np.dtype(kind).newbyteorder("<") if kind in plain else None


def as_text(v: str | bytes) -> str:
    """A name; protobuf gives bytes where it is not UTF-8."""
    return v if isinstance(v, str) else v.decode("utf-8", "backslashreplace")
