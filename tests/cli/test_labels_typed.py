"""Labels as they are typed at a command: what was taken is said, and only where it is not plain."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main

LABELS = ["dog", "Ġdog", "Ġcat", "Ċ", "p\u0430y", "#1", " x", "y"]


@pytest.fixture
def model(tmp_path):
    np.savez(tmp_path / "m.npz", W=np.random.default_rng(0).standard_normal((8, 4)))
    (tmp_path / "l.json").write_text(json.dumps(LABELS))
    return [str(tmp_path / "m.npz"), "--labels", str(tmp_path / "l.json"), "--link", "softmax"]


def run(*line, code=0):
    done = CliRunner().invoke(main, [str(x) for x in line])
    assert done.exit_code == code, (done.output[-500:], done.exception)
    return done


@pytest.mark.parametrize(
    ("typed", "said", "shown"),
    [
        ("cat", "cat -> 'Ġcat' (#2)", "Ġcat"),
        (" cat", " cat -> 'Ġcat' (#2)", "Ġcat"),
        ("Ġcat", "", "Ġcat"),
        ("▁cat", "▁cat -> 'Ġcat' (#2)", "Ġcat"),
        ("dog", "dog -> 'dog' (#0), not 'Ġdog' (#1)", "dog"),
        ("<0x0A>", "<0x0A> -> 'Ċ' (#3)", "Ċ"),
        ("\n", "\\n -> 'Ċ' (#3)", "Ċ"),
        ("#1", "", "Ġdog"),
        ("#5", "", "#1"),
        ("p\u0430y", "", "p\u0430y (U+0430)"),
        ("x", "x -> '␣x' (#6)", "␣x"),
    ],
)
def test_what_was_taken_is_said_on_the_error_stream(typed, said, shown, model):
    done = run("similar", model[0], typed, *model[1:])
    assert done.stderr == (f"{said}\n" if said else "")
    assert f"'{shown}'\n" in done.stdout


def test_json_keeps_the_raw_names_and_nothing_else_goes_to_its_stream(model):
    said = json.loads(run("dial", model[0], "x", "#4", "--cosine", "0.5", *model[1:], "--json", "-").stdout)
    assert '[" x", "p\u0430y"]' in json.dumps(said, ensure_ascii=False)
    assert "U+0430" not in json.dumps(said)
    assert "␣" not in json.dumps(said, ensure_ascii=False)


def test_a_file_of_many_labels_does_not_fill_the_terminal(tmp_path):
    labels = [f"Ġw{i}" for i in range(60)]
    np.savez(tmp_path / "m.npz", W=np.random.default_rng(0).standard_normal((60, 3)))
    (tmp_path / "l.json").write_text(json.dumps(labels))
    (tmp_path / "p.txt").write_text("".join(f"w{i}\tw{i + 1}\n" for i in range(59)))
    done = run(
        "can-tie",
        tmp_path / "m.npz",
        "--labels",
        tmp_path / "l.json",
        "--link",
        "softmax",
        "--pairs",
        tmp_path / "p.txt",
    )
    lines = [x for x in done.stderr.splitlines() if "->" in x]
    assert lines[0] == "w0 -> 'Ġw0' (#0)"
    assert len(lines) == 20
    assert "(how further names were taken is not told)" in done.stderr


def test_bytes_at_can_rank_are_labels_and_not_comparisons(model):
    done = run("can-rank", model[0], "<0x0A>", "<0x79>", *model[1:])
    assert "'Ċ' > 'y'" in done.stdout


def test_a_label_that_could_be_two_is_one_sentence_with_both(tmp_path):
    np.savez(tmp_path / "m.npz", W=np.eye(3), labels=np.array(["Ġdog", "▁dog", "c"]))
    done = run("can-win", tmp_path / "m.npz", "dog", "--link", "softmax", code=2)
    assert "2 may be meant: 'Ġdog' (#0), '▁dog' (#1)" in done.stderr
