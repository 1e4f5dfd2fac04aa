"""Every finding of every made model's audit is true, and every command it suggests runs."""

from __future__ import annotations

import json
import shlex

import pytest
from click.testing import CliRunner

from gonio.cli import main
from tests.truth.made import MODELS
from tests.truth.oracles import ORACLES


def run(*args, expect=0):
    r = CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)
    assert r.exit_code == expect, r.output
    return r.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Each model and its audit, made once."""
    found = {}

    def make(name):
        if name not in found:
            t = MODELS[name](tmp_path_factory.mktemp(name))
            found[name] = t, json.loads(run("audit", *t.typed, *t.more.get("audit", ()), "--json", "-"))
        return found[name]

    return make


@pytest.mark.parametrize("name", MODELS)
def test_every_finding_has_an_oracle_and_is_true(made, name):
    t, said = made(name)
    assert said["findings"]
    for f in said["findings"]:
        assert f["key"] in ORACLES, f"no oracle for {f['key']}: {f['title']}"
        ORACLES[f["key"]](t, f)
        assert "MODEL" not in f["verify"]


@pytest.mark.parametrize("name", MODELS)
def test_every_suggested_command_runs(made, name, tmp_path, monkeypatch):
    _, said = made(name)
    monkeypatch.chdir(tmp_path)
    for f in said["findings"]:
        for command in f["verify"].split("; ") if f["verify"] else []:
            words = shlex.split(command)
            assert words[0] == "gonio"
            r = CliRunner().invoke(main, words[1:], catch_exceptions=False)
            assert r.exit_code in (0, 1), (command, r.output)


@pytest.mark.parametrize("name", MODELS)
def test_an_audit_says_nothing_of_predictions_where_the_rows_predict_nothing(made, name):
    t, said = made(name)
    keys = {f["key"] for f in said["findings"]}
    if t.link in ("cosine", "vectors", "input", "unknown"):
        assert not keys & {"never-wins", "ties", "patterns", "padded-wins", "never-on", "lists-agree", "cosine-against"}
    if t.link == "unknown":
        assert not keys & {"pair", "neighbours-kept", "similarity"}
        assert {f["value"] for f in said["findings"] if f["key"] == "reading"} >= {"softmax", "sigmoid", "vectors"}


@pytest.mark.parametrize("name", MODELS)
def test_text_and_json_say_the_same(made, name):
    t, said = made(name)
    text = " ".join(run("audit", *t.typed, *t.more.get("audit", ()), "--explain").split())
    for f in said["findings"]:
        assert " ".join(f["title"].split()) in text
        assert " ".join(f["says"].split()) in text
