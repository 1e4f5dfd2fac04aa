"""Numbers of every size: huge biases, tiny gains, scores that underflow or overflow, gaps below the smallest float."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, GonioError, Head, Nonnegative, Observed
from gonio.proofs import CertificateError, Impossible, NeverTies, NeverWins, Possible, Ties, Undecided, Wins
from gonio.proofs.bulk import verify_all
from gonio.proofs.proof_file import save, verify_file
from tests.proofs.rationals import exact, score


def is_refused(certificate, head):
    """Refused alone and among many."""
    with pytest.raises(CertificateError):
        certificate.verify(head)
    return list(verify_all(head, [certificate] * 3).refused) == [0, 1, 2]


def test_a_million_pairs_that_overlap_are_not_taken_for_a_proof():
    W = np.full((2002, 3), 1.0)
    W[:1001, 0] = 1 + 2.0**-52
    W[:, 1], W[:, 2] = 3, 7
    head = Head(W, link="softmax", inputs=Observed([[1.0, 1, 1]]))
    verdict = gonio.can_top(head, range(1001))
    assert verdict.answer == "yes"
    assert verdict.certificate.verify(head) == 2.0**-52
    with pytest.raises(CertificateError):
        Impossible(head.digest, [], [], range(1001), []).verify(head)


@pytest.mark.parametrize("bias", [0.0, 1.0, 1e18, -1e18, 1e300])
def test_a_common_bias_changes_no_verdict_after_a_layer_norm(bias):
    W = np.float32([[0, -1, 1], [1, 1, -1], [0.7896231412887573, 0, 2]])
    inputs = AfterLayerNorm([1e-3, 1, 0.5], [-0.5, 0, -0.5])
    result = gonio.can_win(Head(W, np.full(3, bias), link="softmax", inputs=inputs))
    assert result.never.tolist() == [2]
    assert result.wins.tolist() == [0, 1]
    assert result.certificate(2).verify(result.head) < 0


def rows(seed, n=12, d=4):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("inputs", [AfterLayerNorm(np.float32([0.5, 1.25, 2, 0.7]), 0.3), AfterRMSNorm(np.ones(4))])
def test_masks_in_the_bias_are_decided(seed, inputs):
    W, bias = rows(seed), np.zeros(12)
    bias[[3, 4, 9]] = -1e9
    masked = gonio.can_win(Head(W, bias, link="softmax", inputs=inputs))
    assert {3, 4, 9} <= set(masked.never.tolist())
    assert not len(masked.undecided)
    kept = np.delete(np.arange(12), [3, 4, 9])
    alone = gonio.can_win(Head(W[kept], link="softmax", inputs=inputs))
    assert [masked.status[i] for i in kept] == list(alone.status)
    assert not verify_all(masked.head, list(masked.certificates())).refused


@pytest.mark.parametrize("seed", range(4))
def test_shifts_far_above_the_gain_are_decided(seed):
    head = Head(rows(seed), link="softmax", inputs=AfterLayerNorm(np.full(4, 1e-3), np.full(4, 1e6)))
    result = gonio.can_win(head)
    assert not len(result.undecided)
    assert not verify_all(head, list(result.certificates())).refused


def test_the_margin_of_a_top_set_is_not_that_of_its_clear_pairs():
    head = Head(np.array([[1, 0], [0.999, 0], [1e20, -1e20]]), link="softmax")
    margin = Possible(head.digest, [], [], [0], [1.0, 1.0]).verify(head)
    assert 0 < exact(margin) <= 1 - exact(0.999)
    assert margin == pytest.approx(0.001, rel=1e-9)


def test_a_bound_of_nothing_is_refused_where_the_label_wins_by_a_little():
    """Of a sum that is negative, rounding up makes it less so."""
    head = Head(np.array([[0.0], [1.0]]), np.array([1e5 + 1e-4, 0.0]), link="softmax", inputs=Box([1e5], [np.inf]))
    assert Wins(head.digest, 0, [1e5]).verify(head) > 9e-5
    for bound in (0.0, -1.0, 9e-10):
        assert is_refused(Undecided(head.digest, 0, bound, "forged", [1], [1.0]), head)


def test_underflow_in_float32_is_no_tie_and_no_win():
    head = Head(np.float32([[-(2.0**100)], [2.0**-61], [2.0**-60]]), link="softmax")
    assert is_refused(Wins(head.digest, 1, [1.0]), head)
    assert is_refused(Ties(head.digest, 1, 2, [1.0], [1.0]), head)
    assert is_refused(Possible(head.digest, [1], [2], [], [1.0]), head)
    assert 0 < Wins(head.digest, 2, [1.0]).verify(head) <= 2.0**-61
    assert (verify_all(head, [Wins(head.digest, 2, [1.0])] * 40).bounds <= 2.0**-61).all()


@pytest.mark.parametrize("gain", [1e-170, 1e150])
@pytest.mark.parametrize("norm", [AfterLayerNorm, AfterRMSNorm])
def test_gains_of_any_size_give_the_verdicts_of_gain_one(gain, norm):
    W = np.vstack([rows(1), rows(1).mean(axis=0)])
    plain = gonio.can_win(Head(W, link="softmax", inputs=norm(np.ones(4))))
    result = gonio.can_win(Head(W, link="softmax", inputs=norm(np.full(4, gain))))
    assert list(result.status) == list(plain.status)
    assert not len(result.undecided)
    for i in result.wins:
        c = result.certificate(i)
        for j in result.wins[:3]:
            assert i == j or is_refused(Wins(c.head, int(j), c.x), result.head)
        assert is_refused(NeverWins(c.head, int(i), [12 - i], [1.0]), result.head)


def test_gaps_below_the_smallest_float_are_not_zero():
    head = Head(np.array([[2.0**-600], [2.0**-601]]), link="softmax", inputs=Observed([[2.0**-600]]))
    x = [2.0**-600]
    assert is_refused(NeverWins(head.digest, 0, [1], []), head)
    assert is_refused(Ties(head.digest, 0, 1, x, x), head)
    assert is_refused(Impossible(head.digest, [0], [1], [], []), head)
    assert is_refused(Impossible(head.digest, [], [], [0], []), head)
    assert is_refused(Possible(head.digest, [1], [0], [], x), head)
    assert NeverWins(head.digest, 1, [0], []).verify(head) <= 0
    assert Impossible(head.digest, [1], [0], [], []).verify(head) <= 0


@pytest.mark.parametrize("power", [-600, -537, -530, 500])
def test_sums_over_a_box_that_underflow_or_overflow_prove_nothing_false(power):
    size = 2.0**power
    head = Head(size * np.array([[1.0, 0], [0, 1], [-1, -1]]), link="softmax", inputs=Box([-size] * 2, [size] * 2))
    for i in range(3):
        others = [j for j in range(3) if j != i]
        for w in ([0.5, 0.5], [1.0, 0.0], [0.25, 0.75]):
            assert is_refused(NeverWins(head.digest, i, others, w), head)
            assert is_refused(Undecided(head.digest, i, 0.0, "forged", others, w), head)
        assert is_refused(Impossible(head.digest, [i] * 2, others, [], [0.5, 0.5]), head)
    assert not len(gonio.can_win(head).never)


X = [1.0, 0.0]
ABOUT_A_LABEL = {  # certificates in which something stands in the place of a label
    "wins": lambda d, label: Wins(d, label, X),
    "never wins": lambda d, label: NeverWins(d, label, [1], []),
    "ties": lambda d, label: Ties(d, label, 1, X, X),
    "never ties": lambda d, label: NeverTies(d, 0, label, [], [], []),
    "undecided": lambda d, label: Undecided(d, label, 1.0, "", [1], [1.0]),
}
AMONG_LABELS = {
    "rivals": lambda d, label: NeverWins(d, 0, [label], [1.0]),
    "above": lambda d, label: Possible(d, [label], [1], [], X),
    "top": lambda d, label: Impossible(d, [0], [1], [label], []),
}


@pytest.mark.parametrize("inputs", [AllInputs(), Observed([X])], ids=str)
@pytest.mark.parametrize("label", [0.5, "0", None, True, 1e300, np.nan, [0], 7, -1])
def test_what_is_no_label_is_refused_in_a_sentence(label, inputs):
    head = Head(np.eye(2), link="softmax", inputs=inputs)
    for make in ABOUT_A_LABEL.values():
        assert is_refused(make(head.digest, label), head)
    for name, make in AMONG_LABELS.items():
        if label is not True and (label, name) != (-1, "above"):  # among numbers it is 1, and -1 stands for zero
            with pytest.raises(GonioError, match="label"):
                make(head.digest, label).verify(head)


def test_scores_beyond_floats_are_compared():
    head = Head(np.array([[1e200, 0], [0, 1e200], [-1e200, 1e200]]), link="softmax")
    x = [2e200, 1e200]
    assert Possible(head.digest, [0, 1], [1, 2], [], x).verify(head) > 1e307
    assert Possible(head.digest, [], [], [0], x).verify(head) > 1e307
    assert is_refused(Possible(head.digest, [1], [0], [], x), head)
    assert is_refused(Possible(head.digest, [], [], [1], x), head)


@pytest.mark.parametrize("bias", [1e156, 8e307, 1.7e308])
@pytest.mark.parametrize(
    "inputs",
    [Box(-1, 1), AfterRMSNorm(np.ones(2)), AfterLayerNorm(np.ones(2), 1.0), Nonnegative(), AllInputs(),
     Observed([[1.0, 0], [0, 1]])],
    ids=lambda i: i.shape or "observed",
)  # fmt: skip
def test_biases_beyond_what_squares_hold_are_answered(bias, inputs):
    W = np.array([[1.0, 0], [0, 1], [-1, -1], [0.1, 0.2]])
    for b in (np.array([bias, -bias, 0, 1]), np.full(4, bias), np.array([bias, bias / 2, 0, -bias])):
        head = Head(W, b, link="softmax", inputs=inputs)
        try:
            proofs = [*gonio.can_win(head).certificates(), gonio.can_tie(head, 0, 1).certificate]
        except GonioError as e:
            assert bias == 1.7e308
            assert "divide" in str(e)
            continue
        proofs = [c for c in proofs if c.kind != "undecided"]
        assert not verify_all(head, proofs).refused


def test_a_file_without_proofs_is_an_error_and_one_proof_many_times_counts_once(tmp_path):
    head = Head(np.eye(2), link="softmax")
    save(tmp_path / "many.npz", [Wins(head.digest, 0, [1.0, 0])] * 229)
    check = verify_file(head, tmp_path / "many.npz")
    assert check.proven == {"wins": 1}
    assert check.to_dict()["labels"] == {"wins": [0]}
    with np.load(tmp_path / "many.npz") as z:
        arrays = {k: z[k] for k in z.files if k in ("format", "head")}
    np.savez(tmp_path / "none.npz", **arrays, order=np.zeros(0, np.uint8))
    with pytest.raises(GonioError, match="holds no proofs"):
        verify_file(head, tmp_path / "none.npz")


def shares_the_top(head, a, b):
    """Whether the two are equal and strictly above all others at an observed embedding, in rationals."""
    for x in head.inputs.points:
        s = [score(head, i, exact(x.astype(float))) for i in range(len(head))]
        if s[a] == s[b] and all(s[a] > v for i, v in enumerate(s) if i not in (a, b)):
            return True
    return False


def test_every_tie_over_small_observed_inputs_is_decided_and_right():
    rng = np.random.default_rng(17)
    seen = {"yes": 0, "no": 0}
    for k in range(200):
        n, d = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        bias = rng.integers(-2, 3, n).astype(float) if k % 2 else None
        points = rng.integers(-2, 3, (int(rng.integers(1, 6)), d)).astype(float)
        head = Head(rng.integers(-2, 3, (n, d)).astype(float), bias, link="softmax", inputs=Observed(points))
        verdict = gonio.can_tie(head, 0, 1)
        assert verdict.answer == ("yes" if shares_the_top(head, 0, 1) else "no")
        verdict.certificate.verify(head)
        seen[verdict.answer] += 1
    assert min(seen.values()) > 20


@pytest.mark.parametrize("inputs", [AllInputs(), Nonnegative(), Box(-1, 1), AfterRMSNorm(np.ones(4))])
def test_top_sets_do_not_hang_on_the_scale_of_the_head(inputs):
    W = rows(5, 8).astype(float)
    W[7] = 0.5 * W[:3].sum(axis=0) + 1e-3 * W[3]
    answers = []
    for scale in (1.0, 1e12, 1e-12, 2.0**400):
        head = Head(W * scale, link="softmax", inputs=inputs)
        verdicts = [gonio.can_top(head, labels) for labels in ([0], [0, 1], [2, 5], [1, 3, 6], [4, 7], [7])]
        assert all(v.certificate.verify(head) is not None for v in verdicts)
        answers.append([v.answer for v in verdicts])
    assert all(a == answers[0] for a in answers)
    assert set(answers[0]) == {"yes", "no"}
