"""Which adapter fits a live object, by what it carries: arrays, modules, word vectors, factor models, estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gonio.core.errors import LoadError
from gonio.files.read.head_draft import Draft


def draft_of_object(x: Any, tensor: str | None) -> Draft:
    """The head of a live object, in draft."""
    for fits, reader in _object_readers():
        if fits(x):
            return reader(x, tensor)
    raise LoadError(
        f"load: a {type(x).__module__}.{type(x).__name__} is not a model that gonio knows; pass a path, an array, a "
        f"dict of arrays, a fitted estimator, word vectors, a torch module, or a pair (users, items)."
    )


def _object_readers():
    from gonio.files.read import arrays, factors, torch, wordvectors
    from gonio.models import estimators, sentences

    def is_array(x: Any) -> bool:
        return isinstance(x, np.ndarray) or (isinstance(x, list) and bool(x) and isinstance(x[0], (list, np.ndarray)))

    return (
        (lambda x: isinstance(x, tuple) and len(x) == 2, lambda x, t: factors.pair(x)),
        (is_array, lambda x, t: arrays.of_array(x)),
        (torch.is_state, torch.of_state),
        (lambda x: isinstance(x, Mapping), arrays.of_dict),
        (sentences.is_sentence_model, sentences.input_table),
        (torch.is_module, torch.of_module),
        (lambda x: hasattr(x, "index_to_key") or hasattr(x, "wv"), lambda x, t: wordvectors.keyed(x)),
        (factors.is_factor_model, lambda x, t: factors.of_model(x)),
        (estimators.is_estimator, lambda x, t: estimators.of_estimator(x)),
    )
