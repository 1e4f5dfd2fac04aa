"""Every sentence of a study is true of its numbers, on made models and in the record; the numbers are those of loops."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main
from gonio.studies.findings_page import chart, page
from gonio.studies.run import STUDIES
from tests.studies.made import clustered_head, equivalent, random_head
from tests.truth.oracles_of_studies import ORACLES

DOCS = Path(__file__).parents[2] / "docs"
RECORD = json.loads((DOCS / "findings.json").read_text(encoding="utf-8"))


def judged(said):
    ORACLES[said["study"]](said["verdict"], said["against"], {m["name"]: m for m in said["measured"]})
    for m in said["measured"]:
        assert m["low"] is None or m["low"] <= m["high"], m


def answer(*args):
    r = CliRunner().invoke(main, ["study", *(str(a) for a in args), "--json", "-"], catch_exceptions=False)
    assert r.exit_code == 0, r.output
    return json.loads(r.stdout)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place = tmp_path_factory.mktemp("studies")
    head, F = random_head(60, 5)
    made = {"random": (head, F), "other": random_head(60, 5, seed=4), "form": equivalent(head, F, size=3),
            "clustered": clustered_head(60, 5, 6)[:2], "corner": (head, 0.05 * F + 2)}  # fmt: skip
    for name, (h, G) in made.items():
        np.savez(place / f"{name}.npz", W=h.W, link="softmax")
        np.save(place / f"{name}.npy", G)
    return place


def test_every_study_has_an_oracle_and_a_recorded_run():
    assert set(ORACLES) == set(STUDIES) == set(RECORD)


@pytest.mark.parametrize(("study", "k"), [(s, k) for s, rs in RECORD.items() for k in range(len(rs))])
def test_recorded_sentences_are_what_the_recorded_numbers_say(study, k):
    assert RECORD[study][k]["study"] == study
    assert RECORD[study][k]["question"] == STUDIES[study].question
    judged(RECORD[study][k])


@pytest.mark.parametrize("study", ["random", "plausible", "sphere"])
@pytest.mark.parametrize("name", ["random", "clustered", "corner"])
def test_sentences_on_one_made_model(files, study, name):
    states = [] if study == "sphere" else ["--embeddings", files / f"{name}.npy"]
    for said in answer(study, files / f"{name}.npz", *states):
        judged(said)


@pytest.mark.parametrize("name", ["other", "form", "clustered"])
def test_sentences_on_two_made_models(files, name):
    for said in answer("geometry", files / "random.npz", files / f"{name}.npz"):
        judged(said)
    states = ["--embeddings", files / "random.npy", "--embeddings", files / f"{name}.npy"]
    [said] = answer("geometry", files / "random.npz", files / f"{name}.npz", *states)
    judged(said)
    n = {m["name"]: m for m in said["measured"]}
    tables = []
    for x in ("random", name):
        with np.load(files / f"{x}.npz") as held:
            Z = np.load(files / f"{x}.npy") @ held["W"].T
        tables.append(np.corrcoef((Z - Z.mean(axis=1, keepdims=True)).T)[np.triu_indices(60, 1)])
    assert n["logits"]["value"] == pytest.approx(np.corrcoef(*tables)[0, 1])


def test_the_page_and_its_pictures_are_those_of_the_record():
    helps = (DOCS / "what_helps.md").read_text(encoding="utf-8")
    assert (DOCS / "findings.md").read_text(encoding="utf-8") == page(RECORD, helps), (
        "run: python -m gonio.studies.findings_page docs"
    )
    for study, results in RECORD.items():
        assert (DOCS / "pictures" / f"findings-{study}.svg").read_text(encoding="utf-8") == chart(study, results)


@pytest.mark.parametrize("study", ORACLES)
def test_an_oracle_sees_sentences_that_are_not_those_of_the_numbers(study):
    """Other numbers under the same sentence: every recorded result is refused then."""
    for said in RECORD[study]:
        other = json.loads(json.dumps(said))
        for m in other["measured"]:
            m["value"] = 1.37 - m["value"]
            if m["low"] is not None:
                m["low"], m["high"] = 1.37 - m["high"], 1.37 - m["low"]
            m["how"] = m["how"].replace("p 0.007", "p 0.5").replace("worse", "better")
        with pytest.raises(AssertionError):
            judged(other)
