"""Small heads of whole numbers over every kind of inputs, and a slow judge of what their scores can do.

The judge shares no code with the package: it writes the set itself and maximises the smallest lead by linear programs,
a ball by tangent planes. Whole numbers make exact ties and touching sets common, and these are looked at in fractions.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Nonnegative
from gonio.core.inputs import Inputs

KINDS = ("all", "nonnegative", "box", "half-open", "flat box", "rmsnorm", "rmsnorm with gain", "layernorm")
CLEAR = 1e-7  # a margin above this is not rounding


def small_head(rng: np.random.Generator, kind: str, link: str = "softmax") -> Head:
    """Two to six labels in width one to five, entries from -2 to 2, mostly with a bias."""
    n, d = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    W = rng.integers(-2, 3, (n, d)).astype(float)
    b = rng.integers(-2, 3, n).astype(float) if rng.random() < 0.6 else None
    gain, shift = rng.integers(-1, 3, d).astype(float), rng.integers(-1, 2, d).astype(float)
    inputs: dict[str, Inputs] = {
        "all": AllInputs(),
        "nonnegative": Nonnegative(),
        "box": Box(-1, 1),
        "half-open": Box(0, np.inf),
        "flat box": Box(np.minimum(gain, 1), 1 + (gain > 1).astype(float)),
        "rmsnorm": AfterRMSNorm(np.ones(d)),
        "rmsnorm with gain": AfterRMSNorm(gain),
        "layernorm": AfterLayerNorm(gain, shift),
    }
    return Head(W, b, link=link, inputs=inputs[kind])


def posed(head: Head) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Rows and constants of the scores as functions of z, and the bounds of z (None: the ball |z| < sqrt(d))."""
    W, d, inputs = head.W.astype(float), head.shape[1], head.inputs
    c = np.zeros(len(W)) if head.bias is None else head.bias.astype(float)
    if isinstance(inputs, AfterRMSNorm):
        return W * inputs.gain, c, None
    if isinstance(inputs, AfterLayerNorm):
        V = W * inputs.gain
        return V - V.mean(axis=1, keepdims=True), c + W @ inputs.shift, None
    low, high = -np.inf, np.inf
    if isinstance(inputs, Nonnegative):
        low = 0.0
    elif isinstance(inputs, Box):
        low, high = inputs.low, inputs.high
    return W, c, (np.broadcast_to(low, d), np.broadcast_to(high, d))


def most(G, h, bounds, equal=None) -> float:
    """max t <= 1 with G z + h >= t, z in the set, equal[0].z + equal[1] = 0; -inf where the set is empty."""
    d, radius = G.shape[1], np.sqrt(G.shape[1])
    A, right = np.column_stack([-G, np.ones(len(G))]), h
    low, high = bounds or (np.full(d, -radius), np.full(d, radius))
    same = {} if equal is None else {"A_eq": np.append(equal[0], 0.0)[None], "b_eq": [-equal[1]]}
    for _ in range(400):
        found = linprog(
            np.append(np.zeros(d), -1.0), A_ub=A, b_ub=right, bounds=[*zip(low, high, strict=True), (None, 1.0)], **same,
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )  # fmt: skip
        if found.status == 2:
            return -np.inf
        assert found.status == 0, found.message
        z = found.x[:d]
        size = np.linalg.norm(z)
        if bounds is not None or size <= radius * (1 + 1e-9):
            break
        A, right = np.vstack([A, np.append(z / size, 0.0)]), np.append(right, radius)
    return float(found.x[-1])


def tie_margin(head: Head, a: int, b: int) -> float:
    """How far labels a and b, equal, can be above all others (at most 1); -inf where they are never equal."""
    V, c, bounds = posed(head)
    if bounds is None and _touches(V[a] - V[b], c[a] - c[b]):
        return -np.inf
    others = np.delete(np.arange(len(V)), [a, b])
    return most(V[a] - V[others], c[a] - c[others], bounds, (V[a] - V[b], c[a] - c[b]))


def comparison_margin(head: Head, above, below) -> float:
    """How far all of these can be above all of those at once (at most 1); the label -1 is the number 0."""
    V, c, bounds = posed(head)
    V, c = np.vstack([V, np.zeros(V.shape[1])]), np.append(c, 0.0)
    return most(V[above] - V[below], c[above] - c[below], bounds)


def _touches(row: np.ndarray, constant: float) -> bool:
    """Whether  row.z + constant = 0  touches the open ball |z|^2 < d at most from outside, in fractions.

    Rows less their mean are multiples of 1/d, which a float holds nearly; the nearest such fraction is meant.
    """
    d = len(row)
    square = sum((Fraction(round(v * d), d) ** 2 for v in row), Fraction(0))
    return Fraction(constant) ** 2 >= d * square and bool(constant)
