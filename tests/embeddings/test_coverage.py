"""Intervals hold what they say: 95 % means 93 to 97 over a thousand samples."""

from __future__ import annotations

import numpy as np
import pytest

from gonio.embeddings.random_pairs import random_pairs
from gonio.embeddings.sampling_intervals import mean_interval, quantile_interval, share_interval

RUNS = 1000


def held(interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


def test_the_interval_of_a_share_holds_it():
    rng = np.random.default_rng(0)
    got = np.mean([held(share_interval(int(rng.binomial(2000, 0.013)), 2000), 0.013) for _ in range(RUNS)])
    assert 0.93 <= got <= 0.97


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
