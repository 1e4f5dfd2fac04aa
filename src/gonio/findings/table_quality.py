"""What judgements say: how good lists are, which threshold, and whether anything that was tried helps or hurts here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.embeddings.judged_thresholds import (
    ScoredPairs,
    best_f1,
    reliability,
    scored_pairs,
    threshold_for_precision,
)
from gonio.embeddings.pair_judgements import compare_correlations, scores_of_pairs
from gonio.embeddings.paired_comparison import Compared, compare_paired
from gonio.embeddings.query_lists import QueryLists, query_lists
from gonio.embeddings.random_pairs import pair_scores
from gonio.embeddings.relevance_judgements import RelevanceJudgements, judgements_of
from gonio.embeddings.retrieval_quality import RetrievalQuality, judged_queries, retrieval_quality
from gonio.embeddings.sampling_intervals import mean_interval
from gonio.embeddings.scorers import METRICS, Scorer, metric_scorer, query_normalised, remedy_scorers
from gonio.findings.finding import Finding
from gonio.findings.table_subject import TableSubject, difference_words, found, interval_words
from gonio.findings.threshold_curve import threshold_curve

DEPTH, RETURNED = 1000, 100  # documents of a list that MAP and MRR look at, and that a threshold cuts
LOSERS = 10


class JudgedLists:
    """The lists of all judged queries under everything that is tried, and their quality."""

    def __init__(self, s: TableSubject) -> None:
        if s.queries is None or s.asks is None:
            raise GonioError("check: qrels need the queries' embeddings; give --queries (queries=).")
        self.s, self.Q = s, s.asks
        self.judgements = judgements_of(s.qrels, "qrels", s.queries, s.corpus)
        self.asked = judged_queries(self.judgements)
        if not len(self.asked):
            raise GonioError("check: no query of the qrels has a document graded above 0; nothing can be measured.")

    @cached_property
    def scorers(self) -> dict[str, Scorer]:
        """The metric in use first."""
        Q = self.Q[self.asked]
        names = [self.s.metric, *(m for m in METRICS if m != self.s.metric)]
        made = [*(metric_scorer(m, Q) for m in names), *remedy_scorers(self.s.survey.rows, Q)]
        return {x.name: x for x in made}

    @cached_property
    def lists(self) -> dict[str, QueryLists]:
        depth = min(len(self.s.corpus), DEPTH)
        return query_lists(self.s.corpus, list(self.scorers.values()), depth, on_block=self.s.progress)

    @cached_property
    def quality(self) -> dict[str, RetrievalQuality]:
        return {
            name: retrieval_quality(x, self.judgements, self.asked, k=self.s.k, gains=self.s.gains)
            for name, x in self.lists.items()
        }

    @cached_property
    def pairs(self) -> ScoredPairs:
        """The first documents of every list with their scores; what nobody judged counts as not relevant."""
        near = self.lists[self.s.metric].near[:, :RETURNED]
        query = np.repeat(self.asked, near.shape[1])
        score = self.lists[self.s.metric].scores[:, :RETURNED].astype(np.float64).ravel()
        if self.s.metric == "l2":
            size = (self.Q[query].astype(np.float64) ** 2).sum(axis=1)
            score = -np.sqrt(np.maximum(0, size - score))
        j = self.judgements
        good = set(zip(j.query[j.relevant].tolist(), j.document[j.relevant].tolist(), strict=True))
        hit = np.array([x in good for x in zip(query.tolist(), near.ravel().tolist(), strict=True)])
        total = np.bincount(j.query[j.relevant], minlength=len(self.Q))
        caught = np.bincount(query[hit], minlength=len(self.Q))
        missed = {int(q): int(total[q] - caught[q]) for q in self.asked}
        known = np.isfinite(score)
        return scored_pairs(score[known], hit[known], query[known], missed)


def judged(s: TableSubject) -> Iterator[Finding]:
    """Retrieval with qrels, or judged pairs."""
    if s.qrels is not None:
        yield from _retrieval(s)
    if s.judged is not None:
        yield from _pairs(s)


def _retrieval(s: TableSubject) -> Iterator[Finding]:
    r = JudgedLists(s)
    base = r.quality[s.metric]
    told = {name: q.means() for name, q in r.quality.items()}
    whole = mean_interval(base.ndcg, bounds=(0, 1))
    rest = ", ".join(
        f"{word} {interval_words(mean_interval(getattr(base, key), bounds=(0, 1)))}"
        for key, word in (("recall", f"recall@{s.k}"), ("mrr", "MRR"), ("map", "MAP"))
    )
    depth = r.lists[s.metric].near.shape[1]
    yield found(
        "retrieval",
        "judged",
        f"nDCG@{s.k} is {interval_words(whole)} by {s.metric}",
        "fact",
        whole.value,
        f"Measured over {len(r.asked):,} queries with a relevant document, {s.gains} gains; {rest} (lists of "
        f"{depth:,}). What "
        f"nobody judged counts as not relevant.",
        'found["retrieval"].data["means"]',
        means=told,
        interval=whole.to_dict(),
        queries=len(r.asked),
    )
    others = {name: q.ndcg for name, q in r.quality.items() if name != s.metric}
    compared = compare_paired(base.ndcg, others, seed=s.seed)
    names = [str(s.queries.ids[q]) for q in r.asked]  # type: ignore[union-attr]
    losers = {name: _losers(names, base.ndcg, x) for name, x in others.items()}
    codes = {name: x.code for name, x in r.scorers.items()}
    yield _tried(compared, f"nDCG@{s.k}", s.metric, codes, f"{len(r.asked):,} queries", losers)
    worst = np.argsort(base.ndcg, kind="stable")[:LOSERS]
    yield found(
        "worst-queries",
        "judged",
        f"{(base.ndcg == 0).sum():,} of {len(names):,} queries find nothing relevant in their top {s.k}",
        "fact",
        int((base.ndcg == 0).sum()),
        f"The worst by nDCG@{s.k}: {', '.join(names[i] for i in worst[:5])}.",
        'found["worst-queries"].data["queries"]',
        queries=[{"id": names[i], "ndcg": float(base.ndcg[i])} for i in worst],
    )
    where = f"the first {min(RETURNED, depth)} documents of each list, where what nobody judged counts as not relevant"
    yield from _thresholds(s, r.pairs, where)


def _losers(names: list[str], base: np.ndarray, other: np.ndarray) -> list[dict[str, Any]]:
    """The queries that lose most."""
    d = other - base
    worst = np.argsort(d, kind="stable")[:LOSERS]
    return [{"id": names[i], "before": float(base[i]), "after": float(other[i])} for i in worst if d[i] < 0]


def _tried(
    compared: tuple[Compared, ...], what: str, metric: str, codes: dict[str, str], over: str, losers: dict[str, Any]
) -> Finding:
    """One finding for everything that was tried beside the metric in use."""
    by = {v: [c for c in compared if c.verdict == v] for v in ("better", "worse", "not shown")}

    def told(cs: list[Compared]) -> str:
        return "; ".join(f"{c.name} {difference_words(c.difference)}" for c in cs)

    best = max(by["better"], key=lambda c: c.difference.value, default=None)
    if best is not None:
        title = f"{best.name} is better here than {metric}: {what} {told([best])[len(best.name) + 1 :]}"
    else:
        title = f"nothing that was tried is shown to be better than {metric} here"
    parts = [f"{word}: {told(cs)}." for word, cs in (("Better", by["better"]), ("Worse", by["worse"])) if cs]
    parts += [f"Not shown to differ: {told(by['not shown'])}."] if by["not shown"] else []
    says = (
        f"Difference of {what} to {metric}, measured over {over}, 95 % intervals from paired resamples of queries; "
        f"verdicts are "
        f"corrected (Holm) for all {len(compared)} ways tried. {' '.join(parts)}"
    )
    return found(
        "remedies",
        "judged",
        title,
        "warning" if best is not None else "fine",
        None if best is None else best.name,
        says,
        codes[metric if best is None else best.name],
        compared=[
            {
                "name": c.name,
                "difference": c.difference.to_dict(),
                "p": c.p,
                "corrected": c.corrected,
                "verdict": c.verdict,
            }
            for c in compared
        ],
        losers=losers,
    )


def _pairs(s: TableSubject) -> Iterator[Finding]:
    """Judged pairs: agreement of scores with judgements, and thresholds."""
    asking = s.queries if s.queries is not None else s.corpus
    j: RelevanceJudgements = judgements_of(s.judged, "judged", asking, s.corpus)
    names, at = np.unique(j.query, return_inverse=True)
    Q = asking.take(names)
    rows = s.corpus.take(j.document)
    bad = ~np.isfinite(Q[at]).all(axis=1) | ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise GonioError(f"check: {int(bad.sum()):,} judged pairs name rows that are not finite; drop these pairs.")
    metrics = [metric_scorer(m, Q) for m in (s.metric, *(m for m in METRICS if m != s.metric))]
    scorers = [*metrics, *remedy_scorers(s.survey.rows, Q), query_normalised(s.survey.rows, Q)]
    scores = {x.name: scores_of_pairs(x, at, rows) for x in scorers}
    scores["l2"] = pair_scores(Q, rows, at, np.arange(len(rows)), "l2")
    graded = len(np.unique(j.grade)) > 1
    if graded and len(j.grade) >= 10:
        others = {n: x for n, x in scores.items() if n != s.metric}
        whole, compared = compare_correlations(scores[s.metric], others, j.grade, at, seed=s.seed)
        yield found(
            "agreement",
            "judged",
            f"Spearman's correlation of {s.metric} with the judgements is {interval_words(whole)}",
            "fact",
            whole.value,
            f"Measured over {len(at):,} pairs of {len(names):,} queries, which were resampled for the interval.",
            'found["agreement"].data["interval"]',
            interval=whole.to_dict(),
        )
        codes = {x.name: x.code for x in scorers}
        yield _tried(compared, "Spearman's correlation", s.metric, codes, f"{len(at):,} judged pairs", {})
    kept = j if s.relevant is None else j.at_least(s.relevant)
    least = "above 0" if s.relevant is None else f"of {s.relevant:g} or more"
    if graded and (kept.relevant.all() or not kept.relevant.any()):  # another grade would part them
        which = "all" if kept.relevant.all() else "none"
        yield found(
            "judged-threshold",
            "judged",
            f"{which} of the {len(at):,} judged pairs count as matches: no threshold",
            "open",
            None,
            f"A threshold parts pairs that match from pairs that do not, and grades {least} count as matches.",
            s.again(relevant=float(np.median(j.grade))),
        )
        return
    pairs = scored_pairs(scores[s.metric], kept.relevant, j.query)
    yield from _thresholds(s, pairs, f"{len(at):,} judged pairs, of which grades {least} count as matches")


def _thresholds(s: TableSubject, p: ScoredPairs, where: str) -> Iterator[Finding]:
    sign = -1 if s.metric == "l2" else 1
    at = threshold_for_precision(p, s.precision, seed=s.seed)
    curve = reliability(p)
    if at is None:
        yield found(
            "judged-threshold",
            "judged",
            f"no threshold reaches a precision of {s.precision:g}",
            "fact",
            None,
            f"Over {where}, ten pairs or more at a time.",
            'found["reliability"].data["bins"]',
        )
    else:
        t, (low, high) = sign * at.threshold.value, sorted((sign * at.threshold.low, sign * at.threshold.high))
        span = f" ({low:.3f} to {high:.3f})" if low == low else ""
        yield found(
            "judged-threshold",
            "judged",
            f"a precision of {s.precision:g} takes a threshold of {t:.3f}{span}",
            "fact",
            t,
            f"It finds {at.recall:.1%} of what is relevant at a precision of {at.precision:.1%}. Measured over "
            f"{where}; "
            + (
                "the interval is from resampled queries."
                if span
                else "too few queries, or too few reach it, for an interval."
            ),
            s.again(threshold=round(t, 3)),
            interval={"value": t, "low": low, "high": high},
            precision=at.precision,
            recall=at.recall,
        )
    best = best_f1(p, seed=s.seed)
    t, (low, high) = sign * best.threshold.value, sorted((sign * best.threshold.low, sign * best.threshold.high))
    alike = (
        f"those from {low:.3f} to {high:.3f} cannot be told from it" if low == low else "too few queries for a range"
    )
    yield found(
        "best-f1",
        "judged",
        f"the best F1, {interval_words(best.f1)}, is at a threshold of {t:.3f}; {alike}",
        "fact",
        t,
        f"Measured over {where}. The range is that of the best thresholds of resampled queries.",
        s.again(threshold=round(t, 3)),
        low=low,
        high=high,
        f1=best.f1.to_dict(),
    )
    first, last = curve[0], curve[-1]
    bins = [{**b, "from": sign * b["from"], "to": sign * b["to"]} for b in curve]
    yield found(
        "reliability",
        "judged",
        f"of the highest scores ({sign * last['from']:.3f} on) {last['share']:.1%} are relevant, of the lowest "
        f"{first['share']:.1%}",
        "fact",
        last["share"],
        f"Shares in {len(curve)} bins of equally many pairs, over {where}.",
        'found["reliability"].data["bins"]',
        bins=bins,
        curve=threshold_curve(s.pairs, p) if s.several else None,
    )
