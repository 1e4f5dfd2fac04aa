"""What changed from the table of before, what that costs, and what smaller copies of this table would cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gonio.embeddings.judged_thresholds import scored_pairs, threshold_for_precision
from gonio.embeddings.paired_comparison import compare_paired
from gonio.embeddings.query_lists import query_lists, shared_share
from gonio.embeddings.random_pairs import pair_scores
from gonio.embeddings.relevance_judgements import judgements_of
from gonio.embeddings.retrieval_quality import judged_queries, retrieval_quality
from gonio.embeddings.sampling_intervals import mean_interval
from gonio.embeddings.scorers import cheaper_scorers, metric_scorer
from gonio.embeddings.table_drift import COMPARED, TableDrift, compare_tables
from gonio.findings.finding import Finding, counted
from gonio.findings.table_subject import LISTED, ROWS, TableSubject, difference_words, found, interval_words

TOLD = 10  # pairs on either side of a threshold that is carried over
KEPT = 0.9  # a mean share of kept neighbours surely below this is worth acting on


def drift(s: TableSubject) -> Iterator[Finding]:
    """The old table beside the new, and cheaper copies of the new."""
    if s.was is not None:
        d = compare_tables(s.corpus, s.was, k=s.k, metric=s.metric, sample=s.sample or ROWS, seed=s.seed)
        yield _neighbours(s, d)
        yield from _same(d)
        yield from _linear(s, d)
        if s.threshold is not None:
            yield _threshold(s, d)
        if s.qrels is not None and s.was_queries is not None:
            yield _quality(s)
    if s.cheaper and s.several:
        yield from _cheaper(s)


def _neighbours(s: TableSubject, d: TableDrift) -> Finding:
    kept = d.mean_kept
    order = np.argsort(d.kept, kind="stable")[:LISTED]
    named = s.corpus.names(d.here[d.asked[order]])
    moved = [{"id": n, "kept": float(d.kept[i])} for n, i in zip(named, order, strict=True) if d.kept[i] < 1]
    lost = len(s.corpus) - len(d.here), len(d.old) - len(d.here)
    only = f" {lost[0]:,} documents are only in the new table and {lost[1]:,} only in the old." if any(lost) else ""
    asked = (
        f"all {len(d.asked):,} common documents that have a direction in both"
        if d.whole
        else f"{len(d.asked):,} random ones, estimated, of {len(d.here):,} common documents"
    )
    names = ", ".join(m["id"] for m in moved[:5]) or "none"
    return found(
        "drift",
        "drift",
        f"of {d.k} neighbours under the old table {interval_words(kept)} are kept",
        "warning" if kept.high < KEPT else "fine",
        kept.value,
        f"Mean over {asked}, by {s.metric}. Moved most: {names}.{only} Whether the "
        f"new lists are "
        f"better or worse, only judgements can tell (--qrels with --was-queries).",
        'found["drift"].data["moved"]',
        threshold=KEPT,
        interval=kept.to_dict(),
        moved=moved,
        common=len(d.here),
    )


def _same(d: TableDrift) -> Iterator[Finding]:
    same = d.same
    value, null = d.cka
    said = f"Linear CKA is {value:.3f}; with shuffled rows at most {null:.3f}."
    if value != value:
        said = "Linear CKA is not defined, for the rows of one table are all equal."
    if same is None:
        title, reason = "no rotation relates the tables: their widths differ", ""
    else:
        word = {
            True: "are one up to a rotation",
            False: "are not one up to a rotation",
            None: "may be one up to a rotation",
        }
        who = "the two tables"
        if not d.whole or len(d.asked) > COMPARED:
            who = f"the {min(len(d.asked), COMPARED):,} documents compared"
        title, reason = f"{who} {word[same.same]}", f" {same.reason[:1].upper()}{same.reason[1:]}."
    yield found(
        "rotation",
        "drift",
        title,
        "fact",
        None if same is None else str(same.same),
        said + reason,
        'gonio.same_model(gonio.Head(X, link="cosine"), gonio.Head(old, link="cosine"))',
        cka=value,
        cka_shuffled=null,
    )


def _linear(s: TableSubject, d: TableDrift) -> Iterator[Finding]:
    carried = d.carried()
    do = "M = gonio.embeddings.linear_map(old, X); Q = gonio.embeddings.apply_map(M, old[:10])"
    if carried is None:
        says = f"{counted(len(d.here), 'document')} of both tables cannot both teach it and test it at width "
        says += f"{d.old.shape[1]}; give more documents."
        yield found("linear-map", "open", "no linear map was fitted", "open", None, says, do)
        return
    found_, askers = carried
    title = f"old vectors, mapped linearly, find {interval_words(found_)} of what new ones find"
    says = (
        f"Recall@{d.k} by cosine over {askers:,} documents that the map was not fitted on: what old queries "
        f"would cost that "
        f"are not embedded anew."
    )
    yield found("linear-map", "drift", title, "fact", found_.value, says, do, interval=found_.to_dict())


def _threshold(s: TableSubject, d: TableDrift) -> Finding:
    assert s.threshold is not None
    if len(d.here) < 100:
        title = f"{s.threshold:g} there cannot be carried over by false alarms"
        says = f"{len(d.here):,} common documents give too few pairs that share none; 100 documents are needed."
        return found("carried-threshold", "drift", title, "open", None, says, s.again(threshold=s.threshold))
    t, share, pairs = d.carried_threshold(s.threshold)
    above = round(share.value * pairs)
    known = min(above, pairs - above) >= TOLD
    data: dict[str, Any] = {"share": share.to_dict(), "pairs": pairs}
    says = f"{above:,} of {pairs:,} random pairs of documents reach {s.threshold:g} in the old table"
    if known:
        title = f"{s.threshold:g} there is {interval_words(t)} here, by equal false alarms"
        says += f": {share.value:.2%} ({share.low:.2%} to {share.high:.2%})."
        data["interval"] = t.to_dict()
    else:
        title = f"{s.threshold:g} there cannot be carried over by false alarms"
        says += f"; {TOLD} on either side are needed to tell its place here."
    if s.judged is not None:
        says += _by_precision(s, t if known else None, data)
    state, section, value = ("fact", "drift", t.value) if known else ("open", "drift", None)
    do = s.again(threshold=round(t.value, 3) if known else s.threshold)
    return found("carried-threshold", section, title, state, value, says, do, **data)


def _by_precision(s: TableSubject, alarms, data) -> str:
    """The threshold of equal precision, where judged pairs tell it, and whether it agrees."""
    sides = []
    for corpus, queries in ((s.was, s.was_queries), (s.corpus, s.queries)):
        asking = queries if queries is not None else corpus
        assert corpus is not None
        assert asking is not None
        j = judgements_of(s.judged, "judged", asking, corpus)
        kept = j if s.relevant is None else j.at_least(s.relevant)
        rows = np.arange(len(j.query))
        score = pair_scores(asking.take(j.query), corpus.take(j.document), rows, rows, s.metric)
        sides.append((score, kept.relevant, j.query))
    sign = -1 if s.metric == "l2" else 1
    above = sides[0][0] >= sign * float(s.threshold or 0)
    if above.sum() < 10:
        return f" Only {int(above.sum())} judged pairs reach it there, too few for a precision."
    precision = float(sides[0][1][above].mean())
    at = None if precision == 0 else threshold_for_precision(scored_pairs(*sides[1]), precision, seed=s.seed)
    if at is None:
        return f" Its precision there is {precision:.1%} on the judged pairs; no threshold here reaches that."
    t, (low, high) = sign * at.threshold.value, sorted((sign * at.threshold.low, sign * at.threshold.high))
    data["by_precision"] = {"value": t, "low": low, "high": high, "precision": precision}
    says = f" By equal precision ({precision:.1%} there, on the judged pairs) it is {t:.3f} ({low:.3f} to {high:.3f})"
    if alarms is None or low != low:
        return says + "."
    apart = low > alarms.high or high < alarms.low
    return says + (": the two disagree." if apart else ": the two are not shown to disagree.")


def _quality(s: TableSubject) -> Finding:
    """nDCG under the old and the new table on the same judged queries."""
    sides = []
    for corpus, queries in ((s.was, s.was_queries), (s.corpus, s.queries)):
        assert corpus is not None
        assert queries is not None
        j = judgements_of(s.qrels, "qrels", queries, corpus)
        asked = judged_queries(j)
        lists = query_lists(corpus, [metric_scorer(s.metric, queries.take(asked))], min(len(corpus), 100))[s.metric]
        ndcg = retrieval_quality(lists, j, asked, k=s.k, gains=s.gains).ndcg
        sides.append(dict(zip(queries.ids[asked].tolist(), ndcg.tolist(), strict=True)))
    both = [q for q in sides[0] if q in sides[1]]
    old, new = (np.array([side[q] for q in both]) for side in sides)
    c = compare_paired(old, {"new": new}, seed=s.seed)[0]
    losers = [both[i] for i in np.argsort(new - old, kind="stable")[:10] if new[i] < old[i]]
    title = f"nDCG@{s.k} went from {old.mean():.3f} to {new.mean():.3f}: {difference_words(c.difference)}"
    words = {"better": "the new is better", "worse": "the new is worse", "not shown": "no difference is shown"}[
        c.verdict
    ]
    lost = ", ".join(map(str, losers[:5])) or "none"
    says = f"Over {len(both):,} judged queries, paired: {words}. Lost most: {lost}."
    state = "warning" if c.verdict == "worse" else "fine"
    data = {"interval": c.difference.to_dict(), "losers": losers}
    return found(
        "drift-quality",
        "drift",
        title,
        state,
        c.difference.value,
        says,
        'found["drift-quality"].data["losers"]',
        **data,
    )


def _cheaper(s: TableSubject) -> Iterator[Finding]:
    """Truncated, int8 and binary copies: neighbours kept, and judged quality where there are qrels."""
    own = None if s.asks is not None else s.asked
    scorers = cheaper_scorers(s.survey.rows, s.asking)
    lists = query_lists(s.corpus, scorers, s.size, own=own, on_block=s.progress)
    base = s.lists["cosine"].near
    kept = {x.name: mean_interval(shared_share(base, lists[x.name].near), bounds=(0, 1)) for x in scorers}
    who = "queries" if s.asks is not None else "rows"
    told = "; ".join(f"{name} keeps {interval_words(x)}" for name, x in kept.items())
    says = f"Share of the top {s.size} by cosine that each copy keeps, over {len(base):,} {who}."
    data: dict[str, Any] = {"kept": {n: x.to_dict() for n, x in kept.items()}}
    if s.qrels is not None and s.queries is not None and s.asks is not None:
        j = judgements_of(s.qrels, "qrels", s.queries, s.corpus)
        asked = judged_queries(j)
        Q = s.asks[asked]
        ways = [metric_scorer("cosine", Q), *cheaper_scorers(s.survey.rows, Q)]
        found_ = query_lists(s.corpus, ways, min(len(s.corpus), 100), on_block=s.progress)
        ndcg = {n: retrieval_quality(x, j, asked, k=s.k, gains=s.gains).ndcg for n, x in found_.items()}
        whole = ndcg.pop("cosine")
        compared = compare_paired(whole, ndcg, seed=s.seed)
        says += f" nDCG@{s.k}, {whole.mean():.3f} by cosine, changes by " + "; ".join(
            f"{c.name} {difference_words(c.difference)}, {c.verdict}" for c in compared
        )
        says += " (better or worse: corrected for all of them)."
        data["quality"] = {c.name: {**c.difference.to_dict(), "verdict": c.verdict} for c in compared}
    best = max(scorers, key=lambda x: kept[x.name].value)
    yield found(
        "cheaper",
        "drift",
        told,
        "fact",
        kept[best.name].value,
        says,
        best.code,
        **data,
    )
