"""Heads and changes for property tests: ordinary ones, and those with ties, zero rows, rank one, one label."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Nonnegative

small = st.integers(-4, 4).map(float) | st.floats(-4, 4, width=32).filter(lambda x: x == 0 or abs(x) > 1e-3)


FEW, NARROW = st.integers(2, 7), st.integers(1, 5)


@st.composite
def tables(draw, labels=FEW, dim=NARROW):
    """Rows with everything that goes wrong: equal rows, zero rows, multiples, low rank."""
    n, d = draw(labels), draw(dim)
    W = draw(hnp.arrays(np.float64, (n, d), elements=small))
    spoil = draw(st.sampled_from(["none", "none", "twin", "zero", "multiple", "rank one", "offset"]))
    if spoil == "twin":
        W[-1] = W[0]
    elif spoil == "zero":
        W[0] = 0
    elif spoil == "multiple":
        W[-1] = -2 * W[0]
    elif spoil == "rank one":
        W = np.outer(W[:, 0], W[0])
    elif spoil == "offset":
        W += 10
    return W


@st.composite
def heads(draw, links=("softmax", "sigmoid", "dot", "cosine"), labels=FEW, dim=NARROW, inputs=False):
    W = draw(tables(labels, dim))
    n, d = W.shape
    link = draw(st.sampled_from(links))
    bias = draw(st.none() | hnp.arrays(np.float64, n, elements=small)) if link != "cosine" else None
    gains = hnp.arrays(np.float64, d, elements=st.floats(0.25, 4))
    shifts = hnp.arrays(np.float64, d, elements=small)
    fed = st.just(AllInputs())
    if inputs:
        fed = st.one_of(
            fed,
            st.just(Nonnegative()),
            st.just(Box(-1, 1)),
            gains.map(AfterRMSNorm),
            st.builds(AfterLayerNorm, gains, shifts),
        )
    return Head(W, bias, link=link, inputs=draw(fed))
