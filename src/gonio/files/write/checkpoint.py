"""A checkpoint as it was read, with some tensors replaced: one file, or a folder with its config and shards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.atomic_write import make_folder, whole
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.source import Source
from gonio.core.whole_folder import MARKER, whole_folder
from gonio.files.write.tensors import Part, StoredTable, write_file, write_safetensors

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


def config_of(folder: Path) -> dict[str, Any]:
    """The config.json of a folder; empty where there is none."""
    path = folder / "config.json"
    return json.loads(path.read_bytes()) if path.is_file() else {}


def head_tensor_name(source: Source, config: Mapping[str, Any], place: Path, alone: str) -> str:
    """The tensor that is to hold the new head: the one it was read from, or a new one for a tied head."""
    from gonio.files.read.weights import CLASS_HEADS, TOKEN_HEADS

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


def standalone(head: Head, out: Path | str, *, dtype: str = "float32", overwrite: bool = False) -> Path:
    """The head alone, as a safetensors file with `weight` and `bias`."""
    out = Path(out)
    if out.exists() and not overwrite:
        raise GonioError(f"export: {out} exists; choose another name, or say that it may be overwritten.")
    rows = StoredTable(
        head, head.replace(source=None), dtype
    )  # as they score, whatever factor the model's file leaves out
    parts: dict[str, Any] = {"weight": rows}
    if head.bias is not None:
        parts["bias"] = head.bias.astype(np.float32)
    make_folder(out.parent, "export")
    with whole(out, "export") as temporary:
        write_safetensors(temporary, parts, {})
    return out


def write_folder(place: Path, folder: Path, holder: Path, parts: Mapping[str, Part], config: dict[str, Any]) -> None:
    """A checkpoint folder: the file with the head is written anew, the others are copied."""
    for path, target in _files(place, folder):
        if path == holder:
            write_file(path, target, parts)
        elif path.parent == place and path.name.endswith(".index.json"):
            _write_index(path, target, holder.name, parts)
        elif path == place / "config.json":
            config["tie_word_embeddings"] = False
            if config.get("model_type") in ("t5", "mt5", "umt5"):
                config.setdefault("scale_decoder_outputs", True)
            target.write_text(json.dumps(config, indent=2), encoding="utf-8")
        else:
            shutil.copyfile(path, target)


def _files(place: Path, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Each file of a model's folder and where its copy goes; folders are made as they come.

    A link out of the folder could copy a secret into what is handed on, and a device never ends: neither is copied.
    """
    root = place.resolve()
    # A model of the hub's cache is a folder of links into the store beside it, and may be copied.
    homes = [root, *([root.parents[1] / "blobs"] if root.parent.name == "snapshots" else [])]
    for path in sorted(place.rglob("*")):
        target = folder / path.relative_to(place)
        real = path.resolve()
        if not any(real.is_relative_to(home) for home in homes):
            raise GonioError(
                f"export: {path} is a link out of the model's folder, to {real}, and what lies outside is not copied; "
                f"remove the link, or put the file itself there."
            )
        if path.is_symlink() and real.is_dir():
            raise GonioError(f"export: {path} is a link to a folder, which is not followed; remove it.")
        if path.is_dir():
            target.mkdir(exist_ok=True)
        elif not path.is_file():
            raise GonioError(f"export: {path} is neither a file nor a folder, and is not copied; remove it.")
        elif path.relative_to(place) != Path(MARKER):
            yield path, target


def _write_index(path: Path, target: Path, holder: str, parts: Mapping[str, Part]) -> None:
    """The index of shards with the tensors of the head in it; one that is no index is copied as it is."""
    try:
        table = json.loads(path.read_bytes())
        if holder in table["weight_map"].values():
            table["weight_map"] |= dict.fromkeys(parts, holder)
            table.get("metadata", {}).pop("total_size", None)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        shutil.copyfile(path, target)
        return
    target.write_text(json.dumps(table, indent=2), encoding="utf-8")


def replace_tensors(
    source: Source,
    parts: Mapping[str, np.ndarray],
    out: Path | str,
    *,
    config: Callable[[dict[str, Any]], dict[str, Any]],
    overwrite: bool = False,
) -> Path:
    """The model of `source` with some tensors replaced and its config changed; gives the path to load it from."""
    from gonio.files.read.safetensors import SafetensorsArchive

    place, out = Path(source.place), Path(out)
    must_not_write_over(place, out)
    with whole_folder(out, "export", overwrite=overwrite) as folder:
        if not place.is_dir():
            write_file(place, folder / place.name, parts)
            return out / place.name
        for path, target in _files(place, folder):
            if path.suffix == ".safetensors":
                held = SafetensorsArchive([path], str(path)).entries
                write_file(path, target, {name: a for name, a in parts.items() if name in held})
            elif path == place / "config.json":
                about = config(json.loads(path.read_bytes()))
                target.write_text(json.dumps(about, indent=2), encoding="utf-8")
            else:
                shutil.copyfile(path, target)
    return out


def must_not_write_over(place: Path, out: Path) -> None:
    """Raise where `out` holds the model that was read, or lies inside it."""
    mine, other = place.resolve(), out.resolve()
    if mine.is_dir() and other.is_relative_to(mine):
        raise GonioError(f"export: {out} lies inside the model that was read; give a place outside of it.")
    if mine.is_relative_to(other):
        raise GonioError(f"export: {out} holds the model that was read, which is never written over.")
