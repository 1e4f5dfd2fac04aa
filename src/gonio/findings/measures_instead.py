"""What to use instead: the similarity that no change of convention moves, beside the cosine, and where they part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gonio.core.errors import GonioError
from gonio.findings.finding import Finding, plainly, sentence
from gonio.findings.subject import Subject
from gonio.similarity.measures import Measure, for_link, measure

SHOWN = 6
_NONE = {
    "input": "No number of this table alone says how the model treats two tokens",
    "vectors": "No similarity of these vectors is fixed by training",
}


def best(s: Subject) -> Measure | None:
    """The measure for this link, over the embeddings where some were given; None where the head has too few labels.

    Raises where no measure is the same in every equivalent model, or the only one says nothing.
    """
    h = s.head
    if h.shape[0] < 2:
        return None
    if h.link == "vectors":
        raise GonioError(
            "training fixes no similarity of these word vectors; which one serves you, judged pairs tell "
            "(gonio.papers.judgements)"
        )
    m = measure(for_link(h.link, embeddings=s.embeddings is not None))(h, s.embeddings)
    if m.empty:
        raise GonioError(f"without embeddings there is none: {m.caveat}")
    return m


def instead(s: Subject) -> Iterator[Finding]:
    """The invariant similarity, its neighbours beside the cosine ones, and the largest disagreements."""
    h = s.head
    if h.link == "unknown":
        return
    try:
        m = best(s)
    except GonioError as e:
        why = str(e).removeprefix("similar: ")
        yield Finding(
            "similarity", "instead", _NONE.get(h.link, "The rows alone fix no similarity"), "open", None, sentence(why)
        )
        return
    if m is None:
        return
    if h.link == "cosine":
        yield Finding(
            "similarity",
            "instead",
            "Report the cosine: it is what was trained",
            "fact",
            m.name,
            "It is the same in every equivalent model.",
            data={"measure": m.name, "invariant": sorted(m.invariant), "caveat": m.caveat},
        )
        return
    over = f"over {len(s.embeddings):,} embeddings" if s.embeddings is not None else "from the rows alone"
    weak = s.embeddings is None
    norm = " that is read with its final norm" if not {"M", "L"} <= m.invariant else ""
    yield Finding(
        "similarity",
        "instead",
        f"Report the {m.name}, {over}",
        "open" if weak else "fact",
        m.name,
        f"It is the same in every equivalent model{norm}. {(type(m).__doc__ or '').strip().splitlines()[0]}"
        + (
            " Give embeddings (states that reach the head) for the answer that counts: without them it "
            "weighs all inputs alike."
            if weak
            else ""
        )
        + (f" Note: {m.caveat}." if m.caveat else ""),
        theorem="GONIO.clc" if m.name.startswith("centred-logit") else "",
        data={"measure": m.name, "invariant": sorted(m.invariant), "caveat": m.caveat},
    )
    if h.shape[0] < 3 or not len(s.asked):
        return
    near, value = s.cosine_neighbours
    there = m.nearest(s.k, s.asked)
    kept = np.array([len(np.intersect1d(a, b)) / s.k for a, b in zip(near, there.near, strict=True)])
    worst = np.argsort(kept, kind="stable")[:SHOWN]
    yield Finding(
        "lists-agree",
        "instead",
        f"Of the {s.k} nearest labels by cosine, {s.k * float(kept.mean()):.1f} are among the {s.k} "
        f"nearest by {m.name}",
        "fact",
        float(kept.mean()),
        "Where few agree, a list of neighbours by cosine shows how the model was written down, not how it predicts.",
        data={
            "lists": [
                {
                    "label": h.labels[int(s.asked[i])],
                    "cosine": [h.labels[j] for j in near[i]],
                    "instead": [h.labels[j] for j in there.near[i]],
                }
                for i in worst
            ]
        },
    )
    a = np.repeat(s.asked, s.k)
    b = near.reshape(-1)
    other = m.pairs(a, b)
    cosines = value.reshape(-1).astype(np.float64)
    rng = np.random.default_rng([s.seed, 11])
    c, d = (rng.integers(0, h.shape[0], 2000) for _ in range(2))
    fine = (c != d) & (h.norms[c] > 0) & (h.norms[d] > 0)
    c, d = c[fine], d[fine]
    plain = measure("cosine")(h).pairs(c, d)
    random = m.pairs(c, d)
    gap = np.abs(other - cosines)
    seen: dict[tuple[int, int], int] = {}  # a pair counts once, whichever of the two named the other
    for i in np.argsort(-np.where(np.isnan(gap), -1, gap), kind="stable"):
        seen.setdefault((min(int(a[i]), int(b[i])), max(int(a[i]), int(b[i]))), int(i))
    far = list(seen.values())[:SHOWN]
    defined = ~(np.isnan(plain) | np.isnan(random))
    with np.errstate(all="ignore"):
        r = float(np.corrcoef(plain[defined], random[defined])[0, 1]) if defined.sum() > 2 else float("nan")
    yield Finding(
        "cosine-against",
        "instead",
        f"Over random pairs the cosine and the {m.name} correlate with {plainly(r, 2)}"
        if np.isfinite(r)
        else f"The cosine and the {m.name} cannot be compared over random pairs",
        "fact",
        r if np.isfinite(r) else None,
        "Where they part, the second is the one that speaks about predictions.",
        data={
            "largest_gaps": [
                [h.labels[int(a[i])], h.labels[int(b[i])], float(cosines[i]), float(other[i])] for i in far
            ],
            "points": _points(h.labels, [(a, b, cosines, other), (c, d, plain, random)]),
        },
    )


def _points(labels: tuple[str, ...], groups: list[tuple[np.ndarray, ...]]) -> list[list[object]]:
    """At most some hundreds of pairs for a chart: [first, second, cosine, other, nearest pair or random]."""
    out: list[list[object]] = []
    for kind, (a, b, x, y) in enumerate(groups):
        step = max(1, len(a) // 400)
        for i in range(0, len(a), step):
            if np.isfinite(x[i]) and np.isfinite(y[i]):
                out.append([labels[int(a[i])], labels[int(b[i])], round(float(x[i]), 4), round(float(y[i]), 4), kind])
    return out
