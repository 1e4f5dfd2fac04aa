"""The texts that the recorded studies read: STS-B's sentences from its package, Cranfield where GONIO_DATA names it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gonio.papers.real import inside, sts_b


def sts_sentences(*parts: str) -> list[str]:
    """The sentences of STS-B, each once, in the order of the file; empty where the package is not there."""
    out: dict[str, None] = {}
    for part in parts or ("train", "dev", "test"):
        found = sts_b(part)
        if found is not None:
            out |= dict.fromkeys([*found[0], *found[1]])
    return list(out)


def cranfield() -> list[str]:
    """The abstracts of Cranfield from the folder that the environment variable GONIO_DATA names; empty without it."""
    found = cranfield_questions()
    return [] if found is None else [t for t in found[0] if t]


def cranfield_sentences(least: int = 5, most: int = 50) -> list[str]:
    """The sentences of Cranfield's abstracts of so many words, each once; empty without GONIO_DATA."""
    found = (x.strip(" .") for t in cranfield() for x in t.split(" . "))
    return list(dict.fromkeys(x for x in found if least <= len(x.split()) <= most))


GAIN = {1: 4, 2: 3, 3: 2, 4: 1, -1: 1}  # Cranfield's grades (1 is a complete answer) as gains


def cranfield_questions() -> tuple[list[str], list[str], dict[str, dict[str, int]]] | None:
    """All abstracts (two are empty), the questions, and gains by question and abstract; None without GONIO_DATA."""
    place = Path(os.environ.get("GONIO_DATA", "")) / "cranfield"
    if "GONIO_DATA" not in os.environ or not place.is_dir():
        return None
    gains: dict[str, dict[str, int]] = {}
    for line in (place / "cranqrel").read_text().splitlines():
        if line.strip():
            q, d, grade = line.split()[:3]
            gains.setdefault(q, {})[d] = GAIN.get(int(grade), 0)
    return _records(place / "cran.all.1400"), _records(place / "cran.qry"), gains


def _records(path: Path) -> list[str]:
    parts = re.split(r"^\.I +\d+\s*$", path.read_text(encoding="latin-1"), flags=re.M)[1:]
    return [" ".join([*re.split(r"^\.W\s*$", p, flags=re.M), ""][1].split()) for p in parts]


def fixture_text() -> tuple[list[str], str]:
    """The texts at hand, and in words which they are."""
    crans, sts = cranfield(), sts_sentences()
    named = [f"{len(x):,} {what}" for x, what in ((crans, "Cranfield abstracts"), (sts, "STS-B sentences")) if x]
    return [*crans, *sts], " and ".join(named)


def news() -> str | None:
    """A small news corpus that lies inside gensim; None where the package is not there."""
    return inside("gensim-*.whl", "gensim/test/test_data/lee_background.cor")
