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

from gonio.core.head import Head
from gonio.proofs.certificate_base import Certificate, fix
from gonio.proofs.exact_numbers import Dyadic
from gonio.proofs.margins import Places
from gonio.proofs.never_below import NEAR, proven
from gonio.proofs.rival_mean import LONG, RivalMean
from gonio.proofs.score_gaps import NOBODY, ZERO, least_gap

if TYPE_CHECKING:
    from jaxtyping import Int


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

    @property
    def subject(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        return tuple(self.above.tolist()), tuple(self.below.tolist()), tuple(self.top.tolist())

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
        value = least_gap(head, self.above, self.below, self.top, places).at_least
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
            places = (Places(head.inputs, x[None].astype(np.float64)) for x in head.inputs.points)
            best = max(least_gap(head, self.above, self.below, self.top, at).at_most for at in places)
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
