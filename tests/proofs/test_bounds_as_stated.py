"""The bounds of the own-direction lemma are those its proof needs: no term smaller, none left out, each on its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gonio import AfterRMSNorm, AllInputs, Box, Nonnegative
from gonio.core.blas_pool import BlasPool
from gonio.core.byte_rows import ByteRows
from gonio.core.float_units import UNIT, UNIT32
from gonio.proofs.mapped_rows import MappedRows, map_rows, multiplied
from gonio.proofs.own_direction import OwnDirections, _Triangle, leading
from tests.proofs.rationals import dot, exact


def drift_of(W, L, error=0.0):
    with BlasPool() as workers:
        return multiplied(lambda s: W[s].astype(float), len(W), np.zeros(W.shape[1]), L, workers, error)[1:]


def stated_drift(W, L, error):
    """The docstring's bound, with the room for its own computing in float32 and for underflow."""
    width = W.shape[1]
    in_float32 = 1 + 4 * (width + 8) * 2.0**-24
    size = np.linalg.norm(np.abs(W) @ np.abs(L).T, axis=1).max()
    reach = np.linalg.norm(W, axis=1).max() * in_float32
    entries = np.linalg.norm(np.abs(L).sum(axis=1))
    rounding = (width + 3) * 2.0**-53 * size * in_float32
    return (rounding + error * entries) * 1.01 + 2.0**-140 * width * (1 + entries) * (1 + reach), reach


@pytest.mark.parametrize(
    ("W", "L"),
    [
        (np.array([[1.0, 2.0]]), np.array([[1.0, -1.0], [-2.0, 1.0]])),
        (np.array([[2.0], [-5.0]]), np.array([[3.0], [4.0]])),
        (2.0**-145 * np.array([[3.0, 4.0]]), np.array([[1.0, -1.0]])),
        (2.0**100 * np.array([[3.0, 4.0]]), 2.0**-155 * np.array([[1.0, -1.0]])),
        (np.zeros((1, 3)), 1000 * np.eye(3)),
        (np.full((2, 4096), 1.0), np.full((1, 4096), -1.0)),
        (np.r_[np.ones((4096, 1)), [[9.0]]], np.array([[2.0]])),
        (np.r_[[[9.0]], np.ones((4096, 1))], np.array([[2.0]])),
    ],
    ids=["two wide", "one wide", "subnormal", "a map below float32", "zeros", "wide", "last block", "first block"],
)
@pytest.mark.parametrize("error", [0.0, 1e-17, 0.125])
def test_the_drift_is_the_one_stated(W, L, error):
    """On whole numbers, which float32 holds: there the bound itself is not rounded."""
    drift, reach = drift_of(W, L, error)
    stated, longest = stated_drift(W, L, error)
    if W[0, 0] > 1e-30:  # else float32 rounds it
        assert reach == pytest.approx(longest, rel=1e-12)
    assert drift == pytest.approx(stated, rel=1e-12, abs=0)


def test_the_rank_is_that_of_the_map():
    with BlasPool() as workers:
        mapped = map_rows(lambda s: np.ones((2, 3))[s], 2, np.zeros(3), np.eye(2, 3), workers)
    assert (mapped.rank, mapped.L.shape) == (2, (2, 3))


# -- the triangle of products ------------------------------------------------------------------------------------------


def triangle(V, drift, workers):
    V = np.asarray(V, np.float64)
    norms = np.linalg.norm(V, axis=1)
    order = np.argsort(-norms, kind="stable")
    d = V.shape[1]
    mapped = MappedRows(np.zeros(d), np.eye(d), V, V[order].astype(np.float32), order, norms, drift, 1.0)
    return _Triangle(mapped, np.ones(len(V), bool), workers)


@pytest.mark.parametrize("sizes", [(8.0, 2.0, 0.5), (2.0**-70,) * 3, (2.0**20, 1.0, 2.0**-70), (1e10, 1e10, 1e-3)])
@pytest.mark.parametrize("drift", [0.0, 1e-3, 1e10])
@pytest.mark.parametrize("d", [1, 3, 4000])
def test_the_slack_is_the_one_stated(sizes, drift, d):
    """(k + 16) u 1.05 of both products, four drifts, and what numbers below 2^-126 can take."""
    with BlasPool() as workers:
        t = triangle(np.array(sizes)[:, None] * np.eye(1, d), drift, workers)
        alive = np.arange(3)
        for longest in range(3):
            own, rival = np.array(sizes), sizes[longest]
            stated = (d + 16) * 2.0**-24 * 1.05 * own * (rival + own)
            stated = stated + 4 * drift * own + 2.0**-120 * d * (1 + own) * (1 + rival)
            assert t._slack(alive, longest) == pytest.approx(stated, rel=1e-12, abs=0)
            beyond = own * rival * (1 + 1e-12) + stated
            assert t._beyond(alive, longest) == pytest.approx(beyond, rel=1e-13, abs=0)
        assert t._beyond(alive, 3).tolist() == [0.0] * 3


@pytest.mark.parametrize("in_bytes", [False, True])
@pytest.mark.parametrize("d", [3, 96])
def test_the_bound_of_a_window_is_above_every_exact_product(d, in_bytes):
    """Also after the drift that the lemma speaks of; and not far above."""
    rng = np.random.default_rng(d)
    V = rng.standard_normal((30, d)) * np.linspace(3, 1, 30)[:, None]
    V[7] = -V[3] * 0.9
    with BlasPool() as workers:
        t = triangle(V, 1e-4, workers)
        t.bytes = ByteRows.of(t.V) if in_bytes else None
        rows = exact(V[t.order])
        alive = np.arange(20, 26)
        for a, b in ((0, 30), (0, 10), (16, 30)):
            for k in {d, min(64, d), leading(t.norms[a] / t.norms[alive[-1]], d)}:
                bound, lost, doubt = t._window(alive, a, b, k)
                assert 0 <= doubt <= (k < d)
                slack = t._slack(alive, a)
                left = np.zeros(6)
                if t.bytes is not None:
                    rest, norms = t.bytes.rest, t.norms
                    left = rest[alive] * norms[a] + (norms[alive] + rest[alive]) * rest[a:b].max()
                for q, i in enumerate(alive.tolist()):
                    most = max(dot(rows[i], rows[j]) for j in range(a, b) if j != i)
                    square = dot(rows[i], rows[i])
                    off = exact(4e-4 * 0.999 * t.norms[i])
                    assert most + off <= exact(bound[q])
                    assert lost[q] == (not bound[q] < t.norms[i] ** 2)
                    if k == d:
                        room = 1.01 * slack[q] + 2.0**-20 * abs(float(most))
                        assert float(most) + 0.9 * slack[q] <= bound[q] <= float(most) + room + 2 * left[q]
                    # What is lost was looked at in floats and in full.
                    assert not lost[q] or float(most) + 1.2 * slack[q] + 1e-5 > float(square)


def test_what_bytes_leave_over_is_all_of_it_in_the_bound():
    """Two rows whose bytes are equal and whose rests are alike: their product is below the bound by next to nothing."""
    u = np.array([127.0, 0.499, 0.499, 0.499, -0.499])
    with BlasPool() as workers:
        t = triangle([u * 1.0000001, u], 0.0, workers)
        t.bytes = ByteRows.of(t.V)
        assert (t.bytes.numbers[:, :5] == [127, 0, 0, 0, 0]).all()
        bound = t._by_bytes(np.array([0]), 0, 2, 5)[0]
        rest = 0.998
        assert t.bytes.rest == pytest.approx([rest, rest], rel=1e-5)
        assert bound - 127**2 == pytest.approx(
            2 * rest * np.linalg.norm(u) + rest**2 + t._slack(np.array([0]), 0)[0], 1e-2
        )
        assert bound > u @ u


def test_the_largest_product_is_raised_by_a_few_roundings():
    """Beside a slack of next to nothing the products are seen: up by 8 units, whichever their sign."""
    with BlasPool() as workers:
        for rival in (0.5, -0.5):
            t = triangle([[1.0, 0], [rival, 0.25]], 0.0, workers)
            t.relative = 0.0
            bound, *_ = t._window(np.array([0]), 0, 2, 2)
            assert bound[0] == pytest.approx(rival + 8 * UNIT32 * 0.5, rel=1e-7)
            t.bytes = ByteRows.of(t.V)
            seen = t._by_bytes(np.array([0]), 0, 2, 2)[0]
            left = t.bytes.rest[0] * 1.0 + (1 + t.bytes.rest[0]) * t.bytes.rest[1]
            assert seen == pytest.approx(rival + 8 * UNIT32 * 0.5 + left, abs=2e-7)


@pytest.mark.parametrize("rival", [(4.0, -1.0), (-1.0, 4.0)])
def test_products_beyond_float32_prove_nothing(rival):
    """The rival is above (1, 1), but the float32 sum may be inf, -inf or no number: it must not be overlooked."""
    own = OwnDirections(AllInputs().reduce(np.array([(1.0, 1.0), rival, (-3.0, -3.0)])))
    with BlasPool() as workers, np.errstate(all="ignore"):
        mapped = own.mapped(np.zeros(2), 1e25 * np.eye(2), workers)
        own.decide(mapped, np.ones(3, bool), workers, lambda lead: None)
    assert not own.lead.any()


def test_a_twin_thousands_of_places_later_is_seen():
    """Rows of one length, more than one window of rivals: the last is the first once more."""
    W = np.array([[(k >> b & 1) * 2.0 - 1 for b in range(12)] for k in range(2600)])
    W[-1] = W[0]
    own = OwnDirections(AllInputs().reduce(W))
    with BlasPool() as workers:
        mapped = own.mapped(np.zeros(12), np.eye(12), workers)
        own.decide(mapped, np.ones(len(W), bool), workers, lambda lead: None)
    assert np.flatnonzero(own.lead == 0).tolist() == [0, 2599]


# -- from a direction to an input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inputs",
    [
        Nonnegative(),
        Box([-1, -1, 0], [1, 1, 1]),
        Box([-1, -1, -1], [1, 1, 0]),
        Box([0, 0, 0], [1, 1, 1]),
        Box([-1, -1, -1], [0, 0, 0]),
        Box([-1, -1, 0.5], [1, 1, 1]),
    ],
    ids=str,
)
def test_leads_over_sets_without_room_about_zero_are_no_wins(inputs):
    W = np.eye(3)
    own = OwnDirections(inputs.reduce(W))
    with BlasPool() as workers:
        own.decide(own.mapped(np.zeros(3), np.eye(3), workers), np.ones(3, bool), workers, lambda lead: None)
    assert (own.lead > 0).all()
    assert not own.enough
    assert not own.proven.any()


def test_rows_are_scaled_by_their_largest_entry_of_either_sign():
    for sign in (1, -1):
        own = OwnDirections(AllInputs().reduce(sign * np.array([[6.0, 1.0], [1.0, -0.5]])))
        assert own.scale == 3
        assert np.abs(own.rows(slice(0, 2))).max() == 0.75


def test_the_error_of_the_reduction_is_part_of_the_drift():
    problem = AfterRMSNorm(np.ones(2)).reduce(np.array([[6.0, 1.0], [1.0, -0.5]]))
    own = OwnDirections(replace(problem, error=2.0))
    with BlasPool() as workers:
        drift = own.mapped(np.zeros(2), 3 * np.eye(2), workers).drift
    assert drift == pytest.approx(2.0 / 8 * 3 * np.sqrt(2) * 1.01, rel=1e-12)
    assert drift > 2.0 / 8 * 3 * np.sqrt(2) + 100 * UNIT
