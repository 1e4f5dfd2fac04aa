"""Heads that the tests of measures share, and naive writings of each measure from its formula."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from gonio import Head

rng = np.random.default_rng(7)
FIGURE1 = Head([[1, 0.5], [0.5, 1], [-1, 0.4], [-0.8, -0.8], [0.9, -1.2]], link="softmax")
W = rng.standard_normal((7, 3)) + 0.4
F = rng.standard_normal((60, 3)) @ np.diag([1, 2, 0.5]) + 0.3
FEATURES = np.array([[1, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 1]])
PAIRS = np.array([[i, j] for i in range(7) for j in range(i)])
JUDGED = (PAIRS * [1.0, 0.3]).sum(axis=1) % 2.7


def options(name: str) -> dict:
    return {"soft cosine": {"features": FEATURES}, "judged": {"pairs": PAIRS, "judgements": JUDGED}}.get(name, {})


def cos(a, b):
    return a @ b / (np.sqrt(a @ a) * np.sqrt(b @ b))


def log_p(W, F, b=0.0):
    z = F @ W.T + b
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def js(p, q):
    m = (p + q) / 2
    return sum((p * np.log2(p / m) + q * np.log2(q / m)) / 2)


def nearest_values(table, i, k, largest):
    others = np.sort([table[i, j] for j in range(len(table)) if j != i])
    return others[::-1][:k] if largest else others[:k]


def naive(name: str, W, F) -> np.ndarray:
    """The whole table of a measure, written a second time, entry by entry."""
    n = len(W)
    out = np.full((n, n), np.nan)
    r = np.linalg.norm(W, axis=1)
    C = np.array([[cos(a, b) for b in W] for a in W])
    E = np.array([[np.sqrt(((a - b) ** 2).sum()) for b in W] for a in W])
    m = W.mean(axis=0)
    S = np.cov(F.T)
    L = F @ W.T
    Lc = L - L.mean(axis=1, keepdims=True)
    lp = log_p(W, F)
    Q = np.exp(lp) / np.exp(lp).sum(axis=0)
    Wc = W - m
    cov = Wc.T @ Wc / n
    proj, hat = Wc @ np.linalg.pinv(Wc), W @ np.linalg.pinv(W)
    k = min(10, n - 1)

    def entry(i: int, j: int) -> float:
        a, b, c, d = W[i], W[j], C[i, j], 1 - C[i, j]
        rest = [[1 - C[x, y] for y in range(n) if y != x] for x in (i, j)]
        return {
            "cosine": lambda: c,
            "centred cosine": lambda: cos(a - m, b - m),
            "dot": lambda: a @ b,
            "Euclid": lambda: E[i, j],
            "normalised Euclid": lambda: np.sqrt(((a / r[i] - b / r[j]) ** 2).sum()),
            "logit covariance": lambda: a @ S @ b,
            "projected-back cosine": lambda: (F @ a) @ (F @ b) / np.linalg.norm(F @ a) / np.linalg.norm(F @ b),
            "logit correlation": lambda: np.corrcoef(L[:, i], L[:, j])[0, 1],
            "centred-logit covariance": lambda: np.cov(Lc[:, i], Lc[:, j])[0, 1],
            "centred-logit correlation": lambda: np.corrcoef(Lc[:, i], Lc[:, j])[0, 1],
            "whitened-centred cosine": lambda: proj[i, j] / np.sqrt(proj[i, i] * proj[j, j]),
            "whitened cosine": lambda: hat[i, j] / np.sqrt(hat[i, i] * hat[j, j]),
            "causal inner product": lambda: (a - m) @ np.linalg.inv(cov) @ (b - m),
            "log-probability correlation": lambda: np.corrcoef(lp[:, i], lp[:, j])[0, 1],
            "expected log-ratio": lambda: np.mean(np.abs(lp[:, i] - lp[:, j])),
            "which inputs": lambda: js(Q[:, i], Q[:, j]),
            "soft cosine": lambda: a @ FEATURES @ b / np.sqrt((a @ FEATURES @ a) * (b @ FEATURES @ b)),
            "SCALED_SIM": lambda: 0.5 * c + 0.5 * (r[i] + r[j]),
            "WRD as printed": lambda: r[i] - r[j] + np.arccos(c),
            "radially weighted angle": lambda: c * np.prod([x / (x + np.median(r)) for x in (r[i], r[j])]),
            "augmented cosine": lambda: cos(
                np.append(a / r[i], r[i] / np.median(r)), np.append(b / r[j], r[j] / np.median(r))
            ),
            "query-normalised": lambda: (c - np.mean(1 - np.array(rest[0]))) / np.std(rest[0]),
            "CSLS": lambda: 2 * c - nearest_values(C, i, k, True).mean() - nearest_values(C, j, k, True).mean(),
            "local scaling": lambda: 1 - np.exp(-(d**2) / (np.sort(rest[0])[k - 1] * np.sort(rest[1])[k - 1])),
            "NICDM": lambda: d / np.sqrt(np.sort(rest[0])[:k].mean() * np.sort(rest[1])[:k].mean()),
            "mutual proximity": lambda: 1 - np.prod([norm.sf(d, np.mean(x), np.std(x)) for x in rest]),
        }[name]()

    for i in range(n):
        for j in range(n):
            if i != j:
                out[i, j] = entry(i, j)
    return out
