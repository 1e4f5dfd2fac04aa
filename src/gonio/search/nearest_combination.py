"""The combination of a target's columns that is nearest to its aim, compiled: the projection of a cutting round.

    min over lam >= 0 of  |(Q, kappa) - sum_j lam_j c_j|

The columns are those the target has, whose inverse factor may have been kept, and the new ones of this round. What is
left of the aim is the next direction to try.

Example: Q = (0, 0), kappa = 1, columns (1, 0, 1) and (-1, 0, 1): lam = (1/2, 1/2), and nothing is left.
"""

from __future__ import annotations

import numpy as np

from gonio.core.compiled import njit
from gonio.search.kernels import copy, dot, nnls

EXACT = 1e-28  # of the squared aim: a residual of rounding alone

# numba's cache on disk refers to the classes of its arguments by name: a cache older than a renaming cannot be loaded,
# and raises. So whoever renames or removes one of them (see `cutting_round`) also renames the functions that take it.


@njit(nogil=True, cache=True)
def nearest_combination(chosen, new, number, targets, columns, factors, stalled, first_round):
    """Project the aims of the trials `chosen`, `new` being their new columns; writes to `targets` and to new factors.

    A target becomes `stalled` where no column is new, or where the combination is the aim up to rounding.
    """
    rank = columns.rows.shape[1]
    inverse, order = np.empty((rank + 2, rank + 2)), np.empty(rank + 2, np.int64)
    for at in range(len(chosen)):
        a = chosen[at]
        g = number[a]
        old_size = targets.size[g]
        numbers = _extended(new[at], g, targets)
        if len(numbers) == old_size and not first_round:
            targets.status[g] = stalled
            continue
        A = _column_matrix(numbers, g, targets, columns)
        b, lam = np.empty(rank + 1), np.zeros(len(numbers))
        copy(b, targets.aims[g], rank)
        b[rank] = columns.kappa
        copy(lam, targets.weights[g], old_size)
        known = _read_factor(a, old_size, factors, inverse)
        passive = nnls(A, b, lam, inverse, order, known, 3 * len(numbers) + 50)
        residual, whole = _residual(b, lam, A), dot(b, b, rank + 1)
        if dot(residual, residual, rank + 1) < 1e-8 * whole:
            _refine(A, inverse, order, passive, b, lam, residual)
        _write_factor(a, passive, factors, inverse)
        accurate = _keep_columns(g, numbers, order, passive, A, lam, residual, targets) <= 1e-9 * whole
        targets.factor_start[g] = factors.new_start[a] if accurate else -1  # too much rounding: made anew next time
        copy(targets.directions[g], residual, rank)
        if dot(residual, residual, rank + 1) <= EXACT * whole:
            targets.status[g] = stalled


@njit(inline="always")
def _extended(new, g, targets):
    """The numbers of the target's columns, then those of the new ones (-1: none)."""
    size = targets.size[g]
    numbers = np.empty(size + len(new), np.int64)
    for q in range(size):
        numbers[q] = targets.columns[g, q]
    for t in range(len(new)):
        known = new[t] < 0
        for q in range(size):
            if numbers[q] == new[t]:
                known = True
                break
        if not known:
            numbers[size] = new[t]
            size += 1
    return numbers[:size]


@njit(inline="always")
def _column_matrix(numbers, g, targets, columns):
    """The columns (v_j, kappa) and (g_k, 0) as rows of a matrix, for a tie made orthogonal to its `across`."""
    n, rank = columns.rows.shape
    A = np.empty((len(numbers), rank + 1))
    for q in range(len(numbers)):
        if numbers[q] < n:
            copy(A[q], columns.rows[numbers[q]], rank)
            A[q, rank] = columns.kappa
        else:
            copy(A[q], columns.rays[numbers[q] - n], rank)
            A[q, rank] = 0.0
        if targets.across.shape[0] > 0:
            along = dot(A[q], targets.across[g], rank)
            for t in range(rank):
                A[q, t] -= along * targets.across[g, t]
    return A


@njit(inline="always")
def _read_factor(a, size, factors, inverse):
    """Copy the kept inverse factor of the target's `size` columns; how many of its rows there are (all, or none)."""
    start = factors.old_start[a]
    if start < 0:
        return 0
    for q in range(size):
        for t in range(q + 1):
            inverse[q, t] = factors.old[start + t]
        start += q + 1
    return size


@njit(inline="always")
def _write_factor(a, size, factors, inverse):
    """Keep the inverse factor of the passive columns for the next round, where there is room for it."""
    start = factors.new_start[a]
    if start < 0:
        return
    for q in range(size):
        for t in range(q + 1):
            factors.new[start + t] = inverse[q, t]
        start += q + 1


@njit(inline="always")
def _residual(b, lam, A):
    """b - sum_j lam_j A_j."""
    left = np.empty(len(b))
    copy(left, b, len(b))
    for q in range(len(lam)):
        if lam[q] != 0:
            for t in range(len(b)):
                left[t] -= lam[q] * A[q, t]
    return left


@njit(inline="always")
def _refine(A, inverse, order, passive, b, lam, residual):
    """Newton steps on the passive weights, with the residual formed from the columns and not from their products."""
    width = len(b)
    slope, change = np.empty(passive), np.empty(passive)
    for _ in range(3):
        for i in range(passive):
            slope[i] = dot(A[order[i]], residual, width)
            change[i] = 0.0
        for i in range(passive):
            v = dot(inverse[i], slope, i + 1)
            for t in range(i + 1):
                change[t] += v * inverse[i, t]
        for i in range(passive):
            if lam[order[i]] + change[i] <= 0:
                return
        copy(residual, b, width)
        for i in range(passive):
            c = order[i]
            lam[c] += change[i]
            for t in range(width):
                residual[t] -= lam[c] * A[c, t]


@njit(inline="always")
def _keep_columns(g, numbers, order, passive, A, lam, residual, targets):
    """Store the passive columns and their weights; the largest |column.residual|, which is 0 but for rounding."""
    largest = 0.0
    for q in range(passive):
        c = order[q]
        largest = max(largest, abs(dot(A[c], residual, A.shape[1])))
        targets.columns[g, q] = numbers[c]
        targets.weights[g, q] = lam[c]
    targets.size[g] = passive
    return largest
