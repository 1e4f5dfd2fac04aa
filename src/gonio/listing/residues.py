"""Whole numbers modulo enough primes to tell zero: a minor that is 0 modulo all of them is 0.

A minor of whole-number rows is at most the product of the row lengths (Hadamard). Primes whose product is larger decide
whether it vanishes. They have 26 bits, so that a product of two residues is exact in a float.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

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


def residues(
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
