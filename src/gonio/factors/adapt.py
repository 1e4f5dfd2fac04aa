"""Any factor model as plain tables: a FactorModel, a head, a pair (users, items), or a library's fitted object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head, Trained
from gonio.factors.model import FactorModel
from gonio.models.loading import load

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class Tables:
    """Users and items, with what is known of their training; `assumed` where that was not told."""

    users: Float[np.ndarray, "users dim"]
    items: Float[np.ndarray, "items dim"]
    bias: Float[np.ndarray, " items"] | None
    trained: Trained
    assumed: bool
    link: str
    head: Head
    place: str
    popularity: Int[np.ndarray, " items"] | None = None


def tables(x: Any, *, trained: Trained | None = None) -> Tables:
    """The users and items of `x`; `trained` overrules what is known or assumed of the training.

    implicit-like objects have user_factors and item_factors; lightfm-like ones user_embeddings, item_embeddings and
    item_biases; surprise-like ones pu, qi and bi.
    """
    popularity = None
    if isinstance(x, FactorModel):
        head, assumed, popularity = x.head(), False, x.popularity
    else:
        head = x if isinstance(x, Head) else load(x)
        assumed = head.source is not None and "trained" in head.source.assumed
    inputs = head.inputs
    if inputs.points is None or head.link not in ("dot", "cosine"):
        raise GonioError(
            f"audit: this is a {head.link} head over {inputs}; a factor model with users and items is needed, "
            f"such as a pair (users, items)."
        )
    kept: Trained = trained or head.trained or "product"
    if kept != head.trained and head.link == "dot":
        head = head.replace(trained=kept)
    return Tables(
        np.asarray(inputs.points, np.float64),
        np.asarray(head.W, np.float64),
        None if head.bias is None else head.bias.astype(np.float64),
        kept,
        assumed and trained is None,
        head.link,
        head,
        head.source.place if head.source else "a factor model",
        popularity,
    )
