"""`gonio dial` and `gonio compare`, run as a user runs them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gonio
from gonio.gauge.reach import cosine
from tests.cli.test_info import run

W = np.random.default_rng(0).standard_normal((12, 4))


@pytest.fixture
def model(tmp_path):
    np.savez(tmp_path / "m.npz", W=W, labels=np.array(["dog", "cat", *(f"w{i}" for i in range(9)), "#3"]))
    return tmp_path / "m.npz"


def test_dial_says_what_it_did_and_writes_an_equivalent_model(model, tmp_path):
    done = run("dial", model, "dog", "cat", "--cosine", "-1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    for said in ("becomes -1.000000", "one vector of length", "proven", "measured", "written", "as written"):
        assert said in done.stdout
    again = gonio.load(tmp_path / "out" / "m.npz")
    assert cosine(again["dog"], again["cat"]) == pytest.approx(-1)
    done = run("compare", model, tmp_path / "out" / "m.npz")
    assert done.returncode == 0
    assert "the same, as far as heads can tell" in done.stdout
    assert "translation" in done.stdout
    said = json.loads(run("compare", model, tmp_path / "out" / "m.npz", "--json").stdout)
    assert said["same"] is True
    assert said["residual"] < 1e-10


def test_a_row_is_named_by_its_number_with_a_hash(model):
    done = run("dial", model, "#0", "#1", "--cosine", "0.5")
    assert "cos('dog', 'cat')" in done.stdout
    assert (
        "cos('dog', '#3')" in run("dial", model, "dog", "#3", "--cosine", "0.5").stdout
    )  # a label of that name goes first


def test_compare_names_what_differs(model, tmp_path):
    other = W.copy()
    other[5] += 1
    np.savez(tmp_path / "o.npz", W=other, labels=np.array(["dog", "cat", *(f"w{i}" for i in range(9)), "#3"]))
    done = run("compare", model, tmp_path / "o.npz")
    assert "not the same" in done.stdout
    assert "differ     'w3'" in done.stdout
    np.savez(tmp_path / "small.npz", W=W[:3])
    same = run("compare", tmp_path / "small.npz", tmp_path / "small.npz")
    assert same.returncode == 0
    np.savez(tmp_path / "turned.npz", W=W[:3] @ (np.eye(4) + 0.3 * np.ones((4, 4))))
    open_ = run("compare", tmp_path / "small.npz", tmp_path / "turned.npz")
    assert "cannot be told" in open_.stdout
    assert open_.returncode == 3
    assert done.returncode == 1


def test_the_head_alone_can_be_written(model, tmp_path):
    done = run("dial", model, "dog", "cat", "--cosine", "0", "--out", tmp_path / "h", "--head-only")
    assert done.returncode == 0, done.stderr
    assert gonio.load(tmp_path / "h" / "head.safetensors").shape == (12, 4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dial", "m.npz", "dog", "dog", "--cosine", "0"], "is one label"),
        (["dial", "m.npz", "dog", "cta", "--cosine", "0"], "did you mean 'cat'"),
        (["dial", "m.npz", "dog", "cat", "--cosine", "2"], "from -1 to 1"),
        (["dial", "m.npz", "dog", "cat", "--cosine", "0", "--out", "."], "never written over"),
        (["dial", "m.npz", "dog", "cat", "--cosine", "0", "--embeddings", "no.npy"], "cannot be read"),
        (["dial", "m.npz", "dog", "cat", "--cosine", "0", "--link", "cosine"], "leave every cosine as it is"),
        (["compare", "m.npz", "no.npz"], "there is no file"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(arguments, said, model):
    done = run(*arguments, cwd=model.parent)
    assert done.returncode == 2, done
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
