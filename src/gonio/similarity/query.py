"""Scores in units of each query's own spread: (cos(q, d) - mu_q) / sigma_q over the documents scored for q."""

from __future__ import annotations

import numpy as np

from gonio.core.head import Head
from gonio.similarity.measures import register
from gonio.similarity.nearest import nearest_by_cosine
from gonio.similarity.of_cosine import OfCosine, moments_of_cosines


@register
class QueryNormalised(OfCosine):
    """(cos(i, j) - mu_i) / sigma_i, mu and sigma of the cosines of i with all other labels.

    Keeps each label's order of neighbours and makes one threshold mean the same for all; asymmetric. Where all cosines
    of a label are equal: 0.
    """

    name = "query-normalised"
    invariant = frozenset("SRP")
    symmetric = False

    def __init__(self, head: Head) -> None:
        super().__init__(head)
        self.mean, self.spread = moments_of_cosines(head)

    def value(self, cosine, i, j):
        s = self.spread[i]
        return np.where(s > 0, (cosine - self.mean[i]) / np.where(s > 0, s, 1), np.where(np.isnan(cosine), np.nan, 0.0))

    def _nearest(self, k, which):
        return nearest_by_cosine(self.head.rows, k, which)[0]
