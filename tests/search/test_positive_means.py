"""One mean for many labels: what it settles never wins, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import gonio.search.propose
from gonio import AfterRMSNorm, Box, Head, Nonnegative, can_win
from gonio.ask.candidates import candidates_of
from gonio.ask.proof_blocks import never_by_spread
from gonio.core.blas_pool import BlasPool
from gonio.core.inputs import AllInputs
from gonio.proofs.bulk import verify_all
from gonio.search import positive_means
from gonio.search.cone import pose
from gonio.search.propose import propose
from gonio.search.scaled_box import ScaledBox
from gonio.search.whitening import prepare
from tests.proofs.second_verifier import refused
from tests.search.lp import best


def crowded(n: int = 900, d: int = 8, crowd: int = 120, seed: int = 0, biased: bool = True) -> Head:
    """A head with a crowd of untrained rows: one tight cluster near the middle, with low biases."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, d))
    W[:crowd] = 0.3 + 0.05 * rng.normal(size=(crowd, d))
    b = np.where(np.arange(n) < crowd, -2.0, 0.1 * rng.normal(size=n)) if biased else None
    return Head(W.astype(np.float32), bias=b, link="softmax")


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("inputs", [None, Box(-1, 2), Nonnegative(), "norm"])
def test_verdicts_are_those_without_it(biased, inputs, monkeypatch):
    head = crowded(biased=biased)
    inputs = AfterRMSNorm(np.linspace(0.5, 2, 8)) if inputs == "norm" else inputs
    head = head if inputs is None else head.replace(inputs=inputs)
    monkeypatch.setattr(ScaledBox, "possible", staticmethod(lambda problem: False))  # climbing would leave few to means
    ours = can_win(head)
    assert ours.stage.count("positive mean") > 60
    assert all(s.answer == "no" for s, stage in zip(ours.status, ours.stage, strict=True) if stage == "positive mean")
    monkeypatch.setattr(gonio.search.propose, "positive_means", lambda *_: [])
    assert np.array_equal(ours.codes, can_win(head).codes)
    certificates = list(ours.certificates(undecided=False))
    assert not verify_all(head, certificates).refused


def test_the_second_verifier_accepts_them(tmp_path):
    head = crowded(300, 3, 60, 1)
    found = can_win(head)
    some = [i for i, stage in enumerate(found.stage) if stage == "positive mean"][:5]
    assert some
    assert refused(head, [found.certificate(i) for i in some], tmp_path) == [None] * len(some)


def test_no_mean_where_nothing_crowds_inside():
    rng = np.random.default_rng(2)
    on_sphere = rng.normal(size=(400, 6))
    on_sphere /= np.linalg.norm(on_sphere, axis=1, keepdims=True)
    assert "positive mean" not in can_win(Head(on_sphere, link="softmax")).stage


def test_an_aim_outside_or_rows_that_span_too_little_are_given_up():
    rng = np.random.default_rng(3)
    V, none = rng.normal(size=(200, 4)), np.zeros((0, 4))
    assert positive_means._tilted(V, none, np.full(4, 50.0)) is None
    flat = np.column_stack([V[:, :3], np.zeros(200)])
    assert positive_means._newton(flat, none, np.full(4, 0.1), np.zeros(4)) is None
    kept, p, _, _ = positive_means._tilted(V, none, np.full(4, 0.2))
    assert np.linalg.norm(p @ V[kept] - 0.2) <= 0.01 * 0.4 + 1e-9
    assert p.min() > positive_means.SLIGHT * p.max()


def test_rays_take_part_in_a_mean():
    rng = np.random.default_rng(5)
    V, up = rng.normal(size=(200, 3)) - [0, 0, 4], np.array([[0.0, 0, 1]])
    assert positive_means._tilted(V, up[:0], np.array([0, 0, 4.0])) is None
    kept, p, beams, q = positive_means._tilted(V, up, np.array([0, 0, 4.0]))
    assert np.linalg.norm(p @ V[kept] + q @ up[beams] - [0, 0, 4]) <= 0.01 * 4 + 1e-9
    assert q[0] > 4


def test_a_bend_is_positive_and_steepest_where_it_is_not_bent():
    s = np.linspace(-40, 5, 4001)
    f = positive_means.bend(s)
    assert (f > 0).all()
    assert np.allclose(f[s > -0.5], 1 + s[s > -0.5], rtol=1e-15)
    assert np.allclose(f[s < -0.5], 0.25 / -s[s < -0.5], rtol=1e-15)
    rise = np.diff(f) / np.diff(s)
    assert ((rise > 0) & (rise <= 1 + 1e-9)).all()


def test_weights_are_the_label_to_rounding_and_only_labels_inside_arrive():
    rng = np.random.default_rng(6)
    W = np.vstack([rng.normal(size=(400, 5)), 0.4 + 0.2 * rng.normal(size=(60, 5)), 6 * rng.normal(size=(40, 5))])
    problem = AllInputs().reduce(W)
    with BlasPool() as workers:
        space = prepare(pose(problem), workers)
        left = np.arange(400, 500)
        mean = positive_means.mean_at(space, np.arange(400), space.V[400:460].mean(axis=0), workers)
        found = positive_means.bent_to(mean, space, left, workers)
    assert len(found.labels) > 30
    assert {best(problem, (i,)) <= 1e-9 for i in found.labels.tolist()} == {True}
    w = found.weights(slice(None))
    assert (w > 0).all()
    assert np.allclose(w @ W[mean.rivals], W[found.labels], rtol=0, atol=1e-13)
    assert np.allclose(w.sum(axis=1), 1, rtol=0, atol=1e-14)


def test_a_label_may_be_among_the_rows_of_its_mean():
    W = np.random.default_rng(7).normal(size=(600, 3))
    head = Head(W, link="softmax", inputs=Box(-1, 1))  # no label is known to win when the means are made of all rows
    found = can_win(head)
    settled = [i for i, stage in enumerate(found.stage) if stage == "positive mean"]
    assert len(settled) > 100
    assert not set(settled) & set(found.wins.tolist())
    assert not verify_all(head, [found.certificate(i) for i in settled]).refused


@pytest.mark.parametrize("inputs", [None, Box(-1, 2), Nonnegative()])
def test_what_is_spread_over_the_same_rows_is_proven_without_a_certificate_of_its_own(inputs):
    """Else every label would be polished and verified alone, slowly, and nothing would tell."""
    head = crowded(700, 6, 200, seed=8, biased=False)
    head = head if inputs is None else head.replace(inputs=inputs)
    candidates = candidates_of(head)
    proposals = propose(candidates.reduced(head.inputs.reduce(head.W, head.bias, differences=True)))
    spread = np.concatenate([found.labels for found in proposals.spread])
    of_cuts = np.concatenate([found.labels for found in proposals.spread if found.own.shape[1]])
    assert len(of_cuts) > 20
    proven = never_by_spread(head, candidates, proposals)
    assert np.isin(of_cuts, proven).mean() > 0.9
    assert np.isin(spread, proven).mean() > 0.95
