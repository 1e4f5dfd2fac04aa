"""The strongest rivals of directions: found by bytes first they are those found in floats, and none is missed."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import AllInputs
from gonio.core import byte_products, byte_rows
from gonio.core.blas_pool import BlasPool
from gonio.search.cone import pose
from gonio.search.rival_scan import RivalScan
from gonio.search.whitening import prepare


def rows(kind: str, n: int = 5000, d: int = 70) -> np.ndarray:
    rng = np.random.default_rng(4)
    W = rng.standard_normal((n, d))
    if kind == "lengths":
        W *= np.exp(rng.normal(0, 0.8, (n, 1)))
    if kind == "near":  # rows that bytes do not tell apart
        W = np.repeat(W[: n // 10], 10, axis=0) + 1e-4 * rng.standard_normal((n, d))
    if kind == "uneven":  # one large entry a row: its bytes say little of the rest
        W[np.arange(n), rng.integers(0, d, n)] *= 30
    return W


@pytest.mark.parametrize("by_leading", [False, True])
@pytest.mark.parametrize("kind", ["plain", "lengths", "near", "uneven"])
def test_bytes_first_find_what_floats_find(kind, by_leading, monkeypatch):
    monkeypatch.setattr(byte_products, "are_fast", lambda: True)
    monkeypatch.setattr(byte_rows, "ENOUGH", 0)
    rng = np.random.default_rng(5)
    with BlasPool() as workers:
        space = prepare(pose(AllInputs().reduce(rows(kind))), workers)
        scan = RivalScan(space, workers, lambda: None, None)
        asked = rng.permutation(len(space.V))[:90]
        own = np.column_stack([asked, rng.permutation(len(space.V))[:90]])
        X = space.V[asked] + 0.3 * rng.standard_normal((90, space.rank))
        X32 = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
        score = X32.astype(np.float64) @ space.V.T
        off = 4 * space.coarse  # of a score in float32
        for share, room in ((1.0, 24), (0.7, 8), (0.2, 40)):
            floor = (share * score[np.arange(90), asked]).astype(np.float32)
            assert space.bytes is not None
            found = scan.among_all(X32, floor, own, room, by_leading=by_leading)
            with monkeypatch.context() as plain:
                plain.setitem(space.__dict__, "bytes", None)
                expected = scan.among_all(X32, floor, own, room, by_leading=by_leading)
            for k in range(90):
                others = np.delete(np.arange(len(space.V)), own[k])
                above = others[score[k, others] > floor[k] + off]
                # All that is clearly above the floor is counted, and what is kept is the same in both.
                assert min(found[1][k], room + 1) >= min(len(above), room + 1)
                kept = found[0][k, : min(found[1][k], room)]
                assert set(expected[0][k, : min(expected[1][k], room)]) == set(kept) or kind == "near"
                assert (score[k, kept] > floor[k] - off).all()
                assert not set(kept) & set(own[k])
