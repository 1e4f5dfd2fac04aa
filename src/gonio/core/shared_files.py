"""Objects that many processes read: pickled once into a scratch folder, with their arrays left where they lie.

An array that is mapped from a file stays a place in that file; a large one made in memory is written once beside the
pickle. So a task names a file of a few kilobytes, and each worker maps the rows by itself. A head is checked against
its digest when a worker first opens it, and again if its file has changed since.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.leftovers import new_folder, remove_folder, remove_leftovers

LARGE = 1 << 16  # bytes from which an array is written beside the pickle, and not into it
OPENED = 4  # shared objects that a worker keeps open
SCRATCH = "GONIO_SCRATCH"  # the folder for what is shared, where workers do not see this machine's temporary folder

_opened: dict[str, tuple[Any, tuple[int, int]]] = {}  # with the state of the head's file then
_heads: dict[tuple[str, tuple[int, int]], Head] = {}  # checked, by digest and state of the file
_lock = threading.Lock()


class CannotShareError(TypeError):
    """What no other process can be given: an open index of another library, say."""


@dataclass(frozen=True)
class FileArray:
    """An array by where it lies: file, first byte, type, shape and strides, and what the file was like then."""

    file: str
    offset: int
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    seen: tuple[int, int]  # size and time of the last change

    def open(self) -> np.ndarray:
        """The array, mapped and not read."""
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)) + self.dtype.itemsize
        try:
            if os.stat(self.file).st_size < self.offset + last:
                raise GonioError(
                    f"workers: {self.file} is shorter than it was when the work began; leave it as it is until the "
                    f"work is done, then ask again."
                )
            raw = np.memmap(self.file, np.uint8, "r", self.offset, (last,))
        except FileNotFoundError:
            raise GonioError(
                f"workers: the worker on {socket.gethostname()} does not see {self.file}; put the model where all "
                f"workers see it under that name, and set {SCRATCH} to a folder that they all see."
            ) from None
        a = np.ndarray(self.shape, self.dtype, raw, strides=self.strides)
        a.flags.writeable = False
        return a


@dataclass(frozen=True)
class Place:
    """Where a shared object lies, and the file of the head in it, if it has one."""

    file: str
    rows: str = ""

    def open(self) -> Any:
        """The object; a process opens it once, and again if the file of the head was changed."""
        with _lock:
            now = _seen(self.rows)
            if self.file in _opened and _opened[self.file][1] == now:
                return _opened[self.file][0]
            try:
                raw = Path(self.file).read_bytes()
            except FileNotFoundError:
                raise GonioError(
                    f"workers: the worker on {socket.gethostname()} does not see {self.file}; set {SCRATCH} to a "
                    f"folder that all workers see."
                ) from None
            found = pickle.loads(raw)  # noqa: S301  written by the process that sent the task
            while len(_opened) >= OPENED:
                del _opened[next(iter(_opened))]
            _opened[self.file] = found, now
            return found


def _seen(file: str) -> tuple[int, int]:
    try:
        about = os.stat(file)
    except OSError:
        return (-1, -1)
    return about.st_size, about.st_mtime_ns


def place_of(a: np.ndarray) -> FileArray | None:
    """Where an array lies, if it is a view of a mapped file."""
    base: Any = a
    root: np.memmap | None = None
    while isinstance(base, np.ndarray):
        root = base if isinstance(base, np.memmap) else root
        base = base.base
    if root is None or root.filename is None or min(a.strides, default=0) < 0 or not a.size:
        return None
    start = a.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    file = os.path.abspath(root.filename)
    return FileArray(file, int(root.offset + start), a.dtype, a.shape, a.strides, _seen(file))


def _rebuilt(digest: str, file: str, parts: dict[str, Any]) -> Head:
    """A head in another process, checked against its digest once for each state of its file."""
    now = _seen(file)
    if (digest, now) not in _heads:
        place = parts["source"].place if parts["source"] is not None else file or "the head"
        try:
            head = Head(parts.pop("W"), **parts)
        except GonioError:  # its numbers are not finite by now
            head = None
        if head is None or head.digest != digest:
            raise GonioError(
                f"workers: {place} is not the head that the work began with (another digest); its file was changed in "
                f"between. Ask again."
            )
        _heads.clear()
        _heads[digest, now] = head
    return _heads[digest, now]


def _pickler(folder: Path, stream: io.BytesIO, heads: list[str]) -> Any:
    """A pickler that leaves arrays where they lie, and heads to be checked by whoever opens them."""
    from cloudpickle import CloudPickler

    written = 0

    class Pickler(CloudPickler):
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, Head):
                lies = place_of(obj.rows.stored)
                parts = {"W": obj.rows, "bias": obj.bias, "link": obj.link, "inputs": obj.inputs}
                parts |= {"trained": obj.trained, "softcap": obj.softcap, "offset_in": obj.offset_in}
                parts |= {"labels": obj.labels if obj.named else None, "source": obj.source}
                file = "" if lies is None else lies.file
                heads.append(file)
                return _rebuilt, (obj.digest, file, parts)
            if isinstance(obj, np.ndarray) and obj.dtype != object:
                there = place_of(obj) or (self.beside(obj) if obj.nbytes >= LARGE else None)
                if there is not None:
                    return FileArray.open, (there,)
            return super().reducer_override(obj)

        def beside(self, a: np.ndarray) -> FileArray:
            nonlocal written
            file = folder / f"{written}.raw"
            written += 1
            a = np.ascontiguousarray(a)
            with file.open("wb") as f:
                f.write(a.reshape(-1).view(np.uint8).data)
            return FileArray(str(file), 0, a.dtype, a.shape, a.strides, _seen(str(file)))

    return Pickler(stream, protocol=5)


@contextmanager
def shared(obj: Any) -> Iterator[Place]:
    """The object, written for others to open, as long as the context lasts."""
    within = Path(os.environ.get(SCRATCH) or tempfile.gettempdir())
    try:
        remove_leftovers(within)
        folder, lock = new_folder(within)
    except OSError as e:
        raise GonioError(
            f"workers: nothing can be written in {within} ({e.strerror}); set {SCRATCH} to a folder that you may "
            f"write in and that all workers see."
        ) from None
    try:
        heads: list[str] = []
        stream = io.BytesIO()
        try:
            _pickler(folder, stream, heads).dump(obj)
            file = folder / "shared"
            file.write_bytes(stream.getvalue())
        except (TypeError, AttributeError, pickle.PicklingError) as e:
            raise CannotShareError(str(e)) from None
        except OSError as e:
            raise GonioError(
                f"workers: {within} has no room for what the workers are to read ({e.strerror}); make room, or set "
                f"{SCRATCH} to a folder that has."
            ) from None
        size = sum(f.stat().st_size for f in folder.iterdir())
        logging.getLogger("gonio").info("%s bytes for the workers were written to %s", f"{size:,}", folder)
        yield Place(str(file), heads[0] if heads else "")
    finally:
        os.close(lock)
        remove_folder(folder)
