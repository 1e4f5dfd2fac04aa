"""Random heads that share with a trained one all that the gauge cannot move and that is no relation between labels.

    spectrum   A A' has the same eigenvalues: A = Q diag(s), Q a random frame orthogonal to the vector of ones
    norms      and also each label's own size, how much its logit varies: rows and spectrum are set in turns

Matching the spectrum of W itself would be empty: a Gaussian times any matrix is gauge-equal to a Gaussian.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

ROUNDS = 8


def of_one_spectrum(
    A: Float[np.ndarray, "labels dim"], rng: np.random.Generator, *, centred: bool
) -> Float[np.ndarray, "labels dim"]:
    """A random A of the same size and spectrum; rows sum to zero where `centred`."""
    G = rng.standard_normal(A.shape)
    if centred:
        G -= G.mean(axis=0)
    return _with_spectrum(G, _squares(A))


def of_one_spectrum_and_norms(
    A: Float[np.ndarray, "labels dim"], rng: np.random.Generator, *, centred: bool, rounds: int = ROUNDS
) -> Float[np.ndarray, "labels dim"]:
    """The same with the lengths of the rows of A too, row by row; the spectrum is then met nearly."""
    squares, size = _squares(A), np.linalg.norm(A, axis=1, keepdims=True)
    B = size * of_one_spectrum(A, rng, centred=centred)
    for _ in range(rounds):
        B = _with_spectrum(B - B.mean(axis=0) if centred else B, squares)
        now = np.linalg.norm(B, axis=1, keepdims=True)
        B *= size / np.where(now > 0, now, 1)
    return B


def spectrum_missed(A: np.ndarray, B: np.ndarray) -> float:
    """How far the spectra of two heads lie apart, as a share of their sum."""
    a, b = _squares(A), _squares(B)
    return float(np.abs(a - b).sum() / max(a.sum(), 1e-300))


def _squares(A: np.ndarray) -> np.ndarray:
    return np.maximum(np.linalg.eigvalsh(A.T @ A), 0)


def _with_spectrum(B: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """The frame of B nearest in its own axes, with these eigenvalues of B'B, smallest first."""
    values, vectors = np.linalg.eigh(B.T @ B)
    live = values > max(float(values[-1]), 1e-300) * 1e-12
    scale = np.where(live, np.sqrt(squares / np.where(live, values, 1)), 0)
    return (B @ vectors) * scale
