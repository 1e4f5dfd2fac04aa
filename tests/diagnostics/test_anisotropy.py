"""Anisotropy and concentration: against naive writings, published values, and degenerate rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from gonio import GonioError, Head
from gonio.diagnostics import anisotropy, concentration, isoscore
from gonio.gauge import Translation
from tests.strategies import heads


@pytest.mark.theorem("RUD22.iso")
@pytest.mark.parametrize(("m", "d"), [(1, 2), (1, 10), (3, 10), (7, 10), (10, 10), (100, 768)])
def test_m_of_d_equal_axes_have_isoscore_m_minus_1_over_d_minus_1(m, d):
    assert isoscore(np.r_[np.full(m, 2.5), np.zeros(d - m)]) == pytest.approx((m - 1) / (d - 1), abs=1e-12)


def naive(W):
    n, d = W.shape
    U = W / np.linalg.norm(W, axis=1, keepdims=True)
    C = U @ U.T
    S = np.sort(np.linalg.eigvalsh(np.cov(W.T, bias=True)))[::-1]
    hat = np.sqrt(d) * S / np.sqrt((S**2).sum())
    delta = np.sqrt(((hat - 1) ** 2).sum()) / np.sqrt(2 * (d - np.sqrt(d)))
    phi = (d - delta**2 * (d - np.sqrt(d))) ** 2 / d**2
    E = np.linalg.eigh(W.T @ W)[1].T
    Z = [np.exp(s * W @ e).sum() for e in E for s in (1, -1)]
    p = S / S.sum()
    return {
        "mean_cosine": np.mean([C[i, j] for i in range(n) for j in range(n) if i != j]),
        "mean_share": (W.mean(axis=0) ** 2).sum() / (W**2).sum(axis=1).mean(),
        "top_share": S[0] / S.sum(),
        "isoscore": (d * phi - 1) / (d - 1),
        "partition_ratio": min(Z) / max(Z),
        "effective_rank": np.exp(-sum(x * np.log(x) for x in p if x > 0)),
    }


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_every_number_is_that_of_a_naive_writing(offset):
    W = np.random.default_rng(0).standard_normal((60, 8)) * np.linspace(0.2, 1.5, 8) + offset
    r = anisotropy(Head(W, link="softmax"))
    for name, value in naive(W).items():
        assert getattr(r, name) == pytest.approx(value, rel=1e-9), name
    assert r.spectrum.sum() == pytest.approx(1)
    assert (np.diff(r.spectrum) <= 0).all()


def test_blocks_do_not_matter():
    W = np.random.default_rng(1).standard_normal((9000, 5)).astype(np.float32) + 3
    r, whole = anisotropy(Head(W, link="softmax")), np.linalg.eigvalsh(np.cov(W.T.astype(float), bias=True))
    assert r.top_share == pytest.approx(whole[-1] / whole.sum(), rel=1e-9)
    E = np.linalg.eigh(W.T.astype(float) @ W)[1]
    Z = np.concatenate([np.exp(W @ E).sum(axis=0), np.exp(-W @ E).sum(axis=0)])
    assert r.partition_ratio == pytest.approx(Z.min() / Z.max(), rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(heads(links=("softmax", "dot")))
def test_shares_are_shares_and_what_is_about_the_mean_ignores_a_translation(head):
    r = anisotropy(head)
    assert -1 <= np.nan_to_num(r.mean_cosine) <= 1 + 1e-12
    assert 0 <= np.nan_to_num(r.mean_share) <= 1 + 1e-12
    assert 0 <= r.partition_ratio <= 1
    assert r.effective_rank <= head.shape[1] + 1e-9
    moved = anisotropy(Translation(np.full(head.shape[1], 7.0)).apply(head))
    for name in ("top_share", "isoscore", "effective_rank"):
        assert getattr(moved, name) == pytest.approx(getattr(r, name), abs=1e-6, nan_ok=True)
    assert bool(r.convention) == (head.link == "softmax")


def test_a_common_vector_raises_mean_cosine_and_is_called_convention_for_a_softmax():
    W = np.random.default_rng(2).standard_normal((500, 10)) + 2
    r = anisotropy(Head(W, link="softmax"))
    assert r.mean_cosine > 0.7
    assert "convention" in r.explain()
    assert "convention" not in anisotropy(Head(W, link="sigmoid")).explain()


def test_equal_rows_and_zero_rows_have_defined_answers():
    r = anisotropy(Head(np.ones((5, 3)), link="softmax"))
    assert r.mean_cosine == pytest.approx(1)
    assert r.effective_rank == 0
    assert np.isnan(r.isoscore)
    assert np.isnan(r.top_share)
    assert "equal" in r.explain()
    zero = anisotropy(Head(np.zeros((5, 3)), link="softmax"))
    assert np.isnan(zero.mean_cosine)
    assert np.isnan(zero.mean_share)
    assert zero.to_dict()["mean_cosine"] is None
    assert np.isnan(anisotropy(Head([[1.0], [2.0]], link="softmax")).isoscore)


def test_gaussian_rows_concentrate_as_their_width_says():
    for d in (8, 64):
        r = concentration(Head(np.random.default_rng(3).standard_normal((2000, d)), link="softmax"))
        assert r.relative_variance == pytest.approx(1 / (2 * d), rel=0.1)
        assert r.relative_variance == pytest.approx(r.random_relative_variance, rel=0.1)
        assert r.like_dimension == pytest.approx(d, rel=0.1)


def test_low_rank_rows_concentrate_less_than_random_ones():
    rng = np.random.default_rng(4)
    r = concentration(Head(rng.standard_normal((1000, 3)) @ rng.standard_normal((3, 200)), link="softmax"))
    assert r.like_dimension < 6
    assert r.relative_variance > 10 * r.random_relative_variance


def test_concentration_of_equal_rows_is_undefined_and_bad_input_refused():
    assert np.isnan(concentration(Head(np.ones((5, 3)), link="softmax")).relative_variance)
    assert np.isnan(concentration(Head(np.zeros((5, 3)), link="softmax")).cosine_spread)
    with pytest.raises(GonioError, match="one label"):
        concentration(Head([[1.0]], link="softmax"))
    with pytest.raises(GonioError, match="pairs is 1"):
        concentration(Head(np.eye(3), link="softmax"), pairs=1)
