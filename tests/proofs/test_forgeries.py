"""Certificates are forged by the thousand: none that is false is accepted, and some of every kind are."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

import gonio
from gonio.ask.decide import Question, decide
from gonio.core.errors import GonioError
from gonio.proofs import CertificateError
from gonio.proofs.kinds import KINDS
from tests.proofs.forging import forge, forged, gap_at, head_of, inside, trials, true_of
from tests.proofs.rationals import meant, score
from tests.proofs.second_verifier import refused

PROVING = set(KINDS) - {"open"}  # an Open proves nothing, so it is always refused


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_false_is_accepted_and_something_of_every_kind_is(seed):
    tally = forge(seed, 2_000)
    assert tally.false == []
    assert set(tally.tried) == set(tally.accepted) == PROVING
    assert sum(tally.tried.values()) >= 2000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_of_a_million_forgeries_nothing_false_is_accepted_by_either_verifier(seed, tmp_path, monkeypatch):
    """50,000 forgeries a seed, 1,000,000 in all, are shown to `verify`; those about every 5th head, some 200,000 in
    all, to tools/check_proof.py as well. Of what either accepts every one is judged, and no other."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the files are read back at once: they need not reach the disk
    heads, lies, shown, taken = 0, [], 0, 0

    def second(head, certificates):
        nonlocal heads, shown, taken
        heads += 1
        if heads % 5:
            return
        tried = trials(np.random.default_rng(heads), head)
        for c, why in zip(certificates, refused(head, certificates, tmp_path), strict=True):
            shown += 1
            if why is None:
                taken += 1
                if not holds(head, c, tried):
                    lies.append((head.W.tolist(), head.bias, head.inputs.to_dict(), c.to_dict()))

    tally = forge(seed, at_least=50_000, each=40, check=second)
    assert tally.false == []
    assert lies == []
    assert set(tally.accepted) == PROVING
    assert sum(tally.tried.values()) >= 50_000
    assert shown > 9_000
    assert taken > 500


def holds(head, c, tried):
    """Whether a certificate is true, whatever the margin: tools/check_proof.py claims none."""
    if c.kind in ("never wins", "never ties", "impossible"):
        return true_of(head, c, 0.0, tried)
    places = [meant(head.inputs, v.astype(float)) for v in ((c.x, c.y) if c.kind == "ties" else (c.x,))]
    gaps = [gap_at(head, c, x) for x in places]
    apart = [score(head, c.a, x) - score(head, c.b, x) for x in places] if c.kind == "ties" else [0, 0]
    there = all(inside(head.inputs, x) is not False for x in places)
    return there and all(g is None or g > 0 for g in gaps) and apart[0] >= 0 >= apart[-1]


def test_the_judge_knows_a_lie():
    """What the driver rests on: with a larger margin than it has, or about the loser, a true certificate is false."""
    rng, found = np.random.default_rng(5), 0
    while found < 20:
        head = head_of(rng)
        c = forged(rng, head)
        if c.kind != "wins" or head.shape[0] < 2 or len(c.equals) or not holds(head, c, []):
            continue
        gap = gap_at(head, c, meant(head.inputs, c.x.astype(float)))
        if not 1e-300 < gap < 1e300:
            continue
        found += 1
        assert true_of(head, c, np.nextafter(float(gap), 0), [])
        assert not true_of(head, c, np.nextafter(float(gap), np.inf), [])
        assert not true_of(head, replace(c, label=(c.label + 1) % head.shape[0]), 5e-324, [])


def found_otherwise(head, c):
    """A proof that what a certificate says never happens does happen, where the search finds one."""
    try:
        if c.kind == "never wins":
            other = gonio.can_win(head, c.label).certificate
        elif c.kind == "never ties":
            other = gonio.can_tie(head, c.a, c.b).certificate
        else:
            top = c.top if len(c.top) < head.shape[0] else c.top[:0]  # above all others: there are none
            other = decide(head, head.inputs.reduce(head.W, head.bias), Question(c.above, c.below, top))
        if other.kind in ("wins", "ties", "possible"):
            other.verify(head)
            return other
    except GonioError:  # too large to be posed, or no proof after all
        pass
    return None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [200, 201])
def test_nothing_that_is_said_never_to_happen_is_found_to_happen(seed):
    """The judge tries a few embeddings; here the search looks for one that refutes what `verify` has accepted."""
    seen, against = 0, []

    def look(head, certificates):
        nonlocal seen
        for c in certificates:
            if c.kind in ("never wins", "never ties", "impossible"):
                try:
                    c.verify(head)
                except CertificateError:
                    continue
                seen += 1
                other = found_otherwise(head, c)
                if other is not None:
                    against.append((head.W.tolist(), head.bias, head.inputs.to_dict(), c.to_dict(), other.to_dict()))

    forge(seed, at_least=10_000, check=look)
    assert against == []
    assert seen > 600
