"""Write an equivalent head back as a checkpoint of the model's own format.

Everything is written beside the target, in a new folder or file, and moved into place at the end: a full disk or an
interruption leaves nothing half-written, and the model that was read is never touched.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gonio.errors import GonioError
from gonio.gauge.dial import Dialled
from gonio.gauge.files import SAFETENSORS, Part, Table, new_folder, write_file, write_safetensors
from gonio.head import Head, Source
from gonio.written import whole

Precision = Literal["float32", "same"]
# Tied models that can be untied, by model_type: the name their own head has then. Others keep a head under a name, or a
# table in a second place, that is not known here, and would be read back with a random head.
UNTIED = dict.fromkeys(
    ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma3_text", "phi3", "olmo2", "stablelm", "falcon", "mpt",
     "bloom", "cohere", "granite", "opt", "t5", "mt5", "umt5"),
    "lm_head.weight",
) | {
    "bert": "cls.predictions.decoder.weight",
    "distilbert": "vocab_projector.weight",
    "roberta": "lm_head.decoder.weight",
    "xlm-roberta": "lm_head.decoder.weight",
    "albert": "predictions.decoder.weight",
    "electra": "generator_lm_head.weight",
}  # fmt: skip


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
    _not_over(place, out)
    if like.link == "input":
        return _moved_tables(dialled, place, out, dtype, overwrite)
    config = _config(place if place.is_dir() else place.parent)
    name = _name(source, config, place, alone)
    parts: dict[str, Part] = {name: Table(head, like, dtype)}
    untied = name != source.tensors["W"]
    if untied and like.bias is not None:
        own = name.removesuffix("weight") + "bias"  # beside a head of its own some models look for a bias of its own
        if source.tensors.get("bias") != own:
            parts[own] = like.bias
    with new_folder(out, overwrite) as folder:
        if not place.is_dir():
            write_file(place, folder / place.name, parts)
            return Written(out / place.name, name, dtype, untied)
        _folder(place, folder, Path(source.file), parts, config)
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
        name: Table(dialled.head, dialled.before, dtype).whole(),
        other: (added - v).astype(np.float32 if dtype != "float64" else np.float64),
    }
    path = replace_tensors(source, parts, out, config=lambda about: about, overwrite=overwrite)
    return Written(path, name, dtype, False, other)


def _second_table(source: Source, place: Path, name: str) -> np.ndarray:
    from gonio.load.folder import weights_of

    return weights_of(place).read(name).astype(np.float64)


def measure_tables(written: Written, dialled: Dialled) -> float:
    """Proven: no entry of (row + added row) differs by more between the model as read and as written."""
    from gonio.load.folder import weights_of

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


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    return json.loads(path.read_bytes()) if path.is_file() else {}


def _name(source: Source, config: Mapping[str, Any], place: Path, alone: str) -> str:
    """The tensor that is to hold the new head: the one it was read from, or a new one for a tied head."""
    from gonio.load.weights import CLASS_HEADS, TOKEN_HEADS

    tensor = source.tensors["W"]
    if not config or any(tensor == h or tensor.endswith("." + h) for h in (*TOKEN_HEADS, *CLASS_HEADS)):
        return tensor
    kind = str(config.get("model_type"))
    if not place.is_dir():
        raise GonioError(
            f"export: {tensor} of {place} is also the table of input embeddings, and untying it changes the config "
            f"beside it; give the folder {place.parent} instead."
        )
    if kind not in UNTIED:
        raise GonioError(
            f"export: the head of this {kind} model is tied to its input embeddings, and where it looks for a head of "
            f"its own is not known here. {alone}"
        )
    return UNTIED[kind]


def measure(written: Written, dialled: Dialled) -> tuple[float, float]:
    """What the checkpoint as written does to probabilities: (proven bound, largest difference measured).

    With E = W_written - (W + 1 v') and e the difference of the biases, eps = sup over the inputs meant of
    max_j |E_j x + e_j| and the bound is tanh(eps / 2).
    """
    from gonio.load import load

    old, new = dialled.before, load(written.path, link=dialled.before.link, tensor=written.tensor or None)
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
    p, q = old.probabilities(dialled.points), new.probabilities(dialled.points)
    return float(np.tanh(eps / 2)), float(np.abs(p - q).max())


def _bias_difference(old: Head, new: Head, part: slice) -> np.ndarray:
    zero = np.zeros(old.shape[0])
    a, b = ((zero if h.bias is None else h.bias.astype(np.float64))[part] for h in (old, new))
    return np.abs(a - b) * (1 + 2.0**-50)


def standalone(head: Head, out: Path | str, *, dtype: str = "float32", overwrite: bool = False) -> Path:
    """The head alone, as a safetensors file with `weight` and `bias`."""
    out = Path(out)
    if out.exists() and not overwrite:
        raise GonioError(f"export: {out} exists; choose another name, or say that it may be overwritten.")
    rows = Table(head, head.replace(source=None), dtype)  # as they score, whatever factor the model's file leaves out
    parts: dict[str, Any] = {"weight": rows}
    if head.bias is not None:
        parts["bias"] = head.bias.astype(np.float32)
    out.parent.mkdir(parents=True, exist_ok=True)
    with whole(out, "export") as temporary:
        write_safetensors(temporary, parts, {})
    return out


def _folder(place: Path, folder: Path, holder: Path, parts: Mapping[str, Part], config: dict[str, Any]) -> None:
    """A checkpoint folder: the file with the head is written anew, the others are copied."""
    for path in sorted(place.rglob("*")):
        target = folder / path.relative_to(place)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        elif path == holder:
            write_file(path, target, parts)
        elif path.parent == place and path.name.endswith(".index.json"):
            table = json.loads(path.read_bytes())
            if holder.name in table.get("weight_map", {}).values():
                table["weight_map"] |= dict.fromkeys(parts, holder.name)
                table.get("metadata", {}).pop("total_size", None)
            target.write_text(json.dumps(table, indent=2), encoding="utf-8")
        elif path == place / "config.json":
            config["tie_word_embeddings"] = False
            if config.get("model_type") in ("t5", "mt5", "umt5"):
                config.setdefault("scale_decoder_outputs", True)
            target.write_text(json.dumps(config, indent=2), encoding="utf-8")
        else:
            shutil.copy2(path, target)


def replace_tensors(
    source: Source,
    parts: Mapping[str, np.ndarray],
    out: Path | str,
    *,
    config: Callable[[dict[str, Any]], dict[str, Any]],
    overwrite: bool = False,
) -> Path:
    """The model of `source` with some tensors replaced and its config changed; gives the path to load it from."""
    from gonio.load.safetensors import SafetensorsArchive

    place, out = Path(source.place), Path(out)
    _not_over(place, out)
    with new_folder(out, overwrite) as folder:
        if not place.is_dir():
            write_file(place, folder / place.name, parts)
            return out / place.name
        for path in sorted(place.rglob("*")):
            target = folder / path.relative_to(place)
            if path.is_dir():
                target.mkdir(exist_ok=True)
            elif path.suffix == ".safetensors":
                held = SafetensorsArchive([path], str(path)).entries
                write_file(path, target, {name: a for name, a in parts.items() if name in held})
            elif path == place / "config.json":
                about = config(json.loads(path.read_bytes()))
                target.write_text(json.dumps(about, indent=2), encoding="utf-8")
            else:
                shutil.copy2(path, target)
    return out


def _not_over(place: Path, out: Path) -> None:
    mine, other = place.resolve(), out.resolve()
    if mine.is_dir() and other.is_relative_to(mine):
        raise GonioError(f"export: {out} lies inside the model that was read; give a place outside of it.")
    if mine.is_relative_to(other):
        raise GonioError(f"export: {out} holds the model that was read, which is never written over.")
