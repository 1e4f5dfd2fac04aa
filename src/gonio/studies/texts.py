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
    named = os.environ.get("GONIO_DATA")
    place = Path(named or "") / "cranfield" / "cran.all.1400"
    if not named or not place.is_file():
        return []
    parts = re.split(r"^\.I +\d+\s*$", place.read_text(encoding="latin-1"), flags=re.M)[1:]
    texts = [" ".join([*re.split(r"^\.W\s*$", p, flags=re.M), ""][1].split()) for p in parts]
    return [t for t in texts if t]


def fixture_text() -> tuple[list[str], str]:
    """The texts at hand, and in words which they are."""
    crans, sts = cranfield(), sts_sentences()
    named = [f"{len(x):,} {what}" for x, what in ((crans, "Cranfield abstracts"), (sts, "STS-B sentences")) if x]
    return [*crans, *sts], " and ".join(named)


def news() -> str | None:
    """A small news corpus that lies inside gensim; None where the package is not there."""
    return inside("gensim-*.whl", "gensim/test/test_data/lee_background.cor")
