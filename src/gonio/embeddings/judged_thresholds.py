"""Which threshold, from judged pairs: for a wanted precision, for the best F1, and what share of each score is right.

    precision(T) = relevant pairs with a score of at least T, of all pairs with such a score
    recall(T)    = relevant pairs with a score of at least T, of all relevant pairs
    F1(T)        = 2 precision recall / (precision + recall)

Pairs of one query hang together, so queries are drawn again, not pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.errors import GonioError
from gonio.embeddings.sampling_intervals import share_interval
from gonio.similarity.bootstrap import Interval

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

RESAMPLES, LEAST, RETURNED, BINS = 400, 10, 10, 10


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Scores of judged pairs, best first, and their queries; `missed`: a query's relevant pairs without a score."""

    score: Float[np.ndarray, " pairs"]
    relevant: Bool[np.ndarray, " pairs"]
    query: Int[np.ndarray, " pairs"]
    missed: Float[np.ndarray, " queries"]

    def __post_init__(self) -> None:
        for a in (self.score, self.relevant, self.query, self.missed):
            a.flags.writeable = False

    @property
    def ends(self) -> Int[np.ndarray, " distinct"]:
        """The last place of each distinct score: where a threshold can cut."""
        return np.append(np.flatnonzero(np.diff(self.score) != 0), len(self.score) - 1)

    def curves(self, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Precision, recall and pairs returned at each end, where query q counts drawn[q] times."""
        w = drawn[self.query]
        n, hits = np.cumsum(w)[self.ends], np.cumsum(w * self.relevant)[self.ends]
        total = hits[-1] + float(drawn @ self.missed)
        return hits / np.maximum(n, 1e-300), hits / max(total, 1e-300), n

    def resamples(self, seed: int) -> Iterator[np.ndarray]:
        """How often each query is drawn, for each resample."""
        rng = np.random.default_rng(seed)
        m = len(self.missed)
        for _ in range(RESAMPLES):
            yield rng.multinomial(m, np.full(m, 1 / m)).astype(np.float64)


def scored_pairs(
    score: np.ndarray, relevant: np.ndarray, query: np.ndarray, missed: dict[int, int] | None = None
) -> ScoredPairs:
    """Pairs in order of their scores; queries are numbered anew."""
    if not relevant.any() or relevant.all():
        kind = "relevant" if relevant.all() else "not relevant"
        raise GonioError(
            f"check: all {len(relevant):,} judged pairs are {kind}; a threshold needs pairs of both kinds."
        )
    names, at = np.unique(query, return_inverse=True)
    order = np.argsort(-score, kind="stable")
    lost = np.array([(missed or {}).get(int(q), 0) for q in names], np.float64)
    return ScoredPairs(np.asarray(score, np.float64)[order], np.asarray(relevant, bool)[order], at[order], lost)


@dataclass(frozen=True)
class PrecisionThreshold:
    """The lowest threshold of a wanted precision, what it finds, and its interval; None where none reaches it."""

    wanted: float
    threshold: Interval
    precision: float
    recall: float


def threshold_for_precision(p: ScoredPairs, wanted: float, *, seed: int = 0) -> PrecisionThreshold | None:
    """The threshold of largest recall whose precision is at least `wanted`, over ten pairs or more.

    The interval is that of resampled queries; NaN where a tenth of the resamples never reach the precision.
    """
    if not 0 < wanted <= 1:
        raise GonioError(f"check: the wanted precision is {wanted}; a number from 0 to 1 is needed.")
    scores = p.score[p.ends]
    every = np.ones(len(p.missed))
    at = _last(p, every, wanted)
    if at is None:
        return None
    precision, recall, _ = p.curves(every)
    drawn = [_last(p, w, wanted) for w in p.resamples(seed)] if len(p.missed) >= LEAST else []
    reached = [scores[a] for a in drawn if a is not None]
    low, high = np.quantile(reached, [0.025, 0.975]) if len(reached) > 0.9 * RESAMPLES else (float("nan"), float("nan"))
    return PrecisionThreshold(
        wanted, Interval(float(scores[at]), float(low), float(high)), float(precision[at]), float(recall[at])
    )


def _last(p: ScoredPairs, drawn: np.ndarray, wanted: float) -> int | None:
    precision, _, n = p.curves(drawn)
    good = np.flatnonzero((precision >= wanted) & (n >= RETURNED))
    return int(good[-1]) if len(good) else None


@dataclass(frozen=True)
class BestF1:
    """The threshold of the best F1, and the range of thresholds that the data cannot tell from it."""

    threshold: Interval
    f1: Interval


def best_f1(p: ScoredPairs, *, seed: int = 0) -> BestF1:
    """The range holds the best threshold of 95 % of the resamples of queries; NaN below ten queries."""
    scores = p.score[p.ends]
    whole = _f1(p, np.ones(len(p.missed)))
    best = int(np.argmax(whole))
    at, top = [], []
    for w in p.resamples(seed) if len(p.missed) >= LEAST else ():
        f = _f1(p, w)
        at.append(scores[int(np.argmax(f))])
        top.append(f[best])
    ends = [np.quantile(x, [0.025, 0.975]) if x else np.full(2, np.nan) for x in (at, top)]
    threshold = Interval(float(scores[best]), float(ends[0][0]), float(ends[0][1]))
    return BestF1(threshold, Interval(float(whole[best]), float(ends[1][0]), float(ends[1][1])))


def _f1(p: ScoredPairs, drawn: np.ndarray) -> np.ndarray:
    precision, recall, _ = p.curves(drawn)
    return 2 * precision * recall / np.maximum(precision + recall, 1e-300)


def reliability(p: ScoredPairs) -> list[dict[str, float]]:
    """The share of relevant pairs in bins of equally many scores, lowest scores first, with Wilson's interval."""
    out = []
    for part in np.array_split(np.arange(len(p.score))[::-1], min(BINS, len(p.score))):
        share = share_interval(int(p.relevant[part].sum()), len(part))
        lo, hi = float(p.score[part].min()), float(p.score[part].max())
        out.append(
            {"from": lo, "to": hi, "pairs": len(part), "share": share.value, "low": share.low, "high": share.high}
        )
    return out
