"""Concentration: how alike all distances are, beside random vectors of the same shape.

    relative variance = Var(d) / mean(d)^2   of the distances of two different rows

Where it is small, nearest and farthest hardly differ. Gaussian vectors of width d have about 1 / (2 d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.histogram import histogram
from gonio.core.parallel import spans
from gonio.diagnostics.result import Result, axes

PAIRS = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class Concentration(Result):
    """Relative variances of Euclidean distances and spread of cosines, and the same of Gaussian rows.

    like_dimension   the width at which Gaussian rows have the measured relative variance, 1 / (2 relative variance)
    """

    relative_variance: float
    random_relative_variance: float
    cosine_spread: float
    random_cosine_spread: float
    like_dimension: float
    distances: np.ndarray
    random_distances: np.ndarray
    shape: tuple[int, int]

    def lines(self) -> tuple[str, str]:
        n, d = self.shape
        return (
            f"{n:,} x {d}: Var/mean^2 of distances {self.relative_variance:.3g}, "
            f"of random rows {self.random_relative_variance:.3g}",
            f"distances concentrate as in {self.like_dimension:.0f} even dimensions; cosines spread by "
            f"{self.cosine_spread:.3f}, of random rows {self.random_cosine_spread:.3f}",
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        return (
            f"Distances between rows vary by {100 * np.sqrt(self.relative_variance):.1f}% of their mean; between "
            f"random rows of the same shape by {100 * np.sqrt(self.random_relative_variance):.1f}%. They "
            f"concentrate as those of random vectors in {self.like_dimension:.0f} dimensions do, where the "
            f"rows have {self.shape[1]}."
        )

    def plot(self, ax: Any = None) -> Any:
        """The distances over their mean, beside those of random rows."""
        ax = axes(ax)
        for values, name, colour in (
            (self.random_distances, "random rows", "0.6"),
            (self.distances, "this head", "#1f6f8b"),
        ):
            mean = values.mean()
            counts, edges = histogram(values / mean if mean > 0 else values, 60)
            density = counts / (counts.sum() * np.diff(edges))
            ax.stairs(density, edges, fill=True, alpha=0.6, label=name, color=colour)
        ax.set_xlabel("distance of two rows over the mean distance")
        ax.set_ylabel("density")
        ax.legend(frameon=False)
        return ax


def concentration(head: Head, *, pairs: int = PAIRS, seed: int = 0) -> Concentration:
    """How alike the distances between rows are, from `pairs` random pairs, beside Gaussian rows of the same shape."""
    n, d = head.shape
    if n < 2:
        raise GonioError("concentration: the head has one label; distances need at least two.")
    if isinstance(pairs, bool) or not isinstance(pairs, (int, np.integer)) or pairs < 2:
        raise GonioError(f"concentration: pairs is {pairs}; a whole number from 2 on is needed.")
    rng = np.random.default_rng(seed)
    i = rng.integers(0, n, pairs)
    j = (i + rng.integers(1, n, pairs)) % n
    far, cosines, random_far, random_cosines = (np.empty(pairs) for _ in range(4))
    for s, e in spans(pairs, 2048):
        a, b = (head.rows[w[s:e]].astype(np.float64) for w in (i, j))
        far[s:e], cosines[s:e] = _look(a, b)
        a, b = rng.standard_normal((2, e - s, d))
        random_far[s:e], random_cosines[s:e] = _look(a, b)
    own, null = relative_variance(far), relative_variance(random_far)
    return Concentration(
        own,
        null,
        float(np.nanstd(cosines)) if np.isfinite(cosines).any() else float("nan"),
        float(np.nanstd(random_cosines)),
        1 / (2 * own) if own > 0 else float("inf") if own == 0 else float("nan"),
        far,
        random_far,
        (n, d),
    )


def relative_variance(x: np.ndarray) -> float:
    """Var / mean^2; NaN where all are 0."""
    mean = float(x.mean())
    return float(x.var()) / mean**2 if mean > 0 else float("nan")


def _look(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(invalid="ignore", divide="ignore"):
        c = np.einsum("ij,ij->i", a, b) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return np.linalg.norm(a - b, axis=1), c
