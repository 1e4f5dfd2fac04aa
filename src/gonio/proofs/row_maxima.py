"""The compiled row maxima of the own-direction lemma, in float32."""

from __future__ import annotations

import numpy as np

from gonio.core.compiled import njit

LOWEST = np.float32(-3e38)  # stands for minus infinity where fastmath forbids it


@njit(nogil=True, cache=True, fastmath=True)
def row_max(S, out):
    """out_i = max_j S_ij."""
    for i in range(S.shape[0]):
        top = LOWEST
        for j in range(S.shape[1]):
            v = S[i, j]
            top = v if v > top else top
        out[i] = top


@njit(nogil=True, cache=True, fastmath=True)
def row_max_with_tails(S, own, tails, out):
    """out_i = max_j S_ij + own_i tails_j: a bound of a dot product of which S holds the leading coordinates."""
    for i in range(S.shape[0]):
        mine = own[i]
        top = LOWEST
        for j in range(S.shape[1]):
            v = S[i, j] + mine * tails[j]
            top = v if v > top else top
        out[i] = top
