"""Neighbours that rounding does not choose: against a plain sort of cosines in float64, of equal ones the first."""

from __future__ import annotations

import numpy as np
import pytest

from gonio.core.row_table import RowTable
from gonio.similarity import near_ties
from gonio.similarity import nearest as scans
from gonio.similarity.nearest import nearest_by_cosine


def plainly(W: np.ndarray, k: int) -> np.ndarray:
    size = np.linalg.norm(W.astype(float), axis=1)
    C = (W.astype(float) @ W.astype(float).T) / np.maximum(np.outer(size, size), 1e-300)
    C[:, size == 0] = -2
    np.fill_diagonal(C, -3)
    steps = np.where(C > -2, np.rint(C * 2**20), -np.inf)
    return np.argsort(-steps, axis=1, kind="stable")[:, :k]


def crowd(n: int, d: int) -> np.ndarray:
    """A third of the rows in one direction but for 1e-9, another third but for 1e-4, in any order."""
    rng = np.random.default_rng(n)
    W = rng.normal(size=(n, d))
    W[: n // 3] = rng.normal(size=d) + 1e-9 * rng.normal(size=(n // 3, d))
    W[n // 3 : 2 * n // 3] = rng.normal(size=d) + 1e-4 * rng.normal(size=(2 * n // 3 - n // 3, d))
    return W[rng.permutation(n)] * rng.uniform(0.1, 9, (n, 1))


@pytest.mark.parametrize("k", [1, 10, 299])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_lists_are_those_of_a_plain_sort(k, kind):
    W = crowd(300, 12).astype(kind)
    assert (nearest_by_cosine(RowTable(W), k)[0] == plainly(W, k)).all()


def test_also_of_all_pairs_at_once_by_any_scan(monkeypatch):
    W = crowd(1200, 20)
    wanted = plainly(W, 10)
    for square in (100_000, 1000):
        monkeypatch.setattr(scans, "SQUARE", square)
        assert (nearest_by_cosine(RowTable(W), 10)[0] == wanted).all()
    monkeypatch.setattr("gonio.core.byte_rows.ENOUGH", 0)
    assert (nearest_by_cosine(RowTable(W), 10)[0] == wanted).all()


def test_a_longer_list_begins_with_the_shorter_one():
    W = crowd(200, 6)
    long = nearest_by_cosine(RowTable(W), 30)[0]
    for k in (1, 5, 29):
        assert (nearest_by_cosine(RowTable(W), k)[0] == long[:, :k]).all()


def test_whole_numbers_are_chosen_by_order_where_cosines_are_equal():
    W = np.random.default_rng(5).integers(-1, 2, (150, 3)).astype(float)
    W[7] = 0
    live = np.flatnonzero(W.any(axis=1))
    near, cosines = nearest_by_cosine(RowTable(W), 12)
    assert (near[live] == plainly(W, 12)[live]).all()
    assert not np.isin(near[live], np.flatnonzero(~W.any(axis=1))).any()
    assert (np.diff(cosines[live], axis=1) <= near_ties.STEP).all()


def test_some_rows_are_asked_and_are_not_in_their_own_lists():
    W = crowd(300, 12)
    some = np.array([5, 250, 17, 17])
    near, _ = nearest_by_cosine(RowTable(W), 10, some)
    assert (near == plainly(W, 10)[some]).all()


def test_another_rounding_of_the_scores_changes_no_list(monkeypatch):
    W = crowd(400, 16)
    before, _ = nearest_by_cosine(RowTable(W), 10)
    real = scans.nearest
    rng = np.random.default_rng(0)

    def elsewhere(keys, k, **kw):
        return real((keys * (1 + 1e-7 * rng.choice([-1, 0, 1], keys.shape))).astype(np.float32), k, **kw)

    monkeypatch.setattr(scans, "nearest", elsewhere)
    after, _ = nearest_by_cosine(RowTable(W), 10)
    assert (before == after).all()
    plain, _ = real(scans.unit_rows(RowTable(W)), 10)
    moved, _ = elsewhere(scans.unit_rows(RowTable(W)), 10)
    assert (plain != moved).any()  # which float32 alone would


def test_lengths_beyond_floats_are_no_matter():
    W = crowd(120, 5)
    huge = W * np.where(np.arange(120) % 2, 1e200, 1e-200)[:, None]
    assert (nearest_by_cosine(RowTable(huge), 8)[0] == plainly(W, 8)).all()
