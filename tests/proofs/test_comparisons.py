"""Possible, Impossible and Open: what they prove against exact arithmetic, and what they refuse."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Observed
from gonio.proofs.certificate_base import CertificateError
from gonio.proofs.comparisons import ZERO, Impossible, Open, Possible
from gonio.proofs.kinds import of_dict

NONE = np.zeros(0, np.int64)
SQUARE = Head([[1, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]], link="softmax")
BIASED = SQUARE.replace(bias=np.array([0, 0, 0, 0, 1.0]))


def possible(head, above, below, x, top=()):
    return Possible(head.digest, above, below, top, x)


def impossible(head, above, below, weights, top=()):
    return Impossible(head.digest, above, below, top, weights)


def test_a_chain_of_comparisons_holds_at_its_input_by_the_exact_gap():
    claim = possible(SQUARE, [0, 1, ZERO], [1, 4, 3], [2.0, 1.0])
    assert 0 < claim.verify(SQUARE) <= 1.0  # scores 3, 1, -1, -3, 0
    assert of_dict(claim.to_dict()) == claim


def test_differences_that_rounding_hides_are_told_in_whole_numbers():
    head = Head([[1, 0], [1, 2.0**-60], [0, 0]], link="softmax")
    x = [1.0, 1.0]
    assert possible(head, [1], [0], x).verify(head) == 2.0**-60
    with pytest.raises(CertificateError, match="not all of its comparisons hold"):
        possible(head, [0], [1], x).verify(head)
    with pytest.raises(CertificateError, match="not all"):
        possible(head, [1, 0], [0, 1], x).verify(head)


def test_the_top_is_above_all_others_or_the_claim_is_refused():
    assert possible(SQUARE, NONE, NONE, [2.0, 1.0], top=[0, 1]).verify(SQUARE) > 0
    with pytest.raises(CertificateError):
        possible(SQUARE, NONE, NONE, [2.0, 1.0], top=[0, 3]).verify(SQUARE)
    close = Head([[1, 0], [1, -(2.0**-60)], [0, 0]], link="softmax")
    assert possible(close, NONE, NONE, [1.0, 1.0], top=[0]).verify(close) == 2.0**-60
    everyone = possible(close, NONE, NONE, [1.0, 1.0], top=[0, 1, 2])
    assert everyone.verify(close) == np.inf


def test_after_a_layer_norm_the_point_meant_is_the_exact_one():
    gain, shift = np.array([0.3, 1.1, 0.7]), np.array([0.1, -0.2, 0.05])
    head = Head(
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]], np.array([0.5, 0, 0]), link="softmax", inputs=AfterLayerNorm(gain, shift)
    )
    z = np.array([1.0, -1 / 3, -2 / 3])
    x = gain * z + shift
    mean = (
        sum(
            (Fraction(float(a)) - Fraction(float(s))) / Fraction(float(g))
            for a, s, g in zip(x, shift, gain, strict=True)
        )
        / 3
    )
    meant = [Fraction(float(a)) - Fraction(float(g)) * mean for a, g in zip(x, gain, strict=True)]
    gap = possible(head, [0], [1], x).verify(head)
    true = meant[0] + Fraction(1, 2) - meant[1]
    assert 0 < Fraction(gap) <= true
    assert float(true) - gap < 1e-12
    edge = Head([[1, 0, 0], [1, 2.0**-70, 0], [0, 0, 1]], link="softmax", inputs=AfterLayerNorm(gain, shift))
    exact = Fraction(2) ** -70 * meant[1]
    found = possible(edge, [0] if exact < 0 else [1], [1] if exact < 0 else [0], x).verify(edge)
    assert Fraction(found) <= abs(exact)
    assert found == pytest.approx(float(abs(exact)), rel=1e-12)


@pytest.mark.parametrize("bias", [None, np.array([0.5, 0.25, -1.0, 0.0])])
@pytest.mark.parametrize(
    "inputs", [AllInputs(), Box(-1, 1), AfterRMSNorm([1.0, 2.0]), AfterLayerNorm([1.0, 2.0], [0.25, -0.5])]
)
def test_comparisons_that_contradict_each_other_never_hold(inputs, bias):
    head = Head([[1, 2], [0.5, -1], [3, 0.25], [0, 0]], bias, link="sigmoid", inputs=inputs)
    assert impossible(head, [0, 1, 2], [1, 2, 0], [1 / 3, 1 / 3, 1 / 3]).verify(head) <= 0
    assert impossible(head, [0, ZERO], [ZERO, 0], [0.5, 0.5]).verify(head) <= 0
    if bias is None:
        with pytest.raises(CertificateError, match="undecided"):
            impossible(head, [0, 1], [1, 2], [0.5, 0.5]).verify(head)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda h: possible(h, [0], [1, 2], [1.0, 1.0]), "as many are needed"),
        (lambda h: possible(h, [9], [1], [1.0, 1.0]), "not among 0 to 4"),
        (lambda h: possible(h, [0], [0], [1.0, 1.0]), "with itself"),
        (lambda h: possible(h, NONE, NONE, [1.0, 1.0]), "compares nothing"),
        (lambda h: possible(h, NONE, NONE, [1.0, 1.0], top=[-1]), "not among 0 to 4"),
        (lambda h: possible(h, [0], [1], [1.0]), "has width 2"),
        (lambda h: impossible(h, [0], [1], [1.0], top=[0]), "leave `top` empty"),
        (lambda h: impossible(h, [0, 1], [1, 0], [1.0]), "one non-negative number a comparison"),
        (lambda h: impossible(h, [0, 1], [1, 0], [2.0, -1.0]), "one non-negative number a comparison"),
        (lambda h: Open(h.digest, [0], [1], NONE, 0.5, "it was left open"), "it proves nothing"),
    ],
)
def test_what_is_not_a_question_or_no_proof_is_refused(make, says):
    with pytest.raises(CertificateError, match=says):
        make(SQUARE).verify(SQUARE)


def test_over_observed_embeddings_every_one_is_looked_at():
    head = SQUARE.replace(inputs=Observed([[1.0, 0.5], [0.5, 1.0]]))
    assert impossible(head, [3], [0], NONE).verify(head) <= 0
    with pytest.raises(CertificateError, match="hold at one of the observed"):
        impossible(head, [1], [2], NONE).verify(head)
    with pytest.raises(CertificateError, match="leave them empty"):
        impossible(head, [3], [0], [1.0]).verify(head)
    assert possible(head, [1], [2], [1.0, 0.5]).verify(head) > 0


def test_in_words():
    assert "1 comparisons and 2 labels above all others" in repr(possible(SQUARE, [0], [1], [1.0, 1.0], top=[0, 1]))
    assert "0 > label 0" in repr(impossible(SQUARE, [0, ZERO], [ZERO, 0], [0.25, 0.75]))
    assert "never all hold: label 0 > label 1" in repr(impossible(SQUARE, [0], [1], NONE))
    assert "label 3 ..." not in repr(impossible(SQUARE, [0], [1], NONE))
    assert "holds by at most about 0.5; why" in repr(Open(SQUARE.digest, [0], [1], NONE, 0.5, "why"))
    assert BIASED.digest != SQUARE.digest


def test_a_thousand_tied_with_a_thousand_are_not_above_them():
    """More pairs than are looked at one by one."""
    head = Head(np.ones((2010, 1)), link="softmax")
    with pytest.raises(CertificateError, match="not all of its comparisons hold"):
        possible(head, NONE, NONE, [1.0], top=np.arange(1005)).verify(head)
