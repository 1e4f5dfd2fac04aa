"""What is said first: findings worth acting on, merged by their cause, most serious first; and how sure each one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gonio.findings.finding import Finding, State

WORDS: dict[State, str] = {
    "fact": "fact",
    "convention": "convention",
    "fine": "fine",
    "warning": "act on this",
    "open": "open",
}
MARKS: dict[State, str] = {"fact": "=", "convention": "~", "fine": "ok", "warning": "!", "open": "?"}

# Most serious first: outputs that are wrong, outputs that cannot be, rows that are wrong, lists that mislead.
CAUSES: tuple[tuple[str, ...], ...] = (
    ("padded-wins",),
    ("impossible-sets",),
    ("never-shown", "never-wins", "never-first", "twins", "zero-rows"),
    ("never-on", "never-off"),
    ("constant-columns",),
    ("not-finite", "empty-rows", "constant-rows"),
    ("duplicates", "mixed-lengths"),
    ("drift-quality", "drift"),
    ("threshold", "offset"),
    ("remedies",),
    ("shape",),
    ("hubness", "anisotropy", "hubs"),
    ("norms",),
)
SHORT = {
    "never-wins": "who can win",
    "never-first": "who can be first",
    "never-shown": "who is shown",
    "padded-wins": "padding",
    "never-on": "who can be on",
    "never-off": "who can be off",
    "impossible-sets": "your label sets",
    "anisotropy": "offset",
    "hubness": "hubs",
    "norms": "lengths",
    "norm-popularity": "popularity",
    "shape": "rank",
    "duplicates": "duplicates",
    "threshold": "the threshold in use",
    "offset": "offset",
    "hubs": "hubs",
    "remedies": "remedies (none is shown to be better)",
    "drift": "drift",
    "drift-quality": "quality since before",
}
# Filters of the table of labels that show what a finding counts.
FILTERS = {
    "never-wins": "never",
    "never-first": "never first",
    "never-shown": "never shown",
    "never-on": "never on",
    "never-off": "never off",
    "padded-wins": "padding",
    "twins": "twins",
    "zero-rows": "zero",
    "hubness": "hubs",
    "undertrained": "undertrained",
    "undecided": "undecided",
    "duplicates": "copies",
    "hubs": "more than chance",
    "drift": "moved most",
    "not-finite": "not finite",
    "empty-rows": "empty",
    "constant-rows": "constant",
}
TOLD = {"link", "inputs", "padded"}
PROVEN = {
    "never-wins", "shared-top", "padded-wins", "ties", "patterns", "impossible-sets", "never-first", "never-on",
    "never-off", "single-cosine", "twins", "zero-rows", "inside-norm",
}  # fmt: skip
SURE = {
    "assumed": "Assumed",
    "told": "Read or given",
    "proven": "Proven",
    "measured": "Measured",
    "open": "Not decided",
}


@dataclass(frozen=True)
class Cause:
    """One thing to act on: the finding that says it best, and others of the same cause."""

    first: Finding
    more: tuple[Finding, ...]

    @property
    def filters(self) -> tuple[str, ...]:
        """Filters of the table of labels that show who is meant."""
        return tuple(dict.fromkeys(FILTERS[f.key] for f in (self.first, *self.more) if f.key in FILTERS))


def to_act_on(findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """The warnings, merged by cause, most serious first."""
    left = [f for f in findings if f.state == "warning"]
    out = []
    for keys in CAUSES:
        mine = sorted((f for f in left if f.key in keys), key=lambda f: keys.index(f.key))
        if mine:
            out.append(Cause(mine[0], tuple(mine[1:])))
            left = [f for f in left if f not in mine]
    return (*out, *(Cause(f, ()) for f in left))


def fine_words(findings: Sequence[Finding]) -> tuple[str, ...]:
    """What was looked at and is fine, a word or two each."""
    return tuple(dict.fromkeys(SHORT.get(f.key, f.key.replace("-", " ")) for f in findings if f.state == "fine"))


def how_sure(f: Finding) -> str:
    """assumed, told, proven, measured or open."""
    if f.data.get("assumed") or (f.key == "inputs" and f.state == "open"):
        return "assumed"
    if f.state == "open":
        return "open"
    if f.key in TOLD:
        return "told"
    if f.key == "pair":  # a bound on every probability, or a stored number; elsewhere the change is measured
        return "proven" if f.state == "fact" or f.data.get("bound") is not None else "measured"
    return "proven" if f.key in PROVEN else "measured"


def closing(findings: Sequence[Finding], page: str = "") -> str:
    """One line that counts: 2 to act on · 9 facts · 3 fine · 1 open -> audit.html"""
    count = {s: sum(f.state == s for f in findings) for s in ("fact", "convention", "fine", "open")}
    facts = count["fact"] + count["convention"]
    parts = [
        f"{len(to_act_on(findings))} to act on",
        f"{facts} fact{'' if facts == 1 else 's'}",
        f"{count['fine']} fine",
        f"{count['open']} open",
    ]
    return " · ".join(parts) + (f" -> {page}" if page else "")
