"""Which embeddings are of the inputs after a norm: against exact arithmetic, up to the last float of the edge."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Observed
from gonio.proofs.margins import OFF_CENTRE, Places
from tests.proofs.rationals import exact

GAIN = np.array([0.5, -2.0, 1.25, 3.0, -0.7])
ONE_OFF, TWO_OFF = GAIN * [1, 0, 1, 1, 1], GAIN * [1, 0, 1, 0, 1]
SHIFT = np.array([0.5, 0.0, -1.5, 2.0, 0.25])
NORMS = [
    *(AfterRMSNorm(g) for g in (GAIN, ONE_OFF, TWO_OFF)),
    *(AfterLayerNorm(g, s) for g in (GAIN, ONE_OFF, TWO_OFF) for s in (0.0, SHIFT)),
]


def is_inside(inputs, x):
    """Whether x, or after a LayerNorm the exact point that it stands for, is an embedding of the norm."""
    gain, shift = inputs.gain_and_shift(len(x))
    dead = int((gain == 0).sum())
    if (x != shift)[gain == 0].any():
        return False
    z = [(a - s) / g for a, s, g in zip(exact(x), exact(shift), exact(gain), strict=True) if g]
    square, total = sum(v * v for v in z), sum(z)
    if inputs.centred:
        square += total * total / dead if dead else -total * total / Fraction(len(x))
    return square < len(x)


def near_the_edge(inputs, rng, count):
    """Embeddings within a few roundings of the edge, and some well inside and outside."""
    gain, shift = inputs.gain_and_shift(5)
    live = gain != 0
    dead = int((~live).sum())
    for k in range(count):
        z = rng.standard_normal(5) * live
        if inputs.centred and not dead:
            z -= z.mean()
        size = (z * z).sum() + (z.sum() ** 2 / dead if inputs.centred and dead else 0)
        z *= np.sqrt(5 / size) * (1 + 2.0**-53 * rng.integers(-6, 6)) * (0.5, 0.99, 1, 1, 1, 1.01, 2)[k % 7]
        yield gain * z + shift


@pytest.mark.parametrize("inputs", NORMS, ids=str)
def test_embeddings_near_the_edge_of_the_ball_are_told_apart_exactly(inputs):
    rng = np.random.default_rng(7)
    x = np.array(list(near_the_edge(inputs, rng, 350)))
    outside = Places(inputs, x).outside()
    true = [i for i, one in enumerate(x) if not is_inside(inputs, one)]
    assert sorted(outside) == true
    assert 120 < len(true) < 260
    assert all("norm" in why for why in outside.values())


@pytest.mark.parametrize(
    ("inputs", "z"),
    [
        (AfterRMSNorm(np.ones(4)), [1, 1, -1, 1]),
        (AfterRMSNorm([2, 0, 1, 1]), [2, 0, 0, 0]),
        (AfterLayerNorm(np.ones(4)), [1, -1, 1, -1]),
        (AfterLayerNorm(np.full(4, 2.0), 1.0), [1, -1, 1, -1]),
        (AfterLayerNorm([1, 1, 1, 0]), [1, 1, -1, 0]),
        (AfterLayerNorm([1, 1, 0, 0]), [1, 1, 0, 0]),
        (AfterLayerNorm([0, 1, 2, 0], 3.0), [0, -1, -1, 0]),
    ],
)
def test_the_edge_itself_is_outside_and_the_next_float_is_inside(inputs, z):
    gain, shift = inputs.gain_and_shift(4)
    x = gain * np.array(z, float) + shift
    k = int(np.argmax(np.abs(gain * z)))
    nearer = x.copy()
    nearer[k] = np.nextafter(x[k], shift[k])
    assert not is_inside(inputs, x)
    assert is_inside(inputs, nearer)
    assert list(Places(inputs, np.array([nearer, x, shift])).outside()) == [1]


@pytest.mark.parametrize("inputs", NORMS, ids=str)
def test_what_is_not_finite_or_moves_a_gain_of_zero_is_outside(inputs):
    gain, shift = inputs.gain_and_shift(5)
    x = np.tile(shift, (5, 1))
    x[1, 2], x[3, 0] = np.nan, -np.inf
    if (gain == 0).any():
        x[4, 1] = np.nextafter(shift[1], 9)
    outside = Places(inputs, x).outside()
    assert sorted(outside) == ([1, 3, 4] if (gain == 0).any() else [1, 3])
    assert all("NaN" in outside[i] for i in (1, 3))
    assert "gain is 0" in outside.get(4, "gain is 0")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("shift", [0.0, SHIFT, -SHIFT])
def test_how_far_from_sum_zero_counts_as_rounding(sign, shift):
    inputs = AfterLayerNorm(GAIN, shift)
    gain, shift = inputs.gain_and_shift(5)
    z = np.array([0.5, -0.25, 0.5, -0.5, -0.25])
    x = gain * z + shift
    terms = ((np.abs(x) + np.abs(shift)) / np.abs(gain)).sum()
    assert OFF_CENTRE == 1e-6
    off = sign * OFF_CENTRE * terms * np.array([0.9, 1.1])
    several = np.array([x, *(gain * (z + o / 5) + shift for o in off)])
    assert list(Places(inputs, several).outside().items()) == [(2, "(x - shift) / gain does not sum to zero")]


def test_places_of_other_inputs_are_looked_up():
    x = np.array([[1.0, 0.0], [np.nan, 0], [2.0, 0.0], [-1.0, -0.0], [0.0, np.inf]])
    assert sorted(Places(AllInputs(), x).outside()) == [1, 4]
    assert sorted(Places(Box(-1, 1), x).outside()) == [1, 2, 4]
    assert sorted(Places(Box(-1, 1), x[[1, 4]]).outside()) == [0, 1]
    assert sorted(Places(Observed([[1.0, -0.0], [-1.0, 0.0]]), x).outside()) == [1, 2, 4]
    assert "NaN" in Places(Box(-1, 1), x).outside()[1]
