"""Label vectors that have no shorter form: one number for each input, in float32, made once.

For what bends the logits (soft-caps, log-probabilities of a sigmoid) a label is the column of its values over inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import spans

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

MOST = 1 << 30  # bytes of a table


class SimilarityTable:
    """Values of all labels over inputs, centred over the inputs and over sqrt(points - 1): inner product = covariance.

    `values(which)` gives points x some. It has the manners of `Space`.
    """

    shift = None

    def __init__(self, head: Head, values: Callable[[np.ndarray], np.ndarray], points: int, who: str) -> None:
        self.head, self.values, self.points, self.who = head, values, points, who

    @property
    def width(self) -> int:
        return self.points

    def __getitem__(self, which: slice | np.ndarray) -> Float[np.ndarray, "some points"]:
        if isinstance(which, slice):
            which = np.arange(*which.indices(self.head.shape[0]))
        # A pair names few labels often: compute each once.
        several, back = np.unique(which, return_inverse=True)
        z = self.values(several).T
        size = np.linalg.norm(z, axis=1)
        z = z - z.mean(axis=1, keepdims=True)
        z[np.linalg.norm(z, axis=1) <= 2.0**-44 * size] = 0
        return (z / np.sqrt(max(1, self.points - 1)))[back]

    def lengths(self) -> Float[np.ndarray, " labels"]:
        if not hasattr(self, "_lengths"):
            n = self.head.shape[0]
            self._lengths = np.concatenate([np.linalg.norm(self[slice(s, e)], axis=1) for s, e in spans(n, 1024)])
        return self._lengths

    def zero(self) -> Bool[np.ndarray, " labels"]:
        return self.lengths() == 0

    def screen(self, *, unit: bool) -> Float[np.ndarray, "labels points"]:
        n = self.head.shape[0]
        if 4 * n * self.points > MOST:
            raise GonioError(
                f"{self.who}: neighbours need a table of {n:,} labels x {self.points:,} inputs, "
                f"{4 * n * self.points / 1e9:.1f} GB; give at most {MOST // (4 * n):,} embeddings."
            )
        length = self.lengths()
        scale = np.where(length > 0, length, 1) if unit else np.full(n, max(float(length.max()), 1e-300))
        out = np.empty((n, self.points), np.float32)
        for s, e in spans(n, 1024):
            out[s:e] = self[slice(s, e)] / scale[s:e, None]
        return out

    def cosines(self, i: np.ndarray, j: np.ndarray) -> Float[np.ndarray, " pairs"]:
        several, back = np.unique(np.concatenate([i, j]), return_inverse=True)
        V = self[several]
        length = np.linalg.norm(V, axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            V = V / length
        a, b = back[: len(i)], back[len(i) :]
        return np.clip(
            np.concatenate([np.einsum("ij,ij->i", V[a[s:e]], V[b[s:e]]) for s, e in spans(len(a), 512)]), -1, 1
        )
