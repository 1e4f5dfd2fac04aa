"""Rows at length one, and cosines of pairs of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.core.parallel import spans

if TYPE_CHECKING:
    from jaxtyping import Float

PAIRS = 65536


def unit(X: Float[np.ndarray, "rows dim"]) -> Float[np.ndarray, "rows dim"]:
    """x / |x| for each row; a zero row stays zero.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length > 0, length, 1)


def cosines(A: Float[np.ndarray, "pairs dim"], B: Float[np.ndarray, "pairs dim"]) -> Float[np.ndarray, " pairs"]:
    """a.b / (|a| |b|) for each row of A with that of B; NaN where one of the two is zero."""
    a, b = A.astype(np.float64), B.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
        return np.clip(np.einsum("ij,ij->i", a, b), -1, 1)


def cosines_of(X: Float[np.ndarray, "rows dim"], i: np.ndarray, j: np.ndarray) -> Float[np.ndarray, " pairs"]:
    """The cosines of rows i with rows j, some pairs at a time; 0 where one of the two is zero."""
    U = unit(X)
    return np.concatenate([np.einsum("ij,ij->i", U[i[a:b]], U[j[a:b]]) for a, b in spans(len(i), PAIRS)] or [U[:0, 0]])
