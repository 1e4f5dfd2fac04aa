"""Rounding a head, and what it does to who can win."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from scipy.optimize import linprog

from gonio import GonioError, Head
from gonio.ask.precision import cast, precision_audit
from gonio.core.status import Status


def by_lp(head):
    """One LP a label: 1 wins, 2 never wins, 3 wins only with equals."""
    W, b = head.W.astype(float), np.zeros(len(head)) if head.bias is None else head.bias
    n, d = W.shape
    out = np.full(n, Status.NEVER, dtype=object)
    for i in range(n):
        same = (W[i] == W).all(axis=1) & (b == b[i])
        js = np.flatnonzero(~same)
        found = linprog(
            np.r_[np.zeros(d), -1], A_ub=np.column_stack([W[js] - W[i], np.ones(len(js))]), b_ub=b[i] - b[js],
            bounds=[(-100, 100)] * d + [(None, 1)],
        )  # fmt: skip
        out[i] = Status.NEVER if -found.fun <= 1e-9 else Status.WINS if same.sum() == 1 else Status.SHARED
    return out


rng = np.random.default_rng(0)
W = rng.standard_normal((30, 6)).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "naive"),
    [
        ("bf16", lambda a: a.astype(ml_dtypes.bfloat16).astype(np.float32)),
        ("fp16", lambda a: a.astype(np.float16).astype(np.float32)),
        ("fp8", lambda a: a.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)),
        (
            "int8",
            lambda a: np.rint(a / (np.abs(a).max(1, keepdims=True) / 127)) * (np.abs(a).max(1, keepdims=True) / 127),
        ),
    ],
)
def test_a_cast_is_the_nearest_number_of_the_type(kind, naive):
    head = cast(Head(W, link="softmax"), kind)
    assert np.allclose(head.W, naive(W), rtol=1e-6, atol=1e-9)
    assert head.W.dtype == np.float32
    again = cast(head, kind)
    assert np.allclose(again.W, head.W, rtol=1e-6)


def test_the_bias_is_rounded_where_the_whole_checkpoint_is():
    b = rng.standard_normal(30)
    for kind, rounds in (("bf16", True), ("fp16", True), ("fp8", False), ("int8", False)):
        assert (cast(Head(W, b, link="softmax"), kind).bias != b).any() == rounds


def test_numbers_beyond_the_type_saturate_or_are_refused():
    big = np.array([[1000.0, 1], [1, 2]])
    assert cast(Head(big, link="softmax"), "fp8").W.max() == 448
    assert precision_audit(Head(big, link="softmax"), "fp8", by_lp).saturated == 1
    with pytest.raises(GonioError, match="65504"):
        cast(Head(big * 1e3, link="softmax"), "fp16")
    with pytest.raises(GonioError, match="choose one of"):
        cast(Head(big, link="softmax"), "int3")
    zero = cast(Head([[0.0, 0], [1, 2]], link="softmax"), "int8")
    assert (zero.W[0] == 0).all()


def test_rows_closer_than_the_grid_become_tied():
    close = np.array([[1.0, 1, 1], [1 + 1e-4, 1 - 1e-4, 1], [0, 2, 0], [-1, -1, 0], [0, 0, -1]])
    found = precision_audit(Head(close, link="softmax"), "bf16", by_lp)
    assert found.tied.tolist() == [0, 1]
    assert not len(found.lost)
    assert len(repr(found).splitlines()) == 2
    assert found.to_dict()["tied"] == [0, 1]


STEP = 2.0**-7  # of bfloat16 from 1 to 2


def test_a_row_outside_the_hull_falls_into_it():
    rows = [[1.0, 1], [-1, 1], [0.25, 1 + STEP / 4], [0, -1]]  # a quarter of a step above the segment of the first two
    found = precision_audit(Head(rows, link="softmax"), "bf16", by_lp)
    assert found.lost.tolist() == [2]
    assert not len(found.tied) + len(found.gained)


def test_a_row_inside_the_hull_comes_out_of_it():
    # On the segment from (-1, 1.45 steps) to (1, 0), at -1/2, the height is 3/4 + 0.3375 steps. The row is just below
    # it; the segment's end is rounded down by 0.45 steps and the row up, for steps are half as wide below 1.
    rows = [[-1.0, 1 + 0.45 * STEP], [1, 0], [-0.5, 0.75 + 0.3 * STEP], [0, -1]]
    found = precision_audit(Head(rows, link="softmax"), "bf16", by_lp)
    assert found.gained.tolist() == [2]
    assert not len(found.tied) + len(found.lost)


def test_what_is_undecided_is_told():
    head = Head(W, link="softmax")
    found = precision_audit(head, "bf16", lambda h: [Status.UNDECIDED] + 29 * [Status.WINS])
    assert found.unclear.tolist() == [0]


def test_nothing_changes_for_rows_the_type_holds():
    rows = np.array([[1.0, 1], [-1, 1], [0.5, 0.5], [0, -1]])
    for kind in ("bf16", "fp16", "fp8"):
        found = precision_audit(Head(rows, link="softmax"), kind, by_lp)
        assert not len(found.lost) + len(found.tied) + len(found.gained) + len(found.unclear)
