"""safetensors: one file or many behind an index, memory-mapped; sizes are checked before anything is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.archive import Archive, Entry
from gonio.core.errors import LoadError

# The format's names for its types: (name of the numpy or ml_dtypes type, bytes)
TYPES = {
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1),
    "I64": ("int64", 8),
    "I32": ("int32", 4),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U64": ("uint64", 8),
    "U32": ("uint32", 4),
    "U16": ("uint16", 2),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
}
LARGEST_HEADER = 100_000_000  # as the format itself rules


def dtype_of(name: str) -> np.dtype:
    """The numpy dtype of a type's name, those of ml_dtypes included."""
    if name.startswith(("bfloat", "float8")):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def parse_header(raw: bytes, data_bytes: int, place: str) -> tuple[dict[str, Entry], dict[str, tuple[int, int]]]:
    """Entries and byte ranges of a header, each checked against the bytes that follow it."""
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise LoadError(f"load: the header of {place} is not valid JSON ({e}); the file is damaged.") from None
    if not isinstance(header, dict):
        raise LoadError(f"load: the header of {place} is not a JSON object; the file is damaged.")
    entries: dict[str, Entry] = {}
    ranges: dict[str, tuple[int, int]] = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        shape, (start, stop), kind = _one(about, name, place)
        if kind not in TYPES:
            entries[name] = Entry(shape, kind)  # listed, and refused only if it is asked for
            ranges[name] = (start, stop)
            continue
        dtype, size = TYPES[kind]
        count = 1
        for s in shape:
            count *= s
        if stop - start != count * size:
            raise LoadError(
                f"load: {name} of {place} claims shape {shape} of {kind} ({count * size:,} bytes) and a place of "
                f"{stop - start:,} bytes; the file is damaged."
            )
        if stop > data_bytes:
            raise LoadError(
                f"load: {name} of {place} claims bytes up to {stop:,}; the file has {data_bytes:,} behind its header. "
                f"It was cut short; copy it again."
            )
        entries[name] = Entry(shape, dtype)
        ranges[name] = (start, stop)
    return entries, ranges


def _one(about: Any, name: str, place: str) -> tuple[tuple[int, ...], tuple[int, int], str]:
    def whole(x: Any) -> bool:
        return isinstance(x, int) and not isinstance(x, bool) and 0 <= x < 1 << 62

    if isinstance(about, dict):
        shape, ends, kind = about.get("shape"), about.get("data_offsets"), about.get("dtype")
        if (
            isinstance(shape, list)
            and isinstance(ends, list)
            and isinstance(kind, str)
            and len(ends) == 2
            and len(shape) <= 32
            and all(map(whole, shape))
            and all(map(whole, ends))
            and ends[0] <= ends[1]
        ):
            return tuple(shape), (ends[0], ends[1]), kind
    raise LoadError(
        f"load: the header of {place} describes {name!r} in a form that is not safetensors'; it is damaged."
    )


def header_length(first: bytes, file_bytes: int, place: str) -> int:
    """The length of a header, from the eight bytes before it."""
    length = int.from_bytes(first[:8], "little")
    if len(first) < 8 or length > min(LARGEST_HEADER, file_bytes - 8):
        raise LoadError(
            f"load: {place} claims a header of {length:,} bytes and has {file_bytes:,} in all; it is not safetensors, "
            f"or damaged."
        )
    return length


class SafetensorsArchive(Archive):
    """The tensors of one or several safetensors files."""

    format = "safetensors"

    def __init__(self, paths: list[Path], place: str, only: dict[str, str] | None = None) -> None:
        self.where: dict[str, tuple[Path, int, int]] = {}
        entries: dict[str, Entry] = {}
        header_bytes = 0
        for path in paths:
            size = path.stat().st_size
            with path.open("rb") as f:
                length = header_length(f.read(8), size, str(path))
                raw = f.read(length)
            found, ranges = parse_header(raw, size - 8 - length, str(path))
            for name, entry in found.items():
                if only is not None and only.get(name) != path.name:
                    continue  # the index sends this name to another file
                entries[name] = entry
                self.where[name] = (path, 8 + length + ranges[name][0], ranges[name][1] - ranges[name][0])
            header_bytes += 8 + length
        super().__init__(place, entries)
        self.bytes_read = header_bytes

    def holder(self, name: str) -> str:
        return str(self.where[name][0])

    def _fetch(self, name: str) -> np.ndarray:
        path, start, count = self.where[name]
        entry = self.entries[name]
        if not any(entry.dtype == dtype for dtype, _ in TYPES.values()):
            raise LoadError(
                f"load: {name} of {self.place} is stored as {entry.dtype}, which gonio does not read; save the head as "
                f"BF16 or F32."
            )
        dtype = dtype_of(entry.dtype)
        if count == 0:
            return np.empty(entry.shape, dtype)
        raw = np.memmap(path, np.uint8, "r", start, (count,)).view(np.ndarray)
        return raw.view(dtype).reshape(entry.shape)


def sharded(index: Path) -> SafetensorsArchive:
    """The tensors that a model.safetensors.index.json spreads over files of its folder."""
    try:
        table = json.loads(index.read_bytes())
        where = dict(table["weight_map"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
        raise LoadError(f"load: {index} is not a valid index ({type(e).__name__}: {e}); write it anew.") from None
    files = sorted({str(v) for v in where.values()})
    for name in files:
        if Path(name).name != name or not (index.parent / name).is_file():
            raise LoadError(f"load: {index} names the file {name!r}, which is not in its folder; fetch it.")
    return SafetensorsArchive([index.parent / f for f in files], str(index.parent), only=where)
