"""Which cosines of two label vectors can be reached while the model stays the same, and how far away they are.

With a, b the two rows, delta = a - b, L = |delta|: moving the rows by v is moving the origin to p = -v, and the cosine
of a + v and b + v is that of the angle under which p sees the segment from a to b. All p that see it under one angle
theta form a spindle torus around the line through a and b: in the half-plane (s, r) spanned by the line and p, the part
r > 0 of the circle with centre (0, (L/2) cot theta) and radius L / (2 sin theta). The smallest translation projects the
origin on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head, Label

if TYPE_CHECKING:
    from jaxtyping import Float

CLEAR = 1e-6  # a moved row shorter than this share of |a - b| is mostly rounding
NEAR = 0.01  # where a least translation does not exist, one is given that is longer by this share of |a - b|


@dataclass(frozen=True)
class Reach:
    """The cosines that a group of changes can give a pair: from low to high, each end reached or only approached."""

    low: float
    high: float
    low_reached: bool
    high_reached: bool
    why: str
    only_ends: bool = False  # nothing between the ends: in one dimension, and for multiples of one vector

    def __contains__(self, cosine: float) -> bool:
        if self.only_ends and self.low < cosine < self.high:
            return False
        if cosine == self.low:
            return self.low_reached
        if cosine == self.high:
            return self.high_reached
        return self.low < cosine < self.high

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:g} only" if self.low_reached else "nothing"
        if self.only_ends:
            return f"{self.low:g} and {self.high:g}, nothing between"
        return f"{'[' if self.low_reached else '('}{self.low:g}, {self.high:g}{']' if self.high_reached else ')'}"


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """a.b / (|a| |b|); NaN where one of them is zero."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    top = max(np.abs(a).max(), np.abs(b).max())
    if top == 0:
        return float("nan")
    a, b = a / (np.abs(a).max() or 1), b / (np.abs(b).max() or 1)  # no square overflows or vanishes
    length = np.linalg.norm(a) * np.linalg.norm(b)
    if length == 0:
        return float("nan")
    return float(np.clip(a @ b / length, -1, 1))


def by_translation(a: np.ndarray, b: np.ndarray) -> Reach:
    """All of [-1, 1] for two different rows in two or more dimensions.

    Equal rows stay at 1; in one dimension only -1 and 1 exist.

    Claims: NG26.T3.4, GONIO.1.6
    """
    if np.array_equal(a, b):
        why = "the two rows are equal and stay so under every translation"
        return Reach(1.0, 1.0, True, True, why)
    if len(a) == 1:
        return Reach(-1.0, 1.0, True, True, "in one dimension a cosine is -1 or 1", only_ends=True)
    return Reach(-1.0, 1.0, True, True, "adding one vector to all rows gives this pair every cosine")


def by_linear_map(a: np.ndarray, b: np.ndarray) -> Reach:
    """All of (-1, 1) for independent rows under g -> M g; dependent rows keep their 1 or -1.

    Claims: GONIO.1.6
    """
    c = cosine(a, b)
    if np.isnan(c):
        return Reach(0.0, 0.0, False, False, "one row is zero and stays so under every linear map")
    if dependent(a, b):
        c = float(np.sign(c))
        return Reach(c, c, True, True, "the two rows are multiples of each other and stay so under every linear map")
    return Reach(-1.0, 1.0, False, False, "an invertible map of all rows gives this pair every cosine but -1 and 1")


def dependent(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two rows are exact multiples, one of them maybe zero: a_k b_l = a_l b_k for the largest entry l."""
    from fractions import Fraction

    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if not a.any() or not b.any():
        return True
    if abs(cosine(a, b)) < 1 - 1e-9:
        return False
    k = int(np.argmax(np.abs(a)))
    ak, bk = Fraction(float(a[k])), Fraction(float(b[k]))
    return all(Fraction(float(x)) * bk == Fraction(float(y)) * ak for x, y in zip(a, b, strict=True))


@dataclass(frozen=True, eq=False)
class Shift:
    """A translation that brings a pair to a cosine: `v`, its length, and the least length any such translation has.

    Where the least length is only approached (`attained` false), `v` is a little longer.
    """

    v: Float[np.ndarray, " dim"]
    length: float
    least: float
    attained: bool


def smallest_translation(a: Any, b: Any, target: float) -> Shift:
    """The shortest v with cos(a + v, b + v) = target.

    Projects the origin on the spindle torus of points that see the segment ab under the angle arccos(target); for
    -1 on the segment between a and b, for +1 on the rest of their line.

    >>> smallest_translation([1, 0.5], [0.5, 1], -1).v
    array([-0.75, -0.75])

    Claims: GONIO.1.6
    """
    a, b = (_row(x, name) for x, name in ((a, "a"), (b, "b")))
    reach = by_translation(a, b)
    if not -1 <= target <= 1 or target not in reach:
        raise GonioError(f"smallest_translation: the cosine {target:g} cannot be reached; {reach.why}: {reach}.")
    now = cosine(a, b)
    # Parallel rows are at +-1 whatever the rounding of their cosine.
    if now == target or (abs(target) == 1 and now * target > 0 and dependent(a, b)):
        return _shift(np.zeros_like(a), 0.0, True)
    if np.array_equal(a, b):  # both zero: their cosine is undefined, and any translation makes it 1
        v = np.zeros_like(a)
        v[0] = 1.0
        return _shift(v, 0.0, False)
    scale = max(np.abs(a).max(), np.abs(b).max())
    s = _torus(a / scale, b / scale, target) if abs(target) < 1 else _line(a / scale, b / scale, target)
    return _shift(s.v * scale, s.least * scale, s.attained)


def _row(x: Any, name: str) -> np.ndarray:
    return checks.vector(x, "smallest_translation", name, per="dimension").astype(np.float64)


def _shift(v: np.ndarray, least: float, attained: bool) -> Shift:
    v.flags.writeable = False
    length = float(np.linalg.norm(v))
    return Shift(v, length, length if attained else least, attained)


def _frame(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float, np.ndarray, float]:
    """Midpoint m, unit u along a - b, L, and the origin as m + s0 u + r0 e with e a unit vector orthogonal to u."""
    delta = a - b
    length = float(np.linalg.norm(delta))
    m, u = (a + b) / 2, delta / length
    s0 = float(-m @ u)
    y = -m - s0 * u
    y -= (y @ u) * u  # once more: the first subtraction may have cancelled
    r0 = float(np.linalg.norm(y))
    if r0 > 1e-14 * (np.linalg.norm(m) + length):
        return m, u, length, s0, y / r0, r0
    return m, u, length, s0, perpendicular(u) if len(u) > 1 else np.zeros(1), 0.0


def perpendicular(u: np.ndarray) -> np.ndarray:
    """A unit vector orthogonal to the unit vector u: the coordinate axis least aligned with it, made orthogonal."""
    e = np.zeros_like(u)
    e[int(np.argmin(np.abs(u)))] = 1.0
    e -= (e @ u) * u
    return e / np.linalg.norm(e)


def _torus(a: np.ndarray, b: np.ndarray, target: float) -> Shift:
    m, u, length, s0, e, r0 = _frame(a, b)
    sine = np.sqrt((1 - target) * (1 + target))
    centre, radius = length / 2 * target / sine, length / 2 / sine
    away = np.array([s0, r0 - centre])
    far = np.linalg.norm(away)
    away = away / far if far > 1e-14 * radius else np.array([0.0, 1.0])  # at the centre every point is as near
    s, r = radius * away[0], centre + radius * away[1]
    if r > CLEAR * length:
        return _shift(-(m + s * u + r * e), 0.0, True)
    # The nearest point of the circle lies below the line, where the angle is another, or so near an end of the arc, at
    # a or b, that one of the moved rows would be nothing but rounding.
    end = a if np.linalg.norm(a) <= np.linalg.norm(b) else b
    side = length / 2 if end is a else -length / 2
    # A point of the arc near that end: turn from the end's direction, seen from the centre, towards the arc.
    start = np.arctan2(-centre, side)
    step = np.sign(side) * NEAR * length / radius
    s, r = radius * np.cos(start + step), centre + radius * np.sin(start + step)
    return _shift(-(m + s * u + r * e), float(np.linalg.norm(end)), False)


def _line(a: np.ndarray, b: np.ndarray, target: float) -> Shift:
    m, u, length, s0, _, _ = _frame(a, b)
    clearance = (length / 2 - abs(s0)) * (1 if target == -1 else -1)
    if clearance > CLEAR * length:
        return _shift(-(m + s0 * u), 0.0, True)
    end = np.copysign(length / 2, s0) if s0 else length / 2  # the end nearer to the origin's foot
    s = end * (1 - 2 * NEAR) if target == -1 else end * (1 + 2 * NEAR)
    return _shift(-(m + s * u), float(min(np.linalg.norm(a), np.linalg.norm(b))), False)


def plain_translation(a: Any, b: Any, target: float) -> np.ndarray:
    """The papers' translation: -(a+b)/2 for -1 (Lemma 3.2), -a + (b-a)/2 for +1 (Lemma 3.3), and between them
    -(a+b)/2 + h e with h = (L/2) sqrt((1+c)/(1-c)) and e orthogonal to a - b.

    Claims: NG26.L3.2, NG26.L3.3
    """
    a, b = (_row(x, name) for x, name in ((a, "a"), (b, "b")))
    reach = by_translation(a, b)
    if not -1 <= target <= 1 or target not in reach:
        raise GonioError(f"plain_translation: the cosine {target:g} cannot be reached; {reach.why}: {reach}.")
    if target == 1:
        return -a + (b - a) / 2 if not np.array_equal(a, b) else np.where(a.any(), 0.0, 1.0) * np.ones_like(a)
    middle = -(a + b) / 2
    if target == -1:
        return middle
    delta = a - b
    length = float(np.linalg.norm(delta))
    return middle + length / 2 * np.sqrt((1 + target) / (1 - target)) * perpendicular(delta / length)


def fragility(head: Head, a: Label, b: Label, target: float = 0.0) -> float:
    """How fragile the printed cosine of two labels is: the least translation that brings it to `target` over the mean
    row norm. Far below 1 means that a small common offset, which no prediction sees, rewrites it.

    Infinite where no translation reaches the target.
    """
    i, j = head.index(a), head.index(b)
    mean = float(head.norms.mean())
    if mean == 0:
        return float("inf")
    try:
        return smallest_translation(head[i], head[j], target).least / mean
    except GonioError:
        return float("inf")
