"""Orbit: the gauge moves cosine lists and leaves invariant ones; on a real head and on real sentence embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import GonioError, Head
from gonio.diagnostics import hubness, orbit
from gonio.nearest import nearest_by_cosine
from gonio.similarity import CSLS

RNG = np.random.default_rng(0)
CLASSES = np.arange(400) % 8
W = 2 * RNG.standard_normal((8, 16))[CLASSES] + RNG.standard_normal((400, 16)) + 1
HEAD = Head(W, link="softmax")
F = RNG.standard_normal((100, 16))


def test_cosine_lists_move_along_the_gauge_and_invariant_ones_stay():
    for given, name in ((None, "whitened-centred cosine"), (F, "centred-logit correlation")):
        r = orbit(HEAD, embeddings=given, gauges=2, remedies=(), measures=())
        assert all(f.overlap < 0.9 for f in r.of_kind("gauge", "cosine"))
        kept = r.of_kind("gauge", name)
        assert len(kept) == 2
        assert all(f.overlap > 0.999 for f in kept)


def test_the_first_form_is_the_head_itself_and_csls_is_that_of_similarity():
    r = orbit(HEAD, gauges=0, clusters=8, classes=CLASSES)
    first = r.forms[0]
    assert (first.overlap, first.clusters) == (1, 1)
    assert first.skewness == hubness(HEAD).skewness
    near = nearest_by_cosine(HEAD.rows, 10)[0]
    assert first.retrieval == pytest.approx(np.mean(CLASSES[near] == CLASSES[:, None]))
    csls = CSLS(HEAD, 10).nearest(10).near
    share = np.mean([len(set(p) & set(q)) / 10 for p, q in zip(near, csls, strict=True)])
    assert r.of_kind("measure")[0].overlap == pytest.approx(share, abs=1e-3)
    assert r.of_kind("measure")[0].skewness == pytest.approx(hubness(HEAD, neighbours=csls).skewness, abs=0.02)
    assert {f.name for f in r.of_kind("remedy")} == {"Center", "Standardize", "RemoveTopComponents", "Whiten"}


def test_a_remedy_is_the_same_as_changing_the_rows_by_hand():
    r = orbit(HEAD, gauges=0, remedies=("Center",), measures=())
    centred = nearest_by_cosine(Head(W - W.mean(axis=0), link="softmax").rows, 10)[0]
    assert r.of_kind("remedy")[0].skewness == pytest.approx(hubness(HEAD, neighbours=centred).skewness, abs=0.02)


def test_one_pass_can_be_given():
    given = nearest_by_cosine(HEAD.rows, 10)
    a, b = orbit(HEAD, gauges=1), orbit(HEAD, gauges=1, neighbours=given)
    assert a.to_dict() == b.to_dict()


def test_rotations_of_a_cosine_head_move_nothing():
    r = orbit(Head(W, link="cosine"), gauges=2, remedies=(), measures=())
    assert all(f.overlap > 0.999 for f in r.of_kind("gauge"))


def test_a_sample_of_labels_can_be_followed():
    r = orbit(HEAD, asked=50, gauges=1)
    assert len(r.asked) == 50
    assert r.hubness.counts.sum() == 4000  # of all labels, from the one pass


def test_bad_input_is_refused_in_a_sentence():
    with pytest.raises(GonioError, match="k is 400"):
        orbit(HEAD, k=400)
    with pytest.raises(GonioError, match="no remedy is called 'Pray'"):
        orbit(HEAD, gauges=0, remedies=("Pray",))
    with pytest.raises(GonioError, match="one class a label"):
        orbit(HEAD, classes=[1, 2])
    with pytest.raises(GonioError, match="clusters is 1"):
        orbit(HEAD, clusters=1)
    with pytest.raises(GonioError, match="two a judgement"):
        orbit(HEAD, judged=(np.array([[0, 900]]), [1.0]))
