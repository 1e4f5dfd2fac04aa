"""How much a number hangs on which inputs were drawn: bootstrap intervals from finite inputs.

Inputs are drawn again with replacement; a resample is a weight for each input, so all sums of all resamples are one
product of matrices. States of one document hang together, so documents are drawn, not states; below ten documents there
is no telling, and no interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.parallel import spans
from gonio.core.states import LEAST_DOCUMENTS

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True)
class Interval:
    """A value and the interval that holds it in `level` of the resamples."""

    value: float
    low: float
    high: float
    level: float = 0.95

    def to_dict(self) -> dict[str, float]:
        """The four numbers."""
        return {"value": self.value, "low": self.low, "high": self.high, "level": self.level}

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def weights(
    count: int, resamples: int, seed: int, who: str, documents: Int[np.ndarray, " points"] | None = None
) -> Float[np.ndarray, "resamples points"]:
    """How often each input is drawn in each resample; inputs of one document are drawn together.

    Their shares: each row sums to one. NaN where there are too few documents.
    """
    if isinstance(resamples, bool) or not isinstance(resamples, (int, np.integer)) or resamples < 20:
        raise GonioError(f"{who}: {resamples} resamples were asked for; at least 20 are needed for an interval.")
    rng = np.random.default_rng(seed)
    if documents is None:
        return rng.multinomial(count, np.full(count, 1 / count), int(resamples)) / count
    of = np.unique(documents, return_inverse=True)[1]
    number = int(of.max()) + 1
    if number < LEAST_DOCUMENTS:
        return np.full((int(resamples), count), np.nan)
    drawn = rng.multinomial(number, np.full(number, 1 / number), int(resamples))[:, of].astype(np.float64)
    return drawn / drawn.sum(axis=1, keepdims=True)


def quantiles(
    draws: np.ndarray, level: float, who: str
) -> tuple[Float[np.ndarray, " values"], Float[np.ndarray, " values"]]:
    """The ends of the central interval of each column; NaN where a tenth of the draws or more are undefined."""
    if not 0 < level < 1:
        raise GonioError(f"{who}: level is {level}; a number between 0 and 1 is needed, such as 0.95.")
    ends = np.full((2, draws.shape[1]), np.nan)
    defined = np.isfinite(draws)
    for c in np.flatnonzero(defined.mean(axis=0) > 0.9):
        ends[:, c] = np.quantile(draws[defined[:, c], c], [(1 - level) / 2, (1 + level) / 2])
    return ends[0], ends[1]


def correlation_intervals(
    X: Float[np.ndarray, "points pairs"],
    Y: Float[np.ndarray, "points pairs"],
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    who: str = "interval",
    *,
    centred: bool = True,
    documents: Int[np.ndarray, " points"] | None = None,
) -> tuple[Any, Any]:
    """Both ends of the interval of corr(x, y), a column a pair; of cos(x, y), means left in, where not `centred`."""
    low, high = np.empty(X.shape[1]), np.empty(X.shape[1])
    for s, e in spans(X.shape[1], 256):
        draws = correlation_draws(X[:, s:e], Y[:, s:e], resamples, seed, who, centred=centred, documents=documents)
        low[s:e], high[s:e] = quantiles(draws, level, who)
    return low, high


def correlation_draws(
    X: Float[np.ndarray, "points pairs"],
    Y: Float[np.ndarray, "points pairs"],
    resamples: int,
    seed: int,
    who: str,
    *,
    centred: bool = True,
    documents: Int[np.ndarray, " points"] | None = None,
) -> Float[np.ndarray, "resamples pairs"]:
    """corr(x, y) of each resample, a column a pair."""
    w = weights(len(X), resamples, seed, who, documents)
    floor = 1e-12 if centred else 0.0  # of the variance 1 over all inputs: a resample without variation has none
    x, y = (_standard(z) if centred else z for z in (X, Y))
    mx, my = (w @ x, w @ y) if centred else (0.0, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        vx, vy = w @ (x * x) - mx * mx, w @ (y * y) - my * my
        draws = np.where((vx > floor) & (vy > floor), (w @ (x * y) - mx * my) / np.sqrt(vx * vy), np.nan)
    return np.clip(draws, -1, 1)


def effective_size(
    x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"], documents: Int[np.ndarray, " points"]
) -> float:
    """How many independent inputs would tell corr(x, y) as well as these: their number over the design effect.

    The design effect is the variance of the correlation when documents are drawn over that when inputs are. NaN below
    ten documents.
    """
    pair = x[:, None], y[:, None]
    together = correlation_draws(*pair, 400, 0, "effective size", documents=documents)
    apart = correlation_draws(*pair, 400, 0, "effective size")
    if not np.isfinite(together).mean() > 0.9:
        return float("nan")
    return float(min(len(x), len(x) * np.nanvar(apart) / max(np.nanvar(together), 1e-300)))


def mean_intervals(
    X: Float[np.ndarray, "points pairs"],
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    who: str = "interval",
    documents: Int[np.ndarray, " points"] | None = None,
) -> tuple[Any, Any]:
    """Both ends of the interval of the mean of each column."""
    return quantiles(weights(len(X), resamples, seed, who, documents) @ X, level, who)


def _standard(z: np.ndarray) -> np.ndarray:
    z = z - z.mean(axis=0)
    spread = z.std(axis=0)
    return z / np.where(spread > 0, spread, 1)
