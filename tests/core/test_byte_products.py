"""Products of bytes are whole numbers, the same however they are made, and rounding to bytes is off by what is said."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gonio.core import byte_products, byte_rows
from gonio.core.byte_rows import ByteRows


def numbers(rng, rows, width, most=127):
    return rng.integers(-most, most + 1, (rows, width)).astype(np.int8)


def made(rows, columns, first, last, depth):
    out = np.full(byte_products.room(len(rows), last - first), 7, np.int32)
    return byte_products.products(rows, byte_products.packed(columns), first, last, depth, out)[:, : last - first]


@pytest.fixture(params=["instruction", "numpy"])
def way(request, monkeypatch):
    if request.param == "instruction" and not byte_products.are_fast():
        pytest.skip("this processor has no instruction for bytes, or nothing is compiled")
    if request.param == "numpy":
        monkeypatch.setattr(byte_products, "_have_their_instruction", lambda: False)


@pytest.mark.parametrize("shape", [(1, 1, 4), (8, 48, 8), (9, 49, 12), (7, 100, 64), (30, 1100, 20), (3, 16, 260)])
def test_they_are_the_products_of_whole_numbers(way, shape):
    m, n, width = shape
    rng = np.random.default_rng(sum(shape))
    rows, columns = numbers(rng, m, width), numbers(rng, n, width)
    for depth in {4, width // 8 * 4 or 4, width}:
        for first, last in {(0, n), (n // 32 * 16, n), (0, max(1, n - 5))}:
            true = rows[:, :depth].astype(int) @ columns[first:last, :depth].T.astype(int)
            assert np.array_equal(made(rows, columns, first, last, depth), true)


def test_parts_of_blocks_are_refused(way):
    rows, columns = np.zeros((2, 8), np.int8), np.zeros((40, 8), np.int8)
    for first, depth in ((8, 8), (0, 6)):
        with pytest.raises(AssertionError, match="blocks of 16"):
            made(rows, columns, first, 40, depth)


def test_sums_of_the_widest_rows_do_not_overflow(way):
    width = byte_products.WIDEST
    rows, columns = np.full((2, width), 127, np.int8), np.full((3, width), 127, np.int8)
    rows[1], columns[1] = -127, -127
    got = made(rows, columns, 0, 3, width)
    assert np.array_equal(got, rows.astype(np.int64) @ columns.T.astype(np.int64))


def exact(row):
    return [Fraction(float(v)) for v in row]


def inner(u, v):
    return sum(a * b for a, b in zip(u, v, strict=True))


def awkward_rows(rng):
    """Float32 rows of all sizes: plain, with one large entry, whole numbers, tiny, and zero."""
    width = int(rng.integers(1, 9))
    V = rng.standard_normal((6, width)).astype(np.float32)
    V[1, 0] *= 1000
    V[2] = rng.integers(-3, 4, width)
    V[3] *= np.float32(1e-42)
    V[4] *= np.float32(1e17)
    V[5] = 0
    return V


def test_what_rounding_to_bytes_leaves_is_bounded():
    for seed in range(60):
        V = awkward_rows(np.random.default_rng(seed))
        rows = ByteRows.of(V)
        assert rows.numbers.shape[1] % 4 == 0
        assert (np.abs(rows.numbers.astype(int)).max(axis=1) == np.where(np.arange(6) == 5, 0, 127))[
            V.any(axis=1)
        ].all()
        assert (rows.scale > 0).all()
        for v, p, scale, rest in zip(V, rows.numbers, rows.scale, rows.rest, strict=True):
            left = [a - Fraction(float(scale)) * int(b) for a, b in zip(exact(v), p, strict=False)]
            assert inner(left, left) <= Fraction(float(rest)) ** 2
            # And no more than half a step each, so that the first look is worth something.
            assert rest <= scale / 2 * np.sqrt(len(v)) * 1.001 + 1e-13 * np.linalg.norm(v.astype(float))


def test_products_of_rows_are_within_what_the_rounding_left():
    for seed in range(60):
        V = awkward_rows(np.random.default_rng(seed))
        V = V[(np.abs(V).max(axis=1) < 1e10) & (np.abs(V).max(axis=1) > 1e-20)]
        rows = ByteRows.of(V)
        out = np.empty(byte_products.room(len(V), len(V)), np.int32)
        S = byte_products.products(rows.numbers, rows.packed, 0, len(V), rows.numbers.shape[1], out)
        norms = np.linalg.norm(V.astype(float), axis=1) * (1 + 1e-12)
        for i, u in enumerate(V):
            for j, v in enumerate(V):
                seen = Fraction(float(rows.scale[i])) * Fraction(float(rows.scale[j])) * int(S[i, j])
                most = rows.rest[i] * norms[j] + (norms[i] + rows.rest[i]) * rows.rest[j]
                assert abs(inner(exact(u), exact(v)) - seen) <= Fraction(float(most)) * Fraction(1 + 1e-12)


def test_bytes_are_taken_where_they_pay(monkeypatch):
    monkeypatch.setattr(byte_products, "are_fast", lambda: True)
    assert byte_rows.worthwhile(50_000, 50_000, 768)
    assert not byte_rows.worthwhile(500, 500, 64)
    assert not byte_rows.worthwhile(500_000, 500_000, 2 * byte_products.WIDEST)
    monkeypatch.setattr(byte_products, "are_fast", lambda: False)
    assert not byte_rows.worthwhile(50_000, 50_000, 768)
