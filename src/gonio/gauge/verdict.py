"""What same_model answers, and the limits between rounding and a difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.renderers import rendered
from gonio.gauge.leftover import Leftover
from gonio.gauge.rounding import RoundedTable, digits_of
from gonio.gauge.transforms import Transform

if TYPE_CHECKING:
    from jaxtyping import Int

SURE, CLEAR = (
    6.0,
    8.0,
)  # standard deviations of rounding: up to here an entry counts as rounding, from there it does not
HOPELESS = 0.1  # where rounding alone leaves this share of the rows, nothing can be told from them


@dataclass(frozen=True, eq=False)
class SameModel:
    """Whether head b is head a after a change that no prediction sees.

    same        True, False, or None where the heads alone cannot tell
    reason      in words
    transform   the change that takes a to b, where one fits; the best one otherwise
    residual    root mean square of what it leaves over, relative to the size of b's rows
    rounding    the residual that the rounding of the two tables alone would leave
    worst       the labels (rows of a) that fit least, worst first
    labels      how many labels were compared
    """

    same: bool | None
    reason: str
    transform: Transform | None
    residual: float
    rounding: float
    worst: Int[np.ndarray, " worst"]
    labels: int
    max_probability_difference: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The result in plain values, the transform left out for its size."""
        parts = {k: v for k, v in vars(self).items() if k != "transform"}
        return parts | {"worst": self.worst.tolist(), "transform": self.transform.name if self.transform else None}

    def _repr_html_(self) -> str:
        return rendered(self, "card")

    def __repr__(self) -> str:
        said = {True: "the same", False: "not the same", None: "cannot be told"}[self.same]
        figures = f"residual {self.residual:.2g}, rounding {self.rounding:.2g}, {self.labels:,} labels"
        return f"SameModel({said}; {figures})\n  {self.reason}"


@dataclass(frozen=True, eq=False)
class Pair:
    """The rows of two heads that stand for the same labels, and in words how they were matched."""

    a: RoundedTable
    b: RoundedTable
    how: str

    @property
    def count(self) -> int:
        return len(self.a.which)

    @property
    def shifts(self) -> bool:
        """Whether a vector added to all rows is convention."""
        return self.a.head.link == "softmax" and self.a.head.softcap is None

    @property
    def coarse(self) -> bool:
        return self.a.storage.coarse or self.b.storage.coarse

    @property
    def digits(self) -> int:
        return min(digits_of(t.storage.kind) for t in (self.a, self.b))

    def worst(self, errors: np.ndarray, most: int = 10) -> np.ndarray:
        """The labels that fit least, as rows of a."""
        return self.a.which[np.argsort(-errors)[:most]]


def judged(left: Leftover, pair: Pair, *, sharp: bool = False) -> bool | None:
    """Whether what is left is rounding: yes, no, or None in between."""
    even = left.entry <= CLEAR * max(left.spread, 1.0)
    if pair.digits >= 24 and even and left.overall > 1.5 and left.spread <= 2 * np.sqrt(pair.a.width) + 2:
        return None  # spread over all entries, and no more than sums computed in this type leave
    if left.entry > CLEAR or left.beyond or left.row[1] > 1 or left.overall > 2:
        # Of a product computed in float64 more than its own rounding may be left, by steps that the tables do not tell.
        return None if pair.digits == 53 and not sharp and left.residual < 1e-12 else False
    # A product computed in float64 has more rounding than can be foreseen entry by entry: an outlier is left open.
    stands_out = pair.digits == 53 and not sharp and left.entry > max(4.0, 16 * left.overall)
    if left.entry > SURE or left.row[0] > 1 or left.overall > 1.5 or stands_out:
        return None
    return True


def in_words(left: Leftover) -> str:
    """What is left, in words."""
    return (
        f"the best map leaves {left.residual:.2g} of the rows where rounding explains {left.rounding:.2g}; of one "
        f"entry {left.entry:.2g} times what rounding does"
    )


def verdict_of(left: Leftover, same: bool | None, reason: str, transform: Transform | None, pair: Pair) -> SameModel:
    worst = None if same else pair.worst(left.errors)
    return verdict(same, reason, transform, left.residual, left.rounding, pair.count, worst)


def verdict(
    same: bool | None, reason: str, transform: Transform | None, residual: float, rounding: float, labels: int,
    worst: np.ndarray | None = None, difference: float | None = None,
) -> SameModel:  # fmt: skip
    worst = np.empty(0, np.int64) if worst is None else worst
    worst.flags.writeable = False
    return SameModel(same, reason, transform, float(residual), float(rounding), worst, labels, difference)
