"""A live model and its tokenizer from a place: a folder, a GGUF file, a name on the hub. None of its code is run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gonio.core.errors import GonioError, LoadError, missing_extra


@dataclass(frozen=True, eq=False)
class Opened:
    """A model that can be run: a transformers model with its tokenizer, or a SentenceTransformer."""

    model: Any
    tokenizer: Any
    place: str


def open_model(place: str | Path, who: str = "states") -> Opened:
    """The live model of a checkpoint folder, of a file in one, of a GGUF file or of a name on the hub."""
    path = Path(place)
    if path.is_file() and path.suffix.lower() == ".gguf":
        return _gguf(path, who)
    if path.is_file() and (path.parent / "config.json").is_file():
        path = path.parent
    if not path.exists():
        from gonio.files.read.hub_cache import download, local_folder

        path = local_folder(str(place)) or download(str(place))
    if not path.is_dir():
        raise GonioError(
            f"{who}: {place} holds weights but no model that can be run; give the model's folder (with config.json), a "
            f".gguf file or a name on the hub, or captured states (--embeddings)."
        )
    if (path / "modules.json").is_file():
        return _sentences(path, who)
    return _folder(path, str(place), who)


def _folder(path: Path, place: str, who: str) -> Opened:
    transformers = _transformers(who)
    try:
        config = json.loads((path / "config.json").read_bytes())
        names = [str(x) for x in config.get("architectures") or ()]
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        raise GonioError(f"{who}: {place} has no readable config.json, so how to run it is not known.") from None
    known = next((x for x in names if isinstance(getattr(transformers, x, None), type)), None)
    if known is None:
        told = names[0] if names else "not named"
        code = " and brings code of its own, which is never run" if config.get("auto_map") else ""
        raise GonioError(
            f"{who}: the architecture of {place} is {told}, which transformers {transformers.__version__} does not "
            f"know{code}; capture the states yourself and give them with --embeddings."
        )
    _must_be_weights(path)
    with quiet(), _in_a_sentence(who, place):
        model = getattr(transformers, known).from_pretrained(path, trust_remote_code=False, local_files_only=True)
        tokenizer = _tokenizer(transformers, path)
    return Opened(model.eval(), tokenizer, place)


def _gguf(path: Path, who: str) -> Opened:
    transformers = _transformers(who)
    try:
        import accelerate  # noqa: F401  transformers asks for it when it reads GGUF
        import gguf  # noqa: F401
    except ImportError as e:
        raise missing_extra(who, str(e.name), "transformers,gguf") from None
    with quiet(), _in_a_sentence(who, str(path)):
        asked = {"gguf_file": path.name, "local_files_only": True, "trust_remote_code": False}
        model = transformers.AutoModelForCausalLM.from_pretrained(str(path.parent), **asked)
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path.parent), **asked)
    return Opened(model.eval(), tokenizer, str(path))


def _sentences(path: Path, who: str) -> Opened:
    try:
        import sentence_transformers
    except ImportError:
        raise missing_extra(who, "sentence_transformers", "transformers") from None
    _must_be_weights(path)
    with quiet(), _in_a_sentence(who, str(path)):
        model = sentence_transformers.SentenceTransformer(
            str(path), trust_remote_code=False, local_files_only=True, device="cpu"
        )
    return Opened(model, None, str(path))


def _must_be_weights(path: Path) -> None:
    """Files of torch that hold more than weights are refused before anything else opens them."""
    if list(path.glob("*.safetensors")):
        return
    from gonio.files.read.torch import open_file

    for file in sorted(path.glob("pytorch_model*.bin")):
        open_file(file)


def _tokenizer(transformers: Any, path: Path) -> Any:
    try:
        return transformers.AutoTokenizer.from_pretrained(path, trust_remote_code=False, local_files_only=True)
    except Exception:  # vision and speech models have none; text then needs one, and says so
        return None


def _transformers(who: str) -> Any:
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as e:
        raise missing_extra(who, str(e.name), "transformers") from None
    return transformers


@contextmanager
def _in_a_sentence(who: str, place: str) -> Iterator[None]:
    """Whatever a library says of a model that it cannot open, in one sentence."""
    try:
        yield
    except (GonioError, KeyboardInterrupt):
        raise
    except MemoryError:
        raise
    except Exception as e:
        told = " ".join(str(e).split())[:200]
        raise LoadError(f"{who}: {place} could not be opened as a model ({type(e).__name__}: {told}).") from None


@contextmanager
def quiet() -> Iterator[None]:
    """No bars and no remarks of the libraries; they are put back."""
    import warnings

    from transformers import modeling_gguf_pytorch_utils as gguf_reading
    from transformers.utils import logging

    level, shown = logging.get_verbosity(), logging.is_progress_bar_enabled()
    bar = getattr(gguf_reading, "tqdm", None)
    if bar is not None:
        setattr(gguf_reading, "tqdm", lambda items, **_: items)  # noqa: B010  its own bar, which no setting turns off
    old = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads and ours would wait for each other
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bar is not None:
            setattr(gguf_reading, "tqdm", bar)  # noqa: B010
        if shown:
            logging.enable_progress_bar()
        os.environ.pop("TOKENIZERS_PARALLELISM") if old is None else os.environ.update(TOKENIZERS_PARALLELISM=old)
