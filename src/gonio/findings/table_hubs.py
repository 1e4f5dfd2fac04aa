"""Documents that are in too many lists, and documents in none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gonio.core.printed_bounds import at_least, at_most
from gonio.embeddings.query_hubs import query_hubs
from gonio.embeddings.sampling_intervals import share_of_many
from gonio.embeddings.scorers import hub_scorers
from gonio.findings.finding import Finding, counted
from gonio.findings.table_subject import TableSubject, found

BUSIEST = 2000  # documents whose counts are kept


def _of_all(s: TableSubject, count: int) -> str:
    """What a sample tells of the busiest document and everybody's lists."""
    if not s.estimated or s.neighbours is not None:
        return ""
    every = len(s.asks) if s.asks is not None else s.survey.live
    x = share_of_many(count, len(s.asked), len(s.corpus))
    low, high = at_least(100 * x.low, 2), at_most(100 * x.high, 2)
    return (
        f" Of the lists of all {every:,} it is in {low} % to {high} % ({x.level:.0%} sure, for every document at once)."
    )


def hubs(s: TableSubject) -> Iterator[Finding]:
    """Count lists; with queries also what corrections for hubs do to the counts."""
    if not s.several:
        return
    h, given = s.hubs, s.neighbours is not None
    who = "queries" if s.asks is not None else "rows"
    busiest, share = h.worst, h.counts[h.worst] / h.queries
    bad = h.hubs
    name = s.named([busiest])[0]
    corrected = {}
    by_cosine = ""
    if s.metric != "cosine" and len(bad) and not given:
        other = query_hubs(s.lists["cosine"].near, len(s.corpus))
        by_cosine = f" By cosine the busiest document is in {int(other.counts.max()):,}."
    for way in ("CSLS", "local scaling"):
        if not given and way in s.lists:
            other = query_hubs(s.lists[way].near, len(s.corpus))
            corrected[way] = {"most": int(other.counts.max()), "unfound": other.unfound[0]}
    with_ = "; ".join(
        f"with {w} the busiest is in {x['most']:,} and {x['unfound']:.1%} are in none" for w, x in corrected.items()
    )
    drawn = f" drawn at random from {len(s.asks) if s.asks is not None else len(s.corpus):,}" if s.estimated else ""
    if given:
        drawn = ", estimated: they were given, and an approximate index may have missed some"
    order = np.argsort(-h.counts, kind="stable")[:BUSIEST]
    order = order[h.counts[order] > 0]
    do = hub_scorers(s.asking)[0].code if s.asks is not None else 'found["hubs"].data["busiest"]'
    yield found(
        "hubs",
        "hubs",
        f"{counted(len(bad), 'document')} crowd{'s' if len(bad) == 1 else ''} the lists; document {name} is in "
        f"{h.counts[busiest]:,} of {h.queries:,} lists ({share:.1%})",
        "warning" if len(bad) else "fine",
        int(h.counts[busiest]),
        f"Lists of the {h.k} best by {s.metric}, of {h.queries:,} {who}{drawn}. A document is in {h.expected:.2f} on "
        f"average; "
        f"if lists were random, none would be in more than {h.chance:,} (but for one table in a thousand)."
        + _of_all(s, int(h.counts[busiest]))
        + by_cosine
        + (f" {with_[:1].upper()}{with_[1:]}." if with_ else "")
        + " Whether a correction finds more of what users want, only judgements can tell.",
        do,
        threshold=h.chance,
        share=share_of_many(int(h.counts[busiest]), h.queries, len(s.corpus)).to_dict(),
        corrected=corrected,
        busiest=[{"id": x, "lists": int(h.counts[i])} for x, i in zip(s.corpus.names(order), order, strict=True)],
    )
    seen, chance = h.unfound
    yield found(
        "unfound",
        "hubs",
        f"{seen:.1%} of the documents are in no list; of random lists {chance:.1%} would be",
        "fact",
        seen,
        f"{h.queries:,} lists of {h.k} can hold at most {min(1.0, h.queries * h.k / len(s.corpus)):.1%} of the "
        f"{len(s.corpus):,} documents."
        + (" Estimated: the lists were given." if given else "")
        + (f" More {who} may find more." if s.estimated or s.asks is not None else ""),
        'found["unfound"].data["ids"]',
        chance=chance,
        ids=s.corpus.names(np.flatnonzero(h.counts == 0)[:BUSIEST]),
    )
