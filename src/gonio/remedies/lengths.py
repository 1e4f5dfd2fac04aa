"""What to do with lengths: Normalize drops them, LengthAsFeature keeps them beside the direction."""

from __future__ import annotations

import numpy as np

from gonio.core import checks
from gonio.remedies.remedy import FOLDS, Remedy


def directions(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows at length 1 and their lengths; zero rows stay zero. Huge and tiny rows are scaled first."""
    top = np.abs(X).max(axis=1, keepdims=True)
    safe = np.where(top > 0, top, 1)
    scaled = X / safe
    length = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    return scaled / np.where(length > 0, length, 1), (length * top)[:, 0]


class Normalize(Remedy):
    """x -> x / |x|; a zero row stays zero.

    Inside the gauge of cosine heads, which never see lengths. For dot products and softmax heads it is another model:
    lengths held scores. Cosines do not change, so there is nothing to judge by them and it never abstains on pairs that
    cosines rank.
    """

    convention = "P: heads with the link cosine"
    alters = "scores of dot, softmax and sigmoid heads: lengths are lost"

    def __init__(self, confidence: float = 0.9) -> None:
        self.confidence = confidence

    def _decide(self, X, pairs, judgements):
        checks.judged(pairs, judgements, len(X), "Normalize", 2 * FOLDS)
        self.reason_ = "applied: normalising leaves every cosine as it is, so judged pairs cannot speak against it"

    def _fit(self, X):
        pass

    def _transform(self, X):
        return directions(X)[0].astype(X.dtype)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "abstained_")


class LengthAsFeature(Remedy):
    """x -> (x / |x|, weight |x| / median length): direction and length as separate features (You 2025).

    Keeps what Normalize would lose, beside the direction instead of inside it; one column more.
    """

    convention = "none: the length becomes visible to a cosine"
    alters = "nothing is lost, but cosines now count the length"
    _learned = ("median_",)

    def __init__(self, weight: float = 1.0, confidence: float = 0.9) -> None:
        self.weight = weight
        self.confidence = confidence

    def _fit(self, X):
        length = directions(X)[1]
        alive = length[length > 0]
        self.median_ = float(np.median(alive)) if len(alive) else 1.0

    def _transform(self, X):
        u, length = directions(X)
        return np.column_stack([u, self.weight * length / self.median_]).astype(X.dtype)

    def _names(self, names):
        return [*names, "length"]
