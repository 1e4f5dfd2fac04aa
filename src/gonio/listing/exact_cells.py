"""Cells by exact arithmetic alone (python-flint), each with a rational point inside: slow, short, and beyond doubt.

The bijection of `generic_walk` and `degenerate_walk`, written plainly: it decides what floats cannot, gives a point in
each cell, and is what the quick kernels are tested against. Signs and points refer to the arrangement's rows and kept
columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Vector = list[Any]


class NotGenericError(Exception):
    """The functionals are not generic for this arrangement: draw others."""


def cell_of_set(
    rows: Sequence[Sequence[Any]], C: Sequence[Sequence[Any]], S: Sequence[int], owner: dict[int, tuple[int, int]]
):
    """The signs of the cell of the set S, and the inverse that gives a point in it.

    rows: the exact rows; C: exact functionals c_1, .., c_{r-1}; S: its rows in the order they were added; owner: for
    each row in the closure of S, the place in S of the row whose sign it shares or opposes, and +1 or -1.
    """
    from flint import fmpq, fmpq_mat

    n, r, k = len(rows), len(rows[0]), len(S)
    D = r - k
    frame = [rows[0], *C[: D - 1]]
    objective = C[D - 1] if k < r - 1 else C[0]
    M = fmpq_mat(r, r, [fmpq(x) for row in ([rows[j] for j in S] + frame) for x in row])
    try:
        inverse = M.inv()
    except ZeroDivisionError:
        raise NotGenericError from None
    column = lambda c: [inverse[i, c] for i in range(r)]  # noqa: E731
    u = column(r - 1) if k == r - 1 else [-x for x in column(r - 1)]
    y = [sum((objective[i] * inverse[i, c] for i in range(r)), fmpq(0)) for c in range(k)]
    if any(v == 0 for v in y):
        raise NotGenericError
    signs, off = [0] * n, None if k == r - 1 else column(k)
    for i in range(n):
        if i in owner:
            t, e = owner[i]
            signs[i] = e * (1 if y[t] > 0 else -1)
            continue
        v = _dot(rows[i], u)
        if v == 0 and off is not None:
            v = _dot(rows[i], off)
        if v == 0:
            raise NotGenericError
        signs[i] = 1 if v > 0 else -1
    return signs, (u, off, [(column(t), 1 if y[t] > 0 else -1) for t in range(k)])


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total += x * y
    return total


def point_inside(rows: Sequence[Sequence[Any]], S: Sequence[int], signs: Sequence[int], frame: tuple) -> Vector:
    """A rational point of the cell: u + e off + e^2 s_1 v_1 + e^3 s_2 v_2 + .., for e small enough.

    frame: the point u of S; a direction `off` in which a_0 > 0, or None where u has it already; and for each row of S a
    direction v in which that row alone among S grows, with its sign s.
    """
    from flint import fmpq

    u, off, steps = frame
    order = sorted(range(len(S)), key=lambda t: S[t])
    e = fmpq(1, 16)
    while True:
        x, w = list(u), e
        if off is not None:
            x = [a + w * b for a, b in zip(x, off, strict=True)]
            w *= e
        for t in order:
            c, s = steps[t]
            x = [a + w * s * b for a, b in zip(x, c, strict=True)]
            w *= e
        values = [_dot(row, x) for row in rows]
        if all(v != 0 and (v > 0) == (s > 0) for v, s in zip(values, signs, strict=True)):
            return x
        e /= 256


def cells(
    rows: Sequence[Sequence[int]], C: Sequence[Sequence[Any]], *, points: bool = False, first: int = -1
) -> Iterator[tuple[list[int], Vector | None]]:
    """All cells with + on row 0, any degeneracy: (signs, a point or None).

    first: only those whose largest element of S is this row (0: the empty S; below 0: all), as the quick walk cuts its
    work.
    """
    n, r = len(rows), len(rows[0])

    def emit(S: list[int], owner: dict[int, tuple[int, int]]):
        signs, frame = cell_of_set(rows, C, S, owner)
        return signs, point_inside(rows, S, signs, frame) if points else None

    def walk(Q: list[list[int]], before: int, S: list[int], owner: dict[int, tuple[int, int]], m: int):
        if S or first <= 0:
            yield emit(S, owner)
        D = r - len(S)
        if D == 1 or (not S and first == 0):
            return
        seen = set(owner)
        for j in range(1, m):
            if j in seen or (not S and 0 <= first < j):
                continue
            p = next(c for c in range(D) if Q[j][c])
            pivot, R, new, broken = Q[j][p], [], {}, False
            for i in range(n):
                q = Q[i]
                w = [(pivot * q[c] - q[p] * Q[j][c]) // before for c in range(D) if c != p]
                R.append(w)
                if i not in owner and not any(w):
                    seen.add(i)
                    broken |= i < j
                    new[i] = (len(S), 1 if _dot(q, Q[j]) > 0 else -1)
            if not broken and (S or first < 0 or j == first):
                yield from walk(R, pivot, [*S, j], {**owner, **new}, j)

    if r == 1:
        # One line: every row is on it, and row 0's plus side is the one cell.
        point = [rows[0][0]] if points else None
        yield [1 if row[0] * rows[0][0] > 0 else -1 for row in rows], point
        return
    yield from walk([list(a) for a in rows], 1, [], {}, n)


def random_functionals(r: int, seed: int = 0) -> list[list[int]]:
    """r random whole-number functionals."""
    import random

    rng = random.Random(seed)  # noqa: S311  generic directions, not secrets
    return [[rng.randrange(-(2**20), 2**20) for _ in range(r)] for _ in range(r)]
