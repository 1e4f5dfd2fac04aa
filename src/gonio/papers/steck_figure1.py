"""The paper's Figure 1 again: one simulation, the cosines of each choice, and how well each tells clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.factors.closed_forms import product_weights
from gonio.factors.fitting import fit
from gonio.factors.interactions import Interactions
from gonio.factors.model import FactorModel
from gonio.factors.similar import vectors
from gonio.papers.factor_remedies import remedied
from gonio.papers.simulated_interactions import Separation, Simulated, separation, simulate

if TYPE_CHECKING:
    from jaxtyping import Float

# What a run of seed 0 gave at the paper's size, and how far seeds differ: mean same, mean different, AUC.
EXPECTED: dict[str, tuple[float, float, float]] = {
    "V_k": (0.220, 0.000, 0.708),
    "D = I": (0.393, 0.009, 0.906),
    "V_k (s w)^1/2": (0.829, 0.362, 0.965),
    "V_k s w^1/2": (0.970, 0.767, 0.958),
    "penalty on factors": (0.946, 0.471, 0.977),
    "projected back": (0.977, 0.782, 0.961),
    "raw columns of X": (0.733, 0.573, 0.837),
}
TOLERANCE = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class Figure1:
    """The choices, each with its item vectors and its separation."""

    data: Simulated
    rank: int
    lam_product: float
    lam_factors: float
    survive: int
    singular: Float[np.ndarray, " rank"]
    vectors: dict[str, np.ndarray]
    rows: tuple[Separation, ...]

    def row(self, name: str) -> Separation:
        """One choice by its name."""
        return next(r for r in self.rows if r.name == name)

    def to_dict(self) -> dict[str, Any]:
        n, p = self.data.X.shape
        return {
            "users": n,
            "items": p,
            "seed": self.data.seed,
            "rank": self.rank,
            "lam_product": self.lam_product,
            "lam_factors": self.lam_factors,
            "survive": self.survive,
            "singular": self.singular.tolist(),
            "rows": [r.to_dict() for r in self.rows],
        }

    def __repr__(self) -> str:
        best = max(self.rows, key=lambda r: r.auc)
        return (
            f"Figure1({self.data!r})".splitlines()[0]
            + f"\n  best area under ROC: {best.auc:.3f} by {best.name}; worst {min(r.auc for r in self.rows):.3f}"
        )


def figure1(
    users: int = 20_000,
    items: int = 1_000,
    *,
    rank: int = 50,
    lam_product: float = 10_000.0,
    lam_factors: float = 100.0,
    seed: int = 0,
    remedies: bool = False,
) -> Figure1:
    """Simulate, fit both objectives in closed form, and compare every choice of the item vectors.

    With w = 1/(1 + lam/s^2): the answers V_k, V_k w^1/2 (D = I), V_k (s w)^1/2, V_k s w^1/2 belong to one and the same
    objective, the penalty on the product; so does what is projected back, V_k s w. With `remedies` also the vectors
    that the paper's remedies lead to (`gonio.papers.factor_remedies`).
    """
    data = simulate(users, items, seed=seed)
    product = fit(data.X, rank, "product", lam=lam_product)
    penalised = fit(data.X, rank, "factors", lam=lam_factors)
    chosen = choices(product) | {
        "penalty on factors": penalised.items,
        "projected back": vectors(product.users, product.items, "projected"),
        "raw columns of X": raw(data.X),
    }
    if remedies:
        chosen |= remedied(data.X, rank, lam_product)
    rows = tuple(separation(name, V, data.cluster) for name, V in chosen.items())
    s = product.singular
    return Figure1(data, rank, lam_product, lam_factors, len(penalised.survive), s, chosen, rows)


def choices(model: FactorModel) -> dict[str, np.ndarray]:
    """The named rescalings of a closed form with a penalty on the product: all are its answers alike."""
    s, w = model.singular, product_weights(model.singular, model.lam)
    alive = w > 0
    V = model.items[:, alive] / np.sqrt(w[alive])
    s, w = s[alive], w[alive]
    return {
        "V_k": V,
        "D = I": V * np.sqrt(w),
        "V_k (s w)^1/2": V * np.sqrt(s * w),
        "V_k s w^1/2": V * s * np.sqrt(w),
    }


def raw(X: Any) -> Float[np.ndarray, "items side"]:
    """Rows whose cosines are those of the columns of X: the columns, or a square root of X'X where that is smaller."""
    if X.shape[0] <= X.shape[1]:
        return np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64).T
    G = Interactions(X).gram()
    values, turn = np.linalg.eigh(G)
    return turn * np.sqrt(np.maximum(values, 0))
