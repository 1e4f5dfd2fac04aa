"""The closed forms: what each penalty leaves of the leading singular directions.

product   min ||X - X A B'||^2 + lam ||A B'||^2                    A = B = V_k diag(1 / (1 + lam/s^2))^1/2
factors   min ||X - X A B'||^2 + lam (||X A||^2 + ||B||^2)         A = V_k diag((1/s)(1 - lam/s)_+)^1/2
                                                                   B = V_k diag( s   (1 - lam/s)_+)^1/2
dropout   min ||X - X A B'||^2 + lam sum_j (X'X)_jj ||(A B')_j||^2, lam = q/(1-q)
          A B' = S^-1 X'X W W', S = X'X + lam diag(X'X), W the k leading eigenvectors of X'X S^-1 X'X
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.factors.interactions import Interactions
from gonio.factors.ridge import Ridge
from gonio.factors.spectrum import spectrum

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Solution:
    """A, B, the users X A, and the singular values each column stands for (of X, or of A B' for dropout)."""

    A: Float[np.ndarray, "items rank"]
    B: Float[np.ndarray, "items rank"]
    users: Float[np.ndarray, "users rank"]
    s: Float[np.ndarray, " rank"]
    how: str


def product(X: Interactions, rank: int, lam: float, seed: int = 0) -> Solution:
    """The penalty on the product A B'.

    Claims: SEK24.E1
    """
    f = spectrum(X, rank, seed=seed)
    weight = np.sqrt(product_weights(f.s, lam))
    return Solution(f.V * weight, f.V * weight, f.XV * weight, f.s, f"closed form ({f.way})")


def product_weights(s: np.ndarray, lam: float) -> Float[np.ndarray, " rank"]:
    """1 / (1 + lam/s^2); 0 where s is 0.

    >>> product_weights(np.array([2.0, 1.0, 0.0]), 4.0)
    array([0.5, 0.2, 0. ])
    """
    return np.where(s > 0, 1 / (1 + (np.sqrt(lam) / np.where(s > 0, s, 1)) ** 2), 0.0)


def factors(X: Interactions, rank: int, lam: float, seed: int = 0) -> Solution:
    """The penalty on each factor.

    Claims: SEK24.E2
    """
    f = spectrum(X, rank, seed=seed)
    left = np.maximum(0, f.s - lam)  # s (1 - lam/s)_+
    inverse = 1 / np.where(f.s > 0, f.s, 1)
    a = np.sqrt(left) * inverse
    return Solution(f.V * a, f.V * np.sqrt(left), f.XV * a, f.s, f"closed form ({f.way})")


def dropout(X: Interactions, rank: int, lam: float, seed: int = 0) -> Solution:
    """The penalty that dropping each input with rate q comes to, lam = q/(1-q); the two factors made equally long.

    Claims: GONIO.dropout
    """
    ridge = Ridge(X, lam * X.squares)
    W, smoothed = ridge.leading(rank, seed)
    Q, R = np.linalg.qr(smoothed)
    u, s, v = np.linalg.svd(R)
    s = np.where(s > s[0] * len(W) * np.finfo(np.float64).eps, s, 0.0)
    A, B = Q @ u * np.sqrt(s), W @ v.T * np.sqrt(s)
    flip = np.sign(B[np.abs(B).argmax(axis=0), np.arange(rank)])
    flip = np.where(flip == 0, 1, flip)
    A, B = A * flip, B * flip
    return Solution(A, B, X.times(A), s, f"closed form ({ridge.way})")


CLOSED = {"product": product, "factors": factors, "dropout": dropout}
