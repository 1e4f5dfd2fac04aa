"""The cosine dial: the papers' example, every link, and the bounds it gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import AfterLayerNorm, AfterRMSNorm, Box, GonioError, Head, dial
from gonio.gauge import reachable
from gonio.gauge.reach import cosine
from tests import real
from tests.strategies import heads

FIG1 = np.array([[1, 0.5], [0.5, 1], [-1, 0.4], [-0.8, -0.8], [0.9, -1.2]])
F = np.random.default_rng(0).standard_normal((1000, 2))
head = Head(FIG1, link="softmax")


@pytest.mark.theorem("NG26.T3.4")
def test_figure_1_of_the_paper():
    assert cosine(FIG1[0], FIG1[1]) == pytest.approx(0.8)
    for c, v, rows in (
        (-1, (-0.75, -0.75), [(0.25, -0.25), (-0.25, 0.25), (-1.75, -0.35), (-1.55, -1.55), (0.15, -1.95)]),
        (1, (-1.25, -0.25), [(-0.25, 0.25), (-0.75, 0.75), (-2.25, 0.15), (-2.05, -1.05), (-0.35, -1.45)]),
    ):
        result = dial(head, 0, 1, cosine=c, way="plain", embeddings=F)
        assert np.allclose(result.translation, v)
        assert np.allclose(result.head.W, rows)
        assert result.cosine == pytest.approx(c)
        assert result.max_probability_difference < 1e-15
        assert result.bound < 1e-15
        wins = np.bincount(result.head.logits(F).argmax(axis=1), minlength=5)
        assert wins.tolist() == [134, 171, 219, 194, 282]


@pytest.mark.theorem("NG26.T3.4")
@given(heads(links=("softmax",), inputs=True), st.floats(-1, 1), st.sampled_from(["smallest", "plain"]))
@settings(max_examples=200, deadline=None)
def test_any_pair_gets_any_cosine_and_every_probability_stays(h, c, way):
    a, b = h[0].astype(float), h[1].astype(float)
    if np.array_equal(a, b) or h.shape[1] == 1:
        if (
            cosine(a, b) != c
            and not (c in (-1, 1) and not np.array_equal(a, b))
            and not (np.isnan(cosine(a, b)) and c == 1)
        ):
            with pytest.raises(GonioError, match="cannot have cosine"):
                dial(h, 0, 1, cosine=c)
        return
    result = dial(h, 0, 1, cosine=c, way=way)
    assert abs(result.cosine - c) < 1e-6 or abs(np.arccos(np.clip(result.cosine, -1, 1)) - np.arccos(c)) < 1e-5
    size = np.abs(result.head.logits(result.points)).max()
    assert result.max_probability_difference <= result.bound + 64 * 2.0**-52 * (1 + size)  # evaluating rounds as well
    assert result.bound < (1e-9 if c < 1 - 1e-6 else 1e-3)  # towards +1 the papers' own translation grows without end


def test_the_smallest_translation_is_the_default_and_no_longer_than_the_plain_one():
    rng = np.random.default_rng(1)
    h = Head(rng.standard_normal((9, 5)) + 3, link="softmax")
    for c in (-1, -0.3, 0.2, 0.9, 1):
        small, plain = (dial(h, 2, 7, cosine=c, way=w) for w in ("smallest", "plain"))
        assert np.linalg.norm(small.translation) <= np.linalg.norm(plain.translation) + 0.02 * np.linalg.norm(
            h[2] - h[7]
        )


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (Box(-1, 1), "the head's inputs (box"),
        (AfterRMSNorm(np.full(2, 3.0)), "after RMSNorm"),
        (AfterLayerNorm(np.full(2, 3.0), np.ones(2)), "after LayerNorm"),
        (None, "all |x| <= 1.414"),
    ],
)
def test_the_bound_is_over_the_heads_own_inputs(inputs, words):
    result = dial(head.replace(inputs=inputs), 0, 1, cosine=0)
    assert words in result.over
    assert 0 < result.bound < 1e-13
    wide = dial(head.replace(inputs=inputs), 0, 1, cosine=0, radius=1e6)
    assert wide.over == "all |x| <= 1e+06"
    assert wide.bound > 1000 * result.bound


@pytest.mark.theorem("GONIO.bound")
def test_no_perturbation_of_logits_by_eps_moves_a_probability_by_more_than_tanh_of_half_of_it():
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(3000):
        eps = 10 ** rng.uniform(-3, 1)
        z = rng.standard_normal(rng.integers(2, 6)) * 3
        p, q = (np.exp(y) / np.exp(y).sum() for y in (z, z + eps * rng.choice([-1.0, 1.0, 0.3], len(z))))
        share = np.abs(p - q).max() / np.tanh(eps / 2)
        assert share <= 1 + 1e-12
        worst = max(worst, share)
    assert worst > 0.9  # and the bound is nearly met: p = 1/2 against one rival


def test_links_without_translation_are_dialled_by_a_linear_map():
    rng = np.random.default_rng(2)
    W, b, G = rng.standard_normal((6, 4)), rng.standard_normal(6), rng.standard_normal((30, 4))
    for h in (Head(W, b, link="sigmoid"), Head(W, link="dot"), Head(W, link="softmax", softcap=5.0)):
        result = dial(h, 0, 1, cosine=-0.9, embeddings=G)
        assert result.translation is None
        assert result.cosine == pytest.approx(-0.9)
        assert result.max_probability_difference < 1e-9
        assert result.bound is None  # what rounding does to a map and its inverse is measured, not proven
        assert "measured only" in repr(result)
        with pytest.raises(GonioError, match="cannot have cosine -1 in any equivalent head that is known"):
            dial(h, 0, 1, cosine=-1)
    for h in (Head(W, link="cosine"), Head(W, link="dot", trained="factors")):
        with pytest.raises(GonioError, match="leave every cosine as it is"):
            dial(h, 0, 1, cosine=0.123)


ROWS = {
    "generic": lambda W, gain: W,
    "equal": lambda W, gain: np.vstack([W[0], W[0], W[2:]]),
    "zero": lambda W, gain: np.vstack([W[0], 0 * W[0], W[2:]]),
    "parallel": lambda W, gain: np.vstack([W[0], 2 * W[0], W[2:]]),
    "opposite": lambda W, gain: np.vstack([W[0], -2 * W[0], W[2:]]),
    "multiples of 1/gain": lambda W, gain: np.vstack([1 / gain, -2 / gain, W[2:]]),
    "apart along 1/gain": lambda W, gain: np.vstack([np.round(W[0] * 4), np.round(W[0] * 4) + 3 / gain, W[2:]]),
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("link", ["softmax", "sigmoid", "dot"])
@pytest.mark.parametrize("softcap", [None, 5.0])
def test_after_a_layer_norm_what_can_be_reached_is_what_dial_accepts(link, rows, softcap):
    gain = np.array([1, 2, 0.5, 4.0])
    W = ROWS[rows](np.random.default_rng(5).standard_normal((6, 4)), gain)
    h = Head(W, link=link, inputs=AfterLayerNorm(gain, np.array([0, 1.0, 0, 0])), softcap=softcap)
    reach = reachable(h, 0, 1)["all"]
    for target in (-1, -0.5, 0, 0.7, 1):
        if target not in reach:
            with pytest.raises(GonioError, match="cannot have cosine"):
                dial(h, 0, 1, cosine=target)
            continue
        moved = dial(h, 0, 1, cosine=target)
        assert moved.cosine == pytest.approx(target, abs=1e-6)
        assert moved.max_probability_difference < 1e-9


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: dial(head, 0, 0, cosine=0), "is one label"),
        (lambda: dial(head, 0, 1, cosine=1.01), "from -1 to 1"),
        (lambda: dial(head, 0, 1, cosine=float("nan")), "from -1 to 1"),
        (lambda: dial(head, 0, 1, cosine="0"), "from -1 to 1"),
        (lambda: dial(head, 0, "dgo", cosine=0), "no label is called"),
        (lambda: dial(head, 0, 1, cosine=0, way="fast"), "choose 'smallest' or 'plain'"),
        (lambda: dial(head, 0, 1, cosine=0, radius=-1), "positive"),
        (lambda: dial(head, 0, 1, cosine=0, embeddings=np.ones((3, 5))), r"shape \(3, 5\)"),
        (lambda: dial(Head([[1.0], [2.0]], link="softmax"), 0, 1, cosine=0.5), "in one dimension"),
        (lambda: dial(Head([[1.0, 1], [1, 1]], link="softmax"), 0, 1, cosine=-1), "the two rows are equal"),
    ],
)
def test_bad_questions_get_one_sentence(ask, said):
    with pytest.raises(GonioError, match=said):
        ask()


def test_rows_that_differ_by_rounding_are_not_turned_into_nonsense():
    a = np.array([0.3, 0.7, 0.1])
    close = Head([a, a * (1 + 2.0**-52), [1, 0, 0]], link="softmax")
    with pytest.raises(GonioError, match="too small to be turned"):
        dial(close, 0, 1, cosine=-1)


def test_a_real_head_is_dialled_in_place():
    import gonio.papers.g2pm as g2pm

    h = g2pm.head(real.wheel("g2pM-0.1.2.5"))
    result = dial(h, "hao3", "hao4", cosine=-1)
    assert result.cosine == pytest.approx(-1)
    assert result.max_probability_difference < 1e-14
    assert "no probability differs" in repr(result)
    assert result.to_dict()["labels"] == ["hao3", "hao4"]
