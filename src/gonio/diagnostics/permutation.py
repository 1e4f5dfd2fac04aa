"""How often a slope on frequency this steep would come by chance, when pairs share labels.

Pairs that share a label are not independent, so t over pairs is too large: where frequency has nothing to do with the
rows, |t| > 2 was seen in 37 to 65 of 100 heads. Frequencies dealt anew among the labels keep every such dependence,

    p = (1 + how many of N deals have a correlation as strong) / (1 + N),

and where they have nothing to do with the rows, p is below 0.05 in 5 of 100 heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int

DEALS = 999
BATCH = 1_000_000  # numbers held at a time


def permutation_p(
    values: Float[np.ndarray, " pairs"],
    pairs: Int[np.ndarray, "pairs 2"],
    log2: Float[np.ndarray, " labels"],
    controls: Float[np.ndarray, "pairs controls"],
    seed: int = 0,
) -> tuple[float, ...]:
    """The p of the slope on frequency without controls, and with the first, the first two, .. controls held equal.

    A pair's frequency is the mean of its two labels' log2. With controls, the correlation is that of what they leave of
    both sides; a frequency that goes with a control is dealt as freely, so that p is then an approximation.
    """
    labels, at = np.unique(pairs, return_inverse=True)
    first, second = at.reshape(-1, 2).T
    frequency = log2[labels]
    m = controls.shape[1] + 1
    bases = [np.linalg.qr(np.column_stack([np.ones(len(values)), controls[:, :k]]))[0] for k in range(m)]
    left = [values - Q @ (Q.T @ values) for Q in bases]

    def strengths(F: np.ndarray) -> np.ndarray:
        """|correlation| up to a constant, one row a deal, one column a set of controls."""
        X = (F[:, first] + F[:, second]) / 2
        X -= X.mean(axis=1, keepdims=True)
        square = np.einsum("ij,ij->i", X, X)
        out = np.zeros((len(X), m))
        for k, (Q, y) in enumerate(zip(bases, left, strict=True)):
            rest = square - ((X @ Q) ** 2).sum(axis=1)
            clear = rest > 1e-12 * square
            out[clear, k] = np.abs(X[clear] @ y) / np.sqrt(rest[clear])
        return out

    seen = strengths(frequency[None])[0]
    rng = np.random.default_rng(seed)
    as_strong = np.zeros(m, np.int64)
    batch = max(1, BATCH // max(1, len(values)))
    for start in range(0, DEALS, batch):
        dealt = rng.permuted(np.tile(frequency, (min(batch, DEALS - start), 1)), axis=1)
        as_strong += (strengths(dealt) >= seen * (1 - 1e-9)).sum(axis=0)
    return tuple(float((1 + c) / (1 + DEALS)) if s > 0 else float("nan") for c, s in zip(as_strong, seen, strict=True))
