"""numpy files: .npy and .npz, memory-mapped where the file holds the numbers as they are; and arrays in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core import inputs as _inputs
from gonio.core.archive import Archive, DictArchive
from gonio.core.errors import LoadError
from gonio.core.npy_file import read_npy
from gonio.core.npz_archive import NpzArchive
from gonio.core.row_table import RowTable
from gonio.files.read import names
from gonio.files.read.head_draft import Draft

# Inputs that have numbers of their own, and the names of these in a .npz file behind `inputs_`.
INPUTS_WITH_ARRAYS: dict[str, tuple[Any, ...]] = {
    "box": (_inputs.Box, "low", "high"),
    "rmsnorm": (_inputs.AfterRMSNorm, "gain"),
    "layernorm": (_inputs.AfterLayerNorm, "gain", "shift"),
    "observed": (_inputs.Observed, "F"),
}


def npy(path: Path, tensor: str | None = None) -> Draft:
    """A table of label rows in a .npy file."""
    mapped = read_npy(path, "load")
    if mapped.ndim != 2 or 0 in mapped.shape:
        raise LoadError(f"load: {path} has shape {mapped.shape}; a head needs two axes (labels, dim), neither empty.")
    out = Draft(str(path), "npy", RowTable(mapped, who=f"load: {path}"), bytes_read=mapped.nbytes)
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
    out = Draft("an array", "array", RowTable(x, who="load"))
    out.decide("weight", "the array given")
    out.bytes_read = out.rows.stored.nbytes
    return out


def _draft(archive: Archive, tensor: str | None) -> Draft:
    out = names.draft(archive, tensor)
    texts = {k: e for k, e in archive.entries.items() if e.dtype.startswith("str")}
    if "labels" in texts and len(texts["labels"].shape) == 1:
        if texts["labels"].shape[0] != out.rows.shape[0]:
            raise LoadError(
                f"load: {archive.place} has {texts['labels'].shape[0]:,} labels and {out.rows.shape[0]:,} rows; one "
                f"label a row is needed."
            )
        out.labels = [str(x) for x in archive.read("labels")]
        out.decide("labels", "the array `labels` of the file")
    for part in ("link", "inputs", "trained"):
        if part in texts and not texts[part].shape:
            value: Any = str(archive.read(part)[()])
            if part == "inputs":
                value = _with_arrays(archive, value) if value in INPUTS_WITH_ARRAYS else _inputs.without_files(value)
            if value is None:
                continue  # a file must not make us open another
            setattr(out, part, value)
            out.decide(part, f"the entry `{part}` of the file")
    cap = archive.entries.get("softcap")
    if cap is not None and not cap.shape and "float" in cap.dtype:
        out.softcap = float(archive.read("softcap")[()])
        out.decide("softcap", "the entry `softcap` of the file")
    return out


def _with_arrays(archive: Archive, kind: str) -> _inputs.Inputs:
    """Inputs of which the file holds the numbers too, as `gonio can-win --proof` writes them."""
    of, *parts = INPUTS_WITH_ARRAYS[kind]
    return of(*(archive.read(f"inputs_{part}") for part in parts))
