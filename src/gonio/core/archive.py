"""An archive: named tensors in a file (or several, or a dict), read one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import LoadError


@dataclass(frozen=True)
class Entry:
    """Shape and type of a tensor, known before it is read."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def is_matrix(self) -> bool:
        """Whether it could be a table of label rows: two axes of floating-point numbers."""
        return len(self.shape) == 2 and 0 not in self.shape and "float" in self.dtype

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.shape)) or 'scalar'} {self.dtype}"


def read_only(a: np.ndarray) -> np.ndarray:
    """`a`, which the loader alone holds, marked so that Head shares it."""
    if a.flags.writeable:
        a.flags.writeable = False
    return a


class Archive:
    """Named tensors; `entries` tells what is there, `read` brings one, and `bytes_read` counts the cost."""

    format = "tensors"

    def __init__(self, place: str, entries: Mapping[str, Entry]) -> None:
        self.place = place
        self.entries = dict(entries)
        self.bytes_read = 0

    def _fetch(self, name: str) -> np.ndarray:
        raise NotImplementedError

    def read(self, name: str) -> np.ndarray:
        """The tensor, read-only, memory-mapped where the format allows."""
        if name not in self.entries:
            raise self.unknown(name)
        a = read_only(self._fetch(name))
        self.bytes_read += a.nbytes
        return a

    def holder(self, name: str) -> str:
        """The file that holds a tensor; the place itself where it is one file."""
        return self.place

    def vector(self, name: str) -> np.ndarray:
        """A tensor with one entry per row or dimension, widened."""
        return checks.vector(self.read(name), f"load: {self.place}", name)

    def unknown(self, name: str) -> LoadError:
        """The complaint about a tensor that is not there, with those that are."""
        return LoadError(f"load: {self.place} has no tensor {name!r}; it has {self.candidates()}.")

    def candidates(self, names: Iterable[str] | None = None, most: int = 8) -> str:
        """The tensors that could be heads, with their shapes, for error messages."""
        if names is None:
            names = [n for n, e in self.entries.items() if e.is_matrix]
        shown = [f"{n} ({self.entries[n]})" for n in list(names)]
        if not shown:
            return f"no two-dimensional float tensor among its {len(self.entries)}"
        more = f" and {len(shown) - most} more" if len(shown) > most else ""
        return ", ".join(shown[:most]) + more


class DictArchive(Archive):
    """Arrays that are already in memory, by name."""

    format = "arrays"

    def __init__(self, arrays: Mapping[str, Any], place: str = "a dict of arrays") -> None:
        self.arrays = {str(k): np.asarray(v) for k, v in arrays.items()}
        super().__init__(place, {k: Entry(v.shape, v.dtype.name) for k, v in self.arrays.items()})

    def _fetch(self, name: str) -> np.ndarray:
        a = self.arrays[name]
        return a.copy() if a.flags.writeable else a
