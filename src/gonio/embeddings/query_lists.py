"""The k best documents of every query, for several ways to score at once, in one pass over the documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.embeddings.embedding_table import EmbeddingTable
from gonio.embeddings.scorers import Scorer
from gonio.similarity.nearest import NearestSoFar

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class QueryLists:
    """The documents of each query, best first, and their scores; -1 and -inf where there are fewer."""

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
    every = {} if own is None or isinstance(own, Mapping) else {s.name: own for s in scorers}
    owns: Mapping[str, np.ndarray] = own if isinstance(own, Mapping) else every
    held = {s.name: NearestSoFar(s.queries, min(n, k), owns.get(s.name)) for s in scorers}
    with BlasPool() as pool:
        for start, block in table.blocks():
            finite = np.isfinite(block).all(axis=1)
            block = block if finite.all() else np.where(np.expand_dims(finite, 1), block, 0)
            barred = np.asarray(~finite | ~block.any(axis=1))
            if among is not None:
                barred = barred | ~among[start : start + len(block)]
            for s in scorers:
                so_far = held[s.name]
                keys, column = s.documents(block)
                pool.run(lambda p, x=so_far, a=(keys, start, column, barred): x.add(p, *a), so_far.parts())
            if on_block is not None:
                on_block(start + len(block), n, "documents")
    return {name: QueryLists(*x.lists()) for name, x in held.items()}


def shared_share(a: np.ndarray, b: np.ndarray) -> Float[np.ndarray, " queries"]:
    """For each query the share of the list in a that the list in b has too; places without a document (-1) are none."""
    listed = a >= 0
    both = (a[:, :, None] == b[:, None, :]).any(axis=2) & listed
    return both.sum(axis=1) / np.maximum(listed.sum(axis=1), 1)
