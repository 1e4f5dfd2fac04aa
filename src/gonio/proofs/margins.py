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
from gonio.core.parallel import spans
from gonio.proofs import exact_numbers
from gonio.proofs.exact_numbers import Dyadic

if TYPE_CHECKING:
    from jaxtyping import Float, Int

SLACK = 1 + 1e-9  # covers the rounding of the bounds themselves: sums of less than a million terms >= 0
OFF_CENTRE = 1e-6  # how far from sum zero a z may be, against its length, and still be rounding
COLUMNS, POINTS, SCREEN = 2048, 4096, 32


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
                far = ~(np.abs(total) <= OFF_CENTRE * np.sqrt(d * squares)) & (squares > 0)
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
    for start, stop in spans(len(labels), POINTS):
        part = slice(start, stop)
        sub = Places(places.inputs, places.x[part])
        out[part] = _least(head, labels[part], sub, None if but is None else but[part])
    return out


def _least(head: Head, labels: np.ndarray, places: Places, but: Sequence[Any] | None) -> np.ndarray:
    n, d = head.shape
    # (point, label) pairs that are not rivals: each label itself, and those it is not compared with.
    more = [(i, int(j)) for i, several in enumerate(but or ()) for j in several]
    skipped = np.array([*enumerate(labels.tolist()), *more], np.int64).reshape(-1, 2)
    kind, unit, tiny = (np.float32, 2.0**-24, 2.0**-110) if len(labels) >= SCREEN else (np.float64, UNIT, TINY)
    bias = np.zeros(n) if head.bias is None else head.bias.astype(np.float64)
    with np.errstate(all="ignore"):
        # Powers of two bring x and the rows near 1, where nothing overflows; they are taken back at the end.
        powers = -np.frexp(np.abs(places.x).max(axis=1))[1].astype(np.int64)
        power = -math.frexp(float(head.norms.max()))[1]
        # Beside a bias, x and rows that are both tiny stay tiny: the bias would overflow with them.
        powers = np.minimum(powers, (60 if kind == np.float32 else 900) - power)
        x, t = np.ldexp(places.x, powers[:, None]), np.ldexp(float(head.bias is not None), powers + power)
        length = np.sqrt((x * x).sum(axis=1)) * SLACK
        dust = np.ldexp(places.drift * np.linalg.norm(places.inputs.gain_and_shift(d)[0]) * SLACK, powers)
        norms = np.ldexp(head.norms, power) * SLACK
        own = _own(head, labels, x, power) + bias[labels] * t
        own -= (d + 8) * UNIT * (length * norms[labels] + np.abs(bias[labels]) * t) + dust * norms[labels]
        under = 1 + t + np.abs(bias).max()  # underflow takes at most `tiny` times this from a sum
        own -= (TINY + tiny) * under
        # The rounding bound rides along as columns of the product: what comes out is an upper bound of each score.
        g = (d + 16) * unit * 1.01
        left = np.column_stack([x, t, (g * length + dust) * 1.01, g * t]).astype(kind)
        best = np.full(len(labels), -np.inf)
        close: list[list[int]] = [[] for _ in labels]
        for start, stop in spans(n, COLUMNS):
            right = np.empty((stop - start, d + 3), kind)
            block = head.rows[start:stop]
            right[:, :d] = block * 2.0**power if abs(power) < 120 else np.ldexp(block.astype(np.float64), power)
            right[:, d], right[:, d + 1] = bias[start:stop], norms[start:stop]
            right[:, d + 2] = np.abs(bias[start:stop])
            s = left @ right.T
            mine = skipped[(skipped[:, 1] >= start) & (skipped[:, 1] < stop)]
            s[mine[:, 0], mine[:, 1] - start] = -np.inf
            top = s.max(axis=1)
            for i in np.flatnonzero(~(top < own)):
                fail = ~(s[i] < own[i])
                close[i] += (start + np.flatnonzero(fail)).tolist()
                top[i] = np.max(s[i], where=~fail, initial=-np.inf)
            best = np.maximum(best, top)
        gap = own - best
        out = np.ldexp(gap * np.where(gap > 0, 1 - 4 * UNIT, 1 + 4 * UNIT), -(powers + power))
        out[(out == np.inf) & (best > -np.inf)] = np.finfo(float).max  # a bound need not be infinite to hold
    for i, rivals in enumerate(close):
        if rivals:
            out[i] = min(out[i], float(beats(head, int(labels[i]), np.array(rivals), places, i).min()))
    return out


def _own(head: Head, labels: np.ndarray, x: np.ndarray, power: int) -> np.ndarray:
    out = np.empty(len(labels))
    for a, b in spans(len(labels), head.rows.block_size()):
        rows = np.ldexp(head.rows[labels[a:b]].astype(np.float64), power)
        out[a:b] = np.einsum("ij,ij->i", rows, x[a:b])
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
