"""Labels of a sigmoid head that can never be on, or never off: the closed form against corners, samples and fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, GonioError, Head, Nonnegative, Observed
from gonio.ask.switching_on import can_be_on

whole = st.integers(-3, 3).map(float)


@st.composite
def small_heads(draw):
    n, d = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    W = np.array(draw(st.lists(st.lists(whole, min_size=d, max_size=d), min_size=n, max_size=n)))
    b = draw(st.none() | st.lists(st.integers(-9, 9).map(float), min_size=n, max_size=n))
    inputs = draw(st.sampled_from(["all", "nonnegative", "box", "half", "rms", "dead", "layer", "observed"]))
    shift = np.arange(d) - 1.0
    kinds = {
        "all": AllInputs(), "nonnegative": Nonnegative(), "box": Box(-1, 2), "half": Box(-1, np.inf),
        "rms": AfterRMSNorm(np.arange(d) + 1.0), "dead": AfterRMSNorm(np.r_[0.0, np.ones(d - 1)]),
        "layer": AfterLayerNorm(np.arange(d) + 1.0, shift), "observed": Observed(np.arange(2.0 * d).reshape(2, d) - d),
    }  # fmt: skip
    return Head(W, b, link="sigmoid", inputs=kinds[inputs])


def ends(head: Head, i: int) -> tuple[float, float, bool]:
    """(smallest, largest, reached) of a label's logit, from the definition."""
    w, b = head.W[i], 0.0 if head.bias is None else float(head.bias[i])
    inputs, d = head.inputs, head.shape[1]
    if isinstance(inputs, AllInputs):
        return (-np.inf, np.inf, False) if w.any() else (b, b, True)
    if isinstance(inputs, Nonnegative):
        return (-np.inf if (w < 0).any() else b), (np.inf if (w > 0).any() else b), True
    if isinstance(inputs, Box):
        corners = itertools.product(*[(float(inputs.low), min(float(inputs.high), 1e9))] * d)
        z = [float(np.dot(w, c)) + b for c in corners]
        return min(z), max(z), True
    if isinstance(inputs, Observed):
        z = inputs.F @ w + b
        return float(z.min()), float(z.max()), True
    v, c = w * inputs.gain, b
    if isinstance(inputs, AfterLayerNorm):
        v, c = v - v.mean(), b + w @ inputs.shift
    r = float(np.sqrt(d) * np.linalg.norm(v))
    return c - r, c + r, not r


@given(small_heads())
@settings(max_examples=300, deadline=None)
def test_the_closed_form_is_the_definition(head):
    found = can_be_on(head)
    for i in range(head.shape[0]):
        low, high, _ = ends(head, i)
        if abs(high) > 1e-9:
            assert (i in found.never_on) == (high < 0)
        if abs(low) > 1e-9:
            assert (i in found.never_off) == (low > 0)
        for mine, true in ((found.low[i], low), (found.high[i], high)):
            assert np.isinf(mine) or mine == pytest.approx(true, abs=1e-9)


def test_a_logit_that_is_0_at_most_is_never_on_exactly():
    exact = Head([[1.0, -2.0], [1.0, -2.0]], [-3.0, -3 + 2**-50], link="sigmoid", inputs=Box(-1, 1))
    found = can_be_on(exact)
    assert found.never_on.tolist() == [0]  # 1 + 2 - 3 = 0 at the corner: not above 0
    near = 5 * 2**0.5
    below, above = sorted((near, np.nextafter(near, 8 if Fraction(near) ** 2 < 50 else 7)))
    assert Fraction(float(below)) ** 2 < 50 < Fraction(float(above)) ** 2  # two floats with 5 sqrt(2) between them
    ball = Head([[3.0, 4.0]] * 3, [-below, -above, -7.0], link="sigmoid", inputs=AfterRMSNorm(np.ones(2)))
    assert can_be_on(ball).never_on.tolist() == [1]


def test_other_links_are_refused_in_one_sentence():
    with pytest.raises(GonioError, match="ask can_win instead"):
        can_be_on(Head(np.eye(2), link="softmax"))
    with pytest.raises(GonioError, match="--link"):
        can_be_on(Head(np.eye(2), link="unknown"))
    assert len(repr(can_be_on(Head(np.eye(2), link="sigmoid"))).splitlines()) == 2
    assert can_be_on(Head(np.eye(2), link="sigmoid")).to_dict()["high"] == [None, None]
