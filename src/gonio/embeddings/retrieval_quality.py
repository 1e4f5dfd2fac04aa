"""How good lists are by judgements, a number for each query.

    nDCG@k   sum_{i<=k} gain_i / log2(i + 1)  over the same sum of the best possible list; gain = grade ("linear") or
             2^grade - 1 ("exponential")
    recall@k relevant documents among the first k, of all relevant ones
    MRR      1 / rank of the first relevant one
    MAP      the mean over relevant documents of the precision where each stands

Relevant is a grade above 0; what nobody judged counts as not relevant; queries without a relevant document are left
out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.embeddings.query_lists import QueryLists
from gonio.embeddings.relevance_judgements import RelevanceJudgements

if TYPE_CHECKING:
    from jaxtyping import Float, Int

MEASURES = ("ndcg", "recall", "mrr", "map")
GAINS = ("linear", "exponential")


@dataclass(frozen=True, eq=False)
class RetrievalQuality:
    """Each measure for each query that has something relevant."""

    ndcg: Float[np.ndarray, " judged"]
    recall: Float[np.ndarray, " judged"]
    mrr: Float[np.ndarray, " judged"]
    map: Float[np.ndarray, " judged"]

    def __post_init__(self) -> None:
        for name in MEASURES:
            getattr(self, name).flags.writeable = False

    def means(self) -> dict[str, float]:
        """The mean of each over queries."""
        return {name: float(getattr(self, name).mean()) for name in MEASURES}


def judged_queries(j: RelevanceJudgements) -> Int[np.ndarray, " judged"]:
    """The queries that have a relevant document, in order."""
    return np.unique(j.query[j.relevant])


def retrieval_quality(
    lists: QueryLists, j: RelevanceJudgements, asked: np.ndarray, *, k: int = 10, gains: str = "linear"
) -> RetrievalQuality:
    """Judge the lists of the queries `asked`, one row each.

    >>> lists = QueryLists(np.array([[3, 1, 2]]), np.array([[3.0, 2.0, 1.0]], np.float32))
    >>> j = RelevanceJudgements(np.array([0, 0]), np.array([1, 4]), np.array([1.0, 1.0]))
    >>> retrieval_quality(lists, j, np.array([0]), k=3).means()["mrr"]
    0.5
    """
    if gains not in GAINS:
        raise GonioError(f"check: gains is {gains!r}; choose one of {', '.join(GAINS)}.")
    of: dict[int, dict[int, float]] = {}
    for q, d, g in zip(j.query.tolist(), j.document.tolist(), j.grade.tolist(), strict=True):
        if g > 0:
            of.setdefault(q, {})[d] = g
    out = np.zeros((4, len(asked)))
    for r, q in enumerate(asked.tolist()):
        grades = of[q]
        near = lists.near[r][np.isfinite(lists.scores[r])].tolist()
        found = np.array([grades.get(d, 0.0) for d in near])
        out[:, r] = _one(found, np.sort(np.array(list(grades.values())))[::-1], k, gains)
    return RetrievalQuality(*out)


def _one(found: np.ndarray, ideal: np.ndarray, k: int, gains: str) -> tuple[float, float, float, float]:
    gain: Any = (lambda g: g) if gains == "linear" else (lambda g: 2.0**g - 1)
    weight = 1 / np.log2(np.arange(2, k + 2))
    top, best = found[:k], ideal[:k]
    ndcg = (gain(top) * weight[: len(top)]).sum() / (gain(best) * weight[: len(best)]).sum()
    hits = found > 0
    ranks = np.flatnonzero(hits) + 1
    precision = np.arange(1, len(ranks) + 1) / ranks
    return ndcg, hits[:k].sum() / len(ideal), 1 / ranks[0] if len(ranks) else 0.0, precision.sum() / len(ideal)
