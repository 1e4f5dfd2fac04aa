"""One threshold on the cosine for all frequencies, against people.

The cosine is thresholded where it agrees best with human judgements, and the share it calls "same" is compared with the
share people do, by decile of frequency, with bootstrap intervals (Zhou et al. 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.diagnostics.frequency import one_a_pair
from gonio.diagnostics.result import Result, axes

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyAgreement(Result):
    """The share of pairs that a thresholded cosine calls the same, beside the share people do, by decile of frequency.

    excess    predicted minus judged share; `low`, `high` its bootstrap interval of 95%
    """

    threshold: float
    accuracy: float
    predicted: Float[np.ndarray, " deciles"]
    judged: Float[np.ndarray, " deciles"]
    excess: Float[np.ndarray, " deciles"]
    low: Float[np.ndarray, " deciles"]
    high: Float[np.ndarray, " deciles"]
    frequency: Float[np.ndarray, " deciles"]

    def lines(self) -> tuple[str, str]:
        return (
            f"threshold {self.threshold:.3f}, accuracy {self.accuracy:.3f}",
            f"predicted minus judged share of 'same': {self.excess[0]:+.3f} in the rarest decile, "
            f"{self.excess[-1]:+.3f} in the most frequent",
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        off = int(((self.low > 0) | (self.high < 0)).sum())
        return (
            f"A cosine above {self.threshold:.3f} agrees best with people ({100 * self.accuracy:.1f}%). "
            f"One for all calls {100 * abs(self.excess[0]):.1f} points too {_more(self.excess[0])} of the rarest "
            f"pairs the same and {100 * abs(self.excess[-1]):.1f} points too {_more(self.excess[-1])} of the most "
            f"frequent; in {off} of {len(self.excess)} parts the difference is beyond chance."
        )

    def plot(self, ax: Any = None) -> Any:
        """Predicted minus judged share in each decile with its interval."""
        ax = axes(ax)
        at = np.arange(1, len(self.excess) + 1)
        ax.errorbar(at, self.excess, [self.excess - self.low, self.high - self.excess], fmt="o", color="#1f6f8b")
        ax.axhline(0, color="0.5", linewidth=1)
        ax.set_xlabel("decile of frequency")
        ax.set_ylabel("share called the same: cosine minus people")
        return ax


def _more(x: float) -> str:
    return "many" if x > 0 else "few"


def frequency_agreement(
    cosines: Any, same: Any, frequency: Any, *, parts: int = 10, resamples: int = 1000, seed: int = 0
) -> FrequencyAgreement:
    """A cosine thresholded where it agrees best with people, against people, by decile of frequency.

    Parameters
    ----------
    same : whether people judged the pair the same (0 or 1)
    frequency : one number a pair; only its order counts
    """
    who = "frequency_agreement"
    y = checks.array(cosines, who, "cosines").astype(np.float64).reshape(-1)
    s, f = one_a_pair(same, y, who, "same"), one_a_pair(frequency, y, who, "frequency")
    ok = np.isfinite(y) & np.isfinite(s) & np.isfinite(f)
    y, s, f = y[ok], s[ok], f[ok]
    if not np.isin(s, (0, 1)).all():
        raise GonioError(f"{who}: same holds {s[~np.isin(s, (0, 1))][0]:g}; 0 (different) and 1 (same) are needed.")
    if len(y) < 2 * parts or parts < 1:
        raise GonioError(f"{who}: {len(y)} pairs are known; at least {2 * max(parts, 1)} are needed for {parts} parts.")
    threshold, accuracy = best_threshold(y, s)
    order = np.argsort(f, kind="stable")
    rng = np.random.default_rng(seed)
    rows = []
    for part in np.array_split(order, parts):
        p, j = (y[part] > threshold).astype(np.float64), s[part]
        draws = rng.integers(0, len(part), (resamples, len(part)))
        low, high = np.quantile((p - j)[draws].mean(axis=1), [0.025, 0.975])
        rows.append((p.mean(), j.mean(), p.mean() - j.mean(), low, high, np.median(f[part])))
    predicted, judged, excess, low, high, middle = (np.array(c) for c in zip(*rows, strict=True))
    return FrequencyAgreement(threshold, accuracy, predicted, judged, excess, low, high, middle)


def best_threshold(cosines: np.ndarray, same: np.ndarray) -> tuple[float, float]:
    """The threshold t for which  cos > t  agrees most often with `same`, and how often; the lowest such."""
    order = np.argsort(cosines, kind="stable")
    y, s = cosines[order], same[order]
    # With the threshold at y[k] the pairs after k are called the same; only the last of equal cosines can be one.
    right = np.concatenate([[s.sum()], np.cumsum(1 - s) + s.sum() - np.cumsum(s)])
    last = np.concatenate([[True], np.append(y[1:] != y[:-1], True)])
    at = int(np.argmax(np.where(last, right, -1)))
    return (float(np.nextafter(y[0], -np.inf)) if at == 0 else float(y[at - 1])), float(right[at] / len(y))
