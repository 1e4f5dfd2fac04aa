"""Where the spread of stored cosines comes from: offset, covariance, frequency, and what is left.

The mean square of the cosines of all pairs, before and after each step:

    stored      as the file has them
    offset      what goes when the mean row is taken off: for a softmax a convention (any vector may be added)
    covariance  what goes when the rows are whitened: a convention (any invertible map may be applied)
    frequency   what goes when the whitened cosines are regressed on both labels' log frequency
    rest        what is left; rows drawn at random in as many directions have 1 / directions

A part may be negative: a step can also spread what was together.
"""

from __future__ import annotations

import numpy as np

from gonio.studies.centred_logits import correlations
from gonio.studies.study import Measured

RESAMPLES = 300
MOST = 600  # labels whose pairs are looked at


def cosine_spread(
    W: np.ndarray, frequency: np.ndarray, rng: np.random.Generator, *, centred: bool = True
) -> list[Measured]:
    """The parts as numbers, with intervals over resampled labels; without `centred` (sigmoid) there is no offset."""
    steps = [correlations(W)]
    base = W - W.mean(axis=0)
    if centred:
        steps.append(correlations(base))
    steps.append(correlations(whitened(base if centred else W)))
    some = np.arange(len(W)) if len(W) <= MOST else np.sort(rng.choice(len(W), MOST, replace=False))
    steps = [C[np.ix_(some, some)] for C in steps]
    steps.append(without_frequency(steps[-1], frequency[some]))
    drawn = rng.multinomial(len(some), np.full(len(some), 1 / len(some)), RESAMPLES).astype(float)
    once = np.ones((1, len(some)))
    squares = [[mean_square(C, w) for w in (once, drawn)] for C in steps]
    names = ["offset", "covariance", "frequency"] if centred else ["covariance", "frequency"]
    how = f"over {RESAMPLES} resamples of {len(some):,} labels"
    out = [_measured("stored cosines", squares[0][0], squares[0][1], how)]
    for k, name in enumerate(names):
        out.append(_measured(name, squares[k][0] - squares[k + 1][0], squares[k][1] - squares[k + 1][1], how))
    out.append(_measured("rest", squares[-1][0], squares[-1][1], how))
    rank = np.linalg.matrix_rank(base if centred else W)
    out.append(Measured("rest if the rows were random", 1 / max(int(rank), 1), how="1 / directions"))
    return out


def whitened(X: np.ndarray) -> np.ndarray:
    """Rows times the inverse root of X'X: their inner products are those of the projector onto X's columns."""
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    return U[:, s > s[0] * 1e-10] if len(s) and s[0] > 0 else X


def without_frequency(C: np.ndarray, f: np.ndarray) -> np.ndarray:
    """What a regression on f_i + f_j, |f_i - f_j| and f_i f_j leaves of the cosines of all pairs, their mean kept."""
    i, j = np.triu_indices(len(C), 1)
    z = (f - f.mean()) / (f.std() or 1)
    X = np.column_stack([np.ones(len(i)), z[i] + z[j], np.abs(z[i] - z[j]), z[i] * z[j]])
    y = C[i, j]
    left = y - X[:, 1:] @ np.linalg.lstsq(X, y, rcond=None)[0][1:]
    out = np.zeros_like(C)
    out[i, j] = out[j, i] = left - left.mean() + y.mean()
    return out


def mean_square(C: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted mean of the squares of the cosines of pairs of different labels, one number a row of weights."""
    S = C * C
    np.fill_diagonal(S, 0)
    top = np.einsum("ri,ij,rj->r", weights, S, weights, optimize=True)
    return top / (weights.sum(axis=1) ** 2 - (weights**2).sum(axis=1))


def _measured(name: str, once: np.ndarray, drawn: np.ndarray, how: str) -> Measured:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Measured(name, float(once[0]), float(low), float(high), how)
