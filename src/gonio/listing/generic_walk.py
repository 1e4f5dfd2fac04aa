"""The walk that label sets and rankings in general position share: all forests of edges, depth first (numba).

An edge (j, p) is the hyperplane q_j = q_p. For label sets the items are rows and p is always the origin, whose row is
zero, so that an edge is the hyperplane of one row; for rankings the items are labels and p < j. The cells with +
on a reference row a_0 correspond one to one to the sets S of fewer than r edges, no two with the same j: the
"no broken circuit" sets of the arrangement. With D = r - |S| and generic functionals c_1, c_2, ..

    |S| = r-1   the cell touches the point u with S = 0, a_0 = 1; edges of S take the signs of c_1's coordinates there
    |S| < r-1   it touches the point u far out where S = a_0 = c_1 = .. = c_{D-2} = 0, c_{D-1} < 0; edges take c_D's
    all other rows take their sign at u

The walk adds edges in decreasing order of j. Level t keeps Q_t = A N_t, N_t a basis of the subspace where its t edges
vanish; one elimination leads to the next level. Columns are turned at random beforehand, so c_m is the m-th coordinate,
and the cells of |S| < r-1 are those of |S| = r-2 in the same walk on the columns s:, one stage s = 0, .., r-2 each.

Rounding: with e the bound of the edge's row, v its pivot, u the unit roundoff, phi = 2 e / (|v| - e) + 2 u and |q|
bounding a row before the elimination,  E' = (2 + phi) E + (phi + u) |q_pivot| + u |q|.

Example: rows a_0 = (1, 0), a_1 = (0, 1), a_2 = (1, 1), so r = 2 and the walk has the one level S = {}. With
c_1 = (3, 1) the empty S gives u = (0, -1), far down the line a_0 = 0: signs (+, -, -). S = {a_1} gives u = (1, 0) and
c_1 = 3 a_0 + 1 a_1: (+, +, +). S = {a_2} gives u = (1, -1) and c_1 = 2 a_0 + 1 a_2: (+, -, +). These are all the cells
with + on a_0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from gonio.core.compiled import njit
from gonio.listing.kernel_options import DOUBTFUL, INNER, OPTIONS, UNIT_ROUNDOFF
from gonio.listing.packed_signs import padded

ORIGIN = -1  # the parent whose row is zero


class Levels(NamedTuple):
    """One branch of a walk, level by level: what is kept of the items' rows, and the edges that led there.

    rows          [level, column, item]: Q_t; after the items come c_1, c_2, ..
    bound         [level, item]: how far an entry may be off through rounding
    size          [level, item]: a bound of the absolute values of its entries
    child, parent [level]: the edge (j, p) that is added there, and `lowest` the smallest j to be tried
    column, inverse [level]: the column that it eliminates, and 1 / its entry there, the pivot
    edges         [level, later level]: the entry of the later level's edge in this level's pivot column
    weak          [level]: whether a pivot on the way may be zero as far as rounding tells
    along, terms  [level, leaf]: coordinates of c_1 or c_2 along the edges, and the sums of the absolute values of
                  their terms, infinite where a sign is in doubt; filled by `leaf_coordinates` and `ray_coordinates`
    reference, functional: where the rows hold a_0 and c_1 (c_2 is the next one)
    """

    rows: np.ndarray
    bound: np.ndarray
    size: np.ndarray
    child: np.ndarray
    parent: np.ndarray
    lowest: np.ndarray
    column: np.ndarray
    inverse: np.ndarray
    edges: np.ndarray
    weak: np.ndarray
    along: np.ndarray
    terms: np.ndarray
    reference: int
    functional: int


@register_jitable
def new_levels(rank, items, functionals, reference):
    """Levels for so many items and functionals, all zero, every parent the origin."""
    width = padded(items + functionals)
    return Levels(
        np.zeros((rank, rank, width)),
        np.zeros((rank, width)),
        np.zeros((rank, width)),
        np.zeros(rank, np.int64),
        np.zeros(rank, np.int64) + ORIGIN,
        np.zeros(rank, np.int64),
        np.zeros(rank, np.int64),
        np.zeros(rank),
        np.zeros((rank, rank)),
        np.zeros(rank, np.bool_),
        np.zeros((rank + 1, width)),
        np.zeros((rank + 1, width)),
        reference,
        items,
    )


@njit(**OPTIONS)
def start(A, E0, reference, prefix, high, low):
    """The levels of a walk under the edges of `prefix` whose next child lies in low..high; and the level it starts at.

    A: the items' rows, already turned at random; E0: their rounding bounds.
    """
    items, rank = A.shape
    levels = new_levels(rank, items, 2, reference)
    for i in range(items):
        levels.bound[0, i] = E0[i]
        for c in range(rank):
            levels.rows[0, c, i] = A[i, c]
            levels.size[0, i] = max(levels.size[0, i], abs(A[i, c]))
    for m in range(2):
        levels.rows[0, m, items + m] = levels.size[0, items + m] = 1.0
    fixed = min(len(prefix), rank - 2)
    for t in range(fixed):
        levels.child[t], levels.parent[t] = prefix[t, 0], prefix[t, 1]
        eliminate(levels, t)
    open_level(levels, fixed, high, low)
    return levels, fixed


@njit(**INNER)
def of_item(row, i):
    """An item's entry, 0 for the origin."""
    return row[i] if i >= 0 else 0.0


@njit(**INNER)
def open_level(levels, t, high, low):
    """Let level t try the children high, high - 1, .., low."""
    levels.child[t] = high + 1
    levels.parent[t] = high + 1
    levels.lowest[t] = low


@njit(**INNER)
def next_plane(levels, t, fixed, parents, least):
    """Go on from level t to the next set of r-2 edges, where a plane is left: its level, or -1 if there is none.

    fixed: the level that the walk never leaves. parents: whether a child j has the parents 0, .., j - 1 to choose from,
    as in rankings, or only the origin. least: the smallest child.
    """
    last = levels.rows.shape[0] - 2
    while fixed <= t < last:
        child, parent = levels.child[t], levels.parent[t] + 1
        if parent >= child or not parents:
            child, parent = child - 1, 0 if parents else ORIGIN
        levels.child[t], levels.parent[t] = child, parent
        if child < levels.lowest[t]:
            t -= 1
            continue
        eliminate(levels, t)
        t += 1
        if t < last:
            open_level(levels, t, child - 1, least)
    return t if t >= fixed else -1


@njit(**INNER)
def eliminate(levels, t):
    """The rows of level t + 1: those of level t on the subspace where the edge of level t vanishes."""
    j, p = levels.child[t], levels.parent[t]
    here, below = levels.rows[t], levels.rows[t + 1]
    width = len(here) - t
    column, largest = 0, -1.0
    for c in range(width):
        entry = abs(here[c, j] - of_item(here[c], p))
        if entry > largest:
            column, largest = c, entry
    pivot_row = here[column]
    pivot = pivot_row[j] - of_item(pivot_row, p)
    levels.column[t], levels.inverse[t] = column, 1 / pivot
    for k in range(t):
        row = levels.rows[k, levels.column[k]]
        levels.edges[k, t] = row[j] - of_item(row, p)
    bound, next_bound, size, next_size = levels.bound[t], levels.bound[t + 1], levels.size[t], levels.size[t + 1]
    error = bound[j] + of_item(bound, p) + UNIT_ROUNDOFF * largest
    levels.weak[t + 1] = levels.weak[t] or 2 * error >= largest
    phi = 2 * error / (largest - error) + 2 * UNIT_ROUNDOFF
    for i in range(len(pivot_row)):
        x = abs(pivot_row[i])
        after = (2 + phi) * bound[i] + (phi + UNIT_ROUNDOFF) * x + UNIT_ROUNDOFF * size[i]
        next_bound[i] = after * (1 + 8 * UNIT_ROUNDOFF)
        next_size[i] = size[i] + x  # factors are at most 1, so the columns need not be looked at
    next_bound[j], next_size[j] = of_item(next_bound, p), of_item(next_size, p)
    kept = 0
    for c in range(width):
        if c == column:
            continue
        row, next_row = here[c], below[kept]
        factor = (row[j] - of_item(row, p)) / pivot
        for i in range(len(row)):
            next_row[i] = row[i] - factor * pivot_row[i]
        next_row[j] = of_item(next_row, p)
        kept += 1


@njit(**INNER)
def largest_of_plane(levels, t, items):
    """The largest row and the largest rounding bound of a level of width 2: one bound then serves all rows."""
    rows0, rows1, bound = levels.rows[t, 0], levels.rows[t, 1], levels.bound[t]
    size, error = 0.0, 0.0
    for i in range(items):
        size = max(size, abs(rows0[i]) + abs(rows1[i]))
        error = max(error, bound[i])
    return size, error


@njit(**INNER)
def bound_at(size, error, length, own_error):
    """How far the value at a point may be off, for rows up to `size` known to `error`, and a point of that length."""
    return error * (length + 2 * own_error) + size * (own_error + 2 * UNIT_ROUNDOFF * length)


@njit(**INNER)
def ray(levels, t):
    """Level r-2: the direction in which a_0 = 0 and c_1 < 0; and whether rounding leaves its sign in doubt."""
    rows0, rows1, bound = levels.rows[t, 0], levels.rows[t, 1], levels.bound[t]
    a, c = levels.reference, levels.functional
    x0, x1 = -rows1[a], rows0[a]
    value = rows0[c] * x0 + rows1[c] * x1
    length = abs(x0) + abs(x1)
    error = bound[c] * length
    error += (bound[a] + 4 * UNIT_ROUNDOFF * length) * (abs(rows0[c]) + abs(rows1[c]) + 2 * bound[c])
    doubt = levels.weak[t] or abs(value) <= error
    return (-x0, -x1, doubt) if value > 0 else (x0, x1, doubt)


@njit(**INNER)
def ray_coordinates(levels, t):
    """along[k, 0], the coordinates of c_2 along the edges k < t beside a_0 and c_1; whether a sign is in doubt."""
    rows0, rows1 = levels.rows[t, 0], levels.rows[t, 1]
    a, c1, c2 = levels.reference, levels.functional, levels.functional + 1
    a0, a1, b0, b1, x0, x1 = rows0[a], rows1[a], rows0[c1], rows1[c1], rows0[c2], rows1[c2]
    scale = 1 / (a0 * b1 - a1 * b0)
    along_a, along_c1 = (x0 * b1 - x1 * b0) * scale, (a0 * x1 - a1 * x0) * scale
    terms_a, terms_c1 = (abs(x0 * b1) + abs(x1 * b0)) * abs(scale), (abs(a0 * x1) + abs(a1 * x0)) * abs(scale)
    doubt = False
    for k in range(t - 1, -1, -1):
        row = levels.rows[k, levels.column[k]]
        value = row[c2] - along_a * row[a] - along_c1 * row[c1]
        terms = abs(row[c2]) + terms_a * abs(row[a]) + terms_c1 * abs(row[c1])
        for later in range(k + 1, t):
            edge = levels.edges[k, later]
            value -= levels.along[later, 0] * edge
            terms += levels.terms[later, 0] * abs(edge)
        doubt |= abs(value) <= DOUBTFUL * terms
        levels.along[k, 0] = value * levels.inverse[k]
        levels.terms[k, 0] = terms * abs(levels.inverse[k])
    return doubt


@njit(**INNER)
def leaf_coordinates(levels, t, base, begin, end):
    """c_1 = sum_k along[k] edge_k + along[t] (q_i - q_base) + first a_0, for every leaf i in begin..end-1 at once.

    Back-substitution over the pivots of the levels above; leaf i is at place i - begin. terms[0] is infinite where a
    sign is in doubt at any level.
    """
    leaves, a, c = end - begin, levels.reference, levels.functional
    rows0, rows1 = levels.rows[t, 0], levels.rows[t, 1]
    a0, a1, c0, c1, base0, base1 = rows0[a], rows1[a], rows0[c], rows1[c], of_item(rows0, base), of_item(rows1, base)
    leaf0, leaf1 = rows0[begin:end], rows1[begin:end]
    along_leaf, terms_leaf = levels.along[t, :leaves], levels.terms[t, :leaves]
    along_a, terms_a = levels.along[-1, :leaves], levels.terms[-1, :leaves]
    for i in range(leaves):
        x, y = leaf0[i] - base0, leaf1[i] - base1
        scale = 1 / (a0 * y - a1 * x)
        first, first_terms = (c0 * y - c1 * x) * scale, (abs(c0 * y) + abs(c1 * x)) * abs(scale)
        wide = abs(x) >= abs(y)
        of_c, of_a, inverse = (c0 if wide else c1), (a0 if wide else a1), 1 / (x if wide else y)
        value, size = of_c - first * of_a, abs(of_c) + first_terms * abs(of_a)
        along_a[i], terms_a[i], along_leaf[i] = first, first_terms, value * inverse
        terms_leaf[i] = size * abs(inverse) if abs(value) > DOUBTFUL * size else np.inf
    for k in range(t - 1, -1, -1):
        row, along, terms = levels.rows[k, levels.column[k]], levels.along[k, :leaves], levels.terms[k, :leaves]
        leaf, of_base, of_c, of_a, inverse = row[begin:end], of_item(row, base), row[c], row[a], levels.inverse[k]
        for i in range(leaves):
            x = leaf[i] - of_base
            along[i] = of_c - along_a[i] * of_a - along_leaf[i] * x
            terms[i] = abs(of_c) + terms_a[i] * abs(of_a) + terms_leaf[i] * abs(x)
        for later in range(k + 1, t):
            edge = levels.edges[k, later]
            along_later, terms_later = levels.along[later, :leaves], levels.terms[later, :leaves]
            for i in range(leaves):
                along[i] -= along_later[i] * edge
                terms[i] += terms_later[i] * abs(edge)
        for i in range(leaves):
            value, size = along[i], terms[i]
            along[i] = value * inverse
            terms[i] = size * abs(inverse) if abs(value) > DOUBTFUL * size else np.inf
