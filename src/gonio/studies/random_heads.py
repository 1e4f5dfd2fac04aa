"""Random heads that share with a trained one all that the gauge cannot move and that is no relation between labels.

    spectrum   A A' has the same eigenvalues: A = Q diag(s), Q a random frame orthogonal to the vector of ones
    sizes      and each label's own size, how much its logit varies; all heads of this spectrum and these sizes are
               about equally likely
    frequency  and what goes with frequency: a row is the mean row at its frequency plus the size that frequency gives
               it times something random, of the spectrum and sizes which that has in the head (see `frequency_part`)

Matching the spectrum of W itself would be empty: a Gaussian times any matrix is gauge-equal to a Gaussian.

Sizes that are set after directions are drawn would not do: in a Gaussian head long rows lie along the leading axes, and
it would differ from its own null. So rows move on their spheres: two coordinates are turned at a time, by an angle of
the law exp(-x'Bx/2) that a Gaussian row has when its length is known, B such that the spectrum is met on the average.
What still misses it is then set right in turns with the lengths, each time by the nearest head that has the spectrum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gonio.studies.frequency_part import kept_part, size_trend, weighted_parts

if TYPE_CHECKING:
    from jaxtyping import Float

WARM_UP, SWEEPS, ROUNDS = 120, 8, 12


def of_one_spectrum(
    A: Float[np.ndarray, "labels dim"], rng: np.random.Generator, *, centred: bool
) -> Iterator[Float[np.ndarray, "labels dim"]]:
    """Random heads A of the same shape and spectrum, without end; rows sum to zero where `centred`."""
    values, axes = _live(A)
    while True:
        G = rng.standard_normal((len(A), len(values)))
        yield _frame(G - G.mean(axis=0) if centred else G) * np.sqrt(values) @ axes.T


def of_one_spectrum_and_sizes(
    A: Float[np.ndarray, "labels dim"], rng: np.random.Generator, *, centred: bool
) -> Iterator[Float[np.ndarray, "labels dim"]]:
    """The same with the lengths of the rows too, row by row; the spectrum is then met nearly."""
    return _on_spheres(A, np.full((len(A), 1), len(A) ** -0.5 if centred else 0.0), rng)


def of_one_spectrum_sizes_and_frequency(
    A: Float[np.ndarray, "labels dim"],
    U: Float[np.ndarray, "labels curves"],
    rng: np.random.Generator,
    *,
    centred: bool,
) -> Iterator[Float[np.ndarray, "labels dim"]]:
    """The same with what the curves U of frequency explain of A kept, rows and sizes: what is left is drawn.

    Rows are divided by the size that frequency gives them, and spectrum and lengths are those of what is left then.
    """
    trend = size_trend(A - kept_part(A, U), U)
    kept, rest, V = weighted_parts(A, U, trend)
    for Y in _on_spheres(rest, V, rng):
        B = kept + trend * Y
        yield B - B.mean(axis=0) if centred else B


def _on_spheres(R: np.ndarray, V: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Random matrices with the spectrum and the lengths of rows of R, orthogonal to the columns of V as R is."""
    size = np.linalg.norm(R, axis=1, keepdims=True)
    free = 1 / np.maximum(1 - (V**2).sum(axis=1, keepdims=True), 0.1)  # what V takes of a row is given back at once
    values, axes = _live(R)
    X = R @ axes
    sign = np.sign(X[np.abs(X).argmax(axis=0), np.arange(len(values))])  # so that equivalent forms draw the same
    X, axes = X * sign, axes * sign
    B = 1 / (X**2).mean(axis=0)
    steady = 0.5 * (size**2).mean() ** 2 / (size**4).mean()  # long rows answer more to B: smaller steps
    for k in range(WARM_UP):
        X = _turned(X, B, rng)
        B = B + steady / (1 + k / 30) * B * ((X**2).sum(axis=0) / values - 1)
    while True:
        for _ in range(SWEEPS):
            X = _turned(X, B, rng)
        Y = X
        for k in range(ROUNDS):
            Y = _frame((Y - V @ (V.T @ Y)) * np.sqrt(values)) * np.sqrt(values)
            now = np.linalg.norm(Y, axis=1, keepdims=True)
            change = size / np.where(now > 0, now, 1)
            near = np.abs(change - 1).max() < 1e-4
            Y = Y * change ** (free if k < ROUNDS - 1 and not near else 1)
            if near:
                break
        yield Y @ axes.T


def spectrum_missed(A: np.ndarray, B: np.ndarray) -> float:
    """How far the spectra of two heads lie apart, as a share of their sum."""
    a, b = (np.linalg.eigvalsh(M.T @ M) for M in (A, B))
    return float(np.abs(a - b).sum() / max(a.sum(), 1e-300))


def _turned(X: np.ndarray, B: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All rows with their coordinates turned two by two, by angles drawn from their law given all else."""
    order, half = rng.permutation(len(B)), len(B) // 2
    i, j = order[:half], order[half : 2 * half]
    square = X[:, i] ** 2 + X[:, j] ** 2
    pull = square * (B[j] - B[i]) / 4  # the law of twice the angle is exp(pull cos)
    angle = rng.vonmises(np.where(pull < 0, np.pi, 0.0), np.abs(pull)) / 2 + np.pi * rng.integers(0, 2, pull.shape)
    X = X.copy()
    X[:, i], X[:, j] = np.sqrt(square) * np.cos(angle), np.sqrt(square) * np.sin(angle)
    return X


def _live(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues of A'A that are not zero, and their axes."""
    values, axes = np.linalg.eigh(A.T @ A)
    live = values > max(float(values[-1]), 1e-300) * 1e-12
    return values[live], axes[:, live]


def _frame(Y: np.ndarray) -> np.ndarray:
    """The orthonormal columns nearest to Y."""
    values, vectors = _live(Y)
    return Y @ (vectors / np.sqrt(values)) @ vectors.T
