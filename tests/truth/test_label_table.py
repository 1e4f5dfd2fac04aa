"""The table of labels says of every made model what a second, naive computation says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main
from tests.truth import brute
from tests.truth.made import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_every_column_of_the_table_is_true(name, tmp_path):
    t = MODELS[name](tmp_path)
    r = CliRunner().invoke(main, ["audit", *t.typed, *t.more.get("audit", ()), "--json", "-"], catch_exceptions=False)
    assert r.exit_code == 0, r.output
    said = json.loads(r.stdout)["labels"]
    column, flags = said["columns"], said["flags"]
    assert len(column["label"]) == t.n
    lengths = np.linalg.norm(t.W.astype(float), axis=1)
    assert np.allclose(column["length"], lengths, rtol=1e-4)
    assert flags.get("zero", []) == [i for i in range(t.n) if not t.W[i].any()]
    assert flags.get("twins", []) == [i for i in range(t.n) if brute.equals(t, i)]
    assert flags.get("padding", []) == list(t.padded)
    if t.link in ("softmax", "dot") and t.kind != "users":
        top = brute.tops(t)
        assert flags.get("never", []) == [i for i in range(t.n) if i not in top]
        for i, word in enumerate(column["can_win"]):
            assert word == ("no" if i not in top else "with equals" if brute.equals(t, i) else "yes")
    if t.link == "sigmoid":
        assert set(flags.get("never on", [])) == {i for i, word in enumerate(column["can_be"]) if word == "never on"}
    if t.link == "dot" and t.kind == "users":
        scores = t.users @ t.W.T + t.bias()
        k = min(10, (t.n - 1) // 2)
        shown = np.bincount(np.argsort(-scores, axis=1, kind="stable")[:, :k].ravel(), minlength=t.n)
        equal = [i for i in range(t.n) if not brute.equals(t, i)]  # who of equal items is shown is up to ties
        assert [column["shown_to_users"][i] for i in equal] == [int(shown[i]) for i in equal]
    C = brute.cosines(t.W)
    live = [i for i in range(t.n) if t.W[i].any()]
    for i in live:
        j = column["nearest"][i]
        assert abs(column["cosine"][i] - C[i, j]) < 1e-4
        assert C[i, j] > max(C[i, x] for x in live if x != i) - 1e-5
    for p in said["pairs"]:
        a, b = p["rows"]
        assert abs(p["cosine"] - C[a, b]) < 1e-4
