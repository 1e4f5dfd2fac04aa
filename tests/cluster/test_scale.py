"""The cost model of docs/scale.md counts what the plans of tasks are, and its tables are those of the runs kept."""

from __future__ import annotations

import json
from pathlib import Path

import joblib
import numpy as np
import pytest
from benchmarks import scale

import gonio
from gonio.core.head import Head
from gonio.similarity.nearest import nearest_by_cosine
from gonio.similarity.pair_tiles import tile_spans

DOCS = Path(__file__).parents[2] / "docs"
RUNS = [scale.Run(**r) for r in json.loads((DOCS / "scale.json").read_text())]


def test_the_tables_of_the_page_are_those_of_the_runs():
    text = (DOCS / "scale.md").read_text()
    assert scale.with_tables(text, RUNS) == text


@pytest.mark.parametrize("kind", list(scale.SIZES))
def test_the_model_is_within_half_of_what_was_measured(kind):
    """Of the three largest of five runs; the smallest are over before much is counted."""
    runs = [r for r in RUNS if r.kind == kind]
    assert [(r.n, r.d) for r in runs] == list(scale.SIZES[kind])
    workers, client = scale.fitted(runs)
    for r in runs[2:]:
        c = scale.COSTS[kind](r.n, r.d)
        assert workers @ (c.flops / r.flops_a_second, c.scores) == pytest.approx(r.workers_s, rel=0.5)
        assert client @ c.client == pytest.approx(r.client_s, rel=0.5)
        assert c.returned == pytest.approx(r.returned, rel=0.25)


@pytest.mark.parametrize(("n", "d"), [(100, 8), (9000, 40), (300_000, 64)])
def test_tasks_are_counted_as_they_are_planned(n, d):
    sides = len(tile_spans(n))
    assert scale.nearest(n, d).tasks == sides * (sides + 1) // 2
    table = gonio.embeddings.table_of(np.broadcast_to(np.float16(1), (n, d)))
    assert scale.check(n, d).tasks == len(table.pieces())


def test_a_run_counts_the_bytes_of_tasks_and_results():
    """What passes the seam is what the model says comes back."""
    W = np.random.default_rng(0).standard_normal((5000, 16)).astype(np.float32)
    with joblib.parallel_config(backend="loky", n_jobs=2), scale.counted_bytes() as wire:
        nearest_by_cosine(W, scale.LISTED)
    assert wire[1] == pytest.approx(scale.nearest(5000, 16).returned, rel=0.05)
    assert 0 < wire[0] < 3000
    with joblib.parallel_config(backend="loky", n_jobs=2), scale.counted_bytes() as wire:
        gonio.can_win(Head(np.repeat(W, 2, axis=1), link="softmax"))
    assert wire[1] >= scale.can_win(5000, 32).returned
