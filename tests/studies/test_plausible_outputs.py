"""Study 7: the ellipsoid holds what it says, no gauge moves the three columns, and the verdict comes out both ways."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.core.head import Head
from gonio.studies.plausible_outputs import _in_hull, against, distance, fitted, plausible_outputs, verdict
from gonio.studies.study import Measured
from tests.studies.made import equivalent, random_head


def test_distance_is_mahalanobis_and_coverage_is_as_asked():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(3000, 4)) @ rng.normal(size=(4, 4)) + 5
    e = fitted(F[:1500], F[1500:2200], 0.05)
    S = np.cov(F[:1500].T, bias=True)
    plain = np.array(
        [np.sqrt((x - F[:1500].mean(0)) @ np.linalg.inv(S) @ (x - F[:1500].mean(0))) for x in F[2200:2300]]
    )
    ratio = distance(e, F[2200:2300]) / plain
    assert np.allclose(ratio, ratio[0])
    assert 0.92 < e.contains(F[2200:]).mean() < 0.98


def test_a_state_outside_of_the_directions_of_the_fit_is_outside():
    F = np.random.default_rng(0).normal(size=(100, 2)) @ [[1.0, 0, 0], [0, 1, 0]]
    e = fitted(F[:50], F[50:])
    assert not e.contains(np.array([[0.0, 0, 1]]))[0]
    assert e.contains(np.zeros((1, 3)))[0]


def test_the_restricted_head_scores_as_the_head_does():
    head, F = random_head(8, 3, 60, bias=True)
    e = fitted(F[:30], F[30:])
    u = np.random.default_rng(1).normal(size=(20, 3))
    x = e.mean + u @ e.root.T
    a, b = head.logits(x), e.restrict(head).logits(u)
    assert np.allclose(a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True))


def test_plausible_winners_against_many_points_of_the_ellipsoid():
    head, F = random_head(12, 2, 80, seed=3)
    F = 0.4 * F + [1.5, 0]
    e = fitted(F[:40], F[40:])
    small = e.restrict(head)
    u = np.random.default_rng(0).normal(size=(200_000, 2))
    u *= (np.random.default_rng(1).random((200_000, 1)) ** 0.5) / np.linalg.norm(u, axis=1, keepdims=True)
    drawn = set(np.unique(small.logits(u).argmax(axis=1)).tolist())
    proven = set(gonio.can_win(small).wins.tolist())
    assert drawn <= proven
    assert len(proven) - len(drawn) <= 1  # a cell that is thinner than the points
    assert len(proven) < len(gonio.can_win(head).wins)


def test_the_three_columns_are_the_same_in_every_equivalent_form():
    head, F = random_head(40, 3, 120, bias=True)
    moved, G = equivalent(head, F)
    a, b = (plausible_outputs(h, X, labels=40) for h, X in ((head, F), (moved, G)))
    for x, y in zip(a.measured, b.measured, strict=True):
        assert x.value == pytest.approx(y.value), x.name


def test_states_in_a_corner_exclude_and_states_everywhere_do_not():
    head, F = random_head(30, 3, 300)
    corner = plausible_outputs(head, 0.05 * F + [3.0, 0, 0])
    assert "excludes much" in corner.verdict
    assert corner.against.startswith("the sources prove")
    everywhere = plausible_outputs(head, F)
    assert "excludes much" not in everywhere.verdict
    assert everywhere.against == ""
    assert everywhere["seen winners that are not plausible"].value == 0


def test_verdicts_are_what_the_numbers_say():
    def numbers(a, b, c):
        values = {"possible": a, "plausible": b, "seen": c}
        return {f"{k}: {c}": Measured(f"{k}: {c}", v, v, v) for k in ("winners", "rankings") for c, v in values.items()}

    assert "excludes much" in verdict(numbers(0.9, 0.5, 0.1))
    assert "excludes little" in verdict(numbers(0.9, 0.9, 0.1))
    assert "nearly the same" in verdict(numbers(0.9, 0.9, 0.9))
    assert against(numbers(0.9, 0.9, 0.1)) == ""


def test_the_hull_holds_means_and_no_point_far_out():
    points = np.random.default_rng(0).normal(size=(50, 3))
    asked = np.vstack([points[:5].mean(axis=0), [9.0, 9, 9]])
    assert _in_hull(points, asked).tolist() == [True, False]
    assert Head(points, link="softmax").shape == (50, 3)
