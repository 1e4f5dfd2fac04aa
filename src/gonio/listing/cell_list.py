"""All cells of an arrangement with + on row 0: counted, listed in blocks of packed bits, drawn at random.

Three ways, each with a fixed order. In general position (proven by `oriented_matroid.in_general_position`):
`generic_cells`, whose count is Cover's. Anything else: `degenerate_cells`, with `exact_cells` for the pieces that
floats cannot settle. With a tolerance: `degenerate_cells` on rows that vanish up to that tolerance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.tasks import run
from gonio.listing import exact_cells
from gonio.listing.arrangement import Arrangement
from gonio.listing.counts import count_label_sets
from gonio.listing.degenerate_cells import ALL_SETS, DONE, FULL, DegenerateCells
from gonio.listing.generic_cells import list_cells
from gonio.listing.kernel_options import UNIT_ROUNDOFF
from gonio.listing.modular import rows_modulo_primes
from gonio.listing.oriented_matroid import in_general_position
from gonio.listing.packed_signs import pack
from gonio.listing.pieces import CELLS_PER_PIECE, Piece, in_order, subset_pieces

if TYPE_CHECKING:
    from jaxtyping import Integer

MOST_CHECKED = 20_000_000_000  # minors that are looked at to prove general position: some minutes
WORTH_THREADS = 200_000  # cells below which threads cost more than they bring
ATTEMPTS = 4  # draws of functionals and primes for the degenerate walk before exact arithmetic takes over
EXACT_ATTEMPTS = 16  # draws of functionals in exact arithmetic
ROOM_FOR_DOUBTS = 4096  # cells of a piece whose signs are asked of exact arithmetic; more make it walk twice
MOST_HELD = 32  # blocks that are held back until their piece is known to be sound

Cursor = tuple[int, int]  # piece, block within it


class CellList:
    """The cells of an arrangement with + on row 0, as bits of its planes (see `packed_signs`)."""

    def __init__(self, arrangement: Arrangement, *, tol: float | None = None, general: bool | None = None) -> None:
        self.arrangement = arrangement
        self.tol = tol
        self._general = general if tol is None else False
        self.words = (arrangement.planes + 63) // 64
        self._walk_inputs: dict[int, tuple[np.ndarray, ...]] = {}

    @cached_property
    def general(self) -> bool:
        """Whether every r planes are independent."""
        if self._general is not None:
            return self._general
        return in_general_position(self.arrangement)

    @property
    def checkable(self) -> bool:
        """Whether general position can be proven in bearable time."""
        a = self.arrangement
        return self._general is not None or comb(a.planes, a.rank) <= MOST_CHECKED

    @property
    def most(self) -> int:
        """Cover's count: as many cells as the arrangement can have at most (with + on row 0)."""
        a = self.arrangement
        return count_label_sets(a.planes, a.rank) // 2 if a.rank else 0

    @cached_property
    def count(self) -> int:
        """How many cells there are with + on row 0."""
        a = self.arrangement
        if a.rank <= 1 or self.general:
            return self.most
        return next(self._count_piece(ALL_SETS)) if self.most < WORTH_THREADS else sum(self.piece_counts)

    @cached_property
    def piece_counts(self) -> tuple[int, ...]:
        """The cells of each piece of the degenerate walk, counted without listing them."""
        a = self.arrangement
        return tuple(run("cells", _cells_of_piece, self, range(a.planes), key=(a.whole, self.tol)))

    def blocks(self, after: Cursor = (0, 0)) -> Iterator[tuple[Integer[np.ndarray, "cells words"], Cursor]]:
        """Blocks of packed cells, each with the cursor that goes on after it."""
        a = self.arrangement
        if a.rank == 0:
            return
        if a.rank == 1:
            if after == (0, 0):
                yield pack(np.ones((1, a.planes), bool)), (1, 0)
            return
        few = self.most < WORTH_THREADS
        threads = 1 if few else None
        if self.general:
            walk, pieces = self._generic_piece, self._generic_pieces()
        else:
            walk, pieces = self._degenerate_piece, iter((ALL_SETS,)) if few else iter(range(a.planes))
        left = (x for x in enumerate(pieces) if x[0] >= after[0])

        def numbered(x: tuple[int, Any]) -> Iterator[tuple[np.ndarray, Cursor]]:
            for k, block in enumerate(walk(x[1])):
                if (x[0], k) >= after:
                    yield block, (x[0], k + 1)

        yield from in_order(numbered, left, threads)

    # ----- general position

    def _generic_pieces(self) -> Iterator[Piece]:
        return subset_pieces(self.arrangement.planes, self.arrangement.rank)

    @cached_property
    def _rotated(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows in coordinates rotated at random, their rounding bounds, and the rotation."""
        A = self.arrangement.A
        r = A.shape[1]
        rotation = np.linalg.qr(np.random.default_rng([1729, r]).normal(size=(r, r)))[0]
        return A @ rotation, (r + 4) * UNIT_ROUNDOFF * (np.abs(A) @ np.abs(rotation)).max(axis=1), rotation

    def _generic_piece(self, piece: Piece) -> Iterator[np.ndarray]:
        yield self._cells(piece, piece.stage == 0)

    def _cells(self, piece: Piece, with_leaves: bool) -> np.ndarray:
        """The packed cells of a piece; those in doubt by exact arithmetic."""
        A, bounds, _ = self._rotated
        rows = np.ascontiguousarray(A[:, piece.stage :])
        out = np.empty((piece.count, self.words), np.uint64)
        prefix = np.array(piece.prefix, np.int64)
        room = ROOM_FOR_DOUBTS
        while True:
            unsure, at = np.zeros((room, rows.shape[1] - 1), np.int64), np.zeros(room, np.int64)
            found, doubts = list_cells(rows, bounds, prefix, piece.high, piece.low, with_leaves, out, unsure, at)
            if doubts <= room:
                break
            room = doubts
        assert found == piece.count
        for k in range(doubts):
            S = [int(j) for j in unsure[k] if j >= 0]
            out[at[k]] = pack(np.array([self._exact_cell(piece.stage, S)]) > 0)[0]
        return out

    def _exact_cell(self, stage: int, S: list[int]) -> list[int]:
        """The signs of the cell of S, in exact arithmetic, by the functionals of the rotated coordinates."""
        from flint import fmpq, fmpq_mat

        a, rotation = self.arrangement, self._rotated[2]
        r = a.rank
        kept = [[fmpq(*float(x).as_integer_ratio()) for x in row[stage:]] for row in rotation]
        rows = fmpq_mat(a.planes, r, [fmpq(x) for row in a.whole for x in row]) * fmpq_mat(
            r, r - stage, [x for row in kept for x in row]
        )
        unit = [[fmpq(int(i == k)) for i in range(r - stage)] for k in range(r - stage)]
        table = [[rows[i, c] for c in range(r - stage)] for i in range(a.planes)]
        return exact_cells.cell_of_set(table, unit, S, {j: (t, 1) for t, j in enumerate(S)})[0]

    # ----- any degeneracy; a piece is the sets S with one largest row (0: the empty S), or all of them

    def _walk(self, first: int, attempt: int) -> DegenerateCells:
        if attempt not in self._walk_inputs:
            a = self.arrangement
            r = a.rank
            functionals = np.random.default_rng([1729, r, attempt]).normal(size=(r, r))
            if self.tol is not None:
                inputs = a.A, np.zeros(a.planes), np.zeros((0, r, a.planes)), np.zeros(0), functionals
            else:
                bounds = np.abs(a.A).max(axis=1) * UNIT_ROUNDOFF
                inputs = a.A, bounds, *rows_modulo_primes(a, attempt), functionals
            self._walk_inputs[attempt] = inputs
        return DegenerateCells(*self._walk_inputs[attempt], first=first, tol=self.tol or 0.0)

    @cached_property
    def gap(self) -> tuple[float, float]:
        """With a tolerance: the largest value taken for zero and the smallest taken as it is, over the whole walk."""
        walk = self._walk(ALL_SETS, 0)
        walk.count()
        return walk.gap

    def _count_piece(self, first: int) -> Iterator[int]:
        for attempt in range(ATTEMPTS):
            found, status = self._walk(first, attempt).count()
            if status == DONE:
                yield found
                return
        yield len(self._exact_piece(first))

    def _degenerate_piece(self, first: int) -> Iterator[np.ndarray]:
        """The blocks of a piece. A walk that ends in doubt begins anew with other functionals and primes.

        Its cells then come in another order, so nothing is given out before the piece is known to be sound; a piece too
        large to be held is walked through once before.
        """
        for attempt in range(ATTEMPTS):
            blocks, held = self._walk_blocks(first, attempt), []
            for block, status in blocks:
                if status not in (DONE, FULL):
                    break
                held.append(block)
                if status == DONE:
                    yield from held
                    return
                if len(held) > MOST_HELD:
                    if not self._is_sound(first, attempt):
                        break
                    yield from held
                    yield from (block for block, _ in blocks)
                    return
        if self.tol is not None:
            raise GonioError(f"patterns: at tolerance {self.tol:g} signs stay in doubt; choose another tolerance.")
        signs = self._exact_piece(first)
        if signs:
            yield pack(np.array(signs) > 0)

    def _walk_blocks(self, first: int, attempt: int) -> Iterator[tuple[np.ndarray, int]]:
        """The blocks of one walk, each with how it ended."""
        walk, status = self._walk(first, attempt), FULL
        while status == FULL:
            out = np.empty((CELLS_PER_PIECE + self.arrangement.planes + 1, self.words), np.uint64)
            found, status = walk.block(out)
            yield out[:found], status

    def _is_sound(self, first: int, attempt: int) -> bool:
        return all(status in (DONE, FULL) for _, status in self._walk_blocks(first, attempt))

    def _exact_piece(self, first: int) -> list[list[int]]:
        a = self.arrangement
        for attempt in range(EXACT_ATTEMPTS):
            functionals = exact_cells.random_functionals(a.rank, attempt)
            try:
                return [signs for signs, _ in exact_cells.cells(a.whole, functionals, first=first)]
            except exact_cells.NotGenericError:
                continue
        raise GonioError(f"patterns: no generic functionals in {EXACT_ATTEMPTS} draws.")  # pragma: no cover

    # ----- exactly uniform draws

    def draw(self, rng: random.Random, count: int) -> Integer[np.ndarray, "cells words"]:
        """Cells drawn independently, each with the same chance."""
        a = self.arrangement
        if a.rank == 1:
            return np.repeat(pack(np.ones((1, a.planes), bool)), count, axis=0)
        out = np.empty((count, self.words), np.uint64)
        if self.general:
            for i in range(count):
                out[i] = self._generic_cell(self._draw_set(rng))
        else:
            self._pick(sorted((rng.randrange(self.count), i) for i in range(count)), out)
        return out

    def _draw_set(self, rng: random.Random) -> tuple[int, ...]:
        """A set of fewer than r rows among 1, .., n-1, falling, each with the same chance."""
        n, r = self.arrangement.planes, self.arrangement.rank
        sizes = [comb(n - 1, k) for k in range(r)]
        at, k = rng.randrange(sum(sizes)), 0
        while at >= sizes[k]:
            at, k = at - sizes[k], k + 1
        return tuple(sorted(rng.sample(range(1, n), k), reverse=True))

    def _generic_cell(self, S: tuple[int, ...]) -> np.ndarray:
        """The cell of one set S, in general position."""
        if len(S) == self.arrangement.rank - 1:  # the walk lists the cell of all but the last row before it
            return self._cells(Piece(0, S, 1, 1, 2), True)[1]
        return self._cells(Piece(self.arrangement.rank - 2 - len(S), S, 1, 1, 1), False)[0]

    def _pick(self, wanted: list[tuple[int, int]], out: np.ndarray) -> None:
        """out[i] = the cell at place `at` of the degenerate listing, for each (at, i), in rising order."""
        begin, places = 0, iter(wanted)
        at, i = next(places, (None, None))
        for first, count in enumerate(self.piece_counts):
            end = begin + count
            for block in self._degenerate_piece(first) if at is not None and at < end else ():
                while at is not None and at < begin + len(block):
                    out[i] = block[at - begin]
                    at, i = next(places, (None, None))
                begin += len(block)
                if at is None:
                    return
            begin = end


def _cells_of_piece(cells: CellList, first: int) -> int:
    """How many cells a piece of the degenerate walk has."""
    return int(next(cells._count_piece(first)))
