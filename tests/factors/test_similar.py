"""Similar items: projecting back without the users x items matrix, lists in blocks, and what survives rescaling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import GonioError, Head, Observed
from gonio.factors import fit, rescale, similar_items, survey
from gonio.factors.rescaling_survey import signs, survival
from gonio.factors.similar import lists, vectors
from gonio.gauge.factor_ranges import item_item
from gonio.papers.simulated_interactions import simulate
from tests.factors.made import cosines, interactions

X = interactions(60, 20, seed=4)


def naive_lists(C, k):
    C = C.copy()
    np.fill_diagonal(C, -np.inf)
    return np.argsort(-np.round(C, 12), axis=1, kind="stable")[:, :k]


@pytest.mark.theorem("GONIO.projected")
def test_projected_back_is_the_cosine_of_columns_and_of_the_logit_second_moment():
    model = fit(X, 4, "product", lam=3.0)
    S = X @ model.A @ model.items.T  # the matrix that is never formed
    wanted = cosines(S.T)
    assert np.allclose(cosines(vectors(model.users, model.items, "projected")), wanted, atol=1e-12)
    moment = sum(np.outer(f, f) for f in model.users) / len(X)  # E[f f'] of the user embeddings
    second = model.items @ moment @ model.items.T  # E[logit_i logit_j]
    size = np.sqrt(np.diag(second))
    assert np.allclose(second / np.outer(size, size), wanted, atol=1e-12)
    # and it is the plain cosine of the choice  V_k s/(1 + lam/s^2)
    s = model.singular
    V = model.items * np.sqrt(1 + 3.0 / s**2)
    assert np.allclose(cosines(V * s / (1 + 3.0 / s**2)), wanted, atol=1e-10)
    assert np.allclose(cosines(rescale(model, "users").items), wanted, atol=1e-10)


@settings(deadline=None)
@given(seed=st.integers(0, 1000), penalty=st.sampled_from(["product", "dropout"]))
def test_projected_lists_are_the_same_for_every_answer_of_the_training(seed, penalty):
    model = fit(X, 4, penalty, lam=3.0)
    rng = np.random.default_rng(seed)
    moved = rescale(model, np.exp(rng.standard_normal(4)))
    a, b = similar_items(model, k=5), similar_items(moved, k=5)
    assert np.allclose(a.cosines, b.cosines, atol=1e-9)
    assert np.mean(a.near == b.near) > 0.95  # equal cosines may change places by rounding


def test_lists_are_those_of_all_pairs():
    model = fit(X, 4, "product", lam=3.0)
    for method in ("cosine", "projected"):
        V = vectors(model.users, model.items, method)
        C = cosines(V)
        found = similar_items(model, k=6, method=method)
        assert np.array_equal(found.near, naive_lists(C, 6))
        assert np.allclose(found.cosines, np.take_along_axis(C, found.near, 1), atol=1e-12)
    one = similar_items(model, 3, k=6)
    assert np.array_equal(one.near[0], similar_items(model, k=6).near[3])
    some = similar_items(model, [7, 3], k=6)
    assert np.array_equal(some.near[1], one.near[0])
    assert similar_items(model, k=2).determined
    assert not similar_items(model, k=2, method="cosine").determined
    assert similar_items(fit(X, 4, "factors", lam=1.0), k=2, method="cosine").determined
    assert len(some.columns()["item"]) == 12
    assert len(repr(some).splitlines()) == 2
    assert some.to_dict()["near"][1] == one.near[0].tolist()


def test_items_are_known_by_name():
    model = fit(X, 4, "product", lam=3.0, labels=[f"film {i}" for i in range(20)])
    assert np.array_equal(similar_items(model, "film 3", k=4).near, similar_items(model, 3, k=4).near)
    assert similar_items(model, "film 3", k=1).columns()["item"] == ["film 3"]


def test_wrong_questions_are_refused():
    model = fit(X, 4, "product", lam=3.0)
    for kwargs, said in (
        ({"k": 20}, "1 to 19"),
        ({"k": 0}, "1 to 19"),
        ({"k": True}, "1 to 19"),
        ({"method": "euclid"}, "choose one of"),
        ({"items": []}, "no item was named"),
        ({"items": [33]}, "out of range"),
    ):
        with pytest.raises(GonioError, match=said):
            similar_items(model, **kwargs)


def test_equal_cosines_are_ordered_by_item():
    V = np.ones((6, 2))
    assert lists(V, 3)[0].tolist()[:2] == [[1, 2, 3], [0, 2, 3]]


@settings(deadline=None)
@given(seed=st.integers(0, 500))
def test_signs_of_all_pairs_are_those_of_their_ranges(seed):
    rng = np.random.default_rng(seed)
    items = rng.integers(-2, 3, (7, 3)) * rng.choice([1.0, 0.3], (7, 3))
    items = items[items.any(axis=1)]
    if len(items) < 2:
        return
    count = {"either": 0, "positive": 0, "negative": 0, "never": 0}
    for i in range(len(items)):
        for j in range(i):
            r = item_item(items[i], items[j])
            plus, minus = r.high > 0, r.low < 0
            count["either" if plus and minus else "positive" if plus else "negative" if minus else "never"] += 1
    found = signs(items)
    assert found.pairs == len(items) * (len(items) - 1) // 2
    for name, wanted in count.items():
        assert getattr(found, name) * found.pairs == pytest.approx(wanted)


def test_what_is_proven_to_survive_survives_and_what_is_refuted_was_moved():
    rng = np.random.default_rng(1)
    # two rays of multiples, all positive against all negative: their lists cannot move
    ray = np.array([1.0, 2.0, 0.5])
    items = np.vstack([ray * c for c in (1, 2, 3)] + [-ray * c for c in (1, 2, 3)] + [rng.standard_normal((6, 3))])
    near = lists(items, 2)[0]
    found = survival(items, near, np.arange(12))
    assert found.proven[:6].all()
    assert found.whole_lists >= 6
    assert not (found.proven & found.refuted).any()
    for _ in range(200):
        moved = items * np.exp(2 * rng.standard_normal(3))
        C = cosines(moved)
        np.fill_diagonal(C, -np.inf)
        last = np.sort(C, axis=1)[:, -2]
        inside = np.take_along_axis(C, near, 1) >= last[:, None] - 1e-9
        assert inside[found.proven].all()
    assert found.refuted[6:].any()


def test_survey_of_a_model_and_of_one_that_leaves_nothing_open():
    s = survey(fit(X, 4, "product", lam=3.0), k=5)
    assert s.left_open
    assert s.signs.either > 0.5
    assert set(s.overlap) == {"items", "balanced", "users"}
    assert len(repr(s).splitlines()) == len(repr(s.survival).splitlines()) == 2
    model = fit(X, 4, "product", lam=3.0)
    kept = [len(set(a) & set(b)) / 5 for a, b in zip(
        similar_items(model, k=5, method="cosine").near, similar_items(model, k=5).near, strict=True)]  # fmt: skip
    assert np.allclose(s.overlap["users"], kept)  # users orthonormal is projecting back
    fixed = survey(fit(X, 4, "factors", lam=1.0), k=5)
    assert not fixed.left_open
    assert fixed.survival.proven.all()
    assert fixed.signs.either == 0
    assert s.to_dict()["either_sign"] == s.signs.either
    few = survey(fit(X, 4, "product", lam=3.0), k=5, asked=7)
    assert len(few.survival.asked) == 7


def test_a_pair_a_head_and_a_fitted_model_give_the_same_lists(tmp_path):
    model = fit(simulate(200, 30, seed=1).X, 4, "product", lam=10.0)
    np.save(tmp_path / "u.npy", model.users)
    np.save(tmp_path / "i.npy", model.items)
    wanted = similar_items(model, [0, 7], k=5)
    for other in (
        (model.users, model.items),
        (tmp_path / "u.npy", tmp_path / "i.npy"),
        model.head(),
        Head(model.items, link="dot", inputs=Observed(model.users)),
    ):
        found = similar_items(other, [0, 7], k=5)
        assert np.array_equal(found.near, wanted.near)
        assert np.allclose(found.cosines, wanted.cosines)
        assert found.determined
    scores = model.users @ model.items.T + np.arange(30.0)
    biased = Head(model.items, np.arange(30.0), link="dot", inputs=Observed(model.users))
    unit = scores / np.linalg.norm(scores, axis=0)
    true = np.argsort(-np.delete((unit.T @ unit)[0], 0))[:5] + 1
    assert set(similar_items(biased, 0, k=5).near[0]) == set(true)
    with pytest.raises(GonioError, match="users and items"):
        similar_items(Head(np.eye(3), link="softmax"))
