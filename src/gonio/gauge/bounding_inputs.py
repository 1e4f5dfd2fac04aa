"""The inputs over which a difference between two heads is bounded and measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head

SAMPLES = 16  # embeddings drawn to measure a difference where none are given


@dataclass(frozen=True, eq=False)
class Meant:
    """The inputs a difference is bounded over: points to measure on, words, and `sup`, which gives for rows of
    non-negative numbers e the largest value of sum_k e_k |x_k| over those inputs."""

    points: np.ndarray
    words: str
    sup: Callable[[np.ndarray], np.ndarray]


def inputs_meant(head: Head, embeddings: Any = None, radius: float | None = None) -> Meant:
    """The given embeddings, all |x| <= radius, the head's own bounded inputs, or all |x| <= sqrt(d)."""
    rng = np.random.default_rng(0)
    d = head.shape[1]
    own = head.inputs
    if embeddings is not None or (own.points is not None and radius is None):
        given = own.points if embeddings is None else embeddings
        points = checks.embeddings(given, d, "dial").astype(np.float64)
        size = np.abs(points).max(axis=0)
        return Meant(points, f"the {len(points):,} given embeddings", lambda e: e @ size)
    if radius is not None or not own.bounded:
        if radius is not None and not (np.isfinite(radius) and radius > 0):
            raise GonioError(f"dial: radius is {radius}; a positive number is needed.")
        r = float(radius) if radius is not None else float(np.sqrt(d))
        points = rng.standard_normal((SAMPLES, d))
        points *= r / np.linalg.norm(points, axis=1, keepdims=True)
        return Meant(points, f"all |x| <= {r:.4g}", lambda e: r * np.linalg.norm(e, axis=1))
    points = own.sample(SAMPLES, d, rng).astype(np.float64)
    words = f"the head's inputs ({own})"
    if own.shape == "box":
        size = np.maximum(*np.abs(own.bounds(d))).astype(np.float64)
        return Meant(points, words, lambda e: e @ size)
    gain, shift = np.abs(own.gain_and_shift(d))
    return Meant(points, words, lambda e: np.sqrt(d) * np.linalg.norm(e * gain, axis=1) + e @ shift)
