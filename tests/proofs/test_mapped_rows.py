"""Mapped rows, and the own-direction lemma on thousands of them: bounds that are used up, and rivals in every block."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import AllInputs
from gonio.core.blas_pool import BlasPool
from gonio.core.float_units import UNIT, UNIT32
from gonio.proofs.mapped_rows import by_norm, map_rows, multiplied
from gonio.proofs.own_direction import OwnDirections, leading, tail_lengths
from tests.proofs.rationals import dot, exact


def off_by(W, centre, L, V, moved=0):
    """The largest |V_j - L (a_j + moved - centre)|^2, exactly."""
    c, M = exact(centre), exact(L)
    worst = 0
    for k, (row, v) in enumerate(zip(exact(W), exact(V), strict=True)):
        shift = exact(np.broadcast_to(moved, W.shape)[k])
        a = [p + s - q for p, q, s in zip(row, c, shift, strict=True)]
        worst = max(worst, sum((dot(m, a) - x) ** 2 for m, x in zip(M, v, strict=True)))
    return worst


def mapped(W, centre, L, error=0.0):
    with BlasPool() as workers, np.errstate(all="ignore"):
        return multiplied(lambda s: W[s].astype(float), len(W), centre, L, workers, error)


def test_the_error_of_mapped_rows_is_bounded_on_data_that_loses_much():
    d = 2048
    W = np.tile(np.r_[1.0, np.full(d - 1, UNIT * 0.99)], (2, 1))
    W[1, 1:] *= -1
    for L in (np.ones((1, d)), np.vstack([np.ones(d), -np.ones(d)])):
        V, drift, reach = mapped(W, np.zeros(d), L)
        off = off_by(W, np.zeros(d), L, V)
        assert off <= exact(drift) ** 2
        assert float(off) ** 0.5 > 20 * UNIT  # more than a few roundings
        assert drift < 1.2 * (d + 3) * UNIT * np.sqrt(len(L)) * (1 + d * UNIT)
        assert exact(reach) ** 2 >= max(dot(a, a) for a in exact(W))
        assert reach < 1.001


def test_small_widths_and_centres_are_bounded_too():
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, d, r = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        W = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3)
        centre, L = rng.standard_normal(d), rng.standard_normal((r, d)) * 10.0 ** rng.integers(-5, 5)
        V, drift, reach = mapped(W, centre, L)
        assert off_by(W, centre, L, V) <= exact(drift) ** 2
        gaps = [[p - q for p, q in zip(row, exact(centre), strict=True)] for row in exact(W)]
        longest = max(dot(a, a) for a in gaps)
        assert exact(reach) ** 2 >= longest
        assert reach <= float(longest) ** 0.5 * (1 + 1e-4) + 1e-40
        assert drift <= 1.1 * (d + 3) * UNIT * reach * np.linalg.norm(L) * np.sqrt(r) + 1e-37 * (1 + np.abs(L).sum())


def test_rows_that_are_themselves_off_are_part_of_the_error():
    """Every entry within `error` of the one meant: all corners of that box are covered."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        W, L = rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
        error = 10.0 ** -rng.integers(1, 12)
        V, drift, _ = mapped(W, np.zeros(3), L, error)
        for turn in (np.sign(L[0]), -np.sign(L[1]), np.ones(3), rng.choice([-1.0, 1.0], 3)):
            assert off_by(W, np.zeros(3), L, V, turn * error) <= exact(drift) ** 2
        assert drift <= error * 1.02 * np.linalg.norm(np.abs(L).sum(axis=1)) + 1e-13


@pytest.mark.parametrize("size", [1e-46, 1e-60, 1e-200])
def test_rows_too_small_for_float32_have_a_bound_above_zero(size):
    W, L = np.array([[0.1, 0.3], [0.7, 0.9]]) * size, np.array([[0.3, 0.7]])
    V, drift, reach = mapped(W, np.zeros(2), L)
    assert off_by(W, np.zeros(2), L, V) <= exact(drift) ** 2
    assert 0 < drift < 1e-40
    assert reach >= 0


def test_many_rows_are_mapped_and_ordered_in_blocks():
    rng = np.random.default_rng(2)
    W = rng.standard_normal((4100, 2))
    L = np.array([[1.0, 2.0], [0.5, -1.0]])
    with BlasPool() as workers:
        kept = map_rows(lambda s: W[s], len(W), np.array([1.0, 0.0]), L, workers)
        dropped = map_rows(lambda s: W[s], len(W), np.array([1.0, 0.0]), L, workers, keep=False)
        norms, V32, order = by_norm(kept.V, workers)
    assert np.allclose(kept.V, (W - [1.0, 0.0]) @ L.T, atol=1e-13)
    assert np.allclose(norms, np.linalg.norm(kept.V, axis=1), rtol=1e-12)
    assert (np.diff(norms[order]) <= 0).all()
    assert sorted(order.tolist()) == list(range(4100))
    assert np.array_equal(V32, kept.V[order].astype(np.float32))
    assert (kept.rank, kept.largest, len(dropped.V)) == (2, norms.max(), 0)
    assert np.array_equal(dropped.V32, kept.V32)


# -- the lemma on many rows --------------------------------------------------------------------------------------------


def decided(W, asked=None):
    own = OwnDirections(AllInputs().reduce(W))
    with BlasPool() as workers, np.errstate(all="ignore"):
        mapped = own.mapped(np.zeros(W.shape[1]), np.eye(W.shape[1]), workers)
        own.decide(mapped, np.ones(len(W), bool) if asked is None else asked, workers, lambda lead: None)
    return own, mapped


def true_lead(V):
    S = V @ V.T
    square = np.diag(S).copy()
    np.fill_diagonal(S, -np.inf)
    return (square - S.max(axis=1)) / np.sqrt(square)


def tailed_rows(n, d, seed):
    """Rows of nearly one length, light in their first 64 coordinates; some are all but multiples of longer ones."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, d))
    W[:, :64] *= 0.2
    W *= rng.uniform(1.0, 1.15, (n, 1)) / np.linalg.norm(W, axis=1, keepdims=True)
    near = slice(n - 150, n - 50)
    W[near] = W[:100] / np.linalg.norm(W[:100], axis=1, keepdims=True) + rng.standard_normal((100, d)) * 0.01
    W[n - 50 :] = 0.75 * W[100:150] + 0.6 * W[n - 50 :]  # not so near: whole rows tell what leading parts do not
    return W


def test_leading_parts_overlook_no_rival_and_settle_most():
    for seed, (n, d) in enumerate(((700, 100), (1300, 140))):
        W = tailed_rows(n, d, seed)
        own, mapped = decided(W)
        norms = np.sort(np.linalg.norm(mapped.V, axis=1))[::-1]
        assert leading(norms[0] / norms[-1], d) < d  # leading parts are used
        lead = true_lead(mapped.V)
        clear = np.abs(lead) > 1e-4
        assert np.array_equal((own.lead > 0)[clear], (lead > 0)[clear])
        assert (own.lead[lead > 0] <= lead[lead > 0]).all()
        assert (lead < 0).sum() > 50
        assert (own.lead > 0).sum() > 300


def test_only_the_labels_asked_for_are_decided():
    W = tailed_rows(1200, 100, 3)
    every, mapped = decided(W)
    asked = np.zeros(1200, bool)
    asked[mapped.order[600:640]] = True  # none in the first block, none in the last
    some, _ = decided(W, asked)
    assert np.array_equal(some.lead > 0, (every.lead > 0) & asked)
    assert some.lead.any()


@pytest.mark.parametrize("d", [600, 2048])
def test_products_that_float32_loses_win_nothing(d):
    """Each row is 1 and many numbers whose squares are lost beside it; a rival a billionth longer is above it."""
    short = np.r_[1.0, np.full(d - 1, 2.0**-12.6)]
    W = np.array([short, short * (1 + 1e-9), -short])
    own, _ = decided(W)
    assert own.lead[0] == 0
    assert own.lead[2] > 0


def test_rows_of_zeros_win_nothing():
    own, _ = decided(np.zeros((3, 2)))
    assert own.scale == 0
    assert not own.lead.any()
    assert not own.proven.any()


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_the_size_of_rows_does_not_matter(size):
    W = np.array([[3.0, 0], [0, 2.0], [-1.0, -1.0], [0.5, 0.5]]) * size
    own, mapped = decided(W)
    assert own.proven.tolist() == [True, True, True, False]
    assert 0.5 <= mapped.norms.max() <= 2
    assert own.lead[:2] == pytest.approx(true_lead(mapped.V)[:2], rel=1e-5)
    assert (own.lead[:3] <= true_lead(mapped.V)[:3]).all()


def test_how_many_coordinates_are_enough():
    for rank in (3, 64, 65, 100, 1000):
        steps = list(range(min(64, rank), rank, max(16, rank // 96 * 4)))
        for ratio in (0.5, 1.0, 1.05, 1.2, 1.5, 9.0):
            for steepness in (5.5, 3.0, 8.0):
                fine = [k for k in steps if ratio * (steepness * np.sqrt(k) / rank + 1 - k / rank) < 1]
                assert leading(ratio, rank, steepness) == (fine[0] if fine else rank)
            assert leading(ratio, rank) == leading(ratio, rank, 5.5)


def test_lengths_of_the_rest_are_rounded_up_and_near():
    V = np.random.default_rng(7).standard_normal((2100, 130)).astype(np.float32)
    with BlasPool() as workers:
        tails = tail_lengths(V, workers)
        assert tail_lengths(V[:, :60], workers) == {}
    assert list(tails) == [64, 80, 96, 112, 128]
    for k, t in tails.items():
        true = np.linalg.norm(V[:, k:].astype(float), axis=1)
        assert (t >= true).all()
        assert (t <= true * (1 + 4 * 2.0**-20 + UNIT32)).all()
