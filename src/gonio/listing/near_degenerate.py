"""Degeneracies that rounding breaks: a second reading of a head whose numbers were meant to be others.

Points that lie on one line on paper (.8, .55, 1) do not once the decimals are rounded to floats, and a listing that
takes floats as the rationals they are then finds label sets in slivers as thin as the rounding. There are two other
readings:

    decimals    each number is the shortest decimal that its float prints as: 0.55, not 0.55000000000000004441. Exact
                arithmetic again, and the one taken where the numbers have few digits
    tolerance   values as small as rounding count as zero, where they are far below all others (sqrt(1/2), say, is no
                decimal)

Which one was meant, only the owner of the numbers knows: both counts are told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.listing.oriented_matroid import chirotope

if TYPE_CHECKING:
    from gonio.listing.pattern import Patterns

DIGITS = {8: 12, 4: 6}  # significant digits, by bytes of a number, up to which a decimal is taken as meant
ROUNDING = {8: 2.0**-43, 4: 2.0**-19}  # up to this, against rows of length 1, a value may be rounding
FAR = 1000  # and only where all others are so many times as large
SMALL = 200_000  # patterns up to which a second reading is looked for
MINORS = 1_000_000  # and minors up to which they are compared


@dataclass(frozen=True, eq=False)
class NearDegenerate:
    """A second reading of the numbers, with another count.

    reading   "decimals" or "tolerance"
    count     how many patterns there are then
    minors    how many maximal minors that are not zero as stored are zero then (None: too many to look at)
    patterns  the collection of that reading
    """

    reading: str
    count: int
    minors: int | None
    patterns: Patterns

    def __str__(self) -> str:
        which = "the values" if self.minors is None else f"the {self.minors:,} minor{'s' * (self.minors != 1)}"
        if self.reading == "decimals":
            return f"with the numbers read as the decimals they print as, which makes {which} of rounding size zero"
        return f"with {which} that are of rounding size (up to {self.patterns.tol:.1g}) taken as zero"

    def to_dict(self) -> dict[str, Any]:
        """The second reading in plain values."""
        tol = self.patterns.tol
        return {"reading": self.reading, "count": self.count, "minors_taken_as_zero": self.minors, "tolerance": tol}


def as_printed(head: Head) -> Head | None:
    """The head whose numbers are the shortest decimals that its floats print as, times one power of ten.

    The whole numbers it holds are exact in floats, and one positive factor changes no pattern. None where a number has
    too many digits for a decimal to have been meant.
    """
    tables = [head.W] if head.bias is None else [head.W, head.bias]
    if not all(_short(t) for t in tables):
        return None
    numbers = [[Decimal(np.format_float_positional(v, trim="-")) for v in t.reshape(-1)] for t in tables]
    places = max(max(0, -int(x.as_tuple().exponent)) for t in numbers for x in t)
    whole = [[int(x.scaleb(places)) for x in t] for t in numbers]
    if max(abs(v) for t in whole for v in t) >= 1 << 53:
        return None
    W = np.array(whole[0], np.float64).reshape(head.shape)
    bias = None if head.bias is None else np.array(whole[1], np.float64)
    return Head(W, bias, link=head.link, labels=head.labels, inputs=head.inputs)


def _short(table: np.ndarray) -> bool:
    """Whether every number has few significant digits; the first that has many ends the look."""
    most = DIGITS.get(table.dtype.itemsize, 0)
    values = table.reshape(-1)
    with np.errstate(all="ignore"):
        some = np.char.mod(f"%.{most - 1}e", values[:64].astype(np.float64)).astype(table.dtype)
    if not (some == values[:64]).all():
        return False
    return bool((np.char.mod(f"%.{most - 1}e", values.astype(np.float64)).astype(table.dtype) == values).all())


def second_reading(stored: Patterns) -> NearDegenerate | None:
    """Another reading of the numbers behind some patterns, where it counts otherwise; None where there is none.

    Looked for among up to 200,000 patterns.
    """
    if stored.tol is not None or not 1 < stored.most <= SMALL:
        return None
    printed = as_printed(stored.head)
    if printed is not None:
        other = stored._with_numbers(printed, None)
        if other.count == stored.count:
            return None
        return NearDegenerate("decimals", other.count, _more_zeros(stored, other), other)
    tol = ROUNDING.get(stored.head.W.dtype.itemsize)
    if tol is None:
        return None
    other = stored._with_numbers(stored.head, tol)
    try:
        low, high = other._tolerance_gap()
        if high < FAR * max(low, tol / FAR) or other.count == stored.count:
            return None
    except GonioError:  # signs stay in doubt at this tolerance
        return None
    return NearDegenerate("tolerance", other.count, None, other)


def _more_zeros(stored: Patterns, other: Patterns) -> int | None:
    """How many more maximal minors of the rows are zero in the other reading."""
    rows, again = stored._exact_rows(), other._exact_rows()
    if math.comb(len(rows), min(len(rows), len(rows[0]))) > MINORS:
        return None
    one, two = chirotope(rows), chirotope(again)
    return int(((one != 0) & (two == 0)).sum()) if one.shape == two.shape else None
