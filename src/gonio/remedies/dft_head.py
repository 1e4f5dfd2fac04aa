"""A head whose label sets are known beforehand: the truncated Fourier basis (Grivas et al. 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.source import Source

if TYPE_CHECKING:
    from jaxtyping import Bool


def dft(n: int, k: int, *, slack: Any = None, labels: Any = None) -> Head:
    """A sigmoid head of n labels and width 2k + 1 that can output every set of at most k labels.

    w_t = sqrt(1/n) (1, sqrt(2) cos(2 pi j t / n), sqrt(2) sin(2 pi j t / n)),  j = 1..k,  t = 0..n-1

    W'W = I. A label set is possible iff its signs change at most 2k times along t = 0..n-1 (`dft_allows`), since a
    trigonometric polynomial of degree k has at most 2k zeros on the circle; so every set of at most k labels is.

    slack: an array of shape (n, more) of further columns, which can only add label sets.

    >>> dft(8, 2).shape
    (8, 5)

    Claims: GRIV24.dft
    """
    if n < 1 or k < 0:
        raise GonioError(f"dft: {n} labels and k = {k} were asked for; n from 1 and k from 0 on are needed.")
    if 2 * k + 1 > n:
        raise GonioError(
            f"dft: k = {k} needs 2k + 1 = {2 * k + 1} columns, more than the {n} labels; choose k <= {(n - 1) // 2}."
        )
    angle = 2 * np.pi * np.outer(np.arange(n), np.arange(1, k + 1)) / n
    W = np.column_stack([np.full(n, np.sqrt(1 / n)), np.sqrt(2 / n) * np.cos(angle), np.sqrt(2 / n) * np.sin(angle)])
    if slack is not None:
        more = np.asarray(slack, dtype=np.float64)
        if more.ndim != 2 or len(more) != n:
            raise GonioError(f"dft: slack has shape {more.shape}; one row a label is needed, so shape ({n}, columns).")
        W = np.column_stack([W, more])
    decided = {"label sets": f"every set of at most {k} labels is possible, by construction"}
    return Head(W, link="sigmoid", labels=labels, source=Source("dft", "made", decided=decided))


def dft_allows(signs: Any, k: int) -> Bool[np.ndarray, " sets"]:
    """The rule of `dft(n, k)`: whether label sets, rows of +1 and -1, change sign at most 2k times.

    >>> dft_allows([[1, -1, 1, -1], [1, 1, -1, -1]], 1)
    array([False,  True])

    Claims: GRIV24.rule
    """
    rows = np.atleast_2d(np.asarray(signs))
    return (rows[:, 1:] * rows[:, :-1] < 0).sum(axis=1) <= 2 * k
