"""Are two labels alike? One question, one answer: what is determined, the number, and what the cosine is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.audit.cosine import VERDICTS
from gonio.audit.instead import best
from gonio.audit.subject import Subject
from gonio.errors import GonioError
from gonio.gauge import fragility, reachable
from gonio.gauge.reach import cosine as cosine_of
from gonio.head import Head, Label


@dataclass(frozen=True, eq=False, repr=False)
class Alike:
    """What can be said about two labels.

    verdict     whether the cosine of their rows says anything, in words
    cosine      as stored
    reachable   (low, high): the cosines of the pair in equivalent models
    fragility   the least translation that makes it 0, over the mean row length; None where no translation is open
    instead     (name, value, interval or None): the similarity that every equivalent model has
    """

    head: Head
    labels: tuple[int, int]
    verdict: str
    why: str
    cosine: float
    reachable: tuple[float, float]
    fragility: float | None
    instead: tuple[str, float, tuple[float, float] | None]
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        name, value, interval = self.instead
        return {
            "labels": [self.head.labels[i] for i in self.labels],
            "verdict": self.verdict,
            "why": self.why,
            "cosine": self.cosine,
            "reachable": list(self.reachable),
            "fragility": self.fragility,
            "instead": {"measure": name, "value": value, "interval": None if interval is None else list(interval)},
            "note": self.note,
        }

    def __repr__(self) -> str:
        a, b = (self.head.labels[i] for i in self.labels)
        name, value, interval = self.instead
        span = "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
        return f"Alike({a!r}, {b!r}): {self.verdict}\n  cosine {self.cosine:.4f}; {name} {value:.4f}{span}"


def alike(head: Head, a: Label, b: Label, *, embeddings: Any = None) -> Alike:
    """What the similarity of two labels is, as far as this model determines it.

    With embeddings (states that reach the head) `instead` is a correlation over them, with a bootstrap interval.

    >>> head = Head([[1, 0.5], [0.5, 1], [-1, 0.4], [-0.8, -0.8], [0.9, -1.2]], link="softmax")
    >>> alike(head, 0, 1).reachable
    (-1.0, 1.0)
    """
    s = Subject.of(head, embeddings, pairs=[(a, b)])
    assert s.pair is not None
    i, j = s.pair
    trained = (head.trained or "product") if head.link == "dot" else None
    _, verdict, why, _ = VERDICTS[head.link, trained]
    table = reachable(head, i, j)
    reach = table["all"]
    try:
        m = best(s)
        assert m is not None
        value, note = m(i, j), m.caveat
        interval = None
        if hasattr(m, "intervals") and s.embeddings is not None and len(s.embeddings) > 2:
            found = m.intervals([i], [j])[0]  # type: ignore[attr-defined]
            interval = (float(found.low), float(found.high))
        instead = (m.name, float(value), interval)
    except GonioError as e:
        instead, note = ("none", float("nan"), None), str(e)
    translates = "translation" in table
    return Alike(
        head,
        (i, j),
        verdict,
        why,
        cosine_of(head[i].astype(np.float64), head[j].astype(np.float64)),
        (float(reach.low), float(reach.high)),
        float(fragility(head, i, j)) if translates else None,
        instead,
        note,
    )
