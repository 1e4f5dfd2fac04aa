"""Proofs about comparisons of scores: can these all hold at one input?

A comparison says that one score is above another, or above or below zero. A label set is a comparison with zero for
every label, a ranking a chain of them, a top-k set "each of these above each of the others".

    Possible     an input at which they all hold
    Impossible   comparisons with weights whose weighted sum is never positive, so they never all hold
    Open         neither was proven
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gonio.core.float_units import TINY, UNIT
from gonio.core.head import Head
from gonio.proofs import exact_numbers
from gonio.proofs.certificate_base import Certificate, fix
from gonio.proofs.exact_numbers import Dyadic
from gonio.proofs.margins import SLACK, Places
from gonio.proofs.never_below import NEAR, proven
from gonio.proofs.rival_mean import LONG, RivalMean

if TYPE_CHECKING:
    from jaxtyping import Int

ZERO = -1  # in place of a label: the number 0
NOBODY = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class WeightedComparisons(RivalMean):
    """Comparisons with weights, as a mean: D.z + B is what the lower scores have on the higher ones, weighted."""

    above: Int[np.ndarray, " some"] = field(default_factory=lambda: NOBODY)
    below: Int[np.ndarray, " some"] = field(default_factory=lambda: NOBODY)

    def _of(self, which: np.ndarray, side: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        label = side[which]
        rows = self.head.rows[np.maximum(label, 0)].astype(LONG)
        rows[label == ZERO] = 0
        bias = np.zeros(len(which), LONG)
        if self.head.bias is not None:
            bias = np.where(label == ZERO, 0, self.head.bias[np.maximum(label, 0)]).astype(LONG)
        return rows, bias

    def columns(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """v_below - v_above, c_below - c_above and the size of the latter's terms, in long floats."""
        gain, shift = (v.astype(LONG) for v in self.head.inputs.gain_and_shift(self.head.shape[1]))
        which = self.rivals[which]
        (low, c), (high, e) = self._of(which, self.below), self._of(which, self.above)
        rows, c = low - high, c - e
        size = np.abs(c)
        if shift.any():
            c, size = c + rows @ shift, size + np.abs(rows) @ np.abs(shift)
        return rows * gain, c, size

    def exactly(self) -> tuple[Dyadic, Dyadic]:
        """The same as exact numbers."""
        gain, shift = self.head.inputs.gain_and_shift(self.head.shape[1])
        rows, c = None, None
        for side, sign in ((self.below, 1), (self.above, -1)):
            label = side[self.rivals]
            table = self.head.rows[np.maximum(label, 0)].astype(np.float64) * (label != ZERO)[:, None] * sign
            bias = np.zeros(len(label)) if self.head.bias is None else self.head.bias[np.maximum(label, 0)]
            more = Dyadic.of(bias.astype(np.float64) * (label != ZERO) * sign)
            rows = Dyadic.of(table) if rows is None else rows + Dyadic.of(table)
            c = more if c is None else c + more
        assert rows is not None
        assert c is not None
        return rows * Dyadic.of(gain), c + rows @ Dyadic.of(shift)


@dataclass(frozen=True, eq=False, repr=False)
class _Comparisons(Certificate):
    above: np.ndarray
    below: np.ndarray
    top: np.ndarray

    def __post_init__(self) -> None:
        for name in ("above", "below", "top"):
            fix(self, name, int)

    def _sound(self, head: Head) -> None:
        """The form of the question: labels of the head, as many above as below, none above itself."""
        self._check(head)
        n = head.shape[0]
        if self.above.shape != self.below.shape:
            raise self._refuse(
                f"it names {len(self.above)} scores above and {len(self.below)} below; as many are needed."
            )
        for side in (self.above, self.below, self.top):
            if len(side) and not (side.min() >= (0 if side is self.top else ZERO) and side.max() < n):
                raise self._refuse(f"it names labels that are not among 0 to {n - 1} of the head.")
        if (self.above == self.below).any():
            raise self._refuse("it compares a score with itself.")
        if not len(self.above) and not len(self.top):
            raise self._refuse("it compares nothing.")

    def _asked(self) -> str:
        parts = [f"{len(self.above)} comparisons"] if len(self.above) else []
        if len(self.top):
            parts.append(f"{len(self.top)} labels above all others")
        return " and ".join(parts)


@dataclass(frozen=True, eq=False, repr=False)
class Possible(_Comparisons):
    """At x, an embedding that can reach the head, every comparison holds strictly.

    score_above - score_below > 0 for each, and each of `top` above every label that is not in `top`.
    """

    x: np.ndarray
    kind: ClassVar[str] = "possible"

    def __post_init__(self) -> None:
        super().__post_init__()
        fix(self, "x", float)

    def verify(self, head: Head) -> float:
        """A proven lower bound of the smallest difference, above 0; infinite where nothing is compared."""
        self._sound(head)
        places = self._place(head, self.x)
        value = least_gap(head, self.above, self.below, self.top, places)
        if not value > 0:
            raise self._refuse("at x not all of its comparisons hold.")
        return value

    def _words(self) -> tuple[str, str]:
        return self._asked(), f"at an x of width {len(self.x)} and norm {np.linalg.norm(self.x):.4g}"


@dataclass(frozen=True, eq=False, repr=False)
class Impossible(_Comparisons):
    """Over the head's inputs the comparisons never all hold.

    min_k (score_above - score_below)  <=  sum_k w_k (score_above - score_below)_k  <=  0,   w >= 0, sum w = 1

    It names only the comparisons that the proof needs. Over `Observed` inputs the weights are empty: at each of the
    embeddings some comparison fails.
    """

    weights: np.ndarray
    kind: ClassVar[str] = "impossible"

    def __post_init__(self) -> None:
        super().__post_init__()
        fix(self, "weights", float)

    def verify(self, head: Head) -> float:
        """A proven upper bound, at most 0, of the smallest difference at any input."""
        self._sound(head)
        if head.inputs.points is not None:
            if len(self.weights):
                raise self._refuse("over observed embeddings comparisons have no weights; leave them empty.")
            best = max(
                least_gap(head, self.above, self.below, self.top, Places(head.inputs, x[None].astype(np.float64)))
                for x in head.inputs.points
            )
            if best > 0:
                raise self._refuse("all of its comparisons hold at one of the observed embeddings.")
            return best
        w = self.weights.astype(np.float64)
        if len(self.top):
            raise self._refuse("a proof with weights names each comparison; leave `top` empty.")
        if w.shape != self.above.shape or not (np.isfinite(w).all() and (w >= 0).all() and abs(w.sum() - 1) <= NEAR):
            raise self._refuse("its weights are not one non-negative number a comparison, with sum 1.")
        use = np.flatnonzero(w > 0)
        mean = WeightedComparisons(head, -1, use, w[use], np.zeros(len(use), bool), self.above, self.below)
        value = proven(mean)
        if value is None:
            raise self._refuse(f"undecided: its {len(use)} weights do not prove that its comparisons never all hold.")
        return value

    def _words(self) -> tuple[str, str]:
        name = lambda i: "0" if i == ZERO else f"label {i}"  # noqa: E731
        order = np.argsort(-self.weights)[:3] if len(self.weights) else np.arange(min(3, len(self.above)))
        some = ", ".join(f"{name(self.above[k])} > {name(self.below[k])}" for k in order)
        return self._asked(), f"never all hold: {some}{' ...' if len(self.above) > 3 else ''}"


@dataclass(frozen=True, eq=False, repr=False)
class Open(_Comparisons):
    """Neither proven: the comparisons are on the edge, or a search gave up."""

    bound: float
    why: str
    kind: ClassVar[str] = "open"

    def verify(self, head: Head) -> float:
        """Nothing is proven: always raises."""
        self._sound(head)
        raise self._refuse(f"it proves nothing ({self.why}).")

    def _words(self) -> tuple[str, str]:
        return self._asked(), f"holds by at most about {self.bound:.3g}; {self.why}"


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


def least_gap(
    head: Head,
    above: Int[np.ndarray, " some"],
    below: Int[np.ndarray, " some"],
    top: Int[np.ndarray, " some"],
    places: Places,
) -> float:
    """A proven lower bound of the smallest difference at one place; at most 0 where not all comparisons are proven."""
    used = None if len(top) else np.unique(np.concatenate([above, below, NOBODY]))
    used = None if used is None else used[used != ZERO]
    score, bound = scores_with_bounds(head, places, used)
    at = np.full(head.shape[0] + 1, -1)  # the last place stands for zero
    at[np.arange(head.shape[0]) if used is None else used] = np.arange(len(score))
    score, bound = np.append(score, 0.0), np.append(bound, 0.0)
    at[-1] = len(score) - 1
    value = np.inf
    for a, b in ((above, below),):
        if len(a):
            i, j = at[a], at[b]
            gap = score[i] - score[j]
            off = (bound[i] + bound[j] + 2 * UNIT * np.abs(gap)) * SLACK
            clear = gap > off
            if clear.any():
                value = min(value, float((gap - off)[clear].min()))
            for k in np.flatnonzero(~clear):
                value = min(value, _exactly(head, int(a[k]), int(b[k]), places))
                if value <= 0:
                    return value
    if len(top):
        others = np.setdiff1d(np.arange(head.shape[0]), top)
        if not len(others):
            return value
        least, most = (score - bound)[top], (score + bound)[others]
        gap = float(least.min() - most.max())
        if gap > 0:
            return min(value, gap * (1 - 4 * UNIT))
        low = [int(i) for i, v in zip(top, least, strict=True) if v <= most.max()]
        high = [int(j) for j, v in zip(others, most, strict=True) if v >= least.min()]
        if len(low) * len(high) > 1_000_000:
            return -1.0
        value = min(value, *(_exactly(head, i, j, places) for i in low for j in high))
    return value


def _exactly(head: Head, i: int, j: int, places: Places) -> float:
    """score_i - score_j at the exact embedding, rounded down; ZERO stands for the number 0."""
    d = head.shape[1]
    row, bias = Dyadic.of(np.zeros(d)), Dyadic.of(np.zeros(1))[0]
    for label, sign in ((i, 1.0), (j, -1.0)):
        if label != ZERO:
            row = row + Dyadic.of(head.rows[label : label + 1][0].astype(np.float64) * sign)
            if head.bias is not None:
                bias = bias + Dyadic.of(head.bias[label : label + 1].astype(np.float64) * sign)[0]
    numerator, denominator = (row @ Dyadic.of(places.x[0]) + bias).ratio()
    if places.drift[0]:
        mean = places.exact_drift(0)
        p, q = (row @ Dyadic.of(places.inputs.gain_and_shift(d)[0])).ratio()
        over = int(mean.q) * q
        numerator, denominator = numerator * over - int(mean.p) * p * denominator, denominator * over
    return exact_numbers.rounded(numerator, denominator, up=False)
