"""Are two labels alike? One question, one answer: what is determined, the number, and what the cosine is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head, Label
from gonio.core.renderers import rendered
from gonio.core.states import LEAST_DOCUMENTS
from gonio.findings.measures_instead import best
from gonio.findings.subject import Subject
from gonio.findings.verdict import verdict_of
from gonio.gauge import Reach, fragility, reachable
from gonio.gauge.reach import cosine as cosine_of
from gonio.similarity.bootstrap import effective_size


@dataclass(frozen=True, eq=False, repr=False)
class Alike:
    """What can be said about two labels.

    verdict     whether the cosine of their rows says anything, in words
    cosine      as stored
    reachable   (low, high): the cosines of the pair in equivalent models; `reach` says which ends are reached
    fragility   the least translation that makes it 0, over the mean row length; None where no translation is open
    instead     (name, value, interval or None): the similarity that every equivalent model has; ("none", NaN, None)
                where there is none
    note        what it cannot tell, or why there is none
    over        the inputs that `instead` is about, in words; empty where it is about the rows alone
    """

    head: Head
    labels: tuple[int, int]
    verdict: str
    why: str
    cosine: float
    reach: Reach
    fragility: float | None
    instead: tuple[str, float, tuple[float, float] | None]
    note: str = ""
    over: str = ""

    @property
    def reachable(self) -> tuple[float, float]:
        return float(self.reach.low), float(self.reach.high)

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON; what is undefined is None."""
        name, value, interval = self.instead
        source = self.head.source
        return {
            "labels": [self.head.labels[i] for i in self.labels],
            "link": self.head.link,
            "link_assumed": bool(source and "link" in source.assumed),
            "verdict": self.verdict,
            "why": self.why,
            "cosine": _plain(self.cosine),
            "reachable": [_plain(v) for v in self.reachable],
            "reachable_in_words": str(self.reach),
            "fragility": None if self.fragility is None else _plain(self.fragility),
            "instead": {
                "measure": name,
                "value": _plain(value),
                "interval": None if interval is None else list(interval),
            },
            "note": self.note,
            "over": self.over,
        }

    def _repr_html_(self) -> str:
        return rendered(self, "card")

    def __repr__(self) -> str:
        a, b = (self.head.labels[i] for i in self.labels)
        name, value, interval = self.instead
        span = "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
        number = f"{name} {value:.4f}{span}" if value == value else "nothing else is determined"
        return f"Alike({a!r}, {b!r}): {self.verdict}\n  cosine {self.cosine:.4f}; {number}"


def _plain(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None


def alike(head: Head, a: Label, b: Label, *, embeddings: Any = None) -> Alike:
    """What the similarity of two labels is, as far as this model determines it.

    With embeddings (states that reach the head) `instead` is a correlation over them, with a bootstrap interval.

    >>> head = Head([[1, 0.5], [0.5, 1], [-1, 0.4], [-0.8, -0.8], [0.9, -1.2]], link="softmax")
    >>> alike(head, 0, 1).reachable
    (-1.0, 1.0)
    """
    head.must_be_known("alike")
    s = Subject.of(head, embeddings, pairs=[(a, b)])
    assert s.pair is not None
    i, j = s.pair
    said = verdict_of(head)
    table = reachable(head, i, j)
    instead, note = _instead(s, i, j)
    return Alike(
        head,
        (i, j),
        said.title,
        said.why,
        cosine_of(head[i].astype(np.float64), head[j].astype(np.float64)),
        table["all"],
        float(fragility(head, i, j)) if "translation" in table else None,
        instead,
        note,
        "" if s.embeddings is None else _over(s, i, j),
    )


def _over(s: Subject, i: int, j: int) -> str:
    """The inputs in words, and how many independent ones would tell as much."""
    assert s.embeddings is not None
    if s.states is None:
        return f"over {len(s.embeddings):,} embeddings"
    said = f"over {len(s.states):,} states of {len(np.unique(s.states.documents)):,} documents"
    try:
        m = best(s)
    except GonioError:
        return said
    if m is not None and hasattr(m, "logits"):
        worth = effective_size(*m.logits([i, j]).T, s.states.documents)  # type: ignore[attr-defined]
        said += f", which tell as much as about {worth:,.0f} independent ones" if worth == worth else ""
        said += "" if worth == worth else f"; below {LEAST_DOCUMENTS} documents there is no interval"
    return said


def _instead(s: Subject, i: int, j: int) -> tuple[tuple[str, float, tuple[float, float] | None], str]:
    """The measure that every equivalent model agrees on, its value and interval; and what it cannot tell."""
    try:
        m = best(s)
        assert m is not None
        value = float(m(i, j))
        if not np.isfinite(value):
            return ("none", float("nan"), None), m.caveat or f"the {m.name} of these two is undefined"
        interval = None
        if hasattr(m, "intervals") and s.embeddings is not None and len(s.embeddings) > 2:
            found = m.intervals([i], [j])[0]  # type: ignore[attr-defined]
            interval = (float(found.low), float(found.high)) if np.isfinite(found.low + found.high) else None
        return (m.name, value, interval), m.caveat
    except GonioError as e:
        return ("none", float("nan"), None), str(e)
