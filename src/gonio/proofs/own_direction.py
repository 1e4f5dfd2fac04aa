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

Where bytes are multiplied faster they have the first look, with x = scale p + rest (`core.byte_rows`):

    u_i.u_j <= scale_i scale_j (p_i.p_j) + rest_i |V_j| + (|V_i| + rest_i) rest_j + the rounding above

and whom that leaves in doubt, whole rows in float32 decide.

docs/proofs.md states it once more; tests/proofs/test_own_direction.py holds it against exact arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gonio.core import byte_products
from gonio.core.blas_pool import BlasPool, buffer
from gonio.core.float_units import UNIT32
from gonio.core.inputs import Problem
from gonio.core.parallel import spans
from gonio.core.tasks import run
from gonio.proofs.mapped_rows import MappedRows, map_rows
from gonio.proofs.row_maxima import FEWEST, LOWEST, row_max, row_max_of_bytes, row_max_with_tails

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

ROWS, RIVALS = 512, 2048
STEEPNESS = 5.5  # leading parts of unrelated rows have dot products below this many deviations
AT_FIRST = 7.0  # how many are reckoned with at first, as few rows of real heads are unrelated
STEEPER, FLATTER = 1.15, 0.98  # times this from window to window, where more than MANY rows were left in doubt or not
MANY = 0.1
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
        self.bytes = mapped.bytes
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
        steepness = AT_FIRST
        for a, b, whole in self._windows(first, near):
            ratio = self.norms[a] / self.norms[alive[-1]]
            k = self.rank if whole else leading(ratio, self.rank, steepness)
            bound, lost, doubt = self._window(alive, a, b, k)
            steepness *= STEEPER if doubt > MANY else FLATTER
            np.maximum(tops, bound, out=tops)
            if lost.any():
                alive, tops = alive[~lost], tops[~lost]
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

    def _window(self, alive: np.ndarray, a: int, b: int, k: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Upper bounds of V_i.V_j over the rivals a..b, which labels are not proven to be above them, and the share

        of labels that k leading coordinates left in doubt.
        """
        square = self.norms[alive] ** 2
        bound, doubt, first = np.full(len(alive), np.inf), np.arange(len(alive)), 0.0
        for look, depth in self._looks(k):  # each at what the cheaper ones before have left in doubt
            bound[doubt] = look(alive[doubt], a, b, depth)
            doubt = doubt[~(bound[doubt] < square[doubt])]
            first = len(doubt) / len(alive) if depth == k < self.rank else first
            if not len(doubt):
                break
        return bound, ~(bound < square), first

    def _looks(self, k: int) -> list[tuple[Callable[[np.ndarray, int, int, int], np.ndarray], int]]:
        """Ways to bound the products, and how many coordinates each looks at."""
        depths = [k, self.rank] if k < self.rank else [self.rank]
        if self.bytes is None:
            return [(self._by_floats, depth) for depth in depths]
        return [(self._by_bytes, depth) for depth in depths] + [(self._by_floats, self.rank)]

    def _by_floats(self, alive: np.ndarray, a: int, b: int, k: int) -> np.ndarray:
        """Upper bounds of V_i.V_j over the rivals a..b other than i, from their k leading coordinates in float32."""
        scratch = buffer("products", ROWS * max(ROWS, RIVALS))
        S = scratch[: len(alive) * (b - a)].reshape(len(alive), b - a)
        np.matmul(self.V[alive, :k], self.V[a:b, :k].T, out=S)
        peak = np.empty(len(alive), np.float32)
        if k < self.rank:
            row_max_with_tails(S, self.tails[k][alive], self.tails[k][a:b], peak)
        else:
            S[self._own(alive, a, b)] = LOWEST
            row_max(S, peak)
        return peak * (1 + 8 * UNIT32 * np.sign(peak)) + self._slack(alive, a)

    def _by_bytes(self, alive: np.ndarray, a: int, b: int, k: int) -> np.ndarray:
        """The same bounds from bytes; those of a row with itself are left out."""
        rows = self.bytes
        assert rows is not None
        scratch = buffer("bytes", byte_products.room(ROWS, RIVALS), kind=np.int32)
        depth = k if k < self.rank else rows.numbers.shape[1]
        S = byte_products.products(rows.numbers[alive], rows.packed, a, b, depth, scratch)
        S[self._own(alive, a, b)] = FEWEST
        peak, scale = np.empty(len(alive), np.float32), rows.scale[alive]
        of_rivals = np.zeros(b - a, np.float32) if k == self.rank else self.tails[k][a:b]
        mine = np.zeros(len(alive)) if k == self.rank else self.tails[k][alive] / scale * (1 + 1e-6)
        row_max_of_bytes(S, rows.scale[a:b].astype(np.float32), mine.astype(np.float32), of_rivals, peak)
        norms, rest = self.norms[alive], rows.rest[alive]
        left = rest * self.norms[a] + (norms + rest) * float(rows.rest[a:b].max())
        return peak * scale * (1 + 8 * UNIT32 * np.sign(peak)) + left * (1 + 1e-9) + self._slack(alive, a)

    def _own(self, alive: np.ndarray, a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
        """Where rows meet themselves among the rivals a..b."""
        inside = np.flatnonzero((alive >= a) & (alive < b))
        return inside, alive[inside] - a


def leading(ratio: float, rank: int, steepness: float = STEEPNESS) -> int:
    """How many coordinates will usually do for rivals longer by `ratio`: ratio (steepness sqrt(k)/d + 1 - k/d) < 1."""
    for k in _steps(rank):
        if ratio * (steepness * np.sqrt(k) / rank + 1 - k / rank) < 1:
            return k
    return rank


def _steps(rank: int) -> range:
    return range(min(64, rank), rank, max(16, rank // 96 * 4))  # multiples of four, as bytes want them


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
