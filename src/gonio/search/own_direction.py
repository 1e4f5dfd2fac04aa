"""Stage 1: accept every label that wins in its own whitened direction.

Direction v_i:  label i wins there  iff  v_i.v_j < |v_i|^2 for all j.

A rival of smaller norm loses by Cauchy-Schwarz, so with the rows in order of norm only a triangle of V V' is needed;
and a block of it needs only the k leading coordinates where

    v_i.v_j <= u_i.u_j + tail_i tail_j        (u: leading part, tail: length of the rest)

already settles it. Everything is in float32, with its rounding bound on the safe side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.parallel import spans
from gonio.search.blas_pool import Crew
from gonio.search.kernels import row_max, row_max_with_tails
from gonio.search.whitening import UNIT32, Space

if TYPE_CHECKING:
    from jaxtyping import Float

ROWS, RIVALS = 512, 2048
STEEPNESS = 5.5  # leading parts of unrelated rows have dot products below this many deviations


def leading(ratio: float, rank: int) -> int:
    """How many coordinates will usually do for rivals longer by `ratio`: ratio (5.5 sqrt(k)/d + 1 - k/d) < 1."""
    for k in _steps(rank):
        if ratio * (STEEPNESS * np.sqrt(k) / rank + 1 - k / rank) < 1:
            return k
    return rank


def _steps(rank: int) -> range:
    return range(min(64, rank), rank, max(16, rank // 24))


def accept(
    space: Space,
    open_labels: np.ndarray,
    crew: Crew,
    after: Callable[[np.ndarray], None],
    margins: Float[np.ndarray, " labels"],
) -> None:
    """Fill in lower bounds of min_j v_i.(v_i - v_j)/|v_i|, the margin in the direction of v_i; 0 where none is proven.

    Only labels in the mask `open_labels` are asked about. `after(margins)` is called now and then; an interrupt leaves
    what has been settled in `margins`.
    """
    n, rank = space.V32.shape
    V, order = space.V32, space.order
    norms = space.norms[order]
    tails = tail_lengths(V, crew)
    wanted = open_labels[order]
    # GEMM and rounding to float32, relative to |v_i||v_j|; and what float64 did to v_i and v_j themselves.
    rel = (rank + 16) * UNIT32 * 1.05
    drift = 8 * space.drift

    def settle(first: int) -> None:
        last = min(n, first + ROWS)
        alive = np.flatnonzero(wanted[first:last]) + first
        if not len(alive):
            return
        tops = np.zeros(len(alive))  # upper bounds of max_j v_i.v_j
        # The block itself and rivals too near in norm for Cauchy-Schwarz; beyond them it leaves |v_i|(|v_i| - |v_j|).
        near = last + int(np.searchsorted(-norms[last:], -norms[last - 1] * (1 - 4 * rel)))
        if near < n:
            tops = norms[alive] * norms[near] * (1 + 1e-12)
        mine = V[alive]
        scratch = crew.buffer("products", ROWS * max(ROWS, RIVALS))
        peak = np.empty(ROWS, np.float32)
        windows = [(*w, rank) for w in spans_from(first, near, RIVALS)]
        windows += [(a, b, -1) for a, b in spans(first, RIVALS)]
        for a, b, k in windows:
            m = len(alive)
            if not m:
                return
            if k < 0:
                k = leading(norms[a] / norms[alive[-1]], rank)
            S = scratch[: m * (b - a)].reshape(m, b - a)
            np.matmul(mine[:, :k], V[a:b, :k].T, out=S)
            slack = rel * norms[alive] * (norms[a] + norms[alive]) + drift * (norms[a] + norms[alive])
            if k < rank:
                row_max_with_tails(S, tails[k][alive], tails[k][a:b], peak)
            else:
                inside = (alive >= a) & (alive < b)
                S[np.flatnonzero(inside), alive[inside] - a] = -3e38
                row_max(S, peak)
            bound = peak[:m] * (1 + 8 * UNIT32 * np.sign(peak[:m])) + slack
            lost = bound >= norms[alive] ** 2
            if k < rank and lost.any():
                again = np.flatnonzero(lost)
                full = (mine[again] @ V[a:b].T).max(axis=1) + slack[again]
                bound[again] = full
                lost[again] = full >= norms[alive[again]] ** 2
            np.maximum(tops, bound, out=tops)
            if lost.any():
                alive, mine, tops = alive[~lost], mine[~lost], tops[~lost]
        room = norms[alive] - tops / norms[alive]
        margins[order[alive]] = np.where(tops < norms[alive] ** 2, room, 0.0)

    # The long rows first: they are few and their rivals fewer, so the first results come at once.
    crew.run(settle, range(0, n, ROWS), lambda: after(margins))


def spans_from(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    """The half-open ranges of at most `size` that cover start..stop."""
    return [(start + a, start + b) for a, b in spans(stop - start, size)]


def tail_lengths(V: np.ndarray, crew: Crew) -> dict[int, np.ndarray]:
    """For each k of `leading`, the lengths of the rows beyond their first k coordinates, rounded up."""
    steps = list(_steps(V.shape[1]))
    out = {k: np.empty(len(V), np.float32) for k in steps}
    if not steps:
        return out

    def measure(s: tuple[int, int]) -> None:
        part = slice(*s)
        squares = np.square(V[part], dtype=np.float64)
        rest = np.add.reduceat(squares, steps, axis=1)[:, ::-1].cumsum(axis=1)[:, ::-1]
        for q, k in enumerate(steps):
            out[k][part] = np.sqrt(rest[:, q]) * (1 + 1e-6)

    crew.run(measure, spans(len(V), 2048))
    return out
