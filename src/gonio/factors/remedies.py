"""What may be done to the interactions before fitting, so that popularity does not decide the similarities.

Each is a choice with a price: the model then fits other numbers than X.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.errors import GonioError
from gonio.factors.interactions import Interactions

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class InteractionRemedy:
    """A change of the table before fitting."""

    def apply(self, X: Interactions) -> Interactions:
        """The changed table."""
        raise NotImplementedError


@dataclass(frozen=True)
class Standardise(InteractionRemedy):
    """Every column to mean 0 and variance 1 (or, with centre=False, to mean square 1): each item counts alike.

    A sparse table stays sparse: the means are subtracted in the products. Columns without variance become zero.
    Afterwards dropout and the penalty on the product are the same thing, since all columns have one length.
    """

    centre: bool = True

    def apply(self, X: Interactions) -> Interactions:
        n = X.shape[0]
        shift = X.means if self.centre else None
        spread = X.columns(shift, None).squares / n
        rough = 1e-13 * np.maximum(X.squares / n, np.finfo(np.float64).tiny)  # a constant column, rounded
        alive = spread > rough
        if not alive.any():
            raise GonioError("fit: no column of X varies, so nothing is left after standardising.")
        return X.columns(shift, np.where(alive, 1 / np.sqrt(np.where(alive, spread, 1)), 0.0))

    def __str__(self) -> str:
        return "columns standardised" if self.centre else "columns scaled to mean square 1"


@dataclass(frozen=True)
class Propensity(InteractionRemedy):
    """Inverse-propensity weights: x_ui / theta_i with theta_i = max(floor, (popularity_i / largest)^power).

    With the squared loss over all entries, the unbiased estimate of what users would touch if all items were seen
    alike is the fit to x / theta, so the weights scale the columns.
    """

    power: float = 0.5
    floor: float = 0.01

    def __post_init__(self) -> None:
        if not (np.isfinite(self.power) and self.power >= 0 and 0 < self.floor <= 1):
            raise GonioError(
                f"Propensity: power is {self.power} and floor {self.floor}; power >= 0 and 0 < floor <= 1 are needed."
            )

    def propensities(self, popularity: np.ndarray) -> Float[np.ndarray, " items"]:
        """The chance, up to a factor, that an item is seen at all."""
        return np.maximum(self.floor, (popularity / popularity.max()) ** self.power)

    def apply(self, X: Interactions) -> Interactions:
        return X.columns(None, 1 / self.propensities(X.counts))

    def __str__(self) -> str:
        return f"inverse propensity, popularity^{self.power:g}"


@dataclass(frozen=True)
class NegativeSampling(InteractionRemedy):
    """What training with sampled negatives fits:  max(0, log(x_ui / (count r_u q_i))),  r_u the user's total.

    With `count` negatives an interaction, drawn with q_i ~ popularity_i^power, the logistic loss is least at
    s_ui = log(x_ui / (count r_u q_i)) (Levy and Goldberg's identity); its positive part keeps the table sparse.
    """

    count: float = 5
    power: float = 0.75

    def __post_init__(self) -> None:
        if not (np.isfinite(self.power) and np.isfinite(self.count) and self.count > 0):
            raise GonioError(
                f"NegativeSampling: count is {self.count} and power {self.power}; a count above 0 is needed."
            )

    def probabilities(self, popularity: np.ndarray) -> Float[np.ndarray, " items"]:
        """How often each item is drawn as a negative."""
        powered = np.where(popularity > 0, np.maximum(popularity, 1e-300).astype(np.float64) ** self.power, 0.0)
        return powered / powered.sum()

    def apply(self, X: Interactions) -> Interactions:
        if X.shift is not None or X.scale is not None:
            raise GonioError("fit: sampled negatives need the interactions themselves; use one remedy at a time.")
        q = self.probabilities(X.means * X.shape[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            if X.sparse:
                table = X.table.astype(np.float64)  # a copy: the user's table stays as it is
                rows = np.repeat(np.arange(X.shape[0]), np.diff(table.indptr))
                totals = np.bincount(rows, weights=table.data, minlength=X.shape[0])
                chance = self.count * totals[rows] * q[table.indices]
                table.data = np.where(table.data > 0, np.maximum(0, np.log(table.data / chance)), 0.0)
                table.eliminate_zeros()
            else:
                wide = X.table.astype(np.float64)
                chance = self.count * wide.sum(axis=1, keepdims=True) * q
                table = np.where(wide > 0, np.maximum(0, np.log(wide / chance)), 0.0)
        try:
            return Interactions(table)
        except GonioError:
            raise GonioError(
                f"fit: with {self.count:g} negatives an interaction nothing stands out from chance; take fewer."
            ) from None

    def __str__(self) -> str:
        return f"{self.count:g} sampled negatives, popularity^{self.power:g}"
