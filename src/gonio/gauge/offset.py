"""Do two tables differ by one vector, or by nothing, to rounding? Decided entry by entry, without a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gonio.core.parallel import in_threads
from gonio.gauge.rounding import RoundedTable, half_step, pieces

U = 2.0**-53
TWICE = 1 + 2.0**-7  # numbers rounded by way of a wider type are off by a little more than half a step


@dataclass(frozen=True, eq=False)
class Offset:
    """y_ik - x_ik = v_k to rounding for all i, if `fits`.

    v         a vector that fits, or the best one
    scattered whether what is left is spread over many entries and as small as a computation in float64 leaves
    residual, rounding   root mean squares of what v leaves and of what rounding allows, over the size of y (about its
              mean, if `free`)
    errors    for each label what v leaves of its worst entry, over what rounding allows
    """

    fits: bool
    v: np.ndarray
    scattered: bool
    residual: float
    rounding: float
    errors: np.ndarray


def offset_between(a: RoundedTable, b: RoundedTable, *, free: bool) -> Offset:
    """Whether some v (v = 0 unless `free`) lies within rounding of y_ik - x_ik for every label i.

    Entry ik allows the v_k between y - x - steps and y - x + steps; v exists if the largest lower end is at most the
    smallest upper end in every column. Tables of fewer than 16 bits are held to float32, in which they are read.
    """
    n = len(a.which)
    narrow = a.storage.coarse or b.storage.coarse

    def gaps(span: tuple[int, int]) -> tuple[np.ndarray, ...]:
        (x, ex), (y, ey) = a.block(span), b.block(span)
        if narrow:
            ex, ey = half_step(x, "float32"), half_step(y, "float32")
        gap = y - x
        return gap, (ex + ey) * TWICE + U * np.abs(gap), y

    def ends(span: tuple[int, int]) -> tuple[np.ndarray, ...]:
        gap, room, y = gaps(span)
        own = y - first if free else y
        return (gap - room).max(axis=0), (gap + room).min(axis=0), (own**2).sum(), (room**2).sum(), own.sum(axis=0)

    first = b.block((0, 1))[0][0]
    low, high, size, rooms, sums = zip(*in_threads(ends, pieces(n)), strict=True)
    low, high = np.max(low, axis=0), np.min(high, axis=0)
    mean = np.sum(sums, axis=0) / n * free
    scale = float(np.sqrt(max(sum(size) - n * float(mean @ mean), 0.0))) or 1.0
    fits = bool((low <= high).all()) if free else bool(((low <= 0) & (high >= 0)).all())
    v = np.zeros(len(low)) if not free or ((low <= 0) & (high >= 0)).all() else (low + high) / 2
    if free and not fits:
        some = np.linspace(0, n - 1, min(n, 1001)).astype(int)
        v = np.median(np.concatenate([gaps((i, i + 1))[0] for i in some]), axis=0)

    def look(span: tuple[int, int]) -> tuple[np.ndarray, ...]:
        gap, room, y = gaps(span)
        left = np.abs(gap - v)
        over = left / (room + 1e-300)
        return over.max(axis=1), (over > 2).sum(), (left**2).sum(), left.max(), np.abs(y).max()

    errors, many, squares, most, top = zip(*in_threads(look, pieces(n)), strict=True)
    tiny = 2.0**-40 * (max(top) + float(np.abs(v).max()))
    scattered = not narrow and sum(many) > 0.01 * n * len(v) and max(most) <= tiny
    return Offset(
        fits, v, bool(scattered), float(np.sqrt(sum(squares))) / scale, float(np.sqrt(sum(rooms) / 3)) / scale,
        np.concatenate(errors),
    )  # fmt: skip


def biases_differ_by(a: RoundedTable, b: RoundedTable, *, free: bool) -> float | None:
    """The number (0 unless `free`) by which all biases differ to rounding; None where there is none."""
    (ba, ea), (bb, eb) = a.bias(), b.bias()
    gap = bb - ba
    room = (ea + eb) * TWICE + U * np.abs(gap)
    low, high = float((gap - room).max()), float((gap + room).min())
    if low <= 0 <= high:
        return 0.0
    return (low + high) / 2 if free and low <= high else None
