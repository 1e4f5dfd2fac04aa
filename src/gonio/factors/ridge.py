"""The smoother  (X'X + Lam)^-1 X'X  with a diagonal Lam: what a penalty on the product asks of the users' map."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gonio.factors import pencil
from gonio.factors.interactions import Interactions
from gonio.factors.spectrum import WIDE

if TYPE_CHECKING:
    from jaxtyping import Float

TOLERANCE = 1e-12  # of a solve by conjugate gradients, relative
DENSE = 4096  # items up to which eigenvectors of a full matrix come sooner than iterated ones


class Ridge:
    """S = X'X + diag(Lam), solved by Cholesky where the items are few, else by conjugate gradients.

    Items that nobody touched and nothing penalises have a zero row in S; they are given a one on the diagonal, so that
    the answer is zero there.
    """

    def __init__(self, X: Interactions, penalty: Float[np.ndarray, " items"]) -> None:
        self.X = X
        self.penalty = penalty
        diagonal = X.squares + penalty
        self.extra = np.where(diagonal > 0, penalty, 1.0)
        self.diagonal = np.where(diagonal > 0, diagonal, 1.0)

    @property
    def small(self) -> bool:
        """Whether the items x items matrix may be held."""
        return self.X.shape[1] <= WIDE

    @cached_property
    def gram(self) -> Float[np.ndarray, "items items"]:
        return self.X.gram()

    @cached_property
    def _factor(self) -> tuple[np.ndarray, bool]:
        from scipy.linalg import cho_factor

        S = self.gram.copy()
        S[np.diag_indices_from(S)] += self.extra
        return cho_factor(S, overwrite_a=True, check_finite=False)

    def solve(self, Y: np.ndarray) -> np.ndarray:
        """S^-1 Y."""
        if self.small:
            from scipy.linalg import cho_solve

            return cho_solve(self._factor, Y, check_finite=False)
        return _conjugate_gradients(self._product, Y, self.diagonal)

    def _product(self, V: np.ndarray) -> np.ndarray:
        return self._gram_times(V) + self.extra[:, None] * V

    def _gram_times(self, V: np.ndarray) -> np.ndarray:
        if V.shape[1] == 1:
            return self._one(V[:, 0])[:, None]
        return self.X.transposed(self.X.times(V))

    @cached_property
    def _one(self) -> Callable[[np.ndarray], np.ndarray]:
        return self.X.gram_operator()

    def smooth(self, B: np.ndarray) -> np.ndarray:
        """S^-1 X'X B."""
        return self.solve(self.gram @ B if self.small else self._gram_times(B))

    @property
    def way(self) -> str:
        """How `leading` finds its directions."""
        return "Cholesky" if self.X.shape[1] <= DENSE else "LOBPCG"

    def leading(self, rank: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """The leading eigenvectors W of  X'X S^-1 X'X,  largest first, and  S^-1 X'X W."""
        if self.way == "LOBPCG":
            return pencil.leading(self._gram_times, self.diagonal, self.extra, rank, seed)
        from scipy.linalg import eigh, solve_triangular

        p = self.X.shape[1]
        C, lower = self._factor
        half = solve_triangular(C, self.gram, trans=0 if lower else 1, lower=lower, check_finite=False)
        W = eigh(half.T @ half, subset_by_index=(p - rank, p - 1), overwrite_a=True)[1][:, ::-1]
        return W, self.smooth(W)


def _conjugate_gradients(product: Callable[[np.ndarray], np.ndarray], Y: np.ndarray, diagonal: np.ndarray):
    """S^-1 Y for all columns at once, each with its own steps, preconditioned by the diagonal of S."""
    D = 1 / diagonal[:, None]
    Z = D * Y
    out = np.zeros_like(Y)
    R, step = Y.copy(), Z.copy()
    old = (R * Z).sum(axis=0)
    goal = TOLERANCE**2 * np.maximum(old, np.finfo(np.float64).tiny)
    for _ in range(10 * len(diagonal)):
        if (old <= goal).all():
            break
        SP = product(step)
        alpha = old / np.maximum((step * SP).sum(axis=0), np.finfo(np.float64).tiny)
        out += alpha * step
        R -= alpha * SP
        Z = D * R
        new = (R * Z).sum(axis=0)
        step = Z + (new / np.maximum(old, np.finfo(np.float64).tiny)) * step
        old = new
    return out
