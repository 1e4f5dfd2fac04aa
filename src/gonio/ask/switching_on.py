"""Can this label ever be on? The largest and the smallest logit that a label of a sigmoid head can reach.

    inputs              largest logit of label i
    all                 infinite, unless w_i = 0: then b_i
    x >= 0              infinite if an entry of w_i is positive, else b_i
    box                 b_i + sum_k max(w_ik low_k, w_ik high_k)
    |z| < r (norms)     c_i + r |V_i|, approached and not reached
    observed            the largest of the observed ones

A label is on where its logit is above 0 (its probability above a half). One whose largest logit is not above 0 can
never be on; one whose smallest is not below 0 can never be off. Where the float is near 0, exact arithmetic tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.inputs import Problem

if TYPE_CHECKING:
    from jaxtyping import Float, Int

UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class CanBeOn:
    """For every label the range of its logit over the head's inputs, and who is always off or always on.

    low, high    the ends of the range, as floats (infinite where it has none)
    never_on     labels whose logit is above 0 at no input: proven
    never_off    labels whose logit is below 0 at no input: proven
    """

    head: Head
    low: Float[np.ndarray, " labels"]
    high: Float[np.ndarray, " labels"]
    never_on: Int[np.ndarray, " never_on"]
    never_off: Int[np.ndarray, " never_off"]

    def __post_init__(self) -> None:
        for a in (self.low, self.high, self.never_on, self.never_off):
            a.flags.writeable = False

    def to_dict(self) -> dict[str, Any]:
        """In plain values; an infinite end is None."""
        ends = {k: [float(v) if np.isfinite(v) else None for v in getattr(self, k)] for k in ("low", "high")}
        return {
            "head": self.head.digest,
            "never_on": self.never_on.tolist(),
            "never_off": self.never_off.tolist(),
        } | ends

    def __repr__(self) -> str:
        n = self.head.shape[0]
        return (
            f"CanBeOn({n:,} labels over {self.head.inputs})\n"
            f"  {len(self.never_on):,} can never be on, {len(self.never_off):,} never off"
        )


def can_be_on(head: Head) -> CanBeOn:
    """Which labels of a sigmoid head can be on, and which off, at some input, in closed form.

    >>> can_be_on(Head([[1.0, -2.0], [0.5, 0.5]], [-4.0, 0.0], link="sigmoid", inputs="box:-1,1")).never_on
    array([0])
    """
    head.must_score("can_be_on")
    if head.link != "sigmoid":
        raise GonioError(f"can_be_on: the link is {head.link!r}, whose labels are not on or off; ask can_win instead.")
    problem = head.inputs.reduce(head.W.astype(np.float64), head.bias)
    high, doubt = _largest(problem, 1.0)
    low, below = _largest(problem, -1.0)
    never_on = [
        int(i) for i in np.flatnonzero(high <= doubt) if not _reaches(problem, head, int(i), 1, high[i], doubt[i])
    ]
    never_off = [
        int(i) for i in np.flatnonzero(low <= below) if not _reaches(problem, head, int(i), -1, low[i], below[i])
    ]
    return CanBeOn(head, -low, high, np.array(never_on, np.int64), np.array(never_off, np.int64))


def _largest(p: Problem, sign: float) -> tuple[np.ndarray, np.ndarray]:
    """The supremum of sign * score for every label, and a bound of its rounding."""
    V, c = sign * p.V, sign * p.c
    d = V.shape[1]
    with np.errstate(all="ignore"):
        if p.shape == "space":
            more = np.where(V.any(axis=1), np.inf, 0.0)
            size = np.zeros(len(V))
        elif p.shape == "orthant":
            more = np.where((V > 0).any(axis=1), np.inf, 0.0)
            size = np.zeros(len(V))
        elif p.shape == "box":
            low, high = np.asarray(p.low), np.asarray(p.high)
            ends = np.maximum(_times(V, low), _times(V, high))
            more, size = ends.sum(axis=1), np.abs(np.where(np.isfinite(ends), ends, 0)).sum(axis=1)
        elif p.shape == "ball":
            more = size = float(p.radius or 0.0) * np.linalg.norm(V, axis=1)
        else:
            assert p.points is not None
            scores = np.vstack([(p.points[k : k + 1024] @ V.T).max(axis=0) for k in range(0, len(p.points), 1024)])
            more = scores.max(axis=0)
            size = np.abs(V) @ np.abs(p.points).max(axis=0)
        # V itself is rounded where a norm's gain multiplies the rows, and c where its shift does: 4 more steps.
        rounding = (2 * d + 8) * UNIT * (size + np.abs(c)) + 1e-300
    return more + c, np.where(np.isfinite(more), rounding, 0.0)


def _times(V: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """V * ends with 0 * inf = 0."""
    return np.where(V == 0, 0.0, V * ends)


def _reaches(p: Problem, head: Head, i: int, sign: int, value: float, doubt: float) -> bool:
    """Whether sign * score of label i is above 0 somewhere, exactly where the float cannot tell."""
    if value < -doubt:
        return False
    if value > doubt:
        return True
    w = [sign * Fraction(float(v)) for v in head[i]]
    b = sign * Fraction(float(head.bias[i])) if head.bias is not None else Fraction(0)
    if p.shape in ("space", "orthant"):
        return b > 0  # the rows that reach infinity were told apart before
    if p.shape == "box":
        ends = zip(w, np.asarray(p.low), np.asarray(p.high), strict=True)
        return b + sum((v * Fraction(float(hi if v > 0 else lo)) for v, lo, hi in ends if v), Fraction(0)) > 0
    if p.shape == "points":
        assert p.points is not None
        return any(
            b + sum((v * Fraction(float(x)) for v, x in zip(w, row, strict=True)), Fraction(0)) > 0 for row in p.points
        )
    return _ball_reaches(head, w, b)


def _ball_reaches(head: Head, w: list[Fraction], b: Fraction) -> bool:
    """Whether r |V| + c > 0 for one label after a norm, in whole numbers: it is where c > 0 or r^2 |V|^2 > c^2."""

    gain, shift = ([Fraction(float(v)) for v in a] for a in head.inputs.gain_and_shift(head.shape[1]))
    seen = [v * g for v, g in zip(w, gain, strict=True)]
    if head.inputs.to_dict()["kind"] == "layernorm":
        mean = sum(seen, Fraction(0)) / len(seen)
        seen = [v - mean for v in seen]
    c = b + sum((v * s for v, s in zip(w, shift, strict=True)), Fraction(0))
    squares = len(seen) * sum((v * v for v in seen), Fraction(0))
    return squares > c * c if c <= 0 else True
