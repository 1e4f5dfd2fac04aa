"""Cranfield 1400, from the folder that the environment variable GONIO_DATA names; skipped where there is none."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

import numpy as np
import pytest

from tests.papers.encoder import minilm

GAIN = {
    1: 4,
    2: 3,
    3: 2,
    4: 1,
    -1: 1,
}  # 1 is a complete answer, 4 of minimum interest; -1 stands for 1 of least interest


def folder() -> Path:
    place = Path(os.environ.get("GONIO_DATA", "")) / "cranfield"
    if "GONIO_DATA" not in os.environ or not place.is_dir():
        pytest.skip("GONIO_DATA names no folder that holds cranfield")
    return place


def records(name: str) -> list[str]:
    """The texts of a file: what stands behind .W of each record."""
    raw = (folder() / name).read_text(encoding="latin-1")
    parts = re.split(r"^\.I +\d+\s*$", raw, flags=re.M)[1:]
    return [" ".join([*re.split(r"^\.W\s*$", p, flags=re.M), ""][1].split()) for p in parts]


def qrels() -> dict[str, dict[str, int]]:
    """Grades by question and document, both counted from 1, as gains."""
    out: dict[str, dict[str, int]] = {}
    for line in (folder() / "cranqrel").read_text().splitlines():
        if not line.strip():
            continue
        q, d, grade = line.split()[:3]
        gain = GAIN.get(int(grade), 0)
        if gain:
            out.setdefault(q, {})[d] = gain
    return out


@functools.cache
def embeddings() -> tuple[np.ndarray, np.ndarray]:
    """Documents and questions: the mean of MiniLM's last states, not normalised."""
    return minilm()(records("cran.all.1400")), minilm()(records("cran.qry"))


def numbered(count: int) -> list[str]:
    return [str(i + 1) for i in range(count)]
