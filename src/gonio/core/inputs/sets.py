"""The sets of embeddings that can reach a head: everything, after a ReLU, a box, after a norm, or only those observed.

"Impossible for every x" is sound under any of them; "possible" needs the right one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.float_units import TINY, UNIT
from gonio.core.inputs.base import Inputs, Problem, all_equal, bias_of, frozen, largest
from gonio.core.parallel import in_threads, spans


@dataclass(frozen=True, eq=False)
class AllInputs(Inputs):
    """Every vector: nothing is known of what feeds the head."""

    shape = "space"

    def moved_by(self, M, moved):
        return self

    def shifted_by(self, u):
        return self

    def reduce(self, W, bias=None, *, differences=False):
        return Problem(W, bias_of(W, bias, differences), "space", self.lift, constants_equal=all_equal(bias))

    def contains(self, x) -> np.ndarray:
        return np.asarray(np.isfinite(np.atleast_2d(x)).all(axis=1))

    def sample(self, count, dim, rng):
        return rng.standard_normal((count, dim))

    def to_dict(self):
        return {"kind": "all"}

    def __str__(self):
        return "all inputs"


@dataclass(frozen=True, eq=False)
class Nonnegative(Inputs):
    """x >= 0 in every coordinate: after a ReLU, or counts."""

    shape = "orthant"

    def bounds(self, d):
        return np.zeros(d), np.full(d, np.inf)

    def reduce(self, W, bias=None, *, differences=False):
        return Problem(W, bias_of(W, bias, differences), "orthant", self.lift, constants_equal=all_equal(bias))

    def contains(self, x) -> np.ndarray:
        x = np.atleast_2d(x)
        return np.asarray((np.isfinite(x) & (x >= 0)).all(axis=1))

    def sample(self, count, dim, rng):
        return np.maximum(0, rng.standard_normal((count, dim)))

    def to_dict(self):
        return {"kind": "nonnegative"}

    def __str__(self):
        return "non-negative (x >= 0)"


@dataclass(frozen=True, eq=False)
class Box(Inputs):
    """low <= x <= high in every coordinate; either side may be infinite, and both may be numbers or vectors.

    tanh, LSTM and GRU outputs lie in Box(-1, 1), ReLU6 in Box(0, 6), swish in Box(-0.2785, inf).
    """

    low: Any
    high: Any

    shape = "box"

    def __post_init__(self):
        low = frozen(self.low, "Box", "low", infinite=True)
        high = frozen(self.high, "Box", "high", infinite=True)
        if low.ndim and high.ndim and low.shape != high.shape:
            raise GonioError(f"Box: low has shape {low.shape} and high {high.shape}; they must be the same.")
        if (low > high).any() or (low == np.inf).any() or (high == -np.inf).any():
            raise GonioError(f"Box: low = {self.low} and high = {self.high}; every low must be at most its high.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def width(self):
        return next((len(v) for v in (self.low, self.high) if v.ndim), None)

    @property
    def bounded(self):
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())

    def bounds(self, d):
        return np.broadcast_to(self.low, d), np.broadcast_to(self.high, d)

    def reduce(self, W, bias=None, *, differences=False):
        d = W.shape[1]
        low, high = self.bounds(d)
        return Problem(
            W, bias_of(W, bias, differences), "box", self.lift, low=low, high=high, constants_equal=all_equal(bias)
        )

    def contains(self, x) -> np.ndarray:
        x = np.atleast_2d(x)
        return np.asarray((np.isfinite(x) & (x >= self.low) & (x <= self.high)).all(axis=1))

    def sample(self, count, dim, rng):
        low, high = np.broadcast_to(self.low, dim), np.broadcast_to(self.high, dim)
        x = rng.standard_normal((count, dim))
        both = np.isfinite(low) & np.isfinite(high)
        u = rng.random((count, dim))
        inside = np.where(both, low, 0) + u * np.where(both, high, 0) - u * np.where(both, low, 0)
        return np.where(both, inside, np.clip(x, low, high))

    def to_dict(self):
        return {"kind": "box", "low": self.low, "high": self.high}

    def __str__(self):
        low, high = (f"{v:g}" if v.ndim == 0 else "[...]" for v in (self.low, self.high))
        return f"box {low} <= x <= {high}"


class _AfterNorm(Inputs):
    """x = gain * z + shift with |z| < sqrt(d): what the two norms share."""

    gain: Any
    shape = "ball"

    @property
    def width(self):
        return len(self.gain)

    @property
    def bounded(self):
        return True

    def _stretched(self, W):
        """W * gain, by several threads: one alone is slow to touch so much memory for the first time."""
        V = np.empty(W.shape)

        def one(s):
            with np.errstate(all="ignore"):  # _problem looks at what comes of it
                np.multiply(W[slice(*s)], self.gain, out=V[slice(*s)])

        in_threads(one, spans(len(W), 4096))
        return V

    def _problem(self, V, c, error, equal):
        """The rows V that meet z, over the ball of radius sqrt(d)."""
        with np.errstate(all="ignore"):
            if not (np.isfinite(error * self.width / UNIT) and np.isfinite(c).all()):
                raise GonioError(
                    f"{type(self).__name__}: the rows times the gain or the shift are beyond the largest float, "
                    "1.8e308; divide rows and bias by one number."
                )
        radius = np.sqrt(self.width)
        return Problem(V, c, "ball", self.lift, radius=radius, error=error, constants_equal=equal)


@dataclass(frozen=True, eq=False)
class AfterRMSNorm(_AfterNorm):
    """x = gain * z with |z| < sqrt(d): what an RMSNorm gives out.

    The norm's epsilon makes the set a solid ellipsoid. A gain of zero switches its coordinate off.
    """

    gain: Any

    def __post_init__(self):
        gain = np.atleast_1d(frozen(self.gain, "AfterRMSNorm", "gain"))
        gain.flags.writeable = False
        object.__setattr__(self, "gain", gain)

    def gain_and_shift(self, d):
        return self.gain, np.zeros(d)

    def lift(self, z):
        return self.gain * z

    def moved_by(self, M, moved):
        scale = np.diag(M)
        if (M - np.diag(scale)).any():
            return super().moved_by(M, moved)
        return AfterRMSNorm(self.gain / scale)  # a diagonal map stretches the norm's own gain

    def reduce(self, W, bias=None, *, differences=False):
        V = self._stretched(W)
        return self._problem(V, bias_of(W, bias, differences), 2 * UNIT * largest(V) + TINY, all_equal(bias))

    def contains(self, x) -> np.ndarray:
        x, room, unit = _rounding(x)
        live = self.gain != 0
        scale = np.where(live, self.gain, 1)
        z = np.where(live, x / scale, 0)
        off = np.where(live, np.abs(unit * x / scale), 0)
        most = len(self.gain) * (1 + room) + (2 * np.abs(z) * off + off * off).sum(axis=1)
        return (x[:, ~live] == 0).all(axis=1) & ((z * z).sum(axis=1) < most)

    def sample(self, count, dim, rng):
        return self.gain * _on_sphere(rng.standard_normal((count, dim)))

    def to_dict(self):
        return {"kind": "rmsnorm", "gain": self.gain}

    def __str__(self):
        return f"after RMSNorm (gain {_span(self.gain)})"


@dataclass(frozen=True, eq=False)
class AfterLayerNorm(_AfterNorm):
    """x = gain * z + shift with sum z = 0 and |z| < sqrt(d): what a LayerNorm gives out.

    Only the part of W * gain orthogonal to (1, ..., 1) meets z, so the problem is posed with centred rows over the
    whole ball: for such rows z and z - mean(z) score alike.
    """

    gain: Any
    shift: Any = field(default=0.0)

    centred = True

    def __post_init__(self):
        gain = np.atleast_1d(frozen(self.gain, "AfterLayerNorm", "gain"))
        shift = frozen(self.shift, "AfterLayerNorm", "shift")
        if shift.ndim and shift.shape != gain.shape:
            raise GonioError(f"AfterLayerNorm: gain has shape {gain.shape} and shift {shift.shape}; make them alike.")
        shift = np.broadcast_to(shift, gain.shape)
        gain.flags.writeable = False
        object.__setattr__(self, "gain", gain)
        object.__setattr__(self, "shift", shift)

    def gain_and_shift(self, d):
        return self.gain, self.shift

    def lift(self, z):
        return self.gain * (z - z.mean(axis=-1, keepdims=True)) + self.shift

    def moved_by(self, M, moved):
        scale = np.diag(M)
        if (M - np.diag(scale)).any():
            return super().moved_by(M, moved)
        return AfterLayerNorm(self.gain / scale, self.shift / scale)

    def shifted_by(self, u):
        return AfterLayerNorm(self.gain, self.shift + u)

    def reduce(self, W, bias=None, *, differences=False):
        with np.errstate(all="ignore"):  # _problem looks at what comes of it
            V = self._stretched(W)
            error = 2 * (len(self.gain) + 4) * UNIT * largest(V) + TINY  # of the products, the mean and the difference
            V -= V.mean(axis=1, keepdims=True)
            # Only differences count: what all rows have in common would take the digits of what they do not.
            common = W.mean(axis=0, dtype=np.float64) if differences and self.shift.any() else 0.0
            c = bias_of(W, bias, differences) + (W - common) @ self.shift
            c = c if not differences or np.isfinite(c.max() - c.min()) else np.full(len(c), np.inf)
        return self._problem(V, c, error, all_equal(bias) and not self.shift.any())

    def contains(self, x) -> np.ndarray:
        x, room, unit = _rounding(x)
        live = self.gain != 0
        scale = np.where(live, self.gain, 1)
        z = np.where(live, (x - self.shift) / scale, 0)
        off = np.where(live, np.abs(unit * x / scale), 0)
        rest, total = (z * z).sum(axis=1), z.sum(axis=1)
        most = len(self.gain) * (1 + room) + (2 * np.abs(z) * off + off * off).sum(axis=1)
        missing = (~live).sum()
        if missing:  # dead coordinates of z are free to bring the sum to zero, at the least cost in norm
            rest = rest + total * total / missing
            balanced = np.ones(len(x), bool)
        else:
            uneven = 1e-6 if room < 1e-6 else 1e-4
            balanced = np.abs(total) <= uneven * np.sqrt(len(self.gain) * np.maximum(rest, 1e-300)) + off.sum(axis=1)
        steady = np.abs(x - self.shift) <= unit * np.abs(self.shift)  # a dead coordinate gives out its shift
        return steady[:, ~live].all(axis=1) & balanced & (rest < most)

    def sample(self, count, dim, rng):
        z = rng.standard_normal((count, dim))
        return self.gain * _on_sphere(z - z.mean(axis=1, keepdims=True)) + self.shift

    def to_dict(self):
        return {"kind": "layernorm", "gain": self.gain, "shift": self.shift}

    def __str__(self):
        return f"after LayerNorm (gain {_span(self.gain)}, shift {_span(self.shift)})"


@dataclass(frozen=True, eq=False)
class Observed(Inputs):
    """Only the given embeddings, one a row."""

    F: Any

    shape = "points"

    def __post_init__(self):
        F = checks.wide(checks.matrix(self.F, "Observed", "F", axes=("points", "dim")))
        checks.finite(F, "Observed", "F")
        if F.flags.writeable:
            F = F.copy()
            F.flags.writeable = False
        object.__setattr__(self, "F", F)

    @property
    def width(self):
        return self.F.shape[1]

    @property
    def bounded(self):
        return True

    @property
    def points(self):
        return self.F

    def moved_by(self, M, moved):
        return Observed(moved(self.F))

    def shifted_by(self, u):
        return Observed(self.F.astype(np.float64) + u)

    def reduce(self, W, bias=None, *, differences=False):
        # Here floats are looked at as they are, so nothing is taken off that would round them.
        return Problem(W, bias_of(W, bias), "points", self.lift, points=self.F)

    def contains(self, x) -> np.ndarray:
        x = np.atleast_2d(x)
        return np.array([bool((row == self.F).all(axis=1).any()) for row in x])

    def sample(self, count, dim, rng):
        return self.F[rng.integers(0, len(self.F), count)]

    def to_dict(self):
        return {"kind": "observed", "F": self.F}

    def __str__(self):
        return f"{len(self.F):,} observed embeddings"


def _rounding(x: Any) -> tuple[np.ndarray, float, float]:
    """`x` in float64, the share of |z|^2 by which a norm computed in its dtype may overshoot, and its unit of rounding.

    float32 numbers that were widened afterwards are as rough as before, and tell themselves by their values.
    """
    given = np.atleast_2d(np.asarray(x))
    x = given.astype(np.float64)
    if np.issubdtype(given.dtype, np.floating) and given.dtype.itemsize < 8:
        return x, 1e-5, float(np.finfo(given.dtype).eps)
    with np.errstate(over="ignore"):
        widened = np.issubdtype(given.dtype, np.floating) and np.array_equal(x.astype(np.float32), x)
    return (x, 1e-6, float(np.finfo(np.float32).eps)) if widened else (x, 1e-9, 0.0)


def _on_sphere(z: np.ndarray) -> np.ndarray:
    """Rows of norm just below sqrt(d), as a normalisation with a small epsilon leaves them."""
    d = z.shape[1]
    length = np.sqrt((z * z).sum(axis=1, keepdims=True))
    return z * (np.sqrt(d) * (1 - 1e-9) / np.maximum(length, 1e-300))


def _span(v: np.ndarray) -> str:
    low, high = float(v.min()), float(v.max())
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
