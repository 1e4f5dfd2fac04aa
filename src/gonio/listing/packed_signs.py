"""Sign vectors as bits: bit i % 64 of word i // 64 is 1 where row i has the sign +."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from gonio.core.compiled import njit
from gonio.listing.kernel_options import INNER, OPTIONS

ONE = np.uint64(1)
NO_BITS = np.uint64(0)


@register_jitable
def padded(n):
    """The next multiple of 16: loops over so many entries leave no rest beside the vector registers."""
    return (n + 15) // 16 * 16


@njit(**OPTIONS)
def row_bits(n, width):
    """The bit of each row within its word; no bit for the entries from n on, which only fill up."""
    bits = np.zeros(width, np.uint64)
    for i in range(n):
        bits[i] = ONE << np.uint64(i & 63)
    return bits


@njit(**INNER)
def signs_at(x0, x1, rows0, rows1, bound, bits):
    """Of at most 64 rows of width 2, the bits of those positive at (x0, x1), and of those that may be zero there."""
    positive = NO_BITS
    doubt = NO_BITS
    for i in range(len(bits)):
        value = rows0[i] * x0 + rows1[i] * x1
        positive |= bits[i] if value > 0 else NO_BITS
        doubt |= bits[i] if abs(value) <= bound else NO_BITS
    return positive, doubt


def pack(signs: np.ndarray) -> np.ndarray:
    """Rows of booleans as 64-bit words."""
    n = signs.shape[1]
    filled = np.zeros((len(signs), (n + 63) // 64 * 64), bool)
    filled[:, :n] = signs
    return np.packbits(filled, axis=1, bitorder="little").view(np.uint64)


def unpack(words: np.ndarray, n: int) -> np.ndarray:
    """Packed words as rows of n booleans."""
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little")[:, :n].astype(bool)
