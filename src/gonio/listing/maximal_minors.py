"""The signs of all maximal minors of a matrix, in lexicographic order of their rows (numba).

det(rows i_1 < .. < i_r)  is the product of the pivots of an elimination, times a 2 x 2 determinant at its end. The walk
goes depth first through i_1 < .. < i_{r-2} and keeps one elimination a level, which all minors below it share: each
costs two multiplications.

Example: the rows (1, 0), (0, 1), (1, 1) have the minors of rows 01, 02, 12: det = 1, 1, -1, so the signs + + -.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gonio.core.compiled import njit
from gonio.listing.generic_walk import bound_at
from gonio.listing.kernel_options import INNER, OPTIONS, UNIT_ROUNDOFF
from gonio.listing.modular import eliminate_modulo, vanishes


class MinorWalk(NamedTuple):
    """One branch of the walk: the rows left at each level, and the rows that were chosen to get there.

    rows       [level, column, row]: the matrix after the eliminations; only rows after the chosen one are kept
    bound      [level, row]: how far their entries may be off through rounding
    residues   [level, prime, column, row]: the same rows modulo the primes, as whole numbers in floats
    chosen     [level]: the rows of the minor
    product    [level]: the product of the pivots so far, or only its sign, with the sign of the columns' order
    size       [row]: room for one step
    """

    rows: np.ndarray
    bound: np.ndarray
    residues: np.ndarray
    primes: np.ndarray
    chosen: np.ndarray
    product: np.ndarray
    size: np.ndarray


@njit(**OPTIONS)
def signs_by_size(A, eps, out):
    """Write the signs of all maximal minors in floats as they come; those up to `eps` in size count as 0."""
    n, rank = A.shape
    _walk_by_size(_new_walk(A, np.zeros(n), np.zeros((0, rank, n)), np.zeros(0)), eps, out)


@njit(**INNER)
def _walk_by_size(walk, eps, out):
    rank, n = walk.rows.shape[1:]
    found, t = 0, 0
    while t >= 0:
        if t == rank - 2:
            found = _last_two_by_size(walk, t, eps, out, found)
            t -= 1
            continue
        walk.chosen[t] += 1
        i = walk.chosen[t]
        if i > n - (rank - t):
            t -= 1
            continue
        column = _largest_entry(walk, t, i)
        pivot = walk.rows[t, column, i]
        if pivot == 0.0:
            found = _no_signs(out, found, n - 1 - i, rank - t - 1)
            continue
        _eliminate(walk, t, i, column)
        walk.product[t + 1] = -walk.product[t] * pivot if column & 1 else walk.product[t] * pivot
        t += 1
        walk.chosen[t] = i


@njit(**OPTIONS)
def proven_signs(A, E0, residues, primes, store, out, unsure):
    """Write the signs of all maximal minors; returns how many are in doubt. Their rows and places go to `unsure`.

    E0: the rounding bounds of the rows. Signs are told by a running bound and, where that cannot tell, zero by the
    residues; without primes every minor near zero is in doubt. The walk ends as soon as they do not fit into `unsure`.
    """
    return _walk_proven(_new_walk(A, E0, residues, primes), store, out, unsure)


@njit(**INNER)
def _walk_proven(walk, store, out, unsure):
    rank, n = walk.rows.shape[1:]
    found, doubts, t = 0, 0, 0
    while t >= 0:
        if doubts > len(unsure):
            return doubts
        if t == rank - 2:
            found, doubts = _last_two_proven(walk, t, store, out, found, unsure, doubts)
            t -= 1
            continue
        walk.chosen[t] += 1
        i = walk.chosen[t]
        if i > n - (rank - t):
            t -= 1
            continue
        column = _pivot_column(walk, t, i)
        if column < 0 or abs(walk.rows[t, column, i]) <= 2 * walk.bound[t, i]:
            if not _vanishes_modulo(walk, t, i):
                return len(unsure) + 1  # a row that may or may not vanish, with all minors below it
            found = _no_signs(out, found, n - 1 - i, rank - t - 1) if store else found
            continue
        _bound_elimination(walk, t, i, column)
        odd = (walk.rows[t, column, i] > 0) != (column & 1 == 0)
        walk.product[t + 1] = -walk.product[t] if odd else walk.product[t]
        t += 1
        walk.chosen[t] = i
    return doubts


@njit(**OPTIONS)
def _new_walk(A, E0, residues, primes):
    n, rank = A.shape
    walk = MinorWalk(
        np.zeros((rank, rank, n)), np.zeros((rank, n)), np.zeros((rank, len(primes), rank, n)), primes,
        np.zeros(rank, np.int64), np.ones(rank + 1), np.zeros(n),
    )  # fmt: skip
    for i in range(n):
        walk.bound[0, i] = E0[i]
        for c in range(rank):
            walk.rows[0, c, i] = A[i, c]
            for k in range(len(primes)):
                walk.residues[0, k, c, i] = residues[k, c, i]
    walk.chosen[0] = -1
    return walk


@njit(**INNER)
def _no_signs(out, found, rows, left):
    """Write zeros for every choice of `left` among so many rows; where the next sign goes."""
    choices = 1
    for k in range(left):
        choices = choices * (rows - k) // (k + 1)
    for k in range(choices):
        out[found + k] = 0
    return found + choices


@njit(**INNER)
def _largest_entry(walk, t, i):
    """The column of the largest entry of row i."""
    column = 0
    for c in range(1, len(walk.rows) - t):
        if abs(walk.rows[t, c, i]) > abs(walk.rows[t, column, i]):
            column = c
    return column


@njit(**INNER)
def _pivot_column(walk, t, i):
    """The column of the largest entry of row i that no prime divides; -1 where there is none."""
    column, largest = -1, -1.0
    for c in range(len(walk.rows) - t):
        regular = True
        for k in range(len(walk.primes)):
            regular &= walk.residues[t, k, c, i] != 0
        if regular and abs(walk.rows[t, c, i]) > largest:
            column, largest = c, abs(walk.rows[t, c, i])
    return column


@njit(**INNER)
def _vanishes_modulo(walk, t, i):
    """Whether row i is zero modulo every prime; never where there are no primes."""
    zero = len(walk.primes) > 0
    for k in range(len(walk.primes)):
        for c in range(len(walk.rows) - t):
            zero &= walk.residues[t, k, c, i] == 0
    return zero


@njit(**INNER)
def _eliminate(walk, t, i, column):
    """The rows of level t + 1 from row i on: row - (row i's entry / pivot) pivot column, for every other column."""
    pivot_row, kept = walk.rows[t, column, i:], 0
    for c in range(len(walk.rows) - t):
        if c != column:
            row, next_row = walk.rows[t, c, i:], walk.rows[t + 1, kept, i:]
            factor = row[0] / pivot_row[0]
            for k in range(len(row)):
                next_row[k] = row[k] - factor * pivot_row[k]
            kept += 1


@njit(**INNER)
def _bound_elimination(walk, t, i, column):
    """`_eliminate` with its rounding bounds (as in `degenerate_walk`) and residues."""
    _eliminate(walk, t, i, column)
    width, size = len(walk.rows) - t, walk.size[i:]
    for k in range(len(size)):
        size[k] = 0.0
    for c in range(width - 1):
        next_row = walk.rows[t + 1, c, i:]
        for k in range(len(size)):
            size[k] = max(size[k], abs(next_row[k]))
    largest = 0.0
    for c in range(width):
        largest = max(largest, abs(walk.rows[t, c, i]))
    pivot_row, bound, next_bound = walk.rows[t, column, i:], walk.bound[t, i:], walk.bound[t + 1, i:]
    pivot = abs(pivot_row[0])
    rho = largest / pivot
    phi = (1 + rho) * bound[0] / (pivot - bound[0]) + 2 * UNIT_ROUNDOFF * rho
    for k in range(len(size)):
        after = (1 + rho + phi) * bound[k] + phi * abs(pivot_row[k]) + UNIT_ROUNDOFF * size[k]
        next_bound[k] = after * (1 + 8 * UNIT_ROUNDOFF)
    for k in range(len(walk.primes)):
        here, below = walk.residues[t, k, :, i:], walk.residues[t + 1, k, :, i:]
        eliminate_modulo(here, below, 0, column, width, walk.primes[k])


@njit(**INNER)
def _last_two_by_size(walk, t, eps, out, found):
    """The signs of the minors of the chosen rows and two more, at a level of width 2; where the next sign goes."""
    rows0, rows1, n = walk.rows[t, 0], walk.rows[t, 1], walk.rows.shape[2]
    for i in range(walk.chosen[t - 1] + 1 if t > 0 else 0, n - 1):
        x0, x1, after = rows1[i] * walk.product[t], rows0[i] * walk.product[t], n - 1 - i
        after0, after1, signs = rows0[i + 1 :], rows1[i + 1 :], out[found : found + after]
        for k in range(after):
            value = x1 * after1[k] - x0 * after0[k]
            signs[k] = np.int8(value > eps) - np.int8(value < -eps)
        found += after
    return found


@njit(**INNER)
def _last_two_proven(walk, t, store, out, found, unsure, doubts):
    """As `_last_two_by_size`, with signs told from zero: (where the next sign goes, minors in doubt)."""
    rows0, rows1, bound, n = walk.rows[t, 0], walk.rows[t, 1], walk.bound[t], walk.rows.shape[2]
    for i in range(walk.chosen[t - 1] + 1 if t > 0 else 0, n - 1):
        x0, x1 = -rows1[i] * walk.product[t], rows0[i] * walk.product[t]
        after0, after1, bounds = rows0[i + 1 :], rows1[i + 1 :], bound[i + 1 :]
        length, near = abs(x0) + abs(x1), 0
        for k in range(len(bounds)):
            value = after1[k] * x1 + after0[k] * x0
            near += abs(value) <= bound_at(abs(after0[k]) + abs(after1[k]), bounds[k], length, bound[i])
        if store:
            signs = out[found : found + len(bounds)]
            for k in range(len(bounds)):
                value = after1[k] * x1 + after0[k] * x0
                signs[k] = np.int8(value > 0) - np.int8(value < 0)
        if near:
            doubts = _tell_from_zero(walk, t, i, store, out, found, unsure, doubts)
        found += len(bounds)
    return found, doubts


@njit(**INNER)
def _tell_from_zero(walk, t, i, store, out, found, unsure, doubts):
    """Among the minors that end with row i and one after it: 0 where the residues say so, else one more in doubt."""
    rows0, rows1, bound = walk.rows[t, 0], walk.rows[t, 1], walk.bound[t]
    length = abs(rows0[i]) + abs(rows1[i])
    for j in range(i + 1, len(bound)):
        value = abs(rows0[i] * rows1[j] - rows1[i] * rows0[j])
        if value > bound_at(abs(rows0[j]) + abs(rows1[j]), bound[j], length, bound[i]):
            continue
        if len(walk.primes) and vanishes(walk.residues, walk.primes, t, i, j):
            if store:
                out[found + j - i - 1] = 0
            continue
        if doubts < len(unsure):
            for k in range(t):
                unsure[doubts, k] = walk.chosen[k]
            unsure[doubts, t], unsure[doubts, t + 1], unsure[doubts, t + 2] = i, j, found + j - i - 1
        doubts += 1
    return doubts
