"""Factor models: a pair of tables, and the objects of recommender libraries."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gonio
from gonio import GonioError, Observed

rng = np.random.default_rng(0)
users, items = rng.standard_normal((20, 4)).astype(np.float32), rng.standard_normal((7, 4)).astype(np.float32)


def test_a_pair_is_a_dot_head_over_the_items(tmp_path):
    np.save(tmp_path / "u.npy", users)
    np.save(tmp_path / "i.npy", items)
    for x in ((users, items), (tmp_path / "u.npy", tmp_path / "i.npy"), (str(tmp_path / "u.npy"), items)):
        head = gonio.load(x)
        assert head.link == "dot"
        assert head.inputs == Observed(users)
        assert np.allclose(head.logits(users), users @ items.T)
        assert head.trained == "product"
        assert "trained" in head.source.assumed


@pytest.mark.parametrize(
    ("model", "bias"),
    [
        (SimpleNamespace(user_factors=users, item_factors=items), None),
        (SimpleNamespace(user_embeddings=users, item_embeddings=items, item_biases=np.arange(7.0)), np.arange(7.0)),
        (SimpleNamespace(pu=users, qi=items, bi=np.arange(7.0)), np.arange(7.0)),
        (SimpleNamespace(user_factors=SimpleNamespace(to_numpy=lambda: users), item_factors=SimpleNamespace(to_numpy=lambda: items)), None),
    ],
    ids=["implicit", "lightfm", "surprise", "on a GPU"],
)  # fmt: skip
def test_recommender_libraries_are_known_by_their_attributes(model, bias):
    head = gonio.load(model)
    assert np.array_equal(head.W, items)
    assert head.trained == "factors"
    assert (head.bias is None) == (bias is None)
    assert bias is None or np.array_equal(head.bias, bias)


def test_factors_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(GonioError, match="the same width"):
        gonio.load((users, items[:, :3]))
    with pytest.raises(GonioError, match=r"no file .* for the users"):
        gonio.load((tmp_path / "none.npy", items))
    with pytest.raises(GonioError, match="two axes"):
        gonio.load((users[0], items))
    with pytest.raises(GonioError, match="fit it first"):
        gonio.load(SimpleNamespace(user_factors=None, item_factors=None))
