"""Remedies are scikit-learn transformers, do what their formulas say, abstain where judges disagree, and save."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from gonio import GonioError, Head
from gonio.core.correlations import spearman
from gonio.core.directions import cosines
from gonio.remedies import (
    REMEDIES,
    Center,
    LengthAsFeature,
    Normalize,
    QueryNormalizer,
    RemoveTopComponents,
    Standardize,
    Whiten,
    load,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((80, 6)) @ rng.standard_normal((6, 6)) + 3
QUERIES = rng.standard_normal((5, 6)) + 1


@parametrize_with_checks([*(R() for R in REMEDIES.values()), Whiten("zca", shrinkage=0.1)])
def test_scikit_learn_s_own_checks_pass(estimator, check):
    import warnings

    name = getattr(check, "func", check).__name__
    if name == "check_array_api_input":
        return  # it looks at arrays of other libraries, which scikit-learn reads only where SCIPY_ARRAY_API is set
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's checks warn of their own doings
        check(estimator)


def test_every_remedy_says_what_is_convention_and_what_it_alters():
    assert len(REMEDIES) == 7
    for R in REMEDIES.values():
        assert len(R.convention) > 5
        assert len(R.alters) > 5


def test_the_formulas_written_again():
    mean = X.mean(axis=0)
    C = np.cov(X.T, bias=True)
    values, axes = np.linalg.eigh(C)
    assert np.allclose(Center().fit(X).transform(QUERIES), QUERIES - mean)
    assert np.allclose(Standardize().fit(X).transform(QUERIES), (QUERIES - mean) / X.std(axis=0))
    zca = Whiten("zca").fit(X).transform(QUERIES)
    assert np.allclose(zca, (QUERIES - mean) @ axes @ np.diag(values**-0.5) @ axes.T)
    pca = Whiten().fit(X).transform(X)
    assert np.allclose(pca.T @ pca / len(X), np.eye(6))
    theirs = PCA(whiten=True).fit(X).transform(QUERIES) * np.sqrt(80 / 79)
    ours = Whiten().fit(X).transform(QUERIES)
    assert np.allclose(np.abs(ours), np.abs(theirs))
    assert np.allclose(Whiten(components=2).fit(X).transform(QUERIES), ours[:, :2])
    shrunk = Whiten(shrinkage=1.0).fit(X).transform(QUERIES)
    assert np.allclose(cosines(shrunk[:-1], shrunk[1:]), cosines(QUERIES[:-1] - mean, QUERIES[1:] - mean))
    top = axes[:, -2:]
    removed = RemoveTopComponents(2).fit(X).transform(QUERIES)
    assert np.allclose(removed, (QUERIES - mean) - (QUERIES - mean) @ top @ top.T)
    assert RemoveTopComponents().fit(rng.standard_normal((40, 300))).components_.shape == (3, 300)  # d / 100
    r = np.linalg.norm(QUERIES, axis=1, keepdims=True)
    assert np.allclose(Normalize().fit(X).transform(QUERIES), QUERIES / r)
    longer = LengthAsFeature(2.0).fit(X).transform(QUERIES)
    assert np.allclose(longer, np.hstack([QUERIES / r, 2 * r / np.median(np.linalg.norm(X, axis=1))]))


def test_query_normalised_scores_are_standardised_cosines():
    U, V = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (QUERIES, X))
    cos = U @ V.T
    expected = (cos - cos.mean(axis=1, keepdims=True)) / cos.std(axis=1, keepdims=True)
    q = QueryNormalizer().fit(X)
    assert np.allclose(q.scores(QUERIES, X), expected)
    assert np.allclose(q.transform(QUERIES) @ q.documents(X).T, expected)
    flat = QueryNormalizer().fit(np.ones((5, 6)))
    assert np.allclose(flat.scores(QUERIES, X), 0)


@pytest.mark.theorem("GONIO.affine")
def test_cosines_after_whitening_survive_every_affine_map():
    M, v = np.eye(6) + 0.5 * rng.standard_normal((6, 6)), rng.standard_normal(6)
    a, b = Whiten().fit_transform(X), Whiten().fit_transform(X @ M.T + v)
    assert np.allclose(cosines(a[:-1], a[1:]), cosines(b[:-1], b[1:]), atol=1e-9)
    few = Whiten().fit(X[:5])
    w = few.transform(X[:5])
    assert np.allclose(cosines(w[:-1], w[1:]), -1 / 4)  # rank n - 1: one cosine for every pair of every data
    assert "all their cosines are equal" in few.caveat_


def test_centring_the_rows_of_a_softmax_head_is_convention_and_dropping_directions_is_not():
    F = rng.standard_normal((20, 6))
    before = Head(X, link="softmax").probabilities(F)
    assert np.allclose(Head(Center().fit_transform(X), link="softmax").probabilities(F), before)
    s = Standardize().fit(X)
    assert np.allclose(Head(s.transform(X), link="softmax").probabilities(F / s.scale_), before)
    dropped = Head(RemoveTopComponents(1).fit_transform(X), link="softmax").probabilities(F)
    assert np.abs(dropped - before).max() > 0.05


def judged(noise: float, loud: float, seed=1):
    """Rows whose first half is what judges heed, and a shared loud direction that they do not."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((150, 12))
    pairs = rng.integers(0, 150, (400, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    y = cosines(Z[pairs[:, 0]], Z[pairs[:, 1]]) + noise * rng.standard_normal(len(pairs))
    rows = Z + loud * rng.standard_normal((150, 1)) * np.eye(12)[0] * 6 + loud
    return rows, pairs, y


def test_a_remedy_that_helps_is_applied_and_one_that_hurts_abstains():
    rows, pairs, y = judged(0.1, 1.0)
    good = RemoveTopComponents(1).fit(rows, pairs=pairs, judgements=y)
    assert not good.abstained_
    assert good.after_ > good.before_ + 0.1
    assert good.reason_.startswith("applied: on ")
    assert not np.allclose(good.transform(rows), rows)
    rows, pairs, y = judged(0.1, 0.0)
    bad = RemoveTopComponents(6).fit(rows, pairs=pairs, judgements=y)
    assert bad.abstained_
    assert bad.after_ < bad.before_
    assert bad.reason_.startswith("abstained: on ")
    assert np.array_equal(bad.transform(rows), rows)
    assert list(bad.get_feature_names_out()) == [f"x{i}" for i in range(12)]
    assert not RemoveTopComponents(6, confidence=0.0).fit(rows, pairs=pairs, judgements=y).abstained_


def test_the_check_is_held_out():
    """Fitted on the judged rows themselves, whitening of few rows would look good or bad by memory; it must not."""
    rows, pairs, y = judged(0.1, 1.0)
    seen = []

    class _Spy(Center):
        def _fit(self, X):
            seen.append(len(X))
            super()._fit(X)

    _Spy().fit(rows, pairs=pairs[:60], judgements=y[:60])
    assert len(seen) == 6
    assert all(n < 150 for n in seen[:5])
    assert seen[5] == 150


def test_judges_who_say_nothing_make_it_abstain():
    rows, pairs, _ = judged(0.0, 0.0)
    noise = np.random.default_rng(4).standard_normal(len(pairs))
    seeds = [np.random.default_rng(s).standard_normal(len(pairs)) for s in range(10)]
    assert sum(Whiten().fit(rows, pairs=pairs, judgements=y).abstained_ for y in seeds) >= 7
    q = QueryNormalizer(confidence=1.0).fit(rows, pairs=pairs, judgements=noise)
    assert q.abstained_
    assert np.allclose(
        q.scores(rows[:3], rows[:4]), [[cosines(a[None], b[None])[0] for b in rows[:4]] for a in rows[:3]]
    )
    assert not Normalize().fit(rows, pairs=pairs, judgements=noise).abstained_
    assert Center().fit(0 * rows, pairs=pairs, judgements=noise).reason_.startswith("abstained: only 0 of")


@pytest.mark.parametrize("name", REMEDIES)
def test_a_fit_is_saved_and_applied_to_queries(name, tmp_path):
    for dtype in (np.float64, np.float32):
        fitted = REMEDIES[name]().fit(X.astype(dtype))
        path = fitted.save(tmp_path / name)
        assert path.suffix == ".npz"
        again = load(path)
        assert type(again) is type(fitted)
        q = QUERIES.astype(dtype)
        assert np.array_equal(again.transform(q), fitted.transform(q))
        assert again.transform(q).dtype == dtype
        assert again.get_params() == fitted.get_params()
        assert list(again.get_feature_names_out()) == list(fitted.get_feature_names_out())
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(QUERIES), fitted.transform(QUERIES))
    assert clone(fitted).get_params() == fitted.get_params()


def test_an_abstention_is_saved_too(tmp_path):
    rows, pairs, y = judged(0.1, 0.0)
    bad = RemoveTopComponents(6).fit(rows, pairs=pairs, judgements=y)
    again = load(bad.save(tmp_path / "x.npz"))
    assert again.abstained_
    assert again.reason_ == bad.reason_
    assert np.array_equal(again.transform(rows), rows)


def test_remedies_chain_and_name_their_columns():
    chain = make_pipeline(Center(), LengthAsFeature())
    assert chain.fit_transform(X).shape == (80, 7)
    assert list(chain.get_feature_names_out())[-1] == "length"
    assert list(Whiten(components=2).fit(X).get_feature_names_out()) == ["whiten0", "whiten1"]
    assert list(QueryNormalizer().fit(X).get_feature_names_out())[-1] == "offset"


def test_degenerate_rows_have_defined_answers():
    flat = X.copy()
    flat[:, 2] = 0.1
    assert np.allclose(Standardize().fit_transform(flat)[:, 2], 0)
    assert Whiten().fit(flat).components_.shape == (5, 6)
    for R in REMEDIES.values():
        for rows in (np.zeros((3, 4)), np.ones((3, 4)), X[:1], X[:, :1], np.vstack([X, X])):
            out = R().fit(rows).transform(rows)
            assert np.isfinite(out).all(), R
            assert len(out) == len(rows)
    assert Whiten().fit(np.ones((3, 4))).caveat_ == "all rows were equal: nothing is left"
    assert np.allclose(Normalize().fit_transform([[0, 0], [3e300, 4e300]]), [[0, 0], [0.6, 0.8]])
    assert np.isnan(spearman(np.ones(4), np.arange(4)))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: Center().fit([[1.0, np.nan]]), "NaN"),
        (lambda: Center().fit([1.0, 2]), "Expected 2D"),
        (lambda: Center().fit(X).transform(X[:, :3]), "3 features, but Center is expecting 6"),
        (lambda: Whiten(components=9).fit(X), "1 to 6 can be kept"),
        (lambda: Whiten(kind="ica").fit(X), "choose 'pca' or 'zca'"),
        (lambda: Whiten(shrinkage=2).fit(X), "from 0 to 1"),
        (lambda: RemoveTopComponents(7).fit(X), "0 to 6 can be removed"),
        (lambda: Center().fit(X, pairs=[[0, 1]]), "give both"),
        (lambda: Center().fit(X, pairs=[[0, 1]] * 12, judgements=[1.0] * 11), "one entry per pair"),
        (lambda: Center().fit(X, pairs=[[0, 1]] * 3, judgements=[1.0, 2, 3]), "at least 10"),
        (lambda: Center().fit(X, pairs=[[0, 80]] * 12, judgements=range(12)), "rows 0 to 79"),
        (lambda: Center().fit(X, pairs=[[0, 1]] * 12, judgements=[1.0] * 12), "some must differ"),
        (lambda: Center().fit(X, pairs=[[0.5, 1]] * 12, judgements=range(12)), "whole numbers"),
        (lambda: Center(confidence=3).fit(X, pairs=[[0, 1]] * 12, judgements=range(12)), "from 0 to 1"),
        (lambda: load("nowhere.npz"), "not a saved remedy"),
    ],
)
def test_bad_input_gets_one_sentence(ask, said):
    with pytest.raises(GonioError, match=said) as e:
        ask()
    assert "\n" not in str(e.value)


def test_damaged_files_get_one_sentence(tmp_path):
    path = Whiten().fit(X).save(tmp_path / "w.npz")
    whole = path.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:cut])
        with pytest.raises(GonioError, match="not a saved remedy"):
            load(path)
    np.savez(path, about=np.array("{}"))
    with pytest.raises(GonioError, match="not a saved remedy"):
        load(path)
