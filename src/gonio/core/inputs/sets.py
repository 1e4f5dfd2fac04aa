"""Sets of embeddings, and the problem that a head's scores pose over each.

"Impossible for every x" is sound under any of them; "possible" needs the right one. Each kind of inputs turns the
head's scores  W x + b  into the problem they pose:  scores  V z + c  with z in a simple set, and the way back
from z to x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.float_units import TINY, UNIT

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

Shape = Literal["space", "orthant", "box", "ball", "points"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Scores  V z + c  over a simple set of z, and the embedding `lift(z)` that has them.

    shape    the z meant
    space    all of them
    orthant  z >= 0
    box      low <= z <= high (either side may be infinite)
    ball     |z| < radius
    points   the rows of `points`

    error            how far an entry of V may be from the exact one, by the rounding of the reduction itself
    constants_equal  whether the exact c are known to be all equal
    """

    V: Float[np.ndarray, "labels reduced"]
    c: Float[np.ndarray, " labels"]
    shape: Shape
    lift: Callable[[np.ndarray], np.ndarray]
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    radius: float | None = None
    points: np.ndarray | None = None
    error: float = 0.0
    constants_equal: bool = False


def _same(z: np.ndarray) -> np.ndarray:
    return z


@dataclass(frozen=True, eq=False)
class Inputs:
    """A set of embeddings. `width` is the dimension it was made for, None where any will do."""

    @property
    def width(self) -> int | None:
        return None

    @property
    def bounded(self) -> bool:
        """Whether the set has a largest norm."""
        return False

    def reduce(self, W: np.ndarray, bias: np.ndarray | None = None) -> Problem:
        """The problem that scores W x + bias pose over these inputs."""
        raise NotImplementedError

    def contains(self, x: np.ndarray) -> Bool[np.ndarray, " points"]:
        """Which rows of `x` belong to the set."""
        raise NotImplementedError

    def sample(self, count: int, dim: int, rng: np.random.Generator) -> Float[np.ndarray, "points dim"]:
        """`count` embeddings of the set, drawn at random."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The set in plain values, for digests and JSON."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Inputs) and _plain(self.to_dict()) == _plain(other.to_dict())

    def __hash__(self) -> int:
        return hash(_plain(self.to_dict()))


def _plain(d: dict[str, Any]) -> tuple:
    return tuple((k, v.tobytes() if isinstance(v, np.ndarray) else v) for k, v in sorted(d.items()))


def _bias(W: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    return np.zeros(len(W)) if bias is None else bias.astype(np.float64)


def _all_equal(bias: np.ndarray | None) -> bool:
    return bias is None or bool((bias == bias[0]).all())


def _largest(a: np.ndarray) -> float:
    return max(float(a.max(initial=0)), -float(a.min(initial=0)))


def _frozen(a: Any, who: str, name: str, infinite: bool = False) -> np.ndarray:
    v = checks.wide(checks.array(a, who, name)).astype(np.float64)
    if v.ndim > 1:
        raise GonioError(f"{who}: {name} has shape {v.shape}; a number or one entry per dimension is needed.")
    if np.isnan(v).any() or (not infinite and not np.isfinite(v).all()):
        raise GonioError(f"{who}: {name} holds NaN{'' if infinite else ' or infinity'}; numbers are needed.")
    v.flags.writeable = False
    return v


@dataclass(frozen=True, eq=False)
class AllInputs(Inputs):
    """Every vector: nothing is known of what feeds the head."""

    def reduce(self, W, bias=None):
        return Problem(W, _bias(W, bias), "space", _same, constants_equal=_all_equal(bias))

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

    def reduce(self, W, bias=None):
        return Problem(W, _bias(W, bias), "orthant", _same, constants_equal=_all_equal(bias))

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

    def __post_init__(self):
        low = _frozen(self.low, "Box", "low", infinite=True)
        high = _frozen(self.high, "Box", "high", infinite=True)
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

    def reduce(self, W, bias=None):
        d = W.shape[1]
        low, high = np.broadcast_to(self.low, d), np.broadcast_to(self.high, d)
        return Problem(W, _bias(W, bias), "box", _same, low=low, high=high, constants_equal=_all_equal(bias))

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


@dataclass(frozen=True, eq=False)
class AfterRMSNorm(Inputs):
    """x = gain * z with |z| < sqrt(d): what an RMSNorm gives out.

    The norm's epsilon makes the set a solid ellipsoid. A gain of zero switches its coordinate off.
    """

    gain: Any

    def __post_init__(self):
        gain = np.atleast_1d(_frozen(self.gain, "AfterRMSNorm", "gain"))
        gain.flags.writeable = False
        object.__setattr__(self, "gain", gain)

    @property
    def width(self):
        return len(self.gain)

    @property
    def bounded(self):
        return True

    def reduce(self, W, bias=None):
        V = W * self.gain
        return Problem(
            V,
            _bias(W, bias),
            "ball",
            lambda z: self.gain * z,
            radius=np.sqrt(len(self.gain)),
            error=2 * UNIT * _largest(V) + TINY,
            constants_equal=_all_equal(bias),
        )

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
class AfterLayerNorm(Inputs):
    """x = gain * z + shift with sum z = 0 and |z| < sqrt(d): what a LayerNorm gives out.

    Only the part of W * gain orthogonal to (1, ..., 1) meets z, so the problem is posed with centred rows over the
    whole ball: for such rows z and z - mean(z) score alike.
    """

    gain: Any
    shift: Any = field(default=0.0)

    def __post_init__(self):
        gain = np.atleast_1d(_frozen(self.gain, "AfterLayerNorm", "gain"))
        shift = _frozen(self.shift, "AfterLayerNorm", "shift")
        if shift.ndim and shift.shape != gain.shape:
            raise GonioError(f"AfterLayerNorm: gain has shape {gain.shape} and shift {shift.shape}; make them alike.")
        shift = np.broadcast_to(shift, gain.shape)
        gain.flags.writeable = False
        object.__setattr__(self, "gain", gain)
        object.__setattr__(self, "shift", shift)

    @property
    def width(self):
        return len(self.gain)

    @property
    def bounded(self):
        return True

    def reduce(self, W, bias=None):
        V = W * self.gain
        error = 2 * (len(self.gain) + 4) * UNIT * _largest(V) + TINY  # of the products, the mean and the difference
        V -= V.mean(axis=1, keepdims=True)
        c = _bias(W, bias) + W @ self.shift

        def lift(z: np.ndarray) -> np.ndarray:
            return self.gain * (z - z.mean(axis=-1, keepdims=True)) + self.shift

        return Problem(
            V,
            c,
            "ball",
            lift,
            radius=np.sqrt(len(self.gain)),
            error=error,
            constants_equal=_all_equal(bias) and not self.shift.any(),
        )

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

    def reduce(self, W, bias=None):
        return Problem(W, _bias(W, bias), "points", _same, points=self.F)

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
