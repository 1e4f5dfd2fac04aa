"""What to use instead: the similarity that no change of convention moves, beside the cosine, and where they part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gonio.core.correlations import pearson
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
    m = measure(for_link(h.link, embeddings=s.embeddings is not None))(h, s.points)
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
    s.kept["measure"] = m
    yield _what_to_report(s, m)
    if h.link == "cosine" or h.shape[0] < 3 or not len(s.asked):
        return
    yield _lists_agree(s, m)
    yield _cosine_against(s, m)


def _what_to_report(s: Subject, m: Measure) -> Finding:
    """Which number is the same in every equivalent model, and over what it is taken."""
    data = {"measure": m.name, "invariant": sorted(m.invariant), "caveat": m.caveat}
    if s.head.link == "cosine":
        title = "Report the cosine: it is what was trained"
        return Finding(
            "similarity", "instead", title, "fact", m.name, "It is the same in every equivalent model.", data=data
        )
    weak = s.embeddings is None
    over = "from the rows alone" if s.embeddings is None else f"over {len(s.embeddings):,} {s.inputs_word}s"
    norm = " that is read with its final norm" if not {"M", "L"} <= m.invariant else ""
    words = [f"It is the same in every equivalent model{norm}.", (type(m).__doc__ or "").strip().splitlines()[0]]
    if weak:
        words.append(
            "Give embeddings (states that reach the head) for the answer that counts: without them it weighs all "
            "inputs alike."
        )
    if m.caveat:
        words.append(f"Note: {m.caveat}.")
    return Finding(
        "similarity",
        "instead",
        f"Report the {m.name}, {over}",
        "open" if weak else "fact",
        m.name,
        " ".join(words),
        theorem="GONIO.clc" if m.name.startswith("centred-logit") else "",
        data=data,
    )


def _lists_agree(s: Subject, m: Measure) -> Finding:
    """How many of the nearest by cosine are among the nearest by the other measure; the worst lists."""
    labels, near = s.head.labels, s.cosine_neighbours[0]
    there = m.nearest(s.k, s.asked).near
    kept = np.array([len(np.intersect1d(a, b)) / s.k for a, b in zip(near, there, strict=True)])
    worst = np.argsort(kept, kind="stable")[:SHOWN]
    return Finding(
        "lists-agree",
        "instead",
        f"Of the {s.k} nearest {s.word}s by cosine, {s.k * float(kept.mean()):.1f} are among the {s.k} "
        f"nearest by {m.name}",
        "fact",
        float(kept.mean()),
        "Where few agree, a list of neighbours by cosine shows how the model was written down, not how it predicts.",
        data={
            "lists": [
                {
                    "label": labels[int(s.asked[i])],
                    "cosine": [labels[j] for j in near[i]],
                    "instead": [labels[j] for j in there[i]],
                }
                for i in worst
            ]
        },
    )


def _cosine_against(s: Subject, m: Measure) -> Finding:
    """How the two measures correlate over random pairs, and the near pairs on which they differ most."""
    labels = s.head.labels
    near, value = s.cosine_neighbours
    a, b = np.repeat(s.asked, s.k), near.reshape(-1)
    cosines, other = value.reshape(-1).astype(np.float64), m.pairs(a, b)
    c, d = _random_pairs(s)
    plain, random = measure("cosine")(s.head).pairs(c, d), m.pairs(c, d)
    defined = ~(np.isnan(plain) | np.isnan(random))
    r = pearson(plain[defined], random[defined]) if defined.sum() > 2 else float("nan")
    return Finding(
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
                [labels[int(a[i])], labels[int(b[i])], float(cosines[i]), float(other[i])]
                for i in _furthest_apart(a, b, np.abs(other - cosines))
            ],
            "measure": m.name,
            "points": _points(labels, [(a, b, cosines, other), (c, d, plain, random)]),
        },
    )


def _random_pairs(s: Subject) -> tuple[np.ndarray, np.ndarray]:
    """Up to 2,000 pairs of different labels with rows that are not zero."""
    rng = np.random.default_rng([s.seed, 11])
    c, d = (rng.integers(0, s.head.shape[0], 2000) for _ in range(2))
    fine = (c != d) & (s.head.norms[c] > 0) & (s.head.norms[d] > 0)
    return c[fine], d[fine]


def _furthest_apart(a: np.ndarray, b: np.ndarray, gap: np.ndarray) -> list[int]:
    """The pairs with the largest gaps; a pair counts once, whichever of the two named the other."""
    seen: dict[tuple[int, int], int] = {}
    for i in np.argsort(-np.where(np.isnan(gap), -1, gap), kind="stable"):
        seen.setdefault((min(int(a[i]), int(b[i])), max(int(a[i]), int(b[i]))), int(i))
    return list(seen.values())[:SHOWN]


def _points(labels: tuple[str, ...], groups: list[tuple[np.ndarray, ...]]) -> list[list[object]]:
    """At most some hundreds of pairs for a chart: [first, second, cosine, other, nearest pair or random]."""
    out: list[list[object]] = []
    for kind, (a, b, x, y) in enumerate(groups):
        step = max(1, len(a) // 400)
        for i in range(0, len(a), step):
            if np.isfinite(x[i]) and np.isfinite(y[i]):
                out.append([labels[int(a[i])], labels[int(b[i])], round(float(x[i]), 4), round(float(y[i]), 4), kind])
    return out
