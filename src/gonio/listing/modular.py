"""Rows modulo primes: whether a minor of whole-number rows is exactly zero.

A minor is at most the product of the row lengths (Hadamard), so one that is 0 modulo primes whose product is larger is
0. The primes have 26 bits: a product of two residues is then exact in a float, and the kernels keep residues in floats,
[level, prime, column, row].
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.compiled import njit
from gonio.listing.kernel_options import INNER

if TYPE_CHECKING:
    from jaxtyping import Float

    from gonio.listing.arrangement import Arrangement

BITS = 26


@cache
def _primes(count: int, skip: int) -> tuple[int, ...]:
    """`count` primes below 2^26 in falling order, after the first `skip`."""
    out: list[int] = []
    small = [p for p in range(3, 1 << (BITS // 2), 2) if all(p % q for q in range(3, math.isqrt(p) + 1, 2))]
    x = (1 << BITS) - 1
    while len(out) < skip + count:
        if all(x % p for p in small):
            out.append(x)
        x -= 2
    return tuple(out[skip:])


def minor_bits(arrangement: Arrangement) -> int:
    """How many bits the largest minor of the arrangement's rows can have."""
    lengths = sorted((math.isqrt(sum(x * x for x in row)) + 1 for row in arrangement.whole), reverse=True)
    return math.prod(lengths[: arrangement.rank]).bit_length()


def rows_modulo_primes(
    arrangement: Arrangement, attempt: int = 0
) -> tuple[Float[np.ndarray, "primes rank planes"], Float[np.ndarray, " primes"]]:
    """The rows modulo primes that decide whether any of their minors vanishes; other primes for each attempt."""
    n, r = arrangement.A.shape
    count = minor_bits(arrangement) // (BITS - 1) + 1
    primes = _primes(count, attempt * count)
    out = np.empty((count, r, n))
    for k, p in enumerate(primes):
        out[k] = np.array([[x % p for x in row] for row in arrangement.whole], dtype=np.float64).T
    return out, np.array(primes, dtype=np.float64)


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


@njit(**INNER)
def eliminate_modulo(here, below, j, column, width, prime):
    """The next level modulo a prime: below = here[c] - (here[c, j] / here[column, j]) here[column] for all other c."""
    inverse, pivot_row, kept = inverse_modulo(here[column, j], prime), here[column], 0
    for c in range(width):
        if c == column:
            continue
        row, next_row = here[c], below[kept]
        factor = row[j] * inverse
        factor -= np.floor(factor / prime) * prime
        reciprocal = 1 / prime
        for i in range(len(row)):
            product = factor * pivot_row[i]
            product -= np.floor(product * reciprocal) * prime  # in [-p, p]: the quotient may be off by one
            x = row[i] - product
            x += prime if x < 0 else 0.0
            x -= prime if x >= prime else 0.0
            x += prime if x < 0 else 0.0
            next_row[i] = x
        kept += 1
