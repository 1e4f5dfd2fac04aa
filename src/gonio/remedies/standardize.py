"""Standardize: mean 0 and variance 1 in every column."""

from __future__ import annotations

import numpy as np

from gonio.core.parallel import spans
from gonio.remedies.moments import BLOCK, mean_of
from gonio.remedies.remedy import Remedy


class Standardize(Remedy):
    """x -> (x - mean) / spread, column by column; a constant column becomes 0.

    Takes the loud dimensions out of a cosine. Inside the gauge for softmax heads (a translation and a diagonal map),
    but then the embeddings must be mapped back by the spreads. For cosine spaces it alters every cosine, and depends on
    the axes: a rotation before it gives other cosines.
    """

    convention = "T and M: label rows of a softmax head, with the embeddings multiplied by the spreads"
    alters = "cosines of vectors that were trained with cosines; depends on the axes"
    _learned = ("mean_", "scale_")

    def __init__(self, confidence: float = 0.9) -> None:
        self.confidence = confidence

    def _fit(self, X):
        self.mean_ = mean_of(X)
        squares = np.zeros(X.shape[1])
        for s, e in spans(len(X), BLOCK):
            squares += ((X[s:e].astype(np.float64) - self.mean_) ** 2).sum(axis=0)
        spread = np.sqrt(squares / len(X))
        # What the mean of a constant column loses to rounding is no spread.
        spread[spread <= 2.0**-46 * np.abs(self.mean_)] = 0
        self.scale_ = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1), 0)

    def _transform(self, X):
        return ((X - self.mean_) * self.scale_).astype(X.dtype)
