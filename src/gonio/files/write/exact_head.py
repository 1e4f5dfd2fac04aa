"""A head written exactly, as one .npz file that needs no library to be read: what a proof is about.

Rows stored as float16, float32 or float64 are written as they are; all others as the float32 or float64 numbers that
gonio reckons with, which hold them exactly. docs/proofs.md tells the arrays; `gonio.load` reads the same head back.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gonio.core.atomic_write import whole
from gonio.core.head import Head
from gonio.core.parallel import spans

VERSION = "gonio head 1"


def beside(proof: str | Path) -> Path:
    """Where the head of a proof file is written: p.head.npz beside p.npz."""
    proof = Path(proof)
    return proof.with_name(proof.name.removesuffix(".npz") + ".head.npz")


def save_exact(head: Head, path: str | Path) -> Path:
    """Write all that the digest of a head covers, and the digest; rows a block at a time."""
    path = Path(path)
    given = head.inputs.to_dict()
    arrays = {
        "format": np.array(VERSION),
        "digest": np.array(head.digest),
        "link": np.array(head.link),
        "inputs": np.array(given["kind"]),
    }
    arrays |= {f"inputs_{k}": v for k, v in given.items() if isinstance(v, np.ndarray)}
    if head.softcap is not None:
        arrays["softcap"] = np.array(head.softcap)
    if head.bias is not None:
        arrays["bias"] = head.bias
    rows = head.rows
    plain = rows.unpack is None and rows.stored.dtype in (np.float16, np.float32, np.float64)
    kind = rows.stored.dtype if plain else rows[:1].dtype
    source = rows.stored if plain else rows
    with whole(path, "proof") as temporary, zipfile.ZipFile(temporary, "w") as z:
        for name, a in arrays.items():
            _write(z, name, a.dtype, a.shape, [a])
        _write(z, "W", kind, head.shape, (source[a:b] for a, b in spans(head.shape[0], rows.block_size())))
    return path


def _write(z: zipfile.ZipFile, name: str, kind: np.dtype, shape: tuple[int, ...], blocks: Iterable[np.ndarray]) -> None:
    """One array as a .npy member: little-endian, row after row, not compressed."""
    kind = kind.newbyteorder("<")
    with z.open(f"{name}.npy", "w", force_zip64=True) as f:
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(f, header)  # type: ignore[arg-type]
        for block in blocks:
            f.write(np.ascontiguousarray(block, kind).tobytes())
