"""`gonio study`: files in, numbers and a verdict out; what cannot be is refused in a sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main
from gonio.studies.run import STUDIES
from tests.studies.made import clustered_head, random_head


def run(*args, code=0):
    r = CliRunner().invoke(main, [str(a) for a in args])
    assert r.exit_code == code, r.output
    return r.output


@pytest.fixture
def files(tmp_path):
    for name, (head, F) in {"a": random_head(50, 4), "b": random_head(50, 4, seed=1)}.items():
        np.savez(tmp_path / f"{name}.npz", W=head.W, link="softmax")
        np.save(tmp_path / f"{name}.npy", F)
    return tmp_path


def test_the_list_names_every_study_with_its_question():
    out = run("study", "--list")
    assert [line.split()[0] for line in out.splitlines()] == list(STUDIES)
    assert all(s.question in out for s in STUDIES.values())


@pytest.mark.parametrize("name", ["random", "plausible", "sphere"])
def test_a_study_of_one_model(files, name):
    line = ["study", name, files / "a.npz"] + ([] if name == "sphere" else ["--embeddings", files / "a.npy"])
    [said] = json.loads(run(*line, "--json", "-"))
    assert said["study"] == name
    assert said["verdict"] in " ".join(run(*line).split())
    assert all(m["low"] is None or m["low"] <= m["high"] for m in said["measured"])


def test_a_study_of_two_models_and_of_a_text(files):
    line = ["study", "geometry", files / "a.npz", files / "b.npz", "--embeddings", files / "a.npy"]
    [said] = json.loads(run(*line, "--embeddings", files / "b.npy", "--json", "-"))
    assert "is not shown" in said["verdict"]
    [said] = json.loads(run("study", "geometry", files / "a.npz", files / "b.npz", "--json", "-"))
    assert "nothing here is a fact" in said["limits"]
    assert "states of 1 models" in run(*line, code=2)


def test_frequency_of_a_table_with_words(tmp_path):
    head = clustered_head(80, 4, 8)[0]
    words = [a + b + c for a in "bcdfg" for b in "aeio" for c in "lmnp"]
    np.savez(tmp_path / "w.npz", W=head.W, link="softmax", labels=np.array(words))
    (tmp_path / "f.tsv").write_text("".join(f"{w}\t{k + 1}\n" for k, w in enumerate(words)))
    [said] = json.loads(
        run("study", "frequency", tmp_path / "w.npz", "--frequencies", tmp_path / "f.tsv", "--json", "-")
    )
    assert said["about"].endswith("80 words")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ([], "no study was named"),
        (["nothing"], "none is called 'nothing'"),
        (["random", "a.npz"], "give --embeddings"),
        (["geometry", "a.npz"], "1 models were named; 2 are needed"),
        (["runs", "a.npz"], "trains networks of its own"),
        (["downstream", "a.npz"], "gonio check CORPUS"),
        (["windows", "a.npz"], "it reads a text"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(files, line, why, monkeypatch):
    monkeypatch.chdir(files)
    out = run("study", *line, code=2)
    assert why in out
    assert out.count("\n") == 1


def test_without_the_packages_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("GONIO_FIXTURES", str(tmp_path))
    assert "is not at hand" in run("study", "windows", code=2)
