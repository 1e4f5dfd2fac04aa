"""The audit of existing factor models: pairs of tables, fitted models, objects of libraries."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gonio
from gonio import GonioError
from gonio.factors import audit, fit, rescale, similar_items
from gonio.papers.simulated_interactions import simulate
from gonio.report import factors as text

data = simulate(400, 60, seed=2)
model = fit(data.X, 5, "product", lam=50.0)


def test_a_pair_is_taken_as_open_and_the_answer_is_the_same_for_every_rescaling():
    a = audit((model.users, model.items), popularity=model.popularity)
    assert a.tables.assumed
    assert "convention" in a.defined
    rng = np.random.default_rng(0)
    moved = rescale(model, np.eye(5) + 0.5 * rng.standard_normal((5, 5)))
    b = audit((moved.users, moved.items))
    assert a.survey.signs == b.survey.signs
    assert a.rank == b.rank == 5
    assert np.array_equal(a.never_first, b.never_first)
    assert np.array_equal(a.never_shown, b.never_shown)
    assert not np.array_equal(a.survey.survival.near, b.survey.survival.near)  # the lists do move


def test_what_is_counted_is_counted_naively_too():
    a = audit(model, k=4)
    S = model.scores()
    shown = np.zeros(60, int)
    for row in S:
        shown[np.argsort(-row)[:4]] += 1
    assert np.array_equal(a.shown, shown)
    assert np.array_equal(a.never_shown, np.flatnonzero(shown == 0))
    from scipy.stats import spearmanr

    rho = spearmanr(np.linalg.norm(model.items, axis=1), model.popularity).statistic
    assert a.norm_popularity == pytest.approx(rho)
    assert a.popularity_known
    plain, back = (similar_items(model, k=4, method=m).near for m in ("cosine", "projected"))
    assert np.allclose(a.moved, [len(set(x) & set(y)) / 4 for x, y in zip(plain, back, strict=True)])
    assert np.allclose(a.survey.overlap["users"], a.moved)
    head = gonio.Head(model.items, link="dot")
    wins = gonio.can_win(head)
    assert np.array_equal(a.never_first, wins.never)
    first = np.unique(S.argmax(axis=1))
    assert not set(first) & set(a.never_first)


def test_where_each_factor_was_penalised_nothing_moves():
    a = audit(fit(data.X, 5, "factors", lam=5.0))
    assert not a.survey.left_open
    assert "unique" in a.defined
    b = audit((model.users, model.items), trained="factors")
    assert not b.tables.assumed
    assert not b.survey.left_open
    c = audit(fit(data.X, 3, link="cosine", steps=20))
    assert c.wins is None
    assert "what was trained" in c.defined
    assert "trained on the cosine" in text.audit(c)


@pytest.mark.parametrize(
    "x",
    [
        SimpleNamespace(user_factors=model.users, item_factors=model.items),
        SimpleNamespace(user_embeddings=model.users, item_embeddings=model.items, item_biases=np.arange(60.0) / 60),
        SimpleNamespace(pu=model.users, qi=model.items, bi=np.zeros(60)),
    ],
    ids=["implicit", "lightfm", "surprise"],
)
def test_objects_of_libraries_are_audited_by_attribute(x):
    a = audit(x, asked=20)
    assert a.tables.trained == "factors"
    assert a.tables.assumed
    assert "library" in text.audit(a)
    if hasattr(x, "item_biases"):
        S = model.scores() + x.item_biases
        assert np.array_equal(a.never_shown, np.setdiff1d(np.arange(60), np.argsort(-S, axis=1)[:, :10]))


def test_a_constant_column_of_the_users_is_named_as_a_bias():
    users = np.column_stack([model.users, np.ones(400)])
    items = np.column_stack([model.items, np.arange(60.0)])
    a = audit((users, items))
    assert a.constant.tolist() == [5]
    assert "column 5 of the users is constant" in text.audit(a)


def test_an_audit_tells_itself():
    a = audit(model)
    assert len(repr(a).splitlines()) == 2
    said = a.to_dict()
    assert said["items"] == 60
    assert said["rescaling"]["left_open"] is True
    columns = a.columns()
    assert {len(c) for c in columns.values()} == {60}
    printed = text.audit(a)
    for word in ("model", "trained", "defined", "signs", "lists", "surviving", "projected", "norms", "first", "shown"):
        assert f"  {word}" in printed


@pytest.mark.parametrize(
    ("x", "kwargs", "said"),
    [
        ((model.users, model.items[:, :3]), {}, "same width"),
        ((model.users, model.items[:1]), {}, "two or more are needed"),
        ((np.zeros((3, 2)), np.ones((3, 2))), {}, "zero vectors"),
        ((np.array([[1.0, 0.0]] * 3), np.array([[0.0, 1.0]] * 3)), {}, "every score"),
        ((model.users, model.items), {"popularity": np.ones(3)}, "one entry per item"),
        ((model.users, model.items), {"k": 0}, "at least 1"),
        (gonio.Head([[1.0, 0], [0, 1]], link="softmax"), {}, "users and items"),
    ],
)
def test_what_cannot_be_audited_is_refused(x, kwargs, said):
    with pytest.raises(GonioError, match=said):
        audit(x, **kwargs)
