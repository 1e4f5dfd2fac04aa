"""Certificates are forged by the thousand: none that is false is accepted, and some of every kind are."""

from __future__ import annotations

import numpy as np
import pytest

from gonio.proofs.kinds import KINDS
from tests.proofs.forging import forge, inside, trials, true_of
from tests.proofs.second_verifier import refused

PROVING = set(KINDS) - {"open"}  # an Open proves nothing, so it is always refused


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_false_is_accepted_and_something_of_every_kind_is(seed):
    tally = forge(seed, 120)
    assert tally.false == []
    assert set(tally.tried) == set(tally.accepted) == PROVING
    assert sum(tally.tried.values()) > 2500


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_of_ten_thousand_forgeries_nothing_false_is_accepted_by_either_verifier(seed, tmp_path):
    """400 heads a seed, 100,000 forgeries in all; every 50th head is shown to tools/check_proof.py as well."""
    heads, lies, taken = 0, [], 0

    def second(head, certificates):
        nonlocal heads, taken
        heads += 1
        if heads % 50:
            return
        tried = trials(np.random.default_rng(heads), head)
        for c, why in zip(certificates, refused(head, certificates, tmp_path), strict=True):
            if why is not None:
                continue
            taken += 1
            claimed = 0.0 if c.kind in ("never wins", "never ties", "impossible") else 5e-324
            if not true_of(head, c, claimed, tried):
                lies.append((head, c))

    tally = forge(seed, 400, check=second)
    assert tally.false == []
    assert lies == []
    assert set(tally.accepted) == PROVING
    assert heads > 300
    assert taken > 5


def test_the_judge_knows_a_lie():
    """What the driver rests on: a true certificate about one label, told of another, is judged false."""
    rng = np.random.default_rng(5)
    from tests.proofs.forging import forged, head_of

    found = 0
    while found < 3:
        head = head_of(rng)
        c = forged(rng, head)
        if c.kind != "wins" or head.shape[0] < 2 or not inside(head.inputs, [*map(_fraction, c.x)]):
            continue
        found += not true_of(head, c, np.inf, [])  # no label leads by more than every number


def _fraction(value):
    from fractions import Fraction

    return Fraction(float(value))
