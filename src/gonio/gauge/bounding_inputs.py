"""The inputs over which a difference between two heads is bounded and measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.inputs import AfterLayerNorm, AfterRMSNorm, Box, Observed

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
    if embeddings is not None or (isinstance(own, Observed) and radius is None):
        given = own.F if embeddings is None and isinstance(own, Observed) else embeddings
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
    if isinstance(own, Box):
        size = np.broadcast_to(np.maximum(np.abs(own.low), np.abs(own.high)), d).astype(np.float64)
        return Meant(points, words, lambda e: e @ size)
    assert isinstance(own, (AfterRMSNorm, AfterLayerNorm))
    gain = np.abs(own.gain)
    shift = np.abs(own.shift) if isinstance(own, AfterLayerNorm) else np.zeros(d)
    return Meant(points, words, lambda e: np.sqrt(d) * np.linalg.norm(e * gain, axis=1) + e @ shift)
