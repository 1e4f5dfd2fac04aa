"""Which embeddings are inputs, to the last rounding; and what labels do at observed ones, against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, Head, Observed
from gonio.core.float_units import UNIT
from gonio.proofs import CertificateError, NeverTies, NeverWins, observed_inputs
from gonio.proofs.bulk import verify_all
from gonio.proofs.margins import Places
from tests.proofs.rationals import exact, score

WIDE = 1024

# -- the edge of the ball ----------------------------------------------------------------------------------------------


def inside(inputs, x):
    """Whether x is one of a norm's inputs, in fractions."""
    gain, shift = (exact(v) for v in inputs.gain_and_shift(len(x)))
    live = [g != 0 for g in gain]
    z = [(a - s) / g for a, s, g in zip(exact(x), shift, gain, strict=True) if g]
    squares, dead = sum(v * v for v in z), live.count(False)
    if inputs.centred:
        squares += sum(z) ** 2 / dead if dead else -(sum(z) ** 2) / len(x)
    return squares < len(x) and all(a == s for a, s, on in zip(exact(x), shift, live, strict=True) if not on)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("dead", [0, 1, 2])
def test_the_edge_of_a_norms_inputs_is_told_exactly(centred, dead):
    rng = np.random.default_rng(5)
    told = {True: 0, False: 0}
    for _ in range(60):
        d = 6
        gain, shift = rng.uniform(0.5, 2, d), rng.standard_normal(d) if centred else np.zeros(d)
        gain[:dead] = 0
        inputs = AfterLayerNorm(gain, shift) if centred else AfterRMSNorm(gain)
        z = rng.standard_normal(d)
        z[:dead] = 0
        if centred and not dead:
            z -= z.mean()
        size = z @ z + (z.sum() ** 2 / dead if centred and dead else 0)
        x = shift + gain * (z * np.sqrt(d / size) * (1 + rng.integers(-3, 4) * UNIT))
        answer = not Places(inputs, x[None]).outside()
        assert answer == inside(inputs, x)
        told[answer] += 1
    assert min(told.values()) > 5


def test_why_an_embedding_is_outside():
    rms, layer = AfterRMSNorm(np.ones(3)), AfterLayerNorm(np.array([1.0, 0, 0, 2.0]), np.arange(4.0))
    x = np.array([[1.0, 0, 0], [2.0, 0, 0], [np.nan, 0, 0], [0, np.inf, 0], [0, 0, 0]])
    assert {k: v[:16] for k, v in Places(rms, x).outside().items()} == {
        1: "(x - shift) / ga", 2: "it holds NaN or ", 3: "it holds NaN or ",
    }  # fmt: skip
    assert "has norm 2, not below sqrt(3)" in Places(rms, x).outside()[1]
    moved = np.array([[0, 1, 2, 3.0], [0, 1, 2.5, 3.0], [np.sqrt(8 / 3) + 1e-9, 1, 2, 3.0], [1.63, 1, 2, 3.0]])
    out = Places(layer, moved).outside()
    assert set(out) == {1, 2}
    assert out[1] == "a coordinate whose gain is 0 was moved"
    assert out[2].startswith("(x - shift) / gain has norm 2")
    even = AfterLayerNorm(np.ones(2))
    assert set(Places(even, np.array([[0.5, -0.5], [0.5, 0.5], [0.0, 0.0], [0.5, -0.4999996]])).outside()) == {1}
    seen = Observed(np.array([[0.0, -0.0], [1.0, 2.0]]))
    assert set(Places(seen, np.array([[-0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])).outside()) == {2}


def test_a_surface_is_not_inside():
    sphere = AfterRMSNorm(np.ones(4))
    x = np.array([[2.0, 0, 0, 0], [np.nextafter(2, 0), 0, 0, 0], [1.0, 1, 1, 1], [1.0, 1, 1, np.nextafter(1, 0)]])
    assert set(Places(sphere, x).outside()) == {0, 2}


def test_only_the_part_of_z_that_sums_to_zero_has_a_length():
    """|z|^2 is above d, and less its mean it is not; a hair farther out it is."""
    layer = AfterLayerNorm(np.ones(4))
    turn, even = np.array([1.0, -1, 1, -1]), np.full(4, 5e-7)
    x = np.array([turn * (1 - 1e-13) + even, turn * (1 - 1e-13) - even, turn * (1 + 1e-15) + even])
    assert [(exact(v) and sum(a * a for a in exact(v)) > 4) for v in x] == [True] * 3
    assert set(Places(layer, x).outside()) == {2}


@pytest.mark.parametrize("d", [2, 4, 9])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [0.01, 0.9])
def test_how_far_from_sum_zero_a_z_may_be(d, sign, size):
    """|sum z| up to a millionth of the terms of the sum, sum (|x| + |shift|) / |gain|, is rounding, and no more."""
    layer = AfterLayerNorm(np.full(d, 2.0), np.ones(d))
    turn = np.r_[1.0, -1.0, np.zeros(d - 2)] * size
    for share, inside in ((0.99e-6, True), (1.01e-6, False)):
        terms = ((np.abs(layer.gain * turn + layer.shift) + layer.shift) / layer.gain).sum()
        even = sign * share * terms / d  # sum z = d even
        out = Places(layer, (layer.gain * (turn + even) + layer.shift)[None]).outside()
        assert out == ({} if inside else {0: "(x - shift) / gain does not sum to zero"})


# -- observed embeddings -----------------------------------------------------------------------------------------------


def observed_heads():
    rng = np.random.default_rng(6)
    for k in range(12):
        n, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        F = rng.integers(-2, 3, (7, d)) * 0.1
        W = rng.integers(-2, 3, (n, d)) * 0.3
        yield Head(W, rng.integers(-1, 2, n) * 0.7 if k % 2 else None, link="softmax", inputs=Observed(F))
    for sign in (1, -1):
        x = np.r_[1.0, np.full(WIDE - 1, sign * UNIT * 0.99)]
        W = np.array([np.ones(WIDE), np.zeros(WIDE)])
        W[1, 0] = 1 if sign < 0 else 1 + (WIDE - 300) * UNIT
        yield Head(W, link="softmax", inputs=Observed(x[None]))


def test_the_most_a_label_has_on_its_best_rival_is_never_understated():
    for head in observed_heads():
        n = head.shape[0]
        points = [exact(x) for x in head.inputs.points]
        scores = [[score(head, i, x) for i in range(n)] for x in points]
        for i in range(n):
            alike = {j for j in range(n) if all(s[i] == s[j] for s in scores) and j in head.equals(i)}
            for rivals in ([j for j in range(n) if j != i and j not in alike], [(i + 1) % n]):
                if not rivals:
                    assert observed_inputs.most(head, i, np.zeros(0, int)) == np.inf
                    continue
                true = max(s[i] - max(s[j] for j in rivals) for s in scores)
                value = observed_inputs.most(head, i, np.array(rivals))
                assert exact(value) >= true
                assert (value > 0) == (true > 0)
                assert value - float(true) < 1e-9
                if len(rivals) == n - 1 - len(alike) and rivals[0] != (i + 1) % n:
                    assert observed_inputs.most(head, i, np.zeros(0, int)) == value


def test_the_first_tie_among_observed_embeddings_is_found():
    for head in observed_heads():
        n = head.shape[0]
        scores = [[score(head, i, exact(x)) for i in range(n)] for x in head.inputs.points]
        for a in range(n):
            for b in range(n):
                if a == b:
                    continue
                for named in (False, True):
                    js = [j for j in range(n) if j not in (a, b)][: 1 if named else n]
                    if named and not js:
                        continue
                    ties = [k for k, s in enumerate(scores) if s[a] == s[b] and all(s[j] < s[a] for j in js)]
                    at = observed_inputs.tied(head, a, b, np.array(js if named else [], int))
                    assert at == (ties[0] if ties else None)


def test_every_block_of_observed_embeddings_is_looked_at():
    F = np.full((1030, 1), -1.0)
    F[-1] = 1
    head = Head([[1.0], [0.0]], link="softmax", inputs=Observed(F))
    assert observed_inputs.most(head, 0, np.array([1])) == pytest.approx(1)
    F = -F
    assert observed_inputs.most(head.replace(inputs=Observed(F)), 0, np.array([1])) == pytest.approx(1)
    assert observed_inputs.most(head.replace(inputs=Observed(-np.ones((1030, 1)))), 0, np.array([1])) < -0.99


def cancelling(extra):
    """x and two rows whose scores differ by far less than a float can tell, or (extra 0) by nothing."""
    a, b = 1.1, 1.3
    x = np.array([b, a * (1 + extra * 2 * UNIT)])
    return x, np.array([[a, 0.0], [0.0, b], [-9.0, -9.0]])


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_leads_that_rounding_hides_are_told_at_observed_embeddings(extra):
    x, W = cancelling(extra)
    head = Head(W, link="softmax", inputs=Observed(x[None]))
    lead = score(head, 0, exact(x)) - score(head, 1, exact(x))
    assert (lead > 0) - (lead < 0) == -extra
    for i, sign in ((0, 1), (1, -1)):
        value = observed_inputs.most(head, i, np.array([1 - i]))
        assert exact(value) >= sign * lead
        assert (value > 0) == (sign * lead > 0)
        assert abs(value) < 1e-14
    assert observed_inputs.tied(head, 0, 1, np.zeros(0, int)) == (0 if extra == 0 else None)


def test_scores_beyond_floats_are_told_at_observed_embeddings():
    head = Head([[1.5e308], [1e308]], link="softmax", inputs=Observed([[1e10]]))
    assert observed_inputs.most(head, 0, np.array([1])) > 0
    assert observed_inputs.most(head, 1, np.array([0])) < 0
    same = Head([[1.5e308], [1e308], [0.0]], link="softmax", inputs=Observed([[0.0], [1e10], [-1e10]]))
    assert observed_inputs.tied(same, 0, 1, np.array([2])) is None
    assert observed_inputs.most(same, 2, np.array([0, 1])) > 0


def test_a_tie_that_sums_in_floats_miss_is_found():
    """1, many numbers that are lost beside it, and minus both: exactly 0, and not in floats."""
    count = 400
    row = np.r_[1.0, np.full(count, UNIT / 2), -1.0, -count * UNIT / 2]
    for biased in (False, True):
        W = np.array([row, row * 0, row * 0])
        b = np.array([0.5, 0.5, -1.0])
        if biased:  # the last number is a bias
            W[0, -1], b[0] = 0, b[0] - count * UNIT / 2
        head = Head(W, b, link="softmax", inputs=Observed(np.ones((1, len(row)))))
        assert score(head, 0, exact(np.ones(len(row)))) == score(head, 1, exact(np.ones(len(row))))
        assert observed_inputs.tied(head, 0, 1, np.zeros(0, int)) == 0
        assert observed_inputs.tied(head, 1, 0, np.array([2])) == 0
        assert observed_inputs.most(head, 0, np.array([1])) == 0
        assert observed_inputs.most(head, 1, np.array([0])) == 0


def test_biases_make_and_unmake_ties():
    head = Head([[1.0], [2.0], [0.0]], [0.5, 0.0, 0.0], link="softmax", inputs=Observed([[0.0], [0.5], [-4.0]]))
    assert observed_inputs.tied(head, 0, 1, np.zeros(0, int)) == 1
    assert observed_inputs.tied(head.replace(bias=[0.5, 0.25, 0.0]), 0, 1, np.zeros(0, int)) is None
    assert observed_inputs.tied(head.replace(bias=[0.5, 0.0, 1.0]), 0, 1, np.zeros(0, int)) is None  # 2 is as high
    assert observed_inputs.tied(head.replace(bias=[0.5, 0.0, 1.0]), 0, 1, np.array([1])) is None


@pytest.mark.parametrize("d", [3, 8, 40])
@pytest.mark.parametrize("biased", [False, True])
def test_scores_that_are_equal_though_floats_say_otherwise_are_a_tie(d, biased):
    """Sums of large numbers that are exactly equal and that floats add up to something else."""
    rng, off = np.random.default_rng(d), 0
    for _ in range(20):
        small = rng.integers(-3, 4, d - 1)
        small[-1] -= small.sum()
        row = (rng.integers(-(2**49), 2**49, d - 1) * 8 + small).astype(float)
        total = -sum(int(v) for v in row)
        W = np.array([np.append(row, 0.0 if biased else float(total)), np.zeros(d)])
        bias = np.array([float(total), 0.0]) if biased else None
        assert int(float(total)) == total
        head = Head(W, bias, link="softmax", inputs=Observed(np.ones((1, d))))
        off += (W @ np.ones(d) + (0 if bias is None else bias))[0] != 0
        for a, b in ((0, 1), (1, 0)):
            with pytest.raises(CertificateError, match="share the top"):
                NeverTies(head.digest, a, b, [], [], []).verify(head)
            assert NeverWins(head.digest, a, [b], []).verify(head) >= 0
    assert off > 3 or d < 40


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e-160, 1e150])
def test_one_look_at_all_labels_never_understates_what_one_has_on_the_others(biased, scale, monkeypatch):
    monkeypatch.setattr(observed_inputs, "CELLS", 20)  # several blocks of embeddings
    rng = np.random.default_rng(3)
    for seed in range(40):
        n, d, m = rng.integers(2, 7), rng.integers(1, 4), rng.integers(1, 9)
        W = rng.integers(-2, 3, (n, d)) * (0.1 if seed % 2 else 1.0) * scale
        b = rng.integers(-1, 2, n) * 0.1 * scale if biased else None
        F = rng.integers(-2, 3, (m, d)) * 0.3
        head = Head(W, bias=b, link="softmax", inputs=Observed(F))
        bounds = observed_inputs.most_of_all(head)
        for i in range(n):
            others = [j for j in range(n) if j != i and j not in head.equals(i)]
            if not others:
                assert bounds[i] == np.inf
                continue
            scores = [[score(head, k, exact(x)) for k in range(n)] for x in F.astype(float)]
            truth = max(s[i] - max(s[j] for j in others) for s in scores)
            assert not bounds[i] < truth
            assert not bounds[i] <= 0 or truth <= 0


def test_bounds_of_all_labels_are_near_those_of_each():
    rng = np.random.default_rng(4)
    head = Head(
        rng.normal(size=(30, 5)), bias=rng.normal(size=30), link="softmax", inputs=Observed(rng.normal(size=(9, 5)))
    )
    each = [observed_inputs.most(head, i, np.zeros(0, int)) for i in range(30)]
    assert np.allclose(observed_inputs.most_of_all(head), each, rtol=0, atol=1e-12)


def test_many_that_never_win_at_observed_embeddings_are_verified_from_one_look(monkeypatch):
    rng = np.random.default_rng(5)
    W = rng.normal(size=(12, 3))
    W[11] = W[3]
    head = Head(W, link="softmax", inputs=Observed(rng.normal(size=(4, 3))))
    empty = np.zeros(0)
    claims = [NeverWins(head.digest, i, empty, empty) for i in range(12)]
    claims += [NeverWins("another head", 0, empty, empty), NeverWins(head.digest, 12, empty, empty)]
    alone = []
    for c in claims:
        try:
            alone.append(c.verify(head))
        except CertificateError:
            alone.append(np.nan)
    asked = []
    monkeypatch.setattr(
        NeverWins, "verify", lambda self, head, plain=NeverWins.verify: asked.append(self.label) or plain(self, head)
    )
    seen = verify_all(head, claims)
    assert np.allclose(seen.bounds, alone, rtol=0, atol=1e-12, equal_nan=True)
    assert sorted(seen.refused) == np.flatnonzero(np.isnan(alone)).tolist()
    assert sorted(asked) == sorted(int(claims[k].label) for k in seen.refused)  # the others were settled together
    few = verify_all(head, claims[:3])
    assert np.allclose(few.bounds, alone[:3], rtol=0, atol=1e-12, equal_nan=True)
