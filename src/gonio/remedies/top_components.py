"""RemoveTopComponents: subtract the mean and the few directions of largest variance (Mu and Viswanath 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.remedies.moments import axes_of, mean_of
from gonio.remedies.remedy import Remedy


class RemoveTopComponents(Remedy):
    """x -> x - mean - sum_{c <= D} (u_c . (x - mean)) u_c,  all but the top; D = dim/100 (at least 1) if not given.

    The mean part is convention for softmax label rows. Dropping directions never is: the map has no inverse, so what
    they held is gone, for every link.
    """

    convention = "the mean only (T: label rows of a softmax head)"
    alters = "drops the directions of largest variance: information is lost under every link"
    _learned = ("mean_", "components_")

    def __init__(self, components: int | None = None, confidence: float = 0.9) -> None:
        self.components = components
        self.confidence = confidence

    def _fit(self, X):
        d = X.shape[1]
        k: Any = max(1, round(d / 100)) if self.components is None else self.components
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 0 <= k <= d:
            raise GonioError(f"RemoveTopComponents: components is {k}; 0 to {d} can be removed.")
        self.mean_ = mean_of(X)
        self.components_ = axes_of(X, self.mean_)[1][:k]

    def _transform(self, X):
        V = X - self.mean_
        return (V - (V @ self.components_.T) @ self.components_).astype(X.dtype)
