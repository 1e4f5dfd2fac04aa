"""Cells of any central arrangement, however degenerate, each listed once, without search (numba).

The cells of the sets S of `degenerate_walk`, by the bijection of `generic_walk`. Rows outside the closure of S take
their sign at the point u of S; those in it take their sign from the row of S that made them vanish. Where S, a_0 and a
row vanish together, the row is a multiple of a_0 on the subspace of S and takes the sign of that multiple.

Signs come from the float rows and their running bound; the walk stops where one is in doubt.
"""

from __future__ import annotations

import numpy as np

from gonio.core.compiled import njit
from gonio.listing.degenerate_walk import DONE, DOUBT, FULL, UNLUCKY, ClosureWalk, next_set, take_for_zero
from gonio.listing.elimination import null_vector, solve
from gonio.listing.generic_walk import ORIGIN, bound_at, largest_of_plane, leaf_coordinates, new_levels
from gonio.listing.kernel_options import DOUBTFUL, INNER, OPTIONS, UNIT_ROUNDOFF
from gonio.listing.modular import parallel, vanishes
from gonio.listing.packed_signs import NO_BITS, ONE, row_bits, signs_at

__all__ = ["DONE", "DOUBT", "FULL", "UNLUCKY", "DegenerateCells"]
ALL_SETS = -1


class DegenerateCells:
    """The cells with + on row 0, block by block; the walk is kept from one block to the next.

    rows, bounds: the float rows and their rounding bounds; residues, primes: the same modulo primes; functionals: c_1,
    .., c_r, generic; first: only sets S with this largest row (0: the empty S; ALL_SETS); tol: instead of primes.
    """

    def __init__(self, rows, bounds, residues, primes, functionals, first: int = ALL_SETS, tol: float = 0.0) -> None:
        n, rank = rows.shape
        words = (n + 63) // 64
        levels = new_levels(rank, n, len(functionals), 0)
        levels.rows[0, :, :n] = rows.T
        levels.rows[0, :, n : n + len(functionals)] = functionals.T
        levels.bound[0, :n] = bounds
        by_level = np.zeros((rank, len(primes), rank, n))
        by_level[0] = residues
        closure, tried, along, against = (np.zeros((rank, words), np.uint64) for _ in range(4))
        next_row, end = np.ones(rank, np.int64), np.full(rank, n)
        self._walk = ClosureWalk(
            levels, by_level, np.asarray(primes, np.float64), row_bits(n, levels.rows.shape[2]),
            closure, tried, along, against, next_row, end,
            tol, np.zeros(1), np.full(1, np.inf), np.zeros(words, np.uint64), np.zeros(words, np.uint64),
            np.zeros((rank + 1, rank + 2)), np.zeros(rank + 1, np.int64), np.zeros(rank + 1),
        )  # fmt: skip
        self._first = first
        self._level = 0

    def block(self, out: np.ndarray) -> tuple[int, int]:
        """Write packed cells until `out` is full or the walk ends: (cells, DONE, FULL, DOUBT or UNLUCKY)."""
        found, status, self._level = _list_block(self._walk, self._level, self._first, True, out)
        return found, status

    def count(self) -> tuple[int, int]:
        """Go through the rest of the walk without writing: (cells, DONE, DOUBT or UNLUCKY)."""
        found, status, self._level = _list_block(self._walk, self._level, self._first, False, _NOWHERE)
        return found, status

    @property
    def gap(self) -> tuple[float, float]:
        """With a tolerance: the largest value taken for zero and the smallest taken as it is, so far."""
        return float(self._walk.largest_zero[0]), float(self._walk.smallest_kept[0])


_NOWHERE = np.zeros((0, 0), np.uint64)


@njit(**OPTIONS)
def _list_block(walk, t, first, store, out):
    """The cells from the set of level t on, that set included: (cells, how it ended, the level to go on from)."""
    n, rank = walk.residues.shape[3], len(walk.levels.rows)
    found = 0
    while t >= 0:
        if store and found + n + 1 > len(out):
            return found, FULL, t
        if t > 0 or first <= 0:
            if store and _ray_cell(walk, t, out[found]):
                return found, DOUBT, t
            found += 1
        if t == rank - 2 and (t > 0 or first != 0):
            only = first if t == 0 and first > 0 else 0
            found, status = _leaf_cells(walk, t, only, store, out, found)
            if status != DONE:
                return found, status, t
        t, status = next_set(walk, t, first)
        if status != DONE:
            return found, status, t
    return found, DONE, -1


@njit(**INNER)
def _ray_cell(walk, t, cell):
    """The cell of S itself, |S| = t < r-1: far out where S, a_0, c_1, .. vanish. True where a sign is in doubt."""
    doubt = _ray_direction(walk, t)
    doubt |= _signs_in_direction(walk, t, cell)
    if t > 0:
        doubt |= _signs_of_closure(walk, t, cell)
    return doubt


@njit(**INNER)
def _place(walk, m):
    """Where the rows hold a_0 (m = 0) and c_m."""
    return 0 if m == 0 else walk.levels.functional + m - 1


@njit(**INNER)
def _ray_direction(walk, t):
    """walk.direction: where a_0 = c_1 = .. = c_{D-2} = 0 > c_{D-1}, D = r - t. True where its sign is in doubt."""
    rows, direction = walk.levels.rows[t], walk.direction
    width = len(rows) - t
    for m in range(width - 1):
        i, largest = _place(walk, m), 0.0
        for c in range(width):
            largest = max(largest, abs(rows[c, i]))
        for c in range(width):
            walk.system[m, c] = rows[c, i] / largest
    null_vector(walk.system, width - 1, width, direction, walk.order)
    last, value, terms = _place(walk, width - 1), 0.0, 0.0
    for c in range(width):
        value += rows[c, last] * direction[c]
        terms += abs(rows[c, last] * direction[c])
    for c in range(width):
        direction[c] = -direction[c] if value > 0 else direction[c]
    return abs(value) <= DOUBTFUL * terms


@njit(**INNER)
def _signs_in_direction(walk, t, cell):
    """The signs of the rows outside the closure of S in walk.direction. True where one is in doubt."""
    rows, bound, direction = walk.levels.rows[t], walk.levels.bound[t], walk.direction
    width, length, column = len(rows) - t, 0.0, 0
    for c in range(width):
        length += abs(direction[c])
        column = c if abs(rows[c, 0]) > abs(rows[column, 0]) else column
    for w in range(len(cell)):
        cell[w] = NO_BITS
    cell[0] = ONE
    doubt = False
    for i in range(1, walk.residues.shape[3]):
        if walk.closure[t, i >> 6] & walk.bits[i]:
            continue
        value, terms = 0.0, 0.0
        for c in range(width):
            value += rows[c, i] * direction[c]
            terms += abs(rows[c, i] * direction[c])
        if walk.tol > 0:
            multiple = rows[column, i] / rows[column, 0]
            value = multiple if take_for_zero(walk, _off_row_0(rows, width, i, multiple)) else value
        elif abs(value) <= bound[i] * length + (width + 2) * UNIT_ROUNDOFF * terms:
            doubt |= not parallel(walk.residues, walk.primes, t, width, i, 0) or abs(rows[column, i]) <= bound[i]
            value = rows[column, i] * rows[column, 0]
        if value > 0:
            cell[i >> 6] |= walk.bits[i]
    return doubt


@njit(**INNER)
def _off_row_0(rows, width, i, multiple):
    """The largest entry of row i less a multiple of row 0."""
    off = 0.0
    for c in range(width):
        off = max(off, abs(rows[c, i] - multiple * rows[c, 0]))
    return off


@njit(**INNER)
def _signs_of_closure(walk, t, cell):
    """The signs of the closure of S: those of c_D's coordinates along S, beside a_0, c_1, .., c_{D-1}, D = r - t."""
    levels, solution = walk.levels, walk.direction
    width = len(levels.rows) - t
    objective = _place(walk, width)
    for c in range(width):
        for m in range(width + 1):
            walk.system[c, m] = levels.rows[t, c, _place(walk, m)]
    solve(walk.system, width, solution)
    doubt = False
    for k in range(t - 1, -1, -1):
        row = levels.rows[k, levels.column[k]]
        value, terms = row[objective], abs(row[objective])
        for m in range(width):
            x = solution[m] * row[_place(walk, m)]
            value -= x
            terms += abs(x)
        for later in range(k + 1, t):
            value -= levels.along[later, 0] * levels.edges[k, later]
            terms += levels.terms[later, 0] * abs(levels.edges[k, later])
        doubt |= abs(value) <= DOUBTFUL * terms
        levels.along[k, 0] = value * levels.inverse[k]
        levels.terms[k, 0] = terms * abs(levels.inverse[k])
        for w in range(len(cell)):
            cell[w] |= walk.along[k, w] if levels.along[k, 0] > 0 else walk.against[k, w]
    return doubt


@njit(**INNER)
def _leaf_cells(walk, t, only, store, out, found):
    """The cells of S + {j}, |S| = t = r-2, for rising j: (cells so far, DONE or DOUBT).

    Each at the point where S and row j vanish and a_0 > 0. only: this j alone, unless 0.
    """
    levels, words = walk.levels, len(walk.zero)
    if store:
        leaf_coordinates(levels, t, ORIGIN, 0, walk.end[t])
    for w in range(words):
        walk.tried[t, w] = walk.closure[t, w]
    size, error = largest_of_plane(levels, t, walk.residues.shape[3])
    for j in range(1, walk.end[t]):
        if walk.tried[t, j >> 6] & walk.bits[j]:
            continue
        if not _signs_at_leaf(walk, t, j, size, error):
            return found, DOUBT
        for w in range(words):
            walk.tried[t, w] |= walk.zero[w]
        if walk.zero[0] & ONE or (only and j != only):  # row 0 vanishes here: S + {j} does not count
            continue
        if store:
            if not _signs_of_leaf_closure(walk, t, j):
                return found, DOUBT
            for w in range(words):
                out[found, w] = walk.positive[w]
        found += 1
    return found, DONE


@njit(**INNER)
def _signs_at_leaf(walk, t, j, size, error):
    """walk.positive: the rows that are + where S and row j vanish; walk.zero: those that vanish there and not on S.

    False where it is in doubt whether a row vanishes.
    """
    levels, bits = walk.levels, walk.bits
    rows0, rows1 = levels.rows[t, 0], levels.rows[t, 1]
    x0, x1 = rows1[j], -rows0[j]
    if rows0[0] * x0 + rows1[0] * x1 < 0:
        x0, x1 = -x0, -x1
    length = abs(x0) + abs(x1)
    bound = walk.tol * length if walk.tol > 0 else bound_at(size, error, length, levels.bound[t, j])
    for w in range(len(walk.zero)):
        begin, end = 64 * w, min(len(bits), 64 * w + 64)
        positive, zero = signs_at(x0, x1, rows0[begin:end], rows1[begin:end], bound, bits[begin:end])
        zero &= ~walk.closure[t, w]
        if walk.tol > 0:
            _keep_gap(walk, t, j, x0, x1, begin, end)
        elif zero:
            zero, doubt = _told_by_residues(walk, t, j, x0, x1, begin, end, zero)
            if doubt:
                return False
        walk.zero[w] = zero
        walk.positive[w] = positive & ~(walk.closure[t, w] | zero)
    return True


@njit(**INNER)
def _told_by_residues(walk, t, j, x0, x1, begin, end, zero):
    """Of the rows that may be zero at a leaf, those that are; and whether one is not, but too near to have a sign."""
    rows0, rows1, bound = walk.levels.rows[t, 0], walk.levels.rows[t, 1], walk.levels.bound[t]
    for i in range(begin, end):
        if i == j or not zero & walk.bits[i] or vanishes(walk.residues, walk.primes, t, i, j):
            continue
        own = bound_at(abs(rows0[i]) + abs(rows1[i]), bound[i], abs(x0) + abs(x1), bound[j])
        if abs(rows0[i] * x0 + rows1[i] * x1) <= own:
            return zero, True
        zero &= ~walk.bits[i]
    return zero, False


@njit(**INNER)
def _keep_gap(walk, t, j, x0, x1, begin, end):
    """Keep the values nearest to the tolerance among the rows that S does not make vanish."""
    rows0, rows1 = walk.levels.rows[t, 0], walk.levels.rows[t, 1]
    for i in range(begin, end):
        if i != j and walk.bits[i] & ~walk.closure[t, i >> 6]:
            take_for_zero(walk, abs(rows0[i] * x0 + rows1[i] * x1) / (abs(x0) + abs(x1)))


@njit(**INNER)
def _signs_of_leaf_closure(walk, t, j):
    """Add to walk.positive the rows of the closure of S + {j} that are +. False where a sign is in doubt."""
    levels = walk.levels
    rows0, rows1, bound = levels.rows[t, 0], levels.rows[t, 1], levels.bound[t]
    if not levels.terms[0, j] < np.inf:
        return False
    plus = 1.0 if levels.along[t, j] > 0 else -1.0
    for i in range(j, walk.residues.shape[3]):
        if walk.zero[i >> 6] & walk.bits[i]:
            if i != j and walk.tol == 0 and abs(rows0[i]) + abs(rows1[i]) <= 2 * bound[i]:
                return False
            if plus * (rows0[i] * rows0[j] + rows1[i] * rows1[j]) > 0:
                walk.positive[i >> 6] |= walk.bits[i]
    for k in range(t):
        for w in range(len(walk.positive)):
            walk.positive[w] |= walk.along[k, w] if levels.along[k, j] > 0 else walk.against[k, w]
    return True
