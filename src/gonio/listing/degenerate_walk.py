"""The walk over the "no broken circuit" sets of any central arrangement, however degenerate (numba).

S = {j_1 < .. < j_k} counts iff  min(closure{j_t, .., j_k}) = j_t  for every t and row 0 is in none of these closures;
the closure of S is all rows that vanish wherever S does. As in `generic_walk`, level t keeps the rows on the subspace
where its t rows vanish, and rows are added in decreasing order. Within a level they are tried in increasing order, so
that the first of the rows that vanish together is their smallest, and the others are skipped.

Whether a row vanishes is decided exactly: it must be zero within its rounding bound, and zero modulo primes whose
product exceeds every minor of the whole-number rows (Hadamard). With a tolerance instead of primes, a row vanishes
where it is at most `tol`; the largest value taken for zero and the smallest taken as it is are kept, so that a caller
can see whether they are far apart.

Example: a_0 = (1, 0, 0), a_1 = (0, 1, 0), a_2 = (1, 1, 0), a_3 = (0, 0, 1). The sets are {}, {1}, {2}, {3}, {1, 3},
{2, 3}; {1, 2} is left out, because its closure holds row 0. So six cells have + on row 0: a_0, a_1, a_2 are three
planes through one line, which makes three sectors with a_0 > 0, and a_3 cuts each of them in two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gonio.core.compiled import njit
from gonio.listing.generic_walk import Levels
from gonio.listing.kernel_options import INNER, UNIT_ROUNDOFF
from gonio.listing.modular import eliminate_modulo
from gonio.listing.packed_signs import NO_BITS, ONE

DONE, FULL, DOUBT, UNLUCKY, BROKEN = 0, 1, 2, 3, 4  # how a block ended, or why a row was not added


class ClosureWalk(NamedTuple):
    """One branch of the walk: its levels, and which rows vanish at each. Sets of rows are bits, see `packed_signs`.

    residues        [level, prime, column, row]: the rows modulo the primes, whole numbers in floats
    closure         [level]: the rows that vanish wherever S does
    tried           [level]: the closure, and the rows that vanish together with one that was already tried
    along, against  [level]: the rows that vanish with the level's row, with its sign and with the opposite one
    next_row, end   [level]: the next row to try, and the first not to be tried
    tol             0 for exact arithmetic
    largest_zero, smallest_kept   one entry each: with a tolerance, the two values nearest to it so far
    zero, positive, system, order, direction   room for one step: sets of rows, and a small linear system
    """

    levels: Levels
    residues: np.ndarray
    primes: np.ndarray
    bits: np.ndarray
    closure: np.ndarray
    tried: np.ndarray
    along: np.ndarray
    against: np.ndarray
    next_row: np.ndarray
    end: np.ndarray
    tol: float
    largest_zero: np.ndarray
    smallest_kept: np.ndarray
    zero: np.ndarray
    positive: np.ndarray
    system: np.ndarray
    order: np.ndarray
    direction: np.ndarray


@njit(**INNER)
def next_set(walk, t, first):
    """Go on from level t, whose S is dealt with, to the next S: (its level or -1, DONE, DOUBT or UNLUCKY).

    first: the largest row of S, 0 for the empty S alone, below 0 for every S. Sets of r-1 rows are not walked to: they
    are leaves of those of r-2.
    """
    rank = len(walk.levels.rows)
    if t == rank - 2 or first == 0:
        t -= 1
    while t >= 0:
        j = walk.next_row[t]
        while j < walk.end[t] and walk.tried[t, j >> 6] & walk.bits[j]:
            j += 1
        if j >= walk.end[t] or (t == 0 and 0 < first < j):
            t -= 1
            continue
        walk.next_row[t] = j + 1
        status = _add_row(walk, t, j, t > 0 or first < 0 or j == first)
        if status == DONE:
            return t + 1, DONE
        if status != BROKEN:
            return t, status
    return -1, DONE


@njit(**INNER)
def _add_row(walk, t, j, wanted):
    """Add row j to S: DONE where level t + 1 is ready; BROKEN where S + {j} does not count or is not wanted."""
    levels = walk.levels
    column = _pivot_column(walk, t, j)
    if column < 0:
        return UNLUCKY
    if walk.tol == 0 and abs(levels.rows[t, column, j]) <= 2 * levels.bound[t, j]:
        return DOUBT
    _eliminate(levels, t, j, column)
    for k in range(len(walk.primes)):
        eliminate_modulo(walk.residues[t, k], walk.residues[t + 1, k], j, column, len(levels.rows) - t, walk.primes[k])
    doubt = _find_vanishing(walk, t, j)
    for w in range(len(walk.zero)):
        walk.tried[t, w] |= walk.zero[w]
    if walk.zero[0] & ONE or not wanted:
        return BROKEN
    if doubt:
        return DOUBT
    for w in range(len(walk.zero)):
        walk.along[t, w] = walk.zero[w] & walk.positive[w]
        walk.against[t, w] = walk.zero[w] & ~walk.positive[w]
        walk.closure[t + 1, w] = walk.tried[t + 1, w] = walk.closure[t, w] | walk.zero[w]
    walk.next_row[t + 1], walk.end[t + 1] = 1, j
    return DONE


@njit(**INNER)
def _pivot_column(walk, t, j):
    """The column of the largest entry of row j that no prime divides; -1 where there is none."""
    levels = walk.levels
    column, largest = -1, -1.0
    for c in range(len(levels.rows) - t):
        if abs(levels.rows[t, c, j]) > largest:
            regular = True
            for k in range(len(walk.primes)):
                regular &= walk.residues[t, k, c, j] != 0
            if regular:
                column, largest = c, abs(levels.rows[t, c, j])
    return column


@njit(**INNER)
def _eliminate(levels, t, j, column):
    """The float rows of level t + 1, their bounds and their sizes: level t where row j vanishes.

    As in `generic_walk.eliminate`, but a factor may be as large as rho = (largest entry of row j) / |pivot|, which is 1
    unless a prime divides that entry:  phi = (1 + rho) e / (|v| - e) + 2 u rho  and  E' = (1 + rho + phi) E + ..
    """
    here, below = levels.rows[t], levels.rows[t + 1]
    bound, next_bound, size = levels.bound[t], levels.bound[t + 1], levels.size[t + 1]
    pivot_row, pivot = here[column], here[column, j]
    levels.child[t], levels.column[t], levels.inverse[t] = j, column, 1 / pivot
    for k in range(t):
        levels.edges[k, t] = levels.rows[k, levels.column[k], j]
    largest = 0.0
    for c in range(len(here) - t):
        largest = max(largest, abs(here[c, j]))
    rho = largest / abs(pivot)
    phi = (1 + rho) * bound[j] / (abs(pivot) - bound[j]) + 2 * UNIT_ROUNDOFF * rho
    for i in range(len(size)):
        next_bound[i] = (1 + rho + phi) * bound[i] + phi * abs(pivot_row[i])
        size[i] = 0.0
    kept = 0
    for c in range(len(here) - t):
        if c == column:
            continue
        row, next_row = here[c], below[kept]
        factor = row[j] / pivot
        for i in range(len(size)):
            x = row[i] - factor * pivot_row[i]
            next_row[i] = x
            size[i] = max(size[i], abs(x))
        next_row[j] = 0.0
        kept += 1
    for i in range(len(size)):
        next_bound[i] = (next_bound[i] + UNIT_ROUNDOFF * size[i]) * (1 + 8 * UNIT_ROUNDOFF)
    size[j] = next_bound[j] = 0.0


@njit(**INNER)
def _find_vanishing(walk, t, j):
    """The rows that vanish at level t + 1 and not at t, as walk.zero; of these walk.positive have row j's sign.

    True where the sign of one of them against row j is in doubt.
    """
    levels, exact = walk.levels, walk.tol == 0
    pivot_row, bound = levels.rows[t, levels.column[t]], levels.bound[t]
    size, next_bound = levels.size[t + 1], levels.bound[t + 1]
    for w in range(len(walk.zero)):
        walk.zero[w] = walk.positive[w] = NO_BITS
    doubt = False
    for i in range(walk.residues.shape[3]):
        bit = walk.bits[i]
        if walk.closure[t, i >> 6] & bit:
            continue
        if i != j:
            if exact:
                vanished = size[i] <= next_bound[i] and _zero_modulo(walk, t + 1, i)
            else:
                vanished = take_for_zero(walk, size[i])
            if not vanished:
                continue
        walk.zero[i >> 6] |= bit
        doubt |= exact and abs(pivot_row[i]) <= bound[i]
        if pivot_row[i] * pivot_row[j] > 0:
            walk.positive[i >> 6] |= bit
        for c in range(len(levels.rows) - t - 1):
            levels.rows[t + 1, c, i] = 0.0
        next_bound[i] = 0.0
    return doubt


@njit(**INNER)
def _zero_modulo(walk, t, i):
    """Whether row i is zero modulo every prime at level t."""
    zero = True
    for k in range(len(walk.primes)):
        for c in range(len(walk.levels.rows) - t):
            zero &= walk.residues[t, k, c, i] == 0
    return zero


@njit(**INNER)
def take_for_zero(walk, value):
    """Whether a value is at most the tolerance; the nearest ones on either side are kept."""
    if value <= walk.tol:
        walk.largest_zero[0] = max(walk.largest_zero[0], value)
        return True
    walk.smallest_kept[0] = min(walk.smallest_kept[0], value)
    return False
