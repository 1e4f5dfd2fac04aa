"""Factor models: a pair (users, items), and the models of recommender libraries by the attributes they carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import LoadError
from gonio.core.head import Trained
from gonio.core.inputs import Observed
from gonio.core.row_table import RowTable
from gonio.files.read.head_draft import Draft

# (users, items, item biases) as libraries call them, and what their training penalises
MODELS: tuple[tuple[str, str, str | None, Trained, str], ...] = (
    ("user_factors", "item_factors", None, "factors", "implicit"),
    ("user_embeddings", "item_embeddings", "item_biases", "factors", "lightfm"),
    ("pu", "qi", "bi", "factors", "surprise"),
)


def pair(x: tuple[Any, Any]) -> Draft:
    """Items scored by their dot product with users; each a path to a .npy file or an array."""
    users, items = (_matrix(part, name) for part, name in zip(x, ("users", "items"), strict=True))
    return _draft(users, items, None, " and ".join(map(_name, x, ("users", "items"))), "factors")


def _name(x: Any, word: str) -> str:
    """The name of a table's file, or what it holds."""
    return Path(str(x)).name if isinstance(x, (str, bytes)) or hasattr(x, "__fspath__") else word


def is_factor_model(x: Any) -> bool:
    """Whether `x` carries users and items as one of the known libraries does."""
    return any(hasattr(x, users) and hasattr(x, items) for users, items, *_ in MODELS)


def of_model(x: Any) -> Draft:
    """The items of a fitted factor model."""
    for users_name, items_name, bias_name, trained, library in MODELS:
        users, items = getattr(x, users_name, None), getattr(x, items_name, None)
        if users is None or items is None:
            continue
        bias = getattr(x, bias_name, None) if bias_name else None
        name = type(x).__name__
        out = _draft(_matrix(users, users_name), _matrix(items, items_name), bias, f"a {name}", f"{library}-like")
        out.trained = trained
        out.decide(
            "trained",
            f"models with {users_name} and {items_name} are trained with a penalty on each factor",
            assumed=True,
        )
        return out
    raise LoadError(f"load: this {type(x).__name__} has empty factors; fit it first.")


def _matrix(x: Any, name: str) -> np.ndarray:
    if isinstance(x, (str, bytes)) or hasattr(x, "__fspath__"):
        from gonio.files.read.arrays import npy

        path = Path(str(x))
        if not path.is_file():
            raise LoadError(f"load: there is no file {path} for the {name}; give a .npy file or an array.")
        return npy(path).rows.whole()
    if hasattr(x, "to_numpy"):  # matrices on a GPU, data frames
        x = x.to_numpy()
    return checks.wide(checks.matrix(x, "load", name, axes=(name, "dim")))


def _draft(users: np.ndarray, items: np.ndarray, bias: Any, place: str, format: str) -> Draft:
    if users.shape[1] != items.shape[1]:
        raise LoadError(f"load: users have shape {users.shape} and items {items.shape}; both need the same width.")
    out = Draft(place, format, RowTable(items), link="dot", inputs=Observed(users))
    if bias is not None:
        out.bias = checks.vector(bias, "load", "the item biases", len(items))
    out.decide("weight", "the items")
    out.decide("bias", "the item biases" if bias is not None else "none")
    out.decide("link", "a factor model scores an item by its dot product with the user")
    out.decide("inputs", f"the {len(users):,} user vectors")
    out.decide("trained", "not told: taken as a penalty on the product, or none", assumed=True)
    out.trained = "product"
    out.bytes_read = users.nbytes + items.nbytes
    return out
