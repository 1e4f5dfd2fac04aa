"""A model and a text on the command line: states, and every command that uses them, end to end on a small real folder."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main
from tests.models import made


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lm")
    made.saved(folder / "model")
    made.saved(folder / "other", seed=1)
    (folder / "text.txt").write_text("\n".join(made.documents(40)) + "\n")
    (folder / "short.txt").write_text("\n".join(made.documents(4)) + "\n")
    return folder


def run(*words, code=0):
    r = CliRunner().invoke(main, [str(w) for w in words], catch_exceptions=False)
    assert r.exit_code == code, r.output
    return r.stdout if code == 0 else r.output


@pytest.fixture(scope="module")
def kept(place):
    said = run("states", place / "model", "--text", place / "text.txt", "--out", place / "F.npy")
    assert re.search(
        r"checked    at \d+ positions the head gives the model's own probabilities, at most (0|\S+e-\d+) off", said
    )
    return place / "F.npy"


def test_states_are_kept_with_where_they_came_from(place, kept):
    about = json.loads((place / "F.states.json").read_text())
    F = np.load(kept)
    assert about["format"] == "gonio states 1"
    assert about["shape"] == list(F.shape) == [len(about["tokens"]), 16]
    assert set(about["documents"]) == set(range(40))
    assert {"model", "text", "head", "positions", "largest_difference"} <= set(about)


def test_alike_answers_first_with_the_number_that_counts(place, kept):
    said = run("alike", place / "model", "w3", "w7", "--embeddings", kept)
    assert said.splitlines()[1].startswith("  answer     centred-logit correlation: ")
    assert "states of 40 documents, which tell as much as about" in " ".join(said.split())
    live = run("alike", place / "model", "w3", "w7", "--text", place / "text.txt")
    assert live == said


def test_an_audit_with_a_text_has_what_needs_states(place):
    said = json.loads(run("audit", place / "model", "--text", place / "text.txt", "--json", "-"))
    keys = {f["key"] for f in said["findings"]}
    assert {"seen", "prediction-hubs", "similarity"} <= keys
    assert next(f for f in said["findings"] if f["key"] == "similarity")["value"] == "centred-logit correlation"


@pytest.mark.parametrize(
    "words",
    [
        ("similar", "M", "w3"),
        ("diagnose", "M", "--no-orbit"),
        ("info", "M"),
        ("can-win", "M", "--cast", "int4"),
        ("alike-inputs", "M"),
        ("canonicalise", "M", "--out", "OUT"),
        ("canonicalise", "M", "--checkpoint", "--out", "OUT"),
        ("direction", "M", "V", "--use", "probe"),
    ],
    ids=lambda w: "-".join(w),
)
def test_other_commands_run_the_model_on_a_text(words, place, tmp_path):
    np.save(tmp_path / "v.npy", np.arange(16.0))
    names = {"M": place / "model", "OUT": tmp_path / "out", "V": tmp_path / "v.npy"}
    said = run(*[names.get(w, w) for w in words], "--text", place / "text.txt")
    for wanted in {"info": ["off the model's own probabilities"], "can-win": ["on text    another label is on top at"],
                   "alike-inputs": ["divergence"], "canonicalise": ["centred-logit correlation over"],
                   "direction": ["most up"], "similar": ["centred-logit correlation"]}.get(words[0], []):  # fmt: skip
        assert wanted in said


def test_a_canonical_table_is_a_model_file_whose_cosine_is_the_correlation(place, kept, tmp_path):
    run("canonicalise", place / "model", "--embeddings", kept, "--out", tmp_path / "c")
    table = json.loads(run("alike", tmp_path / "c" / "head.npz", "w3", "w7", "--json", "-"))
    asked = json.loads(run("alike", place / "model", "w3", "w7", "--embeddings", kept, "--json", "-"))
    assert table["cosine"] == pytest.approx(asked["instead"]["value"], abs=1e-9)


def test_compare_tells_the_difference_of_every_label_on_a_text(place, tmp_path):
    out = run(
        "compare", place / "model", place / "other", "--text", place / "text.txt", "--csv", tmp_path / "d.csv", code=1
    )
    assert "the centred logits differ by" in out
    assert len((tmp_path / "d.csv").read_text().splitlines()) == 73
    same = run("compare", place / "model", place / "model", "--text", place / "text.txt")
    assert "differ by 0 at most" in same
    assert "another label is on top at 0.00%" in same


def test_undertrained_rows_are_asked_for(place):
    said = run("undertrained", place / "model")
    assert "rows look untrained" in said
    assert "the model never repeats it: undertrained, confirmed" in said


def test_a_model_writes_its_own_text(place, tmp_path):
    said = run("states", place / "model", "--text", "self", "--tokens", "200", "--out", tmp_path / "F.npy")
    assert "written by the model itself" in said
    found = json.loads(run("audit", place / "model", "--text", "self", "--tokens", "200", "--json", "-"))
    assert "which the model wrote itself" in next(f["title"] for f in found["findings"] if f["key"] == "seen")


def test_arrays_are_fed_in_place_of_text(place, tmp_path):
    np.savez(tmp_path / "in.npz", input_ids=np.arange(5, 45).reshape(4, 10))
    said = run("states", place / "model", "--feed", tmp_path / "in.npz", "--out", tmp_path / "F.npy")
    assert said.startswith("40 states of width 16, from 4 documents")


def test_states_of_another_model_or_a_changed_file_are_refused(place, kept, tmp_path):
    said = run("alike", place / "other", "w3", "w7", "--embeddings", kept, code=2)
    assert "these states entered another head" in said
    F = np.load(kept)
    np.save(tmp_path / "G.npy", F + 1)
    (tmp_path / "G.states.json").write_bytes((place / "F.states.json").read_bytes())
    said = run("alike", place / "model", "w3", "w7", "--embeddings", tmp_path / "G.npy", code=2)
    assert "are not those that G.states.json was written for" in said
    for junk in (b"{", b"[]", b'{"format": "gonio states 1"}', b"\xff", b'{"format": "x"}'):
        (tmp_path / "G.states.json").write_bytes(junk)
        run("alike", place / "model", "w3", "w7", "--embeddings", tmp_path / "G.npy", code=2)


@pytest.mark.parametrize(
    ("raw", "said"),
    [(b"", "is empty"), (b" \n\n", "is empty"), (b"abc\0def", "is no text"), (b"\xff\xfe\xfa", "is not UTF-8"),
     (None, "cannot be read")],
)  # fmt: skip
def test_bad_texts_are_one_sentence(raw, said, place, tmp_path):
    path = tmp_path / "bad.txt"
    if raw is not None:
        path.write_bytes(raw)
    out = run("states", place / "model", "--text", path, "--out", tmp_path / "F.npy", code=2)
    assert said in out
    assert len(out.strip().splitlines()) == 1
    assert not (tmp_path / "F.npy").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("audit", "M", "--text", "T", "--embeddings", "F"), "--embeddings and --text both say"),
        (("audit", "M", "--split", "x"), "--split is about --text"),
        (("states", "M", "--out", "x.npy"), "give the text"),
        (("states", "M", "--text", "T", "--out", "x.txt"), "ends in .npy"),
        (("states", "M", "--text", "T", "--out", "x.npy", "--layer", "last"), "'final' or the number of a layer"),
        (("can-win", "M", "--text", "T"), "states are asked about with --cast"),
        (("compare", "M", "M", "--csv", "x.csv"), "give --text FILE"),
        (("canonicalise", "M", "--out", "x"), "give --text FILE"),
        (("states", "B", "--text", "T", "--out", "x.npy"), "holds weights but no model that can be run"),
    ],
    ids=lambda w: "-".join(w) if isinstance(w, tuple) else "",
)
def test_options_that_do_not_go_together_are_one_sentence(words, said, place, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("bare.npz", W=np.eye(5, 3), link="softmax")
    names = {"M": place / "model", "T": place / "short.txt", "F": kept, "B": "bare.npz"}
    assert said in run(*[names.get(w, w) for w in words], code=2)


def test_code_of_a_model_is_never_run(place, tmp_path):
    folder = tmp_path / "evil"
    made.saved(folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"architectures": ["EvilForCausalLM"], "auto_map": {"AutoModelForCausalLM": "evil.EvilForCausalLM"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text("raise SystemExit('run')")
    out = run("states", folder, "--text", place / "short.txt", "--out", tmp_path / "F.npy", code=2)
    assert "brings code of its own, which is never run" in out


def test_no_output_is_an_input(place, kept):
    out = run("states", place / "model", "--text", place / "text.txt", "--out", place / "text.npy", code=0)
    assert "written" in out
    run("states", place / "model", "--feed", place / "text.npy", "--out", place / "text.npy", code=2)


@pytest.mark.slow
def test_a_killed_capture_leaves_the_old_states_whole_or_the_new_ones(place, kept, tmp_path):
    out = tmp_path / "F.npy"
    gonio = Path(sys.executable).parent / "gonio"
    line = [gonio, "states", place / "model", "--text", place / "text.txt", "--out", out]
    began = time.monotonic()
    subprocess.run(line, check=True, capture_output=True)
    spent, rng, old = time.monotonic() - began, random.Random(0), np.load(out)
    for k in range(12):
        child = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(spent * (rng.uniform(0.75, 1.05) if k % 2 else rng.uniform(0.2, 1)))
        child.kill()
        child.wait()
        assert np.array_equal(np.load(out), old)  # the same text: the old states and the new are one
        run("alike", place / "model", "w3", "w7", "--embeddings", out)
    subprocess.run(line, check=True, capture_output=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["F.npy", "F.states.json"]
