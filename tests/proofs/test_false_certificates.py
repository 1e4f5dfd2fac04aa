"""Certificates that would pass if one look were left out, and bounds that are not to be overstated."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Observed
from gonio.proofs.certificates import CertificateError, NeverTies, NeverWins, Ties, Undecided
from gonio.proofs.comparisons import Impossible
from tests.proofs.rationals import exact, score

TWINS = np.array([[1.0, 0], [1, 0], [-1, 0]])
SEEN = Observed([[1.0, 0.0], [-1.0, 0.0]])


@pytest.mark.parametrize("inputs", [AllInputs(), Box(-1, 1), AfterRMSNorm(np.ones(2)), AfterLayerNorm(np.ones(2))])
def test_an_equal_of_a_label_is_no_rival_of_it(inputs):
    head = Head(TWINS, link="softmax", inputs=inputs)
    for label, rivals, weights in ((0, [1], [1.0]), (1, [0], [1.0]), (0, [2, 1], [0.0, 1.0])):
        with pytest.raises(CertificateError, match="scores as label"):
            NeverWins(head.digest, label, rivals, weights).verify(head)


def test_over_observed_inputs_neither_an_equal_nor_the_label_itself_is_a_rival():
    head = Head(TWINS, link="softmax", inputs=SEEN)
    with pytest.raises(CertificateError, match="scores as label"):
        NeverWins(head.digest, 0, [1], []).verify(head)
    for rivals in ([0], [2, 0]):
        with pytest.raises(CertificateError, match="its own rivals"):
            NeverWins(head.digest, 0, rivals, []).verify(head)
    for rivals in ([0], [1], [2, 1]):
        with pytest.raises(CertificateError, match="its own rivals"):
            NeverTies(head.digest, 0, 1, rivals, [], []).verify(head)
    for label in (-1, 3):
        for proof in (NeverWins(head.digest, 0, [label], []), NeverTies(head.digest, 0, 1, [label], [], [])):
            with pytest.raises(CertificateError, match="not all among the labels"):
                proof.verify(head)


def test_over_observed_inputs_a_tie_is_at_one_embedding():
    head = Head(TWINS, link="softmax", inputs=SEEN)
    assert Ties(head.digest, 0, 1, [1.0, 0], [1.0, 0]).verify(head) == pytest.approx(2)
    wide = Head(np.array([[1.0, 0], [0, 1], [-9, -9]]), link="softmax", inputs=Observed([[1.0, 0], [0, 1]]))
    with pytest.raises(CertificateError, match="not convex"):
        Ties(wide.digest, 0, 1, [1.0, 0], [0, 1.0]).verify(wide)


def test_a_tie_is_above_the_others_by_the_smaller_of_its_two_margins():
    head = Head(np.array([[1.0, 0], [0, 1], [-1, -1]]), link="softmax")
    for x, y in (([5.0, 4], [2.0, 3]), ([3.0, 2], [4.0, 5])):
        margins = []
        for label, at in ((1, x), (0, y)):
            point = exact(np.array(at))
            margins.append(score(head, label, point) - score(head, 2, point))
        got = Ties(head.digest, 0, 1, x, y).verify(head)
        assert exact(got) <= min(margins)
        assert got == pytest.approx(float(min(margins)), rel=1e-9)
        assert min(margins) < max(margins)


# -- bounds of what is undecided ---------------------------------------------------------------------------------------


def undecided(inputs, bound, weights=(0.5, 0.5), bias=0.0):
    head = Head([[0.0, 2.0], [1, 0], [-1, 0]], np.array([bias, 0, 0]), link="softmax", inputs=inputs)
    return Undecided(head.digest, 0, bound, "", [1, 2], list(weights)), head


@pytest.mark.parametrize("inputs", [Box(-1, 1), AllInputs()])
def test_an_undecided_bound_is_of_a_mean_whatever_the_sum_of_its_weights(inputs):
    for weight in (0.5 - 4e-7, 0.5 + 4e-7):
        proof, head = undecided(inputs, 2 * (1 + 1e-7), (weight, weight))
        assert proof.verify(head) == 2 * (1 + 1e-7)
        proof, head = undecided(inputs, 2 * (1 - 1e-7), (weight, weight))
        with pytest.raises(CertificateError, match="prove a bound"):
            proof.verify(head)


def test_an_undecided_bound_after_a_norm_holds_at_its_whole_radius():
    for inputs in (AfterRMSNorm(np.ones(2)), AfterLayerNorm(np.ones(2))):
        true = 2 * np.sqrt(2) if not inputs.centred else 2.0
        proof, head = undecided(inputs, true * 1.001)
        assert proof.verify(head) == true * 1.001
        for share in (0.71, 0.999):
            proof, head = undecided(inputs, true * share)
            with pytest.raises(CertificateError, match="prove a bound"):
                proof.verify(head)


@pytest.mark.parametrize(("bias", "true"), [(0.0, 2), (-5.0, -3), (6.0, 8)])
def test_an_undecided_bound_has_room_for_the_sum_of_its_weights(bias, true):
    proof, head = undecided(Box(-1, 1), 0.0, bias=bias)
    assert exact(proof._value(head)) >= true
    assert proof._value(head) - true == pytest.approx(1e-12 * abs(true), rel=0.02, abs=0)


# -- observed embeddings at which floats tell less than the truth ------------------------------------------------------


def test_where_there_is_no_rival_nothing_is_proven_of_observed_inputs():
    for W in ([[1.0, 0]], [[1.0, 0], [1, 0]]):
        head = Head(W, link="softmax", inputs=SEEN)
        with pytest.raises(CertificateError, match="wins at one of the observed"):
            NeverWins(head.digest, 0, [], []).verify(head)


def test_a_win_that_underflows_is_a_win():
    head = Head([[1e-200], [0.0]], link="softmax", inputs=Observed([[1e-200]]))
    with pytest.raises(CertificateError, match="wins at one of the observed"):
        NeverWins(head.digest, 0, [1], []).verify(head)
    assert NeverWins(head.digest, 1, [0], []).verify(head) <= 0


def test_a_tie_whose_products_underflow_is_a_tie():
    tiny = 5e-324
    for sign in (1, -1):
        W = sign * np.array([[0.625, 0.625, -1.25], [0, 0, 0]])  # times tiny: 1 + 1 - 1 in floats
        head = Head(W, link="softmax", inputs=Observed([[tiny] * 3]))
        assert (head.inputs.points @ W[0])[0] != 0
        for a, b in ((0, 1), (1, 0)):
            with pytest.raises(CertificateError, match="share the top"):
                NeverTies(head.digest, a, b, [], [], []).verify(head)


def lossy(more, place=0, d=16385):
    """Two labels over one embedding whose score differs by `more`; most of the terms are lost when they are added."""
    row = np.full(d, 0.75 * 2.0**-53)
    row[place] = 1
    bias = 1 + 0.75 * 2.0**-53 * (d - 1)
    assert exact(bias) == 1 + exact(0.75 * 2.0**-53) * (d - 1)
    return Head(
        np.array([row, np.zeros(d)]), np.array([0, bias - more]), link="softmax", inputs=Observed(np.ones((1, d)))
    )


@pytest.mark.parametrize("place", [0, 77, 9000])
def test_sums_that_lose_most_of_their_terms_hide_neither_a_win_nor_a_tie(place):
    head = lossy(2.0**-52, place)
    with pytest.raises(CertificateError, match="wins at one of the observed"):
        NeverWins(head.digest, 0, [1], []).verify(head)
    head = lossy(0, place)
    for a, b in ((0, 1), (1, 0)):
        with pytest.raises(CertificateError, match="share the top"):
            NeverTies(head.digest, a, b, [], [], []).verify(head)
    assert NeverTies(lossy(2.0**-52).digest, 0, 1, [], [], []).verify(lossy(2.0**-52)) == 0


def test_the_rounding_of_biases_is_part_of_what_a_label_may_win_by():
    rng = np.random.default_rng(3)
    for _ in range(50):
        low, high = rng.uniform(0, 0.3), rng.uniform(1, 9)
        head = Head(np.zeros((2, 2)), np.array([low, high]), link="softmax", inputs=SEEN)
        assert exact(NeverWins(head.digest, 0, [1], []).verify(head)) >= exact(low) - exact(high)


def test_comparisons_of_another_head_or_that_hold_by_little_are_not_impossible():
    head = Head(np.eye(2), link="softmax")
    assert Impossible(head.digest, [0, 1], [1, 0], [], [0.5, 0.5]).verify(head) == 0
    with pytest.raises(CertificateError, match="was checked against"):
        Impossible("0" * 64, [0, 1], [1, 0], [], [0.5, 0.5]).verify(head)
    seen = head.replace(inputs=Observed([[0.5, 0.0]]))
    with pytest.raises(CertificateError, match="hold at one of the observed"):
        Impossible(seen.digest, [0], [1], [], []).verify(seen)
