"""tools/check_proof.py: without gonio and in whole numbers it comes to the same verdicts, on proofs and on forgeries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gonio
from gonio import AfterLayerNorm, AfterRMSNorm, Box, Head, Nonnegative, Observed
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import NeverTies, NeverWins, Ties, Undecided, Wins
from gonio.proofs.comparisons import Impossible, Possible
from gonio.proofs.kinds import KINDS
from tests.proofs.second_verifier import CASES, D, head_of, proved, refused


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}{', bias' if c[1] else ''}")
def test_both_verifiers_accept_what_gonio_proves(case, tmp_path):
    head, proofs = proved(*case)
    assert {c.kind for c in proofs} == set(KINDS) - {"undecided", "open"}
    assert not verify_all(head, proofs).refused
    assert refused(head, proofs, tmp_path) == [None] * len(proofs)


def outside(head, x):
    """Embeddings next to x that are not among the inputs, or only just not."""
    inputs, x = head.inputs, np.asarray(x, float)
    yield np.append(x[:-1], np.nan)
    yield np.append(x[:-1], np.inf)
    yield x[:-1]
    if isinstance(inputs, Nonnegative):
        yield np.where(np.arange(D) == np.argmin(x), -5e-324, x)
    if isinstance(inputs, Box):
        yield np.where(np.arange(D) == 0, np.nextafter(1, 2), x)
        yield np.where(np.arange(D) == 0, np.nextafter(-1, -2), x)
    if isinstance(inputs, Observed):
        yield np.nextafter(x, 9)
    if isinstance(inputs, (AfterRMSNorm, AfterLayerNorm)):
        shift = getattr(inputs, "shift", np.zeros(D))
        live = inputs.gain != 0
        z = np.where(live, (x - shift) / np.where(live, inputs.gain, 1), 0)
        spare = z.sum() ** 2 / (~live).sum() if isinstance(inputs, AfterLayerNorm) and not live.all() else 0
        yield shift + (x - shift) * (1 + 1e-9) * np.sqrt(D / (z @ z + spare))
        yield np.where(live, x, shift + 1e-9) if not live.all() else x * np.nan
        if isinstance(inputs, AfterLayerNorm) and live.all():
            yield x + 1e-3 * inputs.gain


def forged(head, c):
    """Certificates that were tampered with, none of which proves anything."""
    n = len(head)
    yield replace(c, head="0" * 64)
    if isinstance(c, Wins):
        loser = next(j for j in range(n) if j != c.label and j not in c.equals)
        yield replace(c, label=loser)
        yield replace(c, label=n)
        yield replace(c, label=-1)
        yield replace(c, equals=[*c.equals, loser])
        yield replace(c, label=loser, equals=[c.label, *c.equals])
        yield from (replace(c, x=x) for x in outside(head, c.x))
        if len(c.equals):
            yield replace(c, equals=[])
    if isinstance(c, (Ties, Possible)):
        yield from (replace(c, x=x) for x in outside(head, c.x))
    if isinstance(c, Ties):
        yield replace(c, b=c.a)
        yield replace(c, a=next(j for j in range(n) if j not in (c.a, c.b)))
    if isinstance(c, Possible) and len(c.above):
        yield replace(c, above=c.below, below=c.above)
    if isinstance(c, Impossible) and len(c.above):
        yield replace(c, below=c.above)
    if isinstance(c, NeverWins):
        weightless = isinstance(head.inputs, Observed)
        yield replace(c, rivals=[c.label], weights=[] if weightless else [1.0])
        yield replace(c, rivals=[n], weights=[] if weightless else [1.0])
        yield replace(c, rivals=[*c.rivals, c.label], weights=[] if weightless else [*c.weights, 0.0])
        yield replace(c, label=10, rivals=[11], weights=[] if weightless else [1.0])  # its equal
        yield replace(c, label=1, rivals=[], weights=[])
    weights = getattr(c, "weights", np.zeros(0))
    if len(weights):
        for move in (1e-3, -2 * weights[0], np.nan):
            yield replace(c, weights=np.append(weights[0] + move, weights[1:]))
        yield replace(c, weights=weights[:-1])
    elif isinstance(head.inputs, Observed) and hasattr(c, "weights"):
        yield replace(c, weights=[1.0])
    if isinstance(c, NeverTies):
        yield replace(c, b=c.a)
        if len(c.pair_weights):
            yield replace(c, pair_weights=np.add(c.pair_weights, [1e-3, 0]))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}{', bias' if c[1] else ''}")
def test_both_verifiers_refuse_what_was_tampered_with(case, tmp_path):
    head, proofs = proved(*case)
    bad = [f for c in proofs for f in forged(head, c)]
    assert len(bad) > 80
    accepted = set(range(len(bad))) - set(verify_all(head, bad).refused)
    assert not accepted, [bad[k] for k in accepted]
    widths = [k for k, c in enumerate(bad) if len(getattr(c, "x", range(D))) != D]  # a file holds one width
    several = [c for k, c in enumerate(bad) if k not in widths and c.head == head.digest]
    groups = [
        several,
        [c for c in bad if c.head != head.digest],
        *([bad[k]] for k in widths[:3] if bad[k].kind != "ties"),
    ]
    for certificates in groups:
        for c, why in zip(certificates, refused(head, certificates, tmp_path), strict=True):
            assert why, c


@pytest.mark.parametrize("biased", [False, True])
def test_over_all_inputs_weights_and_rivals_admit_of_no_exchange(biased, tmp_path):
    """The stored weights are those of one exact mean: near others there is none, whichever verifier looks."""
    head, proofs = proved("all", biased)
    bad = []
    for c in proofs:
        if isinstance(c, NeverWins) and len(c.rivals) <= D + 1:
            move = np.zeros(len(c.weights))
            move[[0, -1]] = 1e-3, -1e-3
            other = next(j for j in range(1, 10) if j not in c.rivals and j != c.label)
            bad += [
                replace(c, weights=c.weights + move),
                replace(c, weights=c.weights[::-1]),
                replace(c, rivals=[other, *c.rivals[1:]]),
                replace(c, label=other),
            ]
    assert len(bad) >= 4
    assert len(verify_all(head, bad).refused) == len(bad)
    assert all(refused(head, bad, tmp_path))


@pytest.mark.parametrize("name", ["box", "RMSNorm", "LayerNorm with shift", "nonnegative"])
def test_a_swapped_rival_is_judged_alike_by_both(name, tmp_path):
    """Over bounded inputs another rival may do as well: then it is a proof, and both say so."""
    head, proofs = proved(name, True)
    swapped = []
    for c in (c for c in proofs if isinstance(c, NeverWins)):
        for j in range(1, 10):
            if j not in c.rivals and j != c.label:
                swapped += [
                    replace(c, rivals=np.where(np.arange(len(c.rivals)) == k, j, c.rivals))
                    for k in range(len(c.rivals))
                ]
    theirs = refused(head, swapped, tmp_path)
    ours = verify_all(head, swapped).refused
    assert [why is not None for why in theirs] == [k in ours for k in range(len(swapped))]
    assert len(ours) > 10


def test_a_mean_of_fewer_rivals_than_coordinates_is_found(tmp_path):
    """A row that is the rounded mean of a few others: over x >= 0 only what has the wrong sign need vanish."""
    rng = np.random.default_rng(1004)
    W = rng.standard_normal((9, 9))
    W[0] = W[1:].mean(axis=0)
    b = rng.standard_normal(9)
    b[0] = b.min() - 0.2
    head = Head(W, b, link="softmax", inputs=Nonnegative())
    proofs = [c for c in gonio.can_win(head).certificates() if c.label == 0]
    assert [c.kind for c in proofs] == ["never wins"]
    assert refused(head, proofs, tmp_path) == [None]


def test_undecided_proves_nothing(tmp_path):
    head = head_of("box", True)
    (why,) = refused(head, [Undecided(head.digest, 1, 9.0, "no time", [2], [1.0])], tmp_path)
    assert "proves nothing" in why


@pytest.mark.parametrize("link", ["cosine", "vectors", "input", "unknown"])
def test_what_scores_nothing_has_no_proofs(link, tmp_path):
    head = Head(np.eye(3), link=link)
    (why,) = refused(head, [Wins(head.digest, 0, [1.0, 0, 0])], tmp_path)
    assert link in why
