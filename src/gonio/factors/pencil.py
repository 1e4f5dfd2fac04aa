"""The leading directions of a smoother of any width, without ever solving with it.

For  S = G + diag(penalty)  the eigenvectors w of  G S^-1 G  come with  y = S^-1 G w / mu^1/2  from the pencil

    G^2 y = mu S y,      w = G y / mu^1/2,      S^-1 G w = mu^1/2 y,

in which nothing is inverted. It is solved for all wanted y at once (LOBPCG: Knyazev 2001), with rows and columns scaled
so that S has ones on its diagonal. S is then a few large directions and the rest near the identity, which is what the
preconditioner takes it for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

TOLERANCE = 1e-9  # of the residual, relative to the largest eigenvalue: the objective is then right to its square
STEPS = 400
PASSES = 4  # of subspace iteration for the preconditioner and the start


def leading(
    gram: Callable[[np.ndarray], np.ndarray],
    diagonal: Float[np.ndarray, " items"],
    penalty: Float[np.ndarray, " items"],
    rank: int,
    seed: int = 0,
) -> tuple[Float[np.ndarray, "items rank"], Float[np.ndarray, "items rank"]]:
    """The leading eigenvectors W of  G S^-1 G,  largest first, and  S^-1 G W.

    gram: V -> G V for several columns. diagonal: that of S, all positive.
    """
    from scipy.sparse.linalg import LinearOperator, lobpcg

    p = len(diagonal)
    width = np.sqrt(diagonal)[:, None]
    own = (penalty / diagonal)[:, None]

    def scaled(Z: np.ndarray) -> np.ndarray:
        return gram(Z / width) / width

    def operator(product: Callable[[np.ndarray], np.ndarray]) -> LinearOperator:
        one = lambda z: product(z.reshape(-1, 1))[:, 0]  # noqa: E731
        return LinearOperator((p, p), matvec=one, matmat=product, dtype=np.float64)  # type: ignore[call-arg]

    block = min(rank + max(8, rank // 5), p)
    U = np.linalg.qr(np.random.default_rng(seed).standard_normal((p, block)))[0]
    for _ in range(PASSES):
        U = np.linalg.qr(scaled(U))[0]
    large, turn = np.linalg.eigh(U.T @ (scaled(U) + own * U))
    U = U @ turn
    rest = max((p - float(large.sum())) / max(p - block, 1), float(own.min()), 1e-3)
    excess = (1 / large - 1 / rest)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what scipy says of its tolerance; ours follows below
        mu, Z, history = lobpcg(
            operator(lambda Z: scaled(width**2 * scaled(Z))),
            U,
            B=operator(lambda Z: scaled(Z) + own * Z),
            M=operator(lambda R: R / rest + U @ (excess * (U.T @ R))),
            largest=True,
            maxiter=STEPS,
            tol=TOLERANCE * _top(scaled, width, U),
            retResidualNormsHistory=True,
        )
    order = np.argsort(-mu)[:rank]
    mu, Z = np.maximum(mu[order], 0.0), Z[:, order]
    off = float(np.sort(history[-1])[:rank].max()) / mu[0]
    if off > 1e3 * TOLERANCE:
        warnings.warn(
            f"fit: after {STEPS} steps the directions are known to {off:.0e} only; a penalty this weak needs more.",
            stacklevel=5,
        )
    alive = mu > mu[0] * p * np.finfo(np.float64).eps
    root = np.where(alive, np.sqrt(mu), 0.0)
    Y = Z / width
    return gram(Y) * np.where(alive, 1 / np.where(alive, root, 1.0), 0.0), Y * root


def _top(scaled: Callable[[np.ndarray], np.ndarray], width: np.ndarray, U: np.ndarray) -> float:
    """About the largest eigenvalue: that of the last direction of the start, which has the largest part of S."""
    z = U[:, -1:]
    g = width * scaled(z)
    return float((g**2).sum() / ((z * scaled(z)).sum() + 1e-300))
