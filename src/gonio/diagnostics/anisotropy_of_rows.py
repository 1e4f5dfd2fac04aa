"""Anisotropy: how far the rows are from pointing everywhere alike.

mean cosine        of two different rows, over all pairs:  (|sum u|^2 - n) / (n (n - 1))          ideal 0
mean share         |mean row|^2 / mean |row|^2                                                    ideal 0
top share          variance along the first principal axis over all variance                      ideal 1/d
IsoScore           of the variances S:  S^ = sqrt(d) S / |S|,  delta = |S^ - 1| / sqrt(2 (d - sqrt d)),
                   phi = (d - delta^2 (d - sqrt d))^2 / d^2,  (d phi - 1) / (d - 1)               ideal 1
partition ratio    min Z / max Z,  Z(e) = sum_i exp(e.x_i),  e over +- the eigenvectors of X'X    ideal 1
effective rank     exp of the entropy of the shares of variance                                   ideal d
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.head import Head
from gonio.core.parallel import in_threads, spans
from gonio.diagnostics.moments import ROWS, Moments, spectrum
from gonio.diagnostics.result import Result, axes
from gonio.gauge.group import offset_is_convention

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False, repr=False)
class Anisotropy(Result):
    """How far the rows are from pointing everywhere alike; NaN where a number is undefined.

    spectrum   shares of variance along the principal axes, largest first; zeros where all rows are equal
    convention in words why the mean row, and so the first two numbers, are a convention; empty where they are not
    """

    mean_cosine: float
    mean_share: float
    top_share: float
    isoscore: float
    partition_ratio: float
    effective_rank: float
    spectrum: Float[np.ndarray, " dim"]
    shape: tuple[int, int]
    convention: str

    def lines(self) -> tuple[str, str]:
        n, d = self.shape
        return (
            f"{n:,} x {d}, mean cosine {self.mean_cosine:.3f}, mean vector's share {self.mean_share:.3f}",
            f"top axis {self.top_share:.4f} of variance (even: {1 / d:.4f}), IsoScore {self.isoscore:.3f}, "
            f"effective rank {self.effective_rank:.1f} of {d}, partition ratio {self.partition_ratio:.3g}",
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        n, d = self.shape
        if not self.spectrum.any():
            return f"All {n:,} rows are equal: no direction differs from another and nothing can be said of a spread."
        said = (
            f"Two rows drawn at random have cosine {self.mean_cosine:.3f} on average, where directions without a "
            f"preference have 0; the vector common to all rows holds {100 * self.mean_share:.1f}% of their squared "
            f"length. "
        )
        if self.convention:
            said += (
                f"For this head that common vector is a convention: {self.convention}, so these two numbers say "
                f"nothing about the model. "
            )
        return said + (
            f"About the mean, the first principal axis holds {100 * self.top_share:.1f}% of the variance (an even "
            f"spread has {100 / d:.1f}%), and the spread is as wide as {self.effective_rank:.0f} of {d} even axes; "
            f"IsoScore {self.isoscore:.3f} (1 is even)."
        )

    def plot(self, ax: Any = None) -> Any:
        """Shares of variance along the principal axes."""
        ax = axes(ax)
        d = len(self.spectrum)
        seen = self.spectrum > 0
        ax.plot(np.arange(1, d + 1)[seen], self.spectrum[seen], color="#1f6f8b")
        ax.axhline(1 / d, color="0.5", linestyle="--", linewidth=1, label=f"even, 1/{d}")
        ax.set_yscale("log")
        ax.set_xlabel("principal axis")
        ax.set_ylabel("share of variance")
        ax.set_title(f"effective rank {self.effective_rank:.1f} of {d}, IsoScore {self.isoscore:.3f}")
        ax.legend(frameon=False)
        return ax


def anisotropy(head: Head) -> Anisotropy:
    """How far the rows of a head are from pointing everywhere alike: exact over all rows, no pair is sampled.

    >>> anisotropy(Head([[1, 0], [-1, 0], [0, 1], [0, -1]], link="softmax")).isoscore
    1.0
    """
    n, d = head.shape
    variances, _, m = spectrum(head)
    total = float(variances.sum())
    shares = variances / total if total > 0 else variances
    squares = float(np.trace(m.second))
    pairs = m.live * (m.live - 1)
    nan = float("nan")
    return Anisotropy(
        mean_cosine=float((m.directions @ m.directions - m.live) / pairs) if pairs else nan,
        mean_share=float(m.mean @ m.mean) / squares if squares > 0 else nan,
        top_share=float(shares[0]) if total > 0 else nan,
        isoscore=isoscore(variances),
        partition_ratio=partition_ratio(head, m),
        effective_rank=effective_rank(shares),
        spectrum=shares,
        shape=(n, d),
        convention=offset_is_convention(head),
    )


def isoscore(variances: np.ndarray) -> float:
    """IsoScore (Rudman et al. 2022) from the variances along the principal axes.

    m of d equal variances, the others 0, give (m - 1) / (d - 1). NaN in one dimension or without any variance.

    >>> isoscore(np.array([1.0, 1.0, 0, 0, 0]))
    0.25

    Claims: RUD22.iso
    """
    d, size = len(variances), float(np.linalg.norm(variances))
    if d < 2 or size == 0:
        return float("nan")
    scaled = np.sqrt(d) * np.asarray(variances, np.float64) / size
    delta = float(np.linalg.norm(scaled - 1)) / np.sqrt(2 * (d - np.sqrt(d)))
    phi = (d - delta**2 * (d - np.sqrt(d))) ** 2 / d**2
    return float(round((d * phi - 1) / (d - 1), 14))


def effective_rank(shares: np.ndarray) -> float:
    """exp(- sum p log p) of the shares of variance (Roy and Vetterli 2007); 0 where nothing varies."""
    p = shares[shares > 0]
    return float(np.exp(-(p * np.log(p)).sum())) if len(p) else 0.0


def partition_ratio(head: Head, m: Moments) -> float:
    """min Z(e) / max Z(e) with Z(e) = sum_i exp(e.x_i) over plus and minus the eigenvectors of X'X.

    (Mu and Viswanath 2018.) In logarithms throughout, so that long rows do not overflow; 0 where the ratio is smaller
    than any float.
    """
    E = np.linalg.eigh(m.second)[1]
    d = len(E)

    def look(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        P = head.rows[span[0] : span[1]].astype(np.float64) @ E
        tops, sums = np.empty(2 * d), np.empty(2 * d)
        for half, sign in ((slice(0, d), 1), (slice(d, 2 * d), -1)):
            Q = P if sign > 0 else -P
            tops[half] = Q.max(axis=0)
            sums[half] = np.exp(Q - tops[half]).sum(axis=0)
        return tops, sums

    parts = in_threads(look, spans(head.shape[0], ROWS))
    tops = np.stack([t for t, _ in parts])
    sums = np.stack([s for _, s in parts])
    top = tops.max(axis=0)
    log_z = top + np.log((sums * np.exp(tops - top)).sum(axis=0))
    return float(np.exp(log_z.min() - log_z.max()))
