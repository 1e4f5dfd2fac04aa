"""The compiled inner loops against their plain writings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls as by_scipy

from gonio.search.kernels import nnls, strongest


def columns(rng: np.random.Generator, k: int, width: int, *, awkward: bool) -> np.ndarray:
    A = rng.standard_normal((k, width)) + 1.5 * rng.standard_normal(width)
    if awkward:  # copies, near copies and combinations of others
        A[k // 2] = A[0]
        A[k // 3] = A[1] + 1e-9 * rng.standard_normal(width)
        A[k - 1] = 0.3 * A[2] + 0.7 * A[3]
    return A


def solved(A: np.ndarray, b: np.ndarray, lam: np.ndarray, known: int, M: np.ndarray) -> tuple[np.ndarray, int]:
    order = np.empty(A.shape[1] + 1, np.int64)
    p = nnls(A, b, lam, M, order, known, 3 * len(A) + 50)
    return order[:p].copy(), p


@pytest.mark.parametrize("awkward", [False, True])
@pytest.mark.parametrize(("k", "width"), [(5, 3), (8, 20), (30, 9), (60, 33)])
def test_least_squares_over_positive_weights_is_scipys(k, width, awkward):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = columns(rng, k, width, awkward=awkward)
        b = A.mean(axis=0) + rng.standard_normal(width)
        lam, M = np.zeros(k), np.empty((width + 1, width + 1))
        P, p = solved(A, b, lam, 0, M)
        assert set(P) == set(np.flatnonzero(lam))
        assert (lam >= 0).all()
        left = np.linalg.norm(b - lam @ A)
        assert left == pytest.approx(by_scipy(A.T, b)[1], rel=1e-6, abs=1e-7)
        if not awkward:  # M is the inverse of a factor of the passive block
            F = np.tril(M[:p, :p])
            np.testing.assert_allclose(F.T @ F @ (A[P] @ A[P].T), np.eye(p), atol=1e-7)


def test_a_passive_set_with_its_factor_goes_on_where_it_was():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        A = columns(rng, 40, 12, awkward=False)
        lam, M = np.zeros(20), np.empty((13, 13))
        first = A.mean(axis=0) + rng.standard_normal(12)
        P, p = solved(A[:20].copy(), first, lam, 0, M)
        aim = first + 0.3 * rng.standard_normal(12)  # the aim may have moved
        B = np.concatenate([A[P], A[20:]])
        kept, anew = np.append(lam[P], np.zeros(20)), np.append(lam[P], np.zeros(20))
        solved(B, aim, kept, p, M)
        solved(B, aim, anew, 0, np.empty((13, 13)))
        best = by_scipy(B.T, aim)[1]
        assert np.linalg.norm(aim - kept @ B) == pytest.approx(best, rel=1e-7, abs=1e-9)
        assert np.linalg.norm(aim - anew @ B) == pytest.approx(best, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("room", [1, 4, 24])
def test_the_strongest_rivals_of_a_row_are_its_largest_entries_above_the_floor(room):
    rng = np.random.default_rng(room)
    S = rng.standard_normal((50, 300)).astype(np.float32)
    floor = rng.uniform(-1, 4, 50).astype(np.float32)
    own = rng.integers(0, 300, 50)
    found, value, count = np.zeros((50, room), np.int64), np.empty((50, room), np.float32), np.zeros(50, np.int64)
    for a, b in ((0, 130), (130, 300)):
        strongest(np.ascontiguousarray(S[:, a:b]), own, own, floor, a, found, value, count)
    for i in range(50):
        row = S[i].astype(np.float64)
        row[own[i]] = -np.inf
        above = np.flatnonzero(row > floor[i])
        assert min(count[i], room + 1) == min(len(above), room + 1)
        best = above[np.argsort(-row[above])][:room]
        assert set(found[i, : min(count[i], room)]) == set(best)


def test_a_list_that_is_partly_filled_gives_up_its_weakest():
    S = np.array([[5, 1, 6, 4]], np.float32)
    nobody = np.array([-1])
    found, value, count = np.zeros((1, 3), np.int64), np.empty((1, 3), np.float32), np.zeros(1, np.int64)
    for a in (0, 2):
        strongest(S[:, a : a + 2].copy(), nobody, nobody, np.zeros(1, np.float32), a, found, value, count)
    assert sorted(found[0]) == [0, 2, 3]
    assert count[0] == 4
