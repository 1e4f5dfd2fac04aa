"""The triangular factor of rows that are given out in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from gonio.core.triangular_factor import triangular_factor


@pytest.mark.parametrize(("n", "d"), [(1, 3), (5, 5), (7, 2), (1000, 3), (403, 20)])
def test_it_is_that_of_the_whole_table(n, d):
    X = np.random.default_rng(n).normal(size=(n, d)) * np.geomspace(1, 1e-9, d)
    R = triangular_factor(lambda span: X[slice(*span)], n, d)
    wanted = np.linalg.svd(X, compute_uv=False)
    assert np.allclose(np.linalg.svd(R, compute_uv=False)[: len(wanted)], wanted, rtol=1e-6, atol=0)
