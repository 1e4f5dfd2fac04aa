"""What a score means here: how many pairs that nobody chose have as much.

share above T          of random query-document pairs (pairs of documents where there are no queries)
threshold of a rate r  the score that a share r of them reaches: the false alarms one accepts
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.errors import GonioError
from gonio.embeddings.row_survey import unit
from gonio.embeddings.sampling_intervals import quantile_interval, share_interval
from gonio.similarity.bootstrap import Interval

if TYPE_CHECKING:
    from jaxtyping import Float

WHOLE, DRAWN = 4_000_000, 20_000  # up to so many pairs all are scored; otherwise at most so many are drawn


@dataclass(frozen=True, eq=False)
class RandomPairs:
    """Scores of pairs, sorted; larger is nearer (distances with a minus). `whole`: they are all pairs there are."""

    scores: Float[np.ndarray, " pairs"]
    whole: bool
    metric: str

    def __post_init__(self) -> None:
        self.scores.flags.writeable = False

    def share_above(self, threshold: float) -> Interval:
        """The share of pairs that reach a threshold (a distance, for l2)."""
        t = -threshold if self.metric == "l2" else threshold
        count = int(len(self.scores) - np.searchsorted(self.scores, t, side="left"))
        if self.whole:
            p = count / len(self.scores)
            return Interval(p, p, p)
        return share_interval(count, len(self.scores))

    def threshold_at(self, rate: float) -> Interval:
        """The score that a share `rate` of the pairs reaches."""
        if not 0 < rate < 1:
            raise GonioError(f"check: the rate of false alarms is {rate}; a number between 0 and 1 is needed.")
        if self.whole:
            q = float(np.quantile(self.scores, 1 - rate))
            found = Interval(q, q, q)
        else:
            found = quantile_interval(self.scores, 1 - rate)
        return Interval(-found.value, -found.high, -found.low) if self.metric == "l2" else found


def random_pairs(
    documents: np.ndarray, queries: np.ndarray | None, metric: str, *, whole: bool, seed: int = 0
) -> RandomPairs:
    """Score pairs of a query and a document, all or drawn at random; `whole`: these documents are all there are."""
    n = len(documents)
    rng = np.random.default_rng(seed + 1)
    other = documents if queries is None else queries
    if queries is None and n < 2:
        raise GonioError("check: the table has one row with a direction, and so no pair; at least two are needed.")
    if whole and n * len(other) <= WHOLE:
        every = all_scores(other, documents, metric)
        scores = every[np.triu_indices(n, 1)] if queries is None else every.ravel()
        return RandomPairs(np.sort(scores), True, metric)
    order = rng.permutation(n)[:DRAWN]  # every document once: pairs that share none are independent
    if queries is None:
        i, j = order[: len(order) // 2], order[len(order) // 2 : len(order) // 2 * 2]
    else:
        i, j = rng.integers(0, len(other), len(order)), order
    return RandomPairs(np.sort(pair_scores(other, documents, i, j, metric)), False, metric)


def all_scores(A: np.ndarray, B: np.ndarray, metric: str) -> Float[np.ndarray, "queries documents"]:
    """The scores of all pairs, as `pair_scores` has them."""
    A, B = ((unit(x) if metric == "cosine" else x).astype(np.float64) for x in (A, B))
    S = A @ B.T
    if metric != "l2":
        return S
    sizes = ((A * A).sum(axis=1)[:, None], (B * B).sum(axis=1))
    return -np.sqrt(np.maximum(0, sizes[0] + sizes[1] - 2 * S))


def pair_scores(A: np.ndarray, B: np.ndarray, i: np.ndarray, j: np.ndarray, metric: str) -> Float[np.ndarray, " pairs"]:
    """The score of each pair (A_i, B_j), in float64 after float32 rows: larger is nearer."""
    if metric == "cosine":
        A, B = unit(A), unit(B)
    out = np.empty(len(i))
    for s in range(0, len(i), 4096):
        a, b = A[i[s : s + 4096]].astype(np.float64), B[j[s : s + 4096]].astype(np.float64)
        if metric == "l2":
            out[s : s + 4096] = -np.sqrt(((a - b) ** 2).sum(axis=1))
        else:
            out[s : s + 4096] = np.einsum("ij,ij->i", a, b)
    return out
