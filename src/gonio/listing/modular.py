"""Rows modulo primes, inside the walks (numba): which are multiples of each other, and what 1 / a is.

Residues R are floats (level, prime, column, row): products of two 26-bit numbers are exact in them, see `residues`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gonio.listing.kernel_options import INNER


@njit(**INNER)
def parallel(R, primes, t, D, i, j):
    """Whether rows i and j are multiples of each other at level t, modulo every prime."""
    for k in range(len(primes)):
        p = primes[k]
        for a in range(D):
            for b in range(a + 1, D):
                x = R[t, k, a, i] * R[t, k, b, j]
                y = R[t, k, b, i] * R[t, k, a, j]
                x -= np.floor(x / p) * p
                y -= np.floor(y / p) * p
                if x != y:
                    return False
    return True


@njit(**INNER)
def vanishes(R, primes, t, i, j):
    """Whether rows i and j of width 2 are multiples of each other modulo every prime."""
    for k in range(len(primes)):
        p = primes[k]
        x = R[t, k, 0, i] * R[t, k, 1, j]
        y = R[t, k, 1, i] * R[t, k, 0, j]
        if x - np.floor(x / p) * p != y - np.floor(y / p) * p:
            return False
    return True


@njit(**INNER)
def inverse_modulo(a, p):
    """1 / a modulo the prime p, both whole numbers in floats."""
    x, y, u, v = np.int64(a), np.int64(p), np.int64(1), np.int64(0)
    while x > 1:
        q = y // x
        x, y, u, v = y - q * x, x, v - q * u, u
    return np.float64(u if u >= 0 else u + np.int64(p))
