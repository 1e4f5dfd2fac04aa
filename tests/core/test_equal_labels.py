"""Labels that are one candidate: equal at every input, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import AfterLayerNorm, AfterRMSNorm, Box, Head

whole = st.integers(-2, 2).map(float)


@st.composite
def heads(draw):
    n, d = draw(st.integers(2, 8)), draw(st.integers(1, 3))
    W = np.array(draw(st.lists(st.lists(whole, min_size=d, max_size=d), min_size=n, max_size=n)))
    b = draw(st.none() | st.lists(whole, min_size=n, max_size=n))
    gain = np.array(draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 0.1]), min_size=d, max_size=d)))
    shift = np.array(draw(st.lists(whole, min_size=d, max_size=d)))
    inputs = draw(st.sampled_from([None, Box(-1, 1), AfterRMSNorm(gain), AfterLayerNorm(gain, shift)]))
    return Head(W, b, link="softmax", inputs=inputs)


def naive(head: Head, i: int, j: int) -> bool:
    """Whether two labels score alike at every input, from the definition in fractions."""
    gap = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(head.W[i], head.W[j], strict=True)]
    off = Fraction(0) if head.bias is None else Fraction(float(head.bias[i])) - Fraction(float(head.bias[j]))
    if isinstance(head.inputs, AfterRMSNorm):
        return off == 0 and not any(g * Fraction(float(k)) for g, k in zip(gap, head.inputs.gain, strict=True))
    if isinstance(head.inputs, AfterLayerNorm):
        seen = [g * Fraction(float(k)) for g, k in zip(gap, head.inputs.gain, strict=True)]
        off += sum(g * Fraction(float(s)) for g, s in zip(gap, head.inputs.shift, strict=True))
        return off == 0 and len(set(seen)) == 1
    return off == 0 and not any(gap)


@given(heads())
@settings(max_examples=400, deadline=None)
def test_the_groups_are_those_of_the_definition(head):
    n = head.shape[0]
    for i in range(n):
        assert head.equals(i).tolist() == [j for j in range(n) if j != i and naive(head, i, j)]


def test_rows_that_round_alike_after_a_norm_are_not_equal():
    gain = np.array([1.0, 1e-17])
    W = np.array([[1.0, 1.0], [1.0, 1.0 + 2**-52], [0.0, 3.0]])
    assert not Head(W, link="softmax", inputs=AfterRMSNorm(gain)).twins
    assert not Head(W, link="softmax", inputs=AfterLayerNorm(gain)).twins
    assert len(Head(W, link="softmax", inputs=AfterRMSNorm(np.array([1.0, 0.0]))).twins) == 1


def test_two_thousand_zero_rows_are_one_group():
    W = np.vstack([np.random.default_rng(0).standard_normal((50, 8)), np.zeros((2000, 8))])
    head = Head(W, link="softmax", inputs=AfterLayerNorm(np.ones(8)))
    assert [len(g) for g in head.twins] == [2000]
