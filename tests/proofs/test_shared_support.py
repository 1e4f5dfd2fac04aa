"""Labels that are means of the same rivals, proven with one inverse: exact coordinates decide what may be accepted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gonio import Head, Observed
from gonio.proofs import NeverWins, shared_support
from gonio.proofs.bulk import verify_all
from gonio.proofs.shared_support import never_above_means


def coordinates(corners, point):
    """The exact weights, summing to 1, with which the corners of a simplex make the point."""
    d = len(point)
    table = [[Fraction(float(c[k])) for c in corners] + [Fraction(float(point[k]))] for k in range(d)]
    table.append([Fraction(1)] * (d + 2))
    for k in range(d + 1):
        pivot = next(r for r in range(k, d + 1) if table[r][k])
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [v / table[k][k] for v in table[k]]
        for r in range(d + 1):
            if r != k:
                table[r] = [a - table[r][k] * b for a, b in zip(table[r], table[k], strict=True)]
    return [row[-1] for row in table]


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e120, 1e-120])
def test_only_exact_positive_means_with_no_lower_bias_are_accepted(biased, scale):
    rng = np.random.default_rng(int(biased))
    accepted = near_edge = 0
    for _ in range(60):
        d = int(rng.integers(1, 5))
        corners = rng.normal(size=(d + 1, d)) * scale
        w = rng.dirichlet(np.ones(d + 1), 6)
        edge = 10.0 ** rng.uniform(-18, -3, 6) * rng.choice([-1, 1], 6)  # just inside or outside a face
        w[:, 0] = np.where(rng.random(6) < 0.6, edge, w[:, 0])
        w[:, 1:] *= (1 - w[:, :1]) / w[:, 1:].sum(axis=1, keepdims=True)
        W = np.vstack([corners, w @ corners])
        b = None
        if biased:
            b = rng.normal(size=d + 1) * scale
            b = np.concatenate([b, w @ b + rng.choice([0, 1e-16, -1e-16, 1e-3, -1e-3], 6) * scale])
        head = Head(W, bias=b, link="softmax")
        rivals, labels = np.arange(d + 1), np.arange(d + 1, d + 7)
        claimed = np.maximum(w, 10.0 ** rng.uniform(-18, -12))
        for k in np.flatnonzero(never_above_means(head, labels, rivals, claimed)):
            exact = coordinates(corners, W[labels[k]])
            assert min(exact) > 0
            if b is not None:
                assert (
                    sum(u * (Fraction(float(b[j])) - Fraction(float(b[labels[k]]))) for j, u in enumerate(exact)) >= 0
                )
            accepted += 1
            near_edge += min(exact) < 1e-9
    assert accepted > 35
    assert near_edge > 1  # close to the edge, yet proven


def test_equal_biases_cost_no_proof():
    rng = np.random.default_rng(2)
    W = rng.normal(size=(12, 3))
    w = rng.dirichlet(np.ones(12), 5)
    head = Head(np.vstack([W, w @ W]), bias=np.full(17, 0.1), link="softmax")
    assert never_above_means(head, np.arange(12, 17), np.arange(12), w).all()


def test_no_proof_without_an_inverse_or_near_weights(monkeypatch):
    rng = np.random.default_rng(3)
    W = rng.normal(size=(12, 3))
    w = rng.dirichlet(np.ones(12), 5)
    head = Head(np.vstack([W, w @ W]), link="softmax")
    labels, rivals = np.arange(12, 17), np.arange(12)
    assert never_above_means(head, labels, rivals, w).all()
    assert not never_above_means(head, labels, rivals[:3], w[:, :3]).any()  # too few rivals
    far = w + 1e-4 * rng.normal(size=w.shape)
    assert not never_above_means(head, labels, rivals, far / far.sum(axis=1, keepdims=True)).any()
    flat = Head(np.column_stack([W[:, :2], np.zeros(12)]), link="softmax")
    assert not never_above_means(flat, rivals[:4], rivals[4:], np.full((4, 8), 1 / 8)).any()
    line = Head(np.vstack([np.outer(np.arange(12.0), [1, 1, 1]), W]), link="softmax")
    assert not never_above_means(line, labels, rivals, w).any()  # rivals on one line
    monkeypatch.setattr(shared_support, "_right_inverse", lambda A, typical: None)
    assert not never_above_means(head, labels, rivals, w).any()


def test_a_matrix_without_inverse_is_told():
    assert shared_support._right_inverse(np.zeros((2, 3)), np.ones(3)) is None


@pytest.mark.parametrize("inputs", [None, "observed"])
def test_certificates_of_the_same_rivals_are_verified_together(inputs, monkeypatch):
    rng = np.random.default_rng(4)
    W = rng.normal(size=(20, 3))
    w = rng.dirichlet(np.ones(20), 8)
    rows = np.vstack([W, w @ W, W[:1]])  # the last is the equal of the first
    head = Head(rows, link="softmax", inputs=None if inputs is None else Observed(rng.normal(size=(5, 3))))
    rivals = np.arange(20)
    good = [NeverWins(head.digest, 20 + k, rivals, w[k]) for k in range(8)]
    bad = [
        NeverWins("another head", 20, rivals, w[0]),
        NeverWins(head.digest, 3, rivals, w[0]),  # its own rival
        NeverWins(head.digest, 28, rivals, w[0]),  # the equal of a rival
        NeverWins(head.digest, 99, rivals, w[0]),
        NeverWins(head.digest, 21, rivals, w[0]),  # weights of another label
        NeverWins(head.digest, 20, np.full(20, 50), w[0]),
    ]
    asked: list[int] = []
    monkeypatch.setattr(
        NeverWins, "verify", lambda c, h, plain=NeverWins.verify: asked.append(int(c.label)) or plain(c, h)
    )
    seen = verify_all(head, good + bad)
    if inputs is None:
        assert sorted(seen.refused) == list(range(8, 14))
        assert (seen.bounds[:8] == 0).all()
        assert sorted(asked) == sorted(int(c.label) for c in bad)
        assert sorted(verify_all(head, good[:2] + bad[:1]).refused) == [2]
    else:  # weights are no proof where only given embeddings count
        assert len(seen.refused) == 14


@pytest.mark.parametrize(("x", "claimed"), [(-5e-9, 3.5e-9), (-1e-9, 7e-9)])
def test_an_inverse_that_is_far_off_widens_the_bound(x, claimed, monkeypatch):
    # 70 % of the inverse: exact weights lie 1 / 0.7 times as far as it says, and here beyond 0.
    monkeypatch.setattr(shared_support, "_right_inverse", lambda A, typical: 0.7 * np.linalg.inv(A))
    head = Head([[0.0], [1.0], [x]], link="softmax")
    assert coordinates([[0.0], [1.0]], [x])[1] < 0
    weights = np.array([[1 - claimed, claimed]])
    assert not never_above_means(head, np.array([2]), np.array([0, 1]), weights).any()
