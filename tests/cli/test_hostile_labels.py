"""Labels that are formulas, half characters or a megabyte long, in every output."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main
from gonio.report.table import save

FORMULAS = ["=1+2", "+1", "-1", "@SUM(A1)", "\tx", "\rx"]
LONG = "L" * 1_000_000
HALF = "half \ud800 pair"


@pytest.fixture
def model(tmp_path):
    W = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
    W[1] = W[0]
    np.savez(tmp_path / "m.npz", W=W)
    (tmp_path / "l.json").write_text(json.dumps([LONG, HALF, *FORMULAS, "a", "b", "c", "d"]))
    return [str(tmp_path / "m.npz"), "--labels", str(tmp_path / "l.json")]


def run(*line):
    done = CliRunner().invoke(main, [str(x) for x in line])
    assert done.exit_code == 0, (done.output[-500:], done.exception)
    return done.output


def test_cells_that_begin_like_a_formula_are_quoted_unless_asked_otherwise(model, tmp_path):
    before = csv.field_size_limit(2_000_000)
    for more, mark in (((), "'"), (("--csv-raw",), "")):
        run("can-win", *model, "--csv", tmp_path / "o.csv", *more)
        with open(tmp_path / "o.csv", newline="", encoding="utf-8") as f:
            names = [row["label"] for row in csv.DictReader(f)]
        assert names == [LONG, "half \\ud800 pair", *(mark + x for x in FORMULAS), "a", "b", "c", "d"]
    csv.field_size_limit(before)


def test_numbers_are_not_text(tmp_path):
    save({"x": [-1.5, 2], "y": ["-", "ok"]}, tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text().split() == ["x,y", "-1.5,'-", "2,ok"]


@pytest.mark.parametrize(
    "line",
    [
        ["info"],
        ["alike", "#0", "#1"],
        ["similar", "#0"],
        ["diagnose", "--no-orbit"],
        ["can-win", "#0", "#1"],
        ["can-tie", "#0", "#2"],
        ["can-rank", "#0", "#2"],
        ["can-top", "#0", "#2"],
        ["patterns", "--top", "3", "--link", "sigmoid"],
        ["dial", "#0", "#2", "--cosine", "0"],
    ],
    ids=lambda x: x[0],
)
def test_what_is_printed_stays_short_and_what_is_written_can_be_read(model, line, tmp_path):
    words = [line[0], model[0], *line[1:], *model[1:]]
    assert len(run(*words)) < 40_000
    run(*words, "--json", tmp_path / "o.json")
    json.loads((tmp_path / "o.json").read_bytes())
    json.loads(run(*words, "--json", "-"))


def test_tables_hold_every_label_whole(model, tmp_path):
    run("can-win", *model, "--csv", tmp_path / "o.json")
    assert json.loads((tmp_path / "o.json").read_bytes())["label"][:2] == [LONG, HALF]
    assert LONG in run("can-win", *model, "--csv", "-")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed; make test installs it")
    run("can-win", *model, "--csv", tmp_path / "o.parquet")


def test_pages_shorten_a_label_of_a_megabyte(model, tmp_path):
    run("explore", *model, "--no-open", "--html", tmp_path / "e.html")
    assert (tmp_path / "e.html").stat().st_size < 100_000


@pytest.mark.slow
def test_the_report_shortens_a_label_of_a_megabyte(model, tmp_path):
    run("audit", *model, "--html", tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 2_000_000
