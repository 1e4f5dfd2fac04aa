"""Small interactions, and the objectives of the paper written a second time, plainly and with a dense X."""

from __future__ import annotations

import numpy as np


def interactions(n=30, p=8, seed=0, density=0.4):
    """Binary interactions of unequal popularity, no user or item empty."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, p)) < density * np.linspace(0.4, 1.6, p)).astype(float)
    X[np.arange(n), rng.integers(0, p, n)] = 1
    X[rng.integers(0, n, p), np.arange(p)] = 1
    return X


def objective(X, A, B, penalty, lam):
    """Equation 1 ("product"), equation 2 ("factors") and dropout's, entry by entry."""
    W = A @ B.T
    fit = ((X - X @ W) ** 2).sum()
    if penalty == "product":
        return fit + lam * (W**2).sum()
    if penalty == "factors":
        return fit + lam * (((X @ A) ** 2).sum() + (B**2).sum())
    return fit + lam * sum((X[:, j] ** 2).sum() * (W[j] ** 2).sum() for j in range(X.shape[1]))


def gradient(X, A, B, penalty, lam):
    """The gradient of `objective` in (A, B)."""
    G, W = X.T @ X, A @ B.T
    outer = 2 * (G @ W - G)  # of the fit, in W
    if penalty == "product":
        outer += 2 * lam * W
    elif penalty == "dropout":
        outer += 2 * lam * np.diag(G)[:, None] * W
    dA, dB = outer @ B, outer.T @ A
    if penalty == "factors":
        dA, dB = dA + 2 * lam * G @ A, dB + 2 * lam * B
    return dA, dB


def best_of(X, k, penalty, lam, starts, seed=0):
    """The least objective found by L-BFGS from random starts, and where."""
    from scipy.optimize import minimize

    p = X.shape[1]
    rng = np.random.default_rng(seed)

    def loss(x):
        A, B = x[: p * k].reshape(p, k), x[p * k :].reshape(p, k)
        return objective(X, A, B, penalty, lam), np.concatenate([g.ravel() for g in gradient(X, A, B, penalty, lam)])

    found = []
    for _ in range(starts):
        r = minimize(
            loss, 0.3 * rng.standard_normal(2 * p * k), jac=True, method="L-BFGS-B",
            options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-9},
        )  # fmt: skip
        found.append((r.fun, r.x[: p * k].reshape(p, k), r.x[p * k :].reshape(p, k)))
    return sorted(found, key=lambda f: f[0])


def cosines(V):
    """All cosines of rows."""
    U = V / np.linalg.norm(V, axis=1, keepdims=True)
    return U @ U.T
