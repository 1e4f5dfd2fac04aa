"""A long walk cut into pieces holds every cell once; signs in doubt are handed on, and no cell is listed twice."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from gonio import Head, label_sets, rankings
from gonio.listing.counts import count_rankings
from gonio.listing.pieces import forest_pieces


@pytest.mark.parametrize("size", [1, 7, 50])
@pytest.mark.parametrize("least", [1, 2])
def test_pieces_hold_every_forest_once_wherever_they_are_cut(size, least):
    for n in range(3, 9):
        for r in range(2, n):
            expected = sum(_elementary(range(least, n), k) for k in range(r))
            assert sum(p.count for p in forest_pieces(n, r, least, size)) == expected


def _elementary(values, k):
    return sum(math.prod(c) for c in combinations(values, k))


@pytest.mark.parametrize(("n", "d"), [(28, 3), (40, 3), (300, 2), (13, 4)])
def test_rankings_of_many_labels_in_few_dimensions_are_cut_into_pieces_that_fit(n, d):
    ranked = rankings(Head(np.random.default_rng(n).normal(size=(n, d)), link="softmax"))
    assert ranked.count == count_rankings(n, d) == sum(len(b.rows) for b in ranked.blocks())


@pytest.mark.parametrize("seed", range(60))
def test_nearly_degenerate_heads_list_no_cell_twice(seed):
    """Signs that floats cannot tell are handed on: with them trusted, seed 20 lists two cells twice."""
    rng = np.random.default_rng(seed)
    W = rng.integers(-2, 3, (9, 4)) + rng.standard_normal((9, 4)) * 2.0 ** -rng.integers(40, 52)
    sets = label_sets(Head(W, link="sigmoid"))
    array = sets.to_array()
    assert len(np.unique(array, axis=0)) == len(array) == sets.count
