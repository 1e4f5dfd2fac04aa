"""sentence-transformers models: what they put out is compared itself, so the texts are the rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head, Link
from gonio.core.source import Source
from gonio.core.states import States
from gonio.files.read.head_draft import Draft

BATCH = 64


def is_sentence_model(x: Any) -> bool:
    """Whether `x` is a SentenceTransformer; the library is not imported to find out."""
    library = sys.modules.get("sentence_transformers")
    return library is not None and isinstance(x, library.SentenceTransformer)


def input_table(model: Any, tensor: str | None) -> Draft:
    """The table of token embeddings of the model inside: what it puts out is made from texts (`head_of_sentences`)."""
    from gonio.files.read.torch import is_module, of_module

    inner = next((m.auto_model for m in model if is_module(getattr(m, "auto_model", None))), None)
    if inner is None:
        raise GonioError("load: this SentenceTransformer has no transformer inside; give texts to compare its outputs.")
    return of_module(inner, tensor)


def states_of_sentences(
    model: Any, texts: list[str], most: int, on_batch: Callable[[int, int, str], None] | None = None
) -> States:
    """One embedding a text: what the model puts out, and users compare."""
    texts = texts[:most]
    parts = []
    for s in range(0, len(texts), BATCH):
        parts.append(np.asarray(model.encode(texts[s : s + BATCH], show_progress_bar=False, convert_to_numpy=True)))
        if on_batch is not None:
            on_batch(min(s + BATCH, len(texts)), len(texts), "texts")
    F = np.concatenate(parts)
    if not np.isfinite(F).all():
        raise GonioError("states: the model gives embeddings that are not finite; nothing can be compared.")
    number = np.arange(len(texts))
    about = {"model": _name(model), "layer": "output", "how": "embeddings, one a text"}
    return States(F, number, np.zeros_like(number), np.full_like(number, -1), about=about)


def head_of_sentences(model: Any, texts: list[str], most: int = 100_000) -> Head:
    """The embeddings of the texts as rows, compared as the model says: by cosine, or by dot product."""
    unique = list(dict.fromkeys(texts))[:most]
    F = states_of_sentences(model, unique, most).F
    by = str(getattr(model, "similarity_fn_name", "cosine") or "cosine")
    link: Link = "dot" if by == "dot" else "cosine"
    if by not in ("cosine", "dot"):
        raise GonioError(f"load: this model compares its embeddings by {by!r}; gonio knows cosine and dot.")
    decided = {
        "weight": f"what the model puts out for {len(unique):,} texts, one a row",
        "link": f"the model says that its outputs are compared by {by}",
        "labels": "the texts",
        "inputs": "other embeddings of the same model",
    }
    source = Source(_name(model), "sentence-transformers", F.nbytes, decided)
    return Head(F, link=link, labels=unique, source=source)


def _name(model: Any) -> str:
    card = getattr(model, "model_card_data", None)
    return str(getattr(card, "base_model", None) or type(model).__name__)
