"""Every number that `gonio check` prints of a table, computed again from the raw arrays, the plainest way there is.

One made table with everything wrong in it that the check looks for, small enough that nothing is sampled. A finding
without an oracle here fails the suite.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import gonio
from gonio import findings

N, D, ASKED, K = 300, 12, 60, 10


def made() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * np.exp(0.3 * rng.normal(size=(N, 1))) + 0.4
    X[7], X[11] = X[3], 0
    Q = X[rng.choice(np.arange(20, N), ASKED, replace=False)] + 0.5 * rng.normal(size=(ASKED, D))
    M = rng.normal(size=(D, D))
    return {
        "X": X,
        "Q": Q,
        "old": X @ M + 0.3 * rng.normal(size=(N, D)),
        "old_Q": Q @ M,
        "numbers": np.arange(1.0, N + 1),
    }


T = made()
X, Q = T["X"], T["Q"]


def unit(A):
    length = np.linalg.norm(A, axis=1, keepdims=True)
    return A / np.where(length > 0, length, 1)


def lists(scores, k=K):
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


LIVE = np.linalg.norm(X, axis=1) > 0
SCORES = np.where(LIVE, unit(Q) @ unit(X).T, -np.inf)
TOP = lists(SCORES)
GRADES = {
    q: dict(
        zip(
            lists(SCORES + 0.4 * np.random.default_rng(1).normal(size=SCORES.shape), 4)[q].tolist(),
            (3, 2, 1, 1),
            strict=True,
        )
    )
    for q in range(ASKED)
}
QRELS = {str(q): {str(j): g for j, g in GRADES[q].items()} for q in GRADES}


def ndcg(top):
    """nDCG@10 of every query, gains as graded, from its definition."""
    out = []
    for q, row in enumerate(top):
        gains = [GRADES[q].get(int(j), 0) for j in row]
        ideal = sorted(GRADES[q].values(), reverse=True)[:K]
        out.append(
            sum(g / np.log2(r + 2) for r, g in enumerate(gains)) / sum(g / np.log2(r + 2) for r, g in enumerate(ideal))
        )
    return np.array(out)


def kept(a, b):
    return float(np.mean([len(set(x) & set(y)) / len(x) for x, y in zip(a.tolist(), b.tolist(), strict=True)]))


def judged_pairs():
    """Scores of the first hundred of each list, and whether each is relevant."""
    top = lists(SCORES, 100)
    score = np.take_along_axis(SCORES, top, axis=1).ravel()
    return score, np.array([int(j) in GRADES[q] for q, row in enumerate(top) for j in row])


def empty_rows(f):
    assert f.data["rows"] == np.flatnonzero(~LIVE).tolist() == [11]


def duplicates(f):
    equal = [j for j in range(N) if any((X[i] == X[j]).all() for i in range(j))]
    assert f.data["spare"] == equal
    assert f.value == len(equal)


def near_duplicates(f):
    C = unit(X) @ unit(X).T
    np.fill_diagonal(C, -2)
    near = (C >= 0.999).any(axis=1) & LIVE
    assert f.value == pytest.approx(near.sum() / LIVE.sum())


def mixed_lengths(f):
    assert f.state == "fine"  # lengths were drawn from one lognormal law


def two_groups(f):
    raise AssertionError("directions were drawn from one law; no two groups may be told")


def false_alarms(f):
    pairs = SCORES[:, LIVE].ravel()
    assert np.mean(pairs >= f.value) == pytest.approx(f.data["reach"])
    assert abs(np.mean(pairs >= f.value) - 0.01) <= 1 / len(pairs)


def threshold(f):
    assert f.value == pytest.approx(np.mean(SCORES[:, LIVE] >= 0.6))


def lengths(f):
    assert f.data["quantiles"] == pytest.approx(
        np.quantile(np.linalg.norm(X[LIVE], axis=1), [0.05, 0.5, 0.95]), rel=1e-5
    )


def length_frequency(f):
    assert f.value == pytest.approx(spearmanr(np.linalg.norm(X[LIVE], axis=1), T["numbers"][LIVE])[0], abs=1e-6)


def metric(f):
    dot = lists(np.where(LIVE, Q @ X.T, -np.inf))
    away = ((Q[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    assert f.data["kept"]["dot"]["value"] == pytest.approx(kept(TOP, dot))
    assert f.data["kept"]["l2"]["value"] == pytest.approx(kept(TOP, lists(np.where(LIVE, -away, -np.inf))), abs=0.01)


def offset(f):
    C = unit(X[LIVE]) @ unit(X[LIVE]).T
    m = len(C)
    assert f.value == pytest.approx((C.sum() - np.trace(C)) / (m * (m - 1)), abs=1e-6)
    values = np.linalg.eigvalsh(np.cov(X[LIVE].T))
    p = values / values.sum()
    assert f.data["effective_rank"] == pytest.approx(np.exp(-(p * np.log(p)).sum()), rel=1e-2)


def hubs(f):
    counts = np.bincount(TOP.ravel(), minlength=N)
    assert f.value == counts.max()
    assert all(counts[int(x["id"])] == x["lists"] for x in f.data["busiest"])


def unfound(f):
    counts = np.bincount(TOP.ravel(), minlength=N)
    assert f.value == pytest.approx(np.mean(counts == 0))
    assert f.data["chance"] == pytest.approx((1 - K / N) ** ASKED)


def retrieval(f):
    assert f.value == pytest.approx(ndcg(TOP).mean())
    relevant = [len(set(TOP[q].tolist()) & set(GRADES[q])) / len(GRADES[q]) for q in range(ASKED)]
    assert f.data["means"]["cosine"]["recall"] == pytest.approx(np.mean(relevant))
    whole = lists(SCORES, N)
    first = [next(r for r, j in enumerate(row) if int(j) in GRADES[q]) for q, row in enumerate(whole)]
    assert f.data["means"]["cosine"]["mrr"] == pytest.approx(np.mean([1 / (r + 1) for r in first]))


def worst_queries(f):
    found = ndcg(TOP)
    assert f.value == int((found == 0).sum())
    assert [x["ndcg"] for x in f.data["queries"]] == pytest.approx(np.sort(found)[: len(f.data["queries"])])


def remedies(f):
    by = {x["name"]: x["difference"]["value"] for x in f.data["compared"]}
    dot = lists(np.where(LIVE, Q @ X.T, -np.inf))
    assert by["dot"] == pytest.approx(ndcg(dot).mean() - ndcg(TOP).mean())
    mean = X[LIVE].mean(axis=0)
    centred = lists(np.where(LIVE, unit(Q - mean) @ unit(X - mean).T, -np.inf))
    assert by["centred"] == pytest.approx(ndcg(centred).mean() - ndcg(TOP).mean(), abs=0.02)


def judged_threshold(f):
    score, good = judged_pairs()
    order = np.argsort(-score)
    precision = np.cumsum(good[order]) / np.arange(1, len(order) + 1)
    assert f.value is None
    assert precision[9:].max() < 0.9


def best_f1(f):
    score, good = judged_pairs()
    all_good = sum(map(len, GRADES.values()))
    best = max(2 * (good & (score >= t)).sum() / ((score >= t).sum() + all_good) for t in score)
    assert f.data["f1"]["value"] == pytest.approx(best, abs=1e-6)
    assert f.data["low"] <= f.value <= f.data["high"]


def reliability(f):
    score, good = judged_pairs()
    for b in f.data["bins"][1:-1]:
        inside = (score >= b["from"]) & (score < b["to"])
        assert b["share"] == pytest.approx(good[inside].mean(), abs=2 / b["pairs"])


def drift(f):
    def neighbours(A):
        C = unit(A[LIVE]) @ unit(A[LIVE]).T
        np.fill_diagonal(C, -2)
        return lists(C)

    assert f.value == pytest.approx(kept(neighbours(T["old"]), neighbours(X)), abs=0.002)  # copies may tie
    assert f.data["common"] == N


def rotation(f):
    A, B = (unit(x[LIVE]) for x in (T["old"], X))
    U, _, V = np.linalg.svd(A.T @ B)
    assert str(f.value) == "False"
    assert np.linalg.norm(A @ U @ V - B) > 0.1 * np.linalg.norm(B)


def linear_map(f):
    assert 0 <= f.data["interval"]["low"] <= f.value <= f.data["interval"]["high"] <= 1
    assert f.value > 10 * K / N  # two tables that are one but for noise are far above chance


def carried_threshold(f):
    share = f.data["share"]["value"]
    C = unit(T["old"]) @ unit(T["old"]).T
    assert f.data["share"]["low"] <= np.mean(C[np.triu_indices(N, 1)] >= 0.6) <= f.data["share"]["high"]
    new = unit(X[LIVE]) @ unit(X[LIVE]).T
    there = np.quantile(new[np.triu_indices(LIVE.sum(), 1)], 1 - share)
    assert f.data["interval"]["low"] <= there <= f.data["interval"]["high"]


def drift_quality(f):
    before = lists(np.where(LIVE, unit(T["old_Q"]) @ unit(T["old"]).T, -np.inf))
    assert f.value == pytest.approx(ndcg(TOP).mean() - ndcg(before).mean(), abs=0.01)


def cheaper(f):
    half = lists(np.where(LIVE, unit(Q[:, : D // 2]) @ unit(X[:, : D // 2]).T, -np.inf))
    assert f.data["kept"][f"truncated to {D // 2}"]["value"] == pytest.approx(kept(TOP, half))


def agreement(f):
    assert f.value == pytest.approx(spearmanr([SCORES[q, j] for q, j, _ in JUDGED], [g for *_, g in JUDGED])[0])


JUDGED = [
    (q, int(j), float(np.round(4 * SCORES[q, j] + np.sin(7 * q + j) - 2.5, 2)))
    for q in range(ASKED)
    for j in TOP[q][:5]
]
ORACLES = {
    "empty-rows": empty_rows, "duplicates": duplicates, "near-duplicates": near_duplicates, "mixed-lengths": mixed_lengths,
    "two-groups": two_groups, "false-alarms": false_alarms, "threshold": threshold, "lengths": lengths, "metric": metric,
    "length-frequency": length_frequency, "offset": offset, "hubs": hubs, "unfound": unfound, "retrieval": retrieval,
    "worst-queries": worst_queries, "remedies": remedies, "judged-threshold": judged_threshold, "best-f1": best_f1,
    "reliability": reliability, "drift": drift, "rotation": rotation, "linear-map": linear_map,
    "carried-threshold": carried_threshold, "drift-quality": drift_quality, "cheaper": cheaper, "agreement": agreement,
}  # fmt: skip


@pytest.fixture(scope="module")
def found():
    more = {"was": T["old"], "was_queries": T["old_Q"], "threshold": 0.6, "frequencies": T["numbers"]}
    with_qrels = gonio.check(X, Q, qrels=QRELS, cheaper=True, **more)
    with_pairs = gonio.check(X, Q, judged=[(str(q), str(j), g) for q, j, g in JUDGED])
    return {f.key: f for f in (*with_pairs.findings, *with_qrels.findings)}


@pytest.mark.parametrize("key", sorted(ORACLES))
def test_a_finding_says_what_the_arrays_say(key, found):
    if key not in found:
        assert key == "two-groups"  # all others are told of this table
        return
    ORACLES[key](found[key])


def test_every_finding_of_a_table_has_an_oracle():
    text = "".join(p.read_text() for p in Path(findings.__file__).parent.glob("table_*.py"))
    keys = set(re.findall(r'found\(\s*"([a-z0-9-]+)"', text)) - {"rows"}
    assert keys <= set(ORACLES)


def test_pairs_that_all_match_give_no_threshold_and_no_error():
    for add, word in ((9.0, "all"), (-9.0, "none")):
        seen = gonio.check(X, Q, judged=[(str(q), str(j), g + add) for q, j, g in JUDGED])
        assert seen["judged-threshold"].title.startswith(f"{word} of the 300 judged pairs count as matches")
        assert seen["agreement"].value == pytest.approx(
            spearmanr([SCORES[q, j] for q, j, _ in JUDGED], [g for *_, g in JUDGED])[0]
        )
