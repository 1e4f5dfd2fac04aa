"""By how much a label wins at given embeddings, proven whatever the rounding.

margin_i(x) = min_j (w_i - w_j).x + b_i - b_j  over the rivals j.  Three passes, each for what the one before could not
settle: one matrix product with a bound on its rounding, differences of rows in float64 with theirs, whole numbers.

After a LayerNorm the embedding meant is the exact point of the set nearest in z: with z = (x - shift) / gain, which
floats cannot make sum to zero, it is x - gain * mean(z). The mean is rounding dust; it is bounded, or taken exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.float_units import TINY, UNIT
from gonio.core.head import Head
from gonio.core.inputs import Inputs
from gonio.core.parallel import in_threads, spans
from gonio.proofs import exact_numbers
from gonio.proofs.exact_numbers import Dyadic

if TYPE_CHECKING:
    from jaxtyping import Float, Int

SLACK = 1 + 1e-9  # covers the rounding of the bounds themselves: sums of less than a million terms >= 0
OFF_CENTRE = 1e-6  # how far from sum zero a z may be, against the terms of the sum, and still be rounding
SMALLEST = 5e-324  # the least positive float: what rounding takes at most where floats are no longer relative
COLUMNS, POINTS, AT_ONCE, SCREEN = 2048, 4096, 512, 32


@dataclass(frozen=True, eq=False)
class Places:
    """Embeddings as certificates hold them, and why any of them is not one of the inputs."""

    inputs: Inputs
    x: Float[np.ndarray, "points dim"]

    @cached_property
    def _norm(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(live, z, |z|^2, sum z) of the norms' inputs, z = (x - shift) / gain where the gain is not zero."""
        gain, shift = self.inputs.gain_and_shift(self.x.shape[1])
        live = gain != 0
        with np.errstate(all="ignore"):
            z = np.where(live, (self.x - shift) / np.where(live, gain, 1), 0)
            return live, z, (z * z).sum(axis=1), z.sum(axis=1)

    @cached_property
    def drift(self) -> Float[np.ndarray, " points"]:
        """A bound of |mean(z)|: by how many gains the embedding meant is off the floats; 0 but after a LayerNorm."""
        if not self.inputs.centred or (self.inputs.gain_and_shift(self.x.shape[1])[0] == 0).any():
            return np.zeros(len(self.x))  # a coordinate that is switched off can take up any sum
        _, z, _, total = self._norm
        d = z.shape[1]
        with np.errstate(all="ignore"):
            return (np.abs(total) + (d + 4) * UNIT * np.abs(z).sum(axis=1)) / d * SLACK + TINY

    def exact_drift(self, at: int) -> Any:
        """mean(z) of one embedding as a rational."""
        gain, shift = self.inputs.gain_and_shift(self.x.shape[1])
        z = exact_numbers.quotients(Dyadic.of(self.x[at]) - Dyadic.of(shift), Dyadic.of(gain))
        return exact_numbers.total(z) / len(z)

    def outside(self) -> dict[int, str]:
        """Which embeddings are not of the inputs, each with the reason."""
        finite = np.isfinite(self.x).all(axis=1)
        out = {int(i): "it holds NaN or infinity" for i in np.flatnonzero(~finite)}
        if self.inputs.shape == "ball":
            return self._outside_ball() | out
        if self.inputs.points is not None:
            known = {row.tobytes() for row in self.inputs.points.astype(np.float64) + 0.0}
            here = np.array([row.tobytes() in known for row in self.x + 0.0], dtype=bool)
        else:
            here = np.ones(len(self.x), bool)
            here[finite] = self.inputs.contains(self.x[finite]) if finite.any() else True
        return {int(i): f"it is not one of the head's inputs ({self.inputs})" for i in np.flatnonzero(~here)} | out

    def _outside_ball(self) -> dict[int, str]:
        live, _, squares, total = self._norm
        d, dead = len(live), int((~live).sum())
        centred = self.inputs.centred
        moved = (self.x != self.inputs.gain_and_shift(d)[1])[:, ~live].any(axis=1)
        out = {int(i): "a coordinate whose gain is 0 was moved" for i in np.flatnonzero(moved)}
        with np.errstate(all="ignore"):
            if centred and dead:  # such coordinates bring the sum to zero, at the least cost in norm
                squares = squares + total * total / dead
            elif centred:
                gain, shift = self.inputs.gain_and_shift(d)
                terms = ((np.abs(self.x) + np.abs(shift)) / np.abs(gain)).sum(axis=1)
                far = ~(np.abs(total) <= OFF_CENTRE * terms) & (squares > 0)
                out |= {int(i): "(x - shift) / gain does not sum to zero" for i in np.flatnonzero(far)}
            near = ~(squares * (1 + (4 * d + 20) * UNIT) < d)
        for i in np.flatnonzero(near):
            if int(i) not in out and not (np.isfinite(self.x[i]).all() and self._inside_exactly(int(i))):
                out[int(i)] = f"(x - shift) / gain has norm {math.sqrt(squares[i]):.6g}, not below sqrt({d})"
        return out

    def _inside_exactly(self, at: int) -> bool:
        gain, shift = self.inputs.gain_and_shift(self.x.shape[1])
        live = gain != 0
        z = exact_numbers.quotients((Dyadic.of(self.x[at]) - Dyadic.of(shift))[live], Dyadic.of(gain[live]))
        squares, total, dead = exact_numbers.total(v * v for v in z), exact_numbers.total(z), int((~live).sum())
        if self.inputs.centred:
            squares += total * total / dead if dead else -total * total / len(live)
        return bool(squares < len(live))


def lengths(rows: Float[np.ndarray, "some dim"]) -> Float[np.ndarray, " some"]:
    """The length of each row, rounded up, whatever the size of its entries: squares are taken of entries of size 1."""
    top = np.abs(rows).max(axis=1, initial=0.0)
    power = np.frexp(top)[1]
    scaled = np.ldexp(rows, -power[:, None])
    return np.ldexp(np.sqrt((scaled * scaled).sum(axis=1)) * SLACK, power) + np.where(top > 0, SMALLEST, 0.0)


def least_margins(
    head: Head,
    labels: Int[np.ndarray, " points"],
    places: Places,
    but: Sequence[Any] | None = None,
) -> Float[np.ndarray, " points"]:
    """A proven lower bound of each label's margin at its place, over all rivals but those listed for it in `but`.

    Infinite where there is no rival; at most 0 where it is not proven that the label wins.
    Cost: one product points x labels x dim, in float32 from 32 points on.
    """
    out = np.empty(len(labels))

    def look(span: tuple[int, int]) -> None:
        part = slice(*span)
        sub = Places(places.inputs, places.x[part])
        out[part] = _least(head, labels[part], sub, None if but is None else but[part])

    in_threads(look, spans(len(labels), AT_ONCE))
    return out


def _least(head: Head, labels: np.ndarray, places: Places, but: Sequence[Any] | None) -> np.ndarray:
    """`least_margins` of a block of points: one product for all rivals, then one by one those it cannot settle."""
    with np.errstate(all="ignore"):
        scaled = _Scaled.of(head, places, np.float32 if len(labels) >= SCREEN else np.float64)
        own = scaled.own_scores(labels)
        skipped = _not_rivals(labels, but)
        best, close = _best_rivals(scaled, own, skipped)
        alone = np.bincount(skipped[:, 0], minlength=len(labels)) == head.shape[0]
        # A rival's score below all floats is bounded by the lowest of them; infinite is only the lead over no rival.
        gap = own - np.where(alone, best, np.maximum(best, np.finfo(scaled.kind).min))
        out = np.ldexp(gap * np.where(gap > 0, 1 - 4 * UNIT, 1 + 4 * UNIT), -(scaled.x_powers + scaled.row_power))
        subnormal = (np.abs(out) < TINY) & ~alone  # there ldexp may have rounded up: exact numbers decide
        out[(out == np.inf) & ~alone] = np.finfo(float).max
    for i in np.flatnonzero(subnormal):
        close[i] = np.setdiff1d(np.arange(head.shape[0]), skipped[skipped[:, 0] == i, 1]).tolist()
        out[i] = np.inf
    for i, rivals in enumerate(close):
        if rivals:
            out[i] = min(out[i], float(beats(head, int(labels[i]), np.array(rivals), places, i).min()))
    return out


def _not_rivals(labels: np.ndarray, but: Sequence[Any] | None) -> Int[np.ndarray, "some two"]:
    """The (point, label) pairs that are not rivals: each label itself, and those it is not compared with."""
    more = [(i, int(j)) for i, several in enumerate(but or ()) for j in several]
    return np.unique(np.array([*enumerate(labels.tolist()), *more], np.int64).reshape(-1, 2), axis=0)


def _best_rivals(scaled: _Scaled, own: np.ndarray, skipped: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    """Upper bounds of the scores of all rivals proven below `own`, the largest at each point; and the other rivals."""
    best = np.full(len(own), -np.inf)
    close: list[list[int]] = [[] for _ in own]
    left = scaled.point_columns()
    for start, stop in spans(scaled.head.shape[0], COLUMNS):
        upper = left @ scaled.row_columns(start, stop).T
        mine = skipped[(skipped[:, 1] >= start) & (skipped[:, 1] < stop)]
        upper[mine[:, 0], mine[:, 1] - start] = -np.inf
        top = upper.max(axis=1)
        for i in np.flatnonzero(~(top < own)):  # also where one of them is NaN
            unproven = ~(upper[i] < own[i])
            close[i] += (start + np.flatnonzero(unproven)).tolist()
            top[i] = np.max(upper[i], where=~unproven, initial=-np.inf)
        best = np.maximum(best, top)
    return best, close


@dataclass(frozen=True, eq=False)
class _Scaled:
    """A head and places, scaled by powers of two to numbers near 1, where nothing overflows: scores are

    2^(x_power + row_power) (w.x + b) = (2^row_power w).(2^x_power x) + b t,     t = 2^(x_power + row_power), or 0.

    What comes out of them is a bound of each score, outward: from below for the label, from above for the rivals.
    """

    head: Head
    kind: type  # float32 or float64: of the product with the rivals
    bias: Float[np.ndarray, " labels"]  # as given; 0 where there is none
    row_power: int
    norms: Float[np.ndarray, " labels"]  # bounds of |2^row_power w|
    x_powers: Int[np.ndarray, " points"]
    x: Float[np.ndarray, "points dim"]
    t: Float[np.ndarray, " points"]
    length: Float[np.ndarray, " points"]  # bounds of |x|
    dust: Float[np.ndarray, " points"]  # bounds of the distance from x to the embedding meant

    @classmethod
    def of(cls, head: Head, places: Places, kind: type) -> _Scaled:
        n, d = head.shape
        bias = np.zeros(n) if head.bias is None else head.bias.astype(np.float64)
        x_powers = -np.frexp(np.abs(places.x).max(axis=1))[1].astype(np.int64)
        row_power = -math.frexp(float(head.norms.max()))[1]
        # Beside a bias, x and rows that are both tiny stay tiny: the bias would overflow with them.
        x_powers = np.minimum(x_powers, (60 if kind == np.float32 else 900) - row_power)
        x, t = np.ldexp(places.x, x_powers[:, None]), np.ldexp(float(head.bias is not None), x_powers + row_power)
        # A norm among the smallest floats is off by half a unit of theirs.
        norms = np.ldexp(head.norms, row_power) * SLACK + np.ldexp(SMALLEST, row_power)
        gain = lengths(places.inputs.gain_and_shift(d)[0][None])[0]
        dust = np.where(places.drift > 0, np.ldexp(gain, x_powers) * places.drift * SLACK + SMALLEST, 0.0)
        return cls(head, kind, bias, row_power, norms, x_powers, x, t, lengths(x), dust)

    def own_scores(self, labels: np.ndarray) -> Float[np.ndarray, " points"]:
        """A lower bound of the scaled score of each point's label, in float64; less what underflow takes from a sum."""
        d, bias = self.head.shape[1], self.bias[labels]
        own = np.empty(len(labels))
        for a, b in spans(len(labels), self.head.rows.block_size()):
            rows = np.ldexp(self.head.rows[labels[a:b]].astype(np.float64), self.row_power)
            own[a:b] = np.einsum("ij,ij->i", rows, self.x[a:b])
        own = own + bias * self.t
        norms = self.norms[labels]
        own -= (d + 8) * UNIT * (self.length * norms + np.abs(bias) * self.t) + self.dust * norms
        # Underflow takes at most `tiny` times this from a sum: of the label's own, and of a rival's.
        tiny = 2.0**-110 if self.kind == np.float32 else TINY
        own -= (TINY + tiny) * (1 + self.t + np.abs(self.bias).max())
        return own

    def point_columns(self) -> np.ndarray:
        """(x, t, g |x| + dust, g t), g = (d + 16) unit: times `row_columns` an upper bound of each score.

        w.x + b t + g (|w| |x| + |b| t) + dust |w|: the rounding bound is part of the product.
        """
        unit = 2.0**-24 if self.kind == np.float32 else UNIT
        g = (self.head.shape[1] + 16) * unit * 1.01
        return np.column_stack([self.x, self.t, (g * self.length + self.dust) * 1.01, g * self.t]).astype(self.kind)

    def row_columns(self, start: int, stop: int) -> np.ndarray:
        """(w, b, |w|, |b|) of the labels start to stop."""
        d, power, block = self.head.shape[1], self.row_power, self.head.rows[start:stop]
        out = np.empty((stop - start, d + 3), self.kind)
        wide = block.astype(np.result_type(block, self.kind), copy=False)  # else what float32 cannot hold would be lost
        out[:, :d] = wide * 2.0**power if abs(power) < 120 else np.ldexp(block.astype(np.float64), power)
        out[:, d], out[:, d + 1] = self.bias[start:stop], self.norms[start:stop]
        out[:, d + 2] = np.abs(self.bias[start:stop])
        return out


def beats(
    head: Head, label: int, rivals: Int[np.ndarray, " some"], places: Places, at: int
) -> Float[np.ndarray, " some"]:
    """A proven lower bound of (w_i - w_j).x + b_i - b_j for each rival, at one place; exact where that is near 0."""
    d = head.shape[1]
    x, drift = places.x[at], float(places.drift[at])
    bias = np.zeros(head.shape[0]) if head.bias is None else head.bias.astype(np.float64)
    mine = head.rows[label : label + 1][0].astype(np.float64)
    gain = np.abs(places.inputs.gain_and_shift(d)[0])
    out = np.empty(len(rivals))
    with np.errstate(all="ignore"):
        for a, b in spans(len(rivals), COLUMNS):
            rows = mine - head.rows[rivals[a:b]].astype(np.float64)
            more = bias[label] - bias[rivals[a:b]]
            bound = (d + 8) * UNIT * (np.abs(rows) @ np.abs(x) + np.abs(more)) + drift * (np.abs(rows) @ gain)
            value = rows @ x + more
            out[a:b] = value - bound * SLACK - TINY
            for k in np.flatnonzero(~(np.abs(value) > bound * SLACK + TINY)):
                out[a + k] = _exactly(head, label, int(rivals[a + k]), places, at)
    return out


def _exactly(head: Head, i: int, j: int, places: Places, at: int) -> float:
    """(w_i - w_j).x + b_i - b_j at the exact embedding, rounded down to a float; 0.0 only for a tie or below 5e-324."""
    two = Dyadic.of(head.rows[np.array([i, j])])
    row = two[0] - two[1]
    value = row @ Dyadic.of(places.x[at])
    if head.bias is not None:
        b = Dyadic.of(head.bias[[i, j]])
        value = value + (b[0] - b[1])
    numerator, denominator = value.ratio()
    if places.drift[at]:
        mean = places.exact_drift(at)
        p, q = (row @ Dyadic.of(places.inputs.gain_and_shift(head.shape[1])[0])).ratio()
        over = int(mean.q) * q
        numerator, denominator = numerator * over - int(mean.p) * p * denominator, denominator * over
    return exact_numbers.rounded(numerator, denominator, up=False)
