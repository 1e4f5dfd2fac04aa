"""Drift: rotations change nothing, other models are told apart, thresholds are carried over with intervals that hold."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio import GonioError
from gonio.cli import main
from gonio.embeddings import apply_map, compare_tables, linear_map, table_of
from tests.embeddings.test_check import tried
from tests.embeddings.test_judged import topics


def turned(X, seed=0):
    rng = np.random.default_rng(seed)
    return X @ np.linalg.qr(rng.standard_normal((X.shape[1],) * 2))[0]


def test_a_rotated_table_is_the_same_and_raises_no_alarm():
    X, Q, qrels = topics(0)
    old, old_q = turned(X), turned(Q)
    c = gonio.check(X, Q, was=old, was_queries=old_q, qrels=qrels, threshold=0.4, sample=200, cheaper=True)
    assert c["drift"].state == "fine"
    assert c["drift"].value > 0.999
    assert c["rotation"].value == "True"
    assert c["rotation"].data["cka"] == pytest.approx(1)
    assert c["linear-map"].value > 0.99
    i = c["carried-threshold"].data["interval"]
    assert i["low"] <= 0.4 <= i["high"]
    assert c["drift-quality"].value == pytest.approx(0, abs=1e-6)
    assert c["cheaper"].data["kept"]["int8"]["value"] > c["cheaper"].data["kept"]["binary"]["value"]
    assert c["cheaper"].data["quality"]["truncated to 4"]["verdict"] == "worse"
    tried(c, X.astype(np.float32), Q.astype(np.float32), old.astype(np.float32))


@pytest.mark.parametrize("copy", ["half", "noise"])
def test_clean_copies_of_a_table_raise_no_alarm_of_drift(copy):
    alarms = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((400, 24))
        old = X.astype(np.float16) if copy == "half" else X + 1e-3 * rng.standard_normal(X.shape)
        alarms += gonio.check(X, was=old, sample=100)["drift"].state == "warning"
    assert alarms <= 1


def test_another_model_is_told_and_the_documents_that_moved_are_named():
    X, _, _ = topics(1)
    old = X.copy()
    old[:20] = np.random.default_rng(0).standard_normal((20, 16)) * 5
    c = gonio.check(X, was=old)
    moved = {int(x["id"]) for x in c["drift"].data["moved"][:15]}
    assert moved <= set(range(20))
    other = gonio.check(X, was=np.random.default_rng(1).standard_normal((600, 24)))
    assert other["drift"].state == "warning"
    assert other["rotation"].data["cka"] < 2 * other["rotation"].data["cka_shuffled"]
    assert other["linear-map"].value < 0.1
    assert "over 300 documents" in other["linear-map"].says
    assert gonio.check(X[:60], was=X[:60])["linear-map"].state == "open"
    assert gonio.check(X, was=np.random.default_rng(1).standard_normal((600, 24)), sample=100)["linear-map"].value < 0.1


def test_documents_are_matched_by_id_in_any_order():
    X, _, _ = topics(2)
    order = np.random.default_rng(0).permutation(600)
    ids = np.array([f"d{i}" for i in range(600)])
    d = compare_tables(
        table_of(X, ids=ids), table_of(turned(X)[order][:500], ids=ids[order][:500]), k=10, metric="cosine", sample=100
    )
    assert len(d.here) == 500
    assert d.mean_kept.value > 0.99


def test_kept_neighbours_are_those_of_all_pairs():
    rng = np.random.default_rng(3)
    X, old = rng.standard_normal((60, 5)), rng.standard_normal((60, 7))

    def near(A):
        U = A / np.linalg.norm(A, axis=1, keepdims=True)
        S = U @ U.T - 9 * np.eye(60)
        return np.argsort(-S, axis=1)[:, :10]

    want = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(near(X), near(old), strict=True)])
    assert gonio.check(X, was=old)["drift"].value == pytest.approx(want)


def test_the_linear_map_is_that_of_least_squares():
    rng = np.random.default_rng(4)
    old = rng.standard_normal((500, 6))
    old /= np.linalg.norm(old, axis=1, keepdims=True)
    new = old @ rng.standard_normal((6, 4)) + rng.standard_normal(4)
    new /= np.linalg.norm(new, axis=1, keepdims=True)
    A = np.column_stack([old, np.ones(500)])
    assert linear_map(old, new) == pytest.approx(np.linalg.lstsq(A, new, rcond=None)[0], abs=1e-3)
    assert apply_map(linear_map(old, new), old).shape == (500, 4)


def test_equal_false_alarms_and_equal_precision_are_said_to_disagree_where_they_do():
    X, Q, qrels = topics(5, n=2000, q=80)
    pairs = [
        (q, str(d), float(str(d) in qrels[q])) for q in qrels for d in np.random.default_rng(int(q)).choice(2000, 20)
    ]
    pairs += [(q, d, 1.0) for q in qrels for d in list(qrels[q])[:2]]
    noisy = np.random.default_rng(0)
    old, old_q = X + 2 * noisy.standard_normal(X.shape), Q + 2 * noisy.standard_normal(Q.shape)
    c = gonio.check(X, Q, was=old, was_queries=old_q, judged=pairs, threshold=0.5)
    assert "by_precision" in c["carried-threshold"].data
    assert "disagree" in c["carried-threshold"].says


def test_a_threshold_that_no_random_pair_reaches_is_not_carried_over():
    X, _, _ = topics(9)
    c = gonio.check(X, was=turned(X), threshold=0.99)
    assert c["carried-threshold"].state == "open"
    assert "interval" not in c["carried-threshold"].data


@pytest.mark.slow
def test_the_interval_of_a_carried_threshold_holds_it():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((20_000, 6))
    truth = None
    held = 0
    old, new = X, X * np.array([3, 1, 1, 1, 1, 1])
    U, V = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (old, new))
    i, j = rng.integers(0, 20_000, (2, 2_000_000))
    a, b = np.einsum("ij,ij->i", U[i], U[j]), np.einsum("ij,ij->i", V[i], V[j])
    truth = float(np.quantile(b, (a < 0.7).mean()))
    for seed in range(300):
        some = rng.choice(20_000, 1500, replace=False)
        d = compare_tables(table_of(new[some]), table_of(old[some]), k=2, metric="cosine", sample=3, seed=seed)
        t, _, _ = d.carried_threshold(0.7)
        held += t.low <= truth <= t.high
    assert 0.92 <= held / 300 <= 0.98


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"was": np.ones((3, 4))}, "600 rows and the array 3"),
        ({"was_queries": np.ones((3, 4))}, "give was and queries too"),
        ({"fail_on": ["drift"]}, "without --was"),
        ({"fail_on": ["drift-quality"]}, "without --was-queries"),
        ({"was": np.zeros((600, 3))}, "0 common documents have a direction"),
    ],
)
def test_tables_that_cannot_be_compared_are_one_sentence(options, match):
    with pytest.raises(GonioError, match=match):
        gonio.check(topics(7)[0], **options)


def test_the_command_fails_on_drift(tmp_path):
    X, Q, _ = topics(8)
    for name, a in (("x", X), ("q", Q), ("old", np.random.default_rng(0).standard_normal(X.shape))):
        np.save(tmp_path / f"{name}.npy", a)
    line = ["check", str(tmp_path / "x.npy"), "--was", str(tmp_path / "old.npy"), "--threshold", "0.3", "--cheaper"]
    done = CliRunner().invoke(main, [*line, "--json", "-", "--fail-on", "drift"])
    assert done.exit_code == 1
    assert '"carried-threshold"' in done.output
    done = CliRunner().invoke(main, [*line, "--json", str(tmp_path / "o.json")])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "o.json").read_text())["format"] == "gonio check"
