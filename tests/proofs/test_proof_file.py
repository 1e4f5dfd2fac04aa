"""The proof file: what is saved comes back, and what was tampered with proves nothing."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import GonioError, Head, Observed
from gonio.proofs.certificates import NeverTies, NeverWins, Ties, Undecided, Wins
from gonio.proofs.proof_file import load, save, verify_file

SQUARE = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0.25, 0.125]])


@pytest.fixture
def head():
    return Head(SQUARE, link="softmax")


@pytest.fixture
def proofs(head):
    d = head.digest
    return [
        *(Wins(d, i, SQUARE[i]) for i in range(4)),
        NeverWins(d, 4, [0, 1, 3], [0.5625, 0.0625, 0.375]),
        Wins(d, 0, [0.1, 0.2]),
        Ties(d, 0, 1, [1.0, 0.01], [1.0, -0.01]),
        NeverTies(d, 0, 3, [1, 2], [0.5, 0.5], [0.5, 0.5]),
        NeverWins(d, 4, [0, 1, 2, 3], [0.5, 0.125, 0.0625, 0.3125]),
        Undecided(d, 4, 3.0, "a test", [0], [1.0]),
        Wins(d, 3, np.float32([-0.1, -0.2])),
    ]


def test_what_is_saved_comes_back_in_order(tmp_path, head, proofs):
    save(tmp_path / "p.npz", proofs)
    back = load(tmp_path / "p.npz")
    assert back == proofs
    check = verify_file(head, tmp_path / "p.npz")
    assert check.fine
    # A label that is proven twice to win is one that wins.
    assert check.proven == {"wins": 4, "never wins": 1, "ties": 1, "never ties": 1, "undecided": 1}
    assert check.to_dict()["labels"]["ties"] == [[0, 1]]
    assert 0 < check.smallest_margin <= 0.2
    assert len(repr(check).splitlines()) == 2
    assert check.to_dict()["failed"] == []
    assert list(tmp_path.iterdir()) == [tmp_path / "p.npz"]


def test_observed_proofs_without_weights_come_back(tmp_path):
    head = Head(SQUARE, link="softmax", inputs=Observed(SQUARE[:2]))
    proofs = [
        NeverWins(head.digest, 4, [0, 1], []),
        NeverTies(head.digest, 0, 1, [], [], []),
        NeverWins(head.digest, 2, [], []),
    ]
    save(tmp_path / "p.npz", proofs)
    assert load(tmp_path / "p.npz") == proofs
    assert verify_file(head, tmp_path / "p.npz").fine


def test_the_wrong_head_is_refused_in_a_sentence(tmp_path, proofs):
    save(tmp_path / "p.npz", proofs)
    check = verify_file(Head(SQUARE * 2, link="softmax"), tmp_path / "p.npz")
    assert len(check.failed) == len(proofs)
    assert "was checked against" in check.failed[0]
    assert check.smallest_margin is None
    assert "\n" not in check.failed[0]


def columns(path):
    with np.load(path) as z:
        return {k: z[k] for k in z.files}


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("never_weights", lambda a: a + np.eye(1, len(a))[0] * 0.01),
        ("never_weights", lambda a: a[::-1]),
        ("support_rivals", lambda a: np.roll(a, 1)),
        ("support_rivals", lambda a: a + 100),
        ("never_label", lambda a: a - 1),
        ("wins32_label", lambda a: (a + 1) % 5),
        ("wins32_x", lambda a: -a),
        ("wins64_x", lambda a: a * np.nan),
        ("ties_a", lambda a: a + 1),
        ("ties_x", lambda a: a[:, ::-1]),
        ("never_ties_pair_weights", lambda a: a * 2),
        ("never_ties_a", lambda a: a + 1),
        ("undecided_bound", lambda a: a / 100),
        ("head", lambda a: np.array("0" * 64)),
    ],
)
def test_a_tampered_file_fails_verification(tmp_path, head, proofs, column, change):
    save(tmp_path / "p.npz", proofs)
    held = columns(tmp_path / "p.npz")
    np.savez(tmp_path / "q.npz", **(held | {column: change(held[column])}))
    check = verify_file(head, tmp_path / "q.npz")
    assert not check.fine
    assert all("\n" not in sentence for sentence in check.failed)


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("format", np.array("gonio proof 1"), "update"),
        ("format", None, "no column 'format'"),
        ("wins32_x", None, "no column 'wins32_x'"),
        ("wins32_x", np.zeros((2, 2), np.float32), "damaged"),
        ("wins32_x", np.zeros((5, 2), np.int32), "damaged"),
        ("wins32_label", np.zeros((5, 1), np.int64), "damaged"),
        ("never_weights_count", np.array([3, 400]), "announced"),
        ("support_rivals_count", np.array([-1, 8, 2, 1]), "announced"),
        ("ties_a", np.zeros((1, 3), np.int64), "damaged"),
        ("ties_y", np.zeros((1, 3, 2)), "damaged"),
        ("never_support", np.array([0, 4]), "supports beyond the 4"),
        ("never_support", np.array([-1, 0]), "supports beyond the 4"),
        ("support_rivals", None, "no column 'support_rivals'"),
        ("order", np.array([9], np.uint8), "does not exist"),
        ("order", np.array([[0]], np.uint8), "damaged"),
        ("undecided_why", np.array([object()], object), "pickled"),
    ],
)
def test_a_damaged_file_is_named_in_a_sentence(tmp_path, head, proofs, column, value, why):
    save(tmp_path / "p.npz", proofs)
    held = columns(tmp_path / "p.npz")
    held |= {column: value}
    np.savez(tmp_path / "q.npz", **{k: v for k, v in held.items() if v is not None})
    with pytest.raises(GonioError, match=why):
        verify_file(head, tmp_path / "q.npz")


def test_a_file_that_is_none_is_named_in_a_sentence(tmp_path, head, proofs):
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "model.npz", W=SQUARE)
    save(tmp_path / "p.npz", proofs)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "p.npz").read_bytes()[:900])
    for name in ("text.npz", "model.npz", "cut.npz", "absent.npz"):
        with pytest.raises(GonioError, match="proof"):
            load(tmp_path / name)


def test_what_cannot_be_saved_is_refused(tmp_path, head, proofs):
    with pytest.raises(GonioError, match="no certificate"):
        save(tmp_path / "p.npz", [])
    with pytest.raises(GonioError, match="2 heads"):
        save(tmp_path / "p.npz", [*proofs, Wins("other", 0, [1.0, 1.0])])
    with pytest.raises(GonioError, match="widths"):
        save(tmp_path / "p.npz", [*proofs, Wins(head.digest, 0, [1.0, 1.0, 1.0])])
    assert not list(tmp_path.iterdir())


def test_many_rivals_come_back_too(tmp_path):
    angles = np.arange(40) * 2 * np.pi / 40
    head = Head(np.vstack([[0, 0], np.column_stack([np.cos(angles), np.sin(angles)])]), link="softmax")
    proofs = [
        NeverWins(head.digest, 0, np.arange(1, 41), np.full(40, 1 / 40)),
        NeverWins(head.digest, 0, [1, 21], [0.5, 0.5]),
    ]
    save(tmp_path / "p.npz", proofs)
    assert load(tmp_path / "p.npz") == proofs
