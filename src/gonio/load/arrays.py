"""numpy files: .npy and .npz, memory-mapped where the file holds the numbers as they are; and arrays in memory."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gonio import check
from gonio import inputs as _inputs
from gonio.errors import LoadError
from gonio.load import names
from gonio.load.archive import Archive, DictArchive, Entry
from gonio.load.draft import Draft, read_only
from gonio.rows import Rows

HEADER = 1 << 16  # no honest .npy header is longer
DEFLATE = 1040  # deflate packs at most about 1,032 to 1, so a larger claim is a lie


def npy(path: Path, tensor: str | None = None) -> Draft:
    """A table of label rows in a .npy file."""
    with path.open("rb") as f:
        shape, fortran, dtype, offset = _header(f.read(HEADER), str(path))
    wanted = offset + int(np.prod(shape, dtype=object)) * dtype.itemsize
    if path.stat().st_size < wanted:
        raise LoadError(
            f"load: {path} claims an array of shape {shape} and so {wanted:,} bytes; the file has "
            f"{path.stat().st_size:,}. It was cut short; write it anew."
        )
    if len(shape) != 2 or 0 in shape:
        raise LoadError(f"load: {path} has shape {shape}; a head needs two axes (labels, dim), neither empty.")
    mapped = np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C").view(np.ndarray)
    out = Draft(str(path), "npy", Rows(read_only(mapped), who=f"load: {path}"), bytes_read=mapped.nbytes)
    out.decide("weight", "the array of the file")
    out.decide("bias", "a .npy file holds one array, so none")
    out.tensors, out.file = {"W": ""}, str(path)
    return out


def npz(path: Path, tensor: str | None = None) -> Draft:
    """A head among the arrays of a .npz file; `labels`, `link`, `inputs` and `softcap` are read if they are there."""
    return _draft(NpzArchive(path), tensor)


def of_dict(arrays: Mapping[str, Any], tensor: str | None = None) -> Draft:
    """A head among arrays in memory."""
    bad = next((k for k, v in arrays.items() if not np.size(v) or np.asarray(v).dtype.kind == "O"), None)
    if bad is not None:
        raise LoadError(f"load: entry {bad!r} of the dict is empty or not a rectangular array of numbers or text.")
    return _draft(DictArchive(arrays), tensor)


def of_array(x: Any) -> Draft:
    """A table of label rows in memory."""
    out = Draft("an array", "array", Rows(x, who="load"))
    out.decide("weight", "the array given")
    out.bytes_read = out.rows.stored.nbytes
    return out


def _draft(archive: Archive, tensor: str | None) -> Draft:
    out = names.draft(archive, tensor)
    texts = {k: e for k, e in archive.entries.items() if e.dtype.startswith("str")}
    if "labels" in texts and len(texts["labels"].shape) == 1:
        out.labels = [str(x) for x in archive.read("labels")]
        out.decide("labels", "the array `labels` of the file")
    for part in ("link", "inputs", "trained"):
        if part in texts and not texts[part].shape:
            value = str(archive.read(part)[()])
            if part == "inputs" and value.startswith("observed"):
                continue  # a file must not make us open another
            setattr(out, part, _inputs.parse(value) if part == "inputs" else value)
            out.decide(part, f"the entry `{part}` of the file")
    cap = archive.entries.get("softcap")
    if cap is not None and not cap.shape and "float" in cap.dtype:
        out.softcap = float(archive.read("softcap")[()])
        out.decide("softcap", "the entry `softcap` of the file")
    return out


class NpzArchive(Archive):
    """The members of a .npz file. Stored members are memory-mapped, deflated ones unpacked when read."""

    format = "npz"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        self.members: dict[str, tuple[zipfile.ZipInfo, tuple[int, ...], bool, np.dtype, int]] = {}
        entries: dict[str, Entry] = {}
        with zipfile.ZipFile(path) as z:
            for info in z.infolist():
                if not info.filename.endswith(".npy"):
                    continue
                name = info.filename[:-4]
                with z.open(info) as f:
                    shape, fortran, dtype, offset = _header(f.read(HEADER), f"{path}[{name}]", pickled=False)
                wanted = offset + int(np.prod(shape, dtype=object)) * dtype.itemsize
                room = info.compress_size * (DEFLATE if info.compress_type else 1) + HEADER
                if info.compress_size > self.size or wanted > min(info.file_size, room):
                    raise LoadError(
                        f"load: {path}[{name}] claims shape {shape} and so {wanted:,} bytes; the file holds fewer. "
                        f"It was cut short or lies about its size; write it anew."
                    )
                self.members[name] = (info, shape, fortran, dtype, offset)
                kind = "str" if dtype.kind in "US" else dtype.name
                entries[name] = Entry(shape, "object (pickled)" if dtype.hasobject else kind)
        super().__init__(str(path), entries)

    def _fetch(self, name: str) -> np.ndarray:
        info, shape, fortran, dtype, offset = self.members[name]
        if dtype.hasobject:
            raise LoadError(
                f"load: {self.path}[{name}] holds pickled objects, which can run code and are never opened; "
                f"save it as a float or text array."
            )
        order = "F" if fortran else "C"
        if info.compress_type == zipfile.ZIP_STORED and shape and 0 not in shape:
            return np.memmap(self.path, dtype, "r", self._start(info) + offset, shape, order).view(np.ndarray)
        with zipfile.ZipFile(self.path) as z, z.open(info) as f:
            f.read(offset)
            count = int(np.prod(shape, dtype=object))
            raw = f.read(count * dtype.itemsize)
        return np.frombuffer(raw, dtype, count).reshape(shape, order=order)

    def _start(self, info: zipfile.ZipInfo) -> int:
        """Where a stored member's bytes begin: behind its local header, whose length only the file tells."""
        with self.path.open("rb") as f:
            f.seek(info.header_offset)
            local = f.read(30)
        start = (
            info.header_offset + 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
        )
        if start + info.file_size > self.size:
            raise LoadError(f"load: {self.path} has a member that reaches beyond its end; it was cut short.")
        return start


def _header(raw: bytes, place: str, pickled: bool = True) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Shape, order, dtype and length of a .npy header, nothing allocated."""
    f = io.BytesIO(raw)
    try:
        version = np.lib.format.read_magic(f)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran, dtype = read(f)
    except KeyError:
        raise LoadError(f"load: {place} is of a .npy version that is not read; save it with np.save.") from None
    except Exception as e:
        why = " ".join(str(e).split())[:120]
        raise LoadError(f"load: {place} has no valid .npy header ({why}); it is damaged.") from None
    if any(s < 0 for s in shape):
        raise LoadError(f"load: {place} claims the shape {shape}; it is damaged.")
    if pickled and dtype.hasobject:
        raise LoadError(
            f"load: {place} holds pickled objects, which can run code and are never opened; save it as a float array."
        )
    if pickled and not (check.is_float(dtype) or dtype.kind in "iub"):
        raise LoadError(f"load: {place} has dtype {dtype}; a head needs floating-point numbers.")
    return shape, fortran, dtype, f.tell()
