"""`load`: the head of a file, a hub name or a live object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gonio.core import inputs as _inputs
from gonio.core.head import Head, Link
from gonio.files.read.reading import head_from, read
from gonio.models.objects import draft_of_object


def load(
    x: Any,
    *,
    link: Link | None = None,
    tensor: str | None = None,
    labels: Any = None,
    inputs: _inputs.Inputs | str | None = None,
) -> Head:
    """Read the head of a model.

    Parameters
    ----------
    x : path, "org/name", estimator, module, dict of arrays, or (users, items)
        A .npy, .npz, .safetensors, .gguf, .onnx, .pt, .pth, .bin file, word vectors as text or binary, a checkpoint
        folder, a fitted scikit-learn estimator, gensim vectors, a torch module, a factor model, or the name of a
        model on the hub (only the bytes of its head are fetched).
    link : what the table is: "softmax", "sigmoid" or "dot" (a head), "cosine", "vectors" or "input" (embeddings)
        Where the file tells nothing, as a bare array does not, it is "unknown", and questions that hang on it ask for
        it; a layer that by its name is a head is taken for softmax, marked as assumed.
    tensor : the name of the table of label rows, where the guess is wrong or impossible
    labels : names of the rows, a file that holds them (one a line, or JSON), or a tokenizer (of transformers, of
        tokenizers); rows that it has no token for are padded rows
    inputs : which embeddings can reach the head, as an object (`gonio.Box`) or text ("nonnegative", "box:-1,1")

    >>> load({"W": [[1.0, 0.5], [0.5, 1.0]], "b": [0.0, 1.0]}, labels=["dog", "cat"]).link
    'softmax'
    """
    if isinstance(x, (str, Path)):
        return read(x, link=link, tensor=tensor, labels=labels, inputs=inputs)
    return head_from(lambda: draft_of_object(x, tensor), f"a {type(x).__name__}", link, labels, inputs)
