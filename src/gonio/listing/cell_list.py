"""All cells of an arrangement with + on row 0: counted, listed in blocks of packed bits, sampled; proven signs only.

Three ways, one order each. General position: `cells` (proven by `chirotope.in_general_position`), whose count is
Cover's. Anything else: `flats`, exactly, with exact arithmetic for the pieces that floats cannot settle. With a
tolerance: `flats` on rows that are taken as they are up to that tolerance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.listing import degenerate_cells, exact_cells
from gonio.listing.arrangement import Arrangement
from gonio.listing.generic_cells import list_cells
from gonio.listing.kernel_options import UNIT_ROUNDOFF as UNIT
from gonio.listing.packed_signs import pack, unpack
from gonio.listing.oriented_matroid import in_general_position
from gonio.listing.counts import count_label_sets
from gonio.listing.pieces import SIZE, Piece, in_order, subset_pieces
from gonio.listing.modular import rows_modulo_primes

if TYPE_CHECKING:
    from jaxtyping import Integer

CHECKED = 20_000_000_000  # minors that are looked at to prove general position: some minutes
SMALL = 200_000  # cells below which threads cost more than they bring
TRIES = 4
DOUBTS = 4096

Cursor = tuple[int, int]  # piece, block within it


class Listing:
    """The cells of an arrangement with + on row 0, as bits of its planes (bit i of the words: + on plane i)."""

    def __init__(self, arrangement: Arrangement, *, tol: float | None = None, general: bool | None = None) -> None:
        self.arrangement = arrangement
        self.tol = tol
        self._general = general if tol is None else False
        self.words = (arrangement.planes + 63) // 64
        self._grounds: dict[int, tuple[np.ndarray, ...]] = {}

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
        return self._general is not None or comb(a.planes, a.rank) <= CHECKED

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
        return sum(self.piece_counts)

    @cached_property
    def piece_counts(self) -> tuple[int, ...]:
        """The cells of each piece of the degenerate walk, counted without listing them."""
        return tuple(int(x) for x in in_order(self._count_piece, iter(range(self.arrangement.planes))))

    # ----- blocks

    def blocks(self, after: Cursor = (0, 0)) -> Iterator[tuple[Integer[np.ndarray, "cells words"], Cursor]]:
        """Blocks of packed cells, each with the cursor that goes on after it."""
        a = self.arrangement
        if a.rank == 0:
            return
        if a.rank == 1:
            if after == (0, 0):
                yield pack(np.ones((1, a.planes), bool)), (1, 0)
            return
        few = self.most < SMALL
        threads = 1 if few else None
        if self.general:
            run, pieces = self._general_piece, self._general_pieces()
        else:
            run, pieces = self._flat_piece, iter((None,)) if few else iter(range(a.planes))
        left = (x for x in enumerate(pieces) if x[0] >= after[0])

        def numbered(x: tuple[int, Any]) -> Iterator[tuple[np.ndarray, Cursor]]:
            for k, block in enumerate(run(x[1])):
                if (x[0], k) >= after:
                    yield block, (x[0], k + 1)

        yield from in_order(numbered, left, threads)

    def _general_pieces(self) -> Iterator[Piece]:
        return subset_pieces(self.arrangement.planes, self.arrangement.rank)

    @cached_property
    def _turned(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows in coordinates turned at random, their rounding bounds, and the turn."""
        A = self.arrangement.A
        r = A.shape[1]
        turn = np.linalg.qr(np.random.default_rng([1729, r]).normal(size=(r, r)))[0]
        return A @ turn, (r + 4) * UNIT * (np.abs(A) @ np.abs(turn)).max(axis=1), turn

    def _general_piece(self, piece: Piece) -> Iterator[np.ndarray]:
        yield self._cells(piece.stage, piece.prefix, piece.high, piece.low, piece.count)

    def _cells(self, stage: int, prefix: tuple[int, ...], high: int, low: int, count: int) -> np.ndarray:
        A, E0, _ = self._turned
        r = A.shape[1]
        out = np.empty((count, self.words), np.uint64)
        unsure, at = np.zeros((DOUBTS, r - stage), np.int64), np.zeros(DOUBTS, np.int64)
        rows = np.ascontiguousarray(A[:, stage:])
        found, doubts = list_cells(
            rows, E0, np.array(prefix, np.int64), high, low, stage == 0, out, unsure, at
        )  # fmt: skip
        assert found == count
        if doubts > DOUBTS:
            raise GonioError(
                "patterns: rounding leaves too many signs in doubt for the quick walk; pass general=False to "
                "walk exactly."
            )
        for k in range(doubts):
            S = [int(j) for j in unsure[k, : r - stage - 1] if j >= 0]
            out[at[k]] = pack(np.array([self._exact_cell(stage, S)]) > 0)[0]
        return out

    def _exact_cell(self, stage: int, S: list[int]) -> list[int]:
        """The signs of the cell of S, in exact arithmetic, by the functionals of the turned coordinates."""
        from flint import fmpq, fmpq_mat

        a, whole = self.arrangement, self._turned[2]
        r = a.rank
        turn = [[fmpq(*float(x).as_integer_ratio()) for x in row[stage:]] for row in whole]
        rows = fmpq_mat(a.planes, r, [fmpq(x) for row in a.whole for x in row]) * fmpq_mat(
            r, r - stage, [x for row in turn for x in row]
        )
        unit = [[fmpq(int(i == k)) for i in range(r - stage)] for k in range(r - stage)]
        table = [[rows[i, c] for c in range(r - stage)] for i in range(a.planes)]
        return exact_cells.cell(table, unit, S, {j: (t, 1) for t, j in enumerate(S)})[0]

    # ----- any degeneracy

    def _walk(self, first: int | None, attempt: int) -> degenerate_cells.DegenerateCells:
        """The walk over the sets S whose largest row is `first` (0: the empty one; None: all)."""
        A, E0, rest, primes, C = self._ground(attempt)
        return degenerate_cells.DegenerateCells(A, E0, rest, primes, C, -1 if first is None else first, self.tol or 0.0)

    def _ground(self, attempt: int) -> tuple[np.ndarray, ...]:
        """Rows, their rounding bounds, their residues with the primes, and functionals: other ones for each attempt."""
        a = self.arrangement
        if attempt not in self._grounds:
            r = a.rank
            C = np.random.default_rng([1729, r, attempt]).normal(size=(r, r))
            if self.tol is not None:
                ground = a.A, np.zeros(a.planes), np.zeros((0, r, a.planes)), np.zeros(0), C
            else:
                ground = a.A, np.abs(a.A).max(axis=1) * UNIT, *rows_modulo_primes(a, attempt), C
            self._grounds[attempt] = ground
        return self._grounds[attempt]

    @cached_property
    def gap(self) -> tuple[float, float]:
        """With a tolerance: the largest value taken for zero and the smallest taken as it is, over the whole walk."""
        low, high = 0.0, np.inf
        for j in range(self.arrangement.planes):
            walk = self._walk(j, 0)
            walk.count()
            low, high = max(low, walk.gap[0]), min(high, walk.gap[1])
        return low, high

    def _count_piece(self, first: int) -> Iterator[int]:
        for attempt in range(TRIES):
            found, code = self._walk(first, attempt).count()
            if code == degenerate_cells.DONE:
                yield found
                return
        yield sum(1 for _ in self._exact_piece(first))

    def _flat_piece(self, first: int | None) -> Iterator[np.ndarray]:
        # A walk in doubt begins anew with other functionals and primes: the cells of a piece come in another order
        # then, so nothing is given out before the piece is known to be sound, unless it is too large to be held.
        for attempt in range(TRIES):
            walk, held = self._walk(first, attempt), []
            while True:
                out = np.empty((SIZE + self.arrangement.planes + 1, self.words), np.uint64)
                found, code = walk.block(out)
                if code in (degenerate_cells.DOUBT, degenerate_cells.UNLUCKY):
                    break
                held.append(out[:found])
                if code == degenerate_cells.DONE:
                    yield from held
                    return
                if len(held) > 32:
                    sound = self._sound(first, attempt)
                    if not sound:
                        break
                    yield from held
                    yield from self._rest(walk)
                    return
        if self.tol is not None:
            raise GonioError(f"patterns: at tolerance {self.tol:g} signs stay in doubt; choose another tolerance.")
        signs = list(self._exact_piece(first))
        if signs:
            yield pack(np.array(signs) > 0)

    def _sound(self, first: int | None, attempt: int) -> bool:
        walk = self._walk(first, attempt)
        out = np.empty((SIZE + self.arrangement.planes + 1, self.words), np.uint64)
        while True:
            code = walk.block(out)[1]
            if code != degenerate_cells.FULL:
                return code == degenerate_cells.DONE

    def _rest(self, walk: degenerate_cells.DegenerateCells) -> Iterator[np.ndarray]:
        code = degenerate_cells.FULL
        while code == degenerate_cells.FULL:
            out = np.empty((SIZE + self.arrangement.planes + 1, self.words), np.uint64)
            found, code = walk.block(out)
            yield out[:found]

    def _exact_piece(self, first: int | None) -> Iterator[list[int]]:
        for attempt in range(16):
            try:
                yield from [
                    s
                    for s, _ in exact_cells.cells(
                        self.arrangement.whole, exact_cells.functionals(self.arrangement.rank, attempt), first=first
                    )
                ]
            except exact_cells.UnluckyError:
                continue
            return
        raise GonioError("patterns: no generic functionals were found in 16 draws.")  # pragma: no cover

    # ----- exactly uniform draws

    def draw(self, rng: random.Random, count: int) -> Integer[np.ndarray, "cells words"]:
        """Cells drawn independently, each with the same chance."""
        a = self.arrangement
        out = np.empty((count, self.words), np.uint64)
        if a.rank == 1:
            out[:] = pack(np.ones((1, a.planes), bool))
        elif self.general:
            n, r = a.planes, a.rank
            sizes = [comb(n - 1, k) for k in range(r)]
            for i in range(count):
                at = rng.randrange(sum(sizes))
                k = 0
                while at >= sizes[k]:
                    at, k = at - sizes[k], k + 1
                S = tuple(sorted(rng.sample(range(1, n), k), reverse=True))
                out[i] = self._one(S)
        else:
            wanted = sorted((rng.randrange(self.count), i) for i in range(count))
            starts = np.concatenate([[0], np.cumsum(self.piece_counts)])
            for first in range(a.planes):
                here = [(at - int(starts[first]), i) for at, i in wanted if starts[first] <= at < starts[first + 1]]
                if not here:
                    continue
                begin, places = 0, iter(here)
                at, i = next(places)
                for block in self._flat_piece(first):
                    while at is not None and at < begin + len(block):
                        out[i] = block[at - begin]
                        at, i = next(places, (None, None))  # type: ignore[assignment]
                    begin += len(block)
                    if at is None:
                        break
        return out

    def _one(self, S: tuple[int, ...]) -> np.ndarray:
        """The cell of one set S, in general position."""
        r, k = self.arrangement.rank, len(S)
        if k == r - 1:
            return self._cells(0, S, 1, 1, 2)[1]
        stage = r - 2 - k
        if stage:
            return self._cells(stage, S, 1, 1, 1)[0]
        A, E0, _ = self._turned
        out, unsure, at = np.empty((1, self.words), np.uint64), np.zeros((1, r), np.int64), np.zeros(1, np.int64)
        _, doubts = list_cells(A, E0, np.array(S, np.int64), 1, 1, False, out, unsure, at)
        return pack(np.array([self._exact_cell(0, list(S))]) > 0)[0] if doubts else out[0]
