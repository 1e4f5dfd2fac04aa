"""The members of a .npz file, read without trusting it: sizes are checked before anything is allocated."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from gonio.core import checks
from gonio.core.archive import Archive, Entry
from gonio.core.errors import LoadError
from gonio.core.unpack_limit import TEXT, check_unpacked

HEADER = 1 << 16  # no honest .npy header is longer
DEFLATE = 1040  # deflate packs at most about 1,032 to 1, so a larger claim is a lie


class NpzArchive(Archive):
    """The members of a .npz file. Stored members are memory-mapped, deflated ones unpacked when read."""

    format = "npz"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        self.members: dict[str, tuple[zipfile.ZipInfo, tuple[int, ...], bool, np.dtype, int]] = {}
        entries: dict[str, Entry] = {}
        with _readable(path), zipfile.ZipFile(path) as z:
            for info in z.infolist():
                if not info.filename.endswith(".npy"):
                    continue
                name = info.filename[:-4]
                with z.open(info) as f:
                    shape, fortran, dtype, offset = npy_header(f.read(HEADER), f"{path}[{name}]", pickled=False)
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
        if self.members[name][3].hasobject:
            raise LoadError(
                f"load: {self.path}[{name}] holds pickled objects, which can run code and are never opened; "
                f"save it as a float or text array."
            )
        return self._with_real_characters(name, self._numbers(name))

    def _with_real_characters(self, name: str, a: np.ndarray) -> np.ndarray:
        """The array; text with numbers that are no characters makes Python fail wherever it is looked at."""
        if a.dtype.kind == "U" and a.size and a.dtype.itemsize:
            codes = np.frombuffer(a.tobytes(), np.dtype(np.uint32).newbyteorder(a.dtype.byteorder))
            if codes.max() > 0x10FFFF:
                raise LoadError(
                    f"load: {self.path}[{name}] holds text with numbers that are no characters; write it anew."
                )
        return a

    def _numbers(self, name: str) -> np.ndarray:
        info, shape, fortran, dtype, offset = self.members[name]
        order = "F" if fortran else "C"
        if info.compress_type == zipfile.ZIP_STORED and shape and 0 not in shape:
            return np.memmap(self.path, dtype, "r", self._start(info) + offset, shape, order).view(np.ndarray)
        count = int(np.prod(shape, dtype=object))
        texts = TEXT * count if dtype.kind in "US" else 0
        check_unpacked(f"{self.path}[{name}]", count * dtype.itemsize + texts, info.compress_size)
        with _readable(self.path), zipfile.ZipFile(self.path) as z, z.open(info) as f:
            f.read(offset)
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


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What the libraries say of a damaged archive, as one sentence."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError, RuntimeError) as e:
        why = " ".join(str(e).split())[:120] or type(e).__name__
        raise LoadError(f"load: {path} cannot be read as a .npz archive ({why}); it is damaged.") from None


def npy_header(
    raw: bytes, place: str, pickled: bool = True, who: str = "load"
) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Shape, order, dtype and length of a .npy header, nothing allocated."""
    f = io.BytesIO(raw)
    try:
        version = np.lib.format.read_magic(f)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran, dtype = read(f)
    except KeyError:
        raise LoadError(f"{who}: {place} is of a .npy version that is not read; save it with np.save.") from None
    except Exception as e:
        why = " ".join(str(e).split())[:120]
        raise LoadError(f"{who}: {place} has no valid .npy header ({why}); it is damaged.") from None
    if any(type(s) is not int or s < 0 for s in shape):  # True is an int to Python, and no length
        raise LoadError(f"{who}: {place} claims the shape {shape}; it is damaged.")
    if pickled and dtype.hasobject:
        raise LoadError(
            f"{who}: {place} holds pickled objects, which can run code and are never opened; save it as a float array."
        )
    if pickled and not (checks.is_float(dtype) or dtype.kind in "iub"):
        raise LoadError(f"{who}: {place} has dtype {dtype}; a head needs floating-point numbers.")
    return shape, fortran, dtype, f.tell()
