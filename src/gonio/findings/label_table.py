"""Every label of a head with what is known of it: one row a label, for the page's table, for JSON and for CSV."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gonio.ask.wins import CanWin
from gonio.core.status import Status
from gonio.findings.finding import plainly
from gonio.findings.subject import Subject
from gonio.gauge import reachable
from gonio.similarity.measures import Measure, measure

STORED = 50_000  # neighbours that are kept in all, at most five a label
MEANT = 60_000  # labels up to which everybody's nearest by the invariant measure is looked for
MARGINS = 20_000  # labels up to which margins are proven one by one
PAIRS = 1000  # pairs of the user that are answered in full


@dataclass(frozen=True)
class LabelTable:
    """One row a label.

    columns   by name, one value a label; None where nothing is known
    flags     labels that stand out, by what they stand out for: rows in order
    near      the nearest labels by cosine of each: {"k", "index", "cosine", "value" (by the measure, or None)}
    pairs     pairs that are answered in full: the user's, or the one the audit took
    measure   the similarity that every equivalent model has, `by` which values were taken; empty where there is none
    """

    columns: dict[str, list[Any]]
    flags: dict[str, list[int]]
    near: dict[str, Any] = field(default_factory=dict)
    pairs: tuple[dict[str, Any], ...] = ()
    measure: str = ""
    by: Measure | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.columns["label"])

    def to_dict(self) -> dict[str, Any]:
        """In plain values; the neighbours are in the columns `nearest` and `nearest_by_measure`."""
        return {"columns": self.columns, "flags": self.flags, "pairs": list(self.pairs), "measure": self.measure}


def label_table(s: Subject) -> LabelTable:
    """The table, from what the questions of the audit found on their way."""
    h = s.head
    columns: dict[str, list[Any]] = {"label": list(h.labels)}
    flags: dict[str, list[int]] = {}
    _possible(s, columns, flags)
    columns["length"] = _digits(h.norms)
    near: dict[str, Any] = {}
    m = s.kept.get("measure")
    if "hubness" in s.kept:
        columns["in_lists"] = s.kept["hubness"].counts.tolist()
        flags["hubs"] = sorted(int(i) for i, _ in s.kept["hubness"].hubs)
    if s.seen is not None and "seen" in vars(s):
        columns["on_top"] = s.seen.top.tolist()
    if "shown" in s.kept:
        columns["shown_to_users"] = s.kept["shown"].tolist()
        flags["never shown"] = np.flatnonzero(s.kept["shown"] == 0).tolist()
    if "lists" in vars(s):
        near = _nearest(s, m, columns)
    flags["twins"] = sorted(int(i) for g in h.twins for i in g)
    flags["zero"] = h.zero_rows.tolist()
    flags["padding"] = h.padded.tolist()
    if "undertrained" in s.kept:
        flags["undertrained"] = sorted(int(i) for i in s.kept["undertrained"])
    pairs = _pairs(s, m) if s.pair is not None and h.link != "unknown" else ()
    return LabelTable(columns, {k: v for k, v in flags.items() if v}, near, pairs, m.name if m is not None else "", m)


def _possible(s: Subject, columns: dict[str, list[Any]], flags: dict[str, list[int]]) -> None:
    """Who can be on top, or on and off."""
    n = s.head.shape[0]
    if "wins" in s.kept:
        wins = s.kept["wins"]
        columns["can_win"], columns["margin"] = _verdicts(wins, n)
        flags["never"], flags["undecided"] = wins.never.tolist(), wins.undecided.tolist()
    if "first" in s.kept:  # a factor model: over every user vector, not only the users given
        first = s.kept["first"]
        columns["can_be_first"] = _verdicts(first, n)[0]
        flags["never first"], flags["undecided first"] = first.never.tolist(), first.undecided.tolist()
    if "on" in s.kept:
        on = s.kept["on"]
        can = np.full(n, "on and off", object)
        can[on.never_on], can[on.never_off] = "never on", "never off"
        columns["can_be"] = can.tolist()
        flags["never on"], flags["never off"] = on.never_on.tolist(), on.never_off.tolist()


def _verdicts(wins: CanWin, n: int) -> tuple[list[Any], list[Any]]:
    """Whether each label can be on top, in a word, and by how much at least where it can."""
    words: list[Any] = ["not asked"] * n
    margin: list[Any] = [None] * n
    proven = wins.margin if n <= MARGINS else wins.least_margin
    for i, status, by in zip(wins.labels.tolist(), wins.status, proven.tolist(), strict=True):
        words[i] = "with equals" if status is Status.SHARED else status.answer
        if status in (Status.WINS, Status.SHARED) and np.isfinite(by):
            margin[i] = float(f"{by:.3g}")
    return words, margin


def _nearest(s: Subject, m: Measure | None, columns: dict[str, list[Any]]) -> dict[str, Any]:
    """The nearest by cosine of everybody; by the measure, of those that were asked where labels are many."""
    h, n = s.head, s.head.shape[0]
    k = max(1, min(5, STORED // n, s.lists[0].shape[1]))
    near = s.lists[0][:, :k]
    live = h.norms > 0
    a, b = np.repeat(np.arange(n), k), near.reshape(-1)
    cosine = measure("cosine")(h).pairs(a, b)
    cosine[~(live[a] & live[b])] = np.nan
    named = np.where(live[:, None] & live[near], near, -1)
    columns["nearest"] = [None if i < 0 else int(i) for i in named[:, 0]]
    columns["cosine"] = _digits(cosine[::k])
    value = None
    if m is not None and m.name != "cosine":
        value = m.pairs(a, b)
        everybody = n <= MEANT
        asked = np.arange(n) if everybody else s.asked
        best: list[Any] = [None] * n
        known: list[Any] = [None] * n
        if len(asked) and n > 2:
            found = m.nearest(1, None if everybody else asked)  # all pairs at once take half the products
            for i, j, v in zip(asked.tolist(), found.near[:, 0].tolist(), found.values[:, 0].tolist(), strict=True):
                if np.isfinite(v):
                    best[i], known[i] = j, _rounded(v)
        columns["nearest_by_measure"], columns["value"] = best, known
    return {
        "k": k,
        "index": [None if i < 0 else int(i) for i in named.reshape(-1)],
        "cosine": _digits(cosine),
        "value": None if value is None else _digits(value),
    }


def _pairs(s: Subject, m: Measure | None) -> tuple[dict[str, Any], ...]:
    """The user's pairs, or the one that the audit took: cosine, what equivalent models reach, what to use instead."""
    h = s.head
    asked = (s.pairs or (s.pair,))[:PAIRS]
    a, b = (np.array([p[k] for p in asked]) for k in (0, 1))  # type: ignore[index]
    cosine = measure("cosine")(h).pairs(a, b)
    cosine[(h.norms[a] == 0) | (h.norms[b] == 0)] = np.nan
    value = None if m is None or m.name == "cosine" else m.pairs(a, b)
    spans: list[Any] = [None] * len(asked)
    if value is not None and hasattr(m, "intervals") and s.embeddings is not None and len(s.embeddings) > 2:
        spans = list(m.intervals(a, b))  # type: ignore[union-attr]
    out = []
    for k in range(len(asked)):
        reach = reachable(h, int(a[k]), int(b[k]))["all"]
        span = spans[k]
        ends = None if span is None or not np.isfinite(span.low + span.high) else [span.low, span.high]
        out.append(
            {
                "rows": [int(a[k]), int(b[k])],
                "cosine": _rounded(cosine[k], 7),
                "reachable": [_rounded(reach.low), _rounded(reach.high)],
                "in_words": str(reach),
                "instead": None if value is None else _rounded(value[k], 7),
                "interval": None if ends is None else [_rounded(x) for x in ends],
            }
        )
    return tuple(out)


def _digits(x: np.ndarray) -> list[Any]:
    return [_rounded(v) for v in x.tolist()]


def _rounded(v: float, digits: int = 5) -> float | None:
    """Five digits are more than a table shows; what is undefined is None."""
    if not np.isfinite(v):
        return None
    if abs(abs(v) - 1) < 1e-12:
        return float(np.sign(v))  # rounding of a cosine cannot tell it from 1
    short = float(f"{v:.{digits}g}")
    return short if abs(short) != 1 or abs(v) == 1 else float(plainly(v))  # a cosine below 1 stays below it
