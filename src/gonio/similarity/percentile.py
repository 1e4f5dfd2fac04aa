"""What a score means for this model: its place among the model's own pairs.

A cosine of 0.8 is high where random pairs have 0.1 and nothing where they have 0.75, so a threshold carries from one
model to another only by its percentile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.similarity.measures import Measure, measure

if TYPE_CHECKING:
    from jaxtyping import Float

PAIRS = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class Null:
    """The values of random pairs of different labels under a measure, sorted; `whole` where they are all pairs."""

    values: Float[np.ndarray, " pairs"]
    measure: str
    whole: bool

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    def share_below(self, score: float) -> tuple[int, int]:
        """How many pairs have less, counting half of those equal, and how many there are."""
        low, high = (np.searchsorted(self.values, score, side=s) for s in ("left", "right"))
        return int(low + (high - low) // 2), len(self.values)

    def __repr__(self) -> str:
        q = ", ".join(f"{p}% {np.quantile(self.values, p / 100):.3f}" for p in (5, 50, 95, 99))
        return f"Null({len(self.values):,} {'(all) ' if self.whole else ''}pairs, {self.measure})\n  {q}"


@dataclass(frozen=True)
class Percentile:
    """Where a score lies among the model's own pairs, from 0 to 100, with an interval for the sampling of pairs."""

    score: float
    percentile: float
    low: float
    high: float
    pairs: int
    measure: str
    level: float = 0.95

    def to_dict(self) -> dict[str, Any]:
        """The numbers by name."""
        return dict(vars(self))

    def __str__(self) -> str:
        return (
            f"{self.score:.3f} is at {self.percentile:.2f}% [{self.low:.2f}, {self.high:.2f}] of {self.pairs:,} pairs"
        )


@dataclass(frozen=True)
class Threshold:
    """A threshold of one model, and the one of another that lets as many of its own pairs through."""

    here: float
    there: float
    low: float
    high: float
    percentile: float
    level: float = 0.95

    def to_dict(self) -> dict[str, float]:
        """The numbers by name."""
        return dict(vars(self))

    def __str__(self) -> str:
        return (
            f"{self.here:.3f} here is {self.there:.3f} [{self.low:.3f}, {self.high:.3f}] there ({self.percentile:.2f}%)"
        )


def null(
    head: Head | Measure, using: str = "cosine", embeddings: Any = None, *, pairs: int = PAIRS, seed: int = 0
) -> Null:
    """The values of the head's own pairs: all of them where they are few, otherwise drawn at random."""
    m = head if isinstance(head, Measure) else measure(using)(head, embeddings)
    n = m.head.shape[0]
    if n < 2:
        raise GonioError("null: the head has one label and so no pair; at least two are needed.")
    if isinstance(pairs, bool) or not isinstance(pairs, (int, np.integer)) or pairs < 100:
        raise GonioError(f"null: {pairs} pairs were asked for; at least 100 are needed.")
    whole = n * (n - 1) // 2 <= pairs
    if whole:
        i, j = np.triu_indices(n, 1)
    else:
        rng = np.random.default_rng(seed)
        i = rng.integers(0, n, int(pairs))
        j = (i + rng.integers(1, n, int(pairs))) % n
    values = m.pairs(i, j)
    values = np.sort(values[np.isfinite(values)])
    if not len(values):
        raise GonioError(f"null: {m.name} is defined for no pair of this head (its vectors are zero).")
    return Null(values, m.name, whole)


def score_to_percentile(
    head: Head | Measure | Null,
    score: float,
    *,
    using: str = "cosine",
    embeddings: Any = None,
    level: float = 0.95,
    seed: int = 0,
) -> Percentile:
    """Where a score lies among this model's own pairs of different labels.

    >>> rng = np.random.default_rng(0)
    >>> crowded = Head(rng.standard_normal((400, 16)) + 2, link="cosine")
    >>> 40 < score_to_percentile(crowded, 0.8).percentile < 70
    True
    """
    _check(score, level, "score_to_percentile")
    own = head if isinstance(head, Null) else null(head, using, embeddings, seed=seed)
    below, total = own.share_below(float(score))
    low, high = (below / total,) * 2 if own.whole else _wilson(below, total, level)
    return Percentile(float(score), 100 * below / total, 100 * low, 100 * high, total, own.measure, level)


def migrate_threshold(
    here: Head | Measure | Null,
    there: Head | Measure | Null,
    threshold: float,
    *,
    using: str = "cosine",
    level: float = 0.95,
    seed: int = 0,
) -> Threshold:
    """The threshold of another model at the same percentile of its own pairs."""
    _check(threshold, level, "migrate_threshold")
    a, b = (x if isinstance(x, Null) else null(x, using, seed=seed) for x in (here, there))
    at = score_to_percentile(a, threshold, level=level)
    spread = 0.0 if b.whole else _normal(level) * np.sqrt(0.25 / len(b.values))
    share, low, high = at.percentile / 100, max(0.0, at.low / 100 - spread), min(1.0, at.high / 100 + spread)
    q = np.quantile(b.values, [share, low, high])
    return Threshold(float(threshold), float(q[0]), float(q[1]), float(q[2]), at.percentile, level)


def _check(score: Any, level: float, who: str) -> None:
    if isinstance(score, bool) or not isinstance(score, (int, float, np.number)) or not np.isfinite(score):
        raise GonioError(f"{who}: the score is {score!r}; a finite number is needed.")
    if not 0 < level < 1:
        raise GonioError(f"{who}: level is {level}; a number between 0 and 1 is needed, such as 0.95.")


def _normal(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


def _wilson(count: int, total: int, level: float) -> tuple[float, float]:
    """Wilson's interval of a share."""
    z, p = _normal(level), count / total
    middle = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z * np.sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))
