"""What every set of embeddings can tell, and the problem that a head's scores pose over it.

"Impossible for every x" is sound under any of them; "possible" needs the right one. Each kind of inputs turns the
head's scores  W x + b  into the problem they pose:  scores  V z + c  with z in a simple set, and the way back
from z to x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError

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


@dataclass(frozen=True, eq=False)
class Inputs:
    """A set of embeddings x = lift(z), z in a simple set.

    shape     the simple set: space, orthant, box, ball or points
    centred   whether only the part of z orthogonal to (1, ..., 1) counts, as after a LayerNorm
    """

    shape: ClassVar[Shape]
    centred: ClassVar[bool] = False

    @property
    def width(self) -> int | None:
        """The dimension it was made for, None where any will do."""
        return None

    @property
    def bounded(self) -> bool:
        """Whether the set has a largest norm."""
        return False

    @property
    def points(self) -> np.ndarray | None:
        """The embeddings where they are given one by one, None elsewhere."""
        return None

    def gain_and_shift(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """The gain and the shift of the norm before the head; ones and zeros where there is none."""
        return np.ones(d), np.zeros(d)

    def lift(self, z: Float[np.ndarray, "*points dim"]) -> Float[np.ndarray, "*points dim"]:
        """The embeddings that stand for z."""
        return z

    def bounds(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """The box that holds z: infinite on every side where there is none, or where a radius bounds it."""
        return np.full(d, -np.inf), np.full(d, np.inf)

    def moved_by(self, M: np.ndarray, moved: Callable[[np.ndarray], np.ndarray]) -> Inputs | None:
        """The set of M^-T x for the x of this one, where it has a name; `moved` does that to rows."""
        return None

    def shifted_by(self, u: np.ndarray) -> Inputs | None:
        """The set of x + u for the x of this one, where it has a name."""
        return None

    def reduce(self, W: np.ndarray, bias: np.ndarray | None = None, *, differences: bool = False) -> Problem:
        """The problem that W x + bias poses over these inputs; where only differences count, up to a constant."""
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


def bias_of(W: np.ndarray, bias: np.ndarray | None, differences: bool = False) -> np.ndarray:
    """The bias in float64, zeros where there is none; less its median where only differences count."""
    if bias is None:
        return np.zeros(len(W))
    wide = bias.astype(np.float64)
    if not differences:
        return wide
    with np.errstate(all="ignore"):
        if not np.isfinite(wide.max() - wide.min()):
            raise GonioError(
                "bias: two biases differ by more than the largest float, 1.8e308; divide rows and bias by one number."
            )
        common = np.median(wide)
        return wide - common if np.isfinite(common) else wide


def all_equal(bias: np.ndarray | None) -> bool:
    """Whether all labels have one bias."""
    return bias is None or bool((bias == bias[0]).all())


def largest(a: np.ndarray) -> float:
    """The largest absolute value."""
    return max(float(a.max(initial=0)), -float(a.min(initial=0)))


def frozen(a: Any, who: str, name: str, infinite: bool = False) -> np.ndarray:
    """A number or a vector in float64, read-only, finite unless `infinite`."""
    v = checks.wide(checks.array(a, who, name)).astype(np.float64)
    if v.ndim > 1:
        raise GonioError(f"{who}: {name} has shape {v.shape}; a number or one entry per dimension is needed.")
    if np.isnan(v).any() or (not infinite and not np.isfinite(v).all()):
        raise GonioError(f"{who}: {name} holds NaN{'' if infinite else ' or infinity'}; numbers are needed.")
    v.flags.writeable = False
    return v
