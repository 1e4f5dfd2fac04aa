"""The k best documents of every query, for several ways to score at once, in one pass over the documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.embeddings.embedding_table import EmbeddingTable
from gonio.embeddings.scorers import Scorer
from gonio.similarity.nearest import nearest

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class QueryLists:
    """The documents of each query, best first, and their scores."""

    near: Int[np.ndarray, "queries near"]
    scores: Float[np.ndarray, "queries near"]

    def __post_init__(self) -> None:
        self.near.flags.writeable = self.scores.flags.writeable = False


def query_lists(
    table: EmbeddingTable,
    scorers: Sequence[Scorer],
    k: int,
    *,
    own: np.ndarray | Mapping[str, np.ndarray] | None = None,
    among: np.ndarray | None = None,
    on_block: Callable[[int, int, str], None] | None = None,
) -> dict[str, QueryLists]:
    """The lists of all queries under each scorer.

    `own`: the row that each query is, where the queries are rows of the table: it is left out of its own list. As a
    mapping, by the scorer's name, for those whose queries are such rows.
    `among`: the rows that may be listed, true or false; rows that are zero or not finite never are.
    """
    n = len(table)
    wanted = min(n, k + (own is not None))
    every = {} if own is None or isinstance(own, Mapping) else {s.name: own for s in scorers}
    owns: Mapping[str, np.ndarray] = own if isinstance(own, Mapping) else every
    held: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for start, block in table.blocks():
        finite = np.isfinite(block).all(axis=1)
        block = block if finite.all() else np.where(np.expand_dims(finite, 1), block, 0)
        barred = np.asarray(~finite | ~block.any(axis=1))
        if among is not None:
            barred = barred | ~among[start : start + len(block)]
        for s in scorers:
            keys, column = s.documents(block)
            near, best = nearest(keys, min(wanted, len(keys)), queries=s.queries, column=column, barred=barred)
            part = (near + start, best)
            held[s.name] = part if s.name not in held else _merged(held[s.name], part, wanted)
        if on_block is not None:
            on_block(start + len(block), n, "documents")
    return {name: _without(owns.get(name), near, best, k) for name, (near, best) in held.items()}


def _merged(
    a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray], k: int
) -> tuple[np.ndarray, np.ndarray]:
    near, best = np.concatenate([a[0], b[0]], axis=1), np.concatenate([a[1], b[1]], axis=1)
    order = np.argsort(-best, axis=1, kind="stable")[:, :k]  # earlier rows come first where scores are equal
    return np.take_along_axis(near, order, 1), np.take_along_axis(best, order, 1)


def _without(own: np.ndarray | None, near: np.ndarray, best: np.ndarray, k: int) -> QueryLists:
    if own is None:
        return QueryLists(near[:, :k], best[:, :k])
    mine = near == own[:, None]
    mine[~mine.any(axis=1), -1] = True  # its own row is not among them: the last one goes
    rows = len(near)
    return QueryLists(near[~mine].reshape(rows, -1)[:, :k], best[~mine].reshape(rows, -1)[:, :k])


def shared_share(a: np.ndarray, b: np.ndarray) -> Float[np.ndarray, " queries"]:
    """For each query the share of the list in a that the list in b has too."""
    return (a[:, :, None] == b[:, None, :]).any(axis=2).mean(axis=1)
