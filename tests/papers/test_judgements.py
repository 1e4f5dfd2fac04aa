"""Measures and remedies on judged pairs: planted spaces in which it is known what helps and what hurts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from gonio import GonioError
from gonio.papers.judgements import MEASURES, OVER_INPUTS, REMEDIES, judgements, tried
from gonio.remedies import Center, RemoveTopComponents

RNG = np.random.default_rng(5)
SENSE = RNG.standard_normal((900, 12))  # what the judges see
PAIRS = RNG.permutation(600).reshape(300, 2)
TRUE = np.einsum("ij,ij->i", SENSE[PAIRS[:, 0]], SENSE[PAIRS[:, 1]]) / (
    np.linalg.norm(SENSE[PAIRS[:, 0]], axis=1) * np.linalg.norm(SENSE[PAIRS[:, 1]], axis=1)
)
SCORES = TRUE + 0.1 * RNG.standard_normal(300)


def test_a_common_part_is_taken_out_by_centring():
    """x = sense + a large common vector of varying size: a few directions drown the sense until they are removed."""
    X = SENSE + 6.0
    j = judgements(X, PAIRS, SCORES, measures=("cosine", "centred cosine", "SCALED_SIM"), remedies={"Center": Center()})
    assert j["cosine"].rho == pytest.approx(spearmanr(_cosines(X), SCORES).statistic, abs=1e-9)
    assert j["Center"].beside_cosine == j["centred cosine"].beside_cosine == "better"
    assert j["SCALED_SIM"].beside_cosine == "worse"
    assert not j["Center"].abstains
    assert j["cosine"].abstains is None
    assert j.best.name in ("Center", "centred cosine")
    assert "centred cosine" in j.explain()
    assert len(repr(j).splitlines()) == 2


def test_what_is_right_already_is_not_bettered_and_a_harmful_remedy_abstains():
    drop = RemoveTopComponents(9)
    j = judgements(SENSE, PAIRS, SCORES, measures=("cosine",), remedies={"drop": drop, "Center": Center()})
    assert j["drop"].beside_cosine == "worse"
    assert j["drop"].abstains
    assert j["Center"].rho == pytest.approx(j["cosine"].rho, abs=0.03)
    assert j["cosine"].low < j["cosine"].rho < j["cosine"].high
    assert j["cosine"].beside_cosine == "the same"


def test_every_name_is_tried_and_drawn():
    j = judgements(SENSE.astype(np.float32), PAIRS, SCORES, inputs=SENSE[:200])
    names = [r.name for r in j.rows]
    assert set(names) == {*MEASURES, *OVER_INPUTS, *REMEDIES, "judged (ridge, out of fold)"} - {"Whiten, 64 components"}
    assert [t.get_text() for t in j.plot().get_yticklabels()] == names[::-1]
    assert j.to_dict()["rows"][0]["name"] == "cosine"


def test_pairs_without_a_score_are_left_out_of_both_sides():
    found, base = TRUE.copy(), TRUE.copy()
    found[:7] = np.nan
    drawn = np.random.default_rng(0).multinomial(300, np.full(300, 1 / 300), 50)
    row = tried("x", found, SCORES, base, drawn)
    assert row.pairs == 293
    assert row.rho == pytest.approx(spearmanr(TRUE[7:], SCORES[7:]).statistic)
    with pytest.raises(GonioError, match="a score for 1 of 300 pairs"):
        tried("x", np.where(np.arange(300) == 4, 1.0, np.nan), SCORES, base, drawn)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((SENSE, PAIRS[:3], SCORES[:3]), "at least 10"),
        ((SENSE[:10], PAIRS, SCORES), "names row"),
        ((SENSE, PAIRS, SCORES[:-1]), "judgements"),
        ((SENSE[0], PAIRS, SCORES), "X"),
    ],
)
def test_what_does_not_fit_together_is_refused(args, words):
    with pytest.raises(GonioError, match=words):
        judgements(*args)


def test_an_unknown_row_is_named():
    j = judgements(SENSE, PAIRS, SCORES, measures=("cosine",), remedies={}, learned=False)
    with pytest.raises(GonioError, match="none is called 'dot'; there are cosine"):
        j["dot"]


def _cosines(X):
    a, b = X[PAIRS[:, 0]], X[PAIRS[:, 1]]
    return np.array([u @ v / np.linalg.norm(u) / np.linalg.norm(v) for u, v in zip(a, b, strict=True)])
