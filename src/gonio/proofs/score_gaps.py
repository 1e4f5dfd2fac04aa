"""The smallest of some differences of scores at one embedding, between two floats; its sign is exact.

Scores come in floats with a bound of the error of each; where the bounds of two overlap, both are taken exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.float_units import TINY, UNIT
from gonio.core.head import Head
from gonio.proofs import exact_numbers
from gonio.proofs.exact_numbers import Dyadic
from gonio.proofs.margins import SLACK, Places

if TYPE_CHECKING:
    from jaxtyping import Int

ZERO = -1  # in place of a label: the number 0
NOBODY = np.zeros(0, np.int64)


def scores_with_bounds(head: Head, places: Places, labels: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Scores at one place and a bound of the error of each, for all labels or some."""
    d = head.shape[1]
    x = places.x[0]
    gain = np.abs(places.inputs.gain_and_shift(d)[0])
    blocks = head.blocks() if labels is None else [(0, head.rows[labels])]
    s, b = [], []
    with np.errstate(all="ignore"):
        for _, rows in blocks:
            rows = rows.astype(np.float64)
            s.append(rows @ x)
            b.append((d + 8) * UNIT * (np.abs(rows) @ np.abs(x)) + float(places.drift[0]) * (np.abs(rows) @ gain))
        score, bound = np.concatenate(s), np.concatenate(b)
        if head.bias is not None:
            bias = head.bias.astype(np.float64) if labels is None else head.bias[labels].astype(np.float64)
            score, bound = score + bias, bound + 8 * UNIT * (np.abs(score) + np.abs(bias))
    return score, bound * SLACK + TINY


@dataclass(frozen=True)
class LeastGap:
    """The smallest of some differences of scores lies between these two; both infinite where there is none."""

    at_least: float
    at_most: float

    def and_also(self, other: LeastGap) -> LeastGap:
        """The smallest of these differences and of others."""
        return LeastGap(min(self.at_least, other.at_least), min(self.at_most, other.at_most))


NOTHING = LeastGap(np.inf, np.inf)


def least_gap(
    head: Head,
    above: Int[np.ndarray, " some"],
    below: Int[np.ndarray, " some"],
    top: Int[np.ndarray, " some"],
    places: Places,
) -> LeastGap:
    """The smallest difference at one place, enclosed: its sign is proven, by exact numbers where floats cannot tell."""
    used = None if len(top) else np.unique(np.concatenate([above, below, NOBODY]))
    used = None if used is None else used[used != ZERO]
    score, bound = scores_with_bounds(head, places, used)
    at = np.full(head.shape[0] + 1, -1)  # the last place stands for zero
    at[np.arange(head.shape[0]) if used is None else used] = np.arange(len(score))
    at[-1] = len(score)
    score, bound = np.append(score, 0.0), np.append(bound, 0.0)
    with np.errstate(all="ignore"):
        found = _least_of_pairs(head, above, below, places, (score - bound)[at], (score + bound)[at])
        if len(top):
            found = found.and_also(_least_of_top(head, top, places, score - bound, score + bound))
    return found


def _least_of_pairs(
    head: Head, above: np.ndarray, below: np.ndarray, places: Places, least: np.ndarray, most: np.ndarray
) -> LeastGap:
    """The smallest score_above - score_below, given bounds of all scores."""
    if not len(above):
        return NOTHING
    low, high = least[above] - most[below], most[above] - least[below]
    low, high = low - 2 * UNIT * np.abs(low), high + 2 * UNIT * np.abs(high)
    found = NOTHING
    sure = low > 0  # not where one is NaN
    if sure.any():
        found = LeastGap(float(low[sure].min()), float(high[sure].min()))
    for k in np.flatnonzero(~sure):
        gap = exact_score(head, int(above[k]), places) - exact_score(head, int(below[k]), places)
        found = found.and_also(_rounded(gap))
    return found


def _least_of_top(head: Head, top: np.ndarray, places: Places, least: np.ndarray, most: np.ndarray) -> LeastGap:
    """The smallest score of `top` less the largest of all other labels."""
    others = np.setdiff1d(np.arange(head.shape[0]), top)
    if not len(others):
        return NOTHING
    low, high = least[top].min(), most[others].max()  # NaN where one is
    gap = low - high
    if gap > 0:
        return LeastGap(float(gap * (1 - 4 * UNIT)), float((most[top].min() - least[others].max()) * (1 + 4 * UNIT)))
    # Exact scores of those that overlap; the rest is above them, or below, by its bounds.
    lowest, rest_of_top = _split(top, ~(least[top] > high))
    highest, rest = _split(others, ~(most[others] < low))
    of_top = min(exact_score(head, int(i), places) for i in lowest)
    of_others = max(exact_score(head, int(j), places) for j in highest)
    between = _rounded(of_top - of_others)
    if not between.at_least > 0:
        return between
    with_rest = [between.at_least]
    if len(rest_of_top):
        with_rest.append(_rounded(_fraction(least[rest_of_top].min()) - of_others).at_least)
    if len(rest):
        with_rest.append(_rounded(of_top - _fraction(most[rest].max())).at_least)
    if len(rest_of_top) and len(rest):
        with_rest.append(_rounded(_fraction(least[rest_of_top].min()) - _fraction(most[rest].max())).at_least)
    return LeastGap(min(with_rest), between.at_most)


def _split(labels: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return labels[which], labels[~which]


def _fraction(value: float) -> Fraction:
    """A finite float as the rational it is."""
    return Fraction(float(value))


def _rounded(value: Fraction) -> LeastGap:
    """A rational between two floats."""
    n, q = value.numerator, value.denominator
    return LeastGap(exact_numbers.rounded(n, q, up=False), exact_numbers.rounded(n, q, up=True))


def exact_score(head: Head, label: int, places: Places) -> Fraction:
    """w.x + b at the exact embedding of one place; ZERO stands for the number 0."""
    if label == ZERO:
        return Fraction(0)
    row = Dyadic.of(head.rows[label : label + 1][0].astype(np.float64))
    value = row @ Dyadic.of(places.x[0])
    if head.bias is not None:
        value = value + Dyadic.of(head.bias[label : label + 1].astype(np.float64))[0]
    score = Fraction(*value.ratio())
    if places.drift[0]:
        mean = places.exact_drift(0)
        gain = Dyadic.of(places.inputs.gain_and_shift(head.shape[1])[0])
        score -= Fraction(int(mean.p), int(mean.q)) * Fraction(*(row @ gain).ratio())
    return score
