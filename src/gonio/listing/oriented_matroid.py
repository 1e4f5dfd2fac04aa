"""The chirotope and the oriented matroid of a head's rows.

chi(i_1 < .. < i_r) = sign det(rows i_1, .., i_r), for rows of rank r, in lexicographic order: the signs of all maximal
minors. They fix the sign pattern: two heads have the same one iff their chirotopes agree up to one global sign, after
both are reduced to their rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.listing.arrangement import Arrangement, arrange, near_unit, whole_rows
from gonio.listing.kernel_options import UNIT_ROUNDOFF
from gonio.listing.maximal_minors import proven_signs, signs_by_size
from gonio.listing.modular import rows_modulo_primes

if TYPE_CHECKING:
    from jaxtyping import Float, Int

MOST_MINORS = 2_000_000_000  # minors that are held: one byte each
MOST_IN_DOUBT = 100_000  # minors whose sign is asked of exact arithmetic
ATTEMPTS = 8  # draws of primes


def minor_signs(rows: Float[np.ndarray, "planes rank"], eps: float = 1e-10) -> Int[np.ndarray, " minors"]:
    """The signs of all maximal minors of a float matrix of full rank; minors up to `eps` in size count as 0."""
    A = np.ascontiguousarray(checks.matrix(rows, "minor_signs", "rows"), dtype=np.float64)
    n, r = A.shape
    count = math.comb(n, r)
    if count > MOST_MINORS:
        raise GonioError(
            f"minor_signs: {n} rows of width {r} have {count:,} maximal minors; at most {MOST_MINORS:,} are held."
        )
    out = np.zeros(count, np.int8)
    if r == 1:
        return (np.sign(A[:, 0]) * (np.abs(A[:, 0]) > eps)).astype(np.int8)
    if count:
        signs_by_size(A, float(eps), out)
    return out


def chirotope(table: Any) -> Int[np.ndarray, " minors"]:
    """The exact chirotope of a matrix, whose floats are the rationals they are; reduced to its rank first.

    Fixed up to one global sign, which is chosen so that the first sign that is not 0 is +.

    >>> chirotope([[1, 0], [0, 1], [1, 1]]).tolist()
    [1, 1, -1]
    """
    rows = whole_rows(checks.matrix(table, "chirotope", "table") if not isinstance(table, list) else table)
    full = arrange(rows)
    # Zero and parallel rows stay in a chirotope: only the columns are reduced.
    whole = tuple(tuple(row[c] for c in full.columns) for row in rows)
    n, r = len(rows), full.rank
    if math.comb(n, r) > MOST_MINORS:
        raise GonioError(
            f"chirotope: {n} rows of rank {r} have {math.comb(n, r):,} minors; at most {MOST_MINORS:,} are held."
        )
    if r == 0:
        return np.zeros(0, np.int8)
    if r == 1:
        return aligned(np.array([(row[0] > 0) - (row[0] < 0) for row in whole], np.int8))
    A = np.array([near_unit(row) if any(row) else [0.0] * r for row in whole])
    kept = Arrangement(whole, A, full.plane, full.sign, full.columns, full.width)
    out = np.zeros(math.comb(n, r), np.int8)
    for attempt in range(ATTEMPTS):
        unsure = np.zeros((MOST_IN_DOUBT, r + 1), np.int64)
        doubts = proven_signs(A, _rounding(A), *rows_modulo_primes(kept, attempt), True, out, unsure)
        if doubts <= len(unsure):
            for *which, at in unsure[:doubts].tolist():
                out[at] = exact_sign([whole[i] for i in which])
            return aligned(out)
    raise GonioError("chirotope: rounding leaves too many minors in doubt; the rows' sizes differ too much for floats.")


def aligned(signs: np.ndarray) -> np.ndarray:
    """The signs, all turned where the first that is not 0 is -."""
    for start in range(0, len(signs), 4096):
        first = np.flatnonzero(signs[start : start + 4096])[:1]
        if len(first):
            return signs if signs[start + first[0]] > 0 else -signs
    return signs


def exact_sign(rows: list[tuple[int, ...]]) -> int:
    """The sign of a determinant of whole numbers."""
    from flint import fmpz_mat

    value = int(fmpz_mat([list(row) for row in rows]).det())
    return (value > 0) - (value < 0)


def in_general_position(arrangement: Arrangement, most_in_doubt: int = 256) -> bool:
    """Whether every r rows of the arrangement are independent: no maximal minor is zero.

    False also where rounding leaves more than `most_in_doubt` minors to exact arithmetic.
    """
    A = arrangement.A
    n, r = A.shape
    if r <= 1 or n <= r:
        return True
    unsure = np.zeros((most_in_doubt, r + 1), np.int64)
    no_primes = np.zeros((0, r, n)), np.zeros(0)
    doubts = proven_signs(A, _rounding(A), *no_primes, False, np.zeros(0, np.int8), unsure)
    if doubts > most_in_doubt:
        return False
    return all(exact_sign([arrangement.whole[i] for i in which[:r]]) != 0 for which in unsure[:doubts].tolist())


def _rounding(A: np.ndarray) -> np.ndarray:
    """How far an entry of each row may be off that was rounded once."""
    return np.abs(A).max(axis=1) * UNIT_ROUNDOFF


@dataclass(frozen=True, eq=False, repr=False)
class SameMatroid:
    """Whether two matrices have one oriented matroid: equal chirotopes up to a global sign, so equal sign patterns."""

    same: bool
    minors: int
    differ: int
    where: tuple[int, ...] | None  # the rows of the first minor that differs

    def __repr__(self) -> str:
        says = (
            "the same"
            if self.same
            else f"different: {self.differ:,} of {self.minors:,} minors, first at rows {self.where}"
        )
        return f"SameMatroid({self.minors:,} minors)\n  {says}"


def same_matroid(first: Any, second: Any, *, eps: float | None = None) -> SameMatroid:
    """Compare the oriented matroids of two matrices with as many rows: exactly, or with minors up to `eps` taken as 0.

    With eps the matrices must have full column rank and the minors are compared as they stand, as floats.
    """
    a, b = (chirotope(x) if eps is None else aligned(minor_signs(x, eps)) for x in (first, second))
    n = len(first)
    if len(second) != n:
        raise GonioError(f"same_matroid: the matrices have {n} and {len(second)} rows; they need as many.")
    if a.shape != b.shape:
        return SameMatroid(False, max(len(a), len(b)), max(len(a), len(b)), None)
    off = np.flatnonzero(a != b)
    where = None
    if len(off):
        from itertools import combinations, islice

        r = arrange(whole_rows(np.asarray(first, float))).rank if eps is None else np.shape(first)[1]
        where = next(islice(combinations(range(n), r), int(off[0]), None))
    return SameMatroid(not len(off), len(a), len(off), where)
