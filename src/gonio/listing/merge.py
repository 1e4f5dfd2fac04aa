"""Rows taken as they are up to a tolerance: near-zero rows, near-parallel rows and near-dependent columns are
merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.listing.arrangement import Arrangement

if TYPE_CHECKING:
    from jaxtyping import Float


def merge(rows: Float[np.ndarray, "rows dim"], tol: float) -> tuple[Arrangement, list[str]]:
    """The arrangement of rows up to `tol`, and in words what was merged.

    A row shorter than tol times the longest is zero; rows whose directions differ by at most tol (up to sign) are
    one; a singular value of the directions up to tol times the largest is zero.
    """
    rows = rows.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    small = lengths <= tol * lengths.max(initial=0)
    plane, sign = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.int64)
    kept: list[np.ndarray] = []
    worst = 0.0
    for i in np.flatnonzero(~small):
        u = rows[i] / lengths[i]
        for k, v in enumerate(kept):
            s = 1 if u @ v > 0 else -1
            off = float(np.linalg.norm(u - s * v))
            if off <= tol:
                plane[i], sign[i], worst = k, s, max(worst, off)
                break
        else:
            plane[i], sign[i] = len(kept), 1
            kept.append(u)
    words = []
    if small.any():
        words.append(
            f"{int(small.sum())} rows of at most {lengths[small].max():.3g} were taken for zero (tolerance {tol:g})"
        )
    twins = int((plane >= 0).sum()) - len(kept)
    if twins:
        words.append(f"{twins} rows were merged with parallel ones, at most {worst:.3g} apart (tolerance {tol:g})")
    if not kept:
        empty = Arrangement((), np.zeros((0, 0)), plane, sign, (), rows.shape[1])
        return empty, words
    U = np.array(kept)
    _, s, V = np.linalg.svd(U, full_matrices=False)
    rank = int((s > tol * s[0]).sum())
    if rank < len(s):
        words.append(f"singular values of at most {s[rank]:.3g} were taken for zero, which leaves rank {rank}")
    A = U @ V[:rank].T
    A.flags.writeable = False
    whole = tuple(tuple(0 for _ in range(rank)) for _ in kept)  # there are no whole numbers behind a tolerance
    return Arrangement(whole, A, plane, sign, tuple(range(rank)), rows.shape[1]), words
