"""`gonio.check` finds what was planted, is silent about clean tables, and every finding says what to try."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio import GonioError
from gonio.cli import main
from gonio.findings.check_run import WARNINGS
from gonio.report.checked import check as text


def clean(seed: int, n: int = 300, d: int = 32, q: int = 60):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal((q, d))


def tried(c, X, Q, old=None):
    """Run every line of code that the findings propose."""
    for f in c.findings:
        line = f.data["try"]
        if not line.startswith("gonio "):
            exec(line, {"np": np, "gonio": gonio, "found": c, "X": X, "Q": Q, "old": old})


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
def test_every_finding_ends_with_a_line_that_runs(metric):
    X, Q = clean(0)
    X[7] = X[3]
    X[9] = 0
    c = gonio.check(X, Q, metric=metric, threshold=0.5)
    assert {"duplicates", "empty-rows"} <= {f.key for f in c.warnings}
    tried(c, X.astype(np.float32), Q.astype(np.float32))
    assert text(c, explain=True).count("try: ") == len(c.findings)
    assert json.loads(c.to_json())["findings"][0]["key"] == c.findings[0].key
    assert "<code>" in c.to_html()
    assert "duplicates" in repr(c)
    assert c._repr_html_()


def test_rows_that_are_wrong_are_named():
    X, _ = clean(1)
    X[4, 2], X[5, 0], X[6], X[8], X[20:23] = np.nan, np.inf, 0, 3.5, X[19]
    c = gonio.check(X)
    assert c["not-finite"].data["rows"] == [4, 5]
    assert c["empty-rows"].data["rows"] == [6]
    assert c["constant-rows"].data["rows"] == [8]
    assert c["duplicates"].data["spare"] == [20, 21, 22]
    assert c["near-duplicates"].value == pytest.approx(4 / 297)


def test_zero_and_minus_zero_are_equal_rows():
    X, _ = clean(2)
    X[:, 0] = 0.0
    X[5], X[6] = X[4], X[4]
    X[6, 0] = -0.0
    assert gonio.check(X)["duplicates"].data["spare"] == [5, 6]


def test_two_pipelines_in_one_table_are_seen_by_their_lengths():
    X, _ = clean(3)
    X[:100] /= np.linalg.norm(X[:100], axis=1, keepdims=True)
    assert gonio.check(X)["mixed-lengths"].state == "warning"
    X, _ = clean(3)
    X[:100] *= 40
    assert gonio.check(X)["mixed-lengths"].state == "warning"


def test_two_groups_of_directions_are_told_and_one_is_not():
    X, Q = clean(10)
    X[:90, 0] += 40
    X[90:, 0] -= 40
    c = gonio.check(X, Q)
    assert c["two-groups"].value == pytest.approx(0.3)
    assert c["two-groups"].state == "fact"
    tried(c, X, Q)
    assert "two-groups" not in gonio.check(clean(10)[0])


def test_lengths_that_follow_frequency_are_measured(tmp_path):
    X, _ = clean(11)
    seen = np.arange(1, 301)
    X *= seen[:, None]
    c = gonio.check(X, frequencies=seen)
    assert c["length-frequency"].value > 0.9
    assert c["length-frequency"].data["interval"]["low"] <= c["length-frequency"].value
    other = gonio.check(X, frequencies={str(i): float(v) for i, v in enumerate(seen)})
    assert other["length-frequency"].value == c["length-frequency"].value
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "f.txt").write_text("\n".join(map(str, seen)))
    line = ["check", str(tmp_path / "x.npy"), "--frequencies", str(tmp_path / "f.txt")]
    assert "lengths with the numbers given is" in CliRunner().invoke(main, line).output
    with pytest.raises(GonioError, match="one entry per row"):
        gonio.check(X, frequencies=[1, 2])


def test_an_offset_is_measured_exactly():
    X, _ = clean(4)
    X += 3
    c = gonio.check(X)
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert c["offset"].value == pytest.approx((U @ U.T)[np.triu_indices(len(U), 1)].mean(), abs=1e-6)
    assert c["offset"].state == "warning"


def test_a_planted_hub_is_named():
    X, Q = clean(5, n=2000)
    Q += 1.5
    X[17] = Q.mean(axis=0)
    c = gonio.check(X, Q)
    assert c["hubs"].state == "warning"
    assert c["hubs"].data["busiest"][0]["id"] == "17"
    assert c["hubs"].data["corrected"]["CSLS"]["most"] <= c["hubs"].value


def test_the_share_above_a_threshold_is_counted_over_all_pairs():
    X, Q = clean(6)
    U, V = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, Q))
    cos = V @ U.T
    c = gonio.check(X, Q, threshold=0.2)
    assert c["threshold"].value == pytest.approx((cos >= 0.2).mean(), abs=1e-4)
    assert c["threshold"].state == "warning"
    assert c["false-alarms"].value == pytest.approx(np.quantile(cos, 0.99), abs=1e-4)


@pytest.mark.parametrize("form", ["array", "blocks"])
def test_lists_are_those_of_all_pairs_also_block_by_block(form, monkeypatch):
    from gonio.embeddings import embedding_table, table_of
    from gonio.embeddings.query_lists import query_lists
    from gonio.embeddings.scorers import metric_scorer

    X, _ = clean(7)
    if form == "blocks":
        monkeypatch.setattr(embedding_table, "BLOCK", 32 * 7)
    own = np.array([0, 5, 299])
    for metric, S in (
        ("dot", X @ X[own].T),
        ("l2", -((X[:, None] - X[own]) ** 2).sum(axis=2)),
    ):
        S[own, np.arange(3)] = -np.inf
        found = query_lists(table_of(X), [metric_scorer(metric, X[own])], 10, own=own)[metric]
        assert (found.near == np.argsort(-S, axis=0)[:10].T).all()


@pytest.mark.parametrize("kind", ["gauss", "unit", "half"])
def test_clean_tables_raise_no_alarm(kind):
    """Below 5 % of clean tables have any finding worth acting on, by cosine, and by every metric with unit rows."""
    alarms = dict.fromkeys(WARNINGS, 0)
    runs = 40
    for seed in range(runs):
        X, Q = clean(seed, n=400, d=24)
        metric = "cosine"
        if kind != "gauss":
            X, Q = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, Q))
            metric = ("cosine", "dot", "l2")[seed % 3]
        if kind == "half":
            X = X.astype(np.float16)
        for f in gonio.check(X, Q, metric=metric).warnings:
            alarms[f.key] += 1
    assert max(alarms.values()) <= 0.05 * runs, alarms


def test_a_threshold_at_the_accepted_rate_raises_no_alarm():
    from gonio.embeddings.random_pairs import RandomPairs

    exact = 2.3263478740408408  # 1 % of a normal lies above
    drawn = (RandomPairs(np.sort(np.random.default_rng(i).standard_normal(2000)), False, "dot") for i in range(400))
    assert sum(p.share_above(exact).low > 0.01 for p in drawn) <= 0.05 * 400


def test_a_sample_is_said_to_be_an_estimate_and_needs_less():
    X, Q = clean(8, n=3000, q=500)
    c = gonio.check(X, Q, sample=50)
    assert "estimated" in c["metric"].says
    assert c["hubs"].title.endswith("%)")
    every = gonio.check(X, Q)["hubs"].data["busiest"]
    share = next((x["lists"] for x in every if x["id"] == c["hubs"].data["busiest"][0]["id"]), 0) / len(Q)
    low, high = map(float, re.search(r"all 500 it is in ([\d.e-]+) % to ([\d.e-]+) %", c["hubs"].says).groups())
    assert low / 100 <= c["hubs"].data["share"]["low"] <= share <= c["hubs"].data["share"]["high"] <= high / 100
    assert c["metric"].data["kept"]["dot"]["low"] != c["metric"].data["kept"]["dot"]["high"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"queries": np.ones((2, 5))}, "width 5 and the array width 32"),
        ({"metric": "angle"}, "choose one of"),
        ({"threshold": float("nan")}, "finite number"),
        ({"sample": 3}, "from 20 on"),
        ({"k": 0}, "from 1 on"),
        ({"false_alarms": 2}, "between 0 and 1"),
        ({"fail_on": ["hub"]}, "did you mean 'hubs'"),
        ({"fail_on": ["threshold"]}, "without --threshold"),
        ({"queries": np.zeros((2, 32))}, "not finite or all zeros"),
    ],
)
def test_bad_options_are_one_sentence(options, match):
    with pytest.raises(GonioError, match=match):
        gonio.check(clean(0)[0], **options)


def test_tables_that_are_hardly_tables_are_answered():
    assert gonio.check(np.ones((1, 3)))["constant-rows"].value == 1
    assert "all 5 rows are equal" in gonio.check(np.ones((5, 3)) * [1, 2, 3])["duplicates"].title
    with pytest.raises(GonioError, match="nothing to compare"):
        gonio.check(np.zeros((5, 3)))
    assert gonio.check(np.eye(2))["false-alarms"].state == "open"


def test_the_command_writes_json_and_a_page_and_fails_when_asked(tmp_path):
    X, Q = clean(9)
    np.save(tmp_path / "x.npy", np.vstack([X, X[:2]]))
    np.save(tmp_path / "q.npy", Q)
    line = ["check", str(tmp_path / "x.npy"), "--queries", str(tmp_path / "q.npy")]
    done = CliRunner().invoke(main, [*line, "--json", str(tmp_path / "o.json"), "--html", str(tmp_path / "o.html")])
    assert done.exit_code == 0, done.output
    assert "are copies of another" in done.output
    assert json.loads((tmp_path / "o.json").read_text())["format"] == "gonio check"
    assert "try: <code>" in (tmp_path / "o.html").read_text()
    assert CliRunner().invoke(main, [*line, "--fail-on", "duplicates"]).exit_code == 1
    assert CliRunner().invoke(main, [*line, "--fail-on", "hubs"]).exit_code == 0
    assert CliRunner().invoke(main, [*line, "--fail-on", "threshold"]).exit_code == 2
    commands = [x.split("try: ")[1] for x in done.output.splitlines() if "try: gonio " in x]
    for again in set(commands):
        assert CliRunner().invoke(main, again.split()[1:]).exit_code == 0, again
