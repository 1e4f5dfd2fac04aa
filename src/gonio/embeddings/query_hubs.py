"""Which documents are in how many of the queries' lists, beside what chance gives.

If every query listed k of n documents at random, a document would be in  Bin(queries, k / n)  lists, and a share
(1 - k/n)^queries  of them in none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Int

HUB_SHARE, TIMES = 0.1, 10  # a hub worth acting on is in a tenth of all lists and ten times as many as chance gives


@dataclass(frozen=True, eq=False)
class QueryHubs:
    """How often each document is listed.

    counts    lists that each document is in
    chance    the most lists that one document of a random table would be in, but for one table in a thousand
    unfound   the share of documents in no list, and the share that chance gives
    """

    counts: Int[np.ndarray, " documents"]
    queries: int
    k: int
    chance: int
    unfound: tuple[float, float]

    def __post_init__(self) -> None:
        self.counts.flags.writeable = False

    @property
    def worst(self) -> int:
        """The document in most lists."""
        return int(np.argmax(self.counts))

    @property
    def expected(self) -> float:
        """Lists that a document is in on average."""
        return self.queries * self.k / len(self.counts)

    @property
    def hubs(self) -> Int[np.ndarray, " hubs"]:
        """Documents in so many lists that chance does not explain it and users see it, busiest first."""
        least = max(self.chance + 1, HUB_SHARE * self.queries, TIMES * self.expected)
        found = np.flatnonzero(self.counts >= least)
        return found[np.argsort(-self.counts[found], kind="stable")]


def query_hubs(near: np.ndarray, documents: int) -> QueryHubs:
    """Count the lists that each document is in.

    >>> query_hubs(np.array([[0, 1], [0, 2], [0, 3]]), 5).counts
    array([3, 1, 1, 1, 0])
    """
    from scipy.stats import binom

    queries, k = near.shape
    counts = np.bincount(near[near >= 0], minlength=documents)
    p = min(1.0, k / documents)
    chance = int(binom.isf(min(0.5, 0.001 / documents), queries, p))
    return QueryHubs(counts, queries, k, chance, (float((counts == 0).mean()), float((1 - p) ** queries)))
