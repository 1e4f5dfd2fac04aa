"""How much a number hangs on which inputs were drawn: bootstrap intervals from finite inputs.

Inputs are drawn again with replacement; a resample is a weight for each input, so all sums of all resamples are one
product of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.parallel import spans

if TYPE_CHECKING:
    from jaxtyping import Float


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


def weights(count: int, resamples: int, seed: int, who: str) -> Float[np.ndarray, "resamples points"]:
    """How often each input is drawn in each resample."""
    if isinstance(resamples, bool) or not isinstance(resamples, (int, np.integer)) or resamples < 20:
        raise GonioError(f"{who}: {resamples} resamples were asked for; at least 20 are needed for an interval.")
    return np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), int(resamples)).astype(np.float64)


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
) -> tuple[Any, Any]:
    """Both ends of the interval of corr(x, y), a column a pair; of cos(x, y), means left in, where not `centred`."""
    w = weights(len(X), resamples, seed, who) / len(X)
    low, high = np.empty(X.shape[1]), np.empty(X.shape[1])
    floor = 1e-12 if centred else 0.0  # of the variance 1 over all inputs: a resample without variation has none
    for s, e in spans(X.shape[1], 256):
        x, y = (_standard(z[:, s:e]) if centred else z[:, s:e] for z in (X, Y))
        mx, my = (w @ x, w @ y) if centred else (0.0, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            vx, vy = w @ (x * x) - mx * mx, w @ (y * y) - my * my
            draws = np.where((vx > floor) & (vy > floor), (w @ (x * y) - mx * my) / np.sqrt(vx * vy), np.nan)
        low[s:e], high[s:e] = quantiles(np.clip(draws, -1, 1), level, who)
    return low, high


def mean_intervals(
    X: Float[np.ndarray, "points pairs"],
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    who: str = "interval",
) -> tuple[Any, Any]:
    """Both ends of the interval of the mean of each column."""
    draws = weights(len(X), resamples, seed, who) @ X / len(X)
    return quantiles(draws, level, who)


def _standard(z: np.ndarray) -> np.ndarray:
    z = z - z.mean(axis=0)
    spread = z.std(axis=0)
    return z / np.where(spread > 0, spread, 1)
