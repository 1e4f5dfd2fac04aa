"""The chirotope: the signs of all maximal minors, which fix the sign pattern and the whole oriented matroid.

For rows of rank r, chi(i_1 < .. < i_r) = sign det(rows i_1, .., i_r), in lexicographic order. Two heads have the same
sign pattern iff their chirotopes agree up to one global sign (after both are reduced to their rank). The walk shares
all eliminations: a minor costs two multiplications.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.listing.arrangement import Arrangement, arrange, near_unit, whole_rows
from gonio.listing.kernel_options import OPTIONS
from gonio.listing.kernel_options import UNIT_ROUNDOFF as UNIT
from gonio.listing.modular import inverse_modulo, vanishes
from gonio.listing.residues import residues

if TYPE_CHECKING:
    from jaxtyping import Float, Int

LARGEST = 2_000_000_000  # minors that are held: one byte each
DOUBTS = 256


@njit(**OPTIONS)
def _quick(A, eps, out):
    """Signs of all maximal minors in lexicographic order; those up to `eps` in size count as 0."""
    n, r = A.shape
    Q = np.zeros((r, r, n))
    rows = np.zeros(r, np.int64)
    P = np.ones(r + 1)
    for c in range(r):
        for i in range(n):
            Q[0, c, i] = A[i, c]
    pos, t = 0, 0
    rows[0] = -1
    while t >= 0:
        if t == r - 2:
            q0, q1 = Q[t, 0], Q[t, 1]
            last = rows[t - 1] if t > 0 else -1
            for i in range(last + 1, n - 1):
                a, b, m = q0[i] * P[t], q1[i] * P[t], n - 1 - i
                x, y, o = q0[i + 1 :], q1[i + 1 :], out[pos : pos + m]
                for j in range(m):
                    v = a * y[j] - b * x[j]
                    o[j] = np.int8(v > eps) - np.int8(v < -eps)
                pos += m
            t -= 1
            continue
        rows[t] += 1
        i = rows[t]
        D = r - t
        if i > n - D:
            t -= 1
            continue
        p, best = 0, -1.0
        for c in range(D):
            if abs(Q[t, c, i]) > best:
                best, p = abs(Q[t, c, i]), c
        if best == 0.0:
            below = 1
            for z in range(D - 1):
                below = below * (n - 1 - i - z) // (z + 1)
            out[pos : pos + below] = 0
            pos += below
            continue
        pv, qp, cc = Q[t, p, i], Q[t, p, i:], 0
        for c in range(D):
            if c != p:
                qc, w = Q[t, c, i:], Q[t + 1, cc, i:]
                f = qc[0] / pv
                for z in range(n - i):
                    w[z] = qc[z] - f * qp[z]
                cc += 1
        P[t + 1] = -P[t] * pv if p & 1 else P[t] * pv
        t += 1
        rows[t] = i


@njit(**OPTIONS)
def _minors(A, E0, R0, primes, store, out, unsure):
    """Signs of all maximal minors in lexicographic order; how many are in doubt (their rows go to `unsure`).

    Signs are told by a running rounding bound, and where that cannot tell, zero by the residues. Without primes every
    such minor is in doubt, and the walk ends when `unsure` is full.
    """
    n, r = A.shape
    K = len(primes)
    Q = np.zeros((r, r, n))
    E = np.zeros((r, n))
    R = np.zeros((r, K, r, n))
    rows = np.zeros(r, np.int64)
    P = np.ones(r + 1)
    size = np.zeros(n)
    E[0] = E0
    for c in range(r):
        for i in range(n):
            Q[0, c, i] = A[i, c]
            for k in range(K):
                R[0, k, c, i] = R0[k, c, i]
    pos, doubts, t = 0, 0, 0
    rows[0] = -1
    while t >= 0:
        if t == r - 2:
            q0, q1, e = Q[t, 0], Q[t, 1], E[t]
            last = rows[t - 1] if t > 0 else -1
            Pt = P[t]
            for i in range(last + 1, n - 1):
                a, b, m = q0[i] * Pt, q1[i] * Pt, n - 1 - i
                x, y, ei = q0[i + 1 :], q1[i + 1 :], e[i + 1 :]
                far, unclear = abs(a) + abs(b), 0
                for j in range(m):
                    v = a * y[j] - b * x[j]
                    bound = ei[j] * (far + 2 * e[i]) + (e[i] + 2 * UNIT * far) * (abs(x[j]) + abs(y[j]))
                    unclear += abs(v) <= bound
                if store:
                    o = out[pos : pos + m]
                    for j in range(m):
                        v = a * y[j] - b * x[j]
                        o[j] = np.int8(v > 0) - np.int8(v < 0)
                if unclear:
                    for j in range(m):
                        v = a * y[j] - b * x[j]
                        bound = ei[j] * (far + 2 * e[i]) + (e[i] + 2 * UNIT * far) * (abs(x[j]) + abs(y[j]))
                        if abs(v) <= bound:
                            if K and vanishes(R, primes, t, i, i + 1 + j):
                                if store:
                                    out[pos + j] = 0
                                continue
                            if doubts < len(unsure):
                                for k in range(t):
                                    unsure[doubts, k] = rows[k]
                                unsure[doubts, t] = i
                                unsure[doubts, t + 1] = i + 1 + j
                                unsure[doubts, r] = pos + j
                            doubts += 1
                    if not K and doubts >= len(unsure):
                        return pos, doubts
                pos += m
            t -= 1
            continue
        rows[t] += 1
        i = rows[t]
        D = r - t
        if i > n - D:
            t -= 1
            continue
        p, best = -1, -1.0
        for c in range(D):
            regular = True
            for k in range(K):
                regular &= R[t, k, c, i] != 0
            if regular and abs(Q[t, c, i]) > best:
                best, p = abs(Q[t, c, i]), c
        if best <= 2 * E[t, i]:
            below = 1
            for z in range(D - 1):
                below = below * (n - 1 - i - z) // (z + 1)
            gone = K > 0
            for c in range(D):
                for k in range(K):
                    gone &= R[t, k, c, i] == 0
            if not gone:  # a row that may or may not vanish: let exact arithmetic look at one minor under it
                if doubts < len(unsure):
                    for k in range(t + 1):
                        unsure[doubts, k] = rows[k]
                    for k in range(t + 1, r):
                        unsure[doubts, k] = i + k - t
                    unsure[doubts, r] = -1
                doubts += 1
                if not K:
                    return pos, len(unsure) + 1
            if store:
                for z in range(below):
                    out[pos + z] = 0
            pos += below
            continue
        pv, qp, e, en = Q[t, p, i], Q[t, p], E[t], E[t + 1]
        biggest = 0.0
        for c in range(D):
            biggest = max(biggest, abs(Q[t, c, i]))
        ratio = biggest / abs(pv)
        phi = (1 + ratio) * e[i] / (abs(pv) - e[i]) + 2 * UNIT * ratio
        for z in range(i, n):
            size[z] = 0.0
        cc = 0
        for c in range(D):
            if c == p:
                continue
            qc, w = Q[t, c, i:], Q[t + 1, cc, i:]
            f, qq, s = qc[0] / pv, qp[i:], size[i:]
            for z in range(n - i):
                x = qc[z] - f * qq[z]
                w[z] = x
                s[z] = max(s[z], abs(x))
            for k in range(K):
                pr = primes[k]
                f = R[t, k, c, i] * inverse_modulo(R[t, k, p, i], pr)
                f -= np.floor(f / pr) * pr
                for z in range(i, n):
                    x = f * R[t, k, p, z]
                    x -= np.floor(x / pr) * pr
                    v = R[t, k, c, z] - x
                    R[t + 1, k, cc, z] = v + pr if v < 0 else v
            cc += 1
        for z in range(i, n):
            en[z] = ((1 + ratio + phi) * e[z] + phi * abs(qp[z]) + UNIT * size[z]) * (1 + 8 * UNIT)
        P[t + 1] = P[t] if (pv > 0) == (p & 1 == 0) else -P[t]
        t += 1
        rows[t] = i
    return pos, doubts


def minor_signs(rows: Float[np.ndarray, "planes rank"], eps: float = 1e-10) -> Int[np.ndarray, " minors"]:
    """The signs of all maximal minors of a float matrix of full rank; minors up to `eps` in size count as 0."""
    A = np.ascontiguousarray(checks.matrix(rows, "minor_signs", "rows"), dtype=np.float64)
    n, r = A.shape
    count = math.comb(n, r)
    if count > LARGEST:
        raise GonioError(
            f"minor_signs: {n} rows of width {r} have {count:,} maximal minors; at most {LARGEST:,} are held."
        )
    out = np.zeros(count, np.int8)
    if r == 1:
        return (np.sign(A[:, 0]) * (np.abs(A[:, 0]) > eps)).astype(np.int8)
    if count:
        _quick(A, float(eps), out)
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
    if math.comb(n, r) > LARGEST:
        raise GonioError(
            f"chirotope: {n} rows of rank {r} have {math.comb(n, r):,} minors; at most {LARGEST:,} are held."
        )
    if r == 0:
        return np.zeros(0, np.int8)
    if r == 1:
        return aligned(np.array([(row[0] > 0) - (row[0] < 0) for row in whole], np.int8))
    A = np.array([near_unit(row) if any(row) else [0.0] * r for row in whole])
    kept = Arrangement(whole, A, full.plane, full.sign, full.columns, full.width)
    out = np.zeros(math.comb(n, r), np.int8)
    for attempt in range(8):
        R, primes = residues(kept, attempt)
        unsure = np.zeros((100_000, r + 1), np.int64)
        _, doubts = _minors(A, np.abs(A).max(axis=1) * UNIT, R, primes, True, out, unsure)
        if doubts <= len(unsure) and not (unsure[:doubts, r] < 0).any():
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


def in_general_position(arrangement: Arrangement) -> bool:
    """Whether every r rows of the arrangement are independent; False also where that could not be settled quickly."""
    n, r = arrangement.A.shape
    if r <= 1 or n <= r:
        return True
    unsure = np.zeros((DOUBTS, r + 1), np.int64)
    E0 = np.abs(arrangement.A).max(axis=1) * UNIT
    none = np.zeros((0, r, n)), np.zeros(0)
    _, doubts = _minors(arrangement.A, E0, *none, False, np.zeros(0, np.int8), unsure)
    if doubts > DOUBTS:
        return False
    return all(exact_sign([arrangement.whole[i] for i in which[:r]]) != 0 for which in unsure[:doubts].tolist())


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
