"""Similarity over the states of a text: documents are drawn together, directions and inputs are judged by predictions."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.core.errors import GonioError
from gonio.core.states import States
from gonio.similarity.bootstrap import effective_size
from gonio.similarity.directions import direction
from gonio.similarity.input_pairs import inputs_alike, last_of_each

RNG = np.random.default_rng(0)
HEAD = gonio.Head(RNG.standard_normal((12, 5)) + 1, link="softmax")


def states_of(F, documents):
    return States(F, documents, np.arange(len(F)), np.full(len(F), -1))


def clustered(documents, each, spread, rng):
    centre = np.repeat(rng.standard_normal((documents, 5)), each, axis=0)
    return centre + spread * rng.standard_normal((documents * each, 5)), np.repeat(np.arange(documents), each)


def test_states_that_hang_together_give_a_wider_interval_than_independent_ones():
    F, of = clustered(20, 50, 0.2, np.random.default_rng(1))
    together = gonio.similarity.centred_logit_correlation(HEAD, states_of(F, of)).intervals([0], [1])[0]
    apart = gonio.similarity.centred_logit_correlation(HEAD, F).intervals([0], [1])[0]
    assert together.value == apart.value
    assert together.high - together.low > 3 * (apart.high - apart.low)
    z = gonio.similarity.centred_logit_correlation(HEAD, F).logits([0, 1])
    assert 8 < effective_size(z[:, 0], z[:, 1], of) < 120  # twenty documents, not a thousand states


def test_below_ten_documents_there_is_no_interval():
    F, of = clustered(9, 20, 0.5, np.random.default_rng(2))
    found = gonio.similarity.centred_logit_correlation(HEAD, states_of(F, of)).intervals([0], [1])[0]
    assert np.isnan(found.low)
    said = gonio.alike(HEAD, 0, 1, embeddings=states_of(F, of))
    assert said.instead[2] is None
    assert "below 10 documents there is no interval" in said.over


def test_document_intervals_cover_the_truth():
    truth = gonio.similarity.centred_logit_correlation(HEAD, clustered(4000, 10, 0.5, np.random.default_rng(3))[0])(
        0, 1
    )
    rng, inside = np.random.default_rng(4), 0
    for _ in range(80):
        F, of = clustered(60, 10, 0.5, rng)
        i = gonio.similarity.centred_logit_correlation(HEAD, states_of(F, of)).intervals([0], [1], resamples=300)[0]
        inside += i.low <= truth <= i.high
    assert inside >= 68


def test_a_steering_vector_does_what_adding_it_does():
    v = np.arange(5.0)
    F = np.random.default_rng(5).standard_normal((40, 5))
    found = direction(HEAD, v, F)
    z = HEAD.logits(F + v) - HEAD.logits(F)
    z -= z.mean(axis=1, keepdims=True)
    assert np.allclose(found.effect, z[0])
    sd = (HEAD.logits(F) - HEAD.logits(F).mean(axis=1, keepdims=True)).std(axis=0)
    assert np.allclose(found.spread, z[0] / sd)


def test_a_probe_is_compared_by_what_it_reads():
    v, F = np.arange(5.0), np.random.default_rng(6).standard_normal((300, 5))
    found = direction(HEAD, v, F, use="probe")
    z = HEAD.logits(F)
    z -= z.mean(axis=1, keepdims=True)
    assert np.allclose(found.effect, [np.corrcoef(F @ v, z[:, i])[0, 1] for i in range(12)])


def test_no_convention_moves_the_effect_and_it_moves_the_cosine():
    rng = np.random.default_rng(7)
    v, F, M = rng.standard_normal(5), rng.standard_normal((300, 5)), rng.standard_normal((5, 5))
    turned = np.linalg.inv(M).T
    moved = gonio.Head(HEAD.W @ M.T + 3 * rng.standard_normal(5), link="softmax")  # f becomes M^-T f
    for use, w in (("steering", turned @ v), ("probe", M @ v)):
        a, b = direction(HEAD, v, F, use=use), direction(moved, w, F @ turned.T, use=use)
        assert np.allclose(a.effect, b.effect)
        assert not np.allclose(a.cosine, b.cosine, atol=0.1)


def test_bad_directions_are_one_sentence():
    for v, use, said in (
        (np.zeros(5), "steering", "is zero"),
        (np.ones(4), "steering", r"shape \(5,\)"),
        (np.ones(5), "probe", "a probe reads states"),
        (np.ones(5), "compass", "choose one of"),
    ):
        with pytest.raises(GonioError, match=said):
            direction(HEAD, v, use=use)


def test_inputs_are_compared_by_predictions_against_the_naive():
    F = np.random.default_rng(8).standard_normal((6, 5))
    found = inputs_alike(HEAD, F)
    assert len(found.pairs) == 15
    p = HEAD.probabilities(F)
    for k, (i, j) in enumerate(found.pairs):
        m = (p[i] + p[j]) / 2
        js = 0.5 * (p[i] * np.log2(p[i] / m)).sum() + 0.5 * (p[j] * np.log2(p[j] / m)).sum()
        z = HEAD.logits(F[i]) - HEAD.logits(F[j])
        assert found.divergence[k] == pytest.approx(js)
        assert found.distance[k] == pytest.approx((z - z.mean()).std())
        assert found.cosine[k] == pytest.approx(F[i] @ F[j] / np.linalg.norm(F[i]) / np.linalg.norm(F[j]))
    same = inputs_alike(HEAD, np.vstack([F[:1], F[:1]]))
    assert same.divergence[0] == same.distance[0] == 0


def test_the_last_state_of_each_document_stands_for_it():
    S = States(np.arange(10.0).reshape(5, 2), [3, 3, 1, 1, 1], [0, 1, 2, 0, 1], [-1] * 5)
    F, of = last_of_each(S)
    assert dict(zip(of.tolist(), F[:, 0].tolist(), strict=True)) == {3: 2.0, 1: 4.0}
