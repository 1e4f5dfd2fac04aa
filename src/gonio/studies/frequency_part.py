"""The part of a head that goes with how often its labels occur, and how large it is.

    kept = U U' A      U an orthonormal basis of curves of log frequency: parabolas, and lines that bend at its tenths
    share = |U' A|^2 / |A|^2

U depends on the frequencies alone, and A is known up to a rotation A -> A Q, which the kept part follows and the share
does not see: both are facts of the model. Curves are taken without their mean, which for a softmax is a convention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.studies.study import Measured

if TYPE_CHECKING:
    from jaxtyping import Float

TENTHS, DEALS = 10, 499


def curves(frequency: Float[np.ndarray, " labels"]) -> Float[np.ndarray, "labels curves"]:
    """An orthonormal basis of the curves of log frequency without their mean; none where all occur equally often.

    The lines bend at the tenths of the rank: of the frequency itself they would follow its few extreme labels.
    """
    if not np.ptp(frequency) > 0:
        return np.zeros((len(frequency), 0))
    z = (frequency - frequency.mean()) / frequency.std()
    distinct, place, times = np.unique(frequency, return_inverse=True, return_counts=True)
    rank = (np.cumsum(times) - times / 2)[place]  # labels that occur equally often share theirs
    knots = np.linspace(rank.min(), rank.max(), min(TENTHS, len(distinct) - 1) + 1)
    bends = [np.interp(rank, knots, row) for row in np.eye(len(knots))]
    X = np.column_stack([z, z**2, *bends])
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return U[:, s > 1e-8 * s[0]]


def kept_part(A: Float[np.ndarray, "labels dim"], U: Float[np.ndarray, "labels curves"]) -> np.ndarray:
    """What the curves explain of the rows."""
    return U @ (U.T @ A)


def size_trend(R: Float[np.ndarray, "labels dim"], U: Float[np.ndarray, "labels curves"]) -> np.ndarray:
    """The length that the curves predict for each row, on the scale of logarithms, as a column."""
    size = np.linalg.norm(R, axis=1, keepdims=True)
    log = np.log(np.maximum(size, 1e-3 * max(float(np.median(size)), 1e-300)))
    return np.exp(log.mean() + kept_part(log - log.mean(), U))


def weighted_parts(
    A: Float[np.ndarray, "labels dim"], U: Float[np.ndarray, "labels curves"], trend: Float[np.ndarray, "labels 1"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean row at each label's frequency; what is left, divided by the trend; what that is orthogonal to.

    The mean row is a curve and a constant, fitted by least squares with each row divided by its trend.
    """
    V = np.linalg.svd(np.column_stack([np.ones(len(U)), U]) / trend, full_matrices=False)[0]
    kept = V @ (V.T @ (A / trend))
    return trend * kept, A / trend - kept, V


def share(A: Float[np.ndarray, "labels dim"], U: Float[np.ndarray, "labels curves"]) -> float:
    """The share of the variance of the (centred) logits that goes with frequency."""
    return float(((U.T @ A) ** 2).sum() / max((A**2).sum(), 1e-300))


def frequency_share(
    A: Float[np.ndarray, "labels dim"], U: Float[np.ndarray, "labels curves"], rng: np.random.Generator
) -> list[Measured]:
    """The share, and what it is where frequencies are dealt anew among the labels, with its 95 %."""
    seen = share(A, U)
    dealt = np.array([share(A, U[rng.permutation(len(U))]) for _ in range(DEALS)])
    low, high = np.quantile(dealt, [0.025, 0.975])
    p = float((1 + (dealt >= seen).sum()) / (1 + DEALS))
    name, how = "share of the logits that goes with frequency", f"{DEALS} deals; p {p:.3f}"
    return [Measured(name, seen), Measured(f"{name}, dealt freely", float(dealt.mean()), float(low), float(high), how)]
