"""Study 3: agreements are those of loops, rotations of a run change nothing that is fact, verdicts come out both ways."""

from __future__ import annotations

import numpy as np
import pytest

from gonio.studies.equal_runs import (
    Data,
    Trained,
    TrainingWay,
    against,
    agreement_of_runs,
    compared,
    equal_runs,
    predicts_equally,
    verdict,
)
from gonio.studies.study import Measured


def run(way="plain", seed=0, noise=0.0, twist=None, n=12, d=5, loss=0.0):
    rng = np.random.default_rng(0)
    W, F = rng.normal(size=(n, d)), rng.normal(size=(200, d))
    other = np.random.default_rng(seed + 1)
    W = W + noise * other.normal(size=W.shape)
    if twist is not None:  # another equivalent form of the same model
        W, F = W @ twist.T + other.normal(size=d) * 3, F @ np.linalg.inv(twist)
    return Trained(way, seed, W, F, np.full(200, -1.0 - loss) + 0.01 * other.normal(size=200))


def test_agreements_against_loops():
    a, b = run(), run(seed=3, noise=0.5)
    found = agreement_of_runs(a, b)
    pairs = [(i, j) for i in range(12) for j in range(i)]
    cos = lambda x, y: x @ y / np.linalg.norm(x) / np.linalg.norm(y)  # noqa: E731
    for kind, rows in (("cosines", [r.W for r in (a, b)]), ("logits", [])):
        if kind == "logits":
            Z = [r.F @ r.W.T for r in (a, b)]
            Z = [z - z.mean(axis=1, keepdims=True) for z in Z]
            values = [[np.corrcoef(z[:, i], z[:, j])[0, 1] for i, j in pairs] for z in Z]
        else:
            values = [[cos(X[i], X[j]) for i, j in pairs] for X in rows]
        assert found[kind] == pytest.approx(np.corrcoef(*values)[0, 1])
    near = [
        [max((j for j in range(12) if j != i), key=lambda j: cos(r.W[i], r.W[j])) for i in range(12)] for r in (a, b)
    ]
    assert found["neighbours"] == pytest.approx(np.mean([x == y for x, y in zip(*near, strict=True)]))


def test_equivalent_forms_of_one_run_agree_by_logits_and_the_ambiguity_is_told():
    rng = np.random.default_rng(5)
    runs = [run(seed=s, twist=np.eye(5) + rng.normal(size=(5, 5))) for s in range(4)]
    r = compared("made", runs)
    assert r["equal runs: logits"].low == pytest.approx(1, abs=1e-6)
    assert "the ambiguity arises" in r.verdict


def test_runs_that_are_alike_show_no_ambiguity_and_unequal_ones_nothing():
    r = compared("made", [run(seed=s, noise=0.01) for s in range(3)])
    assert "no ambiguity" in r.verdict
    r = compared("made", [run(seed=s, loss=s) for s in range(3)])
    assert r.verdict.startswith("No two runs")


def test_a_remedy_that_fixes_cosines_least_is_told_first():
    n = {m.name: m for m in (Measured("plain, seeds: cosines", 0.8, 0.7, 0.9),)}
    assert against(n) == ""
    n["cosine loss, seeds: cosines"] = Measured("cosine loss, seeds: cosines", 0.2, 0.1, 0.3)
    assert "cosine loss 0.20" in against(n)
    n["cosine loss, seeds: cosines"] = Measured("cosine loss, seeds: cosines", 0.85, 0.8, 0.9)
    assert against(n) == ""


def test_cosines_that_are_fixed_better_than_logits_are_called_so():
    n = {m.name: m for m in (
        Measured("pairs of runs that predict equally well", 5),
        Measured("equal runs: cosines", 0.9, 0.8, 1), Measured("equal runs: logits", 0.5, 0.4, 0.6),
        Measured("pairs whose logits agree more than their cosines", 0.1),
    )}  # fmt: skip
    assert "training fixes cosines better" in verdict(n)


def test_equal_means_within_the_margin_with_its_interval():
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    assert predicts_equally(a, a + 0.01, 0.05)
    assert not predicts_equally(a, a + 0.1, 0.05)
    assert not predicts_equally(a, rng.normal(size=500), 0.05)


@pytest.mark.slow
def test_training_is_the_same_twice_and_learns(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed; make test installs it")
    from gonio.studies.real_data import digits

    d = digits()
    ways = (TrainingWay("plain"), TrainingWay("dropout", dropout=0.5))
    first = []
    for k in range(2):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(k)))
        first.append(equal_runs(Data(d.name, d.X, d.Y, d.held_x, d.held_y, 200), ways=ways, seeds=(0, 1)))
    assert first[0].to_dict() == first[1].to_dict()
    assert first[0]["plain, seeds: logits"].value > 0.3
