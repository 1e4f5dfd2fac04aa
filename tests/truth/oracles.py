"""For each kind of claim that an audit makes, a function that says whether it is true of the made model.

A claim kind without an oracle fails the suite: see `ORACLES`.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tests.truth import brute
from tests.truth.made import Truth
from tests.truth.numbers_in_text import numbers
from tests.truth.oracles_of_measures import (
    anisotropy,
    cosine_against,
    hubness,
    lists_agree,
    near_duplicates,
    never_first,
    never_shown,
    norm_popularity,
    norms,
    prediction_hubs,
    rescaling,
    seen,
    similar_items,
    similarity,
)

SCORES = ("softmax", "sigmoid", "dot")


def link(t: Truth, f: dict[str, Any]) -> None:
    assert f["value"] == t.link
    assert f["data"]["assumed"] == t.assumed
    assert (f["state"] == "fact") == (t.link != "unknown" and not t.assumed)
    assert ("assumed" in f["title"]) == t.assumed


def shape(t: Truth, f: dict[str, Any]) -> None:
    W = t.W.astype(float)
    softmax = t.link == "softmax"
    rank = np.linalg.matrix_rank(np.column_stack([W, np.ones(t.n)])) - 1 if softmax else np.linalg.matrix_rank(W)
    full = min(t.n - 1, W.shape[1]) if softmax else min(W.shape)
    assert f["value"] == rank
    assert f", {'differences of rank' if softmax else 'rank'} {rank}" in f["title"]
    assert (f["state"] == "warning") == (rank < full)
    assert (f["data"]["labels"], f["data"]["dim"]) == W.shape


def inputs(t: Truth, f: dict[str, Any]) -> None:
    said = {"all": "all inputs", "box": "box -1 <= x <= 1", "rms": "after RMSNorm", "layer": "after LayerNorm",
            "users": f"the {0 if t.users is None else len(t.users)} users given"}[t.kind]  # fmt: skip
    assert said in f["title"]
    assert ("assumed" in f["title"]) == (t.kind == "all")


def twins(t: Truth, f: dict[str, Any]) -> None:
    members = [i for i in range(t.n) if brute.equals(t, i)]
    assert f["value"] == len(members)
    assert sorted(x for g in f["data"]["groups"] for x in g) == sorted(t.name(i) for i in members)


def zero_rows(t: Truth, f: dict[str, Any]) -> None:
    assert f["value"] == int((~t.W.any(axis=1)).sum())


def padded(t: Truth, f: dict[str, Any]) -> None:
    assert f["value"] == len(t.padded)


def single_cosine(t: Truth, f: dict[str, Any]) -> None:
    words = (f["title"] + " " + f["says"]).lower()
    adds = "one vector added to all rows" in words and "would change" not in words
    assert adds == (t.link == "softmax" and t.softcap is None) or t.link in ("vectors", "input")
    if t.link == "input":
        assert adds == t.offset
    assert ("untied" in words) == t.tied
    assert ("as assumed" in words) == t.assumed
    fixed = t.link == "cosine" or t.trained == "factors"
    assert f["state"] == (
        "fact" if fixed else "open" if t.link in ("unknown",) or (t.link == "input" and not t.offset) else "convention"
    )
    assert "what was trained" not in words or t.link == "cosine"


def reading(t: Truth, f: dict[str, Any]) -> None:
    assert t.link == "unknown"
    assert f["value"] in ("softmax", "sigmoid", "dot", "vectors", "cosine", "input")


def pair(t: Truth, f: dict[str, Any]) -> None:
    a, b = (t.index(x) for x in f["data"]["labels"])
    true = brute.cosines(t.W)[a, b]
    assert f["value"] == float(true) or abs(f["value"] - true) < 1e-6
    shown = float(re.search(r" is (-?\d\.\d+)", f["title"])[1])
    assert (
        abs(shown - true) <= 0.5 * 10 ** -len(f["title"].split(" is ")[1].split()[0].split(".")[1].rstrip(";,")) + 1e-9
    )
    assert abs(shown) < 1 or abs(true) == 1
    moves = "equivalent model" in f["title"] and "stays" not in f["title"]
    assert moves == (t.link not in ("cosine",) and t.trained != "factors" and not (t.link == "input" and not t.offset))
    if moves:
        _moved_pair(t, a, b, f)


def _moved_pair(t: Truth, a: int, b: int, f: dict[str, Any]) -> None:
    """Make the equivalent model by hand: the papers' translation, or a map of the plane of the two rows."""
    W = t.W.astype(float)
    target = f["data"]["dialled_to"]
    assert f"{target:.4f}" in f["title"]
    if f["data"]["by"] == "translation":
        assert t.softcap is None
        assert t.link == "softmax" or t.offset
        v = -(W[a] + W[b]) / 2  # Lemma 3.2: cosine -1
        assert abs(brute.cosines(W + v)[a, b] + 1) < 1e-9
        assert target < -0.999
        if t.link == "softmax":
            x = np.random.default_rng(0).standard_normal((50, W.shape[1]))
            p, q = (np.exp(z - z.max(axis=1, keepdims=True)) for z in (x @ W.T + t.bias(), x @ (W + v).T + t.bias()))
            assert np.allclose(p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True))
    else:
        assert np.linalg.matrix_rank(W[[a, b]]) == 2  # independent rows: any cosine but -1 and 1
        assert -1 < target < 1
    if t.link in SCORES:
        assert f["data"]["measured"] < 1e-8


def neighbours_kept(t: Truth, f: dict[str, Any]) -> None:
    moves = t.link != "cosine" and t.trained != "factors"
    assert (f["state"] == "convention") == moves
    if not moves:
        assert f["value"] == 1.0
        assert "same in every equivalent model" in f["title"]
        return
    assert 0 <= f["value"] <= 1
    k = f["data"]["k"]
    assert k < t.n - 1  # a list of everybody tells nothing
    if "centring" in f["data"]:
        W, C = t.W.astype(float), brute.cosines(t.W.astype(float) - t.W.astype(float).mean(axis=0))
        live = [i for i in range(t.n) if W[i].any() and i not in t.padded]
        kept = [len(set(brute.nearest(brute.cosines(W), k)[i]) & set(brute.nearest(C, k)[i])) / k for i in live]
        assert f["data"]["asked"] == len(live)
        assert abs(f["data"]["centring"]["mean"] - np.mean(kept)) < 0.5 / k  # ties may be broken either way
        assert (t.link == "softmax" and t.softcap is None) or t.offset


def never_wins(t: Truth, f: dict[str, Any]) -> None:
    top, by_itself = brute.tops(t), brute.alone(t)
    never = [i for i in range(t.n) if i not in top]
    assert f["value"] == len(never)
    assert sorted(f["data"]["labels"]) == sorted(t.name(i) for i in never)
    assert f["data"]["wins"] == len(by_itself)
    assert f["data"]["shared"] == len(top) - len(by_itself)
    assert (f["state"] == "warning") == bool(never)
    said = numbers(f["title"])
    if never:
        assert said[:2] == [len(never), t.n]
    if len(top) > len(by_itself):
        assert len(top) - len(by_itself) in said
    if t.kind == "users":
        assert "mean of the others" not in f["says"]
        assert f"the {len(t.users)} users given" in f["title"]
    assert ("hull" in f["says"]) <= (t.b is None and t.kind == "all")
    if f["data"]["smallest_margin"] is not None and by_itself:
        assert f["data"]["smallest_margin"] > 0


def shared_top(t: Truth, f: dict[str, Any]) -> None:
    top, by_itself = brute.tops(t), brute.alone(t)
    shared = sorted(set(top) - set(by_itself))
    assert f["value"] == len(shared)
    assert sorted(x for g in f["data"]["groups"] for x in g) == sorted(t.name(i) for i in shared)


def padded_wins(t: Truth, f: dict[str, Any]) -> None:
    top = brute.tops(t)
    able = [i for i in t.padded if i in top]
    assert f["value"] == len(able)
    assert (f["state"] == "warning") == bool(able)
    assert numbers(f["title"])[:2] == [len(able), len(t.padded)]


def ties(t: Truth, f: dict[str, Any]) -> None:
    asked = f["data"]["asked"]
    assert 0 <= f["value"] <= asked
    for a, b in f["data"]["cannot"]:
        i, j = t.index(a), t.index(b)
        assert _tie_margin(t, i, j) < 1e-6, (a, b)
    assert f["value"] + len(f["data"]["cannot"]) + f["data"]["undecided"] == asked


def _tie_margin(t: Truth, i: int, j: int) -> float:
    """The largest margin over the others where i and j are equal, by a linear program."""
    V, c = brute.reduced(t)
    others = [k for k in range(t.n) if k not in (i, j, *brute.equals(t, i), *brute.equals(t, j))]
    if not others:
        return 1.0
    # Where both are equal i stands for the pair.
    slopes, levels = (V[others] - V[i]).tobytes(), (c[i] - c[others]).tobytes()
    equal = np.append(V[i] - V[j], c[j] - c[i]).tobytes()
    return brute.largest(slopes, levels, V.shape[1], t.kind, (t.low, t.high), equal)


def never_on(t: Truth, f: dict[str, Any]) -> None:
    if t.kind == "box":
        off = [i for i in range(t.n) if brute.logit_range(t, i)[1] <= 0]
    else:  # over all inputs a row that is not zero reaches every logit
        off = [i for i in range(t.n) if not t.W[i].any() and t.bias()[i] <= 0]
    assert f["value"] == len(off)
    assert f["data"]["labels"] == [t.name(i) for i in off]


def never_off(t: Truth, f: dict[str, Any]) -> None:
    if t.kind == "box":
        on = [i for i in range(t.n) if brute.logit_range(t, i)[0] >= 0]
    else:
        on = [i for i in range(t.n) if not t.W[i].any() and t.bias()[i] >= 0]
    assert f["value"] == len(on)
    assert f["data"]["labels"] == [t.name(i) for i in on]


def patterns(t: Truth, f: dict[str, Any]) -> None:
    count = f["data"]["count"]
    assert ("at most" in f["title"]) == (not f["data"]["exact"] or t.kind != "all")
    if count.startswith("about"):
        return
    claimed = int(count.replace(",", ""))
    if t.link == "sigmoid":
        met = brute.sign_patterns(t)
        whole = {x for x in met if 0 not in x}
        assert len(whole) <= claimed
        if "label sets" in t.more:
            assert claimed in t.more["label sets"]
            assert all(str(x) in f["title"] + f["says"] + " ".join(f["data"]["notes"]) for x in t.more["label sets"])
        elif f["data"]["exact"]:
            assert len(whole) > (0.97 if t.b is None else 0.5) * claimed
    else:
        V, c = t.W.astype(float), t.bias().astype(float)
        distinct = [i for i in range(t.n) if not any(j < i for j in brute.equals(t, i))]
        met = brute.orders(V[distinct], c[distinct])
        assert len(met) <= claimed or not f["data"]["exact"]
        if f["data"]["exact"] and claimed < 200:
            assert len(met) == claimed


ORACLES = {
    "link": link, "shape": shape, "inputs": inputs, "twins": twins, "zero-rows": zero_rows, "padded": padded,
    "single-cosine": single_cosine, "reading": reading, "pair": pair, "neighbours-kept": neighbours_kept,
    "never-wins": never_wins, "shared-top": shared_top, "padded-wins": padded_wins, "ties": ties, "never-on": never_on,
    "never-off": never_off, "patterns": patterns, "similarity": similarity, "lists-agree": lists_agree,
    "cosine-against": cosine_against, "anisotropy": anisotropy, "hubness": hubness, "norms": norms,
    "near-duplicates": near_duplicates, "similar-items": similar_items, "rescaling": rescaling, "never-first": never_first,
    "never-shown": never_shown, "norm-popularity": norm_popularity, "seen": seen, "prediction-hubs": prediction_hubs,
}  # fmt: skip
