"""Write a padded head back into its checkpoint: the head, its bias and the token embeddings all grow together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from gonio.ask.padding import Padded
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.npz_archive import NpzArchive
from gonio.core.source import Source
from gonio.files.read.safetensors import SafetensorsArchive
from gonio.files.write.checkpoint import replace_tensors
from gonio.proofs.bulk import verify_all

TOKENS = re.compile(r"embed|wte|lm_head|predictions|decoder|vocab", re.IGNORECASE)  # names of tables over tokens


def export_padded(padded: Padded, like: Head, out: Path | str, *, overwrite: bool = False) -> tuple[Path, str]:
    """Write the padded head as the model that `like` was loaded from, and check the proofs on what was written.

    Every other table of the checkpoint with one row a token (the input embeddings of an untied model) gets rows of
    zeros, which no token reads; vocab_size in the config follows.
    """
    source = like.source
    if source is None or source.format not in ("safetensors", "npz", "npy"):
        kind = "a head made in memory" if source is None else f"a {source.format} model"
        raise GonioError(f"pad: {kind} cannot be written back; what can be written is safetensors, npz and npy.")
    if source.factor != 1.0:
        raise GonioError(
            f"pad: the model scales its logits by {source.factor:g}, and rounding would come after the proof."
        )
    n, to = like.shape[0], padded.head.shape[0]
    rows = padded.head.rows.stored
    new: dict[str, np.ndarray] = {source.tensors["W"]: np.ascontiguousarray(rows.T) if source.turned else rows}
    if padded.head.bias is not None and like.bias is not None:
        new[source.tensors["bias"]] = padded.head.bias.astype(like.bias.dtype)

    if source.format == "npz" and "labels" in NpzArchive(Path(source.place)).entries:
        new["labels"] = np.array(padded.head.labels)
    new |= _grown(source, n, to, set(new))

    def config(about: dict[str, Any]) -> dict[str, Any]:
        for part in (about, about.get("text_config")):
            if isinstance(part, dict) and "vocab_size" in part:
                part["vocab_size"] = to
        return about

    path = replace_tensors(source, new, out, config=config, overwrite=overwrite)
    return path, _checked(padded, like, path)


def _grown(source: Source, n: int, to: int, done: set[str]) -> dict[str, np.ndarray]:
    """The other tables of a checkpoint folder with one row a token, with rows of zeros appended."""
    place = Path(source.place)
    if not place.is_dir():
        return {}
    out: dict[str, np.ndarray] = {}
    for path in sorted(place.glob("*.safetensors")):
        archive = SafetensorsArchive([path], str(path))
        for name, entry in archive.entries.items():
            if name in done or entry.shape[:1] != (n,) or "float" not in entry.dtype:
                continue
            if TOKENS.search(name):
                a = archive.read(name)
                out[name] = np.concatenate([a, np.zeros((to - n, *a.shape[1:]), a.dtype)])
    return out


def _checked(padded: Padded, like: Head, path: Path) -> str:
    """The proofs, verified once more on the file that was written."""
    from gonio.files.read.reading import read

    assert like.source is not None
    again = read(path, link=like.link, tensor=like.source.tensors["W"] or None).replace(
        inputs=like.inputs, softcap=like.softcap, labels=None
    )
    if again.digest != padded.head.digest:
        raise GonioError(f"pad: what {path} holds is not what was proven; remove it and tell the authors.")
    refused = verify_all(again, list(padded.certificates)).refused
    if refused:
        raise GonioError(f"pad: a proof fails on {path}: {next(iter(refused.values()))}")
    return "checked on the file"
