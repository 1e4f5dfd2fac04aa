"""Rankings of labels in general position, each listed once, without search (numba).

The cells of the differences w_j - w_p, p < j, by the walk of `generic_walk`: their "no broken circuit" sets S are the
forests in which every label j picks at most one parent p < j, with fewer than r edges. The reference row a_0 is
w_1 - w_0 (so that 1 has no parent), or, with a bias, the extra row (0, .., 0, 1) whose plus side counts.

At the point of a forest the labels of one tree are tied; they are parted from the smallest up by the signs of the
functional's coordinates. Labels of different trees must lie further apart than the rounding bound: this is what proves
the ranking, and that no other differences vanish there.
"""

from __future__ import annotations

import random

import numpy as np

from gonio.core.compiled import njit
from gonio.listing.generic_walk import (
    bound_at,
    largest_of_plane,
    leaf_coordinates,
    next_plane,
    ray,
    ray_coordinates,
    start,
)
from gonio.listing.kernel_options import INNER, OPTIONS, UNIT_ROUNDOFF


@njit(**OPTIONS)
def list_rankings(A, E0, biased, prefix, high, low, with_leaves, out):
    """The rankings under the edges (j, p) of `prefix` whose next j lies in low..high; returns (rankings, in doubt).

    A: (labels + 1) x r, the last row is the reference row. with_leaves: also the forests with r-1 edges (stage 0).
    """
    n = len(A) - 1
    least = 1 if biased else 2
    levels, fixed = start(A, E0, n, prefix, high, max(low, least))
    key, by_place = np.zeros(n), np.zeros(n)
    found, doubts = 0, 0
    t = next_plane(levels, fixed, fixed, True, least)
    while t >= 0:
        size, error = largest_of_plane(levels, t, n)
        doubts += _ray_ranking(levels, t, size, error, biased, key, by_place, out[found])
        found += 1
        if with_leaves:
            top = n - 1 if t == 0 else levels.child[t - 1] - 1
            for j in range(top, least - 1, -1):
                leaf_coordinates(levels, t, j, 0, j)
                doubts += _leaf_rankings(levels, t, j, size, error, key, by_place, out[found : found + j])
                found += j
        t = next_plane(levels, t - 1, fixed, True, least)
    return found, doubts


@njit(**INNER)
def _ray_ranking(levels, t, size, error, biased, key, by_place, ranking):
    """The ranking of the forest S itself, r-2 edges: far out where they and a_0 vanish and c_1 < 0. True if in doubt.

    Without a bias a_0 is w_1 - w_0: labels 0 and 1 are tied here, and 1 is the winner by choice.
    """
    rows0, rows1 = levels.rows[t, 0], levels.rows[t, 1]
    x0, x1, doubt = ray(levels, t)
    bound = bound_at(size, error, abs(x0) + abs(x1), levels.bound[t, levels.reference])
    for i in range(len(key)):
        key[i] = rows0[i] * x0 + rows1[i] * x1
    if not biased:
        key[1] = key[0] + bound / 8
    if t > 0:
        doubt |= ray_coordinates(levels, t)
    _part_ties(levels, t, 0, bound / 16, key)
    ties = t if biased else t + 1
    return doubt or _rank(key, 3 * bound, by_place, ranking) != ties


@njit(**INNER)
def _leaf_rankings(levels, t, j, size, error, key, by_place, out):
    """The rankings of the forests S + (j, p), |S| = r-2, for all p < j; returns how many are in doubt.

    Each at the point where S and w_j - w_p vanish and a_0 > 0. `leaf_coordinates` took w_p - w_j for the leaf's edge.
    """
    rows0, rows1, bounds = levels.rows[t, 0], levels.rows[t, 1], levels.bound[t]
    a0, a1, bound_a = rows0[levels.reference], rows1[levels.reference], bounds[levels.reference]
    doubts = 0
    for p in range(j):
        x0, x1 = rows1[j] - rows1[p], rows0[p] - rows0[j]
        length = abs(x0) + abs(x1)
        own_error = bounds[j] + bounds[p] + UNIT_ROUNDOFF * length
        at_a = a0 * x0 + a1 * x1
        doubt = levels.weak[t] or levels.terms[0, p] == np.inf
        doubt |= abs(at_a) <= bound_at(abs(a0) + abs(a1), bound_a, length, own_error)
        if at_a < 0:
            x0, x1 = -x0, -x1
        bound = bound_at(size, error, length, own_error)
        for i in range(len(key)):
            key[i] = rows0[i] * x0 + rows1[i] * x1
        key[j] = key[p] + (bound / 8 if levels.along[t, p] < 0 else -bound / 8)
        _part_ties(levels, t, p, bound / 16, key)
        doubt |= _rank(key, 3 * bound, by_place, out[p]) != t + 1
        doubts += doubt
    return doubts


@njit(**INNER)
def _part_ties(levels, t, leaf, gap, key):
    """Put every child above or below its parent, by the sign of the coordinate along their edge; small labels first.

    The gap halves from one to the next, so that a later one cannot undo an earlier one, nor all of them exceed twice
    the first.
    """
    for k in range(t - 1, -1, -1):
        key[levels.child[k]] = key[levels.parent[k]] + (gap if levels.along[k, leaf] > 0 else -gap)
        gap /= 2


@njit(**INNER)
def _rank(key, near, by_place, ranking):
    """Write the labels by falling key; how many neighbours in that order lie within `near`."""
    n = len(key)
    for i in range(n):
        place, mine = 0, key[i]
        for k in range(n):
            place += key[k] > mine
        ranking[place] = i
        by_place[place] = mine
    close = 0
    for i in range(n - 1):
        close += by_place[i] - by_place[i + 1] <= near
    return close


def random_forest(rng: random.Random, labels: int, rank: int, least: int) -> list[tuple[int, int]]:
    """Fewer than `rank` edges (j, p), p < j, least <= j, falling j; every such forest has the same chance."""
    counts = [[1] + [0] * (rank - 1)]  # [i][k]: forests with k edges on the labels least, .., least + i - 1
    for j in range(least, labels):
        counts.append([counts[-1][k] + (j * counts[-1][k - 1] if k else 0) for k in range(rank)])
    at, k = rng.randrange(sum(counts[-1])), 0
    while at >= counts[-1][k]:
        at, k = at - counts[-1][k], k + 1
    edges = []
    for j in range(labels - 1, least - 1, -1):
        without = counts[j - least][k]
        if k and rng.randrange(counts[j - least + 1][k]) >= without:
            edges.append((j, rng.randrange(j)))
            k -= 1
    return edges
