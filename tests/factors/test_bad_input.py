"""Bad interactions and settings: one sentence, never a crash; every sparse kind is read."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gonio import GonioError
from gonio.factors import fit
from tests.factors.made import interactions

X = interactions()
KINDS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["array", "matrix"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool])
def test_every_sparse_kind_gives_the_same_model(kind, family, dtype):
    x = getattr(sparse, f"{kind}_{family}")(X.astype(dtype))
    wanted = fit(X, 3, "factors", lam=1.0)
    found = fit(x, 3, "factors", lam=1.0)
    assert np.allclose(found.scores(), wanted.scores(), atol=1e-9)
    assert np.array_equal(found.popularity, (X != 0).sum(axis=0))


def test_entries_given_twice_are_added_and_stored_zeros_are_none():
    rows, columns = np.nonzero(X)
    twice = sparse.coo_array((np.full(2 * len(rows), 0.5), (np.tile(rows, 2), np.tile(columns, 2))), shape=X.shape)
    assert np.allclose(fit(twice, 3, "product", lam=1.0).scores(), fit(X, 3, "product", lam=1.0).scores())
    stored = sparse.csr_array(X)
    stored.data[stored.indptr[4] : stored.indptr[5]] = 0.0
    with pytest.warns(UserWarning, match=r"1 users have no interaction \(4\)"):
        found = fit(stored, 2, "product", lam=1.0)
    assert found.empty_users.tolist() == [4]


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.lil_array])
@pytest.mark.parametrize(("value", "said"), [(-1.0, r"X\[2, 5\] is -1; .* 0 or more"), (np.nan, r"X\[2, 5\] is nan"), (np.inf, r"X\[2, 5\] is inf")])  # fmt: skip
def test_negative_and_missing_numbers_are_named_by_their_place(make, value, said):
    x = X.copy()
    x[2, 5] = value
    with pytest.raises(GonioError, match=said):
        fit(make(x), 2, "product", lam=1.0)
    if value == -1.0:
        assert fit(make(x), 2, "product", lam=1.0, signed=True).objective > 0


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("penalty", ["product", "factors", "dropout"])
@pytest.mark.parametrize("by", ["closed", "als"])
def test_empty_users_and_items_are_kept_and_reported(make, penalty, by):
    x = X.copy()
    x[3] = 0
    x[:, [1, 6]] = 0
    x[~x.any(axis=1), 0] = 1
    x[3] = 0
    with pytest.warns(UserWarning, match="have no interaction") as seen:
        m = fit(make(x), 2, penalty, lam=0.5, by=by)
    assert len(seen) == 2
    assert "2 items have no interaction (1, 6)" in str(seen[1].message)
    assert m.empty_users.tolist() == [3]
    assert m.empty_items.tolist() == [1, 6]
    assert m.shape[:2] == x.shape
    assert not m.items[[1, 6]].any()
    assert not m.users[3].any()
    assert m.to_dict()["empty_items"] == [1, 6]


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"rank": 9}, r"rank 9 was asked of a 30 x 8 table; .* 1 to 8"),
        ({"rank": 0}, "1 to 8"),
        ({"rank": 2.5}, "whole number"),
        ({"rank": True}, "whole number"),
        ({"penalty": "ridge"}, "choose one of 'product', 'factors', 'dropout'"),
        ({"lam": -1.0}, "0 or more"),
        ({"lam": np.nan}, "finite"),
        ({"lam": "much"}, "one number"),
        ({"lam": None}, "has no strength"),
        ({"penalty": "dropout", "lam": None}, "rate"),
        ({"penalty": "dropout", "lam": None, "rate": 1.0}, "strictly between 0 and 1"),
        ({"penalty": "dropout", "rate": 0.5}, "both lam and rate"),
        ({"rate": 0.5, "lam": None}, "belongs to penalty='dropout'"),
        ({"by": "magic"}, "choose one of"),
        ({"link": "softmax"}, "choose one of"),
        ({"labels": ["a"]}, "1 labels were given for 8"),
    ],
)
def test_wrong_settings_are_told_in_one_sentence(kwargs, said):
    settings = {"rank": 2, "penalty": "product", "lam": 1.0} | kwargs
    with pytest.raises(GonioError, match=said) as e:
        fit(X, settings.pop("rank"), settings.pop("penalty"), **settings)
    assert "\n" not in str(e.value)


def test_a_strength_that_removes_everything_says_which_would_not():
    s = np.linalg.svd(X, compute_uv=False)
    with pytest.raises(GonioError, match=rf"removes every dimension.*largest is {s[0]:.6g}.*below {s[2]:.6g} all 3"):
        fit(X, 3, "factors", lam=float(s[0]) + 1)
    some = fit(X, 3, "factors", lam=float(s[1] + s[2]) / 2)
    assert some.survive.tolist() == [0, 1]
    assert not some.items[:, 2].any()
    with pytest.raises(GonioError, match="choose a smaller one"):
        fit(X, 3, "factors", lam=1e6, by="als", steps=50)


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (np.ones(4), "two axes"),
        (np.zeros((3, 4)), "no interaction at all"),
        (np.zeros((0, 4)), "empty"),
        (sparse.csr_array((0, 4)), "at least one"),
        (sparse.csr_array((3, 4)), "no interaction at all"),
        (np.array([["a", "b"]]), "dtype"),
        (sparse.csr_array(np.ones((2, 2), complex)), "real numbers"),
        ([[1, 2], [3]], "rectangular"),
        (None, "dtype"),
        ("X.npz", "dtype"),
    ],
)
def test_what_is_no_table_is_refused(x, said):
    with pytest.raises(GonioError, match=said):
        fit(x, 1, "product", lam=1.0)
