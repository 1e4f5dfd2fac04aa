"""Files of tensors written anew with some of them changed, into a folder that is moved into place when it is whole."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import in_threads, spans
from gonio.files.read.safetensors import TYPES, dtype_of

SAFETENSORS = {name: code for code, (name, _) in TYPES.items()}
BLOCK = 8 << 20


class StoredTable:
    """The rows of a head as they are to be stored: turned back, the logit factor taken out, rounded, block by block."""

    def __init__(self, head: Head, like: Head, dtype: str) -> None:
        source = like.source
        self.head, self.dtype, self.name = head, dtype_of(dtype), dtype
        self.factor = source.factor if source is not None and source.factor != 1.0 else None
        self.turned = source.turned if source is not None else False
        n, d = head.shape
        self.shape = (d, n) if self.turned else (n, d)
        self.nbytes = n * d * self.dtype.itemsize

    def whole(self) -> np.ndarray:
        """The table as it is to be stored."""
        rows = self._rounded(self.head.W)
        return np.ascontiguousarray(rows.T) if self.turned else rows

    def write_at(self, handle: int, place: int) -> None:
        """Write the table at a place of an open file, block by block over the cores."""
        if self.turned:
            _write_all(handle, self.whole(), place)
            return
        n, d = self.head.shape

        def put(span: tuple[int, int]) -> None:
            block = self._rounded(self.head.rows[span[0] : span[1]])
            _write_all(handle, block, place + span[0] * d * self.dtype.itemsize)

        in_threads(put, spans(n, max(1, (1 << 20) // (8 * d))))

    def _rounded(self, block: np.ndarray) -> np.ndarray:
        if self.factor is not None:
            block = block / self.factor
        with np.errstate(over="ignore"):
            out = block.astype(self.dtype)
            total = np.add.reduce(out if out.dtype.kind == "f" else out.astype(np.float32), axis=None)
        # A sum is finite only if every entry is: one cheap look for the usual case.
        if not np.isfinite(total) and not np.isfinite(out.astype(np.float64)).all():
            raise GonioError(f"export: the head has entries beyond what {self.name} holds; write it in float32.")
        return out


def _write_all(handle: int, block: np.ndarray, place: int) -> None:
    """All bytes of a block at a place: one call may write only a part."""
    left = memoryview(np.ascontiguousarray(block).view(np.uint8).reshape(-1).data)
    while len(left):
        done = os.pwrite(handle, left, place)
        left, place = left[done:], place + done


Part = StoredTable | np.ndarray


def write_file(path: Path, target: Path, parts: Mapping[str, Part]) -> None:
    """A file of tensors with `parts` replaced or added; the bytes of everything else are copied as they are."""
    with path.open("rb") as f:
        start = f.read(10)
    # A safetensors file starts with the length of its header, whose first byte may be that of a pickle.
    length = int.from_bytes(start[:8], "little")
    if path.suffix == ".safetensors" or (start[8:9] == b"{" and length < path.stat().st_size):
        _safetensors(path, target, parts)
    elif start.startswith(b"\x93NUMPY"):
        _npy(path, target, parts)
    elif start.startswith(b"PK") and path.suffix == ".npz":
        _npz(path, target, parts)
    elif start.startswith(b"PK") or start[:1] == b"\x80":
        _torch(path, target, parts)
    else:
        _safetensors(path, target, parts)


def _safetensors(path: Path, target: Path, parts: Mapping[str, Part]) -> None:
    with path.open("rb") as f:
        length = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(length))
    about = header.pop("__metadata__", None)
    whole: dict[str, Any] = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        whole[name] = (path, 8 + length + first, last - first, entry["dtype"], entry["shape"])
    write_safetensors(target, whole | dict(parts), about or {})


def write_safetensors(target: Path, parts: Mapping[str, Any], about: Mapping[str, str]) -> None:
    header: dict[str, Any] = {"__metadata__": dict(about)} if about else {}
    at = 0
    for name, part in parts.items():
        if isinstance(part, tuple):
            _, _, size, kind, shape = part
        else:
            size, kind, shape = part.nbytes, SAFETENSORS[part.dtype.name], list(part.shape)
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    with target.open("wb") as f:
        f.write(len(raw).to_bytes(8, "little") + raw)
        for part in parts.values():
            if isinstance(part, tuple):
                _copy_bytes(part[0], part[1], part[2], f)
            elif isinstance(part, np.ndarray):
                f.write(part.tobytes())
            else:
                f.flush()
                part.write_at(f.fileno(), f.tell())
                f.seek(0, os.SEEK_END)


def _copy_bytes(path: Path, start: int, count: int, out: Any) -> None:
    out.flush()
    with path.open("rb") as f:
        f.seek(start)
        left = count
        while left:
            try:  # inside the kernel where the file system can
                done = os.copy_file_range(f.fileno(), out.fileno(), min(left, 1 << 30), offset_src=start + count - left)
                if not done:
                    raise OSError
            except (OSError, AttributeError):
                f.seek(start + count - left)
                out.seek(0, os.SEEK_END)
                shutil.copyfileobj(_Part(f, left), out, BLOCK)
                done = left
            left -= done
    out.seek(0, os.SEEK_END)


class _Part:
    """The next `left` bytes of a file, as a file."""

    def __init__(self, f: Any, left: int) -> None:
        self.f, self.left = f, left

    def read(self, size: int = -1, /) -> bytes:
        got = self.f.read(min(size, self.left))
        self.left -= len(got)
        return got


def _npz(path: Path, target: Path, parts: Mapping[str, Part]) -> None:
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED, allowZip64=True) as new:
        for info in old.infolist():
            if info.filename.removesuffix(".npy") not in parts:
                with old.open(info) as f, new.open(info.filename, "w", force_zip64=True) as g:
                    shutil.copyfileobj(f, g, BLOCK)
        for name, part in parts.items():
            with new.open(name + ".npy", "w", force_zip64=True) as g:
                np.lib.format.write_array(g, _whole(part), allow_pickle=False)  # type: ignore[arg-type]


def _npy(path: Path, target: Path, parts: Mapping[str, Part]) -> None:
    with target.open("wb") as f:
        np.save(f, _whole(next(iter(parts.values()))))


def _torch(path: Path, target: Path, parts: Mapping[str, Part]) -> None:
    import torch

    from gonio.files.read.torch import INSIDE

    loaded = torch.load(path, weights_only=True, map_location="cpu")
    state = loaded
    while not any(name in state for name in parts):
        inner = next((state[k] for k in INSIDE if isinstance(state, dict) and k in state), None)
        if inner is None:
            break  # a tied head, which gets its own name beside the embeddings
        state = inner
    narrow = {"bfloat16": torch.bfloat16, "float16": torch.float16}
    for name, part in parts.items():
        a = _whole(part)
        kind = narrow.get(a.dtype.name)
        made = torch.from_numpy(np.ascontiguousarray(a.astype(np.float32) if kind else a))
        state[name] = made.to(kind) if kind else made
    with target.open("wb") as f:  # torch reports a full disk of its own file as a RuntimeError
        torch.save(loaded, f)


def _whole(part: Part) -> np.ndarray:
    return part if isinstance(part, np.ndarray) else part.whole()
