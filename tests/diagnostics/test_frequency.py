"""Norms and frequency: planted effects are found with their size, absent ones are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gonio import GonioError, Head
from gonio.diagnostics import frequency_agreement, frequency_bias, norms, slope_on_frequency
from gonio.diagnostics.frequency_deciles import best_threshold


def planted(slope_senses=0.0, n=4000, seed=0):
    """Cosines that fall by .0135 a doubling of frequency, and by a further effect of senses that go with frequency."""
    rng = np.random.default_rng(seed)
    f = rng.uniform(4, 24, n)
    senses = 0.2 * f + rng.standard_normal(n)
    form = rng.integers(0, 2, n).astype(float)
    cos = 0.9 - 0.0135 * f + slope_senses * senses + 0.05 * form + 0.1 * rng.standard_normal(n)
    return cos, f, senses, form


def test_the_regression_is_that_of_the_normal_equations():
    cos, f, senses, form = planted(-0.02)
    r = slope_on_frequency(cos, f, controls={"senses": senses, "same form": form})
    for m, fit in enumerate(r.fits):
        X = np.column_stack([np.ones(len(f)), f, senses, form][: m + 2])
        beta = np.linalg.solve(X.T @ X, X.T @ cos)
        rest = cos - X @ beta
        error = np.sqrt(rest @ rest / (len(f) - X.shape[1]) * np.linalg.inv(X.T @ X)[1, 1])
        assert fit.slope == pytest.approx(beta[1], rel=1e-9)
        assert fit.error == pytest.approx(error, rel=1e-9)
        assert fit.t == pytest.approx(beta[1] / error, rel=1e-9)
        assert fit.r_squared == pytest.approx(1 - rest @ rest / ((cos - cos.mean()) ** 2).sum(), rel=1e-9)
    simple = stats.linregress(f, cos)
    assert r.slope == pytest.approx(simple.slope)
    assert r.pearson == pytest.approx(simple.rvalue)


def test_a_planted_slope_is_found_and_controls_take_away_what_is_theirs():
    cos, f, senses, form = planted(-0.03)
    r = slope_on_frequency(cos, f, controls={"senses": senses, "same form": form})
    assert r.slope == pytest.approx(-0.0135 - 0.03 * 0.2, abs=0.001)
    assert r.controlled_slope == pytest.approx(-0.0135, abs=0.001)
    assert "less alike" in r.explain()
    none = slope_on_frequency(np.random.default_rng(1).standard_normal(500), f[:500])
    assert "no trend" in none.explain()


def test_a_head_whose_frequent_rows_spread_shows_the_bias_of_zhou():
    rng = np.random.default_rng(2)
    counts = np.exp2(rng.uniform(1, 14, 600))
    common = rng.standard_normal(32)
    W = common + (0.1 * np.log2(counts))[:, None] * rng.standard_normal((600, 32))
    r = frequency_bias(Head(W, link="softmax"), counts)
    assert r.slope < 0
    assert r.p == 0.001
    assert r.norm_correlation == pytest.approx(stats.spearmanr(np.linalg.norm(W, axis=1), counts)[0])
    flat = frequency_bias(Head(rng.standard_normal((600, 32)), link="softmax"), counts)
    assert flat.p > 0.05


def heads_and_frequencies(runs, bias):
    """Small heads whose frequent rows spread by `bias`; 0: frequency has nothing to do with the rows."""
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        log2 = rng.uniform(1, 14, 40)
        W = 2 * rng.standard_normal(8) + np.exp(bias * (log2 - 7))[:, None] * rng.standard_normal((40, 8))
        yield Head(W, link="softmax"), np.exp2(log2), np.array([(i, j) for i in range(40) for j in range(i)])


def test_where_frequency_is_independent_of_the_rows_one_head_in_twenty_is_below_five_percent():
    p = np.array([frequency_bias(h, f, pairs=pairs).p for h, f, pairs in heads_and_frequencies(200, 0.0)])
    low, high = stats.binom.interval(0.999, len(p), 0.05)
    assert low <= (p < 0.05).sum() <= high
    assert stats.kstest(p, "uniform").pvalue > 0.001


def test_a_planted_bias_is_seen_in_nearly_every_head():
    found = [frequency_bias(h, f, pairs=pairs) for h, f, pairs in heads_and_frequencies(30, 0.15)]
    assert sum(r.p < 0.05 and r.slope < 0 for r in found) >= 24
    assert "by permuting labels" in found[0].explain()


def test_controls_have_a_chance_each():
    rng = np.random.default_rng(1)
    head, log2 = Head(rng.standard_normal((60, 6)), link="softmax"), rng.uniform(0, 10, 60)
    pairs = rng.integers(0, 30, (400, 2)) * [1, 1] + [0, 30]
    control = (log2[pairs[:, 0]] + log2[pairs[:, 1]]) / 2 + rng.standard_normal(400)
    control[3] = np.nan
    r = frequency_bias(head, np.exp2(log2), pairs=pairs, controls={"like it": control})
    assert all(0 < f.p <= 1 for f in r.fits)
    assert (r.pairs, r.left_out) == (399, 1)


def test_pairs_and_names_can_be_given_and_unknown_frequencies_are_left_out():
    head = Head(np.random.default_rng(3).standard_normal((6, 4)), link="softmax", labels=list("abcdef"))
    freq = {"a": 1, "b": 2, "c": 4, "d": 8, "e": 0, "zebra": 3}
    r = frequency_bias(head, freq, pairs=[("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("a", "d"), (0, "f")])
    assert (r.pairs, r.left_out) == (4, 2)
    assert np.allclose(r.log2_frequency, [0.5, 1.5, 2.5, 1.5])


@pytest.mark.parametrize(
    ("frequencies", "sentence"),
    [
        ([1, 2], r"shape \(2,\).*shape \(4,\)"),
        ([0, 0, 1, 2], "2 labels have a frequency above 0; at least 3"),
        ([1, 2, 3, -1], "frequency of 'd' is -1"),
        ({"x": 1, "y": 2}, r"none of the 2 names .* is a label of the head"),
        ({"a": "many"}, "frequency of 'a' is 'many'"),
    ],
)
def test_bad_frequencies_are_refused_in_one_sentence(frequencies, sentence):
    head = Head(np.eye(4), link="softmax", labels=list("abcd"))
    for ask in (norms, frequency_bias):
        with pytest.raises(GonioError, match=sentence):
            ask(head, frequencies)


def test_constant_frequencies_and_combined_controls_give_nan_not_a_number():
    assert np.isnan(slope_on_frequency([0.1, 0.5, 0.3], [2.0, 2, 2]).slope)
    assert "do not vary" in slope_on_frequency([0.1, 0.5, 0.3], [2.0, 2, 2]).explain()
    f = np.arange(20.0)
    assert np.isnan(slope_on_frequency(np.sin(f), f, controls={"twice": 2 * f}).controlled_slope)
    with pytest.raises(GonioError, match="one a pair is needed"):
        slope_on_frequency([0.1, 0.5, 0.3], [1.0, 2])
    with pytest.raises(GonioError, match="no pairs were given"):
        frequency_bias(Head(np.eye(4), link="softmax"), [1, 2, 3, 4], controls={"x": [1]})


def test_norms_know_quantiles_outliers_and_what_they_go_with():
    rng = np.random.default_rng(4)
    counts = np.exp2(rng.uniform(0, 12, 300))
    W = rng.standard_normal((300, 20))
    W *= ((1 + np.log2(counts)) / np.linalg.norm(W, axis=1))[:, None]
    head = Head(W, rng.standard_normal(300), link="softmax", labels=[f"w{i}" for i in range(300)])
    r = norms(head, counts, hubs=np.arange(300))
    assert r.frequency_correlation == pytest.approx(1)
    assert set(r.correlations) == {
        "log frequency",
        "times named as neighbour",
        "bias",
        "length of the name",
        "position",
    }
    assert np.allclose(r.quantiles, np.quantile(np.linalg.norm(W, axis=1), [0, 0.25, 0.5, 0.75, 1]))
    assert r.histogram[0].sum() == 300
    V = rng.standard_normal((300, 20))
    V[3], V[4] = 0, 1000 * V[4]
    plain = norms(Head(V, link="cosine"))
    assert plain.outliers.tolist() == [3, 4]
    assert plain.frequency_correlation is None
    assert "rescaled" in plain.explain()
    assert norms(Head([[2.0]], link="softmax")).quantiles.tolist() == [2.0] * 5


def test_the_best_threshold_is_that_of_trying_all():
    rng = np.random.default_rng(5)
    for _ in range(20):
        y = np.round(rng.uniform(0, 1, 30), 1)
        s = (rng.uniform(0, 1, 30) < y).astype(float)
        t, accuracy = best_threshold(y, s)
        tried = [((y > x) == s).mean() for x in np.r_[-1, y]]
        assert accuracy == pytest.approx(max(tried))
        assert ((y > t) == s).mean() == pytest.approx(accuracy)


def test_a_cosine_that_falls_with_frequency_calls_too_few_frequent_pairs_the_same():
    rng = np.random.default_rng(6)
    f = rng.uniform(0, 20, 4000)
    same = rng.integers(0, 2, 4000)
    biased = 0.3 * same - 0.02 * f + 0.1 * rng.standard_normal(4000)
    r = frequency_agreement(biased, same, f, resamples=300)
    assert r.excess[0] > 0.1
    assert r.excess[-1] < -0.1
    assert r.high[-1] < 0 < r.low[0]
    fair = frequency_agreement(biased + 0.02 * f, same, f, resamples=300)
    assert np.abs(fair.excess).max() < 0.1
    with pytest.raises(GonioError, match="same holds 2"):
        frequency_agreement(biased, same + 1, f)
    with pytest.raises(GonioError, match="at least 20 are needed"):
        frequency_agreement(biased[:9], same[:9], f[:9])
