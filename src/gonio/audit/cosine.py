"""What a cosine can tell here: the verdict of the link, with evidence from this very model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gonio.audit.finding import Finding, short
from gonio.audit.subject import Subject
from gonio.errors import GonioError
from gonio.gauge import dial, fragility, reachable
from gonio.gauge.reach import cosine as cosine_of
from gonio.gauge.transforms import Translation
from gonio.head import Head

VERDICTS = {
    ("softmax", None): (
        "convention",
        "A single cosine of two rows says nothing",
        "One vector added to all rows changes no probability and gives the pair any cosine from -1 to 1.",
        "NG26.T3.4",
    ),
    ("sigmoid", None): (
        "convention",
        "A single cosine of two rows says nothing unless it is +1 or -1",
        "An invertible map of rows and embeddings changes no probability and gives the pair any cosine between "
        "-1 and 1; "
        "only all cosines together fix which label sets are possible, and only without a bias.",
        "NG26.L5.3",
    ),
    ("dot", "product"): (
        "convention",
        "Item-item cosines are arbitrary",
        "The training penalty (on the product, dropout, none, or unknown) leaves every invertible map of the "
        "two factors "
        "open: scores stay, cosines move.",
        "SEK24.invariant",
    ),
    ("dot", "factors"): (
        "fact",
        "Item-item cosines are unique, and depend on the penalty's strength",
        "A penalty on each factor leaves only rotations open, which change no cosine; another strength "
        "gives other cosines.",
        "SEK24.unique",
    ),
    ("cosine", None): (
        "fact",
        "Cosines are what was trained",
        "Only rotations and the lengths of vectors are open, and a cosine sees neither. It orders neighbours; "
        "a threshold "
        "found for another model still does not transfer.",
        "",
    ),
}


def cosine(s: Subject) -> Iterator[Finding]:
    """The verdict, an equivalent model that contradicts the printed cosine, and lists that do not survive."""
    h = s.head
    trained = (h.trained or "product") if h.link == "dot" else None
    state, title, says, theorem = VERDICTS[h.link, trained]
    if h.link == "softmax" and h.shape[1] == 1:  # a line has two directions: nothing lies between them
        says = (
            "One number added to all rows changes no probability and gives the pair the cosine 1 or -1, as one likes."
        )
    yield Finding("single-cosine", "cosine", title, state, None, says, theorem=theorem, data={"link": h.link})  # type: ignore[arg-type]
    if s.pair is None:
        return
    yield from _pairs(s)
    if h.shape[0] > 2 and len(s.asked):
        yield from _lists(s)


def _pairs(s: Subject) -> Iterator[Finding]:
    h = s.head
    for a, b in (s.pairs or (s.pair,))[:10]:  # type: ignore[union-attr]
        names = f"{short(h.labels[a])} and {short(h.labels[b])}"
        value = cosine_of(h[a].astype(np.float64), h[b].astype(np.float64))
        table = reachable(h, a, b)
        reach = table.get("translation") or table.get("linear") or table["all"]
        data = {"labels": [h.labels[a], h.labels[b]], "cosine": value, "reachable": str(reach), "why": reach.why}
        target = -1.0 if -1.0 in reach else -0.999
        if value <= -0.99:
            target = 1.0 if 1.0 in reach else 0.999
        try:
            moved = dial(h, a, b, cosine=target, embeddings=s.embeddings)
        except GonioError as e:
            yield Finding(
                "pair", "cosine", f"The cosine of {names} is {value:.4f}, and stays", "fact", value, str(e), data=data
            )
            continue
        off = moved.max_probability_difference
        data |= {
            "dialled_to": moved.cosine,
            "bound": moved.bound,
            "measured": off,
            "over": moved.over,
            "by": moved.transform.name,
        }
        if Translation in type(moved.transform).__mro__:
            data["fragility"] = float(fragility(h, a, b, target))
        quantity = "probability" if h.link in ("softmax", "sigmoid") else "score"
        proven = (
            "" if moved.bound is None else f", rounding of the measuring included; {moved.bound:.1e} at most is proven"
        )
        yield Finding(
            "pair",
            "cosine",
            f"The cosine of {names} is {value:.4f} as stored, and {moved.cosine:.4f} in an equivalent model",
            "convention",
            value,
            f"A {moved.transform.name} gives it {moved.cosine:.4f}; the largest change of any {quantity} measured over "
            f"{moved.over} is {off:.1e}{proven}. Reachable: {reach}.",
            theorem="NG26.T3.4" if h.link == "softmax" else "GONIO.1.6",
            verify=f"gonio dial MODEL {h.labels[a]!r} {h.labels[b]!r} --cosine {target:g}",
            data=data,
        )


def _lists(s: Subject) -> Iterator[Finding]:
    h, k = s.head, s.k
    kept = {"random equivalent models": np.concatenate([s.survivors(s.moved(g)) for g in range(len(s.moves))])}
    if h.link in ("softmax", "dot"):
        kept = {"centring": s.survivors(_centred(h))} | kept
    share = float(kept["random equivalent models"].mean())
    parts = ", ".join(f"{k * float(v.mean()):.1f} of {k} after {name}" for name, v in kept.items())
    fixed = share > 0.999
    yield Finding(
        "neighbours-kept",
        "cosine",
        f"Nearest labels by cosine that stay nearest: {parts}",
        "fact" if fixed else "convention",
        share,
        "The lists are the same in every equivalent model."
        if fixed
        else "Their predictions are the same; a neighbour that does not survive was a matter of coordinates.",
        theorem="" if fixed else "NG26.L3.1" if h.link == "softmax" else "GONIO.1.6",
        data={
            name: {
                "mean": float(v.mean()),
                "counts": np.bincount(np.round(v * k).astype(int), minlength=k + 1).tolist(),
            }
            for name, v in kept.items()
        }
        | {"asked": len(s.asked), "k": k},
    )


def _centred(head: Head) -> Head:
    mean = np.zeros(head.shape[1])
    for _, block in head.blocks():
        mean += block.astype(np.float64).sum(axis=0)
    return Translation(-mean / head.shape[0]).apply(head)
