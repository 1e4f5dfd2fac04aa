"""can-label, can-rank, can-top and patterns, from a file to the answer and back through verify."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.npz"
    W = np.array([[1.0, 0], [0, 1], [1, 1], [-1, 0.5]])
    np.savez(path, W=W, labels=np.array(["cat", "dog", "pet", "fish"]))
    return str(path)


def run(*args, code=0):
    result = CliRunner().invoke(main, [str(a) for a in args])
    assert result.exit_code == code, result.output
    return result.output


def test_a_label_set_is_asked_proven_and_verified(model, tmp_path):
    proof = tmp_path / "p.npz"
    out = run("can-label", model, "--link", "sigmoid", "--on", "cat", "--on", "dog", "--off", "pet", "--proof", proof)
    assert "answer     no" in out
    assert "pet" in out
    assert "1 proof holds, 0 are refused" in run("verify", model, proof, "--link", "sigmoid")
    assert "answer     yes" in run("can-label", model, "--link", "sigmoid", "--on", "cat", "--rest-off")


def test_a_file_of_label_sets_gives_the_impossible_ones(model, tmp_path):
    sets = tmp_path / "sets.txt"
    sets.write_text("cat\tdog\tpet\ncat\tdog\nfish\ncat\tdog\n")
    out = tmp_path / "o.json"
    said = run("can-label", model, "--link", "sigmoid", "--sets", sets, "--csv", out, "--proof", tmp_path / "p.npz")
    assert "4 label sets, 3 of them distinct" in said
    assert "impossible 2" in said
    assert "{cat, dog}" in said
    assert "3 proofs hold" in run("verify", model, tmp_path / "p.npz", "--link", "sigmoid")
    assert json.loads(out.read_text())


@pytest.mark.parametrize("command", ["can-label", "audit"])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dog,cat", "has no tab and is no label: 'dog,cat'; the labels of a set are separated by tabs, so write tabs in "
                    "the place of its commas."),
        ("dog; cat", "place of its semicolons."),
        ("dog cat", "place of its blanks."),
        ("dog\tcow", "no label is called 'cow'"),
        ("cow", "no label is called 'cow'"),
    ],
)  # fmt: skip
def test_a_label_set_that_is_not_separated_by_tabs_is_told(model, tmp_path, command, line, words):
    sets = tmp_path / "sets.txt"
    sets.write_text(f"cat\tdog\n\n{line}\n")
    out = run(command, model, "--link", "sigmoid", "--sets", sets, code=2)
    assert f"{command}: line 3 of {sets}" in out
    assert words in out
    assert len(out.strip().splitlines()) == 1


def test_orders_and_top_sets(model, tmp_path):
    assert "answer     yes" in run("can-rank", model, "pet", "cat", "fish", "--proof", tmp_path / "r.npz")
    assert "1 proof holds" in run("verify", model, tmp_path / "r.npz")
    assert "answer" in run("can-rank", model, "cat>dog", "pet>fish")
    assert "answer     no" in run("can-top", model, "cat", "dog")
    assert "answer     yes" in run("can-top", model, "cat", "pet")


def test_patterns_are_counted_listed_and_saved(model, tmp_path):
    out = run("patterns", model, "--link", "sigmoid", "--top", "3", "--out", tmp_path / "s.npy")
    assert "label sets 8 of 16" in out
    assert "and 5 more" in out
    assert np.load(tmp_path / "s.npy").shape == (8, 4)
    counted = json.loads(run("patterns", model, "--json", "-"))
    assert counted["count"] + int(counted["impossible"]) == 24


def test_both_readings_of_decimals_are_printed(tmp_path):
    path = tmp_path / "figure4.npz"
    A = np.array([[-0.8, 1], [0.8, 1], [0.55, -0.5], [-1, -1], [1, -1]])
    np.savez(path, W=np.hstack([np.ones((5, 1)), A]))
    out = run("patterns", path, "--link", "sigmoid")
    assert "label sets 22 of 32" in out
    assert "exactly as stored: 22; with the numbers read as the decimals they print as" in out
    assert "zero: 20" in out
    assert "label sets 20 of 32" in run("patterns", path, "--link", "sigmoid", "--numbers", "decimals")
    counted = json.loads(run("patterns", path, "--link", "sigmoid", "--json", "-"))
    assert (counted["count"], counted["near_degenerate"]["count"]) == (22, 20)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("can-rank", "cat>dog", "dog>cat"), "contradicts itself"),
        (("can-rank", "cat>dog>pet"), "write each pair apart"),
        (("can-rank", "cat"), "two at least"),
        (("can-top", "bird"), "bird"),
        (("can-label", "--on", "cat"), "no label sets"),
        (("can-label", "--link", "sigmoid", "--on", "cat", "--sets", "x"), "not both"),
        (("can-label", "--link", "sigmoid", "--on", "cat", "--csv", "x.csv"), "--sets"),
        (("patterns", "--numbers", "5"), "numbers is 5.0"),
    ],
)
def test_bad_input_ends_with_one_sentence_and_code_2(model, args, words):
    out = run(args[0], model, *args[1:], code=2)
    assert words in out
    assert len(out.strip().splitlines()) == 1
