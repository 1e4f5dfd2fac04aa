"""A .npy file that grows by blocks of rows: memory is one block, and what is there can be read at any time."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from gonio.core.atomic_write import reason
from gonio.core.errors import GonioError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Float

HEADER = 128  # room for the header, which is written again when the number of rows is known


class GrowingNpy:
    """Rows of float32 of one width, appended to a file; `rows` counts them."""

    def __init__(self, file: IO[bytes], dim: int) -> None:
        self.file, self.dim, self.rows = file, dim, 0
        self._head()

    def append(self, block: Float[np.ndarray, "some dim"]) -> None:
        """Write a block of rows behind those that are there."""
        self.file.write(np.ascontiguousarray(block, np.float32).data)
        self.rows += len(block)

    def finish(self) -> None:
        """Say in the header how many rows there are."""
        self._head()
        self.file.flush()

    def _head(self) -> None:
        text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({self.rows}, {self.dim}), }}"
        self.file.seek(0)
        self.file.write(b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little"))
        self.file.write(text.ljust(HEADER - 11).encode() + b"\n")
        self.file.seek(0, os.SEEK_END)


@contextmanager
def growing(path: Path, dim: int, who: str) -> Iterator[GrowingNpy]:
    """A growing file at `path`; a full disk is one sentence."""
    try:
        with path.open("w+b") as file:
            out = GrowingNpy(file, dim)
            yield out
            out.finish()
    except OSError as e:
        raise GonioError(
            f"{who}: the states could not be written ({reason(e)}); make room, or ask for fewer."
        ) from None


def scratch(who: str) -> Path:
    """A new file, named nowhere else, in the folder for temporary files."""
    try:
        handle, name = tempfile.mkstemp(prefix="gonio-states-", suffix=".npy")
    except OSError as e:
        raise GonioError(
            f"{who}: no temporary file could be made ({reason(e)}); set TMPDIR to another place."
        ) from None
    os.close(handle)
    return Path(name)
