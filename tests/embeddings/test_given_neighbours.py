"""Lists of a user's own index: counted as they are, marked estimated, and refused where they are none."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import gonio
from gonio.core.errors import GonioError

X = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
Q = np.random.default_rng(1).standard_normal((60, 8)).astype(np.float32)


def best(A: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Exact lists by cosine, as an index would give them."""
    U, V = (Y / np.linalg.norm(Y, axis=1, keepdims=True) for Y in (A, X))
    S = U @ V.T
    ids = np.argsort(-S, axis=1)[:, :k]
    return ids, np.take_along_axis(S, ids, axis=1)


def test_hubs_are_counted_in_the_lists_that_were_given():
    ids, scores = best(Q, 10)
    ids[:, 9] = 7  # an index that finds one document every time
    c = gonio.check(X, Q, neighbours=(ids, scores))
    found = c["hubs"]
    assert "Estimated" in c["unfound"].says
    counts = Counter(ids.ravel().tolist())
    assert found.value == max(counts.values()) == counts[7]
    assert {x["id"]: x["lists"] for x in found.data["busiest"]} == {str(i): c for i, c in counts.items()}
    assert "estimated" in found.says


def test_exact_lists_tell_what_our_own_do():
    ours, theirs = gonio.check(X, Q)["hubs"], gonio.check(X, Q, neighbours=best(Q, 10))["hubs"]
    assert ours.value == theirs.value
    assert ours.data["busiest"] == theirs.data["busiest"]


def test_a_document_is_left_out_of_its_own_list():
    found = gonio.check(X, neighbours=best(X, 6))["hubs"]
    ids = np.array([[j for j in row if j != i][:5] for i, row in enumerate(best(X, 6)[0])])
    assert found.value == np.bincount(ids.ravel()).max()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (3, "two arrays"),
        ((np.zeros((3, 2), int), np.zeros((3, 2))), "one list for each query"),
        ((np.zeros((60, 2), int), np.zeros((60, 3))), "for both"),
        ((np.full((60, 2), 400), np.zeros((60, 2))), "from 0 to 399"),
        ((np.zeros((60, 2)), np.zeros((60, 2))), "from 0 to 399"),
    ],
)
def test_what_is_no_list_is_refused(given, says):
    with pytest.raises(GonioError, match=says):
        gonio.check(X, Q, neighbours=given)
