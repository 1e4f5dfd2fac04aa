"""Soft cosine: features that are alike count as partly the same (Sidorov et al. 2014).

a' S b / sqrt(a' S a  b' S b),     S the similarity of features, symmetric, positive semidefinite, mostly sparse
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import spans
from gonio.similarity.measures import Measure, register
from gonio.similarity.nearest import nearest

if TYPE_CHECKING:
    from jaxtyping import Float


def _features(S: Any, dim: int, who: str) -> Any:
    """S as a sparse float64 matrix, checked."""
    from scipy import sparse

    if S is None:
        raise GonioError(
            f"{who}: no similarity of features was given; pass features, a matrix of shape ({dim}, {dim})."
        )
    if not sparse.issparse(S):
        S = checks.matrix(S, who, "features", axes=("dim", "dim"))
    if S.shape != (dim, dim):
        raise GonioError(f"{who}: features has shape {S.shape} and vectors have width {dim}; ({dim}, {dim}) is needed.")
    S = sparse.csr_array(S).astype(np.float64)
    if not np.isfinite(S.data).all():
        raise GonioError(f"{who}: features holds NaN or infinity; every entry must be a finite number.")
    skew = abs(S - S.T)
    if skew.nnz and skew.max() > 1e-9 * max(1e-300, abs(S).max()):
        raise GonioError(f"{who}: features is not symmetric (by {skew.max():.3g}); use (S + S.T) / 2.")
    return S


def _lengths(squares: np.ndarray, plain: np.ndarray, size: float, who: str) -> np.ndarray:
    """sqrt(a'Sa), where it is not negative beyond rounding."""
    slack = 1e-9 * size * np.maximum(plain, 1e-300)
    if (squares < -slack).any():
        raise GonioError(
            f"{who}: a' S a is {squares.min():.3g} for some vector, so features is not positive semidefinite; "
            f"add to its diagonal, or clip its negative eigenvalues."
        )
    return np.sqrt(np.where(squares > slack, squares, 0))


def _table(x: Any, who: str, name: str) -> Any:
    from scipy import sparse

    table = sparse.csr_array(x if sparse.issparse(x) else checks.matrix(x, who, name)).astype(np.float64)
    checks.finite(table.data, who, name)
    return table


def soft_cosine(X: Any, Y: Any, features: Any) -> Float[np.ndarray, " pairs"]:
    """The soft cosine of row r of X with row r of Y; both may be sparse. NaN where a vector has no length under S.

    >>> soft_cosine([[1, 0]], [[0, 1]], [[1, 0.8], [0.8, 1]])
    array([0.8])
    """
    who = "soft_cosine"
    a, b = (_table(x, who, name) for x, name in ((X, "X"), (Y, "Y")))
    if a.shape != b.shape:
        raise GonioError(f"{who}: X has shape {a.shape} and Y {b.shape}; pairs of rows need one shape.")
    S = _features(features, a.shape[1], who)
    size = float(abs(S).max()) if S.nnz else 1.0

    def inner(u: Any, v: Any) -> np.ndarray:
        return np.asarray((u @ S).multiply(v).sum(axis=1)).ravel()

    plain = [np.asarray(u.multiply(u).sum(axis=1)).ravel() for u in (a, b)]
    la, lb = (_lengths(inner(u, u), p, size, who) for u, p in zip((a, b), plain, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(inner(a, b) / (la * lb), -1, 1)


@register
class SoftCosine(Measure):
    """a' S b / sqrt(a' S a  b' S b) of the rows of a head, whose dimensions are the features.

    With S = I it is the cosine. The groups act on W and not on S, so only lengths and signs are free.
    """

    name = "soft cosine"
    invariant = frozenset("SP")
    needs = "features"

    def __init__(self, head: Head, features: Any = None) -> None:
        super().__init__(head)
        self.S = _features(features, head.shape[1], self.name)
        self.size = float(abs(self.S).max()) if self.S.nnz else 1.0
        self.length = np.concatenate([self._of(head.rows[s:e])[1] for s, e in spans(head.shape[0], 4096)])

    def _of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        V = rows.astype(np.float64)
        VS = np.asarray((self.S @ V.T).T)
        squares, plain = np.einsum("ij,ij->i", VS, V), np.einsum("ij,ij->i", V, V)
        return VS, _lengths(squares, plain, self.size, self.name)

    def _pairs(self, i, j):
        inner = np.einsum("ij,ij->i", self._of(self.head.rows[i])[0], self.head.rows[j].astype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.clip(inner / (self.length[i] * self.length[j]), -1, 1)

    def _nearest(self, k, which):
        n = self.head.shape[0]
        asked = np.arange(n) if which is None else which
        safe = np.where(self.length > 0, self.length, 1)
        C = (self.head.W / safe[:, None]).astype(np.float32)
        Q = np.empty((len(asked), C.shape[1]), np.float32)
        for s, e in spans(len(asked), 4096):
            Q[s:e] = self._of(self.head.rows[asked[s:e]])[0] / safe[asked[s:e], None]
        return nearest(C, k, queries=Q, which=asked, barred=self._barred())[0]

    def _barred(self):
        return self.length == 0
