"""Small linear systems by elimination, inside the walks (numba); the tables they are given are overwritten."""

from __future__ import annotations

from numba import njit

from gonio.listing.kernel_options import INNER


@njit(**INNER)
def null_vector(M, R, D, z, order):
    """z with M z = 0 for the R = D - 1 rows of M, by elimination with full pivoting."""
    for c in range(D):
        order[c] = c
    for a in range(R):
        br, bc, best = a, a, -1.0
        for i in range(a, R):
            for c in range(a, D):
                if abs(M[i, c]) > best:
                    best, br, bc = abs(M[i, c]), i, c
        for c in range(D):
            M[a, c], M[br, c] = M[br, c], M[a, c]
        for i in range(R):
            M[i, a], M[i, bc] = M[i, bc], M[i, a]
        order[a], order[bc] = order[bc], order[a]
        for i in range(R):
            if i != a:
                f = M[i, a] / M[a, a]
                for c in range(a, D):
                    M[i, c] -= f * M[a, c]
    for a in range(R):
        z[order[a]] = -M[a, D - 1] / M[a, a]
    z[order[D - 1]] = 1.0


@njit(**INNER)
def solve(S, D, x):
    """x with S[:, :D] x = S[:, D], by elimination."""
    for a in range(D):
        br = a
        for i in range(a + 1, D):
            if abs(S[i, a]) > abs(S[br, a]):
                br = i
        for c in range(D + 1):
            S[a, c], S[br, c] = S[br, c], S[a, c]
        for i in range(D):
            if i != a:
                f = S[i, a] / S[a, a]
                for c in range(a, D + 1):
                    S[i, c] -= f * S[a, c]
    for a in range(D):
        x[a] = S[a, D] / S[a, a]
