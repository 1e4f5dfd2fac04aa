"""Batches of what a model reads: tokens of documents in windows, masked where the task asks for it, or arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.models.tasks import Task

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

LENGTH = 256  # tokens that a model reads at once
MASKED = 0.15  # share of positions that are masked
CELLS = 48_000_000  # logits of one batch: some 200 MB in float32


@dataclass(frozen=True, eq=False)
class Batch:
    """What one forward pass reads, and which of its positions are kept.

    inputs      arguments of the model by name, as arrays
    keep        the positions whose states are taken; None: all that come, one an input
    documents   the document of each row
    first       the place of each row's first token in its document
    tokens      the tokens as they stood in the text, before any was masked; None where there are none
    """

    inputs: Mapping[str, np.ndarray]
    keep: Bool[np.ndarray, "rows length"] | None
    documents: Int[np.ndarray, " rows"]
    first: Int[np.ndarray, " rows"]
    tokens: Int[np.ndarray, "rows length"] | None

    def origins(self, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(documents, positions, tokens) of the positions that a mask of shape (rows, length) keeps."""
        row, at = np.nonzero(mask)
        fits = self.tokens is not None and self.tokens.shape == mask.shape
        tokens = self.tokens[row, at] if fits and self.tokens is not None else np.full(len(row), -1)
        return self.documents[row], self.first[row] + at, tokens


@dataclass(frozen=True)
class Window:
    """A stretch of one document's tokens."""

    document: int
    first: int
    ids: tuple[int, ...]


def encoded(tokenizer: Any, text: str, length: int, *, whole: bool) -> list[list[int]]:
    """The token numbers of a document, in windows of at most `length`; only the first where it must stay whole."""
    fast = bool(getattr(tokenizer, "is_fast", False))
    if fast:
        cut = tokenizer(text, truncation=True, max_length=length, return_overflowing_tokens=not whole)["input_ids"]
        parts = [cut] if cut and not isinstance(cut[0], (list, tuple)) else list(cut)
    else:
        ids = tokenizer(text)
        ids = ids["input_ids"] if isinstance(ids, Mapping) or hasattr(ids, "keys") else ids
        ids = [int(x) for x in getattr(ids, "ids", ids)]
        parts = [ids[:length]] if whole else [ids[i : i + length] for i in range(0, len(ids), length)]
    return [list(map(int, p)) for p in parts if len(p)]


def windows(tokenizer: Any, documents: list[str], length: int, most: int, task: Task) -> list[Window]:
    """Windows of the documents, in order, until about `most` states are to be had."""
    out: list[Window] = []
    have = 0.0
    for d, text in enumerate(documents):
        first = 0
        for ids in encoded(tokenizer, text, length, whole=task in (Task.SEQUENCE, Task.WRITING)):
            out.append(Window(d, first, tuple(ids)))
            first += len(ids)
            have += 1 if task is Task.SEQUENCE else max(1.0, MASKED * len(ids)) if task is Task.MASKED else len(ids)
        if have >= most:
            break
    if not out:
        raise GonioError("states: the text is shorter than one token; give some sentences.")
    return out


def text_batches(
    found: list[Window], tokenizer: Any, model: Any, task: Task, labels: int, seed: int, one_by_one: bool
) -> Iterator[Batch]:
    """The windows in batches of about one length, each within the room for logits."""
    special: set[int] = set(getattr(tokenizer, "all_special_ids", None) or ())
    pad = getattr(tokenizer, "pad_token_id", None)
    pad = 0 if pad is None else int(pad)
    rng = np.random.default_rng(seed)
    room = max(1, CELLS // max(labels, 1))
    for group in _alike_in_length(found, room, one_by_one):
        wide = max(len(w.ids) for w in group)
        ids = np.full((len(group), wide), pad, np.int64)
        real = np.zeros(ids.shape, bool)
        for r, w in enumerate(group):
            ids[r, : len(w.ids)] = w.ids
            real[r, : len(w.ids)] = True
        inputs = {"input_ids": ids, "attention_mask": real.astype(np.int64)}
        keep: np.ndarray | None = real
        if task is Task.MASKED:
            inputs["input_ids"], keep = _masked(ids, real, special, tokenizer, rng)
        elif task is Task.TOKENS:
            keep = real & ~np.isin(ids, list(special))
        elif task is Task.SEQUENCE:
            keep = None
        elif task is Task.WRITING:
            inputs["decoder_input_ids"] = _shifted(ids, model)
            inputs["decoder_attention_mask"] = real.astype(np.int64)
        yield Batch(inputs, keep, np.array([w.document for w in group]), np.array([w.first for w in group]), ids)


def _alike_in_length(found: list[Window], room: int, one_by_one: bool) -> Iterator[list[Window]]:
    """Groups of windows of nearly one length: padding costs as much as text."""
    for start in range(0, len(found), 64):
        part = sorted(found[start : start + 64], key=lambda w: len(w.ids))
        group: list[Window] = []
        for w in part:
            if group and (one_by_one or (len(group) + 1) * len(w.ids) > room or len(w.ids) > 2 * len(group[0].ids) + 8):
                yield group
                group = []
            group.append(w)
        yield group


def _masked(
    ids: np.ndarray, real: np.ndarray, special: set[int], tokenizer: Any, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens with 15 in 100 of each row's masked, at least one; and which."""
    mask = getattr(tokenizer, "mask_token_id", None)
    if mask is None:
        raise GonioError("states: the tokenizer has no mask token, and a masked language model is read by masking.")
    open_ = real & ~np.isin(ids, list(special))
    chosen = np.zeros(ids.shape, bool)
    for r in range(len(ids)):
        at = np.flatnonzero(open_[r])
        if len(at):
            chosen[r, rng.choice(at, max(1, round(MASKED * len(at))), replace=False)] = True
    return np.where(chosen, int(mask), ids), chosen


def _shifted(ids: np.ndarray, model: Any) -> np.ndarray:
    """What a decoder reads to write `ids`: the same, one to the right, behind its start token."""
    start = getattr(model.config, "decoder_start_token_id", None)
    if start is None:
        start = getattr(model.config, "pad_token_id", None)
    out = np.empty_like(ids)
    out[:, 0] = 0 if start is None else int(start)
    out[:, 1:] = ids[:, :-1]
    return out


def fed_batches(feed: Mapping[str, Any], labels: int, rows: int | None = None) -> Iterator[Batch]:
    """Arrays by name, cut along their first axis; each row is a document."""
    arrays = {str(k): np.asarray(v) for k, v in feed.items()}
    if not arrays:
        raise GonioError("states: nothing was fed; give the model's inputs by name.")
    counts = {k: a.shape[0] if a.ndim else 0 for k, a in arrays.items()}
    if len(set(counts.values())) != 1 or not min(counts.values()):
        told = ", ".join(f"{k} {a.shape}" for k, a in arrays.items())
        raise GonioError(f"states: what is fed must have as many rows in every array, and at least one; found {told}.")
    count = next(iter(counts.values()))
    positions = int(np.prod(next(iter(arrays.values())).shape[1:2])) if arrays else 1
    size = rows or max(1, min(64, CELLS // max(1, labels * max(1, positions))))
    for s in range(0, count, size):
        part = {k: a[s : s + size] for k, a in arrays.items()}
        number = np.arange(s, min(s + size, count))
        mask = part.get("attention_mask")
        ids = part.get("input_ids")
        keep = mask.astype(bool) if mask is not None and mask.ndim == 2 else None
        yield Batch(
            part, keep, number, np.zeros(len(number), np.int64), ids if ids is not None and ids.ndim == 2 else None
        )
