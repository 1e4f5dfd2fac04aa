"""What no change of convention can move: the rows of a head in coordinates in which states have no shape of their own.

    softmax   A = J W S^1/2        sigmoid, dot   A = W S^1/2        S the covariance of the states

A A' is the covariance of the (centred) logits over the states: it is the same for every equivalent form of the model,
so A is known up to a rotation, and whatever depends on A through its inner products is a fact of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def root_of_covariance(F: Float[np.ndarray, "points dim"]) -> Float[np.ndarray, "dim rank"]:
    """R with R R' the covariance of the states; directions that no state takes are left out."""
    C = F - F.mean(axis=0)
    values, vectors = np.linalg.eigh(C.T @ C / len(F))
    live = values > max(float(values[-1]), 0.0) * 1e-10
    return vectors[:, live] * np.sqrt(values[live])


def logit_coordinates(head: Head, F: Any, which: Int[np.ndarray, " some"] | None = None) -> np.ndarray:
    """A for some labels, or all; of a softmax centred over those labels: the head restricted to them."""
    head.must_score("study")
    F = checks.embeddings(F, head.shape[1], "study").astype(np.float64)
    if len(F) < 3:
        raise GonioError(f"study: {len(F)} states were given; at least 3 are needed.")
    W = head.rows[np.arange(head.shape[0]) if which is None else which].astype(np.float64)
    if head.link == "softmax":
        W = W - W.mean(axis=0)
    return W @ root_of_covariance(F)


def correlations(A: Float[np.ndarray, "labels dim"]) -> Float[np.ndarray, "labels labels"]:
    """The (centred-)logit correlation of all pairs; labels whose logit does not vary correlate with nothing (0)."""
    size = np.linalg.norm(A, axis=1, keepdims=True)
    U = np.divide(A, size, out=np.zeros_like(A), where=size > 1e-12 * max(float(size.max(initial=0)), 1e-300))
    return U @ U.T


def mean_probability(head: Head, F: Any, block: int = 512) -> Float[np.ndarray, " labels"]:
    """How often the model itself gives each label over the states: its mean probability there."""
    F = np.asarray(F)
    total = np.zeros(head.shape[0])
    for s in range(0, len(F), block):
        total += head.probabilities(F[s : s + block]).sum(axis=0, dtype=np.float64)
    return total / len(F)


def sampled(n: int, most: int, rng: np.random.Generator) -> Int[np.ndarray, " some"]:
    """All of n, or so many drawn without replacement, in order."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def nearest(C: np.ndarray, k: int) -> Int[np.ndarray, "labels near"]:
    """The k nearest of each label by a matrix of similarities, itself left out, the nearest first."""
    C = np.array(C, np.float64)
    np.fill_diagonal(C, -np.inf)
    near = np.argpartition(-C, k - 1, axis=1)[:, :k] if k < len(C) - 1 else np.argsort(-C, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(C, near, axis=1), axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1)
