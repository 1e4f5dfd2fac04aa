"""Rescaling a factor model: the same scores, other cosines.

    users -> users M,  items -> items M^-T     (M = diag(d) in the simplest case)

With the scores' own singular form  users items' = U diag(t) V'  some choices have names:

    items       items = V                 at full rank all cosines of different items are 0
    balanced    items = V diag(t)^1/2     users and items equally long; what a penalty on each factor leads to
    users       items = V diag(t)         users orthonormal: cosines are those of the columns of the scores
    identity    as fitted
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.factors.model import FactorModel
from gonio.gauge import Reach
from gonio.gauge.factor_ranges import item_item, user_item

if TYPE_CHECKING:
    from jaxtyping import Float

CHOICES = {"items": 0.0, "balanced": 0.5, "users": 1.0}
ZERO = 1e-12  # of the largest entry of a column: what rounding leaves of a zero


def rescale(model: FactorModel, D: Any) -> FactorModel:
    """The model under a rescaling: a vector d > 0 (one entry a column), an invertible matrix, or a named choice.

    The scores stay. So does the objective that was minimised, if the penalty was on the product (or by dropout): then
    this model is as good an answer of the training as the one given. Where each factor was penalised it is not, and
    `.objective` says how much worse it is.

    Claims: SEK24.invariant
    """
    if model.link == "cosine":
        raise GonioError("rescale: the model was trained on the cosine, which no rescaling leaves alone.")
    if isinstance(D, str):
        if D == "identity":
            return model
        checks.one_of(D, ("identity", *CHOICES), "rescale", "D")
        return _named(model, D)
    a = checks.array(D, "rescale", "D").astype(np.float64)
    checks.finite(a, "rescale", "D")
    k = model.shape[2]
    if a.shape == (k,):
        if not (a > 0).all():
            raise GonioError(f"rescale: D has the entry {a.min():g}; positive numbers are needed, one a column.")
        return model.moved(np.diag(a), "rescaled")
    if a.shape == (k, k):
        if np.linalg.matrix_rank(a) < k:
            raise GonioError("rescale: the matrix is singular; only an invertible one keeps the scores.")
        return model.moved(a, "moved by an invertible map")
    raise GonioError(f"rescale: D has shape {a.shape}; the model has {k} columns, so shape ({k},) or ({k}, {k}).")


def singular_form(
    users: np.ndarray, items: np.ndarray
) -> tuple[Float[np.ndarray, "items kept"], Float[np.ndarray, " kept"], Float[np.ndarray, "dim kept"]]:
    """V, t and T with  users items' = U diag(t) V'  and  U = users T: only the columns that have a score."""
    Rp, Rq = (np.asarray(np.linalg.qr(x, mode="r")) for x in (users, items))
    _, t, v = np.linalg.svd(Rp @ Rq.T)
    keep = t > t[0] * max(len(users), len(items)) * np.finfo(np.float64).eps if len(t) else np.zeros(0, bool)
    t, v = t[keep], v[: len(keep)][keep]
    # V = Q_items v' without holding Q:  items = Q R  and  V' = t^-1 U' users items'
    V = np.linalg.qr(items)[0] @ v.T
    flip = np.sign(V[np.abs(V).argmax(axis=0), np.arange(len(t))])
    T = items.T @ (V * flip) / t  # users items' V = U diag(t)
    return V * flip, t, T


def _named(model: FactorModel, name: str) -> FactorModel:
    from dataclasses import replace

    V, t, T = singular_form(model.users, model.items)
    if not len(t):
        raise GonioError("rescale: every score of the model is 0, so it has no singular form.")
    power = CHOICES[name]
    M = T * t ** (1 - power)
    cross = None if model.cross is None else model.cross @ M
    singular = t
    return replace(
        model,
        users=model.users @ M,
        items=V * t**power,
        A=model.A @ M,
        cross=cross,
        singular=singular,
        how=f"{model.how}; rescaled: {name}",
    )


def cosine_range(model: FactorModel, a: Any, b: Any) -> Reach:
    """Every value that the cosine of two items can take over all rescalings d > 0 of the model's columns.

    Only one value where the training leaves no rescaling open.
    """
    x, y = (clean(model.items)[model.index(i)] for i in (a, b))
    if model.trained == "factors" or model.link == "cosine":
        from gonio.gauge.reach import cosine

        c = cosine(x, y)
        return Reach(c, c, not np.isnan(c), not np.isnan(c), "the training leaves only rotations open")
    return item_item(x, y)


def user_item_range(model: FactorModel, user: int, item: Any) -> Reach:
    """Every value that the cosine of a user and an item can take over all rescalings d > 0."""
    if not 0 <= user < len(model.users):
        raise GonioError(
            f"user_item_range: user {user} is out of range; the model has users 0 to {len(model.users) - 1}."
        )
    p, q = model.users[user], model.items[model.index(item)]
    if model.trained == "factors" or model.link == "cosine":
        from gonio.gauge.reach import cosine

        c = cosine(p, q)
        return Reach(c, c, not np.isnan(c), not np.isnan(c), "the training leaves only rotations open")
    return user_item(p, q)


def clean(items: np.ndarray) -> np.ndarray:
    """The items with what rounding left of zeros set to zero, since the ranges ask for signs."""
    top = np.abs(items).max(axis=0)
    return np.where(np.abs(items) <= ZERO * top, 0.0, items)
