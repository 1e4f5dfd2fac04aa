"""Results as files of numbers: arrays in an .npz without pickled objects, and JSON for how they hang together."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np


def to_bytes(result: Any) -> bytes:
    """A result made of tuples, lists, dictionaries, arrays, numbers, texts and None, as the bytes of a file."""
    arrays: list[np.ndarray] = []
    skeleton = json.dumps(_plain(result, arrays))
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, skeleton=np.array(skeleton), **{f"a{k}": a for k, a in enumerate(arrays)})
    return stream.getvalue()


def from_bytes(raw: bytes) -> Any:
    """The result again; None where the bytes are not a whole file of that kind."""
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as z:
            return _meant(json.loads(str(z["skeleton"])), z)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _plain(x: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(x, np.ndarray):
        if x.dtype == object:
            raise TypeError("a result of a task holds numbers, not objects")
        arrays.append(x)
        return {"array": len(arrays) - 1}
    if isinstance(x, np.generic):  # a number of a certain type stays of that type
        arrays.append(np.asarray(x))
        return {"number": len(arrays) - 1}
    if isinstance(x, (tuple, list)):
        return {type(x).__name__: [_plain(y, arrays) for y in x]}
    if isinstance(x, dict):
        return {"dict": [[_plain(k, arrays), _plain(v, arrays)] for k, v in x.items()]}
    if x is None or isinstance(x, (bool, int, float, str)):
        return {"value": x}
    raise TypeError(f"a result of a task holds a {type(x).__name__}, which no block of a state can keep")


def _meant(x: Any, arrays: Any) -> Any:
    ((kind, inner),) = x.items()
    if kind == "array":
        return arrays[f"a{inner}"]
    if kind == "number":
        return arrays[f"a{inner}"][()]
    if kind in ("tuple", "list"):
        several = [_meant(y, arrays) for y in inner]
        return tuple(several) if kind == "tuple" else several
    if kind == "dict":
        return {_meant(k, arrays): _meant(v, arrays) for k, v in inner}
    return inner
