"""`states`: what enters the head while a model reads a text, with where each state came from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.atomic_write import whole
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.npy_file import read_npy
from gonio.core.states import States, rows_digest
from gonio.files.write.growing_npy import growing, scratch
from gonio.models.batches import LENGTH, Batch, fed_batches, text_batches, windows
from gonio.models.capture import Capture, undisturbed
from gonio.models.documents import given_documents
from gonio.models.head_module import head_module, last_linear
from gonio.models.own_numbers import OwnNumbers
from gonio.models.tasks import Task, task_of

TOKENS = 20_000
OnBatch = Callable[[int, int, str], None]


def states(
    model: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    feed: Mapping[str, Any] | None = None,
    head: str | Head | None = None,
    tokens: int = TOKENS,
    length: int = LENGTH,
    layer: str | int = "final",
    seed: int = 0,
    out: str | Path | None = None,
    on_batch: OnBatch | None = None,
) -> States:
    """What enters the head of a model while it reads texts, or arrays that are fed to it.

    Parameters
    ----------
    model : a transformers model, a torch module with a last linear layer, a SentenceTransformer, or a place of one
    tokenizer : the model's own, or any function from a text to token numbers; a model from a place brings its own
    texts : the documents; "self" lets a causal model write its own (`gonio.models.own_text`)
    feed : arrays by the name of the model's argument, in place of texts (vision, speech, plain modules)
    head : the module of the head ("classifier"), where it is not found; or the Head that was read from the same model
    tokens : stop after so many states
    length : tokens that the model reads at once
    layer : "final", what enters the head, or the number of a hidden layer, which no head reads
    out : a .npy file to keep them in; otherwise they lie in a temporary file while they are used

    Every batch is held against the model's own output: where softmax(W f + b) is not what the model says, it stops. An
    interrupt (Ctrl-C) keeps what was captured; `about["stopped"]` then says so.
    """
    place = ""
    if isinstance(model, (str, Path)):
        from gonio.models.opening import open_model

        opened = open_model(model)
        place, model, tokenizer = opened.place, opened.model, tokenizer or opened.tokenizer
    from gonio.models import sentences

    if sentences.is_sentence_model(model):
        return sentences.states_of_sentences(model, given_documents(texts, "states"), tokens, on_batch)
    must_be_runnable(model)
    about: dict[str, Any] = {"model": place or _name(model, head), "seed": seed, "layer": layer}
    if texts is None and feed is None:
        raise GonioError("states: nothing to read was given; give texts, or the model's inputs as arrays (feed=).")
    if isinstance(texts, str) and texts == "self":
        from gonio.models.own_text import written_by

        texts = written_by(model, tokenizer, tokens, seed, on_batch=on_batch)
        about["written_by"] = "the model itself, sampled"
    found, module = _head_of(model, head, feed)
    task = Task.FED if feed is not None else task_of(model)
    if task is Task.FED and feed is None:
        raise GonioError(
            f"states: a {_name(model)} reads no text; give its inputs as arrays (feed=, --feed inputs.npz)."
        )
    labels = 0 if found is None else found.shape[0]
    if feed is not None:
        batches: Iterable[Batch] = fed_batches(feed, labels)
        total, documents = len(next(iter(feed.values()))), None
    else:
        documents = given_documents(texts, "states")
        batches, total = _read(model, tokenizer, documents, task, labels, tokens, _room(model, length), seed)
        about |= _text_of(documents)
    about["how"] = f"states {task.value}"
    own = None if found is None or layer != "final" else OwnNumbers(found, _float_kind(model))
    capture = Capture(model, module, own, None if layer == "final" else _layer(layer))
    got = collected(capture.batches(batches), tokens, total, out, on_batch)
    F, where, stopped = got
    if own is not None:
        about |= {"largest_difference": own.difference, "positions_checked": own.checked}
    if stopped:
        about["stopped"] = True
    return States(F, *where, head="" if own is None or found is None else rows_digest(found), about=about)


def must_be_runnable(model: Any) -> None:
    """Complain about what is no torch module."""
    from gonio.files.read.torch import is_module

    if not is_module(model):
        raise GonioError(
            f"states: a {type(model).__module__}.{type(model).__name__} is no model that gonio runs; give a "
            f"transformers model, a torch module, a SentenceTransformer, or a place of one."
        )


def _head_of(model: Any, named: str | Head | None, feed: Mapping[str, Any] | None) -> tuple[Head | None, Any]:
    """The head as it is read, and the module that it is in the live model."""
    from gonio.models.loading import load

    if isinstance(named, Head):
        source = named.source
        found = head_module(model, None, source.tensors.get("W", "") if source else "")
        if found is None:
            name, module = last_linear(model, lambda: _first_run(model, feed), named.shape[0])
            return named, module
        return named, found[1]
    if named is not None:
        name, module = head_module(model, named, "")  # type: ignore[misc]
        return load(model, tensor=f"{name}.weight", link=None), module
    try:
        head = load(model)
    except GonioError:
        head = None
    tensor = head.source.tensors.get("W", "") if head is not None and head.source else ""
    if head is not None and head.link != "input":
        found = head_module(model, None, tensor)
        if found is not None:
            return head, found[1]
    name, module = last_linear(model, lambda: _first_run(model, feed), None)
    return load(model, tensor=f"{name}.weight"), module


def _first_run(model: Any, feed: Mapping[str, Any] | None) -> Any:
    if feed is None:
        raise GonioError("states: no head was found in this model; name its module (head='classifier').")
    with undisturbed(model):
        return Capture(model, None, None).run(next(iter(fed_batches(feed, 1, rows=1))))


def _read(
    model: Any, tokenizer: Any, documents: list[str], task: Task, labels: int, tokens: int, length: int, seed: int
) -> tuple[Iterable[Batch], int]:
    if tokenizer is None:
        raise GonioError("states: a tokenizer is needed to read text; give the model's own (tokenizer=).")
    found = windows(tokenizer, documents, length, tokens, task)
    # A decoder that classifies looks for the last token that is no padding, and must know what padding is.
    alone = task is Task.SEQUENCE and getattr(model.config, "pad_token_id", None) is None
    whole_text = sum(len(w.ids) for w in found)
    total = {Task.SEQUENCE: len(found), Task.MASKED: max(1, round(0.15 * whole_text))}.get(task, whole_text)
    return text_batches(found, tokenizer, model, task, labels, seed, alone), min(total, tokens)


def collected(
    parts: Iterable[Any], most: int, total: int, out: str | Path | None, on_batch: OnBatch | None
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray], bool]:
    """The states in a file as they come, at most so many; an interrupt keeps those that are there."""
    if out is not None:
        with whole(out, "states") as temporary:
            where, stopped = _gathered(parts, most, total, temporary, on_batch)
        return read_npy(out, "states"), where, stopped
    place = scratch("states")
    try:
        where, stopped = _gathered(parts, most, total, place, on_batch)
        return read_npy(place, "states"), where, stopped
    finally:
        place.unlink()  # what is mapped stays readable until it is let go


def _gathered(
    parts: Iterable[Any], most: int, total: int, place: Path, on_batch: OnBatch | None
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], bool]:
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    stopped, have = False, 0
    steps = iter(parts)
    first = next(steps, None)
    while first is not None and not len(first.F):
        first = next(steps, None)
    if first is None:
        raise GonioError("states: no position of the text was kept; give more text.")
    with growing(place, first.F.shape[1], "states") as file:
        part = first
        try:
            while part is not None and have < most:
                room = most - have
                file.append(part.F[:room])
                kept.append((part.documents[:room], part.positions[:room], part.tokens[:room]))
                have += min(room, len(part.F))
                if on_batch is not None:
                    on_batch(have, max(total, have), "states")
                part = next(steps, None) if have < most else None
        except KeyboardInterrupt:
            stopped = True
            # The states and their origins must be of one length, whatever was interrupted between the two.
            have = min(sum(len(k[0]) for k in kept), file.rows)
        file.rows = have
    columns = [np.concatenate([k[i] for k in kept])[:have] for i in range(3)]
    return (columns[0], columns[1], columns[2]), stopped


def _text_of(documents: list[str]) -> dict[str, Any]:
    h = hashlib.sha256()
    for text in documents:
        h.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return {"text": h.hexdigest(), "documents_given": len(documents)}


def _room(model: Any, length: int) -> int:
    """How many tokens the model reads at once, where it says so."""
    config = getattr(model.config, "text_config", None) or model.config
    said = [getattr(config, k, None) for k in ("max_position_embeddings", "n_positions", "max_target_positions")]
    known = [int(x) for x in said if isinstance(x, int) and x > 0]
    # RoBERTa and its kin count positions from behind the padding token.
    before = int(getattr(config, "pad_token_id", 0) or 0) + 1 if "roberta" in str(config.model_type) else 0
    return max(1, min([length, *(k - before for k in known)]))


def _name(model: Any, head: Any = None) -> str:
    if isinstance(head, Head) and head.source is not None:
        return head.source.place
    config = getattr(model, "config", None)
    return str(getattr(config, "name_or_path", "") or type(model).__name__)


def _float_kind(model: Any) -> str:
    kinds = {str(p.dtype).removeprefix("torch.") for p in model.parameters() if p.is_floating_point()}
    order = ("bfloat16", "float16", "float32", "float64")
    return next((k for k in order if k in kinds), "float32")


def _layer(layer: str | int) -> int:
    try:
        return int(layer)
    except (TypeError, ValueError):
        raise GonioError(f"states: layer is {layer!r}; give 'final' or the number of a layer.") from None
