"""Heads made for the tests: realistic ones with planted rows, and small awkward ones of every kind."""

from __future__ import annotations

import numpy as np

from gonio.core.inputs import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Inputs, Nonnegative

PLAIN, DEEP, MIXED, TWIN = range(4)


def realistic(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A float32 head like a language model's (falling spectrum, common offset, lognormal lengths, families of near
    duplicates) with planted rows: near the mean, convex combinations of many rows, exact copies. The kind of each row.
    """
    rng = np.random.default_rng(seed)
    spectrum = np.arange(1, d + 1) ** -0.35
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    W = rng.standard_normal((n, d)) * (spectrum / np.sqrt((spectrum**2).mean())) @ turn.T
    near = rng.permutation(n)[: n // 20]
    a = rng.uniform(0.6, 0.97, (len(near), 1))
    W[near] = a * W[rng.integers(0, n, len(near))] + np.sqrt(1 - a * a) * W[near]
    W *= np.exp(0.3 * rng.standard_normal((n, 1)))
    offset = turn[:, 0] * np.sqrt(d)
    W += offset
    kind = np.full(n, PLAIN)
    order = rng.permutation(n)
    k = max(4, n // 1000)
    deep, mixed, copy, copied, base = np.split(order, [k, 2 * k, 3 * k, 4 * k])
    W[deep] = offset + 0.02 * (W[deep] - offset)
    for i in mixed:
        some = rng.choice(base, min(8 * d, len(base)), replace=False)
        W[i] = rng.dirichlet(np.ones(len(some))) @ W[some]
    W[copy] = W[copied]
    kind[deep], kind[mixed], kind[copy], kind[copied] = DEEP, MIXED, TWIN, TWIN
    return W.astype(np.float32), kind


def awkward(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
    """A small head: integer, rank-deficient, with interior, near-duplicate, collinear or zero rows; maybe a bias."""
    n, d = int(rng.integers(1, 30)), int(rng.integers(1, 6))
    W = rng.standard_normal((n, d))
    kind = rng.integers(0, 8)
    if kind == 1:
        W = np.round(W)
    elif kind == 2:
        W = W @ rng.standard_normal((d, d)) * (rng.random(d) < 0.5)
    elif kind == 3 and n > 6:
        W[: n // 3] = rng.dirichlet(np.ones(5), n // 3) @ W[-5:]
    elif kind == 4:
        W = W[rng.integers(0, n, n)] + 1e-6 * rng.standard_normal((n, d))
    elif kind == 5:
        W = rng.integers(-1, 2, (n, d)).astype(float)
    elif kind == 6:
        W = np.outer(rng.standard_normal(n), rng.standard_normal(d))
    elif kind == 7:
        W[rng.random(n) < 0.3] = 0
    W = W * 10.0 ** rng.integers(-8, 8)
    if rng.random() < 0.3:
        W = W.astype(np.float32)
    if rng.random() < 0.3:
        W = W + W.dtype.type(3 * np.abs(W).max())
    if rng.random() < 0.4:
        return W, None
    b = rng.standard_normal(n) * 10.0 ** rng.integers(-2, 3) * np.abs(W).max()
    if rng.random() < 0.3:
        b = np.round(2 * b / (np.abs(b).max() or 1))
    elif rng.random() < 0.2:
        b = (W @ rng.standard_normal(d)).astype(float)
    return W, b


def kinds_of_inputs(d: int, rng: np.random.Generator) -> list[Inputs]:
    """One of each set of embeddings, of width d."""
    return [
        AllInputs(),
        Nonnegative(),
        Box(-1, 1),
        Box(0, 6),
        Box(-0.2785, np.inf),
        Box(np.full(d, 0.5), np.full(d, 2.0)),
        AfterRMSNorm(rng.standard_normal(d) + 0.1),
        AfterLayerNorm(rng.random(d) + 0.5, rng.standard_normal(d)),
    ]
