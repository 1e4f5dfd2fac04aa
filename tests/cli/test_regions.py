"""`gonio can-win`, `can-tie`, `verify` and `pad`, run as a user runs them."""

from __future__ import annotations

import csv
import json

import ml_dtypes
import numpy as np
import pytest

import gonio
from tests.cli.in_process import run

LABELS = ["north", "south", "east", "west", "middle", "twin a", "twin b"]


@pytest.fixture
def model(tmp_path):
    W = np.array([[0, 1], [0, -1], [1, 0], [-1, 0], [0.1, 0.2], [0.9, 0.9], [0.9, 0.9]])
    np.savez(tmp_path / "m.npz", W=W, labels=np.array(LABELS))
    return tmp_path / "m.npz"


def test_can_win_tells_saves_and_proves(model, tmp_path):
    done = run("can-win", model, "--csv", tmp_path / "r.csv", "--proof", tmp_path / "p.npz")
    assert done.returncode == 0, done.stderr
    for said in (
        "can win    4",
        "never win  1: 'middle'",
        "undecided  0",
        "2 labels in 1 group of equal rows reach the top together, none alone: 'twin a', 'twin b'",
        "settled by",
    ):
        assert said in done.stdout
    rows = list(csv.DictReader((tmp_path / "r.csv").read_text().splitlines()))
    assert [r["can_win"] for r in rows] == ["yes", "yes", "yes", "yes", "no", "with equals", "with equals"]
    done = run("verify", model, tmp_path / "p.npz")
    assert done.returncode == 0
    assert "7 proofs hold, 0 are refused" in done.stdout
    assert run("can-win", model, "--csv", tmp_path / "r.json").returncode == 0
    assert json.loads((tmp_path / "r.json").read_text())["label"] == LABELS
    one = run("can-win", model, "middle", "north").stdout
    assert "middle     no: at every input some mean of the others is not below it" in one
    assert "north      yes: by at least" in one


def test_can_win_writes_parquet_or_names_the_extra(model, tmp_path):
    done = run("can-win", model, "--csv", tmp_path / "r.parquet")
    try:
        import pandas
        import pyarrow  # noqa: F401  pandas reads the file with it
    except ModuleNotFoundError:
        assert done.returncode == 2
        assert "pip install 'gonio[arrow]'" in done.stderr
    else:
        assert pandas.read_parquet(tmp_path / "r.parquet")["label"].tolist() == LABELS


def test_a_proof_of_another_head_or_a_changed_one_is_refused_with_exit_code_1(model, tmp_path):
    run("can-win", model, "--proof", tmp_path / "p.npz")
    W = np.array([[0, 1], [0, -1], [1, 0], [-1, 0], [0.1, 2.0], [0.9, 0.9], [0.9, 0.9]])
    np.savez(tmp_path / "other.npz", W=W, labels=np.array(LABELS))
    done = run("verify", tmp_path / "other.npz", tmp_path / "p.npz")
    assert done.returncode == 1
    assert "7 are refused" in done.stdout
    assert "it is about the head" in done.stdout
    assert json.loads(run("verify", tmp_path / "other.npz", tmp_path / "p.npz", "--json", "-").stdout)["failed"]
    (tmp_path / "junk.npz").write_bytes(b"PK nothing")
    assert run("verify", model, tmp_path / "junk.npz").returncode == 2


def test_can_tie_answers_pairs_files_and_neighbours(model, tmp_path):
    done = run("can-tie", model, "north", "east")
    assert "'north' and 'east': no" in done.stdout  # the twins stand between them
    (tmp_path / "pairs.tsv").write_text("north\twest\nsouth\teast\nnorth\tsouth\n")
    done = run("can-tie", model, "--pairs", tmp_path / "pairs.tsv", "--csv", tmp_path / "t.csv")
    assert "can tie    2" in done.stdout
    assert [r["can_tie"] for r in csv.DictReader((tmp_path / "t.csv").read_text().splitlines())] == ["yes", "yes", "no"]
    assert run("can-tie", model, "--nearest", "2").returncode == 0


@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp8", "int8"])
def test_rounding_is_audited(model, kind):
    done = run("can-win", model, "--cast", kind)
    assert done.returncode == 0, done.stderr
    assert f"rounded to {kind}" in done.stdout


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", [np.float32, ml_dtypes.bfloat16])
def test_pad_writes_rows_that_never_win(tied, kind, tmp_path):
    numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed; make test installs it")
    rng = np.random.default_rng(0)
    W = (rng.standard_normal((90, 4)) + 3).astype(kind)
    tensors = {"model.embed_tokens.weight": W, "model.norm.weight": np.ones(4, kind)}
    if not tied:
        tensors = {
            "lm_head.weight": W,
            "model.embed_tokens.weight": W[::-1].copy(),
            "model.norm.weight": np.ones(4, kind),
        }
    (tmp_path / "in").mkdir()
    numpy.save_file(tensors, tmp_path / "in" / "model.safetensors")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 90,
        "tie_word_embeddings": tied,
    }
    (tmp_path / "in" / "config.json").write_text(json.dumps(config))
    (tmp_path / "in" / "vocab.json").write_text(json.dumps({f"t{i}": i for i in range(90)}))
    done = run("pad", tmp_path / "in", "--to", 96, "--out", tmp_path / "out", "--proof", tmp_path / "p.npz")
    assert done.returncode == 0, done.stderr
    assert "6 rows that never win, for 96 in all" in done.stdout
    assert "checked on the file" in done.stdout
    head = gonio.load(tmp_path / "out")
    assert head.shape == (96, 4)
    assert head.padded.tolist() == list(range(90, 96))
    assert not set(gonio.can_win(head).wins) & set(range(90, 96))
    assert json.loads((tmp_path / "out" / "config.json").read_text())["vocab_size"] == 96
    assert all(
        len(v) == 96 for k, v in numpy.load_file(tmp_path / "out" / "model.safetensors").items() if "norm" not in k
    )
    assert "6 proofs hold" in run("verify", tmp_path / "out", tmp_path / "p.npz").stdout
    told = run("can-win", tmp_path / "out").stdout
    assert "6 rows without a token, 0 of which can be on top" in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["can-win", "m.npz", "nrth"], "did you mean 'north'"),
        (["can-win", "m.npz", "--csv", "r.xls"], "choose .csv, .json or .parquet"),
        (["can-tie", "m.npz", "north"], "name two"),
        (["can-tie", "m.npz", "--pairs", "absent.tsv"], "cannot be read"),
        (["verify", "m.npz", "absent.npz"], "absent.npz"),
        (["pad", "m.npz", "--to", "3", "--out", "o"], "at least 7"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(arguments, said, model):
    done = run(*arguments, cwd=model.parent)
    assert done.returncode == 2, done
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
