"""The strongest rivals of many directions: for each unit direction x the rows j with the largest x.v_j above a floor.

The products are float32. Rows that cannot reach the floor are not multiplied: by |x.v| <= |v| those of small norm,
and by  x.v <= (leading coordinates) + (tail of x)(tail of v)  those that the leading coordinates already settle. Where
bytes are multiplied faster, they tell which products are worth making (`core.byte_rows`); what is found is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gonio.core import byte_products
from gonio.core.blas_pool import BlasPool
from gonio.core.byte_rows import ByteRows, rounded
from gonio.core.float_units import UNIT32
from gonio.core.parallel import spans
from gonio.proofs.own_direction import leading, tail_lengths
from gonio.proofs.row_maxima import row_max_of_bytes, row_max_with_tails
from gonio.search.kernels import strongest, strongest_by_bytes
from gonio.search.whitening import WhitenedRows

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Int8

DEVIATIONS = 1.8  # a neighbour is a row whose score is so many typical scores
PIECES = 4  # whatever the number of threads: BLAS rounds by the shape of a product
DIRECTIONS, ROWS, LEADING_ROWS = 256, 4096, 2048  # of one product: at most so many


@dataclass(frozen=True, eq=False)
class Directions:
    """Unit directions in bytes, and their lengths beyond the k leading coordinates, in units of the scale."""

    numbers: Int8[np.ndarray, "directions fours"]
    scale: Float[np.ndarray, " directions"]
    rest: Float[np.ndarray, " directions"]
    tails: dict[int, np.ndarray]

    @classmethod
    def of(cls, X: np.ndarray, steps: Iterable[int]) -> Directions:
        """Directions in float32; tails for each of the steps."""
        numbers, scale, rest, _ = rounded(X)
        tails = {k: (np.linalg.norm(X[:, k:], axis=1) / scale * (1 + 3e-6)).astype(np.float32) for k in steps}
        return cls(numbers, scale, rest, tails)

    def slack(self, longest: float, most_rest: float) -> Float[np.ndarray, " directions"]:
        """How far scores with rows no longer than `longest` may be from those in bytes, rounding included."""
        return (self.rest * longest + (1 + self.rest) * most_rest) * (1 + 1e-5) + 1e-6 * longest


class RivalScan:
    """The rows of a space, and a few long ones among them that are asked first (none, if None)."""

    def __init__(
        self, space: WhitenedRows, workers: BlasPool, after: Callable[[], None], long_rows: np.ndarray | None
    ) -> None:
        self.space, self.workers, self.after = space, workers, after
        self.long_rows = long_rows
        self.long_vectors = None if long_rows is None else space.V[long_rows].astype(np.float32)

    @cached_property
    def tails(self) -> dict[int, np.ndarray]:
        return tail_lengths(self.space.V32, self.workers)

    def among_all(self, X32, floor, own, room: int, *, by_leading: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(rivals, count): rows above floor_i in direction i other than own_i, the strongest that fit in `room`.

        count_i is how many there are, or room + 1 where they did not all fit. `by_leading` multiplies whole rows only
        where the leading coordinates leave doubt.
        """
        space = self.space
        order = np.argsort(-floor, kind="stable")  # similar floors together, so that each piece can stop early
        rivals, count = np.empty((len(order), room), np.int64), np.empty(len(order), np.int64)
        rivals[order], count[order] = self._scan(
            space.V32, space.falling, X32[order], floor[order], space.place[own[order]], room, by_leading
        )
        return space.order[rivals], count

    def among_long(self, X32, floor, own, room: int, *, neighbours: bool) -> tuple[np.ndarray, np.ndarray]:
        """As `among_all`, but a direction that loses to some long row sees no other rows; its count is then room + 1.

        With `neighbours` the floor is lowered, so that long rows near a direction come along although it beats them.
        """
        assert self.long_rows is not None
        assert self.long_vectors is not None
        low = floor
        if neighbours:
            typical = np.sqrt(np.square(self.long_vectors).mean())  # of a score in a random direction
            low = np.minimum(floor, np.float32(DEVIATIONS * typical))
        at = np.minimum(np.searchsorted(self.long_rows, own), len(self.long_rows) - 1)
        own_place = np.where(self.long_rows[at] == own, at, -1)
        rivals, count = self._scan(self.long_vectors, None, X32, low, own_place, room)
        rivals = self.long_rows[rivals]
        unbeaten = np.flatnonzero(count == 0)
        rivals = np.where(np.arange(room) < count[:, None], rivals, rivals[:, :1])
        count[count > 0] = room + 1  # not all rows were seen, so a list that fits proves nothing
        if len(unbeaten):
            rivals[unbeaten], count[unbeaten] = self.among_all(X32[unbeaten], floor[unbeaten], own[unbeaten], room)
        return rivals, count

    def _scan(
        self, rows, falling, X32, floor, own, room: int, by_leading: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """The strongest rivals among `rows`; with `falling` norms (negated) only down to those that can matter."""
        m = len(X32)
        rivals, count = np.zeros((m, room), np.int64), np.zeros(m, np.int64)
        scores = np.empty((m, room), np.float32)
        tails = self.tails if by_leading else {}

        def scan_piece(s: tuple[int, int]) -> None:
            part = slice(*s)
            found = rivals[part], scores[part], count[part]
            n = len(rows)
            if falling is not None:  # |x| = 1: a rival of norm below the floor stays below it
                n = int(np.searchsorted(falling, -float(floor[part].min()) * (1 - 1e-5)))
            if falling is not None and self.space.bytes is not None:
                self._scan_by_bytes(self.space.bytes, rows[:n], tails, X32[part], floor[part], own[part], found)
            elif falling is not None and tails:
                self._scan_by_leading(rows[:n], falling, tails, X32[part], floor[part], own[part], found)
            else:
                self._scan_whole(rows[:n], X32[part], floor[part], own[part], found)

        piece = max(16, min(DIRECTIONS, -(-m // PIECES)))
        self.workers.run(scan_piece, spans(m, piece), self.after)
        return rivals, count

    def _scan_whole(self, rows, X, floor, own, found) -> None:
        scratch = self.workers.buffer("scores", DIRECTIONS * ROWS)
        own_a, own_b = np.ascontiguousarray(own.T)
        for start, stop in spans(len(rows), ROWS):
            S = scratch[: len(X) * (stop - start)].reshape(len(X), stop - start)
            np.matmul(X, rows[start:stop].T, out=S)
            strongest(S, own_a, own_b, floor, start, *found)

    def _scan_by_bytes(self, row_bytes: ByteRows, rows, tails, X, floor, own, found) -> None:
        own_a, own_b = np.ascontiguousarray(own.T)
        mine = Directions.of(X, tails)
        lowest = float(floor.min())
        block = LEADING_ROWS if tails else ROWS
        scratch = self.workers.buffer("bytes", byte_products.room(DIRECTIONS, block), kind=np.int32)
        for start, stop in spans(len(rows), block):
            longest, scale = -float(self.space.falling[start]), row_bytes.scale[start:stop].astype(np.float32)
            slack = mine.slack(longest, float(row_bytes.rest[start:stop].max()))
            k = leading(longest / lowest, X.shape[1]) if tails and lowest > 0 else X.shape[1]
            doubt = np.arange(len(X))
            if k < X.shape[1]:
                S = byte_products.products(mine.numbers, row_bytes.packed, start, stop, k, scratch)
                peak = np.empty(len(X), np.float32)
                row_max_of_bytes(S, scale, mine.tails[k], tails[k][start:stop], peak)
                doubt = np.flatnonzero(peak * mine.scale + slack > floor)
            if not len(doubt):
                continue
            numbers = mine.numbers if len(doubt) == len(X) else mine.numbers[doubt]
            S = byte_products.products(numbers, row_bytes.packed, start, stop, numbers.shape[1], scratch)
            some = [a[doubt] for a in found]
            strongest_by_bytes(
                S, scale, mine.scale[doubt].astype(np.float32), slack[doubt].astype(np.float32), X[doubt],
                rows[start:stop], own_a[doubt], own_b[doubt], floor[doubt], start, *some,
            )  # fmt: skip
            for a, values in zip(found, some, strict=True):
                a[doubt] = values

    def _scan_by_leading(self, rows, falling, tails, X, floor, own, found) -> None:
        m, rank = X.shape
        own_a, own_b = np.ascontiguousarray(own.T)
        rest = {k: np.linalg.norm(X[:, k:], axis=1).astype(np.float32) * np.float32(1 + 1e-6) for k in tails}
        lowest = float(floor.min())
        for start, stop in spans(len(rows), LEADING_ROWS):
            k = leading(-falling[start] / lowest, rank) if lowest > 0 else rank
            block, doubt = rows[start:stop], np.arange(m)
            if k < rank:
                doubt = self._in_doubt(block[:, :k], X[:, :k], tails[k][start:stop], rest[k], floor)
            if len(doubt):
                scratch = self.workers.buffer("whole", DIRECTIONS * LEADING_ROWS)
                S = scratch[: len(doubt) * len(block)].reshape(len(doubt), len(block))
                np.matmul(X[doubt], block.T, out=S)
                some = [a[doubt] for a in found]
                strongest(S, own_a[doubt], own_b[doubt], floor[doubt], start, *some)
                for a, values in zip(found, some, strict=True):
                    a[doubt] = values

    def _in_doubt(self, leading_rows, leading_x, row_tails, x_tails, floor) -> Int[np.ndarray, " some"]:
        """The directions for which (leading part) + (tail of x)(tail of v) reaches the floor at some row."""
        m, n = len(leading_x), len(leading_rows)
        S = self.workers.buffer("scores", DIRECTIONS * ROWS)[: m * n].reshape(m, n)
        np.matmul(leading_x, leading_rows.T, out=S)
        peak = np.empty(m, np.float32)
        row_max_with_tails(S, x_tails, row_tails, peak)
        return np.flatnonzero(peak * (1 + 8 * UNIT32 * np.sign(peak)) > floor)
