"""The command `gonio diagnose`: real files in, text, JSON and pictures out."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from gonio import GonioError, Head
from gonio.cli.diagnosing import diagnose
from gonio.diagnostics.examine import examine


@pytest.fixture
def model(tmp_path):
    np.save(tmp_path / "w.npy", np.random.default_rng(0).standard_normal((80, 6)))
    (tmp_path / "names.txt").write_text("\n".join(f"w{i}" for i in range(80)), encoding="utf-8")
    (tmp_path / "counts.txt").write_text("\n".join(f"w{i}\t{i}" for i in range(80)), encoding="utf-8")
    (tmp_path / "unused.txt").write_text("w3\nw4\n", encoding="utf-8")
    return tmp_path


def ask(model, *more):
    given = [str(model / "w.npy"), "--link", "softmax", "--labels", str(model / "names.txt"), *more]
    return CliRunner().invoke(diagnose, given, catch_exceptions=False)


def test_it_prints_every_diagnosis_in_words(model):
    r = ask(model, "--frequencies", str(model / "counts.txt"), "--unused", str(model / "unused.txt"))
    assert r.exit_code == 0
    for name in ("hubness", "anisotropy", "concentration", "norms", "near-duplicates", "undertrained", "orbit"):
        assert f"{name}: " in r.output
    assert "frequency bias: " in r.output
    assert "2 reference rows (given)" in r.output


def test_it_gives_json_and_pictures(model):
    r = ask(model, "--json", "-", "--no-orbit", "--plots", str(model / "plots"))
    said = json.loads(r.stdout)
    assert set(said) == {"hubness", "anisotropy", "concentration", "norms", "near-duplicates", "undertrained"}
    assert len(said["hubness"]["counts"]) == 80
    assert {p.stem for p in (model / "plots").iterdir()} == set(said)


def test_a_damaged_list_of_frequencies_is_refused_in_a_sentence(model):
    (model / "counts.txt").write_text("many\nfew\n", encoding="utf-8")
    with pytest.raises(GonioError, match="not one number a line"):
        ask(model, "--frequencies", str(model / "counts.txt"))
    with pytest.raises(GonioError, match="diagnose: k is 80"):
        ask(model, "--top", "80")


def test_lists_are_found_once(monkeypatch):
    calls = []
    from gonio.similarity.nearest import nearest_by_cosine

    def counted(rows, k, which=None):
        calls.append(which is None)
        return nearest_by_cosine(rows, k, which)

    for module in ("examine", "hubs", "duplicates", "gauge_orbit"):
        monkeypatch.setattr(sys.modules[f"gonio.diagnostics.{module}"], "nearest_by_cosine", counted)
    examine(Head(np.random.default_rng(1).standard_normal((60, 5)), link="softmax"), k=5)
    assert sum(calls) == 1
