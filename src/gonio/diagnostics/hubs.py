"""Hubs: labels that are among the nearest of very many others, and labels that are among the nearest of none.

N_k(j) = number of labels i != j that have j among their k nearest

skewness      third standardised moment of N_k          0 where all are chosen alike, large where few are by many
Robin Hood    sum |N_k - mean| / (2 sum N_k)            share of all choices that would have to change hands
anti-hubs     share of labels with N_k = 0
hubs          labels with N_k >= 2k; the mean of N_k is always k
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.readable_label import quoted
from gonio.diagnostics.result import Result, axes
from gonio.similarity import measure as measure_of
from gonio.similarity.nearest import nearest_by_cosine

if TYPE_CHECKING:
    from jaxtyping import Int


@dataclass(frozen=True, eq=False, repr=False)
class Hubness(Result):
    """How unevenly labels are chosen as neighbours.

    counts        N_k of each label; a label is never its own neighbour
    hubs          (label, N_k) of those with N_k >= 2k, largest first
    k             neighbours each label chooses
    voters        labels that choose: zero rows have no direction, choose none and are chosen by none
    tied          labels in groups of more than k equal rows: which of them are chosen is decided by their order alone
    """

    counts: Int[np.ndarray, " labels"]
    skewness: float
    robin_hood: float
    antihub_rate: float
    hub_rate: float
    hubs: tuple[tuple[int, int], ...]
    k: int
    voters: int
    tied: int
    labels: tuple[str, ...] = field(default=())

    @property
    def largest(self) -> int:
        """The largest N_k."""
        return int(self.counts.max())

    def named(self, most: int = 10) -> list[tuple[str, int]]:
        """The hubs by name."""
        return [(self.labels[i], c) for i, c in self.hubs[:most]]

    def to_dict(self) -> dict[str, Any]:
        """The result in plain values, with the hubs by name."""
        return super().to_dict() | {"hubs": [{"label": self.labels[i], "row": i, "count": c} for i, c in self.hubs]}

    def lines(self) -> tuple[str, str]:
        named = ", ".join(f"{quoted(a)} {c:,}" for a, c in self.named(3)) or "none"
        return (
            f"{len(self.counts):,} labels, k {self.k}, skewness {self.skewness:.2f}, Robin Hood {self.robin_hood:.3f}",
            f"hubs {len(self.hubs):,} ({named}); anti-hubs {100 * self.antihub_rate:.1f}%",
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        said = (
            f"Each label names its {self.k} nearest others, so a label is named {self.k} times on average. "
            f"{100 * self.antihub_rate:.1f}% are named by nobody and {100 * self.hub_rate:.1f}% at least "
            f"{2 * self.k} times; the most by {self.largest:,}. "
        )
        if self.hubs:
            named = ", ".join(f"{quoted(a)} ({c:,})" for a, c in self.named(5))
            said += f"The largest hubs are {named}: they appear in neighbour lists whatever is asked. "
        said += f"{100 * self.robin_hood:.0f}% of all choices would have to change hands for an even spread."
        if self.tied:
            said += (
                f" {self.tied:,} labels lie in groups of more than {self.k} equal rows, where only the order of the "
                f"rows decides who is named: their counts mean nothing."
            )
        return said

    def plot(self, ax: Any = None) -> Any:
        """How many labels are named how often, on logarithmic axes."""
        ax = axes(ax)
        values, times = np.unique(self.counts, return_counts=True)
        ax.scatter(values + 1, times, s=14, color="#1f6f8b")
        ax.axvline(self.k + 1, color="0.5", linewidth=1, linestyle="--", label=f"mean, {self.k}")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel(f"times among the {self.k} nearest of another label, plus 1")
        ax.set_ylabel("labels")
        ax.set_title(f"skewness {self.skewness:.2f}, never named {100 * self.antihub_rate:.1f}%")
        ax.legend(frameon=False)
        return ax


def hubness(
    head: Head, k: int = 10, *, neighbours: Any = None, measure: str = "cosine", embeddings: Any = None
) -> Hubness:
    """How unevenly the labels are chosen as neighbours, by cosine or another measure.

    N_k(j) counts the labels i != j that have j among their k nearest.

    Parameters
    ----------
    neighbours : (labels, at least k) indices, nearest first, optional
        Lists found before, by any measure; otherwise one pass over all pairs finds them. A label in its own list is not
        counted, and -1 stands for nobody.
    measure : the measure of gonio.similarity by which labels are near, with `embeddings` where it needs them

    >>> hubness(Head([[1, 0], [1, 0.1], [1, -0.3], [0, 1]], link="softmax"), k=1).counts
    array([2, 2, 0, 0])
    """
    n = head.shape[0]
    k = check_k(k, n, "hubness")
    live = head.norms > 0
    if neighbours is not None:
        near = given_neighbours(neighbours, n, k, "hubness")[:, :k]
    elif measure == "cosine":
        near = nearest_by_cosine(head.rows, k)[0]
    else:
        found = measure_of(measure)(head, embeddings).nearest(k)
        near, live = found.near, np.asarray(np.isfinite(found.values).any(axis=1))
    return from_lists(near, live, head, k)


def from_lists(near: np.ndarray, live: np.ndarray, head: Head, k: int, asked: np.ndarray | None = None) -> Hubness:
    """The result from neighbour lists of the labels asked (all, if not given)."""
    n = head.shape[0]
    who = np.arange(n) if asked is None else asked
    counts = count(near, live, who, n)
    over = counts[live].astype(np.float64)
    hubs = np.flatnonzero(counts >= 2 * k)
    hubs = hubs[np.lexsort((hubs, -counts[hubs]))]
    tied = sum(len(g) for g in head.twins if len(g) > k)
    return Hubness(
        counts,
        skewness(over),
        robin_hood(over),
        float((over == 0).mean()) if len(over) else float("nan"),
        float((over >= 2 * k).mean()) if len(over) else float("nan"),
        tuple((int(i), int(counts[i])) for i in hubs),
        k,
        int(live[who].sum()),
        tied,
        head.labels,
    )


def count(near: np.ndarray, live: np.ndarray, asked: np.ndarray, n: int) -> Int[np.ndarray, " labels"]:
    """N_k of every label from lists; votes of and for zero rows, for oneself and for nobody do not count."""
    good = (near >= 0) & (near != asked[:, None]) & live[asked][:, None]
    counts = np.bincount(near[good], minlength=n)
    counts[~live] = 0
    return counts


def skewness(x: np.ndarray) -> float:
    """The third central moment over the standard deviation cubed; 0 where nothing varies, NaN of nothing."""
    if not len(x):
        return float("nan")
    c = x - x.mean()
    spread = float(np.sqrt((c * c).mean()))
    return float((c**3).mean()) / spread**3 if spread > 0 else 0.0


def robin_hood(x: np.ndarray) -> float:
    """sum |x - mean| / (2 sum x): the share that would have to change hands; 0 where there is nothing to share."""
    total = float(x.sum())
    return float(np.abs(x - x.mean()).sum()) / (2 * total) if total > 0 else 0.0


def check_k(k: Any, n: int, who: str) -> int:
    """k as a whole number of neighbours that n labels can give."""
    if n < 2:
        raise GonioError(f"{who}: the head has one label, which has no neighbours; at least two are needed.")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k < n:
        raise GonioError(f"{who}: k is {k} and the head has {n:,} labels; k from 1 to {n - 1:,} is needed.")
    return int(k)


def given_neighbours(neighbours: Any, n: int, k: int, who: str) -> Int[np.ndarray, "labels near"]:
    """Neighbour lists given by the caller, checked."""
    near = np.asarray(neighbours)
    if near.ndim != 2 or near.dtype.kind not in "iu" or len(near) != n or near.shape[1] < k:
        raise GonioError(
            f"{who}: neighbours has shape {near.shape} and dtype {near.dtype}; integers of shape ({n}, {k}) or wider "
            f"are needed, one list a label."
        )
    if near.min() < -1 or near.max() >= n:
        bad = near.min() if near.min() < -1 else near.max()
        raise GonioError(f"{who}: neighbours names label {bad}; the head has labels 0 to {n - 1}.")
    return near.astype(np.int64, copy=False)
