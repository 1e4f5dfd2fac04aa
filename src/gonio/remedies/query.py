"""QueryNormalizer: scores in units of each query's own spread over the documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gonio.remedies.lengths import directions
from gonio.remedies.moments import covariance_of, mean_of
from gonio.remedies.remedy import Remedy

if TYPE_CHECKING:
    from jaxtyping import Float


class QueryNormalizer(Remedy):
    """score(q, d) = (cos(q, d) - mu_q) / sigma_q,  mu and sigma of q's cosines with the documents.

    `fit` takes the documents. `transform` gives for each query (q^ / sigma_q, -mu_q / sigma_q), whose inner product
    with `documents(D)`, the rows (d^, 1), is the score: it fits any index of inner products. The order of the
    documents of one query stays; one threshold now means the same for all. A query with no spread has the score 0.
    """

    convention = "none: scores of different queries become comparable, each query's order stays"
    alters = "which scores of different queries are alike"
    _learned = ("mean_", "covariance_")

    def __init__(self, confidence: float = 0.9) -> None:
        self.confidence = confidence

    def _fit(self, X):
        U = directions(X)[0]
        self.mean_ = mean_of(U)
        self.covariance_ = covariance_of(U, self.mean_)

    def _scores(self, A, B):
        return np.einsum("ij,ij->i", self._transform(A), self._with_one(B))

    def _transform(self, X):
        u = directions(X)[0].astype(np.float64)
        mu = u @ self.mean_
        variance = np.einsum("ij,ij->i", u @ self.covariance_, u)
        sigma = np.sqrt(np.where(variance > 1e-12, variance, 0))
        inverse = np.where(sigma > 0, 1 / np.where(sigma > 0, sigma, 1), 0)
        return np.column_stack([u * inverse[:, None], -mu * inverse]).astype(X.dtype)

    def documents(self, D: Any) -> Float[np.ndarray, "documents more"]:
        """The rows (d^, 1) whose inner product with a transformed query is its score."""
        check_is_fitted(self)
        return self._with_one(self._read(D, reset=False))

    def _with_one(self, D: np.ndarray) -> np.ndarray:
        return np.column_stack([directions(D)[0], np.ones(len(D))]).astype(D.dtype)

    def scores(self, Q: Any, D: Any) -> Float[np.ndarray, "queries documents"]:
        """The scores of some queries with some documents; the plain cosines where the remedy abstained."""
        q = self.transform(Q)
        if self.abstained_:
            return directions(q)[0] @ directions(self._read(D, reset=False))[0].T
        return q @ self.documents(D).T

    def _names(self, names):
        return [*names, "offset"]
