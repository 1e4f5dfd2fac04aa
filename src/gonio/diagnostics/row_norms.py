"""Lengths of rows, and what they go with: frequency, bias, the length of the name, being a hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.correlations import spearman
from gonio.core.head import Head
from gonio.core.histogram import histogram
from gonio.diagnostics.neighbour_counts import log2_frequencies
from gonio.diagnostics.result import Result, axes, quoted
from gonio.gauge.group import gauge_of, offset_is_convention
from gonio.gauge.transforms import Linear, RowScaling

if TYPE_CHECKING:
    from jaxtyping import Float, Int

FAR = 5.0  # robust standard deviations beyond which a length is an outlier


@dataclass(frozen=True, eq=False, repr=False)
class Norms(Result):
    """Lengths of rows.

    quantiles     least, lower quartile, median, upper quartile, largest
    histogram     (counts, edges)
    frequency_correlation   Spearman of length and log frequency; None where no frequencies were given
    correlations  Spearman of length with what else is known of a label
    outliers      labels whose log length lies more than 5 robust deviations off the median, zero rows among them
    convention    which changes of convention move lengths, in words; empty where none does
    """

    norms: Float[np.ndarray, " labels"]
    quantiles: Float[np.ndarray, "5"]
    histogram: tuple[np.ndarray, np.ndarray]
    frequency_correlation: float | None
    correlations: Mapping[str, float]
    outliers: Int[np.ndarray, " outliers"]
    log2_frequencies: Float[np.ndarray, " labels"] | None
    convention: str
    labels: tuple[str, ...] = field(default=())

    def lines(self) -> tuple[str, str]:
        low, _, middle, _, high = self.quantiles
        with_what = ", ".join(f"{k} {v:.2f}" for k, v in self.correlations.items() if np.isfinite(v))
        return (
            f"{len(self.norms):,} lengths from {low:.4g} to {high:.4g}, median {middle:.4g}",
            f"outliers {len(self.outliers):,}; Spearman with {with_what or 'nothing known'}",
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        low, quarter, middle, three, high = self.quantiles
        said = (
            f"Half of the rows have lengths between {quarter:.4g} and {three:.4g} (median {middle:.4g}), all between "
            f"{low:.4g} and {high:.4g}. "
        )
        if len(self.outliers):
            said += f"{len(self.outliers):,} lie far off: {quoted(self.labels, self.outliers)}. "
        if self.frequency_correlation is not None and np.isfinite(self.frequency_correlation):
            way = "longer" if self.frequency_correlation > 0 else "shorter"
            way = f"tend to be {way}" if abs(self.frequency_correlation) >= 0.1 else "are about as long as rare ones"
            said += f"Frequent labels {way} (Spearman {self.frequency_correlation:.2f}). "
        said += "A cosine does not see lengths. "
        return said + (f"Lengths are convention here: {self.convention}." if self.convention else "")

    def plot(self, ax: Any = None) -> Any:
        """Length against frequency where frequencies were given, otherwise the histogram of lengths."""
        ax = axes(ax)
        if self.log2_frequencies is not None:
            ax.scatter(self.log2_frequencies, self.norms, s=4, alpha=0.4, color="#1f6f8b", linewidths=0)
            ax.set_xlabel("log2 frequency")
            ax.set_ylabel("length of the row")
            ax.set_title(f"Spearman {self.frequency_correlation:.3f}")
        else:
            counts, edges = self.histogram
            ax.stairs(counts, edges, fill=True, color="#1f6f8b", alpha=0.7)
            ax.set_xlabel("length of the row")
            ax.set_ylabel("labels")
        return ax


def norms(head: Head, frequencies: Any = None, *, hubs: Any = None, bins: int = 40) -> Norms:
    """Lengths of the rows and what they go with.

    Parameters
    ----------
    frequencies : one number a label, or a mapping from label to number, optional; zeros and absent ones are left out
    hubs : N_k of each label (`hubness(head).counts`), optional

    >>> norms(Head([[3, 4], [0, 1], [0, 2]], link="softmax"), [8, 1, 2]).frequency_correlation
    1.0
    """
    lengths = head.norms
    n = len(lengths)
    known: dict[str, np.ndarray] = {}
    log2 = None
    if frequencies is not None:
        log2 = known["log frequency"] = log2_frequencies(frequencies, head, "norms")
    if hubs is not None:
        known["times named as neighbour"] = checks.vector(hubs, "norms", "hubs", n).astype(np.float64)
    if head.bias is not None:
        known["bias"] = head.bias.astype(np.float64)
    if head.named:
        known["length of the name"] = np.array([len(x) for x in head.labels], np.float64)
    known["position"] = np.arange(n, dtype=np.float64)
    found = {k: spearman(lengths, v) for k, v in known.items()}
    counts, edges = histogram(lengths, bins)
    return Norms(
        lengths.copy(),
        np.quantile(lengths, [0, 0.25, 0.5, 0.75, 1]),
        (counts, edges),
        found.get("log frequency"),
        found,
        _outliers(lengths),
        log2,
        _convention(head),
        head.labels,
    )


def _outliers(lengths: np.ndarray) -> np.ndarray:
    live = lengths > 0
    out = ~live
    if live.sum() >= 3:
        logs = np.log(lengths[live])
        middle = np.median(logs)
        spread = 1.4826 * np.median(np.abs(logs - middle))
        out[live] = np.abs(logs - middle) > max(FAR * spread, 1e-9)
    return np.flatnonzero(out)


def _convention(head: Head) -> str:
    if head.link == "unknown":
        return ""
    kinds = gauge_of(head).kinds
    said = [offset_is_convention(head)]
    if Linear in kinds:
        said.append(f"an invertible map leaves the {gauge_of(head).predictions} alone and moves lengths")
    if RowScaling in kinds:
        said.append("each row may be rescaled, since only its direction is used")
    return "; ".join(x for x in said if x)
