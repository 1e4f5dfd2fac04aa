"""The nearest points of a cone, against non-negative least squares one point at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from gonio import Box, Head, Nonnegative
from gonio.core.blas_pool import BlasPool
from gonio.core.directions import unit
from gonio.search import cone_projection, cuts
from gonio.search import propose as propose_module
from gonio.search.cone_projection import nearest_in_cone
from gonio.search.proposals import STAGE
from gonio.search.propose import propose


def projected(points, rays):
    with BlasPool() as workers:
        return nearest_in_cone(points, rays, workers)


def test_the_example_of_the_page():
    near, weights = projected(np.array([[2.0, -1.0]]), -np.eye(2))
    assert near == pytest.approx(np.array([[2.0, 0.0]]), abs=1e-6)
    assert weights == pytest.approx(np.array([[0.0, 1.0]]), abs=1e-6)


def test_many_points_are_projected_and_the_weights_say_which_rays_bind(monkeypatch):
    monkeypatch.setattr(cone_projection, "STEPS", 1000)
    monkeypatch.setattr(cone_projection, "AT_ONCE", 7)
    rng = np.random.default_rng(0)
    for d, k in ((3, 3), (6, 4), (10, 7)):
        points, rays = rng.standard_normal((40, d)), unit(rng.standard_normal((k, d)))
        near, weights = projected(points, rays)
        assert weights.min() >= 0
        for v, x, mu in zip(points, near, weights, strict=True):
            true, _ = nnls(rays.T, v)
            assert x == pytest.approx(v - true @ rays, abs=1e-3)
            assert x == pytest.approx(v - mu @ rays, abs=1e-5)
            assert (rays @ x).max() < 1e-3


def test_a_few_steps_are_nearer_than_none():
    rng = np.random.default_rng(1)
    points, rays = rng.standard_normal((60, 12)), unit(rng.standard_normal((12, 12)))
    near, _ = projected(points, rays)
    outside = [np.linalg.norm(np.maximum(x @ rays.T, 0), axis=1).mean() for x in (points, near)]
    assert outside[1] < 0.2 * outside[0]


@pytest.mark.parametrize("inputs", [Nonnegative(), Box(0, 3)], ids=str)
def test_more_labels_win_in_the_first_try_for_it_and_the_verdicts_are_the_same(inputs, monkeypatch):
    rng = np.random.default_rng(2)
    W = rng.standard_normal((400, 24)) @ (np.eye(24) + 0.2 * rng.standard_normal((24, 24)))
    head = Head(W, link="softmax", inputs=inputs)
    problem = inputs.reduce(head.W)
    monkeypatch.setattr(propose_module, "FEW", len(head.W))  # nobody climbs
    with_it = propose(problem)
    monkeypatch.setattr(cuts, "MOST", 0)
    without = propose(problem)
    tries = [int((p.stage == STAGE["first try"]).sum()) for p in (with_it, without)]
    assert tries[0] > 1.1 * tries[1] > 0
    assert np.array_equal(with_it.status, without.status)
