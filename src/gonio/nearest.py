"""The nearest rows of every row, in blocks through BLAS: the one place that looks at all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.errors import GonioError
from gonio.parallel import in_threads, spans
from gonio.rows import Rows

if TYPE_CHECKING:
    from jaxtyping import Float, Int

ROWS, RIVALS = 512, 4096  # a block of scores stays within a core's cache


def nearest_by_cosine(
    rows: Rows, k: int, which: np.ndarray | None = None
) -> tuple[Int[np.ndarray, "asked near"], Float[np.ndarray, "asked near"]]:
    """The k rows of largest cosine for each row asked about (all, if not given), itself left out, nearest first.

    Zero rows are nobody's neighbour and have the cosine 0 with everything. No more than a block of all pairs is held.
    """
    n, _ = rows.shape
    asked = np.arange(n) if which is None else np.asarray(which, np.int64)
    if not 1 <= k < n:
        raise GonioError(f"nearest: {k} neighbours of {n} rows were asked for; a number from 1 to {n - 1} is needed.")
    norms = rows.survey().norms
    scale = np.where(norms > 0, 1 / np.where(norms > 0, norms, 1), 0)
    unit = np.empty(rows.shape, np.float32)
    for start, block in rows.blocks(4096):
        unit[start : start + len(block)] = block * scale[start : start + len(block), None]
    near = np.empty((len(asked), k), np.int64)
    cosines = np.empty((len(asked), k), np.float32)

    def look(span: tuple[int, int]) -> None:
        mine = asked[span[0] : span[1]]
        best = np.full((len(mine), 0), -np.inf, np.float32)
        at = np.zeros((len(mine), 0), np.int64)
        for a, b in spans(n, RIVALS):
            scores = unit[mine] @ unit[a:b].T
            scores[:, norms[a:b] == 0] = -np.inf
            own = np.flatnonzero((mine >= a) & (mine < b))
            scores[own, mine[own] - a] = -np.inf
            best = np.concatenate([best, scores], axis=1)
            at = np.concatenate([at, np.broadcast_to(np.arange(a, b), scores.shape)], axis=1)
            if best.shape[1] > k:
                keep = np.argpartition(-best, k - 1, axis=1)[:, :k]
                best, at = np.take_along_axis(best, keep, 1), np.take_along_axis(at, keep, 1)
        order = np.lexsort((at, -best), axis=1)
        near[span[0] : span[1]] = np.take_along_axis(at, order, 1)
        cosines[span[0] : span[1]] = np.take_along_axis(best, order, 1)

    in_threads(look, spans(len(asked), ROWS))
    return near, cosines
