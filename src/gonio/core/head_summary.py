"""What a head is, in figures: shape, rank, norms, and the rows that need a second look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.head import Head
from gonio.core.triangular_factor import triangular_factor

if TYPE_CHECKING:
    from jaxtyping import Float

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Profile:
    """The figures of a head.

    rank            numerical rank of W (float64, the tolerance of numpy's matrix_rank)
    rank_differences  rank of the row differences, which is what a softmax head can use: rank of [W 1] minus 1
    """

    head: Head
    rank: int
    rank_differences: int
    quantiles: Float[np.ndarray, " five"]

    def to_dict(self) -> dict[str, Any]:
        """Everything `gonio info` says, in plain values."""
        h = self.head
        n, d = h.shape
        s = h.source
        names = ("smallest", "lower quartile", "median", "upper quartile", "largest")
        return {
            "place": s.place if s else None,
            "format": s.format if s else None,
            "labels": n,
            "dim": d,
            "stored_as": h.rows.kind,
            "link": h.link,
            "rank": self.rank,
            "rank_of_differences": self.rank_differences,
            "norms": dict(zip(names, map(float, self.quantiles), strict=True)),
            "bias": None if h.bias is None else {"smallest": float(h.bias.min()), "largest": float(h.bias.max())},
            "inputs": str(h.inputs),
            "trained": h.trained,
            "softcap": h.softcap,
            "zero_rows": h.zero_rows.tolist(),
            "twins": [g.tolist() for g in h.twins],
            "padded": h.padded.tolist(),
            "named": h.named,
            "bytes_read": s.bytes_read if s else None,
            "decided": dict(s.decided) if s else {},
            "assumed": sorted(s.assumed) if s else [],
        }


def profile(head: Head) -> Profile:
    """The figures of a head, from one pass over its rows and a rank."""
    quantiles = np.quantile(head.norms, [0, 0.25, 0.5, 0.75, 1])
    quantiles.flags.writeable = False
    d = head.shape[1]
    if _spans(head):
        return Profile(head, d, d, quantiles)
    return Profile(head, _rank(head, ones=False), _rank(head, ones=True) - 1, quantiles)


def _block(head: Head, which: Any, ones: bool) -> np.ndarray:
    """Rows over the largest norm, in float64, with a column of ones if wanted."""
    rows = head.rows[which].astype(np.float64) / (head.norms.max() or 1.0)
    return np.column_stack([rows, np.ones(len(rows))]) if ones else rows


def _spans(head: Head) -> bool:
    """Whether some 2 (d + 1) rows with a column of ones already have full rank d + 1 by the tolerance for all rows.

    Further rows cannot lower a singular value, so for almost every head of a real model this small question settles it.
    """
    n, d = head.shape
    if n < 3 * (d + 1):
        return False
    step = n // (2 * (d + 1))
    sample = _block(head, slice(0, 2 * (d + 1) * step, step), ones=True)
    gram = sample.T @ sample
    top = float(head.norms.max()) or 1.0
    largest = float(((head.norms / top) ** 2).sum()) + n  # at least the largest singular value of all rows, squared
    # Beside the tolerance, squared, the least eigenvalue must clear the rounding of the Gram matrix.
    gram[np.diag_indices(d + 1)] -= 4 * largest * (n * EPS) ** 2 + 1e-11 * float(np.trace(gram))
    try:
        np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    return True


def numerical_rank(values: Float[np.ndarray, " values"], shape: tuple[int, int], rounding: float = 0.0) -> int:
    """How many singular values of a table are above numpy's tolerance, and above what its rounding may have made.

    The tolerance is that of numpy's matrix_rank in float64: the largest value times max(shape) times eps. `rounding`
    is the largest singular value that the rounding errors of the table alone have; zero takes the numbers as they are.

    >>> numerical_rank(np.array([3.0, 1.0, 1e-9]), (5, 3)), numerical_rank(np.array([3.0, 1.0, 1e-9]), (5, 3), 1e-6)
    (3, 2)
    """
    return int((values > max(float(values[0]) * max(shape) * EPS, rounding)).sum())


def largest_of_rounding(square: float, shape: tuple[int, int]) -> float:
    """About the largest singular value of independent errors: sqrt(mean square) (sqrt n + sqrt d)."""
    return float(np.sqrt(square) * (np.sqrt(shape[0]) + np.sqrt(shape[1])))


def _rank(head: Head, *, ones: bool) -> int:
    """Numerical rank of W, or of [W 1], through QR of the blocks folded together.

    As accurate as an SVD of the whole, which is never held.
    """
    n, d = head.shape
    width = d + ones

    R = triangular_factor(lambda span: _block(head, slice(*span), ones), n, width)
    values = np.linalg.svd(R, compute_uv=False)
    return numerical_rank(values, (n, width))
