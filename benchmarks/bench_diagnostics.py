"""Hubness of a head of GPT-2's size against the one neighbour pass it needs; all diagnoses against the same pass."""

from __future__ import annotations

import resource

import numpy as np

import gonio
from benchmarks import Case, Cases
from gonio.diagnostics import anisotropy, hubness, undertrained
from gonio.similarity.nearest import nearest_by_cosine


def cases(toy: bool) -> Cases:
    rows, dim = (300, 16) if toy else (50_000, 768)
    W = np.random.default_rng(0).standard_normal((rows, dim)).astype(np.float32)
    head = gonio.Head(W, link="softmax")

    def count() -> np.ndarray:
        return np.bincount(nearest_by_cosine(head.rows, 10)[0].ravel(), minlength=rows)

    def memory() -> dict[str, float]:
        return {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}

    yield Case(
        f"hubness of {rows:,} x {dim}, against its neighbour pass",
        lambda: hubness(head).counts,
        count,
        lambda a, b: np.array_equal(a, b),
        most=1.2,
        repeats=3,
        extra=memory,
    )

    def variances() -> np.ndarray:
        X = W.astype(np.float64)
        return np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]

    def shares() -> np.ndarray:
        return anisotropy(head).spectrum

    yield Case(
        f"anisotropy of {rows:,} x {dim}, against its covariance and eigenvalues",
        shares,
        variances,
        lambda a, b: np.allclose(a, b / b.sum(), atol=1e-9),
        most=5.0,
        repeats=3,
    )

    def raw() -> np.ndarray:
        u = W[:20].astype(np.float64).mean(axis=0)
        return np.linalg.norm(W.astype(np.float64) - u, axis=1)

    yield Case(
        f"the indicators of undertrained rows, {rows:,} x {dim}, against one of them written plainly",
        lambda: undertrained(head, list(range(20))).indicators["l2 distance"],
        raw,
        lambda a, b: np.allclose(a, b),
        most=40.0,
        repeats=3,
    )
