"""Judged pairs by tenths of frequency: does a similarity stand beyond people's judgement, or agree less with it, there?

    beyond people   mean over a tenth of the similarity minus what people's judgement predicts, in standard deviations
    agreement       Spearman's correlation of the similarity and people within a tenth

Labels share pairs, so the intervals come from frequencies dealt anew among the labels: the number plus and minus the
95 % half-width of what the same tenth gives then, around its mean. Each tenth is judged by itself.
"""

from __future__ import annotations

import numpy as np

from gonio.core.correlations import spearman
from gonio.studies.study import Measured

TENTHS, DEALS = 10, 499


def by_tenths(
    kind: str, z: np.ndarray, pairs: np.ndarray, people: np.ndarray, log2: np.ndarray, seed: int
) -> list[Measured]:
    """Both numbers of every tenth, the rarest first, and the agreement of the most frequent minus that of the rarest.

    Parameters
    ----------
    z : the similarity of each pair, standardised
    log2 : of each label, log2 of how often it occurs; a pair has the mean of its two
    """
    X = np.column_stack([np.ones(len(z)), people])
    rest = z - X @ np.linalg.lstsq(X, z, rcond=None)[0]

    def numbers(f: np.ndarray) -> np.ndarray:
        parts = np.array_split(np.argsort(f[pairs].mean(axis=1), kind="stable"), TENTHS)
        agreement = [spearman(z[t], people[t]) for t in parts]
        return np.array([*(rest[t].mean() for t in parts), *agreement, agreement[-1] - agreement[0]])

    rng = np.random.default_rng(seed)
    labels = np.unique(pairs)
    null = []
    for _ in range(DEALS):
        f = log2.copy()
        f[labels] = rng.permutation(log2[labels])
        null.append(numbers(f))
    dealt = np.array(null)
    half = np.nanquantile(np.abs(dealt - np.nanmean(dealt, axis=0)), 0.95, axis=0)
    seen = numbers(log2)
    sizes = [len(t) for t in np.array_split(np.arange(len(z)), TENTHS)]
    names = [f"{kind} beyond people, {_tenth(k)}" for k in range(TENTHS)]
    names += [f"agreement of {kind} with people, {_tenth(k)}" for k in range(TENTHS)]
    names.append(f"agreement of {kind} with people, most frequent minus rarest tenth")
    hows = [f"{s} pairs; {DEALS} deals" for s in [*sizes, *sizes]] + [f"{sizes[-1]} pairs a tenth; {DEALS} deals"]
    return [
        Measured(name, float(v), float(v - h), float(v + h), how)
        for name, v, h, how in zip(names, seen, half, hows, strict=True)
    ]


def beyond_people_words(n: dict[str, Measured]) -> str:
    """Which tenths lie above and which below what people's judgement predicts, for each similarity; rarest is 1."""
    kinds = [k.partition(" beyond people")[0] for k in n if k.endswith(f" beyond people, {_tenth(0)}")]
    said = []
    for kind in kinds:
        tenths = [n[f"{kind} beyond people, {_tenth(k)}"] for k in range(TENTHS)]
        above = [str(k + 1) for k, m in enumerate(tenths) if m.above(0)]
        below = [str(k + 1) for k, m in enumerate(tenths) if m.below(0)]
        both = [f"{side} it in {', '.join(ks)}" for side, ks in (("above", above), ("below", below)) if ks]
        said.append(f"the {kind} lies {' and '.join(both)}" if both else f"the {kind} is not shown to lie apart")
    if not said:
        return ""
    return f"Beside what people's judgement predicts, by tenths of frequency from the rarest: {'; '.join(said)}."


def _tenth(k: int) -> str:
    end = {0: ", the rarest", TENTHS - 1: ", the most frequent"}.get(k, "")
    return f"tenth {k + 1}{end}"
