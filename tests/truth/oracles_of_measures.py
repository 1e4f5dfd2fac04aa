"""Oracles of what an audit says about measures, lists, states, shapes of the space and factor models."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tests.truth import brute
from tests.truth.made import Truth
from tests.truth.numbers_in_text import numbers


def similarity(t: Truth, f: dict[str, Any]) -> None:
    wanted = {
        "softmax": "whitened-centred cosine", "sigmoid": "whitened cosine", "dot": "projected-back cosine",
        "cosine": "cosine", "vectors": None, "input": None,
    }[t.link]  # fmt: skip
    W = t.W.astype(float)
    if t.states is not None:
        assert f["value"] == "centred-logit correlation"
        assert f"over {len(t.states)} embeddings" in f["title"]
        return
    if t.link == "softmax" and np.linalg.matrix_rank(W - W.mean(axis=0)) >= t.n - 1:
        wanted = None  # every pair of every such head has one value
    assert f["value"] == wanted
    if wanted is None:
        assert f["state"] == "open"
        assert "Report" not in f["title"]


def lists_agree(t: Truth, f: dict[str, Any]) -> None:
    assert t.link != "cosine"
    assert 0 <= f["value"] <= 1
    if t.link == "dot":
        for row in f["data"]["lists"]:
            i = t.index(row["label"])
            true = brute.nearest(brute.projected_back(t), len(row["instead"]))[i]
            assert len(set(map(t.index, row["instead"])) - set(true)) <= 1  # equal rows may change places


def cosine_against(t: Truth, f: dict[str, Any]) -> None:
    assert t.link != "cosine"
    C = brute.cosines(t.W)
    other = brute.projected_back(t) if t.link == "dot" else _whitened(t) if t.states is None else _correlated(t)
    for a, b, x, y in f["data"]["largest_gaps"]:
        i, j = t.index(a), t.index(b)
        assert abs(C[i, j] - x) < 1e-5
        assert abs(other[i, j] - y) < 1e-5


def _probable(t: Truth) -> np.ndarray:
    """The probabilities over the states, from the definition."""
    z = np.exp(t.states.astype(float) @ t.W.astype(float).T + t.bias())
    return z / z.sum(axis=1, keepdims=True)


def seen(t: Truth, f: dict[str, Any]) -> None:
    p = _probable(t)
    winners = p.argmax(axis=1)
    top = np.bincount(winners, minlength=t.n)
    assert f["value"] == int((top > 0).sum())
    idle = [i for i in brute.tops(t) if not top[i]]
    assert f["data"]["can_win_never_seen"] == len(idle)
    documents = len(set(t.documents))
    verb = "was" if f["value"] == 1 else "were"
    assert f["title"] == (
        f"{f['value']} of {t.n} labels {verb} on top somewhere in {len(p)} states of {documents} documents; "
        f"{len(idle)} can be on top and never {'was' if len(idle) == 1 else 'were'}"
    )
    assert f["data"]["labels"]["on_top"] == top.tolist()
    assert np.allclose(f["data"]["labels"]["largest_probability"], p.max(axis=0), rtol=1e-3)
    lists = np.argsort(-p, axis=1, kind="stable")[:, :10]
    assert f["data"]["labels"]["among_likeliest"] == np.bincount(lists.ravel(), minlength=t.n).tolist()
    once = int((np.bincount(winners) == 1).sum())
    new = f["data"]["next_is_new"]
    assert new["value"] == once / len(p)
    assert ("seen more than once" in f["says"]) == (once == 0)
    alone = np.mean([len({d for d, w in zip(t.documents, winners, strict=True) if w == x}) == 1 for x in winners])
    assert f["data"]["new_in_another_document"]["value"] == alone
    times = np.bincount(top[top > 0])
    more = sum((-1) ** (j + 1) * int(times[j]) for j in range(1, len(times)))
    assert f["data"]["twice_the_text"]["value"] == max(0, more)


def prediction_hubs(t: Truth, f: dict[str, Any]) -> None:
    from scipy.stats import skew, spearmanr

    p = _probable(t)
    k = f["data"]["k"]
    among = np.bincount(np.argsort(-p, axis=1, kind="stable")[:, :k].ravel(), minlength=t.n)
    first = int(among.argmax())
    assert f["value"] == among.max()
    assert f["title"].startswith(
        f"'{t.name(first)}' is among the {k} likeliest labels at {among.max()} of {len(p)} pos"
    )
    assert abs(f["data"]["skewness"] - skew(among)) < 1e-9
    read = np.bincount(t.tokens, minlength=t.n)
    either = (among > 0) | (read > 0)
    assert abs(f["data"]["follows_frequency"] - spearmanr(among[either], read[either])[0]) < 1e-9
    assert numbers(f["says"])[0] == round(float(skew(among)), 1)


def _correlated(t: Truth) -> np.ndarray:
    """Correlations of the centred logits over the states."""
    z = t.states.astype(float) @ t.W.astype(float).T
    return np.corrcoef((z - z.mean(axis=1, keepdims=True)).T)


def _whitened(t: Truth) -> np.ndarray:
    V = brute.reduced(t)[0] if t.kind == "layer" else t.W.astype(float)
    if t.link == "softmax":
        V = V - V.mean(axis=0)
    hat = V @ np.linalg.pinv(V, rcond=1e-10)
    size = np.sqrt(np.diag(hat))
    with np.errstate(invalid="ignore", divide="ignore"):
        return hat / np.outer(size, size)


def anisotropy(t: Truth, f: dict[str, Any]) -> None:
    C = brute.cosines(t.W)
    live = np.flatnonzero(t.W.any(axis=1))
    true = np.mean([C[i, j] for i in live for j in live if i != j])
    assert abs(f["value"] - true) < 1e-6
    W = t.W.astype(float)
    share = (W.mean(axis=0) ** 2).sum() / (W**2).sum(axis=1).mean()
    assert abs(f["data"]["mean_share"] - share) < 1e-6
    assert abs(numbers(f["title"])[0] - true) <= 0.005 + 1e-9
    if "No common offset" in f["says"]:
        assert true < 0.1
        assert share < 0.5
    if "changes no prediction" in f["says"]:
        assert t.link == "softmax"
        assert t.softcap is None
        assert ("untied" in f["says"]) == t.tied


def hubness(t: Truth, f: dict[str, Any]) -> None:
    """Lists by a plain sort of cosines in steps of 2^-20, of equal ones the first; zero rows are in none."""
    from scipy.stats import skew

    C, k = brute.cosines(t.W), f["data"]["k"]
    live = np.flatnonzero(t.W.any(axis=1))
    np.fill_diagonal(C, np.nan)
    steps = np.where(np.isnan(C), -np.inf, np.rint(C * 2**20))
    counts = np.zeros(t.n, int)
    for i in live:
        for j in np.argsort(-steps[i], kind="stable")[:k]:
            counts[j] += steps[i, j] > -np.inf
    among = counts[live]
    assert abs(f["value"] - (skew(among) if np.ptp(among) else 0)) < 1e-6
    assert abs(f["data"]["antihub_rate"] - (among == 0).mean()) < 1e-12
    first = int(counts.argmax())
    if counts[first] >= 2 * k:
        assert f["data"]["hubs"][0] == [t.name(first), counts[first]]
        assert f["title"].endswith(f"while '{t.name(first)}' is in {counts[first]:,} lists")
    same = int((np.sort(steps[live], axis=1)[:, -k] >= 2**20).sum())
    assert f["data"]["in_one_direction"] == same
    told = re.search(r"([\d,]+) \w+ have ([\d,]+) or more others in their own direction", f["says"])
    assert (told is None) == (same == 0)
    assert told is None or [int(x.replace(",", "")) for x in told.groups()] == [same, k]


def norms(t: Truth, f: dict[str, Any]) -> None:
    size = np.linalg.norm(t.W.astype(float), axis=1)
    assert abs(f["value"] - np.median(size)) < 1e-6
    low, high = numbers(f["title"])[:2]
    assert abs(low - size.min()) <= 0.01 * max(size.min(), 1e-9)
    assert abs(high - size.max()) <= 0.01 * size.max()


def near_duplicates(t: Truth, f: dict[str, Any]) -> None:
    C = brute.cosines(t.W)
    pairs = [(i, j) for i in range(t.n) for j in range(i) if C[i, j] >= 0.999 and j not in brute.equals(t, i)]
    assert f["value"] == len(pairs)
    one = len(pairs) == 1
    assert (
        f["title"]
        == f"{len(pairs):,} pair{'' if one else 's'} of rows {'has' if one else 'have'} a cosine of 0.999 or more"
    )
    alike, before = [{i} | set(np.flatnonzero(C[i] >= 0.999).tolist()) for i in range(t.n)], None
    while alike != before:  # whoever is alike to one of a group is of it
        alike, before = [set().union(*(alike[j] for j in g)) for g in alike], alike
    groups = {frozenset(g) for g in alike if len(g) > 1}
    told = re.search(r"they form ([\d,]+) groups?, the largest of ([\d,]+) labels", f["says"])
    assert [int(x.replace(",", "")) for x in told.groups()] == [len(groups), max(map(len, groups))]


def similar_items(t: Truth, f: dict[str, Any]) -> None:
    assert f["section"] == "answer"
    assert f["value"] == "projected-back cosine"
    assert f["data"]["trained"] == t.trained
    assert ("arbitrary" in f["says"]) == (t.trained == "product")
    k = round(numbers(re.search(r"each item's (\d+) nearest", f["says"])[1])[0])
    kept = [
        len(set(brute.nearest(brute.cosines(t.W), k)[i]) & set(brute.nearest(brute.projected_back(t), k)[i])) / k
        for i in range(t.n)
    ]
    assert abs(f["data"]["kept"] - np.mean(kept)) < 0.02  # equal items may change places


def rescaling(t: Truth, f: dict[str, Any]) -> None:
    assert t.trained == "product"
    assert f["state"] == "convention"
    assert 0 <= f["value"] <= 1


def never_first(t: Truth, f: dict[str, Any]) -> None:
    never = [i for i in range(t.n) if i not in brute.tops(t, "all")]
    assert f["value"] == len(never)
    assert f["data"]["labels"] == [t.name(i) for i in never]
    shared = [i for i in brute.tops(t, "all") if brute.equals(t, i)]
    assert (f"{len(shared)} more share" in f["title"]) == bool(shared)


def never_shown(t: Truth, f: dict[str, Any]) -> None:
    k = int(re.search(r"top (\d+)", f["title"])[1])
    z = t.users @ t.W.T
    shown = {int(j) for row in z for j in np.argsort(-row, kind="stable")[:k]}
    twins = {j for i in shown for j in brute.equals(t, i)}
    hidden = set(range(t.n)) - shown
    assert abs(f["value"] - len(hidden)) <= len(twins & hidden)


def norm_popularity(t: Truth, f: dict[str, Any]) -> None:
    from scipy.stats import spearmanr

    true = spearmanr(np.linalg.norm(t.W, axis=1), t.W @ t.users.mean(axis=0)).statistic
    assert abs(f["value"] - true) < 1e-6
    assert "mean score" in f["title"]
