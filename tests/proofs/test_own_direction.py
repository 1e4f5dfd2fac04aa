"""The own-direction lemma against exact arithmetic: whatever map it is given, what it accepts wins."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Nonnegative, can_win
from gonio.core import byte_products, byte_rows
from gonio.core.blas_pool import BlasPool
from gonio.core.status import Status
from gonio.proofs.own_direction import OwnDirections, leading, tail_lengths
from gonio.proofs.row_maxima import row_max, row_max_of_bytes, row_max_with_tails


@pytest.fixture(params=["floats first", "bytes first"], autouse=True)
def first_look(request, monkeypatch):
    """Every test twice: products looked at in floats only, and in bytes first (by numpy where there is no other way)."""
    monkeypatch.setattr(byte_products, "are_fast", lambda: request.param == "bytes first")
    monkeypatch.setattr(byte_rows, "ENOUGH", 0)
    return request.param


def exact(a):
    return [[Fraction(float(v)) for v in row] for row in np.atleast_2d(a)]


def least_lead(A, L, V, i):
    """min_j (a_i - a_j).y at y = L'V_i, in rationals."""
    v, L = exact(V[i])[0], exact(L)
    y = [sum(v[r] * L[r][k] for r in range(len(L))) for k in range(len(L[0]))]
    scores = [sum(a * b for a, b in zip(row, y, strict=True)) for row in A]
    return min(scores[i] - s for j, s in enumerate(scores) if j != i)


def accepted(problem, centre, L):
    own = OwnDirections(problem)
    with BlasPool() as workers, np.errstate(all="ignore"):
        mapped = own.mapped(centre, L, workers)
        own.decide(mapped, np.ones(len(problem.V), bool), workers, lambda lead: None)
    return own, mapped


def awkward_heads():
    """Heads whose labels win and lose by next to nothing, with maps that no search would choose."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(3, 12)), int(rng.integers(1, 6))
        kind = seed % 4
        W = rng.standard_normal((n, d)) if kind == 0 else rng.integers(-2, 3, (n, d)).astype(float)
        if kind == 2:  # rows that differ by a few roundings
            W = 1 + rng.integers(0, 4, (n, d)) * 2.0**-50
        if kind == 3:  # one row is nearly the mean of two others
            W[0] = (W[1] + W[2]) / 2 + rng.standard_normal(d) * 1e-16
        L = rng.standard_normal((d, d)) * 10.0 ** rng.integers(-8, 9, d)
        for centre, turn in ((W.mean(axis=0), np.eye(d)), (rng.standard_normal(d), L), (np.zeros(d), L @ L.T)):
            yield W, centre, turn


def test_whatever_the_map_what_is_accepted_wins_in_exact_arithmetic():
    seen = 0
    for W, centre, L in awkward_heads():
        own, mapped = accepted(AllInputs().reduce(W), centre, L)
        A = exact(W)
        for i in np.flatnonzero(own.lead > 0):
            assert least_lead(A, L, mapped.V, int(i)) > 0
            seen += 1
    assert seen > 50  # the lemma is not empty


def test_the_rounding_of_a_norms_gain_is_part_of_the_bound():
    """Rows whose exact products with the gain are equal, and whose rounded ones are not, are not told apart."""
    rng = np.random.default_rng(0)
    for trial in range(40):
        gain = rng.standard_normal(3) + 2
        W = rng.standard_normal((4, 3))
        W[1] = W[0] * (1 + 2.0**-52)
        for inputs in (AfterRMSNorm(gain), AfterLayerNorm(gain)):
            problem = inputs.reduce(W)
            g = exact(gain)[0]
            A = [[a * b for a, b in zip(row, g, strict=True)] for row in exact(W)]
            if isinstance(inputs, AfterLayerNorm):
                A = [[v - sum(row) / len(row) for v in row] for row in A]
            worst = max(
                abs(float(a - Fraction(v)))
                for r, s in zip(A, problem.V, strict=True)
                for a, v in zip(r, s, strict=True)
            )
            assert worst <= problem.error, trial
            own, mapped = accepted(problem, problem.V.mean(axis=0), np.eye(3) * 1e6)
            for i in np.flatnonzero(own.lead > 0):
                assert least_lead(A, np.eye(3) * 1e6, mapped.V, int(i)) > 0


def test_a_drift_is_a_bound_of_the_mapped_rows_error():
    for W, centre, L in awkward_heads():
        _, mapped = accepted(AllInputs().reduce(W), centre, L)
        c, M = exact(centre)[0], exact(L)
        scale = Fraction(2) ** -OwnDirections(AllInputs().reduce(W)).scale
        for row, v in zip(exact(W), mapped.V, strict=True):
            true = [sum(m * (a * scale - b) for m, a, b in zip(r, row, c, strict=True)) for r in M]
            off = sum((t - Fraction(float(x))) ** 2 for t, x in zip(true, v, strict=True))
            assert off <= Fraction(mapped.drift) ** 2


def test_many_labels_in_blocks_and_leading_parts_agree_with_one_product(first_look):
    rng = np.random.default_rng(3)
    for n, d in ((2700, 96), (1500, 20)):
        W = rng.standard_normal((n, d)) * rng.lognormal(0, 0.3, (n, 1))
        own, mapped = accepted(AllInputs().reduce(W), W.mean(axis=0) * 0, np.eye(d))
        S = mapped.V @ mapped.V.T
        square = np.diag(S).copy()
        np.fill_diagonal(S, -np.inf)
        lead = (square - S.max(axis=1)) / np.sqrt(square)
        clear = np.abs(lead) > 1e-3
        assert (mapped.bytes is not None) == (first_look == "bytes first")
        assert np.array_equal((own.lead > 0)[clear], (lead > 0)[clear])
        assert (own.lead[lead > 0] <= lead[lead > 0] + 1e-9).all()
        assert clear.mean() > 0.95


def test_overflow_and_infinite_norms_prove_nothing():
    W = np.random.default_rng(0).standard_normal((6, 3))
    own, _ = accepted(AllInputs().reduce(W), np.zeros(3), np.eye(3) * 1e25)
    assert not own.lead.any()


@pytest.mark.parametrize(
    ("inputs", "bias", "enough"),
    [
        (AllInputs(), np.arange(4.0), True),
        (AfterRMSNorm(np.ones(3)), None, True),
        (AfterRMSNorm(np.ones(3)), np.ones(4), True),
        (AfterRMSNorm(np.ones(3)), np.arange(4.0), False),
        (AfterLayerNorm(np.ones(3)), None, True),
        (AfterLayerNorm(np.ones(3), np.array([0, 0, 1e-300])), None, False),
        (Box(-1, 1), None, True),
        (Box(0, 1), None, False),
        (Box(-1, np.inf), np.arange(4.0), False),
        (Nonnegative(), None, False),
    ],
)
def test_a_direction_is_enough_only_where_it_leads_to_an_input(inputs, bias, enough):
    W = np.random.default_rng(0).standard_normal((4, 3))
    assert OwnDirections(inputs.reduce(W, bias)).enough == enough


def plainly(kernel):
    """The kernel in Python; it is that already where NUMBA_DISABLE_JIT is set."""
    return getattr(kernel, "py_func", kernel)


def test_compiled_row_maxima_are_those_of_their_plain_writing():
    rng = np.random.default_rng(1)
    S, own, tails = (rng.standard_normal(s).astype(np.float32) for s in ((40, 70), (40,), (70,)))
    got, plain = np.empty(40, np.float32), np.empty(40, np.float32)
    row_max(S, got)
    plainly(row_max)(S, plain)
    assert np.array_equal(got, S.max(axis=1))
    assert np.array_equal(plain, got)
    row_max_with_tails(S, own, tails, got)
    plainly(row_max_with_tails)(S, own, tails, plain)
    np.testing.assert_allclose(got, (S + own[:, None] * tails).max(axis=1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(plain, got, rtol=1e-5, atol=1e-6)


def test_row_maxima_of_bytes_are_those_of_their_plain_writing():
    rng = np.random.default_rng(1)
    for width in (70, 64, 128):  # a part of the last register, and none
        S = rng.integers(-5000, 5000, (40, width + 3)).astype(np.int32)
        S[:, width:] = 2**30  # what stands beyond the scales does not count
        scale, own, tails = (rng.random(s).astype(np.float32) for s in ((width,), (40,), (width,)))
        got, plain = np.empty(40, np.float32), np.empty(40, np.float32)
        row_max_of_bytes(S, scale, own, tails, got)
        plainly(row_max_of_bytes)(S, scale, own, tails, plain)
        np.testing.assert_allclose(got, (S[:, :width] * scale + own[:, None] * tails).max(axis=1), rtol=1e-5)
        np.testing.assert_allclose(plain, got, rtol=1e-5)


def test_a_rival_is_found_wherever_it_stands_and_however_little_bytes_see_of_it(first_look):
    """Each label loses to one rival alone, by less than a byte tells: in the first column, the last, between."""
    rng = np.random.default_rng(7)
    n, d = 700, 130
    W = rng.standard_normal((n, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    for i in rng.permutation(n)[:60]:
        V = W.copy()
        j = int(rng.integers(n))
        if i == j:
            continue
        V[j] = V[i] * (1 + 1e-5) + 1e-6 * rng.standard_normal(d)
        own, _ = accepted(AllInputs().reduce(V), np.zeros(d), np.eye(d))
        assert own.lead[i] == 0
        assert (own.lead > 0).sum() > n - 10


def test_tails_are_not_shorter_than_they_are():
    V = np.random.default_rng(2).standard_normal((50, 90)).astype(np.float32)
    with BlasPool() as workers:
        tails = tail_lengths(V, workers)
    assert leading(1.0, 90) in {*tails, 90}
    for k, t in tails.items():
        assert (t >= np.linalg.norm(V[:, k:].astype(float), axis=1)).all()


def test_the_lemma_holds_compiled_and_in_plain_python():
    """Once more in a process where the kernels are what they are not here."""
    code = (
        "from tests.proofs import test_own_direction as t;"
        "t.test_whatever_the_map_what_is_accepted_wins_in_exact_arithmetic();"
        "t.test_compiled_row_maxima_are_those_of_their_plain_writing()"
    )
    plain = os.environ.get("NUMBA_DISABLE_JIT", "0") == "1"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "0" if plain else "1"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()


def test_wins_that_the_search_only_claims_are_undecided(monkeypatch):
    """A search that lies about where labels win is not believed."""
    from gonio.ask import wins
    from gonio.search.propose import propose

    def lying(problem, **options):
        found = propose(problem, **options)
        codes = found.status.copy()
        codes[:] = 1
        object.__setattr__(found, "status", codes)
        for i in found.labels:
            found.inputs[int(i)] = np.ones(problem.V.shape[1])
        found.ground.lead[:] = 1.0
        return found

    monkeypatch.setattr(wins, "propose", lying)
    monkeypatch.setattr(wins.linear, "can_pose", lambda problem: False)
    square = Head([[1, 1], [1, -1], [-1, 1], [-1, -1], [0.1, 0.2]], link="softmax")
    assert can_win(square).status[4] is Status.UNDECIDED
    assert can_win(square, 4).answer == "undecided"


def test_rivals_longer_by_less_than_float32_sees_are_not_overlooked():
    """Each row has a rival a billionth longer in its direction: it loses there, and float32 cannot see by how much."""
    rng = np.random.default_rng(5)
    for d in (2, 8, 70, 200):
        short = rng.standard_normal((40, d))
        W = np.vstack([short, short * (1 + 1e-9)])
        own, _ = accepted(AllInputs().reduce(W), np.zeros(d), np.eye(d))
        assert not own.lead[:40].any()
