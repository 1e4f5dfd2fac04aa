"""Scores and means of strong rows in bytes, beside those in floats; and climbing with either."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.core.blas_pool import BlasPool
from gonio.search.box_ascent import CAREFUL, Climbers, climb
from gonio.search.scaled_box import ScaledBox
from gonio.search.strong_rows import StrongRows


def box_of(seed: int, n: int, d: int) -> ScaledBox:
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, d)) * np.exp(rng.normal(0, 0.7, (n, 1)))
    return ScaledBox(gonio.Box(-1, 1).reduce(W.astype(np.float32), rng.normal(0, 1, n), differences=True))


@pytest.fixture
def in_bytes(monkeypatch):
    """Bytes although the heads are small; where the processor has no products of bytes numpy makes the same ones."""
    monkeypatch.setattr("gonio.search.scaled_box.worthwhile", lambda *_: True)


@pytest.mark.parametrize("d", [16, 19])
def test_scores_and_means_are_near_those_in_floats(d, in_bytes):
    strong = StrongRows.of(box_of(0, 300, d), 120)
    rng = np.random.default_rng(1)
    u = rng.uniform(-1, 1, (9, d)).astype(np.float32)
    scores = np.empty((9, 120), np.float32)
    strong.scores_by_bytes(u, scores)
    exact = u @ strong.rows.T + strong.constants
    typical = np.linalg.norm(strong.rows, axis=1)
    assert (np.abs(scores - exact) < 0.02 * typical).all()
    assert (scores != exact).any()
    shares = rng.dirichlet(np.full(120, 0.1), 9).astype(np.float32)
    means = strong.means_by_bytes(shares)
    assert means.shape == (9, d)
    assert (np.abs(means - shares @ strong.rows).max(axis=1) < 0.004 * np.abs(strong.rows).max()).all()


def test_shares_that_one_byte_would_lose_are_in_the_mean(in_bytes):
    """Of a share of 0.7 beside many of 0.002, none of which makes a step of 0.7 / 127."""
    box = box_of(2, 400, 8)
    strong = StrongRows.of(box, 301)
    shares = np.where(strong.rows[None, :, 0] > 0, np.float32(0.002), np.float32(0))
    shares[0, 5] = 0.7
    lost = np.abs(strong.means_by_bytes(shares) - shares @ strong.rows).max()
    assert lost < 0.004 * np.abs(strong.rows).max()
    without = np.abs(shares[:, 5:6] * strong.rows[5] - shares @ strong.rows).max()
    assert without > 4 * lost


@pytest.mark.parametrize("seed", range(3))
def test_climbing_in_bytes_and_in_floats_never_disagree(seed, monkeypatch):
    found = []
    for fast in (True, False):
        monkeypatch.setattr("gonio.search.scaled_box.worthwhile", lambda *_, fast=fast: fast)
        box = box_of(seed, 400, 12)
        schedule = CAREFUL._replace(stages=tuple((last, 40) for last, _ in CAREFUL.stages))  # rows join all the time
        with BlasPool() as workers:
            found.append(climb(box, Climbers.below(box, np.arange(400)), workers, schedule))
    for a, b in (found, found[::-1]):
        assert not set(a.won.tolist()) & set(b.never.tolist())
    assert min(len(f.won) + len(f.never) for f in found) > 380
