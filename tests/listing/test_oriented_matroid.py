"""Chirotopes against one determinant for each minor; general position; when two heads have one oriented matroid."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import GonioError
from gonio.listing.arrangement import arrange, whole_rows
from gonio.listing.oriented_matroid import chirotope, exact_sign, in_general_position, minor_signs, same_matroid


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 7), d=st.integers(1, 4))
def test_the_chirotope_is_the_sign_of_every_determinant(seed, n, d):
    M = np.random.default_rng(seed).integers(-2, 3, size=(n, d))
    a = arrange(whole_rows(M))
    if a.rank == 0:
        assert len(chirotope(M)) == 0
        return
    cut = M[:, list(a.columns)].tolist()
    naive = np.array([exact_sign([tuple(cut[i]) for i in s]) for s in combinations(range(n), a.rank)])
    first = naive[np.flatnonzero(naive)[0]]
    assert np.array_equal(chirotope(M), naive * first)
    if np.linalg.matrix_rank(M) == d:
        assert np.array_equal(np.abs(minor_signs(M.astype(float))), np.abs(naive))
    proper = [exact_sign([a.whole[i] for i in s]) != 0 for s in combinations(range(a.planes), a.rank)]
    assert in_general_position(a) == all(proper)


def test_two_heads_have_one_matroid_iff_they_have_the_same_label_sets():
    rng = np.random.default_rng(1)
    W = rng.normal(size=(8, 3))
    assert same_matroid(W, rng.uniform(0.5, 2, size=(8, 1)) * W @ rng.normal(size=(3, 3))).same
    moved = same_matroid(W, rng.normal(size=(8, 3)))
    assert not moved.same
    assert len(moved.where) == 3
    assert "different" in repr(moved)
    assert same_matroid(W, W @ np.diag([1.0, 2, 3]), eps=1e-10).same
    with pytest.raises(GonioError, match="as many"):
        same_matroid(W, W[:5])


def test_as_many_minors_in_doubt_as_are_asked_exactly_do_not_hide_a_later_zero():
    # Rows 0, 1, 2 are almost dependent, the one minor in doubt that there is room for; rows 1, 3, 5 are dependent.
    W = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 2.0**-50], [0, 0, 1], [1.25, 3, 5], [0, 1, 1]])
    assert not in_general_position(arrange(whole_rows(W)), most_in_doubt=1)
    assert in_general_position(arrange(whole_rows(W[:5])), most_in_doubt=1)


def test_large_whole_numbers_have_their_exact_chirotope():
    # Minors far beyond 2^53, some of them zero: floats cannot tell, residues and exact arithmetic do.
    rng = np.random.default_rng(0)
    M = rng.integers(-(2**40), 2**40, size=(7, 4))
    M[6] = M[0] + M[1] - M[2]
    naive = np.array([exact_sign([tuple(M[i].tolist()) for i in s]) for s in combinations(range(7), 4)])
    assert np.array_equal(chirotope(M.tolist()), naive * naive[np.flatnonzero(naive)[0]])
    assert (naive == 0).sum() == 1
