"""Every number of a made model again, the slow and plain way: linear programs, loops, definitions."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
from scipy.optimize import linprog

from tests.truth.made import Truth


def reduced(t: Truth) -> tuple[np.ndarray, np.ndarray]:
    """Scores V z + c over a ball of radius sqrt(d) (norms), or the rows and biases themselves."""
    W, c = t.W.astype(float), t.bias().astype(float)
    if t.kind == "rms":
        return W * t.gain, c
    if t.kind == "layer":
        V = W * t.gain
        return V - V.mean(axis=1, keepdims=True), c + W @ t.shift
    return W, c


def equals(t: Truth, i: int) -> list[int]:
    V, c = reduced(t)
    return [j for j in range(t.n) if j != i and np.array_equal(V[i], V[j]) and c[i] == c[j]]


def margin(t: Truth, i: int, inputs: str | None = None) -> float:
    """The largest margin of label i over all labels but its equals: positive iff it can be on top.

    Over unbounded inputs z is kept within a large box, and the margin below 1.
    """
    kind = inputs or t.kind
    V, c = (t.W.astype(float), t.bias().astype(float)) if kind == "all" else reduced(t)
    others = [j for j in range(t.n) if j != i and j not in equals(t, i)]
    if not others:
        return 1.0
    if kind == "users":
        z = t.users @ V.T + c
        return float((z[:, [i]] - z[:, others]).min(axis=1).max())
    return largest((V[others] - V[i]).tobytes(), (c[i] - c[others]).tobytes(), V.shape[1], kind, (t.low, t.high))


@cache  # several commands are asked about one made model, and labels that are equal ask the same
def largest(slopes: bytes, levels: bytes, d: int, kind: str, ends: tuple[float, float], equal: bytes = b"") -> float:
    """The largest margin m <= 1 with slopes z + m <= levels over the inputs; with `equal` = (v, e) also v z = e.

    A ball is a box cut by planes that touch it, until the best point lies in it. -1 where there is no such z.
    """
    slopes_, levels_ = np.frombuffer(slopes).reshape(-1, d), np.frombuffer(levels)
    A, b = np.column_stack([slopes_, np.ones(len(slopes_))]), levels_
    line = np.frombuffer(equal).reshape(-1, d + 1)
    ball, radius = kind in ("rms", "layer"), np.sqrt(d)
    bounds = [ends if kind == "box" else (-radius, radius) if ball else (-1e4, 1e4)] * d
    for _ in range(300):
        found = linprog(
            np.r_[np.zeros(d), -1.0], A_ub=A, b_ub=b, bounds=[*bounds, (None, 1.0)],
            A_eq=np.column_stack([line[:, :d], np.zeros(len(line))]), b_eq=line[:, d],
        )  # fmt: skip
        if found.status != 0:
            assert len(line), "inputs without a condition leave some margin"
            return -1.0
        length = np.linalg.norm(found.x[:d])
        if not ball or length <= radius * (1 + 1e-9):
            break
        inside = min(
            1.0, (levels_ - slopes_ @ found.x[:d] * radius / length).min()
        )  # the margin of a point of the ball
        if not len(line) and inside >= found.x[-1] - 1e-12:
            return float(inside)
        A, b = np.vstack([A, np.r_[found.x[:d] / length, 0.0]]), np.r_[b, radius]
    return float(found.x[-1])


def tops(t: Truth, inputs: str | None = None) -> list[int]:
    """The labels that can be on top, alone or with their equals."""
    return [i for i in range(t.n) if margin(t, i, inputs) > 1e-9]


def alone(t: Truth, inputs: str | None = None) -> list[int]:
    return [i for i in tops(t, inputs) if not equals(t, i)]


def cosines(W: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(W.astype(float), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (W.astype(float) @ W.astype(float).T) / np.outer(size, size)


def logit_range(t: Truth, i: int) -> tuple[float, float]:
    """The ends of a label's logit over a box, corner by corner."""
    corners = np.array(list(itertools.product((t.low, t.high), repeat=t.W.shape[1])))
    z = corners @ t.W[i].astype(float) + t.bias()[i]
    return float(z.min()), float(z.max())


def sign_patterns(t: Truth, seed: int = 0, draws: int = 200_000) -> set[tuple[int, ...]]:
    """Label sets met by random inputs over all of space: a lower bound of their number."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((draws, t.W.shape[1])) * np.exp(rng.normal(0, 3, (draws, 1)))
    return {tuple(x) for x in np.sign(z @ t.W.astype(float).T + t.bias()).astype(int)}


def orders(W: np.ndarray, b: np.ndarray, seed: int = 0, draws: int = 200_000) -> set[tuple[int, ...]]:
    """Rankings met by random inputs over all of space: a lower bound of their number."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((draws, W.shape[1])) * np.exp(rng.normal(0, 3, (draws, 1)))
    return {tuple(x) for x in np.argsort(-(z @ W.astype(float).T + b), axis=1)}


def projected_back(t: Truth) -> np.ndarray:
    z = t.users @ t.W.T + t.bias()
    return cosines(z.T)


def nearest(C: np.ndarray, k: int) -> dict[int, list[int]]:
    """The k columns of largest value of each row but itself, by a plain sort."""
    C = np.where(np.isnan(C), -2, C)
    np.fill_diagonal(C, -3)
    return {i: [int(j) for j in np.argsort(-np.round(C[i], 9), kind="stable")[:k]] for i in range(len(C))}
