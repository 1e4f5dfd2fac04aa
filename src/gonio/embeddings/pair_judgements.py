"""How well scores follow judged pairs: Spearman's correlation with the judgements, compared over resampled queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.core.correlations import spearman
from gonio.embeddings.paired_comparison import LEAST, RESAMPLES, Compared, holm
from gonio.embeddings.scorers import Scorer
from gonio.remedies.remedy import resampled
from gonio.similarity.bootstrap import Interval

if TYPE_CHECKING:
    from jaxtyping import Float

DRAWS = (RESAMPLES + 1) // 5 - 1


def scores_of_pairs(scorer: Scorer, asked: np.ndarray, documents: np.ndarray) -> Float[np.ndarray, " pairs"]:
    """The score of each pair of one of the scorer's queries and a document's row, in the units that one thresholds."""
    keys, column = scorer.documents(np.asarray(documents, np.float32))
    s = np.einsum("ij,ij->i", scorer.queries[asked].astype(np.float64), keys.astype(np.float64))
    return s if column is None else s + column


def compare_correlations(
    base: np.ndarray, others: dict[str, np.ndarray], grade: np.ndarray, query: np.ndarray, *, seed: int = 0
) -> tuple[Interval, tuple[Compared, ...]]:
    """Spearman's correlation of the base with the judgements, and of every other way the difference to it."""
    at = np.unique(query, return_inverse=True)[1]
    m = int(at.max()) + 1
    value = float(spearman(base, grade))
    nothing = float("nan")
    if m < LEAST:
        told = tuple(
            Compared(n, Interval(float(spearman(x, grade)) - value, nothing, nothing), 1.0) for n, x in others.items()
        )
        return Interval(value, nothing, nothing), told
    drawn = np.random.default_rng(seed).multinomial(m, np.full(m, 1 / m), DRAWS)[:, at]
    first = resampled(base, grade, drawn)
    found = []
    for name, x in others.items():
        d = float(spearman(x, grade)) - value
        draws = resampled(x, grade, drawn) - first
        p = float((1 + (np.abs(draws - draws.mean()) >= abs(d)).sum()) / (1 + DRAWS)) if d else 1.0
        low, high = np.quantile(draws, [0.025, 0.975])
        found.append((name, Interval(d, float(low), float(high)), p))
    corrected = holm(np.array([p for _, _, p in found]))
    told = tuple(Compared(n, i, p, float(c)) for (n, i, p), c in zip(found, corrected, strict=True))
    ends = np.quantile(first, [0.025, 0.975])
    return Interval(value, float(ends[0]), float(ends[1])), told
