"""The bias of small models and what helps downstream: groups are right, verdicts come out every way, runs repeat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gonio.core.head import Head
from gonio.studies import downstream as d
from gonio.studies.common_bias import against, common_bias, groups_of, matrices, verdict
from gonio.studies.downstream_summary import NEIGHBOURS, STS_B, summary
from gonio.studies.kept_arrays import digest_of, kept
from gonio.studies.study import Measured
from gonio.studies.tiny_language_models import EIGHT, Setting, TinyModel, numbered, tiny_models
from tests.studies.made import equivalent


def made(setting, seed=0, twist=0, common=0.0):
    """A model whose rows are shared ones and a common multiple of frequency, in an equivalent form of its own."""
    rng = np.random.default_rng(0)
    W, F = rng.normal(size=(60, 5)), rng.normal(size=(200, 5))
    counts = np.arange(60, 0, -1) ** 2
    own = np.random.default_rng(seed)
    W = (W if not common else own.normal(size=W.shape)) + common * np.outer(np.log2(counts), [1, 0, 0, 0, 0])
    head = Head(W, link="softmax")
    head, F = equivalent(head, F, twist) if twist else (head, F)
    return TinyModel(setting, head, F, 4.0, counts)


def test_there_are_eight_settings_and_each_differs():
    assert len({s.name for s in EIGHT}) == 8


def test_groups_are_what_models_have_in_common():
    a, b, c = (made(s) for s in (Setting(0, True, 0.1), Setting(1, True, 0.1), Setting(1, False, 0.1)))
    assert groups_of(a, b) == ["all pairs", "both tied", "only the seed differs"]
    assert groups_of(a, c) == ["all pairs", "one tied"]


def test_one_model_in_many_forms_is_hidden_by_its_cosines_and_frequency_is_seen():
    forms = [made(Setting(k, True, 0.1), twist=k + 1) for k in range(4)]
    r = common_bias(forms)
    assert r["all pairs: logits"].low == pytest.approx(1)
    assert "cosines show less than the models share" in r.verdict
    assert r.against.startswith("no pair's stored cosines")
    frequent = [made(Setting(k, True, 0.1), seed=k, common=0.5) for k in range(4)]
    assert "a good part of the common bias is frequency" in common_bias(frequent).verdict


def test_matrices_of_logits_are_those_of_any_form():
    m = made(Setting())
    head, F = equivalent(m.head, m.F)
    which, f = np.arange(30), np.zeros(30)
    a = matrices(m, which, f)["logits"]
    b = matrices(TinyModel(m.setting, head, F, 4.0, m.counts), which, f)["logits"]
    assert np.allclose(a, b)


@pytest.mark.parametrize(
    ("a", "f", "z", "said"),
    [(0.8, 0.5, 0.8, "is frequency"), (0.5, 0.48, 0.8, "less than"), (0.8, 0.78, 0.5, "more than"), (0.8, 0.78, 0.8, "about as much")],
)  # fmt: skip
def test_the_verdict_on_bias_follows_the_numbers(a, f, z, said):
    values = {"stored": a, "frequency held": f, "logits": z}
    n = {f"all pairs: {k}": Measured(k, v, v, v) for k, v in values.items()}
    assert said in verdict(n)
    assert bool(against(n)) == (a != z)


def test_words_are_numbered_by_frequency_and_others_are_one():
    names, counts, ids = numbered(["the cat the dog.", "the end"], 3)
    assert names == ["<other>", "the", "."]
    assert ids.tolist() == [1, 0, 1, 0, 2, 1, 0]
    assert counts.tolist() == [3, 3, 1]


def test_arrays_are_made_once_and_again_where_the_cache_is_broken(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made_arrays = []

    def make():
        made_arrays.append(1)
        return {"x": np.arange(3)}

    for _ in range(2):
        assert kept("t", digest_of([1], np.eye(2)), make)["x"].tolist() == [0, 1, 2]
    assert len(made_arrays) == 1
    next((tmp_path / "gonio" / "studies").iterdir()).write_bytes(b"broken")
    assert kept("t", digest_of([1], np.eye(2)), make)["x"].tolist() == [0, 1, 2]
    assert len(made_arrays) == 2
    assert digest_of([1], np.eye(2)) != digest_of([1], np.eye(3))


@pytest.mark.slow
def test_a_tiny_model_learns_and_is_the_same_twice(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed; make test installs it")
    text = ["the cat sat on the mat . the dog ran to the cat ."] * 300
    few = Setting(words=20, steps=60, dim=16)
    found = []
    for k in range(2):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(k)))
        found.append(tiny_models(text, [few])[0])
    assert found[0].loss == found[1].loss < 1.5  # a guess has log 10 = 2.3
    assert np.array_equal(found[0].F, found[1].F)


def collection(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 6))
    Q = X[:60] + 0.2 * rng.normal(size=(60, 6))
    return X * np.exp(rng.normal(size=(150, 1))), Q, {str(i): {str(i): 1} for i in range(60)}


def test_lengths_that_mislead_the_dot_product_are_shown_to_hurt():
    r = d.downstream(*collection())
    assert r["dot"].high < 0
    assert "shown to be worse: dot" in r.verdict
    assert r.verdict.startswith("Nothing is shown to beat the cosine")


def test_queries_that_lie_apart_from_the_documents_make_local_scaling_better():
    rng = np.random.default_rng(0)
    X, far = rng.normal(size=(150, 6)), 6 * np.eye(6)[0]
    Q = X[:60] + 0.3 * rng.normal(size=(60, 6))
    r = d.downstream(X + far, Q - far / 2, {str(i): {str(i): 1} for i in range(60)})
    assert r.verdict.startswith("Shown to be better than the cosine: CSLS, local scaling")
    assert r["CSLS"].low > 0
    assert "whitened" in r.against


def test_verdicts_on_ways_follow_what_was_shown():
    v = {"centred": "better", "whitened, 4 directions": "worse", "dot": "not shown"}
    assert d.verdict(v) == (
        "Shown to be better than the cosine: centred; shown to be worse: whitened, 4 directions; not shown either way: 1 of 3."
    )
    assert d.against(v) == "recommended remedies hurt here: whitened, 4 directions."
    assert d.against({"dot": "worse"}) == ""


def test_the_summary_has_what_the_page_of_runs_says():
    helps = (Path(__file__).parents[2] / "docs" / "what_helps.md").read_text(encoding="utf-8")
    words = " ".join(helps.split())
    for told in (*NEIGHBOURS.values(), *(x.split(" ")[0] for x in STS_B.values())):
        assert told in words, told
    assert "and -0.027, whitened in 192 and 384 directions -0.021 and -0.029 (-0.038 to -0.021): all worse" in words
    lines = summary(helps)
    dot = next(x for x in lines if x.startswith("| dot product"))
    assert dot.startswith("| dot product | -0.155 worse | -0.198 worse | +0.020 better | +0.004 not shown |")
    white = next(x for x in lines if x.startswith("| whitened, all"))
    assert white.endswith("| -0.238 worse | -0.128 worse | -0.053 worse |")
    assert "| without top 4 | -0.020 not shown | -0.015 worse |  |  | -0.135 worse |  |  |" in lines
