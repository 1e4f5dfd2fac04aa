"""Write an equivalent head back as a checkpoint of the model's own format.

Everything is written beside the target, in a new folder or file, and moved into place at the end: a full disk or an
interruption leaves nothing half-written, and the model that was read is never touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.source import Source
from gonio.core.whole_folder import whole_folder
from gonio.files.write.checkpoint import config_of, head_tensor_name, must_not_write_over, replace_tensors, write_folder
from gonio.files.write.tensors import SAFETENSORS, Part, StoredTable, write_file
from gonio.gauge.dialling import Dialled, largest_difference

Precision = Literal["float32", "same"]


@dataclass(frozen=True)
class Written:
    """What was written: the model (a folder, or the file in it), the tensor that holds the head, its type, and whether
    the head was untied for it."""

    path: Path
    tensor: str
    dtype: str
    untied: bool
    second: str | None = None  # the table that took up the offset of input embeddings


def export(dialled: Dialled, out: Path | str, *, precision: Precision = "float32", overwrite: bool = False) -> Written:
    """Write a dialled head as the model that it was loaded from, with only its head changed.

    Safetensors (sharded too), torch, npz and npy are written in their own format, everything else in the folder is
    copied; a tied head is untied. Of input embeddings the table that is added to them is moved too. Heads of 16-bit
    models are written in float32, or with precision="same" in their own type. A head from another format is written
    alone, as a safetensors file, with `standalone`.
    """
    head, like = dialled.head, dialled.before
    source, out = like.source, Path(out)
    alone = "Write the head alone with standalone(head, 'head.safetensors') (on the command line: --head-only)."
    if dialled.translation is None:
        raise GonioError(
            f"export: this head was dialled by a {dialled.transform.name} map and needs new embeddings too, from the "
            f"rest of the model. {alone}"
        )
    if source is None or source.format not in ("safetensors", "torch", "npz", "npy") or not source.file:
        kind = "a head made in memory" if source is None else f"a {source.format} model"
        raise GonioError(
            f"export: {kind} cannot be written back; what can be written is safetensors, torch, npz and npy. {alone}"
        )
    stored = like.rows.kind
    dtype = stored if precision == "same" or stored in ("float64", "float32") else "float32"
    if dtype not in SAFETENSORS:
        raise GonioError(
            f"export: the model's head is stored as {stored}, which is not written; use precision='float32'."
        )
    place = Path(source.place)
    must_not_write_over(place, out)
    if like.link == "input":
        return _moved_tables(dialled, place, out, dtype, overwrite)
    config = config_of(place if place.is_dir() else place.parent)
    name = head_tensor_name(source, config, place, alone)
    parts: dict[str, Part] = {name: StoredTable(head, like, dtype)}
    untied = name != source.tensors["W"]
    if untied and like.bias is not None:
        own = name.removesuffix("weight") + "bias"  # beside a head of its own some models look for a bias of its own
        if source.tensors.get("bias") != own:
            parts[own] = like.bias
    with whole_folder(out, "export", overwrite=overwrite) as folder:
        if not place.is_dir():
            write_file(place, folder / place.name, parts)
            return Written(out / place.name, name, dtype, untied)
        write_folder(place, folder, Path(source.file), parts, config)
    return Written(out, name, dtype, untied)


def _moved_tables(dialled: Dialled, place: Path, out: Path, dtype: str, overwrite: bool) -> Written:
    """The model with its input embeddings moved by v and the table that is added to them by -v."""
    source, v = dialled.before.source, dialled.translation
    assert source is not None
    assert v is not None
    name, other = source.tensors["W"], source.tensors.get("offset")
    if other is None or source.format != "safetensors":
        raise GonioError(
            f"export: {place} is a {source.format} model, whose second table gonio does not write; the moved rows "
            f"alone are written with standalone (on the command line: --head-only)."
        )
    added = _second_table(source, place, other)
    parts: dict[str, Any] = {
        name: StoredTable(dialled.head, dialled.before, dtype).whole(),
        other: (added - v).astype(np.float32 if dtype != "float64" else np.float64),
    }
    path = replace_tensors(source, parts, out, config=lambda about: about, overwrite=overwrite)
    return Written(path, name, dtype, False, other)


def _second_table(source: Source, place: Path, name: str) -> np.ndarray:
    from gonio.files.read.folder import weights_of

    return weights_of(place).read(name).astype(np.float64)


def measure_tables(written: Written, dialled: Dialled) -> float:
    """Proven: no entry of (row + added row) differs by more between the model as read and as written."""
    from gonio.files.read.folder import weights_of

    source, v = dialled.before.source, dialled.translation
    assert source is not None
    assert v is not None
    assert written.second is not None
    old, new = weights_of(Path(source.place)), weights_of(written.path)
    off = 0.0
    for name, way in ((written.tensor, v), (written.second, -v)):
        a, b = (x.read(name).astype(np.float64) for x in (old, new))
        off += float((np.abs((b - a) - way) + 2.0**-51 * (np.abs(a) + np.abs(way))).max())
    return off


def measure(written: Written, dialled: Dialled) -> tuple[float, float]:
    """What the checkpoint as written does to probabilities: (proven bound, largest difference measured).

    With E = W_written - (W + 1 v') and e the difference of the biases, eps = sup over the inputs meant of
    max_j |E_j x + e_j| and the bound is tanh(eps / 2).
    """
    from gonio.files.read.reading import read

    old, new = dialled.before, read(written.path, link=dialled.before.link, tensor=written.tensor or None)
    new = new.replace(inputs=old.inputs, softcap=old.softcap)
    v = dialled.translation
    assert v is not None
    eps = 0.0
    for start, block in new.blocks():
        before = old.rows[start : start + len(block)].astype(np.float64)
        off = np.abs((block.astype(np.float64) - before) - v)
        slack = 2.0**-51 * (np.abs(before) + np.abs(v))  # this difference itself is rounded
        more = _bias_difference(old, new, slice(start, start + len(block)))
        eps = max(eps, float((dialled.meant.sup(off + slack) + more).max()))
    return float(np.tanh(eps / 2)), largest_difference(old, dialled.points, new, dialled.points)


def _bias_difference(old: Head, new: Head, part: slice) -> np.ndarray:
    zero = np.zeros(old.shape[0])
    a, b = ((zero if h.bias is None else h.bias.astype(np.float64))[part] for h in (old, new))
    return np.abs(a - b) * (1 + 2.0**-50)
