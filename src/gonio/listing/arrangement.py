"""Rows as a central hyperplane arrangement: distinct hyperplanes {x : a_i . x = 0}, whole-number normals, full rank.

Floats are rationals; each row may be scaled by a positive number without changing any sign. So every row becomes a
vector of whole numbers without common divisor. Zero rows are named and left out, rows on one line are merged into one
(with the sign that each has on it), and only as many columns are kept as the rank: the sign vectors depend on the
column space alone (Nielsen and Grivas 2026, Proposition E.2). `arrange_with_tolerance` does the same up to a tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int

PRIME = (1 << 61) - 1


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Distinct hyperplanes through 0, as primitive whole-number rows of full column rank.

    whole     the rows, Python integers (planes x rank)
    A         the same as floats, scaled to about unit length (planes x rank)
    plane     for each given row the plane it lies on, -1 for a zero row
    sign      +1 or -1: the given row is a positive multiple of sign * its plane's row; 0 for a zero row
    columns   the columns of the given rows that were kept
    """

    whole: tuple[tuple[int, ...], ...]
    A: Float[np.ndarray, "planes rank"]
    plane: Int[np.ndarray, " rows"]
    sign: Int[np.ndarray, " rows"]
    columns: tuple[int, ...]
    width: int

    @property
    def planes(self) -> int:
        return len(self.whole)

    @property
    def rank(self) -> int:
        return len(self.columns)

    @property
    def zero(self) -> Int[np.ndarray, " some"]:
        """The given rows that are zero."""
        return np.flatnonzero(self.plane < 0)

    @property
    def parallel(self) -> list[list[int]]:
        """Groups of given rows on one line, in order."""
        groups: dict[int, list[int]] = {}
        for i, p in enumerate(self.plane.tolist()):
            if p >= 0:
                groups.setdefault(p, []).append(i)
        return [g for g in groups.values() if len(g) > 1]

    def lift(self, x: list[Any]) -> list[Any]:
        """A point of the kept coordinates in all of them: the others are 0."""
        out = [0 * x[0] if x else 0] * self.width
        for c, v in zip(self.columns, x, strict=True):
            out[c] = v
        return out


def arrange(rows: list[list[int]]) -> Arrangement:
    """The arrangement of exact rows, given as whole numbers (each row up to a positive factor)."""
    width = len(rows[0]) if rows else 0
    plane, sign = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.int64)
    found: dict[tuple[int, ...], int] = {}
    for i, row in enumerate(rows):
        g = math.gcd(*row) if row else 0
        if g == 0:
            continue
        v = tuple(x // g for x in row)
        s = 1 if next(x for x in v if x) > 0 else -1
        # The first row of a line stands for it as given: row 0's plus side is then the plane's.
        flipped = tuple(-x for x in v)
        at = found.get(v)
        if at is None and flipped in found:
            at, s = found[flipped], -1
        elif at is not None:
            s = 1
        else:
            at, s = len(found), 1
            found[v] = at
        plane[i], sign[i] = at, s
    kept = list(found)
    columns = _independent(kept, width)
    whole = tuple(tuple(row[c] for c in columns) for row in kept)
    A = np.array([near_unit(row) for row in whole]).reshape(len(whole), len(columns))
    for x in (A, plane, sign):
        x.flags.writeable = False
    return Arrangement(whole, A, plane, sign, tuple(columns), width)


def arrange_with_tolerance(rows: Float[np.ndarray, "rows dim"], tol: float) -> tuple[Arrangement, list[str]]:
    """The arrangement of float rows in which values up to `tol` count as zero, and in words what was merged.

    A row shorter than tol times the longest is zero; rows whose directions differ by at most tol (up to sign) are
    one; a singular value of the directions up to tol times the largest is zero. No whole numbers stand behind it.
    """
    rows = rows.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    small = lengths <= tol * lengths.max(initial=0)
    plane, sign = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.int64)
    kept: list[np.ndarray] = []
    worst = 0.0
    for i in np.flatnonzero(~small):
        u = rows[i] / lengths[i]
        for k, v in enumerate(kept):
            s = 1 if u @ v > 0 else -1
            off = float(np.linalg.norm(u - s * v))
            if off <= tol:
                plane[i], sign[i], worst = k, s, max(worst, off)
                break
        else:
            plane[i], sign[i] = len(kept), 1
            kept.append(u)
    words = []
    if small.any():
        words.append(
            f"{int(small.sum())} rows of at most {lengths[small].max():.3g} were taken for zero (tolerance {tol:g})"
        )
    twins = int((plane >= 0).sum()) - len(kept)
    if twins:
        words.append(f"{twins} rows were merged with parallel ones, at most {worst:.3g} apart (tolerance {tol:g})")
    if not kept:
        empty = Arrangement((), np.zeros((0, 0)), plane, sign, (), rows.shape[1])
        return empty, words
    U = np.array(kept)
    _, s, V = np.linalg.svd(U, full_matrices=False)
    rank = int((s > tol * s[0]).sum())
    if rank < len(s):
        words.append(f"singular values of at most {s[rank]:.3g} were taken for zero, which leaves rank {rank}")
    A = U @ V[:rank].T
    A.flags.writeable = False
    whole = tuple(tuple(0 for _ in range(rank)) for _ in kept)
    return Arrangement(whole, A, plane, sign, tuple(range(rank)), rows.shape[1]), words


def near_unit(row: tuple[int, ...]) -> list[float]:
    """The row divided by a power of two near its largest entry, each entry rounded once."""
    top = 1 << max(max(abs(x) for x in row).bit_length() - 1, 0)
    return [x / top for x in row]


def _independent(rows: list[tuple[int, ...]], width: int) -> list[int]:
    """Columns that span the column space: pivots of an exact elimination."""
    from flint import fmpz_mat, nmod_mat

    if not rows:
        return []
    reduced, rank = nmod_mat(len(rows), width, [x % PRIME for row in rows for x in row], PRIME).rref()
    pivots = _pivots(reduced, rank)
    if rank < min(len(rows), width):  # a prime can divide a determinant: ask exactly
        exactly = fmpz_mat([list(row) for row in rows])
        if exactly.rank() != rank:
            reduced, _, rank = exactly.rref()
            pivots = _pivots(reduced, rank)
    return pivots


def _pivots(reduced: Any, rank: int) -> list[int]:
    at, out = 0, []
    for r in range(rank):
        while int(reduced[r, at]) == 0:
            at += 1
        out.append(at)
    return out


def whole_rows(table: Any) -> list[list[int]]:
    """Each row of floats, whole numbers or fractions times the smallest positive number that makes it whole."""
    out = []
    for row in table.tolist() if isinstance(table, np.ndarray) else table:
        pairs = [_ratio(v) for v in row]
        denominator = math.lcm(*(q for _, q in pairs)) if pairs else 1
        out.append([p * (denominator // q) for p, q in pairs])
    return out


def fractions(table: Any) -> list[list[Fraction]]:
    """A table of floats, whole numbers or fractions as exact fractions."""
    return [[Fraction(*_ratio(v)) for v in row] for row in (table.tolist() if isinstance(table, np.ndarray) else table)]


def _ratio(v: Any) -> tuple[int, int]:
    if isinstance(v, Fraction):
        return v.numerator, v.denominator
    return (v, 1) if isinstance(v, int) else float(v).as_integer_ratio()
