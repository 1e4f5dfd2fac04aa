"""Every command that takes a made model, run as a user would: its numbers are true, or it refuses in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main
from tests.ask.judge import exact_lp
from tests.truth import brute
from tests.truth.made import MODELS

SCORES = ("softmax", "sigmoid", "dot")


def invoke(*args):
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


def answer(*args):
    r = invoke(*args)
    assert r.exit_code == 0, r.output
    return json.loads(r.stdout)


def refused(*args):
    """The sentence of a refusal: exit code 2, one line."""
    r = invoke(*args)
    assert r.exit_code == 2, r.output
    assert r.stderr.startswith("gonio: ")
    assert r.stderr.count("\n") == 1
    return r.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = {}

    def make(name):
        if name not in found:
            found[name] = MODELS[name](tmp_path_factory.mktemp(name))
        return found[name]

    return make


every = pytest.mark.parametrize("name", MODELS)


@every
def test_info(made, name):
    t = made(name)
    said = answer("info", *t.typed, "--json", "-")
    assert said["link"] == t.link
    assert ("link" in said["assumed"]) == t.assumed
    assert (said["labels"], said["dim"]) == t.W.shape
    assert said["rank"] == np.linalg.matrix_rank(t.W.astype(float))
    assert said["zero_rows"] == [i for i in range(t.n) if not t.W[i].any()]
    assert sorted(i for g in said["twins"] for i in g) == [i for i in range(t.n) if brute.equals(t, i)]
    assert said["padded"] == list(t.padded)
    assert said["softcap"] == t.softcap
    assert said["norms"]["largest"] == pytest.approx(np.linalg.norm(t.W.astype(float), axis=1).max(), rel=1e-6)
    assert t.link in invoke("info", *t.typed).stdout


@every
def test_alike(made, name):
    t = made(name)
    a, b = 0, 1
    if t.link == "unknown":
        assert "--link" in refused("alike", *t.typed, t.label(a), t.label(b))
        return
    said = answer("alike", *t.typed, t.label(a), t.label(b), "--json", "-")
    assert said["cosine"] == pytest.approx(brute.cosines(t.W)[a, b], abs=1e-6)
    assert said["link_assumed"] == t.assumed
    fixed = t.link == "cosine" or (t.link == "input" and not t.offset)
    assert (said["reachable"] == [-1, 1]) == (not fixed)
    assert (said["fragility"] is not None) == ((t.link == "softmax" and t.softcap is None) or t.offset)
    instead = said["instead"]
    if t.link in ("vectors", "input") or name == "full_rank":
        assert instead["measure"] == "none"
        assert instead["value"] is None
        assert said["note"]
    elif t.link == "dot":
        assert instead["value"] == pytest.approx(brute.projected_back(t)[a, b], abs=1e-6)
        assert instead["interval"][0] <= instead["value"] <= instead["interval"][1]
    elif t.link != "cosine":
        from tests.truth.oracles_of_measures import _whitened

        assert instead["value"] == pytest.approx(_whitened(t)[a, b], abs=1e-5)
    text = invoke("alike", *t.typed, t.label(a), t.label(b)).stdout
    if t.assumed:
        assert "as assumed" in text
    if t.tied:
        assert "untied" in " ".join(text.split())
    for line in text.splitlines():  # what is suggested runs
        if line.startswith("  next       gonio "):
            import shlex

            r = invoke(*shlex.split(line.removeprefix("  next       gonio ")))
            assert r.exit_code == 0, (line, r.output)


@every
def test_similar(made, name):
    t = made(name)
    if t.link in ("unknown", "input") or name == "full_rank":
        refused("similar", *t.typed, t.label(0))
        said = answer("similar", *t.typed, t.label(0), "--measure", "cosine", "--json", "-")["cosine"]
    else:
        both = answer("similar", *t.typed, t.label(0), "--top", "3", "--json", "-")
        said = both["cosine"]
        if t.link == "dot":
            true = brute.projected_back(t)[0]
            assert np.allclose(both["similar"]["values"][0], true[both["similar"]["near"][0]], atol=1e-6)
    true = brute.cosines(t.W)[0]
    assert np.allclose(said["values"][0], true[said["near"][0]], atol=1e-6)


@every
def test_dial(made, name, tmp_path):
    t = made(name)
    a, b = 0, 1
    command = ("dial", *t.typed, t.label(a), t.label(b), "--cosine", "0.25", "--json", "-")
    if t.link in ("unknown", "cosine") or (t.link == "input" and not t.offset):
        refused(*command)
        return
    said = answer(*command)
    assert said["cosine"] == pytest.approx(0.25, abs=1e-6)
    assert said["cosine_before"] == pytest.approx(brute.cosines(t.W)[a, b], abs=1e-6)
    moved_by_vector = (t.link == "softmax" and t.softcap is None) or t.offset
    assert (said["translation"] is not None) == moved_by_vector
    if moved_by_vector:
        assert brute.cosines(t.W + np.array(said["translation"]))[a, b] == pytest.approx(0.25, abs=1e-6)
    assert (said["max_probability_difference"] is not None) == (t.link in SCORES)
    if t.link in SCORES:
        assert said["max_probability_difference"] < 1e-8


@every
def test_who_can_win(made, name, tmp_path):
    t = made(name)
    if t.link not in SCORES:
        refused("can-win", *t.typed)
        return
    said = answer("can-win", *t.typed, "--json", "-")
    top = brute.tops(t)
    if name == "near_degenerate":  # label 2 is inside by a rounding of 0.55: it may be left open, and is no win
        endless = [np.inf] * t.W.shape[1]
        assert exact_lp(t.W.tolist(), [0] * t.n, 2, [-np.inf] * t.W.shape[1], endless)[0] == 0
        assert said["never"] in ([], [2])
        assert said["wins"] + len(said["undecided"]) + len(said["never"]) == t.n
        assert said["wins"] == t.n - 1
        return
    assert said["never"] == [i for i in range(t.n) if i not in top]
    assert said["shared"] == [i for i in top if brute.equals(t, i)]
    assert said["wins"] == len([i for i in top if not brute.equals(t, i)])
    assert not said["undecided"]
    for group in said["twins"]:
        assert group["labels"] == sorted([group["labels"][0], *brute.equals(t, group["labels"][0])])
        assert (group["can_be_top"] == "yes") == (group["labels"][0] in top)
    r = invoke("can-win", *t.typed, "--proof", tmp_path / "p.npz")
    assert r.exit_code == 0
    checked = answer("verify", *t.typed, tmp_path / "p.npz", "--json", "-")
    assert sum(checked["proven"].values()) == t.n
    assert not checked["failed"]
    told = invoke("can-win", *t.typed).stdout
    if t.padded:
        able = [i for i in t.padded if i in top]
        assert f"{len(t.padded)} rows without a token, {len(able)} of which can be on top" in told
        assert invoke("audit", *t.typed, "--fail-on", "padded-wins").exit_code == (1 if able else 0)


@every
def test_ties_orders_and_tops(made, name):
    t = made(name)
    if t.link not in SCORES:
        for command in ("can-tie", "can-rank", "can-top"):
            refused(command, *t.typed, t.label(0), t.label(1))
        refused("can-label", *t.typed, "--on", t.label(0))
        refused("patterns", *t.typed)
        return
    rng = np.random.default_rng(0)
    d = t.W.shape[1]
    for a, b in ((0, 1), (2, 3)):
        tie = answer("can-tie", *t.typed, t.label(a), t.label(b), "--json", "-")["can_tie"][0]
        if t.kind != "users":
            from tests.truth.oracles import _tie_margin

            margin = _tie_margin(t, a, b)
            assert tie == ("yes" if margin > 1e-7 else "no") or abs(margin) <= 1e-6
        order = answer("can-rank", *t.typed, t.label(a), t.label(b), "--json", "-")
        V, c = brute.reduced(t)
        if t.kind == "users":
            z = t.users @ t.W[[a, b]].T + t.bias()[[a, b]]
            true = bool((z[:, 0] > z[:, 1]).any())
        elif t.kind == "box":
            gap = V[a] - V[b]
            true = float(np.maximum(gap * t.low, gap * t.high).sum() + c[a] - c[b]) > 0
        else:
            reach = np.inf if t.kind == "all" else np.sqrt(d)
            gap = float(np.linalg.norm(V[a] - V[b]))
            true = bool((gap and reach == np.inf) or reach * gap + c[a] - c[b] > 0) if gap else c[a] > c[b]
        assert order["answer"] == ("yes" if true else "no")
    top = brute.tops(t)
    for i in rng.permutation(t.n)[:4]:
        one = answer("can-top", *t.typed, t.label(int(i)), "--json", "-")["answer"]
        assert one == ("yes" if i in top and not brute.equals(t, int(i)) else "no")


@every
def test_a_model_is_the_same_as_itself_and_not_as_another(made, name, tmp_path):
    t = made(name)
    if t.kind == "users" or len(t.typed) > 1:
        return  # compare takes two files
    if t.link == "unknown":
        refused("compare", *t.typed, *t.typed)
        return
    same = invoke("compare", *t.typed, *t.typed)
    assert same.exit_code == 0, same.output
    wide = np.linalg.matrix_rank(t.W.astype(float) - t.W.astype(float).mean(axis=0)) >= t.n - 1
    if t.typed[0].endswith(".npz") and not wide:
        with np.load(t.typed[0]) as z:
            parts = dict(z)
        key = next(k for k in parts if parts[k].ndim == 2)
        W = parts[key].copy()
        W[0] = -W[0]
        np.savez(tmp_path / "other.npz", **(parts | {key: W}))
        other = invoke("compare", t.typed[0], tmp_path / "other.npz")
        assert other.exit_code in (1, 3), other.output
        if t.n >= 2 * (t.W.shape[1] + 1):
            assert other.exit_code == 1


@every
def test_diagnose(made, name):
    t = made(name)
    said = answer("diagnose", *t.typed, "--json", "-", "--no-orbit")
    C = brute.cosines(t.W)
    live = np.flatnonzero(t.W.any(axis=1))
    assert said["anisotropy"]["mean_cosine"] == pytest.approx(
        np.mean([C[i, j] for i in live for j in live if i != j]), abs=1e-6
    )
    assert bool(said["anisotropy"]["convention"]) == ((t.link == "softmax" and t.softcap is None) or t.offset)
    text = " ".join(invoke("diagnose", *t.typed).stdout.split())
    if t.link not in SCORES:
        assert "predict exactly" not in text
        assert "changes no prediction" not in text
    if t.tied and t.softcap is None:
        assert "once the head is untied" in text


@every
def test_each_command_starts_in_a_process_of_its_own(made, name):
    t = made(name)
    r = subprocess.run([sys.executable, "-m", "gonio", "info", *t.typed], capture_output=True, text=True, check=False)
    assert r.returncode == 0, r.stderr
    assert r.stdout == invoke("info", *t.typed).stdout


def test_a_word_that_fail_on_does_not_know_is_an_error(made):
    t = made("hidden_twins")
    assert "did you mean 'never-wins'" in refused("audit", *t.typed, "--fail-on", "never-win")
    assert "cannot have" in refused("audit", *t.typed, "--fail-on", "never-on")
    assert invoke("audit", *t.typed, "--fail-on", "never-wins").exit_code == 1
    assert invoke("audit", *t.typed, "--fail-on", "zero-rows").exit_code == 0
