"""Label vectors in which a measure is a plain cosine, inner product or distance.

    v_i = (r_i - shift) map,    r_i a row of the head, of length 1 where `unit`, with `extra` entries appended

Rows are read and mapped a block at a time, in float64; one float32 copy of the mapped rows serves a search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.core.directions import cosines
from gonio.core.head import Head
from gonio.core.parallel import in_threads, spans
from gonio.core.triangular_factor import triangular_factor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

ROUNDING = 2.0**-44  # what sums of thousands of float64 numbers may lose


class Space:
    """The rows of a head, shifted and mapped."""

    def __init__(
        self,
        head: Head,
        *,
        centre: bool = False,
        unit: bool = False,
        extra: float | None = None,
        root: np.ndarray | None = None,
        bias_root: np.ndarray | None = None,
    ) -> None:
        self.head = head
        self.unit = unit
        self.extra = extra  # a constant entry after each row
        self.root = root  # (dim, reduced): v = (row - shift) @ root
        self.bias_root = bias_root if head.bias is not None else None  # (reduced,): what a label's bias adds, times it
        self.shift = None
        if centre:
            total = np.zeros(head.shape[1] + (extra is not None))
            for s, e in spans(head.shape[0], 4096):
                total += self._raw(slice(s, e)).sum(axis=0)
            self.shift = total / head.shape[0]

    @property
    def width(self) -> int:
        return self.root.shape[1] if self.root is not None else self.head.shape[1] + (self.extra is not None)

    def _raw(self, which: slice | np.ndarray) -> np.ndarray:
        rows = self.head.rows[which].astype(np.float64)
        if self.unit:
            length = self.head.norms[which][:, None]
            rows /= np.where(length > 0, length, 1)
        if self.extra is not None:
            rows = np.column_stack([rows, np.full(len(rows), self.extra)])
        return rows

    def __getitem__(self, which: slice | np.ndarray) -> Float[np.ndarray, "some reduced"]:
        """The vectors of the chosen labels; what is only rounding is zero."""
        raw = self._raw(which)
        v = raw if self.shift is None else raw - self.shift
        if self.root is not None:
            v = v @ self.root
        if self.bias_root is not None:
            assert self.head.bias is not None
            v = v + self.head.bias[which].astype(np.float64)[:, None] * self.bias_root
        if self.shift is not None or self.root is not None:
            size = np.linalg.norm(raw, axis=1)
            if self.bias_root is not None:
                size = size + np.abs(self.head.bias[which])  # type: ignore[index]
            if self.shift is not None:
                size = size + np.linalg.norm(self.shift)
            scale = 1.0 if self.root is None else self._root_norm()
            # A row equal to the mean, or outside what the inputs span, leaves only rounding: zero, no direction.
            v[np.linalg.norm(v, axis=1) <= ROUNDING * size * scale] = 0
        return v

    def _root_norm(self) -> float:
        if not hasattr(self, "_norm"):
            self._norm = float(np.linalg.norm(self.root)) if self.root is not None else 1.0
            if self.bias_root is not None:
                self._norm += float(np.linalg.norm(self.bias_root))
        return self._norm

    def lengths(self) -> Float[np.ndarray, " labels"]:
        """The length of every vector."""
        if not hasattr(self, "_lengths"):
            out = np.empty(self.head.shape[0])
            self._root_norm()

            def look(span: tuple[int, int]) -> None:
                out[span[0] : span[1]] = np.linalg.norm(self[slice(*span)], axis=1)

            in_threads(look, spans(len(out), 4096))
            self._lengths = out
        return self._lengths

    def zero(self) -> Bool[np.ndarray, " labels"]:
        """Which vectors are zero, so that no cosine with them is defined."""
        return self.lengths() == 0

    def screen(self, *, unit: bool) -> Float[np.ndarray, "labels reduced"]:
        """All vectors in float32, for finding candidates: of length 1, or divided by the largest length."""
        length = self.lengths()
        scale = np.where(length > 0, length, 1) if unit else np.full(len(length), max(float(length.max()), 1e-300))
        out = np.empty((len(length), self.width), np.float32)

        def fill(span: tuple[int, int]) -> None:
            part = slice(*span)
            out[part] = self[part] / scale[part, None]

        in_threads(fill, spans(len(length), 4096))
        return out

    def cosines(self, i: np.ndarray, j: np.ndarray) -> Float[np.ndarray, " pairs"]:
        """The cosine of each pair; NaN where one of the two is zero."""
        return cosines(self[i], self[j])


def root_of(F: np.ndarray) -> Float[np.ndarray, "dim reduced"]:
    """R' with  R'R = the covariance of the rows of F  (about their mean, divided by points - 1), block after block.

    The triangular factor keeps the digits that forming F'F would lose.
    """
    mean = np.zeros(F.shape[1])
    for s, e in spans(len(F), 8192):
        mean += F[s:e].sum(axis=0, dtype=np.float64)
    mean /= len(F)
    R = triangular_factor(lambda span: F[slice(*span)] - mean, *F.shape)
    return np.ascontiguousarray((R / np.sqrt(max(1, len(F) - 1))).T)
