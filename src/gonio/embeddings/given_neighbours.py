"""Lists of neighbours that a user's own index found, checked and brought into the form of ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.embeddings.query_lists import QueryLists


def given_lists(neighbours: Any, documents: int, queries: int | None) -> QueryLists:
    """The lists (ids, scores) of all queries; where there are none, of all documents, each without itself.

    >>> given_lists(([[0, 1], [1, 0]], [[1.0, 0.5], [1.0, 0.5]]), 2, None).near
    array([[1],
           [0]])
    """
    try:
        ids, scores = (np.asarray(x) for x in neighbours)
    except (TypeError, ValueError):
        raise GonioError("check: neighbours are two arrays, (ids, scores); something else was given.") from None
    asked = documents if queries is None else queries
    who = "query" if queries is not None else "document"
    if ids.ndim != 2 or ids.shape != scores.shape or len(ids) != asked or ids.shape[1] < 1:
        raise GonioError(
            f"check: neighbours have ids of shape {ids.shape} and scores of shape {scores.shape}; one list for each "
            f"{who} is needed, so ({asked:,}, k) for both."
        )
    if ids.dtype.kind not in "iu" or ids.min() < -1 or ids.max() >= documents:
        raise GonioError(
            f"check: neighbours name rows by numbers from 0 to {documents - 1:,}, or -1 for none; others were found."
        )
    near, scores = ids.astype(np.int64), scores.astype(np.float32)
    if queries is None:  # an index finds the row itself first
        order = np.argsort(near == np.arange(documents)[:, None], axis=1, kind="stable")
        own = bool((near == np.arange(documents)[:, None]).any())
        near, scores = (np.take_along_axis(x, order, axis=1) for x in (near, scores))
        if own:
            near, scores = near[:, :-1].copy(), scores[:, :-1].copy()
    return QueryLists(near, scores)
