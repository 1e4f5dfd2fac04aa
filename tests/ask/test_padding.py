"""Padded rows that never win as written, and the two usual ways that do."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import AfterLayerNorm, AfterRMSNorm, Box, GonioError, Head, Nonnegative, Observed, can_win
from gonio.ask.pad_export import export_padded
from gonio.ask.padding import TYPES, pad
from gonio.core.head import Source
from gonio.models.loading import load
from gonio.proofs.certificates import CertificateError, NeverWins, Wins


def table(n, d, dtype="float32", offset=0.0, seed=0):
    return (np.random.default_rng(seed).standard_normal((n, d)) + offset).astype(TYPES[dtype])


def never_wins_at(head, places, F):
    scores = np.asarray(head.W, dtype=float) @ F.T + (0 if head.bias is None else np.asarray(head.bias, float)[:, None])
    real = np.delete(np.arange(len(head)), places)
    return (scores[places] <= scores[real].max(axis=0) + 1e-9 * np.abs(scores).max(axis=0)).all()


INPUTS = {
    "all": None,
    "nonnegative": Nonnegative(),
    "box": Box(-1, 1),
    "swish": Box(-0.2785, np.inf),
    "rms": AfterRMSNorm(np.linspace(0.5, 2, 12)),
    "dead": AfterRMSNorm(np.maximum(0, np.linspace(-0.2, 2, 12))),
    "layer": AfterLayerNorm(np.linspace(0.5, 2, 12), np.linspace(-1, 1, 12)),
    "observed": Observed(np.random.default_rng(9).standard_normal((50, 12))),
}


@pytest.mark.parametrize("dtype", list(TYPES))
@pytest.mark.parametrize("kind", list(INPUTS))
@pytest.mark.parametrize("biased", [False, True])
def test_rows_are_appended_that_never_win_as_written(dtype, kind, biased):
    b = np.random.default_rng(1).standard_normal(150).astype(np.float32) if biased else None
    head = Head(table(150, 12, dtype, offset=0.7), b, link="softmax", inputs=INPUTS[kind])
    out = pad(head, 160, dtype)
    assert out.head.shape == (160, 12)
    assert out.places.tolist() == list(range(150, 160))
    assert out.row.dtype == TYPES[dtype]
    assert out.head.rows.stored.dtype == TYPES[dtype]
    assert np.array_equal(np.asarray(out.head.W[:150], float), np.asarray(head.W, float))
    for proof in out.certificates:
        assert proof.verify(out.head) <= 0
    F = out.head.inputs.sample(300, 12, np.random.default_rng(2))
    assert never_wins_at(out.head, out.places, F)
    assert 0 <= out.probability <= out.bound == 1 / 11
    assert out.copy_of is None
    assert len(repr(out).splitlines()) == 2
    if biased:
        assert out.probability < 1e-30


def test_a_file_with_labels_is_padded_with_names_for_the_new_rows(tmp_path):
    W = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    np.savez(tmp_path / "m.npz", weight=W, labels=np.array([f"label {i}" for i in range(12)]), link="softmax")
    head = load(tmp_path / "m.npz")
    written = export_padded(pad(head, 16, "float32"), head, tmp_path / "out")
    again = load(next((tmp_path / "out").rglob("*.npz")))
    assert written is not None
    assert again.shape == (16, 3)
    assert again.labels[:12] == head.labels
    assert len(set(again.labels)) == 16


@pytest.mark.parametrize("biased", [False, True])
def test_the_cost_of_the_proofs_does_not_grow_with_the_square_of_the_rows(biased, monkeypatch):
    """Every certificate is verified, and rows that are equal cost one look."""
    looks = []
    verify = NeverWins.verify
    monkeypatch.setattr(NeverWins, "verify", lambda self, head: looks.append(self.label) or verify(self, head))
    out = pad(
        Head(table(20, 24 if biased else 4), np.arange(20.0) if biased else None, link="softmax"), 5000, "float32"
    )
    assert (out.copy_of is not None) is biased
    assert [c.label for c in out.certificates] == list(range(20, 5000))
    assert len(looks) <= (410 if biased else 4)  # with a bias after some pairs of rows were tried in vain
    assert verify(out.certificates[-1], out.head) <= 0


def test_padded_rows_of_the_file_are_replaced():
    W = table(100, 6)
    W[90:] = -1e4
    head = Head(
        W, link="softmax", labels=[f"t{i}" for i in range(100)], source=Source("f", "npz", padded=tuple(range(90, 100)))
    )
    out = pad(head, 100, "float32")
    assert out.places.tolist() == list(range(90, 100))
    assert out.head.labels == head.labels
    assert out.head.padded.tolist() == list(range(90, 100))
    assert all(p.verify(out.head) <= 0 for p in out.certificates)
    assert not np.isin(out.certificates[0].rivals, out.places).any()
    more = pad(head, 104, "float32")
    assert more.head.labels[-1] == "<padding 103>"
    assert len(more.certificates) == 14


def test_rows_without_room_between_them_need_a_bias_or_are_refused():
    few = table(5, 8, "bfloat16")  # five points in eight dimensions: nothing of bfloat16 lies exactly between them
    with pytest.raises(GonioError, match="no row of bfloat16 was found that lies inside the hull"):
        pad(Head(few, link="softmax"), 6, "bfloat16")
    whole = np.eye(4, 6, dtype=np.float32)  # the mid-point of two unit vectors is a float: it never wins
    out = pad(Head(whole, link="softmax"), 6, "float32")
    assert out.copy_of is None
    assert can_win(out.head).never.tolist() == [4, 5]
    biased = pad(Head(few, np.arange(5.0), link="softmax"), 7, "bfloat16")
    assert biased.bias <= 0
    assert biased.certificates[0].verify(biased.head) < 0
    assert "with a lower bias" in biased.note
    assert can_win(biased.head).never.tolist() == [5, 6]


def test_the_mean_of_a_few_rows_is_not_safe_in_bfloat16():
    # Two rows and their mid-point, which bfloat16 rounds off the segment: a rounded mean can win.
    W = np.array([[1.0, 1.0078125], [-1.0, 1.0], [0.0, -1.0]], np.float32)
    middle = ((W[0] + W[1]) / 2).astype(ml_dtypes.bfloat16).astype(np.float32)
    found = False
    for row in (middle, np.array([0.0, 1.0078125], np.float32)):
        head = Head(np.vstack([W, row]).astype(ml_dtypes.bfloat16), link="softmax")
        try:
            found |= Wins(head.digest, 3, [-0.0039, 1.0]).verify(head) > 0
        except CertificateError:
            continue
    assert found


def test_zero_rows_win_when_the_rows_have_a_common_offset():
    W = table(50, 6, offset=3.0)
    head = Head(np.vstack([W, np.zeros((2, 6), np.float32)])[:51], link="softmax")
    assert Wins(head.digest, 50, -np.ones(6)).verify(head) > 0


def test_rows_of_minus_ten_thousand_win_for_half_of_symmetric_inputs():
    W = np.vstack([table(50, 6), np.full((1, 6), -1e4, np.float32)])
    F = np.random.default_rng(3).standard_normal((4000, 6))
    share = (np.argmax(F @ W.T, axis=1) == 50).mean()
    assert 0.45 < share < 0.55
    head = Head(W, link="softmax")
    assert Wins(head.digest, 50, -np.ones(6)).verify(head) > 0
    with pytest.raises(CertificateError):
        NeverWins(head.digest, 50, np.arange(50), np.full(50, 0.02)).verify(head)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(0, 2**32),
    st.sampled_from(list(TYPES)),
    st.sampled_from([0.0, 1.0, 200.0]),
)
def test_a_padded_head_has_no_padded_row_on_top_or_is_refused(n, d, seed, dtype, offset):
    head = Head(table(n, d, dtype, offset, seed), link="softmax")
    try:
        out = pad(head, n + 2, dtype)
    except GonioError as e:
        assert "inside the hull" in str(e)
        assert n <= 4 * (d + 2) or dtype != "float32"  # with many rows there is room between them
        return
    assert all(p.verify(out.head) <= 0 for p in out.certificates)
    assert not np.isin(out.places, can_win(out.head).tops).any()
    assert out.probability <= out.bound * (1 + 1e-6)


def test_what_cannot_be_padded_is_told():
    head = Head(table(9, 3), link="softmax")
    with pytest.raises(GonioError, match="at least 9"):
        pad(head, 8, "float32")
    with pytest.raises(GonioError, match="none of them padded"):
        pad(head, 9, "float32")
    with pytest.raises(GonioError, match="not numbers of bfloat16"):
        pad(head, 10, "bfloat16")
    with pytest.raises(GonioError, match="choose one of"):
        pad(head, 10, "int8")
    with pytest.raises(GonioError, match="cosine"):
        pad(Head(table(9, 3), link="cosine"), 10, "float32")
    assert np.isnan(pad(Head(table(9, 3), link="dot"), 10, "float32").probability)
