"""What else is odd: hubs, a common direction, norms and frequency, rows that were hardly trained, near-duplicates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gonio import diagnostics
from gonio.findings.finding import Finding, counted, plainly, short
from gonio.findings.seen_outputs import prediction_hubs
from gonio.findings.subject import Subject
from gonio.gauge.group import SCORES
from gonio.similarity.near_ties import STEP

SKEW, ANTIHUBS = 3.0, 0.25  # skewness of N_k and share of labels in no list from which hubs are worth a warning
SMALL = 0.1  # below it a common offset is too small to speak of
COMMON = 0.5  # mean cosine of random pairs, or share of the mean vector, from which cosines are mostly one offset
FOLLOWS = 0.5  # rank correlation of length and frequency from which lengths carry frequency
NAMES = 50


def odd(s: Subject) -> Iterator[Finding]:
    """Hubs, anisotropy, norms and frequency, undertrained rows, near-duplicates."""
    h = s.head
    n = h.shape[0]
    alive = int((h.norms > 0).sum())
    if n < 3 or alive < 3:
        return
    yield from _anisotropy(s)
    if n > s.k + 1:
        yield from _hubs(s)
    yield from prediction_hubs(s)
    yield from _norms(s)
    duplicates = diagnostics.near_duplicates(h, neighbours=s.lists[0], cosines=s.lists[1])
    if h.link == "softmax" and n > 50:
        yield from _undertrained(s, duplicates)
    yield from _duplicates(s, duplicates)


def _anisotropy(s: Subject) -> Iterator[Finding]:
    a = diagnostics.anisotropy(s.head)
    common = max(abs(a.mean_cosine), a.mean_share)
    lifted = common >= COMMON or a.mean_cosine >= SMALL
    free = s.head.link == "softmax" and s.head.softcap is None
    yield Finding(
        "anisotropy",
        "odd",
        f"Two random rows have cosine {plainly(a.mean_cosine, 2)} on average; a common offset makes up "
        f"{a.mean_share:.0%} of their mean square",
        "warning" if common >= COMMON else "fine",
        a.mean_cosine,
        (
            (
                "Cosines are mostly the common offset, so all look alike. "
                if common >= COMMON
                else "A common offset lifts cosines, though it is less than half of them. "
            )
            + (
                f"Centring removes it and changes no prediction{_once_untied(s)}: it lies inside the gauge."
                if free
                else "Centring removes it, and changes the scores."
                if s.head.link in SCORES
                else "Centring removes it."
            )
            if lifted
            else "No common offset that lifts cosines."
        )
        + (
            f" The largest direction has {a.top_share:.0%} of the variance; effective rank {a.effective_rank:.1f}, "
            f"IsoScore {a.isoscore:.2f}."
            if np.isfinite([a.top_share, a.effective_rank, a.isoscore]).all()
            else ""
        ),
        threshold=COMMON,
        data={
            "spectrum": [float(x) for x in a.spectrum[:256]],
            "isoscore": float(a.isoscore),
            "partition_ratio": float(a.partition_ratio),
            "top_share": float(a.top_share),
            "mean_share": float(a.mean_share),
        },
    )


def _once_untied(s: Subject) -> str:
    return ", once the head is untied from the input embeddings" if s.head.source and s.head.source.tied else ""


def _hubs(s: Subject) -> Iterator[Finding]:
    h = s.head
    r = s.kept["hubness"] = diagnostics.hubness(h, s.k, neighbours=s.lists[0][:, : s.k])
    bad = r.skewness >= SKEW or r.antihub_rate >= ANTIHUBS
    top = [[h.labels[i], int(c)] for i, c in r.hubs[:NAMES]]
    same = int((s.lists[1][:, r.k - 1] >= 1 - STEP / 2).sum())
    alone = f"{r.antihub_rate:.0%} of {s.word}s are in nobody's {s.k} nearest"
    yield Finding(
        "hubness",
        "odd",
        alone + (f", while {short(top[0][0])} is in {top[0][1]:,} lists" if top else "")
        if top or bad
        else f"No {s.word} is in far more lists of neighbours than the others",
        "warning" if bad else "fine",
        float(r.skewness),
        f"The number of lists a row is in has skewness {r.skewness:.1f}. "
        + (
            "Hubs crowd every list of neighbours by cosine; CSLS or mutual proximity takes them out."
            if bad
            else "That is ordinary."
        )
        + (
            f" {same:,} {s.word}s have {s.k} or more others in their own direction, as far as a millionth of a cosine "
            f"tells: whom their lists name is decided by the order of the rows."
            if same
            else ""
        ),
        threshold=SKEW,
        data={
            "hubs": top,
            "in_one_direction": same,
            "k": r.k,
            "antihub_rate": float(r.antihub_rate),
            "hub_rate": float(r.hub_rate),
            "robin_hood": float(r.robin_hood),
        },
    )


def _norms(s: Subject) -> Iterator[Finding]:
    h = s.head
    r = diagnostics.norms(h, s.frequencies)
    q = r.quantiles
    tied = r.frequency_correlation
    strong = tied is not None and np.isfinite(tied) and abs(tied) >= FOLLOWS
    counts, edges = r.histogram
    yield Finding(
        "norms",
        "odd",
        f"Row lengths run from {q[0]:.3g} to {q[-1]:.3g}"
        + (f" and follow frequency (Spearman {tied:.2f})" if strong else ""),
        "warning" if strong else "fine",
        float(q[len(q) // 2]),
        "A cosine throws lengths away. "
        + (
            "Here they carry frequency, so a dot product favours frequent labels and a cosine hides that."
            if strong
            else "Nothing known makes them odd here."
            if s.frequencies is not None
            else "Give frequencies to see whether they carry them."
        ),
        data={
            "histogram": {"counts": [int(c) for c in counts], "edges": [float(e) for e in edges]},
            "frequency_correlation": None if tied is None else float(tied),
        },
    )


def _undertrained(s: Subject, duplicates: diagnostics.NearDuplicates) -> Iterator[Finding]:
    h = s.head
    r = diagnostics.undertrained(h, duplicates=duplicates)
    s.kept["undertrained"] = r.candidates
    names = [h.labels[int(i)] for i in r.candidates[:NAMES]]
    if not names:
        return
    yield Finding(
        "undertrained",
        "odd",
        f"{len(r.candidates):,} rows look least trained, such as {', '.join(short(x) for x in names[:3])}",
        "open",
        len(r.candidates),
        f"Reference: {_reference(r)}. These are the lowest two percent by their distance from it in an indicator that "
        "no translation moves (the raw cosine indicator is moved by them). They are candidates: prompts that ask the "
        "model to repeat them decide.",
        data={
            "labels": names,
            "invariant": sorted(r.invariant),
            "reference": r.how,
            "reference_labels": [h.labels[int(i)] for i in r.reference[:NAMES]],
        },
    )


def _reference(r: diagnostics.Undertrained) -> str:
    return r.how if "cluster" in r.how else f"{len(r.reference):,} {r.how}"


def _duplicates(s: Subject, r: diagnostics.NearDuplicates) -> Iterator[Finding]:
    h = s.head
    count = r.count - r.equal  # equal rows are told elsewhere
    if not count:
        return
    twin = {int(i): k for k, g in enumerate(h.twins) for i in g}
    pairs = [p for p in r.pairs[:100_000].tolist() if twin.get(p[0], -1) != twin.get(p[1], -2)]
    largest = r.groups[0]
    yield Finding(
        "near-duplicates",
        "odd",
        f"{counted(count, 'pair')} of rows {'has' if count == 1 else 'have'} a cosine of {r.cosine:g} or more",
        "open",
        count,
        "Counted over all pairs, without labels whose scores are equal everywhere. They may be variants of one label, "
        "or rows that were never told apart. With labels of equal scores they form "
        f"{counted(len(r.groups), 'group')}, the largest of {len(largest):,} labels.",
        data={
            "groups": [[h.labels[a], h.labels[b]] for a, b in pairs[:20]],
            "largest_group": [h.labels[i] for i in largest[:NAMES]],
        },
    )
