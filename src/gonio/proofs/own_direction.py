"""The own-direction lemma: many labels win in the direction of their own mapped row, seen in one triangle of products.

With v_j = L (a_j - centre) for any L and centre (`mapped_rows`), V_j within drift of v_j, and y = L' V_i:

    (a_i - a_j).y  =  V_i.(v_i - v_j)  >=  |V_i|^2 - V_i.V_j - 2 |V_i| drift        for every j,

so label i is strictly above all others at y, scores being a.y, if the right side is positive for all j other than i.
y is a vector of real numbers that need not be a float. What it proves is that a winning input exists:

    all inputs             y, or with any bias t y for t large enough
    after a norm, no shift, and a box about 0; no bias, or an equal one      t y for t > 0 small enough

A rival j with |V_j| <= |V_i| (1 - room) loses by Cauchy-Schwarz, so with the rows in order of norm a triangle of V V'
is enough; and of a block of it only the k leading coordinates are needed where  u_i.u_j + tail_i tail_j  already
settles it (u: leading part, tail: length of the rest). The products are float32, with a bound of their rounding:

    |fl(x.y) - V_i.V_j| <= (k + 16) 2^-24 1.05 |V_i| |V_j| + underflow        x, y: V_i, V_j rounded to float32

docs/proofs.md states it once more; tests/proofs/test_own_direction.py holds it against exact arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool, buffer
from gonio.core.float_units import UNIT32
from gonio.core.inputs import Problem
from gonio.core.parallel import spans
from gonio.core.tasks import run
from gonio.proofs.mapped_rows import MappedRows, map_rows
from gonio.proofs.row_maxima import LOWEST, row_max, row_max_with_tails

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

ROWS, RIVALS = 512, 2048
STEEPNESS = 5.5  # leading parts of unrelated rows have dot products below this many deviations
LARGEST = 1e18  # norms below it have products that float32 holds
UNDERFLOW = 2.0**-120  # times the width and the norms: more than numbers below 2^-126 can take from a product


class OwnDirections:
    """Which rows of a problem win in their own direction, under a map that somebody else chooses.

    lead   lower bounds of  min_j V_i.(v_i - v_j) / |V_i|, above 0 where the lemma holds for row i; 0 elsewhere
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.lead: Float[np.ndarray, " labels"] = np.zeros(len(problem.V))
        largest = max(float(problem.V.max()), -float(problem.V.min()))
        self.scale = math.frexp(largest)[1] if largest > 0 else 0

    @property
    def proven(self) -> Bool[np.ndarray, " labels"]:
        """The labels of which it is proven that a winning input exists."""
        return (self.lead > 0) & self.enough

    @property
    def enough(self) -> bool:
        """Whether a direction that wins by the rows alone gives a winning input of the problem."""
        p = self.problem
        if p.shape == "space":
            return True
        if p.constants_equal and p.shape == "box":
            return bool((np.asarray(p.low) < 0).all() and (np.asarray(p.high) > 0).all())
        return p.constants_equal and p.shape == "ball"

    def rows(self, which: slice) -> Float[np.ndarray, "some width"]:
        """Some rows in float64, all scaled by one power of two to numbers of size one."""
        return np.ldexp(self.problem.V[which].astype(np.float64), -self.scale)

    def mapped(self, centre: np.ndarray, L: np.ndarray, workers: BlasPool, *, keep: bool = True) -> MappedRows:
        """The rows under the map."""
        error = math.ldexp(self.problem.error, -self.scale) + 2.0**-1070  # scaling rounds only what is subnormal
        return map_rows(self.rows, len(self.problem.V), centre, L, workers, error=error, keep=keep)

    def decide(
        self, mapped: MappedRows, asked: np.ndarray, workers: BlasPool, after: Callable[[np.ndarray], None]
    ) -> None:
        """Fill in `lead` for the labels in the mask `asked`; an interrupt leaves what has been settled.

        `after(lead)` is called now and then.
        """
        if not mapped.largest < LARGEST:  # a product could overflow float32
            return
        triangle = _Triangle(mapped, asked, workers)

        def write(_: int, found: tuple[np.ndarray, np.ndarray]) -> None:
            self.lead[found[0]] = found[1]

        # The long rows first: they are few and their rivals fewer, so the first results come at once.
        run(
            "own directions", _Triangle.settle, triangle, range(0, len(mapped.order), ROWS),
            key=(mapped.norms, mapped.L, mapped.drift, asked), each=write, after=lambda: after(self.lead),
        )  # fmt: skip


class _Triangle:
    """The products V_i.V_j of rows by falling norm, a block of labels at a time."""

    def __init__(self, mapped: MappedRows, asked: np.ndarray, workers: BlasPool) -> None:
        self.V, self.order = mapped.V32, mapped.order
        self.norms, self.wanted = mapped.norms[mapped.order], asked[mapped.order]
        self.rank = mapped.rank
        self.tails = tail_lengths(self.V, workers)
        self.relative = (self.rank + 16) * UNIT32 * 1.05
        self.drift = mapped.drift

    def settle(self, first: int) -> tuple[Int[np.ndarray, " some"], Float[np.ndarray, " some"]]:
        """The labels of one block that are left after all windows of rivals, and by how much they have won."""
        last = min(len(self.order), first + ROWS)
        alive = np.flatnonzero(self.wanted[first:last]) + first
        if not len(alive):
            return alive, np.zeros(0)
        near = self._near(last)
        tops = self._beyond(alive, near)  # upper bounds of max_j V_i.V_j + what rounding may add
        mine = self.V[alive]
        for a, b, whole in self._windows(first, near):
            bound, lost = self._window(alive, mine, a, b, whole)
            np.maximum(tops, bound, out=tops)
            if lost.any():
                alive, mine, tops = alive[~lost], mine[~lost], tops[~lost]
            if not len(alive):
                return alive, np.zeros(0)
        norms = self.norms[alive]
        won = tops < norms * norms
        return self.order[alive], np.where(won, norms - tops / norms, 0.0)

    def _near(self, last: int) -> int:
        """Where the rivals end that are too near in norm for Cauchy-Schwarz."""
        least = self.norms[last - 1] * (1 - 4 * self.relative)
        return last + int(np.searchsorted(-self.norms[last:], -least))

    def _beyond(self, alive: np.ndarray, near: int) -> np.ndarray:
        """The bound for rivals from `near` on:  V_i.V_j <= |V_i| |V_near|."""
        if near == len(self.order):
            return np.zeros(len(alive))
        return self.norms[alive] * self.norms[near] * (1 + 1e-12) + self._slack(alive, near)

    def _slack(self, alive: np.ndarray, longest: int) -> np.ndarray:
        """What rounding and drift may add to V_i.V_j, for rivals no longer than `longest`."""
        own, rival = self.norms[alive], self.norms[longest]
        rounding = self.relative * own * (rival + own)  # of the product, and of |V_i|^2 beside it
        return rounding + 4 * self.drift * own + UNDERFLOW * self.rank * (1 + own) * (1 + rival)

    def _windows(self, first: int, near: int) -> list[tuple[int, int, bool]]:
        """Ranges of rivals: the block and its near ones with whole rows, the longer ones by their leading parts."""
        return [(first + a, first + b, True) for a, b in spans(near - first, RIVALS)] + [
            (a, b, False) for a, b in spans(first, RIVALS)
        ]

    def _window(
        self, alive: np.ndarray, mine: np.ndarray, a: int, b: int, whole: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Upper bounds of V_i.V_j over the rivals a..b, and which labels are not proven to be above them."""
        k = self.rank if whole else leading(self.norms[a] / self.norms[alive[-1]], self.rank)
        scratch = buffer("products", ROWS * max(ROWS, RIVALS))
        S = scratch[: len(alive) * (b - a)].reshape(len(alive), b - a)
        np.matmul(mine[:, :k], self.V[a:b, :k].T, out=S)
        peak = np.empty(len(alive), np.float32)
        if k < self.rank:
            row_max_with_tails(S, self.tails[k][alive], self.tails[k][a:b], peak)
        else:
            inside = (alive >= a) & (alive < b)
            S[np.flatnonzero(inside), alive[inside] - a] = LOWEST
            row_max(S, peak)
        slack, square = self._slack(alive, a), self.norms[alive] ** 2
        bound = peak * (1 + 8 * UNIT32 * np.sign(peak)) + slack
        lost = ~(bound < square)
        if k < self.rank and lost.any():
            again = np.flatnonzero(lost)
            bound[again] = (mine[again] @ self.V[a:b].T).max(axis=1) + slack[again]
            lost[again] = ~(bound[again] < square[again])
        return bound, lost


def leading(ratio: float, rank: int) -> int:
    """How many coordinates will usually do for rivals longer by `ratio`: ratio (5.5 sqrt(k)/d + 1 - k/d) < 1."""
    for k in _steps(rank):
        if ratio * (STEEPNESS * np.sqrt(k) / rank + 1 - k / rank) < 1:
            return k
    return rank


def _steps(rank: int) -> range:
    return range(min(64, rank), rank, max(16, rank // 24))


def tail_lengths(V: np.ndarray, workers: BlasPool) -> dict[int, np.ndarray]:
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

    workers.run(measure, spans(len(V), 2048))
    return out
