"""The figures of a head against naive ones."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import Head
from gonio.core.head_summary import profile

rng = np.random.default_rng(0)


def cases():
    full = rng.standard_normal((400, 20))
    yield "full rank", full
    yield "few rows", full[:9]
    yield "one row", full[:1]
    yield "one column", full[:, :1]
    yield "low rank", rng.integers(-3, 4, (400, 7)) @ rng.integers(-3, 4, (7, 20))
    yield "low rank, late", np.vstack([np.repeat(full[:5], 100, axis=0), full[:3]])
    late = np.zeros((900, 20))
    late[899] = full[0]
    yield "one row that is not zero", late
    yield "zero", np.zeros((30, 4))
    yield "affine subspace", np.column_stack([full[:, :19], np.ones(400)])
    yield "tiny", full * 1e-200
    yield "huge", full * 1e200


@pytest.mark.parametrize(("name", "W"), list(cases()), ids=lambda x: x if isinstance(x, str) else "")
def test_rank_is_that_of_numpy(name, W):
    p = profile(Head(W, link="softmax"))
    scale = max(1e-300, np.abs(W).max())
    assert p.rank == np.linalg.matrix_rank(W / scale)
    centred = W / scale - (W / scale).mean(axis=0)
    assert p.rank_differences == np.linalg.matrix_rank(centred, tol=1e-10 * np.sqrt(W.size))


def test_norm_quantiles_are_those_of_numpy():
    W = rng.standard_normal((101, 3))
    assert np.allclose(
        profile(Head(W, link="softmax")).quantiles, np.quantile(np.linalg.norm(W, axis=1), [0, 0.25, 0.5, 0.75, 1])
    )
