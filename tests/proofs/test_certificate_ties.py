"""Certificates of ties, and of all that observed embeddings can do."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gonio import AllInputs, Box, Head, Nonnegative, Observed
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import CertificateError, NeverTies, NeverWins, Ties, Wins
from tests.ask.judge import FIG2, entries, equals, exact_margin, heads, sides

# -- observed embeddings -----------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(heads(("all",)), st.data())
def test_observed_embeddings_are_looked_at_one_by_one(head, data):
    n, d = head.shape
    F = np.array(data.draw(st.lists(st.lists(entries, min_size=d, max_size=d), min_size=1, max_size=4)))
    head = head.replace(inputs=Observed(F))
    for i in range(n):
        margins = [exact_margin(head, i, [Fraction(v) for v in x], equals(head, i)) for x in F]
        if max(margins) > 0:
            with pytest.raises(CertificateError):
                NeverWins(head.digest, i, [], []).verify(head)
        else:
            value = NeverWins(head.digest, i, [], []).verify(head)
            assert max(margins) <= value <= 0
    a, b = 0, 1
    tied = [
        exact_margin(head, a, [Fraction(v) for v in x], (b,)) > 0 and exact_margin(head, b, [Fraction(v) for v in x], (a,)) > 0
        and exact_margin(Head(head.W[[a, b]], None if head.bias is None else head.bias[[a, b]], link="dot"), 0, [Fraction(v) for v in x]) == 0
        for x in F
    ] if n > 2 else []  # fmt: skip
    if n > 2 and any(tied):
        with pytest.raises(CertificateError, match="share the top"):
            NeverTies(head.digest, a, b, [], [], []).verify(head)
        x = F[tied.index(True)]
        assert Ties(head.digest, a, b, x, x).verify(head) > 0
    elif n > 2:
        assert NeverTies(head.digest, a, b, [], [], []).verify(head) == 0.0


def test_an_embedding_that_was_not_observed_is_refused():
    head = Head(np.eye(3), link="softmax", inputs=Observed([[1.0, 0, 0]]))
    assert Wins(head.digest, 0, [1.0, 0, 0]).verify(head) == pytest.approx(1)
    with pytest.raises(CertificateError, match="not one of the head's inputs"):
        Wins(head.digest, 0, [1.0, 0.5, 0]).verify(head)
    both = Head(np.eye(3), link="softmax", inputs=Observed([[1.0, 0.9, 0], [0.9, 1.0, 0]]))
    with pytest.raises(CertificateError, match="not convex"):
        Ties(both.digest, 0, 1, [1.0, 0.9, 0], [0.9, 1.0, 0]).verify(both)


# -- ties --------------------------------------------------------------------------------------------------------------


def test_the_figure_of_the_paper_ties_where_it_can_and_nowhere_else():
    head = Head(FIG2, link="softmax")
    assert Ties(head.digest, 0, 1, [1.0, -0.01], [1.0, 0.01]).verify(head) > 0
    # Labels 2 and 4 (cosine 0.8) cannot: label 3 wins between them.  3 = s (2) + (1-s) (4) + something outwards.
    with pytest.raises(CertificateError, match="strictly above all others"):
        Ties(head.digest, 2, 4, [-1.0, 0.01], [-1.0, -0.01]).verify(head)
    # s g_2 + (1-s) g_4 = sum of weights on 3 and on 0, 1: the mid-point (-0.9, 0) lies between 3 and the right side.
    share = 0.1 / 2.4
    proof = NeverTies(head.digest, 2, 4, [3, 0, 1], [1 - share, share / 2, share / 2], [0.5, 0.5])
    assert proof.verify(head) == 0.0
    with pytest.raises(CertificateError):
        NeverTies(head.digest, 0, 1, [2, 3, 4], [0.3, 0.4, 0.3], [0.5, 0.5]).verify(head)


def tie_lp(V, c, a, b, low, high):
    """Float weights on rivals and on the pair, from the LP dual: max t with both scores equal and t above all others."""
    n, d = V.shape
    js = [j for j in range(n) if j not in (a, b)]
    A = np.column_stack([V[js] - V[a], np.ones(len(js))])
    found = linprog(
        np.r_[np.zeros(d), -1], A_ub=A, b_ub=c[a] - c[js], A_eq=[np.r_[V[a] - V[b], 0]], b_eq=[c[b] - c[a]],
        bounds=[*zip([None if np.isinf(v) else v for v in low], [None if np.isinf(v) else v for v in high], strict=True), (None, 1)],
    )  # fmt: skip
    return found, js


@settings(max_examples=80, deadline=None)
@given(
    st.integers(3, 9),
    st.integers(2, 4),
    st.integers(0, 2**32),
    st.sampled_from(["all", "nonnegative", "box"]),
    st.booleans(),
)
def test_pairs_are_proven_to_tie_or_not_to(n, d, seed, kind, biased):
    r = np.random.default_rng(seed)
    inputs = {"all": AllInputs(), "nonnegative": Nonnegative(), "box": Box(-1, 1)}[kind]
    head = Head(r.standard_normal((n, d)), r.standard_normal(n) if biased else None, link="softmax", inputs=inputs)
    low, high = sides(inputs, d)
    c = np.zeros(n) if head.bias is None else head.bias
    found, js = tie_lp(head.W, c, 0, 1, low, high)
    if found.status == 2:  # the two are never equal
        assert NeverTies(head.digest, 0, 1, [], [], []).verify(head) < 0
        return
    assert found.status == 0
    if -found.fun > 1e-6:
        x = found.x[:d]
        u = head.W[0] - head.W[1]
        step = 1e-9 * max(1, np.abs(x).max()) / np.abs(u).max()
        span = np.clip(x + step * u, low, high), np.clip(x - step * u, low, high)
        try:
            assert Ties(head.digest, 0, 1, *span).verify(head) > 0
        except CertificateError:
            assert kind != "all"  # at the border a step cannot always be taken in both ways
    elif -found.fun < -1e-6 or kind != "box":
        lam = -found.ineqlin.marginals
        total = lam.sum()
        mu = found.eqlin.marginals[0] / total
        keep = lam / total > 1e-12
        for p in (mu, -mu):
            try:
                proof = NeverTies(head.digest, 0, 1, np.array(js)[keep], (lam / total)[keep], [1 - p, p])
                assert proof.verify(head) <= 0
                return
            except CertificateError:
                continue
        raise AssertionError("neither sign of the pair's weight was proven")


def test_rows_alike_with_different_biases_never_tie():
    head = Head([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]], [0.0, 0.1, 5.0], link="softmax")
    assert NeverTies(head.digest, 0, 1, [], [], []).verify(head) == pytest.approx(-0.1, abs=1e-9)
    with pytest.raises(CertificateError, match="always the higher"):
        NeverTies(head.digest, 0, 2, [], [], []).verify(head)


def test_twins_tie_where_they_win():
    head = Head([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], link="softmax")
    assert Ties(head.digest, 0, 1, [1.0, 0.0], [1.0, 0.0]).verify(head) == pytest.approx(1)


def test_among_many_a_tie_is_judged_by_its_own_two_embeddings():
    """Label 2 is above both at the second one; a loser that comes after changes nothing."""
    head = Head(np.array([[1.0, 0], [0, 1], [3, -3]]), link="softmax")
    d, good, beaten, loser = head.digest, [1.0, 2.0], [2.0, 1.0], Wins(head.digest, 0, [-1.0, 0.0])
    fine = Ties(d, 1, 0, good, [1.0, 1.0])
    cases = [fine, loser, Ties(d, 0, 1, [1.0, 1.0], [1.0, 1.5]), Ties(d, 1, 0, good, beaten), loser]
    seen = verify_all(head, cases)
    assert list(seen.refused) == [1, 3, 4]
    assert seen.bounds[[0, 2]] == pytest.approx([c.verify(head) for c in (cases[0], cases[2])])
    nan = [np.nan, 1.0]
    assert list(verify_all(head, [Ties(d, 1, 0, nan, [1.0, 1.0]), fine, Ties(d, 1, 0, good, nan)]).refused) == [0, 2]
