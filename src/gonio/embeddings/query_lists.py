"""The k best documents of every query, for several ways to score at once, in one pass over the documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.tasks import run
from gonio.embeddings.embedding_table import EmbeddingTable, Piece
from gonio.embeddings.scorers import Scorer
from gonio.similarity.nearest import NearestSoFar
from gonio.similarity.pair_tiles import merge_lists

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
    asked = _Asked(table, tuple(scorers), min(n, k), dict(owns), among)
    held = asked.nothing_yet()
    pieces, seen = table.pieces(), 0

    def merge(at: int, lists: list[tuple[np.ndarray, np.ndarray]]) -> None:
        nonlocal seen
        for so_far, (best, near) in zip(held.values(), lists, strict=True):
            merge_lists(so_far.best, so_far.near, best, near)
        seen += pieces[at][1] - pieces[at][0]
        if on_block is not None:
            on_block(seen, n, "documents")

    run("documents", _look_through, asked, pieces, key=asked.known_by(), wide=True, each=merge, held=False)
    return {name: QueryLists(*x.lists()) for name, x in held.items()}


@dataclass(frozen=True, eq=False)
class _Asked:
    """Who asks, how documents are scored, and which of them may be listed."""

    table: EmbeddingTable
    scorers: tuple[Scorer, ...]
    k: int
    own: dict[str, np.ndarray]
    among: np.ndarray | None

    def nothing_yet(self) -> dict[str, NearestSoFar]:
        """Lists without a document."""
        return {s.name: NearestSoFar(s.queries, self.k, self.own.get(s.name)) for s in self.scorers}

    def known_by(self) -> list[object] | None:
        """What tells this question from others, for results that are kept."""
        known = self.table.known_by()
        if known is None:
            return None
        scorers = [x for s in self.scorers for x in (s.name, s.code, s.queries)]
        return [*known, self.k, *scorers, *self.own.values(), *([] if self.among is None else [self.among])]


def _look_through(asked: _Asked, piece: Piece) -> list[tuple[np.ndarray, np.ndarray]]:
    """The best documents of a piece for all queries, under each scorer: scores and rows, in no order."""
    held = asked.nothing_yet()
    with BlasPool() as pool:
        for start, block in asked.table.read(piece):
            finite = np.isfinite(block).all(axis=1)
            block = block if finite.all() else np.where(np.expand_dims(finite, 1), block, 0)
            barred = np.asarray(~finite | ~block.any(axis=1))
            if asked.among is not None:
                barred = barred | ~asked.among[start : start + len(block)]
            for s in asked.scorers:
                so_far = held[s.name]
                keys, column = s.documents(block)
                pool.run(lambda p, x=so_far, a=(keys, start, column, barred): x.add(p, *a), so_far.parts())
    return [(x.best, x.near) for x in held.values()]


def shared_share(a: np.ndarray, b: np.ndarray) -> Float[np.ndarray, " queries"]:
    """For each query the share of the list in a that the list in b has too; places without a document (-1) are none."""
    listed = a >= 0
    both = (a[:, :, None] == b[:, None, :]).any(axis=2) & listed
    return both.sum(axis=1) / np.maximum(listed.sum(axis=1), 1)
