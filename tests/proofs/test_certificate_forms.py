"""What certificates look like before anything is proven: their fields, words and arrays, and what is refused at sight."""

from __future__ import annotations

import zipfile
from dataclasses import replace

import numpy as np
import pytest

from gonio import AfterRMSNorm, AllInputs, Box, GonioError, Head, Observed
from gonio.proofs.bulk import compact, verify_all
from gonio.proofs.certificate_base import Certificate
from gonio.proofs.certificates import CertificateError, NeverTies, NeverWins, Ties, Undecided, Wins
from gonio.proofs.comparisons import Impossible, Open, Possible
from gonio.proofs.kinds import GROUPS, arrays, group_of, of_dict
from gonio.proofs.proof_file import load, save, verify_file

SQUARE = Head([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]], link="softmax")
D = SQUARE.digest


def refuses(certificate, head, why):
    with pytest.raises(CertificateError, match=why):
        certificate.verify(head)
    assert why in verify_all(head, [certificate]).refused[0]


def test_a_bare_certificate_proves_nothing_and_says_nothing():
    with pytest.raises(NotImplementedError):
        Certificate(D).subject  # noqa: B018
    with pytest.raises(NotImplementedError):
        Certificate(D).verify(SQUARE)
    with pytest.raises(NotImplementedError):
        repr(Certificate(D))


@pytest.mark.parametrize("link", ["vectors", "input", "unknown", "cosine"])
def test_rows_that_score_nothing_have_no_certificates(link):
    head = SQUARE.replace(link=link)
    for c in (Wins(head.digest, 0, [1.0, 1]), NeverWins(head.digest, 4, [0, 3], [0.5, 0.5]), Possible(head.digest, [0], [1], [], [1.0, 1])):  # fmt: skip
        refuses(c, head, f"the head's link is '{link}'")


def test_labels_and_rivals_at_the_ends_of_the_range():
    for label, why in ((-1, "out of range"), (5, "labels 0 to 4")):
        refuses(Wins(D, label, [1.0, 1]), SQUARE, why)
        refuses(NeverWins(D, label, [0, 3], [0.5, 0.5]), SQUARE, why)
        refuses(Ties(D, 0, label, [1.0, 0], [1.0, 0]), SQUARE, why)
        refuses(NeverWins(D, 4, [0, label], [0.5, 0.5]), SQUARE, "not all among the labels 0 to 4")
    assert NeverWins(D, 4, [0, 3], [0.5, 0.5]).verify(SQUARE) == 0.0
    refuses(NeverTies(D, 0, 1, [1], [1.0], [0.5, 0.5]), SQUARE, "its own rivals")
    refuses(NeverTies(D, 0, 1, [0], [1.0], [0.5, 0.5]), SQUARE, "its own rivals")
    refuses(Wins(D, 0, [1.0, 1], [1]), SQUARE, "named as an equal")


@pytest.mark.parametrize(
    ("weights", "fine"),
    [
        ([0.5, 0.5], True),
        ([0.5 + 4e-7, 0.5], True),
        ([0.5 - 4e-7, 0.5], True),
        ([0.5 + 2e-6, 0.5], False),
        ([0.5 - 2e-6, 0.5], False),
        ([np.nan, 1.0], False),
        ([np.inf, 0.5], False),
        ([1.5, -0.5], False),
        ([1.0], False),
        ([0.5, 0.5, 0.0], False),
    ],
)
def test_weights_are_not_below_zero_and_sum_to_one(weights, fine):
    head = SQUARE.replace(bias=[0.0, 0, 0, 0, -9], inputs=Box(-1, 1))
    proof, other = NeverWins(head.digest, 4, [0, 3], weights), Impossible(head.digest, [4, 4], [0, 3], [], weights)
    for c in (proof, other):
        if fine:
            assert c.verify(head) == pytest.approx(-9, rel=1e-5)
        else:
            refuses(c, head, "weight")


def test_a_weight_of_zero_counts_as_no_rival():
    head = SQUARE
    assert NeverWins(head.digest, 4, [0, 3, 1], [0.5, 0.5, 0.0]).verify(head) == 0.0
    assert Impossible(head.digest, [4, 4, 4], [0, 3, 1], [], [0.5, 0.5, 0.0]).verify(head) == 0.0


def test_fields_are_lists_of_numbers_or_of_labels():
    for bad in ([0.5], [1.0, 2.5], ["a"], [[1]], [None], [np.nan], [1e300], 3):
        with pytest.raises(GonioError, match="rivals is not a list of labels"):
            NeverWins(D, 0, bad, [1.0])
    for bad in (["a"], [[1.0]], [None, {}], 3.0):
        with pytest.raises(GonioError, match="weights is not a list of numbers"):
            NeverWins(D, 0, [1], bad)
    proof = NeverWins(D, 0, [1.0, 2.0], np.float32([0.5, 0.5]))
    assert proof.rivals.dtype == np.int64
    assert proof.weights.dtype == np.float32
    assert NeverWins(D, 0, [], [1]).weights.dtype == np.float64
    assert NeverWins(D, 0, [], []).rivals.dtype == np.int64
    for a in (proof.rivals, proof.weights):
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 9


def test_certificates_are_told_apart_by_every_field():
    a = NeverWins(D, 4, [0, 3], [0.5, 0.5])
    assert a == NeverWins(D, 4, [0, 3], [0.5, 0.5])
    assert a != NeverWins(D, 4, [0, 3], [0.5, 0.25])
    assert a != NeverWins("x", 4, [0, 3], [0.5, 0.5])
    assert a != "text"
    assert len({a, NeverWins(D, 4, [0, 3], [0.5, 0.5]), replace(a, label=1)}) == 2


def test_words():
    assert "rivals 1, 2, 3, 4 ..." in repr(NeverWins(D, 0, [1, 2, 3, 4, 5], []))
    assert "all rivals" in repr(NeverWins(D, 0, [], []))
    assert "below 0.5 x label 2 + 0.3 x label 1 + 0.1 x label 3 and 1 more" in repr(NeverWins(D, 0, [1, 2, 3, 4], [0.3, 0.5, 0.1, 0.1]))  # fmt: skip
    assert "2 equal to it" in repr(Wins(D, 0, [3.0, 4.0], [1, 2]))
    assert "norm 5" in repr(Wins(D, 0, [3.0, 4.0]))
    assert "2 certificates)\n  none refused" in repr(verify_all(SQUARE, [Wins(D, 0, [1.0, 1])] * 2))


# -- what ties and the undecided say -----------------------------------------------------------------------------------


def test_a_tie_needs_each_label_to_be_as_high_at_its_own_end():
    assert Ties(D, 0, 1, [1.0, 0.5], [1.0, -0.5]).verify(SQUARE) == pytest.approx(0.5)
    assert Ties(D, 0, 1, [1.0, 0], [1.0, 0]).verify(SQUARE) == pytest.approx(1)
    refuses(Ties(D, 0, 1, [1.0, -0.5], [1.0, -0.5]), SQUARE, "at x label 0 is not proven")
    refuses(Ties(D, 0, 1, [1.0, 0.5], [1.0, 0.5]), SQUARE, "at y label 1 is not proven")
    refuses(Ties(D, 0, 0, [1.0, 0.5], [1.0, 0.5]), SQUARE, "named twice")
    refuses(Ties(D, 0, 1, [0.0, 0.0], [0.0, 0.0]), SQUARE, "strictly above all others")
    refuses(Ties(D, 0, 1, [1.0, 0.5], [1.0]), SQUARE, "has width 2")
    refuses(Ties(D, 0, 1, [1.0], [1.0, 0.5]), SQUARE, "has width 2")
    refuses(Ties(D, 0, 1, [1.0, 0.5], [1.0, np.nan]), SQUARE, "NaN")
    refuses(NeverTies(D, 2, 2, [], [], []), SQUARE, "named twice")


def test_a_lead_that_ends_on_the_surface_of_an_open_ball_is_a_lead():
    """b is ahead by 2 - x_0 > 0 at every |x| < 2, and by nothing in the limit."""
    rows = [[0.0, 0, 0, 0], [1.0, 0, 0, 0]]
    head = Head(rows, [0.0, 2.0], link="softmax", inputs=AfterRMSNorm(np.ones(4)))
    assert NeverTies(head.digest, 0, 1, [], [], []).verify(head) == 0.0
    assert NeverTies(head.digest, 1, 0, [], [], []).verify(head) == 0.0
    more = head.replace(bias=[0.0, 3.0])
    assert NeverTies(more.digest, 0, 1, [], [], []).verify(more) == pytest.approx(-1)
    for bias in ([0.0, np.nextafter(2, 0)], [0.0, 0.0]):
        less = head.replace(bias=bias)
        refuses(NeverTies(less.digest, 0, 1, [], [], []), less, "neither of labels")
    alike = Head([[1.0, 0], [1.0, 0], [0, 0]], link="softmax", inputs=AfterRMSNorm(np.ones(2)))
    refuses(NeverTies(alike.digest, 0, 1, [], [], []), alike, "neither of labels")  # equal everywhere
    closed = Head([[0.0], [1.0]], [0.0, 1.0], link="softmax", inputs=Box(-1, 1))
    refuses(NeverTies(closed.digest, 0, 1, [], [], []), closed, "neither of labels")  # a box has its corners


def test_over_observed_embeddings_weights_are_refused():
    head = SQUARE.replace(inputs=Observed([[1.0, 0.5], [1.0, 0.0]]))
    d = head.digest
    refuses(NeverWins(d, 4, [0], [1.0]), head, "leave them empty")
    refuses(NeverTies(d, 2, 3, [0], [1.0], []), head, "leave them empty")
    refuses(NeverTies(d, 2, 3, [0], [], [0.5, 0.5]), head, "leave them empty")
    refuses(NeverTies(d, 0, 1, [], [], []), head, "share the top at observed embedding 1")
    refuses(NeverWins(d, 0, [], []), head, "wins at one of the observed")
    assert NeverTies(d, 2, 3, [0], [], []).verify(head) == 0.0
    assert NeverWins(d, 4, [0], []).verify(head) == pytest.approx(-1)
    assert NeverWins(d, 1, [], []).verify(head) == 0.0  # at (1, 0) it ties
    refuses(Undecided(d, 1, 9.0, "no time", [0], [1.0]), head, "proves nothing")


def test_the_nearest_combination_gives_its_bound_or_none():
    head = SQUARE.replace(inputs=Box(-1, 1))
    near = Undecided.nearest(head, 4, "no time", np.array([0, 3]), np.array([0.75, 0.25]))
    assert near.bound == pytest.approx(1.0)
    assert near.verify(head) == near.bound
    free = Undecided.nearest(SQUARE, 4, "no time", np.array([0, 3]), np.array([0.75, 0.25]))
    assert free.bound == pytest.approx(np.sqrt(0.5))
    assert free.verify(SQUARE) == free.bound
    for rivals, weights, at in (
        ([], [], head),
        ([0, 3], [0.75, 0.75], head),
        ([4, 3], [0.75, 0.25], head),
        ([0, 3], [0.75, 0.25], SQUARE.replace(inputs=Observed([[1.0, 1]]))),
    ):
        none = Undecided.nearest(at, 4, "no time", np.array(rivals, int), np.array(weights))
        assert (none.bound, len(none.rivals), len(none.weights)) == (np.inf, 0, 0)
        assert none.why == "no time"
    huge = Head([[0.0], [1.7e308]], [0.0, -1.7e308], link="softmax", inputs=Box(-1, 1))
    assert Undecided.nearest(huge, 0, "no time", np.array([1]), np.array([1.0])).bound == np.inf


# -- kinds and files ---------------------------------------------------------------------------------------------------


def one_of_each():
    return [
        Wins(D, 0, np.float32([1.0, 1])),
        Wins(D, 0, [0.1, 0.1], []),
        NeverWins(D, 4, [0, 3], [0.5, 0.5]),
        Ties(D, 0, 1, [1.0, 0], [1.0, 0]),
        NeverTies(D, 0, 3, [1, 2], [0.5, 0.5], [0.5, 0.5]),
        Undecided(D, 4, 9.0, "no time", [0], [1.0]),
        Possible(D, [0], [1], [], [1.0, 1]),
        Impossible(D, [4, 4], [0, 3], [], [0.5, 0.5]),
        Open(D, [0], [1], [], 0.5, "no time"),
    ]


def test_every_kind_has_its_group_and_every_array_its_name(tmp_path):
    proofs = one_of_each()
    assert [group_of(c) for c in proofs] == list(range(len(GROUPS)))
    assert group_of(Wins(D, 0, [0.5, 2.0])) == 0  # float32 holds it
    assert group_of(Wins(D, 0, [1e300, 1.0])) == 1
    with pytest.raises(GonioError, match="a Certificate is no certificate that a file can hold"):
        group_of(Certificate(D))
    save(tmp_path / "p.npz", proofs)
    assert load(tmp_path / "p.npz") == proofs
    with np.load(tmp_path / "p.npz") as z:
        assert sorted(z.files) == sorted(name for name, _ in arrays())
        assert dict(arrays())["wins32_x"] == f"{z['wins32_x'].dtype} (k, d)"
        assert dict(arrays())["never_weights_count"] == "int64 (k)"
        assert {"never_support", "support_rivals", "wins64_equals_count"} <= set(z.files)
    seen = verify_file(SQUARE, tmp_path / "p.npz")
    assert len(seen.failed) == 1  # what is open proves nothing
    assert seen.smallest_margin == pytest.approx(0.2)
    assert "1 refused" in repr(seen)
    assert of_dict(proofs[7].to_dict()) == proofs[7]
    for bad in ({"kind": "wins"}, {"head": D}, {"kind": "wins", "head": D, "label": 0, "x": [1.0], "more": 1}):
        with pytest.raises(GonioError, match="not those of a certificate"):
            of_dict(bad)


def test_a_file_whose_arrays_cannot_be_read_is_named_in_a_sentence(tmp_path):
    path = tmp_path / "p.npz"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("format.npy", b"no header at all")
    with pytest.raises(GonioError, match="cannot be read"):
        load(path)
    save(path, one_of_each())
    with zipfile.ZipFile(path) as z:
        held = {name: z.read(name) for name in z.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, raw in held.items():
            z.writestr(name, raw)
    assert load(path) == one_of_each()  # packed files are read as well
    raw = bytearray(path.read_bytes())
    at = raw.index(b"wins64_x.npy") + 40
    raw[at : at + 30] = bytes(30)
    path.write_bytes(raw)
    with pytest.raises(GonioError, match="proof"):
        load(path)


def test_thousands_of_wins_are_verified_in_blocks():
    x = np.array([1.0, 1.0])
    proofs = [Wins(D, 0, x)] * 4096 + [Wins(D, 1, x), Wins(D, 0, x)]
    seen = verify_all(SQUARE, proofs)
    assert set(seen.refused) == {4096}
    assert np.isnan(seen.bounds[4096])
    assert (np.delete(seen.bounds, 4096) > 1.99).all()
    with pytest.raises(ValueError, match="read-only"):
        seen.bounds[0] = 1


def test_embeddings_are_made_narrow_only_where_they_still_win():
    thin = Head([[1.0, 0], [1.0, 1e-12], [0, 0]], link="softmax", inputs=AllInputs())
    wide = [
        Wins(thin.digest, 1, [1 + 1e-12, 1e-9]),
        Wins(thin.digest, 0, [1.0, -(2.0**-140)]),
        Wins(thin.digest, 1, [1e39, 1e39]),
        NeverWins(thin.digest, 2, [0], [1.0]),
        Wins(thin.digest, 0, np.float32([1.0, -1.0])),
        Wins(thin.digest, 0, [1.0, -(2.0**-160)]),
    ]
    out = compact(thin, wide)
    assert [c.x.dtype == np.float32 for c in out if isinstance(c, Wins)] == [True, True, False, True, False]
    assert out[3] is wide[3]
    assert out[4] is wide[4]
    assert not set(verify_all(thin, out).refused) - {3}


def test_an_embedding_of_another_width_is_refused_beside_others():
    proofs = [Wins(D, 0, [1.0, 1]), Wins(D, 0, [1.0]), Wins("0" * 64, 0, [1.0, 1]), Ties(D, 0, 1, [1.0], [1.0, 0])]
    assert set(verify_all(SQUARE, proofs).refused) == {1, 2, 3}
    assert set(verify_all(SQUARE, proofs[1:]).refused) == {0, 1, 2}
    assert len(verify_all(SQUARE, []).bounds) == 0
