"""The compiled row maxima of the own-direction lemma, in float32."""

from __future__ import annotations

import numpy as np

from gonio.core.compiled import njit

LOWEST = np.float32(-3e38)  # stands for minus infinity where fastmath forbids it
FEWEST = np.int32(-(2**31) + 1)  # and among products of bytes

LANES = 64  # maxima that are carried side by side: the compiler keeps one to a lane of its vector registers


@njit(nogil=True, cache=True, fastmath=True)
def row_max_with_tails(S, own, tails, out):
    """out_i = max_j S_ij + own_i tails_j: a bound of a dot product of which S holds the leading coordinates."""
    width = S.shape[1]
    whole = width // LANES * LANES
    tops = np.empty(LANES, np.float32)
    for i in range(S.shape[0]):
        row, mine = S[i], own[i]
        tops[:] = LOWEST
        for start in range(0, whole, LANES):
            some, rest = row[start : start + LANES], tails[start : start + LANES]
            for q in range(LANES):
                v = some[q] + mine * rest[q]
                tops[q] = v if v > tops[q] else tops[q]
        top = LOWEST
        for q in range(LANES):  # tops.max() takes half a second to compile
            top = max(top, tops[q])
        for j in range(whole, width):
            v = row[j] + mine * tails[j]
            top = v if v > top else top
        out[i] = top


@njit(nogil=True, cache=True, fastmath=True)
def row_max_of_bytes(S, scale, own, tails, out):
    """out_i = max_j S_ij scale_j + own_i tails_j, S products of bytes: as above, but for the scale of the row i.

    S may have more columns than there are scales; those do not count.
    """
    width = len(scale)
    whole = width // LANES * LANES
    tops = np.empty(LANES, np.float32)
    for i in range(S.shape[0]):
        row, mine = S[i], own[i]
        tops[:] = LOWEST
        for start in range(0, whole, LANES):
            some, size, rest = row[start : start + LANES], scale[start : start + LANES], tails[start : start + LANES]
            for q in range(LANES):
                v = np.float32(some[q]) * size[q] + mine * rest[q]
                tops[q] = v if v > tops[q] else tops[q]
        top = LOWEST
        for q in range(LANES):  # tops.max() takes half a second to compile
            top = max(top, tops[q])
        for j in range(whole, width):
            v = np.float32(row[j]) * scale[j] + mine * tails[j]
            top = v if v > top else top
        out[i] = top


def row_max(S, out):
    """out_i = max_j S_ij."""
    row_max_with_tails(S, np.zeros(S.shape[0], np.float32), np.zeros(S.shape[1], np.float32), out)
