"""What every threshold lets through: counts at evenly spaced scores, for a slider."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.embeddings.judged_thresholds import ScoredPairs
from gonio.embeddings.random_pairs import RandomPairs

STEPS = 161


def threshold_curve(pairs: RandomPairs, judged: ScoredPairs | None = None) -> dict[str, Any]:
    """At each of some thresholds, from the least strict on: what reaches it.

    at         the thresholds (for l2 distances), from the lowest score of all to the highest
    random     share of random pairs that reach each;  random_in  share between it and the next
    returned, relevant   of the judged pairs, how many reach it and how many of these are relevant
    total      relevant ones in all, those without a score included;  relevant_in  share of them between it and the next
    """
    every = pairs.scores if judged is None else np.concatenate([pairs.scores, judged.score])
    at = np.linspace(float(every.min()), float(every.max()), STEPS)
    sign = -1.0 if pairs.metric == "l2" else 1.0
    above = len(pairs.scores) - np.searchsorted(pairs.scores, at, side="left")
    out: dict[str, Any] = {
        "at": (sign * at).tolist(),
        "random": (above / len(pairs.scores)).tolist(),
        "random_in": (-np.diff(above, append=0) / len(pairs.scores)).tolist(),
    }
    if judged is None:
        return out
    scores, hits = judged.score[::-1], np.sort(judged.score[judged.relevant])
    relevant = len(hits) - np.searchsorted(hits, at, side="left")
    return out | {
        "returned": (len(scores) - np.searchsorted(scores, at, side="left")).tolist(),
        "relevant": relevant.tolist(),
        "total": int(len(hits) + judged.missed.sum()),
        "relevant_in": (-np.diff(relevant, append=0) / max(1, len(hits))).tolist(),
    }
