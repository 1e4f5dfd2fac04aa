"""Possible beside seen: what the labels did over the states of a text, and what more text would show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gonio.ask.wins import CanWin
from gonio.findings.finding import Finding, counted, short
from gonio.findings.subject import Subject

NAMES = 50
HUBS = 10


def seen(s: Subject, wins: CanWin) -> Iterator[Finding]:
    """Who can win, and who did."""
    found = s.seen
    if found is None:
        return
    h, n = s.head, s.head.shape[0]
    points = len(found.winners)
    idle = np.setdiff1d(np.concatenate([wins.wins, wins.shared]), np.flatnonzero(found.top))
    were = int((found.top > 0).sum())
    over = _over(s)
    more = "Every winner was seen more than once."
    if found.next_is_new.value > 0:
        more = (
            f"The next position shows a winner not seen before with a chance of about {found.next_is_new.words()}, and "
            f"as much text again would add about {found.twice_the_text.words('{:,.0f}')} winners (estimated)."
        )
    if found.new_in_another_document is not None and found.new_in_another_document.value > 0:
        more += (
            f" {found.new_in_another_document.words('{:.1%}')} of the positions have a winner that won in no other "
            f"document: about so often a new document shows a new one."
        )
    yield Finding(
        "seen",
        "possible",
        f"{were:,} of {n:,} labels {'was' if were == 1 else 'were'} on top somewhere {over}; {len(idle):,} can be on "
        f"top and never {'was' if len(idle) == 1 else 'were'}",
        "fact",
        were,
        f"Possible is about every input, seen is about this text. {more}",
        data={
            "positions": points,
            "can_win_never_seen": len(idle),
            "most_often": [[h.labels[i], int(found.top[i])] for i in np.argsort(-found.top, kind="stable")[:NAMES]],
            "idle": [h.labels[i] for i in idle[np.argsort(-found.largest[idle], kind="stable")][:NAMES]],
            "next_is_new": found.next_is_new.to_dict(),
            "twice_the_text": found.twice_the_text.to_dict(),
            "new_in_another_document": None
            if found.new_in_another_document is None
            else found.new_in_another_document.to_dict(),
            "labels": {
                "on_top": found.top.tolist(),
                "among_likeliest": found.among.tolist(),
                "largest_probability": [float(f"{p:.4g}") for p in found.largest],
            },
        },
    )


def prediction_hubs(s: Subject) -> Iterator[Finding]:
    """Labels that are among the likeliest of very many contexts, and whether they are the frequent ones."""
    found = s.seen
    if found is None or s.head.shape[0] < 3:
        return
    h, k, points = s.head, found.k, len(found.winners)
    order = np.argsort(-found.among, kind="stable")[:HUBS]
    first = int(order[0])
    follows = found.follows_frequency
    says = (
        f"The counts have a skewness of {found.skewness:.1f}; the mean is {k * points / h.shape[0]:.2g} of {points:,}."
    )
    if follows is not None:
        says += (
            f" Over labels that were read or predicted, how often one is among the likeliest follows its frequency in "
            f"the text with a rank correlation of {follows:.2f}: where that is high, its frequent words are "
            f"mostly the hubs."
        )
    yield Finding(
        "prediction-hubs",
        "odd",
        f"{short(h.labels[first])} is among the {k} likeliest labels at {int(found.among[first]):,} of "
        f"{counted(points, 'position')}, more than any other",
        "fact",
        int(found.among[first]),
        says,
        data={
            "k": k,
            "skewness": found.skewness,
            "follows_frequency": follows,
            "hubs": [
                [h.labels[i], int(found.among[i]), None if found.frequency is None else int(found.frequency[i])]
                for i in order
            ],
        },
    )


def _over(s: Subject) -> str:
    """The states in words."""
    assert s.embeddings is not None
    if s.states is None:
        return f"in {counted(len(s.embeddings), 'embedding')}"
    own = ", which the model wrote itself" if "written_by" in s.states.about else ""
    return f"in {counted(len(s.states), 'state')} of {counted(len(np.unique(s.states.documents)), 'document')}{own}"
