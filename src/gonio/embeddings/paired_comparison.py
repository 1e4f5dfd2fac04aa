"""Is one way better than another on the same queries? Paired bootstrap over queries, corrected for all that was tried.

    d_q = quality of the other - quality of the base, for each query q
    t          (mean of d in a resample - mean of d) / its standard error there
    interval   mean of d less the quantiles of t times the standard error (bootstrap-t, Efron 1981)
    p          share of resamples whose t is as far from 0 as the observed mean over its standard error

Holm's correction orders the p-values of all that was tried and multiplies the i-th smallest of m by m - i + 1: the
chance that anything is called better or worse while nothing differs stays below 5 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.similarity.bootstrap import Interval

if TYPE_CHECKING:
    from jaxtyping import Float

RESAMPLES, LEAST, LEVEL, FAR = 4999, 10, 0.05, 1e3


@dataclass(frozen=True)
class Compared:
    """One way beside the base.

    difference   mean over queries, with its interval
    p            that of the difference; `corrected` by Holm for everything tried
    """

    name: str
    difference: Interval
    p: float
    corrected: float = 1.0

    @property
    def verdict(self) -> str:
        """better, worse, or not shown."""
        if not self.corrected < LEVEL:
            return "not shown"
        return "better" if self.difference.value > 0 else "worse"


def compare_paired(base: np.ndarray, others: dict[str, np.ndarray], *, seed: int = 0) -> tuple[Compared, ...]:
    """Every other way beside the base, by the same resamples of the queries.

    Below ten queries, or where fewer than ten of them change, nothing is claimed and there is no interval.
    """
    m = len(base)
    if m < LEAST:
        nothing = float("nan")
        return tuple(Compared(n, Interval(float((x - base).mean()), nothing, nothing), 1.0) for n, x in others.items())
    counts = np.random.default_rng(seed).multinomial(m, np.full(m, 1 / m), RESAMPLES).astype(np.float32)
    found = []
    for name, x in others.items():
        d = np.asarray(x, np.float64) - base
        mean, se = float(d.mean()), float(d.std(ddof=1) / np.sqrt(m))
        if se == 0:
            found.append((name, Interval(mean, mean, mean), 1.0 if mean == 0 else 0.0))
            continue
        if np.count_nonzero(d) < LEAST:  # some resamples would hold no query that changes at all
            found.append((name, Interval(mean, float("nan"), float("nan")), 1.0))
            continue
        means = counts @ d / m
        spread = np.sqrt(np.maximum(counts @ (d * d) / m - means * means, 1e-300) / (m - 1))
        t = np.clip((means - mean) / spread, -FAR, FAR)  # a resample of one query alone has no spread
        p = float((1 + (np.abs(t) >= abs(mean) / se).sum()) / (1 + RESAMPLES))
        ends = mean - np.quantile(t, [0.975, 0.025]) * se
        found.append((name, Interval(mean, float(ends[0]), float(ends[1])), p))
    corrected = holm(np.array([p for _, _, p in found]))
    return tuple(Compared(n, i, p, float(c)) for (n, i, p), c in zip(found, corrected, strict=True))


def holm(p: Float[np.ndarray, " tried"]) -> Float[np.ndarray, " tried"]:
    """Holm's corrected p-values.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    m = len(p)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(np.minimum(1.0, p[order] * (m - np.arange(m))))
    out = np.empty(m)
    out[order] = stepped
    return out
