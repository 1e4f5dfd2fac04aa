"""Models in huggingface_hub's own cache (HF_HOME, HF_HUB_CACHE), and their download into it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gonio.core.errors import LoadError, missing_extra
from gonio.files.read.hub_name import HubName, hub_name, is_inside

# What running a model needs. Pickled weights and code are never fetched.
FETCHED = ("*.json", "*.safetensors", "*.txt", "*.model")
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
TEXT = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt", "tokenizer.model", "spiece.model")
INPUTS = (*TEXT, "preprocessor_config.json", "processor_config.json")  # of models that read text, pictures, sound


class HubError(LoadError):
    """A model that cannot be had from the hub: it is not there, needs a token, or nobody answers."""


def hub_library() -> Any:
    """huggingface_hub, or the sentence that says how to install it."""
    try:
        import huggingface_hub.constants
        import huggingface_hub.utils
    except ImportError:
        raise missing_extra("load", "huggingface_hub", "hub") from None
    return huggingface_hub


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids requests."""
    return bool(hub_library().constants.HF_HUB_OFFLINE)


def cached_file(repository: str, file: str, revision: str) -> Path | None:
    """A file of a model in huggingface_hub's cache, or None."""
    library = hub_library()
    try:
        found = library.try_to_load_from_cache(repository, file, revision=revision)
    except (OSError, ValueError):
        return None
    return Path(found) if isinstance(found, str) and Path(found).is_file() else None


def local_folder(name: str | HubName) -> Path | None:
    """The snapshot folder of a model in huggingface_hub's cache, if its config.json and all its weights are there.

    It is the snapshot that the cache has for the revision; no server is asked whether there is a newer one.
    """
    model = hub_name(name)
    config = cached_file(model.repository, "config.json", model.revision)
    return config.parent if config is not None and _is_complete(config.parent) else None


def download(name: str | HubName) -> Path:
    """The folder of a model, fetched into huggingface_hub's cache where it is not there yet.

    Config, tokenizer and safetensors weights are fetched; pickled weights (.bin, .pt) and code (.py) never are.
    """
    model = hub_name(name, "download")
    here = local_folder(model)
    if here is not None and (is_offline() or any((here / x).is_file() for x in INPUTS)):
        return here
    if is_offline():
        raise HubError(f"download: {offline_sentence(model)}")
    library = hub_library()
    try:
        folder = library.snapshot_download(model.repository, revision=model.revision, allow_patterns=list(FETCHED))
    except Exception as e:  # whatever the library, the network or the disk does
        raise HubError(f"download: {told(e, model)}") from None
    if not _is_complete(Path(folder)):
        raise HubError(
            f"download: {model} has no complete set of config.json and safetensors weights, and others are not "
            f"fetched; convert it to safetensors, or give a folder."
        )
    return Path(folder)


def fetch_file(model: HubName) -> Path:
    """One file of a model, whole, fetched into huggingface_hub's cache where it is not there yet."""
    here = cached_file(model.repository, model.file, model.revision)
    if here is not None:
        return here
    if is_offline():
        raise HubError(f"load: {offline_sentence(model)}")
    try:
        return Path(hub_library().hf_hub_download(model.repository, model.file, revision=model.revision))
    except Exception as e:  # whatever the library, the network or the disk does
        raise HubError(f"load: {told(e, model)}") from None


def offline_sentence(model: HubName) -> str:
    """Nothing is cached, and nothing may be asked for."""
    return f"{model} is not in the cache, and HF_HUB_OFFLINE forbids to fetch it; unset that, or give a folder."


def told(e: Exception, model: HubName) -> str:
    """What went wrong, in a sentence, by the kind of error that huggingface_hub raises."""
    kinds = {k.__name__ for k in type(e).__mro__}
    if "GatedRepoError" in kinds:
        return gated_sentence(model)
    if "RepositoryNotFoundError" in kinds:
        return unknown_sentence(model)
    if "RevisionNotFoundError" in kinds:
        return revision_sentence(model)
    if kinds & {
        "LocalEntryNotFoundError",
        "OfflineModeIsEnabled",
        "ConnectError",
        "ConnectionError",
        "TimeoutException",
    }:
        return f"{model} could not be reached ({type(e).__name__}); check the network, or give a folder."
    if "EntryNotFoundError" in kinds:
        return f"{model} is not there: the model has no such file; check its name."
    why = " ".join(str(e).split())[:200] or "no reason given"
    return f"{model} could not be fetched ({type(e).__name__}: {why}); try again, or give a folder."


def gated_sentence(model: HubName) -> str:
    """A model that asks for a token."""
    return f"{model} is gated and needs a token: accept its terms on its page, then log in with `hf auth login`."


def unknown_sentence(model: HubName) -> str:
    """A name that the hub does not know, or does not show."""
    return f"the hub has no model {model.repository}, or it is private; check the name, or log in with `hf auth login`."


def revision_sentence(model: HubName) -> str:
    """A revision that a model does not have."""
    return f"{model.repository} has no revision {model.revision!r}; name a branch, a tag or a commit of it."


def _is_complete(folder: Path) -> bool:
    """Whether a folder has a config and all the weights that it names."""
    if not (folder / "config.json").is_file():
        return False
    for weights in WEIGHTS:
        index = folder / f"{weights}.index.json"
        if index.is_file():
            return _has_all(folder, index)
        if (folder / weights).is_file():
            return True
    return False


def _has_all(folder: Path, index: Path) -> bool:
    try:
        files = {str(x) for x in json.loads(index.read_bytes())["weight_map"].values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return bool(files) and all(is_inside(x) and (folder / x).is_file() for x in files)
