"""Two models, or a head and its rounding, over the same states."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.ask.precision import cast
from gonio.core.errors import GonioError
from gonio.core.states import States
from gonio.diagnostics.logits_apart import logit_differences
from gonio.diagnostics.rounding_on_text import cast_on_text


def test_differences_of_centred_logits_against_the_naive_and_no_convention_moves_them():
    rng = np.random.default_rng(0)
    a = gonio.Head(rng.standard_normal((9, 4)), link="softmax")
    b = gonio.Head(a.W + 0.1 * rng.standard_normal((9, 4)), link="softmax")
    F = rng.standard_normal((300, 4))
    found = logit_differences(a, F, b, F)
    z, y = (F @ h.W.T for h in (a, b))
    gap = (z - z.mean(1, keepdims=True)) - (y - y.mean(1, keepdims=True))
    assert np.allclose(found.largest, np.abs(gap).max(axis=0))
    assert np.allclose(found.rms, np.sqrt((gap**2).mean(axis=0)))
    assert found.changed == np.mean(z.argmax(1) != y.argmax(1))
    M = rng.standard_normal((4, 4))
    moved = gonio.Head(b.W @ M.T + rng.standard_normal(4), link="softmax")
    again = logit_differences(a, F, moved, F @ np.linalg.inv(M))
    assert np.allclose(found.rms, again.rms)


def test_states_of_other_tokens_are_not_compared():
    head = gonio.Head(np.eye(3), link="softmax")
    S, R = (States(np.eye(3), [0, 0, 0], [0, 1, 2], t) for t in ([1, 2, 3], [1, 2, 4]))
    with pytest.raises(GonioError, match="did not read the same tokens"):
        logit_differences(head, S, head, R)
    with pytest.raises(GonioError, match="3 and 4 labels"):
        logit_differences(head, S, gonio.Head(np.ones((4, 3)), link="softmax"), S)


@pytest.mark.parametrize("kind", ["bf16", "int8", "int4"])
def test_a_cast_changes_the_winners_that_it_changes(kind):
    rng = np.random.default_rng(1)
    head = gonio.Head(rng.standard_normal((50, 8)).astype(np.float32), link="softmax")
    F = rng.standard_normal((2000, 8)).astype(np.float32)
    S = States(F, np.arange(2000) // 50, np.arange(2000), np.full(2000, -1))
    found = cast_on_text(head, kind, S)
    before, after = (h.logits(F).argmax(1) for h in (head, cast(head, kind)))
    assert found.changed.tolist() == np.flatnonzero(before != after).tolist()
    assert found.before.tolist() == before[found.changed].tolist()
    low, high = found.interval
    assert low <= found.share <= high
    if kind == "int4":
        assert found.share > 0.01
        assert len(np.unique(cast(head, kind).W / np.abs(head.W).max(axis=1, keepdims=True) * 7 % 1 > 0.01)) <= 2
