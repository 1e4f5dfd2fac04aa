"""A sparse matrix as scipy saves it, read without trusting it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.errors import GonioError, LoadError
from gonio.core.npz_archive import NpzArchive
from gonio.core.unpack_limit import check_unpacked

A_LINE = 32  # bytes for each row and column
PARTS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}


def read_sparse(path: str | Path, who: str) -> Any:
    """The csr, csc or coo matrix of a .npz file that scipy.sparse.save_npz wrote."""
    wanted = "give a .npz of scipy.sparse.save_npz (csr, csc or coo), or a .npy."
    try:
        return _matrix(NpzArchive(Path(path)))
    except GonioError:
        raise
    except Exception as e:
        why = " ".join(str(e).split())[:200] or "no reason given"
        raise LoadError(f"{who}: {path} cannot be read as interactions ({type(e).__name__}: {why}); {wanted}") from None


def _matrix(archive: NpzArchive) -> Any:
    from scipy import sparse

    kind = archive.read("format")[()]
    kind = kind.decode("ascii", errors="replace") if isinstance(kind, bytes) else str(kind)
    if kind not in PARTS:
        raise LoadError(
            f"load: {archive.place} holds a sparse matrix of format {kind[:20]!r}; csr, csc or coo is read."
        )
    shape = tuple(int(x) for x in archive.read("shape"))
    # However few entries there are, numbers are kept for each row and each column.
    check_unpacked(archive.place, A_LINE * sum(shape), archive.size)
    # Copies: scipy may sort indices in place, and what was read is read-only.
    data, first, second = (np.array(archive.read(name)) for name in ("data", *PARTS[kind]))
    if data.dtype.kind not in "fiub" or any(a.dtype.kind not in "iu" or a.ndim != 1 for a in (first, second)):
        raise LoadError(f"load: {archive.place} holds no numbers with whole-number indices; save it anew.")
    if kind == "coo":
        return sparse.coo_matrix((data, (first, second)), shape=shape)
    made = (sparse.csr_matrix if kind == "csr" else sparse.csc_matrix)((data, first, second), shape=shape)
    made.check_format(full_check=True)  # indices beyond the shape would be read outside of the arrays
    return made
