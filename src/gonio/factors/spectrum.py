"""The leading singular vectors of the interactions: by the small Gram matrix where that is cheap, else by Lanczos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.errors import GonioError
from gonio.factors.interactions import Interactions

if TYPE_CHECKING:
    from jaxtyping import Float

WIDE = 8192  # the largest side whose square is ever held


@dataclass(frozen=True, eq=False)
class Spectrum:
    """X ~ U diag(s) V': the k largest singular values, their right vectors, and X V = U diag(s)."""

    s: Float[np.ndarray, " rank"]
    V: Float[np.ndarray, "items rank"]
    XV: Float[np.ndarray, "users rank"]
    way: str


def spectrum(X: Interactions, rank: int, *, seed: int = 0) -> Spectrum:
    """The truncated SVD, without a dense X.

    The vectors span the leading invariant subspace of X'X; the values come from X times them, so that small ones do
    not suffer from the squaring. Signs are chosen so that the largest entry of each vector is positive.
    """
    way = choose(X, rank)
    if way == "lanczos":
        V = _lanczos(X, rank, seed)
    else:
        from scipy.linalg import eigh

        axis = 0 if way == "gram of items" else 1
        G = X.gram(axis)
        side = len(G)
        V = eigh(G, subset_by_index=(side - rank, side - 1), overwrite_a=True, check_finite=False)[1]
        if axis == 1:  # from left vectors to an orthonormal basis of the right ones
            V = np.linalg.svd(X.transposed(V), full_matrices=False)[0]
    V = np.linalg.qr(V)[0]
    XV = X.times(V)
    _, s, turn = np.linalg.svd(np.linalg.qr(XV, mode="r"))
    V, XV = V @ turn.T, XV @ turn.T
    flip = np.sign(V[np.abs(V).argmax(axis=0), np.arange(rank)])
    s = np.where(s > s[0] * max(X.shape) * np.finfo(np.float64).eps, s, 0.0)
    return Spectrum(s, V * flip, XV * flip, way)


def choose(X: Interactions, rank: int) -> str:
    """The quicker way, by counting multiplications."""
    n, p = X.shape
    side = min(n, p)
    if side > WIDE:
        if rank >= side:
            raise GonioError(
                f"fit: rank {rank} of a {n:,} x {p:,} table needs a dense {side:,} x {side:,} matrix; ask for less."
            )
        return "lanczos"
    dense = n * p * side / 2 / 20  # BLAS does about twenty for one of a sparse product
    steps = 4 * rank + 40
    if rank > side // 3 or dense + 4 * side**3 / 20 < 2 * X.entries * steps:
        return "gram of items" if p <= n else "gram of users"
    return "lanczos"


def _lanczos(X: Interactions, rank: int, seed: int) -> np.ndarray:
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    p = X.shape[1]
    operator = LinearOperator((p, p), matvec=X.gram_operator(), dtype=np.float64)  # type: ignore[call-arg]
    start = np.random.default_rng(seed).standard_normal(p)
    try:
        return eigsh(operator, k=rank, which="LA", v0=start)[1][:, ::-1]
    except ArpackNoConvergence as e:
        raise GonioError(
            f"fit: the Lanczos iteration found {len(e.eigenvalues)} of {rank} singular vectors; choose a lower rank."
        ) from None
