"""What a cosine can tell here: the verdict of the link, with evidence from this very model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.printed_bounds import at_most
from gonio.findings.finding import Finding, plainly, short, typed_label
from gonio.findings.subject import Subject
from gonio.findings.verdict import READINGS, verdict_of
from gonio.gauge import dial, fragility, gauge_of, reachable
from gonio.gauge.dialling import Dialled
from gonio.gauge.group import SCORES, STAYS
from gonio.gauge.reach import cosine as cosine_of
from gonio.gauge.transforms import Linear, Rotation, RowScaling, Translation

FIXING = {Rotation, RowScaling}  # changes that leave every cosine as it is


def cosine(s: Subject) -> Iterator[Finding]:
    """The verdict, an equivalent model that contradicts the printed cosine, and lists that do not survive."""
    h = s.head
    said = verdict_of(h)
    yield Finding(
        "single-cosine", "cosine", said.title, said.state, None, said.why, theorem=said.theorem, data={"link": h.link}
    )
    if h.link == "unknown":
        yield from _readings(s)
        return
    if s.pair is None:
        return
    yield from _pairs(s)
    if h.shape[0] > 2 and len(s.asked) and gauge_of(h).kinds:
        yield from _lists(s)


def _readings(s: Subject) -> Iterator[Finding]:
    for link, means in READINGS.items():
        yield Finding(
            "reading",
            "cosine",
            f"If the rows are {means}",
            "open",
            link,
            f"Then give --link {link}.",
            verify=f"gonio audit {s.head.typed} --link {link}",
        )


def _pairs(s: Subject) -> Iterator[Finding]:
    h = s.head
    for a, b in (s.pairs or (s.pair,))[:10]:  # type: ignore[union-attr]
        names = f"{short(h.labels[a])} and {short(h.labels[b])}"
        value = cosine_of(h[a].astype(np.float64), h[b].astype(np.float64))
        reach = reachable(h, a, b)["all"]
        data = {"labels": [h.labels[a], h.labels[b]], "cosine": value, "reachable": str(reach), "why": reach.why}
        target = _target(value, reach)
        moved = None
        if target is not None:
            try:
                moved = dial(h, a, b, cosine=target, embeddings=s.some_embeddings if h.link in SCORES else None)
            except GonioError as e:  # so near each other that rounding would write the cosine
                data["not dialled"] = str(e)
        if moved is None:
            stays = "; it stays in every equivalent model" if reach.low == reach.high and h.link != "input" else ""
            yield Finding(
                "pair",
                "cosine",
                f"The cosine of {names} is {plainly(value)}{stays}",
                "fact" if stays else "open",
                value,
                f"{reach.why[0].upper()}{reach.why[1:]}.",
                data=data,
            )
            continue
        yield _moved(s, names, value, target, moved, data | {"reachable": str(reach)})  # type: ignore[arg-type]


def _target(value: float, reach) -> float | None:
    """A cosine far from the stored one that an equivalent head has; None where there is none."""
    far = (-1.0, -0.999) if not value <= -0.99 else (1.0, 0.999)
    return next((c for c in far if c in reach), None)


def _over(s: Subject, moved: Dialled) -> str:
    """The inputs meant; of many embeddings a few were looked at."""
    if s.embeddings is None or s.some_embeddings is s.embeddings or s.head.link not in SCORES:
        return moved.over
    return f"{len(moved.points):,} of the {len(s.embeddings):,} given {s.inputs_word}s"


def _moved(s: Subject, names: str, value: float, target: float, moved: Dialled, data: dict) -> Finding:
    h, over = s.head, _over(s, moved)
    off = moved.max_probability_difference
    data |= {
        "dialled_to": moved.cosine,
        "bound": moved.bound,
        "measured": off,
        "over": over,
        "by": moved.transform.name,
    }
    if isinstance(moved.transform, Translation):
        data["fragility"] = float(fragility(h, *moved.labels, target))
    by = _by(h, moved)
    says = f"{by} gives it {moved.cosine:.4f}; "
    if h.link in SCORES:
        quantity = "probability" if h.link in ("softmax", "sigmoid") else "score"
        says += f"the largest change of any {quantity} measured over {over} is {off:.1e}"
        if moved.bound is not None:
            says += f", rounding of the measuring included; {at_most(moved.bound, 2)} at most is proven"
    else:
        says += moved.promise
    return Finding(
        "pair",
        "cosine",
        f"The cosine of {names} is {plainly(value)} as stored, and {moved.cosine:.4f} in an equivalent model",
        "convention",
        value,
        f"{says}. Reachable: {data['reachable']}.",
        theorem="NG26.T3.4" if isinstance(moved.transform, Translation) else "GONIO.1.6",
        verify=f"gonio dial {h.typed} {' '.join(typed_label(h, i) for i in moved.labels)} --cosine {target:g}",
        data=data,
    )


def _by(h: Head, moved: Dialled) -> str:
    once = ", once untied," if h.source and h.source.tied else ""
    if isinstance(moved.transform, Translation):
        return f"One vector added to all rows{once}"
    if isinstance(moved.transform, Linear):
        return f"An invertible map of rows and {'embeddings' if h.link in SCORES else 'the other table'}{once}"
    return f"Moving the two rows along 1/gain, then all rows together,{once or ''}".rstrip(",")


def _lists(s: Subject) -> Iterator[Finding]:
    h, k = s.head, s.k
    stays = STAYS[h.link]
    if set(gauge_of(h).kinds) <= FIXING:
        yield Finding(
            "neighbours-kept",
            "cosine",
            f"Nearest {s.word}s by cosine are the same in every equivalent model",
            "fact",
            1.0,
            "What is open (rotations" + (", lengths" if h.link == "cosine" else "") + ") moves no cosine.",
        )
        return
    kept = {"random equivalent models": np.concatenate([s.survivors(s.moved(g)) for g in range(len(s.moves))])}
    if Translation in gauge_of(h).kinds:
        kept = {"centring": s.survivors(_centred(h))} | kept
    share = float(kept["random equivalent models"].mean())
    parts = ", ".join(f"{k * float(v.mean()):.1f} of {k} after {name}" for name, v in kept.items())
    yield Finding(
        "neighbours-kept",
        "cosine",
        f"Nearest {s.word}s by cosine that stay nearest: {parts}",
        "convention",
        share,
        f"The {stays} are the same there; a neighbour that does not survive was a matter of coordinates. Measured on "
        f"{len(s.asked):,} {s.word}s.",
        theorem="NG26.L3.1" if Translation in gauge_of(h).kinds else "GONIO.1.6",
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
