"""The blocked search against a plain sort: inner products with column terms, barred rows, queries, ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import GonioError
from gonio.core import byte_products, byte_rows
from gonio.core.row_table import RowTable
from gonio.similarity import nearest as nearest_rows
from gonio.similarity import pair_tiles
from gonio.similarity.nearest import nearest, nearest_by, nearest_by_cosine


def plain(scores, k, own=None, barred=None):
    scores = scores.astype(np.float64).copy()
    if barred is not None:
        scores[:, barred] = -np.inf
    if own is not None:
        scores[np.arange(len(own)), own] = -np.inf
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 90), st.integers(1, 5), st.data())
def test_the_search_is_a_sort_ties_by_index(n, d, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    k = data.draw(st.integers(1, n - 1))
    X = rng.integers(-2, 3, (n, d)).astype(np.float32)  # small whole numbers: many ties, and products without rounding
    column = rng.integers(-2, 3, n).astype(np.float32)
    near, scores = nearest(X, k, column=column)
    table = X @ X.T + column
    expected = plain(table, k, own=np.arange(n))
    assert near.tolist() == expected.tolist()
    assert np.array_equal(scores, np.take_along_axis(table, expected, 1))
    which = rng.integers(0, n, 3)
    assert nearest(X, k, column=column, which=which)[0].tolist() == expected[which].tolist()
    Q = rng.integers(-2, 3, (4, d)).astype(np.float32)
    assert nearest(X, k, queries=Q)[0].tolist() == plain(Q @ X.T, k).tolist()
    by = nearest_by(lambda mine, a, b: (table[mine])[:, a:b].copy(), n, k)
    assert by[0].tolist() == expected.tolist()


def test_many_blocks_and_a_large_k():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 4)).astype(np.float32)
    near, _ = nearest(X, 300, which=np.array([0, 2048, 4999]))
    expected = plain(X[[0, 2048, 4999]] @ X.T, 300, own=[0, 2048, 4999])
    assert np.mean(near == expected) > 0.99


def test_barred_rows_come_last_and_only_if_they_must():
    X = np.array([[1, 0], [0, 0], [1, 1], [0, 0], [0, 1]], np.float64)
    near, cosines = nearest_by_cosine(RowTable(X), 4)
    assert near[0].tolist() == [2, 4, 1, 3]
    assert np.isneginf(cosines[0, 2:]).all()
    assert near[1].tolist() == [0, 2, 4, 3]
    assert not (near == np.arange(5)[:, None]).any()


def test_bad_counts_get_one_sentence():
    X = np.eye(3, dtype=np.float32)
    for k in (0, 3, True, 1.5):
        with pytest.raises(GonioError, match="from 1 to 2"):
            nearest(X, k)
    with pytest.raises(GonioError, match="from 1 to 3"):
        nearest(X, 4, queries=X)


@pytest.mark.parametrize("extra", [False, True])
def test_all_pairs_by_square_blocks_are_those_row_by_row(extra, monkeypatch):
    rng = np.random.default_rng(7)
    keys = rng.integers(-2, 3, (700, 4)).astype(np.float32)  # many ties, and rows that are equal
    more = {}
    if extra:
        more = {"column": rng.integers(-2, 3, 700).astype(np.float32), "barred": rng.random(700) < 0.3}
    by_rows = nearest(keys, 6, **more)
    monkeypatch.setattr(nearest_rows, "SQUARE", 1)
    for block in (64, 100, 700, 1024):
        monkeypatch.setattr(nearest_rows, "BLOCK", block)
        near, best = nearest(keys, 6, **more)
        assert np.array_equal(near, by_rows[0])
        assert np.array_equal(best, by_rows[1])


@pytest.fixture
def in_bytes(monkeypatch):
    """All pairs are looked at in bytes first (by numpy, where the processor has no instruction for it)."""
    monkeypatch.setattr(byte_products, "are_fast", lambda: True)
    monkeypatch.setattr(byte_rows, "ENOUGH", 0)
    monkeypatch.setattr(nearest_rows, "SQUARE", 1)


def kinds_of_rows():
    """Whole numbers with many ties; plain rows; one far too long; near copies, which bytes do not tell apart."""
    rng = np.random.default_rng(3)
    yield rng.integers(-2, 3, (700, 4)).astype(np.float32)
    yield rng.standard_normal((900, 33)).astype(np.float32)
    long = rng.standard_normal((600, 20)).astype(np.float32)
    long[5] *= 1e6
    yield long
    near = np.repeat(rng.standard_normal((60, 50)), 12, axis=0)
    yield (near + 1e-4 * rng.standard_normal(near.shape)).astype(np.float32)
    yield np.zeros((40, 3), np.float32)


@pytest.mark.parametrize("extra", [False, True])
def test_all_pairs_in_bytes_first_are_those_in_floats(extra, in_bytes, monkeypatch):
    for X in kinds_of_rows():
        rng = np.random.default_rng(len(X))
        more = {}
        if extra:
            more = {"column": rng.standard_normal(len(X)).astype(np.float32), "barred": rng.random(len(X)) < 0.3}
        near, best = nearest(X, 6, **more)
        with monkeypatch.context() as without:
            without.setattr(byte_products, "are_fast", lambda: False)
            expected, scores = nearest(X, 7, **more)
        rounding = 1e-6 * float(np.abs(X).max()) ** 2
        np.testing.assert_allclose(best, scores[:, :6], rtol=1e-5, atol=rounding)
        # Where floats tell the scores apart, the lists are the same; of whole numbers, whose ties go by index, all are.
        told = (-np.diff(scores, axis=1) > 10 * rounding).all(axis=1)
        if not extra and (np.rint(X) == X).all():
            told[:] = True
        assert np.array_equal(near[told], expected[told, :6])
        assert told.mean() > 0.2 or len(X) != 900
        assert (near != np.arange(len(X))[:, None]).all()


def test_tiles_in_bytes_are_the_whole_in_bytes(in_bytes, monkeypatch):
    """Whoever looks at a pair, its score is the same to the last bit, and so are the lists."""
    monkeypatch.setattr(pair_tiles, "BLOCK", 64)
    for X in kinds_of_rows():
        whole = nearest(X, 5)
        monkeypatch.setattr(nearest_rows, "plain", lambda steps: False)
        tiles = nearest(X, 5)
        monkeypatch.setattr(nearest_rows, "plain", lambda steps: True)
        assert np.array_equal(whole[0], tiles[0])
        assert np.array_equal(whole[1], tiles[1])


def test_rows_that_are_not_finite_are_not_looked_at_in_bytes(in_bytes):
    X = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    assert pair_tiles.in_bytes(X, 50) is not None
    for bad in (np.inf, np.nan):
        X[7, 1] = bad
        with np.errstate(all="ignore"):
            assert pair_tiles.in_bytes(X, 50) is None


def test_square_blocks_fill_up_with_barred_rows(monkeypatch):
    monkeypatch.setattr(nearest_rows, "SQUARE", 1)
    monkeypatch.setattr(nearest_rows, "BLOCK", 2)
    near, best = nearest(np.eye(5, dtype=np.float32), 3, barred=np.array([True, True, True, False, False]))
    assert best[0].tolist() == [0.0, 0.0, -np.inf]
    assert near[0].tolist() == [3, 4, 1]
