"""Dialling a head of GPT-2's size, and asking whether two such heads are one model."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np

import gonio
from benchmarks import Case, Cases
from benchmarks.bench_load import write_model
from gonio.gauge.export import export


def cases(toy: bool) -> Cases:
    rows, dim = (300, 16) if toy else (50_257, 768)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        write_model(folder / "in" / "model.safetensors", rows, dim)
        path = folder / "in" / "model.safetensors"
        head = gonio.load(path)

        def dial_and_write() -> int:
            export(gonio.dial(head, 3, 5, cosine=-1), folder / "out", overwrite=True)
            return (folder / "out" / "model.safetensors").stat().st_size

        def copy() -> int:
            shutil.copyfile(path, folder / "copy")
            with (folder / "copy").open("rb+") as f:
                f.flush()
            return (folder / "copy").stat().st_size

        yield Case(
            f"dial a {rows:,} x {dim} head and write it, against copying the file",
            dial_and_write,
            copy,
            lambda a, b: abs(a - b) < 200,
            most=2.0,
        )
        W = np.random.default_rng(0).standard_normal((rows, dim)).astype(np.float32)
        a = gonio.Head(W, link="softmax")
        change = gonio.gauge_of(a).random(a, np.random.default_rng(1))
        b = a.replace(W=change.apply(a).W.astype(np.float32))
        yield Case(
            f"same_model of two {rows:,} x {dim} heads, against one thin SVD of W",
            lambda: gonio.same_model(a, b).same,
            lambda: bool(np.linalg.svd(W.astype(np.float64), compute_uv=True, full_matrices=False)[1].min() > 0),
            lambda x, y: x is True and y is True,
            most=3.0,
            repeats=3,
        )
