"""Whiten: make the covariance of the rows the identity (Su et al. 2021)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gonio.core.errors import GonioError
from gonio.remedies.moments import axes_of, centred_blocks, mean_of
from gonio.remedies.remedy import Remedy


class Whiten(Remedy):
    """x -> (x - mean) U diag(variance)^-1/2, the leading `components` of them ("pca"), or turned back by U' ("zca").

    Parameters
    ----------
    kind : "pca" or "zca"
        zca stays as near to the given axes as whitening can; it keeps the width.
    components : int, optional
        How many directions to keep, by variance; all that have any, if not given.
    shrinkage : from 0 to 1
        The covariance used is (1 - s) C + s (tr C / dim) I: towards leaving the rows as they are.

    Cosines after full whitening are the same for every affine map of the data: inside the gauge of softmax heads (a
    translation and an invertible map). That is also its price: with fewer rows than dimensions + 2 every pair of rows
    gets one and the same cosine, whatever the data (`caveat_` then says so), and weak directions count as much as
    strong ones.

    Claims: GONIO.affine
    """

    convention = "T and M: label rows of a softmax head, with the embeddings mapped by the inverse"
    alters = "cosines of vectors that were trained with cosines; with components, drops the weak directions altogether"
    _learned = ("mean_", "variances_", "components_")

    def __init__(
        self,
        kind: Literal["pca", "zca"] = "pca",
        components: int | None = None,
        shrinkage: float = 0.0,
        confidence: float = 0.9,
    ) -> None:
        self.kind = kind
        self.components = components
        self.shrinkage = shrinkage
        self.confidence = confidence

    def _fit(self, X):
        k: Any = self.components
        if self.kind not in ("pca", "zca"):
            raise GonioError(f"Whiten: kind is {self.kind!r}; choose 'pca' or 'zca'.")
        if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= X.shape[1]):
            raise GonioError(f"Whiten: components is {k}; 1 to {X.shape[1]} can be kept.")
        if not 0 <= self.shrinkage <= 1:
            raise GonioError(f"Whiten: shrinkage is {self.shrinkage}; a number from 0 to 1 is needed.")
        self.mean_ = mean_of(X)
        variances, axes = axes_of(X, self.mean_, float(self.shrinkage))
        self.variances_, self.components_ = variances[:k], axes[:k]

    @property
    def caveat_(self) -> str:
        """What the fit cannot tell, in words; empty where there is nothing to say."""
        rank, d = self.components_.shape
        if rank == 0:
            return "all rows were equal: nothing is left"
        if self.components is None and not self.shrinkage and rank < d:
            return f"the rows span {rank} of {d} directions; if they were {rank + 1} rows, all their cosines are equal"
        return ""

    def _map(self) -> np.ndarray:
        out = self.components_.T / np.sqrt(self.variances_)
        return out @ self.components_ if self.kind == "zca" else out

    def _transform(self, X):
        M = self._map()
        out = np.empty((len(X), M.shape[1]), X.dtype)
        for s, e, block in centred_blocks(X, self.mean_):
            np.matmul(block, M, out=out[s:e], casting="same_kind")
        return out

    def _names(self, names):
        return names if self.kind == "zca" else [f"whiten{i}" for i in range(len(self.components_))]
