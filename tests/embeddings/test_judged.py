"""Judged quality: metrics are those of ir-measures, verdicts are corrected, thresholds come with intervals that hold."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio import GonioError
from gonio.cli import main
from gonio.embeddings import table_of
from gonio.embeddings.judged_thresholds import best_f1, reliability, scored_pairs, threshold_for_precision
from gonio.embeddings.paired_comparison import compare_paired, holm
from gonio.embeddings.query_lists import query_lists
from gonio.embeddings.relevance_judgements import judgements_of
from gonio.embeddings.retrieval_quality import judged_queries, retrieval_quality
from gonio.embeddings.scorers import metric_scorer
from tests.embeddings.test_check import tried


def topics(seed: int, n: int = 600, q: int = 60, d: int = 16, noise: float = 0.8, offset: float = 0.0):
    """Documents and queries around 30 topics; a document of the query's topic is relevant, some more than others."""
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal((30, d))
    topic, asked = rng.integers(0, 30, n), rng.integers(0, 30, q)
    X, Q = (centre[t] + noise * rng.standard_normal((len(t), d)) + offset for t in (topic, asked))
    qrels = {str(i): {str(j): 1 + int(j) % 2 for j in np.flatnonzero(topic == t)} for i, t in enumerate(asked)}
    return X, Q, {k: v for k, v in qrels.items() if v}


@pytest.mark.parametrize("gains", ["linear", "exponential"])
def test_the_measures_are_those_of_ir_measures(gains):
    ir = pytest.importorskip("ir_measures")
    X, Q, qrels = topics(0)
    j = judgements_of(qrels, "qrels", table_of(Q), table_of(X))
    asked = judged_queries(j)
    lists = query_lists(table_of(X), [metric_scorer("cosine", Q[asked])], len(X))["cosine"]
    ours = retrieval_quality(lists, j, asked, gains=gains)
    run = {
        str(q): {str(d): float(-place) for place, d in enumerate(near)}
        for q, near in zip(asked, lists.near.tolist(), strict=True)
    }
    try:
        ndcg = ir.nDCG(dcg="exp-log2") @ 10 if gains == "exponential" else ir.nDCG @ 10
        found = list(ir.iter_calc([ndcg, ir.R @ 10, ir.RR, ir.AP], qrels, run))
    except (ValueError, RuntimeError, ImportError) as e:
        pytest.skip(f"ir-measures has no provider here ({e})")
    for measure, mine in ((ndcg, ours.ndcg), (ir.R @ 10, ours.recall), (ir.RR, ours.mrr), (ir.AP, ours.map)):
        theirs = {m.query_id: m.value for m in found if m.measure == measure}
        rounded = 1e-5 if gains == "exponential" else 1e-9  # one of its tools prints five digits
        assert [theirs[str(q)] for q in asked] == pytest.approx(mine.tolist(), abs=rounded)


def test_the_measures_are_those_of_their_formulas():
    rng = np.random.default_rng(0)
    X, Q, qrels = topics(1)
    j = judgements_of(qrels, "qrels", table_of(Q), table_of(X))
    asked = judged_queries(j)
    lists = query_lists(table_of(X), [metric_scorer("dot", Q[asked])], len(X))["dot"]
    ours = retrieval_quality(lists, j, asked, k=7, gains="exponential")
    for r in rng.choice(len(asked), 10, replace=False):
        grades = {int(d): g for d, g in qrels[str(asked[r])].items()}
        got = [grades.get(int(d), 0) for d in lists.near[r]]
        dcg = sum((2**g - 1) / np.log2(i + 2) for i, g in enumerate(got[:7]))
        best = sum((2**g - 1) / np.log2(i + 2) for i, g in enumerate(sorted(grades.values(), reverse=True)[:7]))
        ranks = [i + 1 for i, g in enumerate(got) if g > 0]
        assert ours.ndcg[r] == pytest.approx(dcg / best)
        assert ours.recall[r] == pytest.approx(sum(g > 0 for g in got[:7]) / len(grades))
        assert ours.mrr[r] == pytest.approx(1 / ranks[0])
        assert ours.map[r] == pytest.approx(np.mean([(i + 1) / rank for i, rank in enumerate(ranks)]))


def test_an_offset_that_hurts_is_measured_and_centring_is_proposed():
    X, Q, qrels = topics(2, offset=3.0, noise=1.0)
    c = gonio.check(X, Q, qrels=qrels, metric="dot")
    assert c["remedies"].state == "warning"
    verdicts = {x["name"]: x["verdict"] for x in c["remedies"].data["compared"]}
    assert verdicts["centred"] == "better"
    tried(c, X.astype(np.float32), Q.astype(np.float32))
    worst = gonio.check(X, Q, qrels=qrels)["remedies"].data
    assert {x["name"]: x["verdict"] for x in worst["compared"]}["dot"] == "worse"
    assert worst["losers"]["dot"][0]["after"] < worst["losers"]["dot"][0]["before"]


def test_nothing_is_claimed_where_relevance_is_drawn_by_lot():
    """Below 5 % of collections without any signal are told that something is better or worse."""
    claims = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, Q = rng.standard_normal((150, 12)), rng.standard_normal((40, 12))
        qrels = {str(i): {str(j): 1 for j in rng.choice(150, 5, replace=False)} for i in range(40)}
        compared = gonio.check(X, Q, qrels=qrels)["remedies"].data["compared"]
        claims += any(x["verdict"] != "not shown" for x in compared)
    assert claims <= 2


def test_few_queries_claim_nothing():
    X, Q, qrels = topics(3)
    few = {k: qrels[k] for k in list(qrels)[:5]}
    c = gonio.check(X, Q, qrels=few, metric="dot")
    assert c["remedies"].state == "fine"
    assert {x["verdict"] for x in c["remedies"].data["compared"]} == {"not shown"}


def test_holms_correction_is_that_of_the_definition():
    p = np.array([0.001, 0.3, 0.02, 0.011])
    assert holm(p) == pytest.approx([0.004, 0.3, 0.04, 0.033])
    rng = np.random.default_rng(0)
    base = rng.random(200)
    told = compare_paired(base, {"same": base, "up": base + 0.1 + 0.1 * rng.standard_normal(200)})
    assert [c.verdict for c in told] == ["not shown", "better"]
    few = base.copy()
    few[:5] += 0.5  # resamples without any of the five would make the interval a fiction
    changed = compare_paired(base, {"few": few})[0]
    assert changed.verdict == "not shown"
    assert np.isnan(changed.difference.low)


def test_the_threshold_of_a_precision_is_the_lowest_that_has_it():
    rng = np.random.default_rng(4)
    score = rng.random(4000)
    relevant = rng.random(4000) < score
    p = scored_pairs(score, relevant, rng.integers(0, 100, 4000))
    at = threshold_for_precision(p, 0.8)
    above = score >= at.threshold.value
    assert relevant[above].mean() == pytest.approx(at.precision)
    assert at.precision >= 0.8
    assert at.recall == pytest.approx(relevant[above].sum() / relevant.sum())
    lower = np.sort(score[score < at.threshold.value])[::-1]
    assert all(relevant[score >= t].mean() < 0.8 for t in lower[:: len(lower) // 50])
    assert at.threshold.low <= 0.6 <= at.threshold.high  # of scores above 0.6 four fifths are relevant
    random = scored_pairs(score, rng.random(4000) < 0.1, rng.integers(0, 100, 4000))
    assert threshold_for_precision(random, 0.9) is None
    best = best_f1(p)
    f1 = [2 * relevant[score >= t].sum() / ((score >= t).sum() + relevant.sum()) for t in np.linspace(0, 1, 201)]
    assert best.f1.value >= max(f1) - 1e-12
    assert best.threshold.low <= best.threshold.value <= best.threshold.high
    bins = reliability(p)
    assert sum(b["low"] <= (b["from"] + b["to"]) / 2 <= b["high"] for b in bins) >= 8


def test_judged_pairs_give_thresholds_and_agreement(tmp_path):
    X, Q, qrels = topics(5)
    rng = np.random.default_rng(0)
    lines = [
        f"{q}\t{d}\t{qrels[q].get(d, 0)}" for q in qrels for d in {*map(str, rng.choice(600, 15)), *list(qrels[q])[:3]}
    ]
    (tmp_path / "pairs.tsv").write_text("query\tdocument\tgrade\n" + "\n".join(lines))
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "q.npy", Q)
    line = [
        "check",
        str(tmp_path / "x.npy"),
        "--queries",
        str(tmp_path / "q.npy"),
        "--judged",
        str(tmp_path / "pairs.tsv"),
    ]
    done = CliRunner().invoke(main, [*line, "--json", "-", "--precision", "0.8"])
    assert done.exit_code == 0, done.output
    found = {f["key"]: f for f in json.loads(done.output)["findings"]}
    assert found["agreement"]["value"] > 0.2
    low, high = (found["judged-threshold"]["data"]["interval"][x] for x in ("low", "high"))
    assert low <= found["judged-threshold"]["value"] <= high
    assert {"best-f1", "reliability", "remedies"} <= set(found)
    strict = CliRunner().invoke(main, [*line, "--json", "-", "--relevant", "2"])
    assert json.loads(strict.output)["findings"] != json.loads(done.output)["findings"]


def test_pairs_of_documents_are_judged_without_queries():
    X, _, _ = topics(6)
    rng = np.random.default_rng(0)
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    pairs = [(i, j, float(U[i] @ U[j] > 0.3)) for i, j in rng.integers(0, 600, (400, 2)) if i != j]
    c = gonio.check(X, judged=pairs)
    assert c["judged-threshold"].value == pytest.approx(0.3, abs=0.05)
    assert c["best-f1"].data["f1"]["value"] == 1.0


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"qrels": {"0": {"absent": 1}}}, "qrels names 1 of 1 ids that the array does not have"),
        ({"qrels": {"nobody": {"0": 1}}}, "qrels names 1 of 1 ids"),
        ({"qrels": {"0": {"0": 0}}}, "no query of the qrels"),
        ({"qrels": {}}, "no judgement"),
        ({"qrels": {"0": {"0": float("nan")}}}, "finite number"),
        ({"qrels": "absent.txt"}, "there is no file"),
        ({"qrels": 3}, "(query, document, grade)"),
        ({"judged": [(0, 1, 1.0), (0, 2, 1.0)]}, "all 2 judged pairs are relevant"),
        ({"qrels": {"0": {"0": 1}}, "gains": "square"}, "choose one of"),
        ({"judged": [(0, 1, 1.0)], "precision": 0}, "precision is 0"),
    ],
)
def test_bad_judgements_are_one_sentence(given, match):
    X, Q, _ = topics(7)
    with pytest.raises(GonioError) as e:
        gonio.check(X, Q, **given)
    assert match in str(e.value)


def test_qrels_without_queries_and_bad_lines_are_refused(tmp_path):
    X, Q, _ = topics(8)
    with pytest.raises(GonioError, match="need the queries"):
        gonio.check(X, qrels={"0": {"1": 1}})
    (tmp_path / "q.txt").write_text("0 0 1 2\n0 0 2 word\n")
    with pytest.raises(GonioError, match=r"line 2 of q\.txt grades 'word'"):
        gonio.check(X, Q, qrels=tmp_path / "q.txt")
    (tmp_path / "q.txt").write_text("0 1\n")
    with pytest.raises(GonioError, match="has 2 columns"):
        gonio.check(X, Q, qrels=tmp_path / "q.txt")


@pytest.mark.slow
def test_the_interval_of_the_precision_threshold_holds_it():
    held = 0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        score = rng.random(3000)
        p = scored_pairs(score, rng.random(3000) < score, rng.integers(0, 150, 3000))
        at = threshold_for_precision(p, 0.8, seed=seed)
        held += at.threshold.low <= 0.6 <= at.threshold.high
    assert 930 <= held <= 970
