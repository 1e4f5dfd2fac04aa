"""Similar items: by the cosine of the item vectors, or projected back to the data, where it is determined.

Projected back:  the cosine of columns i and j of the scores  P B'  is that of  b_i' K b_j  with K = P'P, the second
moment of the user embeddings. With K = R'R the rows  B R'  have these as plain cosines, so nothing of size
users x items is ever formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from gonio.core import checks
from gonio.core.directions import unit
from gonio.core.errors import GonioError
from gonio.core.row_table import RowTable
from gonio.factors.adapt import tables
from gonio.similarity.nearest import nearest_by_cosine

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Method = Literal["cosine", "projected"]
SPARE = 8  # more are found in float32 than asked for, and ordered in float64


@dataclass(frozen=True, eq=False, repr=False)
class SimilarItems:
    """For each item asked about its nearest items, nearest first, and their similarity.

    `determined` says whether the training fixes this similarity or leaves it to convention.
    """

    asked: Int[np.ndarray, " asked"]
    near: Int[np.ndarray, "asked near"]
    cosines: Float[np.ndarray, "asked near"]
    method: Method
    determined: bool
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for a in (self.asked, self.near, self.cosines):
            a.flags.writeable = False

    def __len__(self) -> int:
        return len(self.asked)

    def columns(self) -> dict[str, list[Any]]:
        """One row a pair."""
        k = self.near.shape[1]
        name = (lambda i: str(i)) if self.labels is None else (lambda i: self.labels[i])  # type: ignore[index]
        return {
            "item": [name(int(i)) for i in np.repeat(self.asked, k)],
            "rank": list(range(1, k + 1)) * len(self.asked),
            "similar": [name(int(j)) for j in self.near.ravel()],
            "cosine": self.cosines.ravel().tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """The lists in plain values."""
        return {
            "asked": self.asked.tolist(),
            "near": self.near.tolist(),
            "cosines": self.cosines.tolist(),
            "method": self.method,
            "determined": self.determined,
        }

    def __repr__(self) -> str:
        n, k = self.near.shape
        said = (
            "fixed by the training" if self.determined else "a convention: another answer of the same training differs"
        )
        return f"SimilarItems({n:,} items, {k} neighbours each, by {self.method})\n  {said}"


def vectors(users: np.ndarray, items: np.ndarray, method: str) -> Float[np.ndarray, "items dim"]:
    """Rows whose plain cosines are the similarity.

    Claims: GONIO.projected
    """
    checks.one_of(method, get_args(Method), "similar_items", "method")
    if method == "cosine":
        return np.asarray(items, np.float64)
    return items.astype(np.float64) @ triangle(users).T


def similar_items(
    model: Any, items: Any | Sequence[Any] | None = None, k: int = 10, *, method: Method = "projected"
) -> SimilarItems:
    """The k most similar items of one item, of several, or of all, in blocks.

    model : a FactorModel, a Head over its users, a pair (users, items) of arrays or .npy files, or a library's object
    method : "projected" (the default) compares two items' scores over the users, item biases included, and is the same
        for every rescaling of the model; "cosine" is the plain cosine of the item vectors, which a penalty on the
        product leaves to convention
    """
    t = tables(model)
    which = None
    if items is not None:
        several: list[Any] = [items] if isinstance(items, (str, int, np.integer)) else list(items)
        which = np.array([t.head.index(i) for i in several], np.int64)
        if not len(which):
            raise GonioError("similar_items: no item was named; name some, or none at all to ask about every item.")
    users, rows = t.users, t.items
    if t.bias is not None and method == "projected":  # a bias is one more coordinate, in which every user has 1
        users, rows = np.column_stack([users, np.ones(len(users))]), np.column_stack([rows, t.bias])
    near, cosines = lists(vectors(users, rows, method), k, which)
    asked = np.arange(len(t.items)) if which is None else which
    fixed = method == "projected" or t.link == "cosine" or t.trained == "factors"
    return SimilarItems(asked, near, cosines, method, fixed, t.head.labels if t.head.named else None)


def lists(
    V: np.ndarray, k: int, which: np.ndarray | None = None
) -> tuple[Int[np.ndarray, "asked near"], Float[np.ndarray, "asked near"]]:
    """The k rows of largest cosine: found in float32, with a few to spare, and ordered in float64."""
    n = len(V)
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k < n:
        raise GonioError(f"similar_items: {k} neighbours of {n:,} items were asked for; 1 to {n - 1:,} can be given.")
    near, _ = nearest_by_cosine(RowTable(V), min(n - 1, k + SPARE), which)
    asked = np.arange(n) if which is None else which
    U = unit(V)
    cosines = np.empty(near.shape)
    for a in range(0, len(asked), 4096):
        cosines[a : a + 4096] = np.einsum("ik,ijk->ij", U[asked[a : a + 4096]], U[near[a : a + 4096]])
    order = np.lexsort((near, -np.round(cosines, 12)), axis=1)[:, :k]
    return np.take_along_axis(near, order, 1), np.take_along_axis(cosines, order, 1)


def triangle(V: np.ndarray) -> Float[np.ndarray, "few dim"]:
    """R of V = Q R: a small matrix with the same inner products of columns, R'R = V'V."""
    return np.asarray(np.linalg.qr(V.astype(np.float64, copy=False), mode="r"))
