"""Frequency bias: do frequent words look less alike than rare ones, other things equal?

    cos = a + b log2(frequency) + controls,   ordinary least squares; b is the bias   (Zhou et al. 2022)

Controls (number of senses, same word form, part of speech) enter one after the other, so that one sees what is left
of b. Pairs share labels, so how likely b is by chance is told by dealing the frequencies anew among the labels
(`permutation`), and not by t.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.correlations import LEAST, pearson, spearman
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.diagnostics.neighbour_counts import log2_frequencies
from gonio.diagnostics.permutation import permutation_p
from gonio.diagnostics.result import Result, axes
from gonio.similarity import measure as measure_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int

PAIRS = 20_000


@dataclass(frozen=True)
class Fit:
    """One regression: what entered beside log2 frequency, the slope on it, its error, t and R^2.

    p   how likely a slope as strong is by chance, by permuting labels; NaN where the labels of the pairs are not known
    t   the slope over its error, as if no two pairs shared a label: too large where they do
    """

    controls: tuple[str, ...]
    slope: float
    error: float
    t: float
    r_squared: float
    p: float = float("nan")

    @property
    def chance(self) -> str:
        """How sure the slope is, in words."""
        if np.isfinite(self.p):
            return f"p {self.p:.2g} by permuting labels"
        return f"t {self.t:.1f} if no two pairs share a label"

    @property
    def clear(self) -> bool:
        """Whether the slope is beyond chance, at 5 %."""
        return self.p < 0.05 if np.isfinite(self.p) else abs(self.t) >= 2

    def __str__(self) -> str:
        entered = " + ".join(("log2 frequency", *self.controls))
        return f"{entered}: slope {self.slope:.4f} ({self.chance}), R^2 {self.r_squared:.3f}"


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyBias(Result):
    """The slope of the cosine on log2 frequency, alone and with each control added.

    fits               without controls, then with one more each time
    pearson            of cosine and log2 frequency
    norm_correlation   Spearman of row length and log frequency; NaN where no rows were given
    pairs              pairs that had a frequency and a cosine; `left_out` had not
    """

    fits: tuple[Fit, ...]
    pearson: float
    norm_correlation: float
    pairs: int
    left_out: int
    cosines: Float[np.ndarray, " pairs"]
    log2_frequency: Float[np.ndarray, " pairs"]

    @property
    def slope(self) -> float:
        """The slope without controls."""
        return self.fits[0].slope

    @property
    def controlled_slope(self) -> float:
        """The slope with all controls."""
        return self.fits[-1].slope

    @property
    def p(self) -> float:
        """How likely a slope as strong as that without controls is by chance, by permuting labels."""
        return self.fits[0].p

    def lines(self) -> tuple[str, str]:
        f, g = self.fits[0], self.fits[-1]
        more = f"; with {', '.join(g.controls)} {g.slope:.4f} ({g.chance})" if g.controls else ""
        return (
            f"{self.pairs:,} pairs, {self.left_out:,} left out",
            f"cosine changes by {f.slope:.4f} a doubling of frequency ({f.chance}, R^2 {f.r_squared:.3f}){more}",
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        f, g = self.fits[0], self.fits[-1]
        if not np.isfinite(f.slope):
            return "Frequencies or cosines do not vary over these pairs, so no trend can be seen."
        if not f.clear:
            return f"The cosine shows no trend with frequency beyond chance: {f.slope:.4f} a doubling ({f.chance})."
        way = "less" if f.slope < 0 else "more"
        said = (
            f"Pairs of frequent labels look {way} alike: each doubling of frequency changes the cosine by "
            f"{f.slope:.4f} ({f.chance}); frequency alone accounts for {100 * f.r_squared:.1f}% of its variance."
        )
        if g.controls:
            said += f" With {', '.join(g.controls)} held equal the slope is {g.slope:.4f} ({g.chance})."
        return said

    def plot(self, ax: Any = None) -> Any:
        """Cosine against log2 frequency with the fitted line."""
        ax = axes(ax)
        x, y = self.log2_frequency, self.cosines
        ax.scatter(x, y, s=4, alpha=0.3, color="#1f6f8b", linewidths=0)
        if np.isfinite(self.slope):
            ends = np.array([x.min(), x.max()])
            ax.plot(ends, y.mean() + self.slope * (ends - x.mean()), color="#c0392b", label=f"slope {self.slope:.4f}")
            ax.legend(frameon=False)
        ax.set_xlabel("log2 frequency of the pair")
        ax.set_ylabel("cosine")
        return ax


def frequency_bias(
    head: Head,
    frequencies: Any,
    *,
    pairs: Any = None,
    controls: Mapping[str, Any] | None = None,
    measure: str = "cosine",
    embeddings: Any = None,
    seed: int = 0,
) -> FrequencyBias:
    """The slope of a similarity of labels on their frequency, with controls.

    A pair's frequency is the geometric mean of its two labels' (mean of log2). Without `pairs`, 20,000 random ones.
    `.p` is the chance of a slope as strong where frequency has nothing to do with the rows, by permuting labels.

    Parameters
    ----------
    controls : name -> one number a pair, entered in this order
    measure : any measure of gonio.similarity
    """
    n = head.shape[0]
    log2 = log2_frequencies(frequencies, head, "frequency_bias")
    if n < 2:
        raise GonioError("frequency_bias: the head has one label; pairs need at least two.")
    if pairs is None:
        if controls:
            raise GonioError("frequency_bias: controls are one number a pair, and no pairs were given; give both.")
        rng = np.random.default_rng(seed)
        known = np.flatnonzero(np.isfinite(log2) & (head.norms > 0))
        if len(known) < 2:
            raise GonioError("frequency_bias: fewer than two labels have a frequency and a direction.")
        i = rng.integers(0, len(known), PAIRS)
        j = (i + rng.integers(1, len(known), PAIRS)) % len(known)
        p = np.column_stack([known[i], known[j]])
    else:
        p = _pairs(pairs, head)
    values = measure_of(measure)(head, embeddings).pairs(p[:, 0], p[:, 1])
    fitted = slope_on_frequency(values, (log2[p[:, 0]] + log2[p[:, 1]]) / 2, controls=controls)
    extra = np.array([np.asarray(v, np.float64).reshape(-1) for v in (controls or {}).values()]).reshape(-1, len(p)).T
    ok = np.isfinite(np.column_stack([values, log2[p], extra])).all(axis=1)
    chances = permutation_p(values[ok], p[ok], log2, extra[ok], seed)
    fits = tuple(
        replace(f, p=c if np.isfinite(f.slope) else c * np.nan) for f, c in zip(fitted.fits, chances, strict=True)
    )
    return replace(fitted, fits=fits, norm_correlation=spearman(head.norms, log2))


def _pairs(pairs: Any, head: Head) -> Int[np.ndarray, "pairs 2"]:
    try:
        p = np.array([(head.index(a), head.index(b)) for a, b in (map(_item, x) for x in pairs)], np.int64)
    except TypeError:
        raise GonioError("frequency_bias: pairs are two labels each, by name or number; give a list of such.") from None
    if len(p) < LEAST:
        raise GonioError(f"frequency_bias: {len(p)} pairs were given; at least {LEAST} are needed.")
    return p


def _item(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x


def slope_on_frequency(
    cosines: Any, log2_frequency: Any, *, controls: Mapping[str, Any] | None = None
) -> FrequencyBias:
    """Zhou's regression for any pairs: one cosine, one log2 frequency and one value of each control a pair.

    Pairs in which one of these is NaN are left out and counted. Whether pairs share labels is not known here, so there
    is no p: `frequency_bias` gives one.
    """
    who = "frequency_bias"
    y = checks.array(cosines, who, "cosines").astype(np.float64).reshape(-1)
    x = one_a_pair(log2_frequency, y, who, "log2_frequency")
    extra = {str(k): one_a_pair(v, y, who, f"control {k}") for k, v in (controls or {}).items()}
    ok = np.isfinite(y) & np.isfinite(x)
    for v in extra.values():
        ok &= np.isfinite(v)
    least = LEAST + len(extra)
    if ok.sum() < least:
        raise GonioError(
            f"{who}: {int(ok.sum())} pairs have a cosine, a frequency and all controls; {least} are needed."
        )
    y, x = y[ok], x[ok]
    names = tuple(extra)
    fits = tuple(
        regress(y, np.column_stack([x, *(extra[k][ok] for k in names[:m])]), names[:m]) for m in range(len(names) + 1)
    )
    return FrequencyBias(fits, pearson(x, y), float("nan"), int(ok.sum()), int((~ok).sum()), y, x)


def one_a_pair(v: Any, y: np.ndarray, who: str, name: str) -> np.ndarray:
    """`v` as one number for each pair of `y`."""
    a = checks.array(v, who, name).astype(np.float64).reshape(-1)
    if a.shape != y.shape:
        raise GonioError(f"{who}: {name} has {len(a)} entries and there are {len(y)} pairs; one a pair is needed.")
    return a


def regress(y: np.ndarray, X: np.ndarray, controls: tuple[str, ...]) -> Fit:
    """Ordinary least squares of y on X with an intercept; slope, error and t of the first column.

    NaN where the first column is constant or a combination of the others.
    """
    n, m = X.shape
    C = X - X.mean(axis=0)
    others = C[:, 1:]
    # The slope of a column is that of y on what the other columns leave of it.
    left = C[:, 0] - others @ np.linalg.lstsq(others, C[:, 0], rcond=None)[0] if m > 1 else C[:, 0]
    size = float(left @ left)
    centred = y - y.mean()
    total = float(centred @ centred)
    nan = float("nan")
    if size <= 1e-20 * max(float(X[:, 0] @ X[:, 0]), 1e-300) or n <= m + 1:
        return Fit(controls, nan, nan, nan, nan)
    rest = centred - C @ np.linalg.lstsq(C, centred, rcond=None)[0]
    left_over = float(rest @ rest)
    slope = float(left @ centred) / size
    error = float(np.sqrt(left_over / (n - m - 1) / size))
    t = slope / error if error > 0 else float(np.copysign(np.inf, slope)) if slope else 0.0
    return Fit(controls, slope, error, t, 1 - left_over / total if total > 0 else nan)
