"""Certificates that must fail, bounds of the undecided, and many certificates verified together."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, GonioError, Head, Nonnegative
from gonio.proofs.bulk import compact, verify_all
from gonio.proofs.certificates import CertificateError, NeverTies, NeverWins, Ties, Undecided, Wins
from gonio.proofs.kinds import of_dict
from tests.ask.judge import FIG2, basic_weights, entries, exact_margin, heads, interior_head, sides

# -- what must fail ----------------------------------------------------------------------------------------------------


def test_a_certificate_of_another_head_is_refused():
    head = Head(np.eye(3), link="softmax")
    other = Head(np.eye(3), link="softmax", inputs=Nonnegative())
    with pytest.raises(CertificateError, match="was checked against"):
        Wins(head.digest, 0, [1.0, 0, 0]).verify(other)


@pytest.mark.parametrize("label", [-1, 3, 10**9])
def test_a_label_out_of_range_is_refused(label):
    head = Head(np.eye(3), link="softmax")
    for proof in (Wins(head.digest, label, [1.0, 0, 0]), NeverWins(head.digest, label, [0, 1], [0.5, 0.5])):
        with pytest.raises(CertificateError, match="out of range"):
            proof.verify(head)
    with pytest.raises(CertificateError, match="among the labels"):
        NeverWins(head.digest, 0, [1, label], [0.5, 0.5]).verify(head)


def test_tampered_weights_are_refused():
    head = interior_head(60, 6)
    rivals, weights = basic_weights(head)
    assert NeverWins(head.digest, 0, rivals, weights).verify(head) == 0.0
    for change in (1.1, 0.0, -1.0, np.nan, 1 + 1e-4):
        bad = weights.copy()
        bad[2] *= change
        for w in (bad, bad / bad.sum()):
            with pytest.raises(CertificateError):
                NeverWins(head.digest, 0, rivals, w).verify(head)
    with pytest.raises(CertificateError):
        NeverWins(head.digest, 0, rivals, weights[::-1]).verify(head)
    with pytest.raises(CertificateError, match="one weight per rival"):
        NeverWins(head.digest, 0, rivals, weights[:-1]).verify(head)
    label = int(np.setdiff1d(np.arange(60), rivals)[1])
    with pytest.raises(CertificateError):
        NeverWins(head.digest, label, rivals, weights).verify(head)


@pytest.mark.parametrize(
    ("inputs", "x", "why"),
    [
        (AllInputs(), [np.nan, 0, 0], "NaN"),
        (AllInputs(), [np.inf, 0, 0], "NaN or infinity"),
        (AllInputs(), [1.0, 0], "width 3"),
        (Nonnegative(), [1.0, -1e-300, 0], "non-negative"),
        (Box(-1, 1), [1 + 2e-16, 0, 0], "box"),
        (AfterRMSNorm([1, 1, 1]), [1.7320508075688774, 0, 0], "norm"),
        (AfterRMSNorm([1, 0, 1]), [1.0, 1e-9, 0], "gain is 0"),
        (AfterLayerNorm([1, 1, 1]), [1.0, 0, 0], "sum to zero"),
        (AfterLayerNorm([1, 1, 1], 1.0), [3.0, -1.0, 1.0], "norm"),
        (AfterLayerNorm([1, 1, 0], 1.0), [2.0, 1.0, 1.5], "gain is 0"),
    ],
)  # fmt: skip
def test_an_embedding_outside_the_inputs_is_refused(inputs, x, why):
    head = Head(np.eye(3), link="softmax", inputs=inputs)
    with pytest.raises(CertificateError, match=why):
        Wins(head.digest, 0, x).verify(head)
    assert why in verify_all(head, [Wins(head.digest, 0, x)]).refused[0]


def test_the_edge_of_the_ball_is_decided_exactly():
    head = Head(np.eye(3), link="softmax", inputs=AfterRMSNorm([1, 1, 1]))
    assert Wins(head.digest, 0, [1.7320508075688772, 0, 0]).verify(head) > 1.7  # its square is below 3


def test_things_that_are_no_numbers_are_refused_when_made():
    for bad in ("text", [[1.0]], [1.5], [None]):
        with pytest.raises(GonioError):
            NeverWins("d", 0, bad, [1.0])
    with pytest.raises(GonioError):
        Wins("d", 0, [[1.0, 2.0]])


def test_a_cosine_head_is_refused():
    head = Head(np.eye(3), link="cosine")
    with pytest.raises(CertificateError, match="unit_rows"):
        Wins(head.digest, 0, [1.0, 0, 0]).verify(head)


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_undecided_proves_only_its_bound():
    head = Head([[0.0, 1e-12], [1.0, 0.0], [-1.0, 0.0]], link="softmax")
    near = Undecided(head.digest, 0, 1e-11, "the search stopped", [1, 2], [0.5, 0.5])
    assert near.verify(head) == 1e-11
    with pytest.raises(CertificateError, match="prove a bound"):
        Undecided(head.digest, 0, 1e-13, "", [1, 2], [0.5, 0.5]).verify(head)
    with pytest.raises(CertificateError, match="proves nothing"):
        Undecided(head.digest, 0, 1.0, "no time").verify(head)
    box = head.replace(inputs=Box(-2, 2))
    assert Undecided(box.digest, 0, 2.1e-12, "", [1, 2], [0.5, 0.5]).verify(box) == 2.1e-12
    with pytest.raises(CertificateError, match="prove a bound"):
        Undecided(box.digest, 0, 1.9e-12, "", [1, 2], [0.5, 0.5]).verify(box)


@settings(max_examples=100, deadline=None)
@given(heads(), st.data())
def test_an_undecided_bound_holds_in_exact_arithmetic(head, data):
    n, d = head.shape
    x = np.array(data.draw(st.lists(entries, min_size=d, max_size=d)))
    low, high = sides(head.inputs, d)
    x = np.clip(x, low, high)
    w = np.full(n - 1, 1 / (n - 1))
    from gonio.proofs.rival_mean import RivalMean, beyond, sums, supremum

    mean = RivalMean(head, 0, np.arange(1, n), w, np.zeros(n - 1, bool))
    with np.errstate(all="ignore"):
        s = sums(mean)
        value = (supremum(head, s) if head.inputs.bounded else beyond(head, s)) / mean.scale
    size = max(1, sum(Fraction(v) ** 2 for v in x)) if not head.inputs.bounded else 1
    margin = exact_margin(head, 0, [Fraction(v) for v in x])
    if margin > 0 and np.isfinite(value):
        assert margin**2 <= Fraction(value) ** 2 * size * Fraction(1 + 1e-6)


def test_one_label_alone_always_wins():
    head = Head([[1.0, 2.0]], link="softmax")
    assert Wins(head.digest, 0, [0.0, 0.0]).verify(head) == np.inf
    assert verify_all(head, [Wins(head.digest, 0, [0.0, 0.0])] * 40).bounds.min() == np.inf


def test_certificates_are_equal_by_value_and_survive_a_dict():
    head = Head(np.eye(3), link="softmax")
    kinds = [
        Wins(head.digest, 0, [1.0, 0, 0]),
        NeverWins(head.digest, 0, [1, 2], [0.5, 0.5]),
        Ties(head.digest, 0, 1, [1.0, 1, 0], [1.0, 1, 0]),
        NeverTies(head.digest, 0, 1, [2], [1.0], [0.5, 0.5]),
        Undecided(head.digest, 0, 0.1, "no time"),
    ]
    for k, c in enumerate(kinds):
        assert of_dict(c.to_dict()) == c
        assert hash(of_dict(c.to_dict())) == hash(c)
        assert all(c != other for j, other in enumerate(kinds) if j != k)
        assert len(repr(c).splitlines()) == 2
    with pytest.raises(GonioError, match="not those of a certificate"):
        of_dict({"kind": "pardon"})


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("biased", [False, True])
def test_many_wins_are_verified_together_as_one_by_one(dtype, biased):
    r = np.random.default_rng(3)
    W = r.standard_normal((300, 40)).astype(dtype)
    W[1] = W[0]
    W[2] = W[3]
    W[2, 0] = np.nextafter(W[3, 0], np.asarray(9, dtype))
    head = Head(W, 0.1 * r.standard_normal(300) if biased else None, link="softmax")
    wide = np.asarray(W, dtype=float)
    xs = wide - wide.mean(axis=0)
    proofs = [Wins(head.digest, i, xs[i]) for i in range(300)]
    together = verify_all(head, proofs)
    for i, proof in enumerate(proofs):
        try:
            alone = proof.verify(head)
            assert 0 < together.bounds[i] <= alone * (1 + 1e-3)
        except CertificateError as e:
            assert together.refused[i] == str(e)
            assert np.isnan(together.bounds[i])
    assert len(together.refused) < 60
    small = compact(head, proofs)
    assert sum(c.x.dtype == np.float32 for c in small) > 200
    assert verify_all(head, small).refused.keys() == together.refused.keys()


@pytest.mark.parametrize("scale", [1e-300, 1e-40, 1e40, 1e300])
def test_huge_and_tiny_heads_are_screened_rightly(scale):
    r = np.random.default_rng(6)
    W = r.standard_normal((60, 5)) * scale
    head = Head(W, link="softmax")
    for size in (1e-100, 1.0, 1e100, 1e-300, 1e300):
        xs = W / scale * size
        together = verify_all(head, [Wins(head.digest, i, xs[i]) for i in range(60)])
        for i in range(60):
            truth = exact_margin(head, i, [Fraction(v) for v in xs[i]])
            assert (i in together.refused) == (truth < Fraction(2) ** -1074)
            if i not in together.refused:
                assert together.bounds[i] <= truth


def test_mixed_certificates_are_verified_together():
    head = Head(FIG2, link="softmax")
    share = 0.1 / 2.4
    proofs = [
        Ties(head.digest, 0, 1, [1.0, -0.01], [1.0, 0.01]),
        Ties(head.digest, 2, 4, [-1.0, 0.01], [-1.0, -0.01]),
        Ties(head.digest, 0, 0, [1.0, -0.01], [1.0, 0.01]),
        NeverTies(head.digest, 2, 4, [3, 0, 1], [1 - share, share / 2, share / 2], [0.5, 0.5]),
        Wins(head.digest, 0, [1.0, -1.0]),
        Wins(head.digest, 1, [1.0, -1.0]),
        Wins("0" * 64, 1, [1.0, -1.0]),
        Wins(head.digest, 1, [np.nan, -1.0]),
    ]
    seen = verify_all(head, proofs)
    assert set(seen.refused) == {1, 2, 5, 6, 7}
    assert "label 0 scores at least as high" in seen.refused[5]
    assert len(repr(seen).splitlines()) == 2


def test_equal_labels_with_the_same_proof_are_judged_as_each_alone():
    square = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    head = Head(np.vstack([square, np.tile([0.25, 0.5], (6, 1)), np.tile([9.0, 9.0], (5, 1))]), link="softmax")
    rivals, weights = np.arange(4), np.linalg.lstsq(np.vstack([square.T, np.ones(4)]), [0.25, 0.5, 1.0], rcond=None)[0]
    inside = [NeverWins(head.digest, k, rivals, weights) for k in range(4, 10)]
    outside = [NeverWins(head.digest, k, rivals, weights) for k in range(10, 15)]
    halves = np.frombuffer(weights.tobytes(), np.float32)  # the same bytes, another meaning
    odd = [
        NeverWins("0" * 64, 5, rivals, weights),
        NeverWins(head.digest, 99, rivals, weights),
        NeverWins(head.digest, 5, rivals, halves),
        NeverWins(head.digest, 5, [0, 1, 2, 4], weights),  # an equal among the rivals
        NeverWins(head.digest, 6, [0, 1, 2, 4], weights),
        NeverWins(head.digest, 5, [0, 1, 2, 99], weights),
    ]
    proofs = [*inside, *outside, *odd]
    seen = verify_all(head, proofs)
    assert set(seen.refused) == set(range(6, len(proofs)))
    assert (seen.bounds[:6] <= 0).all()
    assert np.isnan(seen.bounds[6:]).all()
    for k, proof in enumerate(proofs[6:], 6):
        with pytest.raises(CertificateError) as e:
            proof.verify(head)
        assert seen.refused[k] == str(e.value)  # its own label is named
