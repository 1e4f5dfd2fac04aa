"""The keys of the theorem register in words."""

from __future__ import annotations

PAPERS = {
    "NG26": "Nielsen & Grivas 2026",
    "SEK24": "Steck, Ekanadham & Kallus 2024",
    "GRIV22": "Grivas, Bogoychev & Lopez 2022",
    "GRIV24": "Grivas, Vergari & Lopez 2024",
    "COV65": "Cover 1965",
    "COV67": "Cover 1967",
    "GONIO": "a result derived for this project",
}
KINDS = {"L": "Lemma", "T": "Theorem", "D": "Definition", "P": "Proposition", "E": "Equation"}


def source(key: str) -> str:
    """A key of the register in words.

    >>> source("NG26.T3.4")
    'Theorem 3.4 of Nielsen & Grivas 2026 (NG26.T3.4)'
    """
    paper, _, number = key.partition(".")
    kind = KINDS.get(number[:1], "") if number[1:2].isdigit() or number[1:2] in "EH" else ""
    what = f"{kind} {number[1:]} of " if kind else ""
    return f"{what}{PAPERS.get(paper, paper)} ({key})"
