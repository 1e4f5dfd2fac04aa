"""Training on the cosine: rows are normalised while they are learnt, so no rescaling is left open.

    min over A, B, c  of  ||X - c P B'||^2,   P_u = (x_u A) / |x_u A|,  B_i of length 1

Normalising after training is another, weaker thing: the rescaling acts before it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gonio.factors.closed_forms import Solution, factors
from gonio.factors.interactions import Interactions


def on_cosine(
    X: Interactions,
    rank: int,
    *,
    seed: int,
    steps: int,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> tuple[Solution, float]:
    """The best found by L-BFGS from the singular directions of X, and the scale c.

    The problem is not convex: the answer is a local optimum, near the start that the singular directions are.
    """
    from scipy.optimize import minimize

    p = X.shape[1]
    start = factors(X, rank, 0.0, seed)
    size = p * rank
    done = 0

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient, _ = evaluate(X, x[:size].reshape(p, rank), x[size:].reshape(p, rank))
        return value / X.total, gradient / X.total

    def tell(x: np.ndarray) -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, steps, "training on the cosine")

    noise = np.random.default_rng(seed).standard_normal((p, rank))
    B0 = start.B + 1e-3 * np.linalg.norm(start.B) / np.sqrt(size) * noise
    A0 = start.A * (np.linalg.norm(B0) / max(np.linalg.norm(start.A), 1e-300))  # both of one size, for one step size
    found = minimize(
        loss, np.concatenate([A0.ravel(), B0.ravel()]), jac=True, method="L-BFGS-B", callback=tell,
        options={"maxiter": steps, "ftol": 1e-10, "gtol": 1e-12},
    )  # fmt: skip
    A, B = found.x[:size].reshape(p, rank), found.x[size:].reshape(p, rank)
    _, _, scale = evaluate(X, A, B)
    P, B = unit(X.times(A))[0], unit(B)[0]
    s = np.linalg.svd(np.asarray(np.linalg.qr(P, mode="r")) @ np.asarray(np.linalg.qr(B, mode="r")).T, compute_uv=False)
    return Solution(A, B, P, s, f"L-BFGS on the cosine, {found.nit} steps"), scale


def evaluate(X: Interactions, A: np.ndarray, B: np.ndarray) -> tuple[float, np.ndarray, float]:
    """The loss at the best scale c >= 0, its gradient in (A, B), and c."""
    P, length_p = unit(X.times(A))
    Q, length_q = unit(B)
    XQ, XP = X.times(Q), X.transposed(P)
    inner_p, inner_q = P.T @ P, Q.T @ Q
    fit, square = float((P * XQ).sum()), float((inner_p * inner_q).sum())
    c = max(0.0, fit / square) if square > 0 else 0.0
    to_p = -2 * c * XQ + 2 * c * c * (P @ inner_q)
    to_q = -2 * c * XP + 2 * c * c * (Q @ inner_p)
    to_p = (to_p - P * (P * to_p).sum(axis=1, keepdims=True)) / length_p
    to_q = (to_q - Q * (Q * to_q).sum(axis=1, keepdims=True)) / length_q
    return X.total - 2 * c * fit + c * c * square, np.concatenate([X.transposed(to_p).ravel(), to_q.ravel()]), c


def unit(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length 1 (a zero row stays zero), and the lengths (1 for a zero row)."""
    length = np.linalg.norm(V, axis=1, keepdims=True)
    length = np.where(length > 0, length, 1.0)
    return V / length, length
