"""Intervals hold what they say: 95 % means 93 to 97 over a thousand samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

from gonio.embeddings import paired_comparison
from gonio.embeddings.judged_thresholds import best_f1, scored_pairs
from gonio.embeddings.paired_comparison import compare_paired
from gonio.embeddings.random_pairs import random_pairs
from gonio.embeddings.sampling_intervals import mean_interval, quantile_interval, share_interval, share_of_many

RUNS = 1000


def held(interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


def test_the_interval_of_a_share_holds_it():
    rng = np.random.default_rng(0)
    got = np.mean([held(share_interval(int(rng.binomial(2000, 0.013)), 2000), 0.013) for _ in range(RUNS)])
    assert 0.93 <= got <= 0.97


def test_the_interval_of_the_busiest_of_many_documents_holds_its_share():
    """The document in most of the sampled lists was picked by looking; its share in all lists is below that one."""
    rng = np.random.default_rng(7)
    shares = np.full(500, 0.02)
    counts = rng.binomial(200, shares, (RUNS, 500)).max(axis=1)
    assert np.mean([held(share_of_many(int(c), 200, 500), 0.02) for c in counts]) >= 0.95
    assert np.mean([held(share_interval(int(c), 200), 0.02) for c in counts]) < 0.3  # one of Wilson's would not do
    for count in (0, 3, 200):
        x = share_of_many(count, 200, 500)
        assert count == 0 or binom.sf(count - 1, 200, x.low) == pytest.approx(0.05 / 1000)
        assert count == 200 or binom.cdf(count, 200, x.high) == pytest.approx(0.05 / 1000)


def test_the_interval_of_a_quantile_holds_it():
    rng = np.random.default_rng(1)
    truth = 2.3263478740408408
    got = np.mean([held(quantile_interval(rng.standard_normal(5000), 0.99), truth) for _ in range(RUNS)])
    assert 0.93 <= got <= 0.97


def test_the_interval_of_a_mean_recall_holds_it():
    rng = np.random.default_rng(2)
    lists = rng.beta(2, 1, 50_000)  # how much of its list each row of a table keeps
    shares = rng.binomial(10, lists) / 10
    truth = float(shares.mean())
    got = np.mean(
        [held(mean_interval(rng.choice(shares, 200, replace=False), bounds=(0, 1)), truth) for _ in range(RUNS)]
    )
    assert 0.93 <= got <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("with_queries", [True, False])
def test_rates_and_thresholds_of_sampled_tables_hold_those_of_the_whole(with_queries):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3000, 8)).astype(np.float32)
    Q = rng.standard_normal((500, 8)).astype(np.float32) if with_queries else None
    U, V = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, X if Q is None else Q))
    every = V @ U.T if with_queries else (V @ U.T)[np.triu_indices(len(X), 1)]
    share, at = float((every >= 0.5).mean()), float(np.quantile(every, 0.99))
    shares, quantiles = [], []
    for seed in range(RUNS):
        some = X[rng.choice(3000, 1500, replace=False)]
        pairs = random_pairs(some, Q, "cosine", whole=False, seed=seed)
        shares.append(held(pairs.share_above(0.5), share))
        quantiles.append(held(pairs.threshold_at(0.01), at))
    assert 0.93 <= np.mean(shares) <= 0.97
    assert 0.93 <= np.mean(quantiles) <= 0.97


def shifted(rng, queries: int = 100, each: int = 20):
    """Scores of pairs, a fifth of them relevant and two higher, each query with a shift of its own."""
    query = np.repeat(np.arange(queries), each)
    relevant = rng.random(len(query)) < 0.2
    return rng.standard_normal(len(query)) + 2 * relevant + 0.5 * rng.standard_normal(queries)[query], relevant, query


def best_of_shifted() -> float:
    t = np.linspace(-1, 4, 50_001)
    found = 0.2 * norm.sf((t - 2) / np.sqrt(1.25))
    listed = found + 0.8 * norm.sf(t / np.sqrt(1.25))
    return float(t[np.argmax(2 * found / (listed + 0.2))])


@pytest.mark.slow
@pytest.mark.parametrize("law", ["uniform", "shifted"])
def test_the_range_of_the_best_f1_holds_the_best_threshold_of_the_population(law):
    """The promise of the range: the threshold of the best F1 over all queries there are lies in it, 95 times of 100."""
    truth = (3 - np.sqrt(5)) / 2 if law == "uniform" else best_of_shifted()  # (1 - T^2) / (1.5 - T) is largest there
    got = 0
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        if law == "uniform":
            score = rng.random(3000)
            pairs = score, rng.random(3000) < score, rng.integers(0, 150, 3000)
        else:
            pairs = shifted(rng)
        got += held(best_f1(scored_pairs(*pairs), seed=seed).threshold, truth)
    assert 0.93 <= got / RUNS <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(("law", "queries"), [("few change", 225), ("skewed", 225), ("normal", 225), ("normal", 40)])
def test_the_interval_of_a_paired_difference_holds_it(law, queries, monkeypatch):
    monkeypatch.setattr(
        paired_comparison, "RESAMPLES", 999
    )  # a fifth of what a check draws: a thousand samples are many
    rng = np.random.default_rng(4)
    got = 0
    for seed in range(RUNS):
        if law == "few change":  # most queries keep their list, as under a mild remedy
            d, truth = np.where(rng.random(queries) < 0.3, rng.beta(1, 3, queries) - 0.15, 0), 0.03
        elif law == "skewed":
            d, truth = rng.exponential(1, queries), 1.0
        else:
            d, truth = rng.normal(0.05, 0.2, queries), 0.05
        got += held(compare_paired(np.zeros(queries), {"other": d}, seed=seed)[0].difference, truth)
    assert 0.93 <= got / RUNS <= 0.97
