"""Cells of a central arrangement in general position, each listed once, without search (numba).

The walk of `generic_walk` over the subsets S of the rows 1, .., n-1 with fewer than r elements; a cell is written as
the bits of its + signs. All rows must be told from zero at the point of S but those of S themselves, by a bound for
their rounding; cells where one cannot be told are handed back by their S.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gonio.core.compiled import njit
from gonio.listing.generic_walk import (
    ORIGIN,
    bound_at,
    largest_of_plane,
    leaf_coordinates,
    next_plane,
    ray,
    ray_coordinates,
    start,
)
from gonio.listing.kernel_options import INNER, OPTIONS
from gonio.listing.packed_signs import NO_BITS, ONE, row_bits, signs_at


class Masks(NamedTuple):
    """Rows as bits: each row's own, those of the set S, and for each leaf those of S and the leaf that are +."""

    bits: np.ndarray
    of_set: np.ndarray
    of_leaf: np.ndarray


class Unsure(NamedTuple):
    """Cells in doubt: the rows of their S, filled up with -1, and their places in the output."""

    sets: np.ndarray
    at: np.ndarray


@njit(**OPTIONS)
def list_cells(A, E0, prefix, high, low, with_leaves, out, unsure, unsure_at):
    """The cells under the rows of `prefix` whose next row lies in low..high; returns (cells, cells in doubt).

    with_leaves: also those with |S| = r-1 (stage 0); a prefix of r-1 rows asks for that leaf alone. out: (cells, words)
    of 64 bits each. unsure, unsure_at: the rows of S of a cell in doubt, -1 after the last, and its place in `out`.
    """
    n, words = len(A), out.shape[1]
    edges = np.empty((len(prefix), 2), np.int64)
    for k in range(len(prefix)):
        edges[k, 0], edges[k, 1] = prefix[k], ORIGIN
    levels, fixed = start(A, E0, 0, edges, high, low)
    width = levels.rows.shape[2]
    masks = Masks(row_bits(n, width), np.zeros(words, np.uint64), np.zeros((words, width), np.uint64))
    return _list_planes(levels, fixed, n, prefix, with_leaves, masks, out, Unsure(unsure, unsure_at))


@njit(**INNER)
def _list_planes(levels, fixed, n, prefix, with_leaves, masks, out, unsure):
    """Every set S of r-2 rows: its own cell, and those of S and one more row."""
    found, doubts = 0, 0
    t = next_plane(levels, fixed, fixed, False, 1)
    while t >= 0:
        for w in range(len(masks.of_set)):
            masks.of_set[w] = NO_BITS
        for k in range(t):
            masks.of_set[levels.child[k] >> 6] |= masks.bits[levels.child[k]]
        size, error = largest_of_plane(levels, t, n)
        if _ray_cell(levels, t, size, error, masks, out[found]):
            doubts = _note(levels, t, -1, doubts, found, unsure)
        found += 1
        if with_leaves:
            begin, end = 1, n if t == 0 else levels.child[t - 1]
            if len(prefix) > t:
                begin, end = prefix[t], prefix[t] + 1
            leaf_coordinates(levels, t, ORIGIN, begin, end)
            _bits_of_leaves(levels, t, begin, end, masks)
            doubts = _leaf_cells(levels, t, begin, end, size, error, masks, out, found, doubts, unsure)
            found += end - begin
        t = next_plane(levels, t - 1, fixed, False, 1)
    return found, doubts


@njit(**INNER)
def _ray_cell(levels, t, size, error, masks, cell):
    """The cell of S itself, |S| = r-2: far out on the line S = a_0 = 0, where c_1 < 0. True where it is in doubt."""
    rows0, rows1, bits, of_set = levels.rows[t, 0], levels.rows[t, 1], masks.bits, masks.of_set
    x0, x1, doubt = ray(levels, t)
    bound = bound_at(size, error, abs(x0) + abs(x1), levels.bound[t, 0])
    for w in range(len(cell)):
        i, k = 64 * w, min(len(bits), 64 * w + 64)
        positive, near = signs_at(x0, x1, rows0[i:k], rows1[i:k], bound, bits[i:k])
        reference = ONE if w == 0 else NO_BITS  # a_0 vanishes here and is + by choice
        doubt |= near & ~reference != of_set[w]
        cell[w] = (positive | reference) & ~of_set[w]
    if t > 0:
        doubt |= ray_coordinates(levels, t)
    for k in range(t):
        j = levels.child[k]
        cell[j >> 6] |= bits[j] if levels.along[k, 0] > 0 else NO_BITS
    return doubt


@njit(**INNER)
def _bits_of_leaves(levels, t, begin, end, masks):
    """For every leaf j: the bits of the rows of S + {j} that are + in its cell."""
    leaves, bits, along = end - begin, masks.bits[begin:end], levels.along[t]
    for w in range(len(masks.of_leaf)):
        word = masks.of_leaf[w]
        for i in range(leaves):
            word[i] = bits[i] if along[i] > 0 and (begin + i) >> 6 == w else NO_BITS
    for k in range(t):
        j, along = levels.child[k], levels.along[k]
        bit, word = masks.bits[j], masks.of_leaf[j >> 6]
        for i in range(leaves):
            word[i] |= bit if along[i] > 0 else NO_BITS


@njit(**INNER)
def _leaf_cells(levels, t, begin, end, size, error, masks, out, found, doubts, unsure):
    """The cells of S + {j}, |S| = r-2, falling j: at the point where S and row j vanish and a_0 > 0."""
    rows0, rows1, bounds = levels.rows[t, 0], levels.rows[t, 1], levels.bound[t]
    terms, weak, words = levels.terms[0], levels.weak[t], out.shape[1]
    bits, of_set, of_leaf = masks.bits, masks.of_set, masks.of_leaf
    for j in range(end - 1, begin - 1, -1):
        x0, x1 = rows1[j], -rows0[j]
        if rows0[0] * x0 + rows1[0] * x1 < 0:
            x0, x1 = -x0, -x1
        bound = bound_at(size, error, abs(x0) + abs(x1), bounds[j])
        doubt = weak or terms[j - begin] == np.inf
        for w in range(words):
            i, k = 64 * w, min(len(bits), 64 * w + 64)
            positive, near = signs_at(x0, x1, rows0[i:k], rows1[i:k], bound, bits[i:k])
            vanishing = of_set[w] | (bits[j] if j >> 6 == w else NO_BITS)
            doubt |= near != vanishing
            out[found, w] = (positive & ~vanishing) | of_leaf[w, j - begin]
        if doubt:
            doubts = _note(levels, t, j, doubts, found, unsure)
        found += 1
    return doubts


@njit(**INNER)
def _note(levels, t, leaf, doubts, found, unsure):
    """Write down the set S (with its leaf, or -1) of a cell in doubt, where there is room; how many there are now."""
    if doubts < len(unsure.at):
        unsure.at[doubts] = found
        for k in range(unsure.sets.shape[1]):
            unsure.sets[doubts, k] = levels.child[k] if k < t else leaf
    return doubts + 1
