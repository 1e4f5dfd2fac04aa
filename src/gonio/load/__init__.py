"""From a file or an object to a Head; one format a file. `load` chooses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gonio import inputs as _inputs
from gonio.errors import GonioError, LoadError
from gonio.head import Head, Link

__all__ = ["load"]


def load(
    x: Any,
    *,
    link: Link | None = None,
    tensor: str | None = None,
    labels: Sequence[str] | str | Path | None = None,
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
    labels : names of the rows, or a file that holds them (one a line, or JSON)
    inputs : which embeddings can reach the head, as an object of `gonio.inputs` or as text ("nonnegative", "box:-1,1")

    >>> load({"W": [[1.0, 0.5], [0.5, 1.0]], "b": [0.0, 1.0]}, labels=["dog", "cat"]).link
    'softmax'
    """
    from gonio.load.choose import draft_of

    try:
        draft = draft_of(x, tensor)
        if link is not None:
            draft.override("link", link)
        if labels is not None:
            from gonio.load.labels import given

            draft.override("labels", given(labels, draft.rows.shape[0]))
            draft.padded = ()
        if inputs is not None:
            draft.override("inputs", _inputs.of(inputs))
        return draft.finish()
    except LoadError:
        raise
    except GonioError as e:
        place = x if isinstance(x, (str, Path)) else f"a {type(x).__name__}"
        if str(e).startswith("load:"):
            raise
        raise type(e)(f"load: {place}: {e}") from None
