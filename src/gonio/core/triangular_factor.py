"""The triangular factor of a tall table that is never held: R with R'R = X'X, without squaring its condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gonio.core.parallel import in_threads, one_blas_thread, spans

PARTS = 8  # how many parts are folded side by side, whatever the machine, so that every machine gets the same numbers


def triangular_factor(rows: Callable[[tuple[int, int]], np.ndarray], n: int, width: int) -> np.ndarray:
    """R of the QR factorisation of the n rows that `rows((first, last))` gives out, folded together block by block.

    >>> X = np.arange(12.0).reshape(6, 2) ** 2
    >>> R = triangular_factor(lambda span: X[slice(*span)], 6, 2)
    >>> bool(np.allclose(R.T @ R, X.T @ X))
    True
    """

    def fold(part: tuple[int, int]) -> Any:
        r = np.zeros((0, width))
        for a, b in spans(part[1] - part[0], 4 * width):
            r = np.linalg.qr(np.vstack([r, rows((part[0] + a, part[0] + b))]), mode="r")
        return r

    with one_blas_thread():
        parts = in_threads(fold, spans(n, max(4 * width, -(-n // PARTS))))
        return np.asarray(np.linalg.qr(np.vstack(parts), mode="r"))
