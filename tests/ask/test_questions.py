"""Single questions at any size: against the listing, linear programs, sampled inputs; every answer with its proof."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import (
    AfterLayerNorm,
    AfterRMSNorm,
    Box,
    GonioError,
    Head,
    Nonnegative,
    Observed,
    can_label,
    can_rank,
    can_top,
    rankings,
)
from gonio.ask.questions import can_labels
from gonio.proofs import proof_file
from gonio.proofs.certificate_base import CertificateError
from gonio.proofs.comparisons import NOBODY, ZERO, Impossible, Open, Possible
from tests.listing import made
from tests.small_heads import CLEAR, KINDS, comparison_margin, small_head
from tests.strategies import heads, tables


def checked(verdict):
    """The answer, once its certificate has been verified."""
    if verdict.answer == "yes":
        assert verdict.certificate.verify(verdict.head) > 0
    elif verdict.answer == "no":
        assert verdict.certificate.verify(verdict.head) <= 0
    return verdict.answer


@settings(max_examples=80, deadline=None)
@given(head=heads(links=("sigmoid",), labels=st.integers(1, 5), dim=st.integers(1, 4)), data=st.data())
@pytest.mark.theorem("GRIV24.feasible")
def test_a_label_set_is_possible_iff_a_program_says_so(head, data):
    n = head.shape[0]
    signs = np.array(data.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n).filter(any)))
    verdict = can_label(head, on=np.flatnonzero(signs > 0).tolist(), off=np.flatnonzero(signs < 0).tolist())
    use = signs != 0
    b = np.zeros(n) if head.bias is None else head.bias
    expected = made.holds(signs[use, None] * head.W[use], signs[use] * b[use])
    assert checked(verdict) == ("yes" if expected else "no")


@settings(max_examples=60, deadline=None)
@given(W=tables(labels=st.integers(2, 6), dim=st.integers(1, 4)), data=st.data())
def test_an_order_is_possible_iff_a_program_says_so(W, data):
    head = Head(W, link="softmax")
    order = data.draw(st.permutations(range(len(W))).map(lambda p: p[: data.draw(st.integers(2, len(W)))]))
    expected = made.holds(W[order[:-1]] - W[order[1:]])
    assert checked(can_rank(head, order)) == ("yes" if expected else "no")
    others = [j for j in range(len(W)) if j not in order]
    V = np.vstack([W[order[:-1]] - W[order[1:]], W[order[-1]] - W[others]]) if others else W[order[:-1]] - W[order[1:]]
    assert checked(can_rank(head, order, top=True)) == ("yes" if made.holds(V) else "no")
    pairs = [(i, j) for i in order for j in others] or [(i, j) for i in order for j in order if i != j]
    if others:
        both = can_top(head, order)
        expected = made.holds(np.array([W[i] - W[j] for i, j in pairs]))
        assert checked(both) == ("yes" if expected else "no")


def test_top_sets_are_those_of_the_rankings():
    rng = np.random.default_rng(0)
    for b in (None, rng.normal(size=6)):
        head = Head(rng.normal(size=(6, 2)), b, link="softmax")
        array = rankings(head).to_array()
        for k in (1, 2, 3):
            have = {frozenset(r[:k].tolist()) for r in array}
            for s in combinations(range(6), k):
                assert (checked(can_top(head, s)) == "yes") == (frozenset(s) in have)
        have = {tuple(r[:2].tolist()) for r in array}
        for s in permutations(range(6), 2):
            assert (checked(can_rank(head, s, top=True)) == "yes") == (s in have)


INPUTS = [
    Nonnegative(),
    Box(-1, 2),
    Box([-1, 0.5, 0], [1, 0.5, np.inf]),
    AfterRMSNorm(np.array([1.0, 2, 0.5])),
    AfterLayerNorm(np.array([1.0, 2, 0.5]), np.array([0.1, 0.2, 0])),
    Observed(np.random.default_rng(1).normal(size=(40, 3))),
]


@pytest.mark.parametrize("inputs", INPUTS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("bias", [False, True])
def test_what_inputs_of_the_head_do_is_never_called_impossible(inputs, bias):
    rng = np.random.default_rng(3)
    W, b = rng.normal(size=(5, 3)), rng.normal(size=5) if bias else None
    head = Head(W, b, link="sigmoid", inputs=inputs)
    X = inputs.sample(20_000, 3, rng)
    seen = made.as_set(np.unique(np.sign(X @ W.T + (0 if b is None else b)), axis=0))
    answers = {}
    for s in product([-1, 1], repeat=5):
        on = [i for i in range(5) if s[i] > 0]
        answers[s] = checked(can_label(head, on=on, off="rest"))
    assert all(answers[s] == "yes" for s in seen if 0 not in s)
    assert sum(a == "undecided" for a in answers.values()) == 0
    assert {"no"} <= set(answers.values())
    if isinstance(inputs, Observed):
        assert {s for s, a in answers.items() if a == "yes"} == seen


def asked_of(head, rng):
    """A label set, an order and a top set of a small head: the answer, and the judge's margin."""
    n = head.shape[0]
    signs = rng.integers(-1, 2, n)
    signs[0] = signs[0] or 1
    on, off = np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)
    above, below = (
        np.where(signs > 0, np.arange(n), ZERO)[signs != 0],
        np.where(signs < 0, np.arange(n), ZERO)[signs != 0],
    )
    yield (
        can_label(head.replace(link="sigmoid"), on=on.tolist(), off=off.tolist()),
        comparison_margin(head, above, below),
    )
    order = rng.permutation(n)[: rng.integers(2, n + 1)]
    yield can_rank(head, order.tolist()), comparison_margin(head, order[:-1], order[1:])
    top, others = np.split(rng.permutation(n), [rng.integers(1, n)])
    above, below = np.repeat(top, len(others)), np.tile(others, len(top))
    yield can_top(head, top.tolist()), comparison_margin(head, above, below)


def judged(kind, count, seed):
    """Small heads: decided as the judge decides, open only where the margin is rounding."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    for _ in range(count):
        head = small_head(rng, kind)
        for verdict, margin in asked_of(head, rng):
            wanted = {"yes"} if margin > CLEAR else {"no"} if margin < -CLEAR else {"no", "undecided"}
            assert checked(verdict) in wanted, (head.W, head.bias, head.inputs, verdict, margin)


@pytest.mark.parametrize("kind", KINDS)
def test_questions_about_small_heads_are_decided_rightly(kind):
    judged(kind, count=5, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_questions_about_many_small_heads_are_decided_rightly(kind):
    judged(kind, count=40, seed=1)


def test_one_dimension_after_a_norm_is_answered():
    head = Head([[1.0], [-1.0], [0.0]], link="softmax", inputs=AfterRMSNorm(np.ones(1)))
    assert checked(can_top(head, [0])) == checked(can_rank(head, [1, 2, 0])) == "yes"
    assert checked(can_top(head, [2])) == checked(can_rank(head, [0, 1, 2])) == "no"
    assert checked(can_label(head.replace(link="sigmoid"), on=[0], off=[1])) == "yes"


def test_what_holds_only_on_the_surface_of_an_open_ball_is_impossible():
    # z + 1 < 0 on |z| < 1
    head = Head([[1.0]], [1.0], link="sigmoid", inputs=AfterRMSNorm(np.ones(1)))
    assert checked(can_label(head, off=[0])) == "no"
    assert checked(can_label(head.replace(bias=np.array([np.nextafter(1, 0)])), off=[0])) != "no"


@pytest.mark.parametrize(("n", "d"), [(1000, 64), (300, 20)])
def test_large_questions_are_answered_with_proof(n, d):
    rng = np.random.default_rng(n)
    W = rng.normal(size=(n, d))
    head = Head(W, link="sigmoid")
    x = rng.normal(size=d)
    on = np.flatnonzero(W @ x > 0)
    assert checked(can_label(head, on=on.tolist(), off="rest")) == "yes"
    flipped = np.concatenate([on, np.flatnonzero(W @ x < 0)[:40]])
    verdict = can_label(head, on=flipped.tolist(), off="rest")
    assert checked(verdict) == "no"
    assert len(verdict.certificate.above) <= d + 1
    softmax = Head(W.astype(np.float32), link="softmax")
    order = np.argsort(-(softmax.W.astype(float) @ x))
    assert checked(can_rank(softmax, order.tolist())) == "yes"
    assert checked(can_rank(softmax, rng.permutation(n).tolist())) == "no"
    assert checked(can_top(softmax, order[:10].tolist())) == "yes"


@pytest.mark.parametrize("inputs", [None, Nonnegative(), Box(-1, 1)])
def test_the_program_alone_answers_as_both_methods_do(inputs, monkeypatch):
    """Newton finds nearly every point first; without it the linear program finds points and proofs by itself."""
    rng = np.random.default_rng(3)
    W = rng.normal(size=(12, 4))
    head = Head(W, link="sigmoid") if inputs is None else Head(W, link="sigmoid", inputs=inputs)
    asked = [np.sign(W @ rng.random(4)) for _ in range(6)] + [rng.choice([-1.0, 1.0], 12) for _ in range(14)]
    sets = [(np.flatnonzero(s > 0).tolist(), np.flatnonzero(s < 0).tolist()) for s in asked]
    both = [checked(can_label(head, on=on, off=off)) for on, off in sets]
    assert {"yes", "no"} == set(both)
    monkeypatch.setattr("gonio.ask.decide.newton", lambda system: None)
    assert [checked(can_label(head, on=on, off=off)) for on, off in sets] == both


def test_a_thin_cell_is_not_called_impossible():
    # Feasible with a bound of 5e-12: a small bound proves nothing.
    assert checked(can_label(Head([[1.0, 0], [-1, 1e-11]], link="sigmoid"), on=[0, 1])) == "yes"
    assert checked(can_label(Head([[1.0, 0], [-1, 1e-200]], link="sigmoid"), on=[0, 1])) in ("yes", "undecided")
    assert checked(can_label(Head([[1.0, 0], [-1, 0]], link="sigmoid"), on=[0, 1])) == "no"


def test_a_data_sets_label_sets():
    rng = np.random.default_rng(5)
    head = Head(rng.normal(size=(12, 3)), link="sigmoid")
    sets = [rng.choice(12, rng.integers(0, 4), replace=False).tolist() for _ in range(60)]
    result = can_labels(head, sets + sets[:5])
    assert len(result) == 65
    for s, a in zip(result.sets, result.answers, strict=True):
        signs = np.where(np.isin(np.arange(12), s), 1.0, -1.0)
        assert a == ("yes" if made.holds(signs[:, None] * head.W) else "no")
    assert len(result.impossible) > 0
    assert result.columns()["can_label"] == list(result.answers)
    assert "impossible" in repr(result)
    with pytest.raises(GonioError, match="label set 2"):
        can_labels(head, [[0], [99]])


def test_proofs_are_saved_and_bound_to_their_head_and_question(tmp_path):
    rng = np.random.default_rng(6)
    head = Head(rng.normal(size=(8, 3)), rng.normal(size=8), link="sigmoid")
    several = [can_label(head, on=list(s)).certificate for s in combinations(range(8), 3)]
    several += [can_rank(head, list(p)).certificate for p in list(permutations(range(5)))[:30]]
    several += [can_top(head, list(s)).certificate for s in combinations(range(8), 2)]
    assert {type(c) for c in several} == {Possible, Impossible}
    path = tmp_path / "p.npz"
    proof_file.save(path, several)
    assert proof_file.load(path) == several
    seen = proof_file.verify_file(head, path)
    assert seen.fine
    assert seen.proven["possible"] + seen.proven["impossible"] == len(several)
    other = Head(head.W * 1.5, head.bias, link="sigmoid")
    assert not proof_file.verify_file(other, path).fine
    no = next(c for c in several if isinstance(c, Impossible))
    wrong = Impossible(no.head, no.below, no.above, no.top, no.weights)
    with pytest.raises(CertificateError, match="undecided"):
        wrong.verify(head)
    yes = next(c for c in several if isinstance(c, Possible) and len(c.above))
    with pytest.raises(CertificateError, match="not all of its comparisons hold"):
        Possible(yes.head, yes.below, yes.above, yes.top, yes.x).verify(head)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda h: Possible(h.digest, [0], [0], [], np.ones(2)), "with itself"),
        (lambda h: Possible(h.digest, [0], [], [], np.ones(2)), "as many are needed"),
        (lambda h: Possible(h.digest, [], [], [], np.ones(2)), "compares nothing"),
        (lambda h: Possible(h.digest, [9], [ZERO], [], np.ones(2)), "not among 0 to 2"),
        (lambda h: Possible(h.digest, [0], [ZERO], [], np.ones(3)), "width 2"),
        (lambda h: Possible("x" * 8, [0], [ZERO], [], np.ones(2)), "about the head"),
        (lambda h: Impossible(h.digest, [0], [ZERO], [], [-1.0]), "non-negative"),
        (lambda h: Impossible(h.digest, [0], [ZERO], [], [0.5]), "sum 1"),
        (lambda h: Impossible(h.digest, [0], [ZERO], [1], [1.0]), "leave `top` empty"),
        (lambda h: Open(h.digest, [0], [ZERO], [], 1.0, "x"), "proves nothing"),
    ],
)
def test_a_certificate_that_proves_nothing_says_so(make, words):
    head = Head([[1.0, 0], [0, 1], [1, 1]], link="sigmoid")
    with pytest.raises(CertificateError, match=words):
        make(head).verify(head)


def test_exact_arithmetic_settles_differences_that_floats_cannot():
    big = 2.0**53
    head = Head([[big, 1.0], [big, 0.0]], link="softmax")
    x = np.array([1.0, 0.25])
    assert Possible(head.digest, [0], [1], NOBODY, x).verify(head) == 0.25
    with pytest.raises(CertificateError):
        Possible(head.digest, [1], [0], NOBODY, x).verify(head)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda h: can_label(h, on=["a"], off=["a"]), "on and off"),
        (lambda h: can_label(h, on=["a", "a"]), "named twice"),
        (lambda h: can_label(h), "no label was named"),
        (lambda h: can_label(h, on=["zz"]), "zz"),
        (lambda h: can_rank(h, ["a"]), "two at least"),
        (lambda h: can_rank(h, ["a", "b", "a"]), "named twice"),
        (lambda h: can_rank(h, [("a", "b"), ("b", "c"), ("c", "a")]), "contradicts itself: '.' > '.' > '.' > '.'"),
        (lambda h: can_rank(h, [("a", "a")]), "above itself"),
        (lambda h: can_top(h, []), "no label was named"),
        (lambda h: can_label(h.replace(link="softmax"), on=["a"]), "no label sets"),
        (lambda h: can_rank(h.replace(link="cosine"), ["a", "b"]), "cosine"),
        (lambda h: can_labels(h, []), "no label set"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_in_one_sentence(ask, words):
    head = Head([[1.0, 0], [0, 1], [1, 1]], link="sigmoid", labels=["a", "b", "c"])
    with pytest.raises(GonioError, match=words):
        ask(head)


def test_everything_on_top_and_equal_rows_have_defined_answers():
    head = Head([[1.0, 0], [0, 1], [1, 0]], link="softmax")
    assert can_top(head, [0, 1, 2]).answer == "yes"
    assert checked(can_rank(head, [0, 2])) == "no"
    assert checked(can_top(head, [0])) == "no"
    assert checked(can_top(head, [0, 2])) == "yes"
    assert checked(can_rank(head, [(0, 1), (2, 1)])) == "yes"
    assert checked(can_rank(head, [(1, 0)], top=True)) == "no"
