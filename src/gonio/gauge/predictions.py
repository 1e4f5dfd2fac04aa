"""Do two heads predict the same for given embeddings, as far as rounding lets them?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.gauge.rounding import RoundedTable, embeddings_step, half_step, pieces

U = 2.0**-53
LARGE = 0.01  # predictions that differ by more are never called the same, whatever rounding may explain


@dataclass(frozen=True, eq=False)
class Predicted:
    """How far the scores of two heads are apart over the same inputs.

    difference  the largest difference of a probability (of a score, for links without probabilities)
    off, level  root mean squares of the score differences and of what rounding explains, over the size of the scores
    most        the largest score difference over its standard deviation from rounding
    errors      for each label the largest such ratio
    size        root mean square of the (centred) scores
    """

    difference: float
    off: float
    level: float
    most: float
    errors: np.ndarray
    points: int
    size: float


def pair_of(a: Head, b: Head, embeddings: Any) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The embeddings of both models in float64, each with half a step of its entries."""
    try:
        fa, fb = embeddings
    except (TypeError, ValueError):
        raise GonioError(
            "same_model: embeddings must be a pair (F_a, F_b), the two models' embeddings of the same inputs."
        ) from None
    steps = [embeddings_step(checks.array(f, "same_model", "F")) for f in (fa, fb)]
    Fa, Fb = (checks.embeddings(f, h.shape[1], "same_model").astype(np.float64) for f, h in ((fa, a), (fb, b)))
    if len(Fa) != len(Fb):
        raise GonioError(f"same_model: {len(Fa)} and {len(Fb)} embeddings were given; both need one row an input.")
    return (Fa, steps[0].reshape(Fa.shape)), (Fb, steps[1].reshape(Fb.shape))


def predicted(a: RoundedTable, b: RoundedTable, embeddings: Any) -> Predicted:
    """Hold the difference of every score  W f + b  to what rounding of rows, biases and embeddings explains.

    Independent roundings of half a step e_w, e_f move a score by the variance  sum (e_w f)^2 + (w e_f)^2  over 3.
    """
    given = pair_of(a.head, b.head, embeddings)
    (za, va), (zb, vb) = (_scores(t, F, step) for t, (F, step) in zip((a, b), given, strict=True))
    link = a.head.link
    pa, pb = (_predictions(z, link) for z in (za, zb))
    gap, variance = za - zb, va + vb + 1e-300
    if link == "softmax" and a.head.softcap is None:
        # One number for all scores of an input is free: the one that fits best, by what rounding makes of each.
        gap -= (gap / variance).sum(axis=1, keepdims=True) / (1 / variance).sum(axis=1, keepdims=True)
        za = za - za.mean(axis=1, keepdims=True)
    ratio = np.abs(gap) / np.sqrt(variance)
    size = float(np.sqrt((za**2).mean())) or 1.0
    return Predicted(
        float(np.abs(pa - pb).max()), float(np.sqrt((gap**2).mean())) / size, float(np.sqrt(variance.mean())) / size,
        float(ratio.max()), ratio.max(axis=0), len(za), size,
    )  # fmt: skip


def _scores(t: RoundedTable, F: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scores of the table's labels, and the variance that rounding gives them."""
    n, d = len(t.which), F.shape[1]
    z, variance = np.empty((len(F), n)), np.empty((len(F), n))
    unit = t.head.link == "cosine"
    for span in pieces(n):
        part = slice(*span)
        rows, off = RoundedTable(t.head, t.which, unit=unit).block(span)
        z[:, part] = F @ rows.T
        # Embeddings in float64 were computed, as these scores are: about d roundings of each.
        computed = 4 * d * U * U
        variance[:, part] = ((F**2) @ (off**2 + computed * rows**2).T + (step**2 + computed * F**2) @ (rows**2).T) / 3
    if unit:
        length = np.linalg.norm(F, axis=1, keepdims=True)
        z, variance = z / length, variance / length**2
    if t.head.bias is not None:
        b = t.head.bias[t.which]
        z += b.astype(np.float64)
        variance += half_step(b.astype(np.float64), b.dtype.name) ** 2 / 3
    if t.head.softcap is not None:
        z = t.head.softcap * np.tanh(z / t.head.softcap)
    return z, variance


def _predictions(z: np.ndarray, link: str) -> np.ndarray:
    if link == "softmax":
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))
    return 1 / (1 + np.exp(-np.clip(z, -700, 700))) if link == "sigmoid" else z
