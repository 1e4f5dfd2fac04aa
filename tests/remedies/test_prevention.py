"""Unit rows and the Voronoi bias: all labels can win over all inputs, and not for non-negative ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gonio import GonioError, Head, Nonnegative
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import Wins
from gonio.remedies.prevention import unit_rows, voronoi_bias


def unable(head, low):
    """The labels that no x with low <= x <= 100 makes win, by one LP each."""
    W, b = head.W, np.zeros(len(head)) if head.bias is None else head.bias
    n, d = W.shape
    out = []
    for i in range(n):
        js = np.delete(np.arange(n), i)
        found = linprog(
            np.r_[np.zeros(d), -1], A_ub=np.column_stack([W[js] - W[i], np.ones(n - 1)]), b_ub=b[i] - b[js],
            bounds=[(low, 100)] * d + [(None, 1)],
        )  # fmt: skip
        if -found.fun <= 1e-8:
            out.append(i)
    return out


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.integers(2, 9), st.integers(0, 2**32), st.sampled_from([1e-3, 1.0, 1e3]))
def test_every_label_wins_at_its_own_row(n, d, seed, scale):
    W = np.random.default_rng(seed).standard_normal((n, d)) * scale
    for head in (unit_rows(Head(W, link="softmax")), voronoi_bias(Head(W, link="softmax"))):
        proofs = [Wins(head.digest, i, head.W[i]) for i in range(n)]
        assert not verify_all(head, proofs).refused
        assert "every label can win" in head.source.decided["can win"]
        assert "narrower" not in head.source.decided["can win"]


@pytest.mark.parametrize(("d", "about"), [(2, 51), (3, 44), (5, 19), (8, 0)])
def test_random_rows_need_it_and_both_ways_help(d, about):
    head = Head(np.random.default_rng(0).standard_normal((60, d)), link="softmax")
    assert abs(len(unable(head, -100)) - about) <= 9
    assert not unable(unit_rows(head), -100)
    assert not unable(voronoi_bias(head), -100)


def test_neither_helps_for_non_negative_inputs():
    head = Head(np.random.default_rng(0).standard_normal((60, 3)), link="softmax", inputs=Nonnegative())
    for made in (unit_rows(head), voronoi_bias(head)):
        assert len(unable(made, 0)) > 20
        assert "nothing is promised" in made.source.decided["can win"]


def test_twins_are_told():
    head = Head([[1.0, 2], [2.0, 4], [0, 1]], link="softmax")
    assert "2 labels that share" in unit_rows(head).source.decided["can win"]
    assert "share" not in voronoi_bias(head).source.decided["can win"]


def test_huge_and_tiny_rows_have_a_direction():
    W = np.array([[3e200, 4e200], [3e-200, -4e-200]])
    assert np.allclose(unit_rows(Head(W, link="softmax")).W, [[0.6, 0.8], [0.6, -0.8]])


def test_what_has_no_direction_is_refused():
    with pytest.raises(GonioError, match="row 1 is zero"):
        unit_rows(Head([[1.0, 2], [0, 0]], link="softmax"))
    with pytest.raises(GonioError, match="cosine"):
        voronoi_bias(Head(np.eye(2), link="cosine"))
    assert unit_rows(Head(2 * np.eye(2), link="cosine")).link == "dot"
