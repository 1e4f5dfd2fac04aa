"""Small linear systems by elimination, inside the walks (numba); the tables they are given are overwritten."""

from __future__ import annotations

from gonio.core.compiled import njit
from gonio.listing.kernel_options import INNER


@njit(**INNER)
def null_vector(M, rows, width, z, order):
    """z with M z = 0, for the width - 1 rows of M, by elimination with full pivoting; order: room for the columns."""
    for c in range(width):
        order[c] = c
    for a in range(rows):
        row, column, largest = a, a, -1.0
        for i in range(a, rows):
            for c in range(a, width):
                if abs(M[i, c]) > largest:
                    largest, row, column = abs(M[i, c]), i, c
        for c in range(width):
            M[a, c], M[row, c] = M[row, c], M[a, c]
        for i in range(rows):
            M[i, a], M[i, column] = M[i, column], M[i, a]
        order[a], order[column] = order[column], order[a]
        for i in range(rows):
            if i != a:
                f = M[i, a] / M[a, a]
                for c in range(a, width):
                    M[i, c] -= f * M[a, c]
    for a in range(rows):
        z[order[a]] = -M[a, width - 1] / M[a, a]
    z[order[width - 1]] = 1.0


@njit(**INNER)
def solve(S, width, x):
    """x with S[:, :width] x = S[:, width], by elimination."""
    for a in range(width):
        row = a
        for i in range(a + 1, width):
            if abs(S[i, a]) > abs(S[row, a]):
                row = i
        for c in range(width + 1):
            S[a, c], S[row, c] = S[row, c], S[a, c]
        for i in range(width):
            if i != a:
                f = S[i, a] / S[a, a]
                for c in range(a, width + 1):
                    S[i, c] -= f * S[a, c]
    for a in range(width):
        x[a] = S[a, width] / S[a, a]
