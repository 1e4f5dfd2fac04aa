"""What a check prints is true of tables that are hardly tables, its JSON fits its schema, and what it proposes runs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio import GonioError
from gonio.cli import main
from gonio.embeddings import table_of
from gonio.report.checked import check as text
from tests.embeddings.test_check import clean, tried
from tests.embeddings.test_judged import topics

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "check.schema.json").read_text())


def said(c, key: str) -> str:
    return f"{c[key].title} {c[key].says}"


def test_one_empty_row_does_not_make_the_others_a_sample():
    X, _ = clean(0, n=800)
    X[5] = 0
    c = gonio.check(X)
    assert "All 799 rows" in c["near-duplicates"].says
    assert "estimated" not in said(c, "near-duplicates") + said(c, "hubs")
    assert "drawn at random" not in c["hubs"].says
    assert c["empty-rows"].says.startswith("Row 5: a row of zeros")
    drifted = gonio.check(X, was=X)["drift"]
    assert "all 799 common documents that have a direction" in drifted.says
    assert drifted.data["interval"]["low"] == drifted.data["interval"]["high"] == 1


def test_rows_of_zeros_and_of_nan_are_not_said_to_differ():
    X, _ = clean(1)
    assert gonio.check(X)["duplicates"].title == "no two rows are equal"
    X[3] = X[4] = 0
    assert gonio.check(X)["duplicates"].title == "no two rows are equal of those with a direction"


def test_the_offset_of_few_rows_is_compared_with_what_cancelling_gives():
    c = gonio.check(np.array([[1.0, 0], [-1, 0]]))
    assert "is -1.000; if their directions cancelled out it would be -1.000" in c["offset"].title
    equal = gonio.check(np.ones((30, 4)) * [1, 2, 3, 4])
    assert "do not vary" in equal["offset"].says
    tight = gonio.check(clean(2)[0] + 9)
    assert "share a direction" in tight["offset"].says


def test_a_rate_that_no_threshold_has_is_not_claimed():
    X = np.random.default_rng(0).standard_normal((50, 1))
    c = gonio.check(X)
    share = np.mean([a * b > 0 for i, a in enumerate(X[:, 0]) for b in X[i + 1 :, 0]])
    assert c["false-alarms"].title.startswith(f"{share:.2%} of random pairs reach a cosine of 1.000")
    assert c["false-alarms"].data["reach"] == pytest.approx(share)
    spread = gonio.check(clean(3)[0])["false-alarms"]
    assert spread.title.startswith("1.00% of random pairs")
    assert spread.data["reach"] == pytest.approx(0.01, abs=1e-4)


def test_lists_longer_than_the_table_name_no_row_twice_and_no_empty_row():
    X, Q = clean(4, n=7)
    X[2] = 0
    c = gonio.check(X, Q, k=50)
    assert c.about["k"] == 6
    assert "0.143" not in c["unfound"].title
    assert c["unfound"].data["ids"] == ["2"]
    lists = gonio.embeddings.compare_tables(table_of(X), table_of(X), k=50, metric="cosine", sample=1000)
    assert (lists.kept == 1).all()
    assert (lists.near_new[:, -1] == -1).all()  # five others have a direction, six were asked for


def test_a_query_that_is_not_finite_is_counted_and_named():
    X, Q = clean(5)
    Q[2, 1] = np.nan
    with pytest.raises(
        GonioError, match=r"1 of the 60 queries of the array are not finite or all zeros \(the first is 2\)"
    ):
        gonio.check(X, Q)


@pytest.mark.parametrize(
    "made",
    [
        lambda rng: {"corpus": rng.standard_normal((1, 5))},
        lambda rng: {"corpus": rng.standard_normal((1, 5)), "queries": rng.standard_normal((3, 5))},
        lambda rng: {"corpus": rng.standard_normal((2, 5)), "was": None},
        lambda rng: {"corpus": np.repeat(rng.standard_normal((1, 5)), 30, axis=0), "was": np.ones((30, 4))},
        lambda rng: {"corpus": rng.standard_normal((40, 5)), "was": rng.standard_normal((40, 5)), "threshold": 0.3},
        lambda rng: {"corpus": rng.standard_normal((300, 5)) * [1, 1, 0, 0, 1], "k": 500},
        lambda rng: {"corpus": np.rint(rng.standard_normal((300, 8)) * 40).astype(np.int8), "cheaper": True},
        lambda rng: {"corpus": np.abs(rng.standard_normal((60, 5))).astype(np.float16), "metric": "l2"},
    ],
)
def test_small_and_flat_tables_are_answered_with_lines_that_run(made):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed; make test installs it")
    given = made(np.random.default_rng(0))
    c = gonio.check(**given)
    jsonschema.validate(json.loads(c.to_json()), SCHEMA)
    assert text(c)
    tried(c, given["corpus"].astype(np.float32), given.get("queries"), given.get("was"))


def test_every_finding_there_is_fits_the_schema():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed; make test installs it")
    X, Q, qrels = topics(0)
    X = np.vstack([X, X[:3]])
    X[9] = 0
    X[8, 0] = np.nan
    X[7] = 2.5
    rng = np.random.default_rng(0)
    pairs = [(q, str(d), float(str(d) in qrels[q])) for q in qrels for d in rng.choice(np.arange(10, 600), 8)]
    c = gonio.check(
        X, Q, was=X, was_queries=Q, qrels=qrels, judged=pairs, threshold=0.4, cheaper=True, sample=100,
        frequencies=np.arange(1.0, 604.0),
    )  # fmt: skip
    told = json.loads(c.to_json())
    jsonschema.validate(told, SCHEMA)
    known = set(SCHEMA["properties"]["findings"]["items"]["properties"]["key"]["enum"])
    missing = known - {f["key"] for f in told["findings"]}
    assert missing == {"rows", "two-groups"}
    X[8:10] = 1  # what the first lines drop would stop the others
    tried(c, X.astype(np.float32), Q.astype(np.float32), X.astype(np.float32))


def test_commands_that_ask_again_keep_the_options_they_need(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    X, Q = clean(6)
    X[4] = X[5]
    for name, A in (("a b.parquet", X), ("q.parquet", Q)):
        pq.write_table(pa.table({"key": [f"r{i}" for i in range(len(A))], "u": list(A), "v": list(A)}), tmp_path / name)
    line = [
        "check",
        str(tmp_path / "a b.parquet"),
        "--queries",
        str(tmp_path / "q.parquet"),
        "--column",
        "v",
        "--id",
        "key",
    ]
    line += ["--metric", "dot", "--sample", "50", "--top", "5", "--threshold", "3", "--json", str(tmp_path / "o.json")]
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "o.json").read_text())
    commands = {f["data"]["try"] for f in told["findings"] if f["data"]["try"].startswith("gonio ")}
    assert commands
    for again in commands:
        words = shlex.split(again)
        assert words[words.index("--column") + 1] == "v"
        assert CliRunner().invoke(main, words[1:]).exit_code == 0, again


def test_ids_may_be_whole_numbers_on_one_side_and_text_on_the_other():
    X, Q, qrels = topics(1)
    numbers = {int(q): {int(d): g for d, g in ds.items()} for q, ds in qrels.items()}
    a = gonio.check(table_of(X, ids=np.arange(600)), Q, qrels=qrels)["retrieval"].value
    assert gonio.check(table_of(X, ids=[str(i) for i in range(600)]), Q, qrels=numbers)["retrieval"].value == a


def test_a_hundred_thousand_copies_are_counted_at_once():
    X = np.repeat(np.random.default_rng(0).standard_normal((50_000, 4)), 3, axis=0)
    copies = gonio.embeddings.row_survey.survey_rows(table_of(X)).copies
    assert copies.groups == 50_000
    assert len(copies.spare) == 100_000
    assert copies.spare[:4].tolist() == [1, 2, 4, 5]
    assert len(copies.largest) == 20
