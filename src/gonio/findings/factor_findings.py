"""A factor model's own findings: which similarity to use for similar items, how lists move, who is never shown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gonio.core.progress import Bar
from gonio.factors.checkup import FactorAudit, audit
from gonio.findings.finding import Finding
from gonio.findings.subject import Subject

NAMES = 50


def factor_model(s: Subject) -> Iterator[Finding]:
    """What is asked of a factor model alone: users and items, and a dot product or a cosine between them."""
    h = s.head
    with Bar("  factor model") as bar:
        found = audit(h, popularity=s.popularity, k=s.k, on_progress=bar)
    s.kept["shown"] = found.shown
    if found.wins is not None:
        s.kept["first"] = found.wins
    yield _answer(found)
    yield from _lists(found)
    yield from _shown(found)
    yield from _norms(found)
    if len(found.constant):
        yield Finding(
            "constant-columns",
            "head",
            f"Column {', '.join(map(str, found.constant))} of the users is constant: a bias of the items",
            "warning",
            len(found.constant),
            "It enters the items' plain cosines, though it is the same for every user.",
            threshold=1,
        )


def _answer(a: FactorAudit) -> Finding:
    """Which similarity to use for similar items, and why, in one sentence."""
    t = a.tables
    if t.link == "cosine":
        return Finding(
            "similar-items",
            "answer",
            "For similar items use the plain cosine: it is what was trained",
            "fact",
            "cosine",
            "Rotations and lengths, which the training leaves open, do not move it.",
            verify=f"gonio similar {a.head.typed} '#0' --measure cosine",
        )
    kept = (
        f" Of each item's {a.k} nearest by plain cosine, {100 * a.moved.mean():.1f} % are among these."
        if len(a.moved)
        else ""
    )
    assumed = " (assumed: nothing is told of the training)" if t.assumed and t.trained == "product" else ""
    assumed = " (assumed, from the library it is made by)" if t.assumed and t.trained == "factors" else assumed
    why = (
        f"Plain cosines are unique under a penalty on each factor{assumed}, but another strength of it gives others; "
        "the projected-back cosine compares what the model predicts."
        if t.trained == "factors"
        else f"Plain cosines are arbitrary: the training{assumed or ' penalty is on the product and'} leaves every "
        "invertible map of users and items open, which keeps every score and moves cosines."
    )
    return Finding(
        "similar-items",
        "answer",
        "For similar items use the projected-back cosine: the cosine of two items' scores over the users",
        "fact",
        "projected-back cosine",
        f"{why}{kept}",
        theorem="GONIO.projected",
        verify=f"gonio similar {a.head.typed} '#0'",
        data={"trained": t.trained, "assumed": t.assumed, "kept": float(a.moved.mean()) if len(a.moved) else None},
    )


def _lists(a: FactorAudit) -> Iterator[Finding]:
    r = a.survey
    if not r.left_open:
        return
    v = r.survival
    yield Finding(
        "rescaling",
        "cosine",
        f"{_share(r.signs.either)} of {r.signs.pairs:,} pairs of items can have a plain cosine of either sign",
        "convention",
        r.signs.either,
        "Rescaling the columns of users and items against each other keeps every score. "
        + " ".join(f"{x.mean():.1%} of the {r.k} nearest stay where {_named(name)}." for name, x in r.overlap.items())
        + f" {v.proven.mean():.1%} of neighbours stay under every rescaling, {v.refuted.mean():.1%} do not"
        + (f", {v.open.mean():.1%} undecided" if v.open.mean() >= 0.0005 else "")
        + f"; {v.whole_lists:,} of {len(v.asked):,} whole lists do.",
        theorem="SEK24.D",
        data=r.to_dict(),
    )


def _named(name: str) -> str:
    return {"items": "items are orthonormal", "balanced": "both are balanced", "users": "users are orthonormal"}[name]


def _share(x: float) -> str:
    return "All" if x == 1 else f"{x:.1%}" if round(x, 3) < 1 else "Nearly all"


def _shown(a: FactorAudit) -> Iterator[Finding]:
    h = a.head
    if a.wins is not None:
        never, twins = a.never_first, len(a.wins.shared)
        more = f"; {twins:,} more share their vector with another item" if twins else ""
        yield Finding(
            "never-first",
            "possible",
            (
                f"{len(never):,} of {h.shape[0]:,} items can be put first by no user vector at all{more}"
                if len(never)
                else f"Every item can be put first by some user vector{more}"
                if not len(a.undecided)
                else f"No item is proven unable to be first{more}"
            ),
            "warning" if len(never) else "fine",
            len(never),
            "A user vector, unlike a user of the data, may be anything: over all of them some mean of other items is "
            "not below these."
            if len(never)
            else "Over all vectors, not only the users given.",
            threshold=1,
            theorem="GRIV22.argmax",
            data={"labels": [h.labels[i] for i in never[:NAMES]], "undecided": len(a.undecided)},
        )
    hidden = a.never_shown
    yield Finding(
        "never-shown",
        "possible",
        f"{len(hidden):,} item{' reaches' if len(hidden) == 1 else 's reach'} no user's top {a.k}",
        "warning" if len(hidden) else "fine",
        len(hidden),
        f"By score, over the {len(a.tables.users):,} users given.",
        threshold=1,
        data={"labels": [h.labels[i] for i in hidden[:NAMES]], "indices": hidden[:1000].tolist()},
    )


def _norms(a: FactorAudit) -> Iterator[Finding]:
    if np.isnan(a.norm_popularity):
        return
    beside = "popularity" if a.popularity_known else "the mean score (no popularity was given)"
    yield Finding(
        "norm-popularity",
        "odd",
        f"Lengths of items have rank correlation {a.norm_popularity:+.2f} with {beside}",
        "fine",
        float(a.norm_popularity),
        "A plain cosine throws lengths away; a dot product does not.",
    )
