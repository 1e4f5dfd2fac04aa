"""`gonio dial` and `gonio compare`, run as a user runs them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gonio
from gonio.gauge.reach import cosine
from tests.cli.in_process import run

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
    assert "map        translation" in done.stdout
    said = json.loads(run("compare", model, tmp_path / "out" / "m.npz", "--json", "-").stdout)
    assert said["same"] is True
    assert said["residual"] < 1e-10


def test_a_row_is_named_by_its_number_with_a_hash(model):
    done = run("dial", model, "#0", "#1", "--cosine", "0.5")
    assert "cos('dog', 'cat')" in done.stdout
    # a number always, also where a label is called so; that one is reached by its own number
    assert "cos('dog', 'w1')" in run("dial", model, "dog", "#3", "--cosine", "0.5").stdout
    assert "cos('dog', '#3')" in run("dial", model, "dog", "#11", "--cosine", "0.5").stdout


def test_compare_names_what_differs(model, tmp_path):
    other = W.copy()
    other[5] += 1
    np.savez(tmp_path / "o.npz", W=other, labels=np.array(["dog", "cat", *(f"w{i}" for i in range(9)), "#3"]))
    done = run("compare", model, tmp_path / "o.npz")
    assert done.returncode == 1
    assert "not the same" in done.stdout
    assert "differ     'w3'" in done.stdout
    assert run("compare", model, tmp_path / "o.npz", "--json", "-").returncode == 1
    np.savez(tmp_path / "small.npz", W=W[:3])
    np.savez(tmp_path / "other.npz", W=W[3:6])
    done = run("compare", tmp_path / "small.npz", tmp_path / "other.npz")
    assert done.returncode == 3
    assert "cannot be told" in done.stdout
    assert run("compare", tmp_path / "small.npz", tmp_path / "small.npz").returncode == 0
    assert "3: it cannot be told" in " ".join(run("compare", "--help").stdout.split())


def test_the_head_alone_can_be_written(model, tmp_path):
    done = run("dial", model, "dog", "cat", "--cosine", "0", "--out", tmp_path / "h", "--head-only")
    assert done.returncode == 0, done.stderr
    assert gonio.load(tmp_path / "h" / "head.safetensors").shape == (12, 4)


def claimed(said: str) -> float:
    return float(said.split("differs by more than ")[-1].split(" (proven)")[0])


@pytest.mark.parametrize("kind", ["bias", "factor"])
def test_what_is_said_of_a_head_written_alone_is_said_of_the_file(kind, tmp_path):
    from safetensors.numpy import save_file

    rows = W.astype(np.float32) * 100
    (tmp_path / "in").mkdir()
    if kind == "bias":
        tensors = {"classifier.weight": rows, "classifier.bias": np.linspace(-3, 3, 12).astype(np.float32)}
        config = {"architectures": ["BertForSequenceClassification"], "model_type": "bert", "num_labels": 12}
    else:
        tensors = {"model.embed_tokens.weight": rows, "model.norm.weight": np.ones(4, np.float32)}
        config = {"architectures": ["CohereForCausalLM"], "model_type": "cohere", "vocab_size": 12, "logit_scale": 0.3}
    save_file(tensors, tmp_path / "in" / "model.safetensors")
    (tmp_path / "in" / "config.json").write_text(json.dumps(config))
    options = ("--link", "softmax", "--cosine", "0.9", "--radius", "5", "--out", tmp_path / "h", "--head-only")
    done = run("dial", tmp_path / "in", "0", "1", *options)
    assert done.returncode == 0, done.stderr
    written = claimed(next(x for x in done.stdout.splitlines() if "as written" in x))
    before = gonio.load(tmp_path / "in", link="softmax")
    after = gonio.load(tmp_path / "h" / "head.safetensors", link="softmax", tensor="weight")
    F = np.random.default_rng(1).standard_normal((2000, 4))
    F *= 5 / np.linalg.norm(F, axis=1, keepdims=True)
    p, q = (h.replace(inputs=None, W=h.W.astype(np.float64)).probabilities(F) for h in (before, after))
    assert np.abs(p - q).max() <= written + 1e-12
    assert written > 1e-7  # a head in float32 differs by more than one in memory does
    assert after.bias is not None or kind == "factor"


def test_no_bound_is_claimed_for_maps_that_need_new_embeddings(model, tmp_path):
    for link in ("sigmoid", "dot"):
        out = tmp_path / link
        done = run("dial", model, "dog", "cat", "--cosine", "0", "--link", link, "--out", out, "--head-only")
        assert done.returncode == 0, done.stderr
        assert "(proven)" not in done.stdout
        assert "proven " not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dial", "m.npz", "dog", "dog", "--cosine", "0"], "is one label"),
        (["dial", "m.npz", "dog", "cta", "--cosine", "0"], "did you mean 'cat'"),
        (["dial", "m.npz", "dog", "cat", "--cosine", "2"], "from -1 to 1"),
        (["dial", "m.npz", "dog", "cat", "--cosine", "0", "--out", "."], "never written over"),
        (["dial", "m.npz", "dog", "cat", "--cosine", "0", "--embeddings", "no.npy"], "there is no file"),
        (["dial", "m.npz", "dog", "cat", "--cosine", "0", "--link", "cosine"], "leave every cosine as it is"),
        (["compare", "m.npz", "no.npz"], "there is no file"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(arguments, said, model):
    done = run(*arguments, cwd=model.parent)
    assert done.returncode == 2, done
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
