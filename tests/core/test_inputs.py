"""Which embeddings can reach a head, and the problem each kind of them poses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, GonioError, Nonnegative, Observed
from gonio.core import inputs as kinds

D = 6
rng = np.random.default_rng(0)
gain, shift = rng.uniform(0.5, 2, D), rng.standard_normal(D)
dead = gain * np.array([1, 0, 1, 1, 0, 1])
ALL = [
    AllInputs(),
    Nonnegative(),
    Box(-1, 1),
    Box(-0.2785, np.inf),
    Box(-np.inf, np.linspace(0, 1, D)),
    AfterRMSNorm(gain),
    AfterRMSNorm(dead),
    AfterLayerNorm(gain, shift),
    AfterLayerNorm(dead, shift),
    AfterLayerNorm(gain),
    Observed(rng.standard_normal((30, D))),
]


@pytest.mark.parametrize("inputs", ALL, ids=str)
def test_samples_belong_to_the_set(inputs):
    F = inputs.sample(200, D, rng)
    assert F.shape == (200, D)
    assert inputs.contains(F).all()


@pytest.mark.parametrize("inputs", ALL, ids=str)
def test_the_reduced_problem_scores_as_the_head_does(inputs):
    W, b = rng.standard_normal((9, D)), rng.standard_normal(9)
    p = inputs.reduce(W, b)
    z = {
        "space": lambda: rng.standard_normal((50, D)),
        "orthant": lambda: rng.random((50, D)),
        "box": lambda: np.clip(rng.standard_normal((50, D)), p.low, p.high),
        "ball": lambda: ball(50, p.V.shape[1], p.radius),
        "points": lambda: p.points,
    }[p.shape]()
    x = p.lift(z)
    assert inputs.contains(x).all()
    assert np.allclose(z @ p.V.T + p.c, x @ W.T + b)


def ball(count, d, radius):
    z = rng.standard_normal((count, d))
    return z / np.linalg.norm(z, axis=1, keepdims=True) * radius * rng.random((count, 1)) ** (1 / d)


@pytest.mark.parametrize("inputs", ALL, ids=str)
def test_reduction_leaves_the_head_as_it_was(inputs):
    W, b = rng.standard_normal((9, D)), rng.standard_normal(9)
    before = W.copy(), b.copy()
    inputs.reduce(W, b)
    assert np.array_equal(W, before[0])
    assert np.array_equal(b, before[1])


def test_a_real_layer_norm_stays_inside():
    x = rng.standard_normal((100, D)) * 10 ** rng.uniform(-4, 4, (100, 1))
    z = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    assert AfterLayerNorm(gain, shift).contains(gain * z + shift).all()
    r = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6)
    assert AfterRMSNorm(gain).contains(gain * r).all()


@pytest.mark.parametrize("widened", [False, True], ids=["float32", "float32 widened to float64"])
@pytest.mark.parametrize(("size", "mean"), [(1.0, 0.0), (300.0, 0.0), (1.0, 30.0), (1e-4, 0.0)])
def test_norms_computed_in_float32_stay_inside(size, mean, widened):
    r, d = np.random.default_rng(1), 768
    x = (mean + size * r.standard_normal((200, d))).astype(np.float32)
    g = (np.exp(0.5 * r.standard_normal(d)) * r.choice([-1, 1], d)).astype(np.float32)
    s = r.standard_normal(d).astype(np.float32)
    root = np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-6))
    centred = x - x.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5))
    some = np.where(np.arange(d) % 7, g, np.float32(0))  # a norm with switched-off coordinates
    for inputs, F in (
        (AfterRMSNorm(g), x / root * g),
        (AfterRMSNorm(some), x / root * some),
        (AfterLayerNorm(g, s), centred / spread * g + s),
        (AfterLayerNorm(some, s), centred / spread * some + s),
    ):
        assert F.dtype == np.float32
        assert inputs.contains(F.astype(np.float64) if widened else F).all()
    if size >= 1:  # the room is for rounding, not for more
        assert not AfterRMSNorm(g).contains(x / root * g * np.float32(1.001)).any()
        assert not AfterLayerNorm(g, s).contains(centred / spread * g * np.float32(1.001) + s).any()


def test_numbers_of_float64_get_no_room_for_float32():
    z = np.ones((1, 4)) * np.array([1 + 1e-7, 1, 1, 1])
    assert not AfterRMSNorm(np.ones(4)).contains(z).any()
    assert AfterRMSNorm(np.ones(4)).contains(z.astype(np.float32)).all()


def test_what_is_outside_is_outside():
    assert not Nonnegative().contains([-1e-9, 1, 1]).any()
    assert not Box(-1, 1).contains([1.1, 0, 0]).any()
    assert not AfterRMSNorm(np.ones(3)).contains([2.0, 0, 0]).any()  # |z| = 2 > sqrt 3
    assert not AfterLayerNorm(np.ones(3)).contains([1.0, 0, 0]).any()  # does not sum to zero
    assert AfterLayerNorm(np.ones(3)).contains([1.0, -1, 0]).all()
    assert not AfterRMSNorm([1, 0, 1]).contains([0, 0.1, 0]).any()  # a coordinate that is switched off
    assert not AllInputs().contains([np.nan, 0]).any()


def test_equal_sets_are_equal_and_hash_alike():
    assert Box(-1, 1) == Box(-1.0, 1.0)
    assert hash(Box(-1, 1)) == hash(Box(-1.0, 1.0))
    assert Box(-1, 1) != Box(-1, 2)
    assert AfterRMSNorm(gain) == AfterRMSNorm(gain.copy())
    assert AfterRMSNorm(gain) != AfterLayerNorm(gain)
    assert len(set(ALL)) == len(ALL)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("all", AllInputs()),
        ("nonnegative", Nonnegative()),
        ("box:-1,1", Box(-1, 1)),
        (" box:-0.2785,inf", Box(-0.2785, np.inf)),
    ],
)
def test_spellings_for_the_command_line(text, wanted):
    assert kinds.parse(text) == wanted


def test_observed_embeddings_are_read_from_a_file(tmp_path):
    F = rng.standard_normal((5, 3))
    np.save(tmp_path / "F.npy", F)
    assert kinds.parse(f"observed:{tmp_path / 'F.npy'}") == Observed(F)
    with pytest.raises(GonioError, match="there is no file"):
        kinds.parse(f"observed:{tmp_path / 'G.npy'}")


@given(st.text(max_size=30))
@settings(max_examples=200, deadline=None)
def test_any_other_spelling_is_refused_in_one_sentence(text):
    try:
        kinds.parse(text)
    except GonioError as e:
        assert str(e).startswith(("inputs: ", "Box: "))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Box(1, -1), "every low must be at most its high"),
        (lambda: Box(np.nan, 1), "NaN"),
        (lambda: Box(np.inf, np.inf), "every low"),
        (lambda: Box([0, 0], [1, 1, 1]), "must be the same"),
        (lambda: Box([[0]], 1), "one entry per dimension"),
        (lambda: AfterRMSNorm([1, np.inf]), "NaN or infinity"),
        (lambda: AfterRMSNorm("gain"), "dtype"),
        (lambda: AfterLayerNorm(np.ones(3), np.ones(4)), "make them alike"),
        (lambda: Observed(np.ones(3)), "two axes"),
        (lambda: Observed([[1, np.nan]]), r"F\[0, 1\] is nan"),
        (lambda: Observed(np.ones((0, 3))), "empty"),
    ],
)
def test_bad_sets_are_refused(make, said):
    with pytest.raises(GonioError, match=said):
        make()
