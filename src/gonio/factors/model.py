"""FactorModel: users, items, and what their training left open."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gonio.core.directions import unit
from gonio.core.errors import GonioError
from gonio.core.head import Head, Trained
from gonio.core.inputs import Observed
from gonio.core.renderers import rendered
from gonio.core.source import Source
from gonio.gauge import Gauge, gauge_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Penalty = Literal["product", "factors", "dropout", "none"]


@dataclass(frozen=True, eq=False, repr=False)
class FactorModel:
    """A fitted factorisation  X ~ users items',  users = X A.

    users, items     the embeddings, one a row
    A                the users' map: a new user with interactions x has the embedding x A
    penalty, lam     what was penalised, and how strongly (for dropout lam = q/(1-q))
    singular         what each column stands for: a singular value of X (closed forms) or of the scores
    survive          the columns that the penalty left; the others are zero
    link             "dot", or "cosine" where rows were normalised during training
    """

    users: Float[np.ndarray, "users rank"]
    items: Float[np.ndarray, "items rank"]
    A: Float[np.ndarray, "items rank"]
    penalty: Penalty
    lam: float
    singular: Float[np.ndarray, " rank"]
    how: str
    link: Literal["dot", "cosine"] = "dot"
    scale: float = 1.0  # of the cosine in the scores, for the link cosine
    remedy: str = "none"
    empty_users: Int[np.ndarray, " empty"] = field(default_factory=lambda: np.zeros(0, np.int64))
    empty_items: Int[np.ndarray, " empty"] = field(default_factory=lambda: np.zeros(0, np.int64))
    popularity: Int[np.ndarray, " items"] | None = None
    labels: tuple[str, ...] | None = None
    total: float = np.nan  # ||X||^2
    squares: Float[np.ndarray, " items"] | None = None  # diag(X'X)
    cross: Float[np.ndarray, "items rank"] | None = None  # X'X A

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    # -- what it is -----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int, int]:
        """(users, items, rank)."""
        return len(self.users), len(self.items), self.items.shape[1]

    @cached_property
    def survive(self) -> Int[np.ndarray, " survive"]:
        """The columns that are not zero."""
        return np.flatnonzero(self.items.any(axis=0) & self.users.any(axis=0))

    @property
    def trained(self) -> Trained:
        """What the training left open: "product" (every invertible map) or "factors" (rotations only).

        A penalty on each factor of strength 0 is no penalty, and leaves every map open.
        """
        return "factors" if self.penalty == "factors" and self.lam > 0 else "product"

    @property
    def gauge(self) -> Gauge:
        """The changes of users and items that leave the model, and its training objective, as they are."""
        return gauge_of(self.head())

    def head(self) -> Head:
        """The items as a Head over the users of the data."""
        source = Source("a factor model in memory", "factors", decided={"trained": f"penalty on: {self.penalty}"})
        return Head(
            self.items,
            link=self.link,
            labels=self.labels,
            inputs=Observed(self.users),
            trained=self.trained if self.link == "dot" else None,
            source=source,
        )

    def index(self, item: Any) -> int:
        """The row of an item, by name or number."""
        return self._named.index(item)

    @cached_property
    def _named(self) -> Head:
        return Head(self.items, link="dot", labels=self.labels)

    def name(self, item: int) -> str:
        return str(item) if self.labels is None else self.labels[item]

    # -- what it says ---------------------------------------------------------------------------------------------

    def scores(self, users: Any = slice(None)) -> np.ndarray:
        """The scores of all items for the chosen users (rows of the data)."""
        return self.scale * (self.users[users] @ self.items.T)

    def embed(self, X: Any) -> np.ndarray:
        """The embeddings of new users from their interactions."""
        from gonio.factors.interactions import Interactions

        if self.remedy != "none":
            raise GonioError(
                f"embed: the model was fitted after a remedy ({self.remedy}); apply it and multiply by .A."
            )
        new = Interactions(X, signed=True, who="embed")
        if new.shape[1] != len(self.A):
            raise GonioError(f"embed: X has shape {new.shape} and the model {len(self.A):,} items; they must agree.")
        out = new.times(self.A)
        if self.link == "dot":
            return out
        return unit(out)

    @cached_property
    def residual(self) -> float:
        """||X - X A B'||^2, over every entry of X."""
        if self.cross is None:
            raise GonioError("FactorModel: this model was not fitted here, so its residual is not known.")
        if self.link == "cosine":
            fit = self.scale * float((self.items * self.cross).sum())
        else:
            fit = float((self.items * self.cross).sum())
        square = float(((self.users.T @ self.users) * (self.items.T @ self.items)).sum()) * self.scale**2
        return self.total - 2 * fit + square

    @cached_property
    def objective(self) -> float:
        """What the training minimises, at this model.

        Claims: SEK24.invariant
        """
        if self.link == "cosine" or self.penalty == "none":
            return self.residual
        if self.penalty == "factors":
            return self.residual + self.lam * (float((self.users**2).sum()) + float((self.items**2).sum()))
        weights = np.ones(len(self.A)) if self.penalty == "product" else self.squares
        assert weights is not None
        inner = self.A.T @ (weights[:, None] * self.A)
        return self.residual + self.lam * float((inner * (self.items.T @ self.items)).sum())

    def moved(self, M: np.ndarray, how: str) -> FactorModel:
        """Users times M, items times M^-T: the same scores."""
        back = np.linalg.inv(M).T
        cross = None if self.cross is None else self.cross @ M
        return replace(
            self,
            users=self.users @ M,
            items=self.items @ back,
            A=self.A @ M,
            cross=cross,
            how=f"{self.how}; {how}",
        )

    def to_dict(self) -> dict[str, Any]:
        """The model's facts in plain values, without its tables."""
        n, p, k = self.shape
        known = self.cross is not None
        return {
            "users": n,
            "items": p,
            "rank": k,
            "survive": self.survive.tolist(),
            "penalty": self.penalty,
            "lam": self.lam,
            "link": self.link,
            "trained": self.trained if self.link == "dot" else None,
            "how": self.how,
            "remedy": self.remedy,
            "singular": self.singular.tolist(),
            "empty_users": self.empty_users.tolist(),
            "empty_items": self.empty_items.tolist(),
            "objective": self.objective if known else None,
            "explained": 1 - self.residual / self.total if known else None,
        }

    def _repr_html_(self) -> str:
        return rendered(self, "card")

    def __repr__(self) -> str:
        n, p, k = self.shape
        if self.link == "cosine":
            what, open_ = "trained on the cosine", "only rotations are left open: cosines are what was trained"
        else:
            what = f"penalty on {'the product' if self.penalty == 'product' else self.penalty}, lam {self.lam:g}"
            open_ = (
                "rotations are left open: cosines are unique, and depend on lam"
                if self.trained == "factors"
                else "every invertible map is left open: item-item cosines are arbitrary"
            )
        size = f"{n:,} users x {p:,} items, rank {k}, {len(self.survive)} dimensions survive"
        return f"FactorModel({size}; {what})\n  {open_}"
