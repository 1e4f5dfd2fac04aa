"""The papers' verification grid: a Gram or cosine matrix alone gives back the oriented matroid of the rows"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gonio.core.tasks import run as run_tasks
from gonio.listing.braid_matrix import braid
from gonio.listing.gram_factor import rows_from_gram
from gonio.listing.oriented_matroid import aligned, minor_signs
from gonio.listing.reconstruct import cosines


@dataclass(frozen=True)
class Run:
    """One run: labels, width, seed, from which matrix, of rows or of their differences."""

    n: int
    d: int
    seed: int
    cosine: bool
    differences: bool


def runs() -> Iterator[Run]:
    """The 200 runs: n in 3, 5, 10; d = 2..min(n, 6); seeds 1..5; Gram and cosine; rows and, for d < n, differences."""
    for n in (3, 5, 10):
        for d in range(2, min(n, 6) + 1):
            for seed in range(1, 6):
                for cosine in (False, True):
                    for differences in (False, True):
                        if not (differences and d == n):
                            yield Run(n, d, seed, cosine, differences)


def rows(run: Run) -> np.ndarray:
    """The rows of a run: standard normal, as numpy's old generator draws them, or all their differences."""
    W = np.random.RandomState(run.seed).normal(size=(run.n, run.d))
    return braid(run.n) @ W if run.differences else W


def passes(run: Run, eps: float = 1e-10) -> bool:
    """Whether rows rebuilt from the Gram or cosine matrix have the signs of all maximal minors, up to one sign."""
    W = rows(run)
    G = cosines(W) if run.cosine else W @ W.T
    a, b = (aligned(minor_signs(X, eps)) for X in (W, rows_from_gram(G)))
    return a.shape == b.shape and bool((a == b).all())


def verify_grid() -> tuple[int, int]:
    """How many of the runs pass, and how many there are."""
    several = sorted(runs(), key=lambda r: (-r.n * (1 + r.differences), -r.d))  # the longest first, for the threads
    return sum(run_tasks("grid", _passes, 1e-10, several, key=("reconstruction",))), len(several)


def _passes(eps: float, run: Run) -> bool:
    return passes(run, eps)
