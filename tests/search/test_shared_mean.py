"""One mean for many labels: what it settles never wins, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import gonio.search.propose
from gonio import AfterRMSNorm, Box, Head, Nonnegative, can_win
from gonio.proofs.bulk import verify_all
from gonio.search import shared_mean
from tests.proofs.second_verifier import refused


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
    ours = can_win(head)
    assert ours.stage.count("shared mean") > 60
    assert all(s.answer == "no" for s, stage in zip(ours.status, ours.stage, strict=True) if stage == "shared mean")
    monkeypatch.setattr(gonio.search.propose, "shared_means", lambda *_: [])
    assert np.array_equal(ours.codes, can_win(head).codes)
    certificates = list(ours.certificates(undecided=False))
    assert not verify_all(head, certificates).refused


def test_the_second_verifier_accepts_them(tmp_path):
    head = crowded(300, 3, 60, 1)
    found = can_win(head)
    some = [i for i, stage in enumerate(found.stage) if stage == "shared mean"][:5]
    assert some
    assert refused(head, [found.certificate(i) for i in some], tmp_path) == [None] * len(some)


def test_no_mean_where_nothing_crowds_inside():
    rng = np.random.default_rng(2)
    on_sphere = rng.normal(size=(400, 6))
    on_sphere /= np.linalg.norm(on_sphere, axis=1, keepdims=True)
    assert "shared mean" not in can_win(Head(on_sphere, link="softmax")).stage


def test_an_aim_outside_or_rows_that_span_too_little_are_given_up():
    rng = np.random.default_rng(3)
    V = rng.normal(size=(200, 4))
    assert shared_mean._tilted(V, np.full(4, 50.0)) is None
    assert shared_mean._newton(np.column_stack([V[:, :3], np.zeros(200)]), np.full(4, 0.1), np.zeros(4)) is None
    kept, p = shared_mean._tilted(V, np.full(4, 0.2))
    assert np.linalg.norm(p @ V[kept] - 0.2) <= 0.01 * 0.4 + 1e-9
    assert len(kept) <= shared_mean.LARGEST_SUPPORT * 4
    assert p.min() > shared_mean.SLIGHT * p.max()


def test_rows_that_are_all_rivals_leave_nothing_to_settle():
    W = np.random.default_rng(4).normal(size=(40, 5))
    assert "shared mean" not in can_win(Head(W, link="softmax", inputs=Box(-1, 1))).stage
