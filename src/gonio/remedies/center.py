"""Center: subtract the mean row (Mu and Viswanath 2018; You 2025)."""

from __future__ import annotations

from gonio.remedies.moments import mean_of
from gonio.remedies.remedy import Remedy


class Center(Remedy):
    """x -> x - mean.

    Inside the gauge for the label rows of a softmax head (a translation of all rows changes no probability): there it
    is pure convention. For vectors compared by cosine it alters every cosine: what all vectors share no longer counts.
    """

    convention = "T: label rows of a softmax head, items of a head that only ranks"
    alters = "cosines of vectors that were trained with cosines, and scores of sigmoid heads"
    _learned = ("mean_",)

    def __init__(self, confidence: float = 0.9) -> None:
        self.confidence = confidence

    def _fit(self, X):
        self.mean_ = mean_of(X)

    def _transform(self, X):
        return X - self.mean_.astype(X.dtype)
