"""A checkpoint folder, or a weights file with its config and tokenizer beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gonio.core.archive import Archive
from gonio.core.errors import LoadError
from gonio.files.read import checkpoint, names
from gonio.files.read.head_draft import Draft
from gonio.files.read.safetensors import SafetensorsArchive, sharded


def draft(folder: Path, tensor: str | None = None) -> Draft:
    """The head of a checkpoint folder."""
    return _with_config(_weights(folder), folder, tensor)


def safetensors_file(path: Path, tensor: str | None = None) -> Draft:
    """The head of a safetensors file; the config and tokenizer beside it are read where they are."""
    return _with_config(SafetensorsArchive([path], str(path)), path.parent, tensor)


def torch_file(path: Path, tensor: str | None = None) -> Draft:
    """The head of a torch file; the config and tokenizer beside it are read where they are."""
    from gonio.files.read.torch import open_file

    return _with_config(open_file(path), path.parent, tensor)


def weights_of(place: Path) -> Archive:
    """The tensors of a checkpoint folder or of a safetensors file."""
    return _weights(place) if place.is_dir() else SafetensorsArchive([place], str(place))


def _weights(folder: Path) -> Archive:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return sharded(index)
    whole = folder / "model.safetensors"
    found = [whole] if whole.is_file() else sorted(folder.glob("*.safetensors"))
    if len(found) == 1:
        return SafetensorsArchive(found, str(folder))
    if found:
        raise LoadError(
            f"load: {folder} has {len(found)} safetensors files and no model.safetensors.index.json; give one file."
        )
    if (folder / "pytorch_model.bin.index.json").is_file():
        return _torch_shards(folder / "pytorch_model.bin.index.json")
    torch_files = [p for name in ("pytorch_model.bin", "model.pt", "model.pth") if (p := folder / name).is_file()]
    if torch_files:
        from gonio.files.read.torch import open_file

        archive = open_file(torch_files[0])
        archive.place = str(folder)
        return archive
    others = sorted(p.name for p in folder.iterdir() if p.suffix in (".gguf", ".onnx", ".npz", ".npy", ".pt", ".pth"))
    what = f"it has {', '.join(others[:5])}; give one of these files" if others else "it has none; give another folder"
    raise LoadError(f"load: {folder} is no checkpoint: model.safetensors or pytorch_model.bin was wanted; {what}.")


def _torch_shards(index: Path) -> Archive:
    from gonio.files.read.torch import TorchArchive, open_file

    try:
        files = sorted({str(v) for v in json.loads(index.read_bytes())["weight_map"].values()})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise LoadError(f"load: {index} is not a valid index ({type(e).__name__}: {e}); write it anew.") from None
    state: dict[str, Any] = {}
    where: dict[str, str] = {}
    for name in files:
        if Path(name).name != name or not (index.parent / name).is_file():
            raise LoadError(f"load: {index} names the file {name!r}, which is not in its folder; fetch it.")
        part = open_file(index.parent / name)
        state |= part.state
        where |= part.files
    archive = TorchArchive(state, str(index.parent))
    archive.files = where
    return archive


def _with_config(archive: Archive, folder: Path, tensor: str | None) -> Draft:
    def beside(name: str) -> bytes | None:
        path = folder / name
        return path.read_bytes() if path.is_file() else None

    raw = beside("config.json")
    config = None if raw is None else checkpoint.parse_config(raw, str(folder / "config.json"))
    if config is None:
        return names.draft(archive, tensor)
    return checkpoint.draft(archive, config, beside, tensor)
