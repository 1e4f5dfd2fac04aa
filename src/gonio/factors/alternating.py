"""The same objectives by alternating least squares from a random start: what training really does.

Each half-step solves its factor exactly, so the objective never rises. Where the penalty is on the product, the end
point depends on the start by an invertible matrix; where it is on each factor, by a rotation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from gonio.core.errors import GonioError
from gonio.factors.closed_forms import Solution
from gonio.factors.interactions import Interactions
from gonio.factors.ridge import Ridge

FEW = 2048  # items


def als(
    X: Interactions,
    rank: int,
    penalty: str,
    lam: float,
    *,
    seed: int,
    steps: int,
    tolerance: float,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Solution:
    """Alternate until the objective falls by less than `tolerance` of itself in a step.

    product, dropout   A = S^-1 X'X B (B'B)^-1,          B = X'P (P'P + A' Lam A)^-1,   P = X A
    factors            A = B (B'B + lam)^-1,             B = X'P (P'P + lam)^-1
    """
    # One BLAS thread where matrices are small: threads would mostly wait for each other.
    with threadpool_limits(1 if X.shape[1] <= FEW else None, "blas"):
        p = X.shape[1]
        squares = X.squares
        weights = np.full(p, lam) if penalty == "product" else lam * squares
        ridge = None if penalty == "factors" or lam == 0 else Ridge(X, weights)
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((p, rank)) * np.sqrt(X.total / (X.shape[0] * p)) / np.sqrt(rank)
        eye, previous, value, step = np.eye(rank), np.inf, np.inf, 0
        A = P = cross = B
        for step in range(1, steps + 1):
            if ridge is None:
                A = _right(B, B.T @ B + (lam if penalty == "factors" else 0.0) * eye)
            else:
                A = _right(ridge.smooth(B), B.T @ B)
            P = X.times(A)
            cross = X.transposed(P)
            inner = P.T @ P
            penal = A.T @ (weights[:, None] * A) if penalty != "factors" else lam * eye
            B = _right(cross, inner + penal)
            # At its own minimum over B the objective is ||X||^2 - <B, X'P>, and the share of P where that is penalised.
            value = X.total - float((B * cross).sum()) + (lam * float(np.trace(inner)) if penalty == "factors" else 0.0)
            if on_progress is not None:
                on_progress(step, steps, f"objective {value:.6g}")
            if previous - value <= tolerance * abs(X.total):
                break
            previous = value
        if not np.isfinite(value):
            raise GonioError(f"fit: alternating least squares left the finite numbers at step {step}; use by='closed'.")
        s = np.linalg.svd(
            np.asarray(np.linalg.qr(P, mode="r")) @ np.asarray(np.linalg.qr(B, mode="r")).T, compute_uv=False
        )
        return Solution(A, B, P, s, f"alternating least squares, {step} steps from seed {seed}")


def _right(Y: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Y K^-1 for a symmetric K >= 0; directions that K does not have are left out."""
    from scipy.linalg import eigh

    values, vectors = eigh(K)
    keep = values > values[-1] * len(K) * np.finfo(np.float64).eps
    return (Y @ vectors[:, keep] / values[keep]) @ vectors[:, keep].T
