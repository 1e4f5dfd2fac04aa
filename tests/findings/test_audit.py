"""The audit: every link, what it must find, what it must not say, and that it can be stopped."""

from __future__ import annotations

import importlib
import json
import pickle
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gonio
from gonio import GonioError, Head, Nonnegative, Source
from gonio.findings import alike, anomalies, audit
from gonio.findings.audit_run import QUESTIONS
from gonio.gauge.transforms import Translation
from tests.strategies import heads

try:
    import jsonschema
except ImportError:
    jsonschema = None

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "audit.schema.json").read_text())
CLAIMS = tomllib.loads((ROOT / "docs" / "theorems.toml").read_text())["claims"]


def made(link="softmax", n=40, d=5, seed=0, **more):
    rng = np.random.default_rng(seed)
    return Head(rng.normal(size=(n, d)) + 0.5, link=link, labels=[f"label {i}" for i in range(n)], **more)


def checked(a):
    """The audit, once its JSON has been held against the schema and its theorems against the register."""
    d = json.loads(a.to_json())
    if jsonschema is not None:  # with the core install the rest is still checked
        jsonschema.validate(d, SCHEMA)
    for f in a.findings:
        assert f.theorem == "" or f.theorem in CLAIMS, f.theorem
    return a


def test_a_softmax_head_gets_every_section_with_evidence_of_its_own():
    head = made(n=60, d=3)
    F = np.random.default_rng(1).normal(size=(300, 3))
    a = checked(audit(head, embeddings=F, pairs=[("label 3", "label 7")]))
    assert a["single-cosine"].state == "convention"
    pair = a["pair"]
    assert pair.data["labels"] == ["label 3", "label 7"]
    assert abs(pair.data["dialled_to"] + 1) < 1e-6
    assert pair.data["measured"] < 1e-12
    assert pair.data["bound"] < 1e-12
    assert a["never-wins"].value == len(gonio.can_win(head).never) > 0
    assert a["never-wins"].state == "warning"
    assert 0 <= a["neighbours-kept"].value < 1
    assert a["similarity"].value == "centred-logit correlation"
    assert {f.section for f in a.findings} >= {"head", "cosine", "possible", "instead"}
    assert pickle.loads(pickle.dumps(a.findings)) == a.findings


@pytest.mark.parametrize(
    ("link", "state"), [("softmax", "convention"), ("sigmoid", "convention"), ("dot", "convention"), ("cosine", "fact")]
)
def test_every_link_has_its_verdict(link, state):
    a = checked(audit(made(link)))
    assert a["single-cosine"].state == state
    kept = a["neighbours-kept"]
    assert (kept.state == "fact") == (link == "cosine")
    assert checked(audit(made("dot", trained="factors")))["single-cosine"].state == "fact"


def test_what_no_prediction_sees_changes_no_fact():
    head = made(n=30, d=4, seed=3)
    F = np.random.default_rng(2).normal(size=(200, 4))
    v = np.array([1.0, -2, 0.5, 4])  # dyadic, so that the moved rows are exact
    W = np.round(head.W * 2**20) / 2**20
    first, second = (audit(Head(X, link="softmax"), embeddings=F) for X in (W, W + v))
    for key in ("never-wins", "shape"):
        assert first[key].value == second[key].value
    assert first["similarity"].value == second["similarity"].value
    a, b = (alike(Head(X, link="softmax"), 0, 1, embeddings=F) for X in (W, W + v))
    assert abs(a.instead[1] - b.instead[1]) < 1e-10
    assert abs(a.cosine - b.cosine) > 0.01
    moved = Translation(v).apply(Head(W, link="softmax"))
    assert np.array_equal(moved.W, W + v)  # the very change that the audit did not notice


def test_label_sets_of_the_users_data_that_cannot_be_output():
    head = made("sigmoid", n=12, d=2)
    sets = [["label 0"], ["label 1", "label 2"], [], ["label 3", "label 5", "label 7"]]
    a = checked(audit(head, label_sets=sets))
    found = a["impossible-sets"]
    assert found.value == len(gonio.ask.questions.can_labels(head, sets).impossible)
    assert found.state == ("warning" if found.value else "fine")
    assert "never-wins" not in {f.key for f in a.findings}


def test_twins_zero_rows_and_padded_rows_are_told():
    W = np.random.default_rng(0).normal(size=(10, 3))
    W[4], W[7] = W[2], 0
    head = Head(W, link="softmax", source=Source("m", "made", padded=(9,)))
    a = checked(audit(head))
    assert a["twins"].value == 2
    assert a["zero-rows"].value == 1
    assert a["padded"].value == 1
    assert a["padded-wins"].value == int(9 in gonio.can_win(head).tops) == 1
    assert {"twins", "zero-rows"} <= {f.key for f in a.warnings}
    assert a.failing(["twins"])
    assert not a.failing(["impossible-sets"])
    assert a.failing(["any"]) == a.warnings


def test_an_assumed_link_is_said_to_be_assumed():
    head = made(source=Source("m", "made", assumed=frozenset({"link"})))
    assert audit(head)["link"].state == "open"


@settings(max_examples=25, deadline=None)
@given(head=heads(labels=st.integers(1, 6), dim=st.integers(1, 4), inputs=True))
def test_every_small_head_has_an_audit_and_a_page(head):
    a = checked(audit(head))
    assert a.findings
    assert "<html" in a.to_html()


def test_an_interrupt_keeps_what_is_finished(monkeypatch):
    def stopped(_):
        raise KeyboardInterrupt
        yield

    monkeypatch.setitem(QUESTIONS, "possible", stopped)
    a = checked(audit(made()))
    assert a.unfinished == ("possible", "instead", "odd")
    assert a["pair"].value is not None
    assert a["instead-stopped"].section == "open"
    assert "stopped" in repr(a)
    assert "stopped early" in a.to_html()


def test_an_interrupt_inside_a_question_ends_the_audit_and_claims_nothing(monkeypatch):
    from dataclasses import replace

    from gonio.findings import possible_outputs

    real = possible_outputs.can_win
    monkeypatch.setattr(possible_outputs, "can_win", lambda h, **kw: replace(real(h), interrupted=True))
    a = checked(audit(made()))
    assert a["never-wins"].data["interrupted"]
    assert a.unfinished == ("possible", "instead", "odd")
    assert "not finished" in a["possible-stopped"].title
    assert "not asked" in a["instead-stopped"].title
    assert "ties" not in {f.key for f in a.findings}


def around(value):
    """Just below and just above a threshold."""
    return value * 0.98, value * 1.02


def test_a_common_offset_is_a_warning_from_its_threshold_on():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    X -= X.mean(axis=0)
    states = []
    for share in around(anomalies.COMMON):  # of the mean square that is the offset's
        W = X + np.sqrt(share / (1 - share) * (X**2).sum(axis=1).mean() / 30)
        f = audit(Head(W, link="cosine"))["anisotropy"]
        states.append(f.state)
        assert f.data["mean_share"] == pytest.approx(share, rel=1e-6)
        assert (f.state == "warning") == ("mostly the common offset" in f.says)
    assert states == ["fine", "warning"]


def test_lengths_that_follow_frequency_are_a_warning_from_their_threshold_on():
    rng = np.random.default_rng(0)
    unit = rng.normal(size=(300, 8))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    rank = np.arange(300.0)
    for noise, state in ((3.0, "fine"), (0.7, "warning")):
        length = 1 + (rank + noise * 300 * rng.random(300)) / 300
        f = audit(Head(unit * length[:, None], link="cosine"), frequencies=rank + 1)["norms"]
        assert f.state == state, f.data["frequency_correlation"]
        assert (abs(f.data["frequency_correlation"]) >= anomalies.FOLLOWS) == (state == "warning")


@pytest.mark.parametrize(
    ("skew", "antihubs", "state"), [(2.9, 0.2, "fine"), (3.1, 0.2, "warning"), (1.0, 0.3, "warning")]
)
def test_hubs_are_a_warning_from_their_thresholds_on(monkeypatch, skew, antihubs, state):
    from dataclasses import replace

    real = anomalies.diagnostics.hubness
    monkeypatch.setattr(
        anomalies.diagnostics,
        "hubness",
        lambda *a, **kw: replace(real(*a, **kw), skewness=skew, antihub_rate=antihubs, hubs=()),
    )
    f = audit(made())["hubness"]
    assert f.state == state
    assert ("nobody's 10 nearest" in f.title) == (state == "warning")


def test_equal_rows_are_no_near_duplicates_and_a_pair_is_named_once():
    W = np.random.default_rng(1).normal(size=(30, 6))
    W[20:] = W[0]
    a = audit(Head(W, link="softmax"), embeddings=np.random.default_rng(2).normal(size=(50, 6)))
    assert a["twins"].value == 11
    assert "near-duplicates" not in {f.key for f in a.findings}
    gaps = [frozenset(x[:2]) for x in a["cosine-against"].data["largest_gaps"]]
    assert len(set(gaps)) == len(gaps)


def test_all_near_duplicates_are_counted_and_serve_as_the_reference_of_untrained_rows():
    rng = np.random.default_rng(3)
    W = rng.normal(size=(200, 12))
    W[:20] = W[0] + 1e-3 * rng.normal(size=(20, 12))
    a = audit(Head(W, link="softmax"))
    assert a["near-duplicates"].value == 190
    assert "a cluster of 20 nearly equal rows, assumed to be untrained" in a["undertrained"].says


def test_the_hull_is_named_only_where_it_decides():
    W = np.vstack([np.eye(2), -np.eye(2), [[0.1, 0.1]]])
    assert "hull" in audit(Head(W, link="softmax"))["never-wins"].says
    for more in ({"bias": np.zeros(5)}, {"inputs": Nonnegative()}):
        assert "hull" not in audit(Head(W, link="softmax", **more))["never-wins"].says


def test_long_names_are_cut_in_sentences():
    head = Head(
        np.random.default_rng(0).normal(size=(30, 3)), link="softmax", labels=["x" * 5000 + str(i) for i in range(30)]
    )
    assert max(len(f.title) + len(f.says) for f in audit(head).findings) < 1000


def test_rows_whose_squares_no_float_holds_are_told_in_a_sentence():
    W = np.random.default_rng(0).normal(size=(20, 3))
    assert "divide all rows" in checked(audit(Head(W * 1e-310, link="cosine")))["odd-failed"].says
    with pytest.raises(GonioError, match=r"no float holds; divide all rows by 3e.300"):
        anomalies.diagnostics.anisotropy(Head(W * 1e300, link="cosine"))


def test_a_question_that_fails_is_told_and_the_others_answered(monkeypatch):
    def failing(_):
        raise GonioError("this one cannot be answered.")
        yield

    monkeypatch.setitem(QUESTIONS, "possible", failing)
    a = checked(audit(made()))
    assert a["possible-failed"].says == "this one cannot be answered."
    assert a["similarity"].value


def test_alike_gives_the_reachable_range_and_an_interval():
    head = made(n=20, d=4)
    F = np.random.default_rng(0).normal(size=(400, 4))
    r = alike(head, "label 1", "label 2", embeddings=F)
    assert r.reachable == (-1.0, 1.0)
    name, value, (low, high) = r.instead
    assert name == "centred-logit correlation"
    assert low <= value <= high
    assert r.fragility > 0
    assert json.loads(json.dumps(r.to_dict()))["instead"]["value"] == value
    assert alike(made("cosine"), 0, 1).fragility is None
    assert "says nothing" in repr(r)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda h: audit(h, embeddings=np.ones((3, 9))), "width"),
        (lambda h: audit(h, frequencies=[1, 2]), "one a label"),
        (lambda h: audit(h, frequencies=-np.ones(40)), "negative"),
        (lambda h: audit(h, pairs=[(0, 0)]), "one label"),
        (lambda h: audit(h, pairs=["ab"]), "not a pair"),
        (lambda h: audit(h, pairs=[("label 1", "nobody")]), "nobody"),
        (lambda h: audit(h, label_sets=[["nobody"]]), "nobody"),
        (lambda h: audit(h).to_json("/nowhere/x.json"), "does not exist"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, words):
    with pytest.raises(GonioError, match=words):
        call(made())


def test_the_audit_is_a_function_whoever_imported_its_room_first():
    importlib.import_module("gonio.findings.audit_run")
    assert gonio.audit(made())["link"].value == "softmax"


def test_inputs_narrow_what_is_possible():
    head = made(n=30, d=2)
    wide, narrow = (audit(h)["never-wins"].value for h in (head, head.replace(inputs=Nonnegative())))
    assert narrow > wide


def test_all_pairs_are_looked_at_once(monkeypatch):
    from gonio.diagnostics import duplicates, hubs
    from gonio.findings import subject
    from gonio.similarity.nearest import nearest_by_cosine

    whole = []

    def counted(rows, k, which=None):
        whole.append(which is None)
        return nearest_by_cosine(rows, k, which)

    for module in (duplicates, hubs, subject):
        monkeypatch.setattr(module, "nearest_by_cosine", counted)
    found = audit(made(n=60, d=5))
    assert "hubness" in {f.key for f in found.findings}
    assert sum(whole) == 1
