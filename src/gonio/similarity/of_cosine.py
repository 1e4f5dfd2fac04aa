"""Measures that are a function of the cosine and one or two numbers of each label."""

from __future__ import annotations

import numpy as np

from gonio.core.head import Head
from gonio.similarity.measures import Measure
from gonio.similarity.nearest import nearest_by, unit_rows
from gonio.similarity.space import Space


class OfCosine(Measure):
    """value(cosine, i, j): a measure that needs of a pair only its cosine and what is known of each label."""

    def __init__(self, head: Head) -> None:
        super().__init__(head)
        self.space = Space(head)

    def value(self, cosine: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """The measure, for cosines of the labels i and j."""
        raise NotImplementedError

    def _pairs(self, i, j):
        return self.value(self.space.cosines(i, j), i, j)

    def _nearest(self, k, which):
        U = unit_rows(self.head.rows)

        def score(mine: np.ndarray, a: int, b: int) -> np.ndarray:
            return self.nearer * self.value(U[mine] @ U[a:b].T, mine[:, None], np.arange(a, b)[None, :])

        return nearest_by(score, len(U), k, which, barred=self._barred())[0]

    def _barred(self):
        return self.head.norms == 0


def moments_of_cosines(head: Head) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each label's cosines with all others, without looking at pairs.

    sum_j u_i.u_j = u_i.(sum u) - 1   and   sum_j (u_i.u_j)^2 = u_i'(U'U) u_i - 1.  Zero rows count for nobody: NaN.
    """
    space = Space(head, unit=True)
    n, d = head.shape
    total, second = np.zeros(d), np.zeros((d, d))
    parts = [slice(s, min(n, s + 4096)) for s in range(0, n, 4096)]
    for part in parts:
        U = space[part]
        total += U.sum(axis=0)
        second += U.T @ U
    others = int((head.norms > 0).sum()) - 1
    mean, mean_square = np.full(n, np.nan), np.full(n, np.nan)
    if others > 0:
        for part in parts:
            U = space[part]
            mean[part] = (U @ total - 1) / others
            mean_square[part] = (np.einsum("ij,ij->i", U @ second, U) - 1) / others
    variance = mean_square - mean * mean
    variance[variance < 1e-12] = 0  # what is left where all cosines are equal
    mean[head.norms == 0] = variance[head.norms == 0] = np.nan
    return mean, np.sqrt(variance)
