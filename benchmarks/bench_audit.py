"""The audit and its page, against the geometry they contain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import Case
from benchmarks.bench_can_win import made
from gonio import Head, audit, can_win
from gonio.similarity.nearest import nearest_by_cosine


def cases(toy: bool) -> Iterator[Case]:
    """All questions against who can win; the page against one pass over all pairs."""
    n, d = (300, 8) if toy else (6625, 64)
    head = Head(made(n, d)[0], link="softmax")
    F = np.random.default_rng(0).normal(size=(500, d))
    yield Case(
        f"audit of {n:,} x {d} against can_win alone",
        lambda: audit(head, embeddings=F)["never-wins"].value,
        lambda: len(can_win(head).never),
        lambda ours, theirs: ours == theirs,
        most=100 if toy else 15,
        repeats=1 if toy else 3,
    )
    n = 2000 if toy else 50_000
    large = Head(np.random.default_rng(1).normal(size=(n, 32)).astype(np.float32), link="softmax")
    found = audit(large, embeddings=np.random.default_rng(2).normal(size=(300, 32)))
    yield Case(
        f"the page of {n:,} labels against the ten nearest of every label",
        lambda: len(found.to_html().encode()),
        lambda: nearest_by_cosine(large.rows, 10)[0].shape,
        lambda ours, theirs: ours < 2_000_000 and theirs == (n, 10),
        most=100 if toy else 1.0,
        repeats=1 if toy else 3,
        extra=lambda: {"bytes": float(len(found.to_html().encode()))},
    )
