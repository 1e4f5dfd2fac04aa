"""Labels below combinations of shared rivals and of their own, over bounded and unbounded inputs: a program decides."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Nonnegative, Observed
from gonio.proofs.shared_support import SharedRivals
from tests.search.lp import best

SETS = {
    "all": lambda d: AllInputs(),
    "orthant": lambda d: Nonnegative(),
    "box": lambda d: Box(-1, 2),
    "half box": lambda d: Box(np.full(d, -0.25), np.where(np.arange(d) % 2, np.inf, 1.0)),
    "rms": lambda d: AfterRMSNorm(np.linspace(0.5, 2, d)),
    "layer": lambda d: AfterLayerNorm(np.linspace(0.5, 2, d), np.linspace(-1, 1, d)),
}


def random_case(rng, inputs: str):
    """A head whose last rows are near combinations of the first, with biases near theirs, and weights near those."""
    d = int(rng.integers(2, 5))
    n, m, k = int(rng.integers(d + 2, d + 8)), 6, int(rng.integers(0, 3))
    W, b = rng.normal(size=(n, d)), rng.normal(size=n) * rng.choice([0, 0.3])
    weights = rng.dirichlet(np.ones(n), m)
    own, own_weights = rng.integers(0, n, (m, k)), rng.random((m, k)) * 0.2
    if k:
        weights *= 1 - own_weights.sum(axis=1, keepdims=True)
    total = weights @ W + (own_weights[:, :, None] * W[own]).sum(axis=1)
    bias = weights @ b + (own_weights * b[own]).sum(axis=1)
    off = rng.choice([0, 0, 1e-3, 0.1], (m, 1)) * rng.normal(size=(m, d))
    lower = rng.choice([0, 0, 1e-12, 0.05, 0.5], m) * rng.choice([1, 1, -1], m)
    head = Head(np.vstack([W, total - off]), bias=np.append(b, bias - lower), link="softmax", inputs=SETS[inputs](d))
    return head, np.arange(n), np.arange(n, n + m), weights, own, own_weights


@pytest.mark.parametrize("inputs", SETS)
def test_what_is_accepted_never_wins(inputs):
    rng = np.random.default_rng(list(SETS).index(inputs))
    accepted = displaced = 0
    for _ in range(40):
        head, rivals, labels, weights, own, own_weights = random_case(rng, inputs)
        shared = SharedRivals(head, rivals, weights.mean(axis=0))
        problem = head.inputs.reduce(head.W, head.bias, differences=True)
        for k in np.flatnonzero(shared.never_above(labels, weights, own, own_weights)).tolist():
            assert best(problem, (int(labels[k]),)) <= 1e-9
            accepted += 1
            at = weights[k] @ head.W[rivals] + own_weights[k] @ head.W[own[k]]
            displaced += bool(np.abs(at - head.W[labels[k]]).max() > 1e-6)
    assert accepted > 30
    assert displaced > 2 if inputs != "all" else not displaced


def test_weights_of_another_sign_are_refused_and_those_of_the_label_itself_do_not_count():
    rng = np.random.default_rng(9)
    W = rng.normal(size=(9, 2))
    w = rng.dirichlet(np.ones(8), 1)
    W[8] = w[0] @ W[:8]
    head = Head(W, link="softmax")
    label, rivals = np.array([8]), np.arange(8)
    shared = SharedRivals(head, rivals, w[0])
    assert shared.never_above(label, w).all()
    assert not shared.never_above(label, w - 0.3 * np.eye(8)[:1] + 0.3 * np.eye(8)[1:2]).any()
    # The label among the rivals with any weight: the others still have it as their mean.
    both = SharedRivals(head, np.arange(9), np.ones(9) / 9)
    for u in (0.4, -0.4):
        assert both.never_above(label, np.append((1 - u) * w[0], u)[None]).all()
    # A rival of its own with a negative weight, and one with a positive one that the rest makes up for.
    there = np.array([[0]])
    moved = w.copy()
    moved[0, 0] += 0.05
    assert not shared.never_above(label, moved, there, np.array([[-0.05]])).any()
    moved[0, 0] -= 0.1
    assert shared.never_above(label, moved, there, np.array([[0.05]])).all() == (moved[0, 0] > 0)


def test_equals_alone_prove_nothing():
    head = Head(np.tile([[1.0, 2.0]], (6, 1)), link="softmax")
    shared = SharedRivals(head, np.arange(5), np.ones(5) / 5)
    assert not shared.never_above(np.array([5]), np.full((1, 5), 0.2)).any()


def test_given_embeddings_and_no_labels_give_nothing():
    rng = np.random.default_rng(1)
    W, w = rng.normal(size=(8, 2)), rng.dirichlet(np.ones(7), 1)
    W[7] = w[0] @ W[:7]
    head = Head(W, link="softmax", inputs=Observed(rng.normal(size=(4, 2))))
    shared = SharedRivals(head, np.arange(7), w[0])
    assert not shared.never_above(np.array([7]), w).any()
    assert shared.never_above(np.zeros(0, np.int64), w[:0]).shape == (0,)


def test_a_bias_just_above_is_not_accepted_and_just_below_is():
    rows = np.array([[0.0, 0], [4, 0], [0, 4], [1, 1]])  # the last is (2, 1, 1) / 4 of the others, exactly
    w = np.array([[0.5, 0.25, 0.25]])
    for step, wanted in ((2.0**-40, False), (-(2.0**-40), True)):
        b = np.array([0.0, 1, 1, 0.5 + step])
        head = Head(rows, bias=b, link="softmax")
        assert (sum(Fraction(v) * Fraction(float(c)) for v, c in zip(w[0], b, strict=False)) >= b[3]) == wanted
        shared = SharedRivals(head, np.arange(3), w[0])
        assert shared.never_above(np.array([3]), w).all() == wanted


def most_without_bias(inputs, D) -> float:
    """The supremum of -D.x over the inputs, from the definition: a corner of the box, or the far point of the ball."""
    d = len(D)
    if inputs.shape == "ball":
        gain, shift = inputs.gain_and_shift(d)
        z = -D * gain / np.linalg.norm(D * gain) * np.sqrt(d)
        return float(-D @ (gain * z + shift))
    low, high = inputs.bounds(d)
    return float(sum(max(-v * a, -v * b) for v, a, b in zip(D, low, high, strict=True)))


@pytest.mark.parametrize("scale", [1.0, 1024.0, 2.0**-9])
@pytest.mark.parametrize("own_bias", [0.0, 3.0])
@pytest.mark.parametrize(
    "inputs",
    [
        Box([-1, -3, 0.5], [2, -0.5, 4]),
        AfterRMSNorm([0.5, 2, 3]),
        AfterLayerNorm([0.5, 2, 3], [5.0, -1, 2]),
        AfterLayerNorm([0.5, 2, 3], [-5.0, 1, -2]),
    ],
)
def test_biases_must_make_up_for_a_displacement_and_no_more(inputs, own_bias, scale):
    rng = np.random.default_rng(3)
    rows = np.vstack([np.eye(3), -np.eye(3), rng.normal(size=(3, 3))]) * scale
    w, own, u = np.full(8, 0.1), np.array([[8]]), np.array([[0.2]])
    D = np.array([0.3, -0.2, 0.25]) * scale
    needed = most_without_bias(inputs, D)
    b = np.append(rng.normal(size=8), own_bias)
    mean = w @ b[:8] + 0.2 * b[8]
    for more, wanted in ((1e-6, True), (-1e-6, False)):
        label = w @ rows[:8] + 0.2 * rows[8] - D
        bias = np.append(b, mean - needed - more * max(1, abs(needed)))
        head = Head(np.vstack([rows, label]), bias=bias, link="softmax", inputs=inputs)
        shared = SharedRivals(head, np.arange(8), w)
        assert shared.never_above(np.array([9]), w[None], own, u).all() == wanted


def test_small_errors_of_weights_are_made_up_for_where_inputs_have_no_bound():
    rng = np.random.default_rng(4)
    W = rng.normal(size=(12, 3))
    w = rng.dirichlet(5 * np.ones(11), 1)
    W[11] = w[0] @ W[:11]
    for inputs in (AllInputs(), Nonnegative(), Box(-np.inf, 0)):
        head = Head(W, link="softmax", inputs=inputs)
        shared = SharedRivals(head, np.arange(11), w[0])
        for _ in range(8):
            off = w + 1e-9 * rng.normal(size=w.shape)
            assert shared.never_above(np.array([11]), off / off.sum()).all()


def test_labels_that_score_alike_everywhere_prove_nothing_though_their_rows_differ():
    head = Head([[1.0], [2.0], [1.5]], link="softmax", inputs=AfterRMSNorm([0.0]))
    assert len(head.equals(2)) == 2
    shared = SharedRivals(head, np.arange(2), np.ones(2) / 2)
    assert shared.spread is not None
    assert not shared.never_above(np.array([2]), np.full((1, 2), 0.5)).any()


def test_an_inverse_that_is_too_far_off_is_not_used(monkeypatch):
    head = Head([[0.0], [1.0], [0.25]], link="softmax")
    label, rivals, w = np.array([2]), np.arange(2), np.array([[0.75, 0.25]])
    assert SharedRivals(head, rivals, w[0]).never_above(label, w).all()
    monkeypatch.setattr("gonio.proofs.shared_support._right_inverse", lambda A, typical: 0.4 * np.linalg.inv(A))
    assert not SharedRivals(head, rivals, w[0]).never_above(label, w).any()


def test_labels_looked_at_a_few_at_a_time_are_judged_alike(monkeypatch):
    rng = np.random.default_rng(11)
    for inputs in SETS:
        head, rivals, labels, weights, own, own_weights = random_case(rng, inputs)
        shared = SharedRivals(head, rivals, weights.mean(axis=0))
        at_once = shared.never_above(labels, weights, own, own_weights)
        monkeypatch.setattr("gonio.proofs.shared_support.ENTRIES", 1)
        assert np.array_equal(shared.never_above(labels, weights, own, own_weights), at_once)
        monkeypatch.undo()
