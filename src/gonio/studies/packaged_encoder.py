"""MiniLM as a function from sentences to vectors, with what it encoded before kept in the user's cache folder."""

from __future__ import annotations

import functools

import numpy as np

from gonio.papers.real import Pool, minilm
from gonio.studies.kept_arrays import digest_of, kept


@functools.cache
def _opened():
    return minilm()


def encoded(sentences: list[str]) -> dict[Pool, np.ndarray] | None:
    """The mean of MiniLM's last states and the first of them ([CLS]); None without the package, torch, transformers."""
    encode = _opened()
    if encode is None:
        return None
    made = kept("minilm", digest_of(sentences, 1), lambda: {k: v for k, v in encode(sentences).items()})  # noqa: C416
    return {"mean": made["mean"], "[CLS]": made["[CLS]"]}
