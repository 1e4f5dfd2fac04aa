"""Study 1: its statistics are facts of the model, its nulls are matched, and its verdict comes out both ways."""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gonio
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.studies.centred_logits import correlations, logit_coordinates, mean_probability
from gonio.studies.cosine_spread import cosine_spread, mean_square, whitened, without_frequency
from gonio.studies.different_from_random import STATISTICS, different_from_random, edges, p_value, statistics, verdict
from gonio.studies.frequency_part import curves, frequency_share, kept_part, share, size_trend, weighted_parts
from gonio.studies.label_meaning import label_meaning
from gonio.studies.random_heads import (
    of_one_spectrum,
    of_one_spectrum_and_sizes,
    of_one_spectrum_sizes_and_frequency,
    spectrum_missed,
)
from gonio.studies.study import Measured
from tests.studies.made import clustered_head, equivalent, random_head

SIZES, FREQUENCY = "spectrum and sizes", "spectrum, sizes and frequency"


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), link=st.sampled_from(["softmax", "sigmoid"]), bias=st.booleans())
def test_no_equivalent_form_has_other_statistics(seed, link, bias):
    head, F = random_head(60, 4, 90, seed, link, bias)
    moved, G = equivalent(head, F, seed + 1)
    a, b = (statistics(logit_coordinates(h, X)) for h, X in ((head, F), (moved, G)))
    for s in STATISTICS:
        assert a[s] == pytest.approx(b[s], rel=1e-6, abs=1e-8), s


def test_stored_cosines_move_where_the_statistics_do_not():
    head, F = random_head()
    moved, _ = equivalent(head, F, size=5)
    spread = [correlations(h.W)[np.triu_indices(len(h), 1)].std() for h in (head, moved)]
    assert abs(spread[0] - spread[1]) > 0.05


def test_statistics_against_loops_over_the_logits_themselves():
    head, F = random_head(45, 4, 300, 3)
    Z = F @ head.W.T
    Z = Z - Z.mean(axis=1, keepdims=True)
    K, C = np.cov(Z.T, bias=True), np.corrcoef(Z.T)
    found = statistics(logit_coordinates(head, F))
    off = [C[i, j] for i, j in combinations(range(45), 2)]
    assert found["spread"] == pytest.approx(np.std(off))
    best = [max(C[i, j] for j in range(45) if j != i) for i in range(45)]
    assert found["nearest"] == pytest.approx(np.mean(best))
    rival = [max(K[i, j] for j in range(45) if j != i) for i in range(45)]
    assert found["own way"] == np.mean([K[i, i] > r for i, r in enumerate(rival)])
    assert found["margin"] == pytest.approx(np.mean([(K[i, i] - r) / K[i, i] for i, r in enumerate(rival)]))
    count = np.zeros(45)
    for i in range(45):
        for j in sorted((j for j in range(45) if j != i), key=lambda j: -C[i, j])[:10]:
            count[j] += 1
    assert found["hubs"] == pytest.approx(np.mean((count - count.mean()) ** 3) / count.std() ** 3)


def test_edges_of_the_hull_are_the_pairs_that_can_tie():
    points = np.random.default_rng(0).normal(size=(14, 3))
    tie = gonio.can_tie(Head(points, link="softmax"), pairs=list(combinations(range(14), 2)))
    assert edges(points) == pytest.approx(np.mean([a == "yes" for a in tie.answers]))


def test_rankings_of_a_few_labels_are_as_many_for_trained_and_random_rows():
    """Counts of feasible rankings tell nothing: general position fixes them, so no study needs to count them."""
    clustered = clustered_head(5, 3, 2)[0]
    assert gonio.rankings(clustered).count == gonio.rankings(random_head(5, 3)[0]).count == 72


@pytest.mark.parametrize("centred", [True, False])
def test_random_heads_match_spectrum_and_sizes(centred):
    A = clustered_head(200, 8)[0].W * np.linspace(0.3, 3, 200)[:, None]
    A = A - A.mean(axis=0) if centred else A
    rng = np.random.default_rng(0)
    B = next(of_one_spectrum(A, rng, centred=centred))
    assert np.allclose(np.linalg.svd(B, compute_uv=False), np.linalg.svd(A, compute_uv=False))
    assert np.allclose(B.sum(axis=0), 0) == centred
    C, other = islice(of_one_spectrum_and_sizes(A, rng, centred=centred), 2)
    assert np.allclose(np.linalg.norm(C, axis=1), np.linalg.norm(A, axis=1))
    assert spectrum_missed(A, C) < 2e-3
    assert spectrum_missed(A, B) < 1e-9
    assert abs(np.corrcoef(C.ravel(), other.ravel())[0, 1]) < 0.2  # the next one is another


def uneven_gaussian(n, d, rng):
    """A head without any structure but its spectrum."""
    W = rng.normal(size=(n, d)) * np.linspace(1, 8, d) ** 1.5
    return W - W.mean(axis=0)


def made_of_frequency(n, d, rng, size=0.6):
    """Rows that follow log frequency in a line and a parabola, with noise whose size goes with it too."""
    f = rng.normal(size=n)
    W = np.exp(size * f)[:, None] * rng.normal(size=(n, d))
    W[:, 0] += 4 * f
    W[:, 1] += 4 * f**2
    return W - W.mean(axis=0), f


def told_apart(A, null, draws=39):
    """The p-values of the statistics beside so many draws of a null."""
    seen, drawn = statistics(A), [statistics(B) for B in islice(null, draws)]
    return [p_value(seen[s], np.array([r[s] for r in drawn])) for s in STATISTICS]


@pytest.mark.slow
def test_a_head_without_structure_is_seldom_told_apart_from_its_own_nulls():
    """Both nulls keep about their level on Gaussian heads of an uneven spectrum."""
    ps: dict[str, list] = {SIZES: [], FREQUENCY: []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, f = uneven_gaussian(200, 8, rng), rng.normal(size=200)
        ps[SIZES].append(told_apart(A, of_one_spectrum_and_sizes(A, rng, centred=True)))
        ps[FREQUENCY].append(told_apart(A, of_one_spectrum_sizes_and_frequency(A, curves(f), rng, centred=True)))
    for kind, p in ps.items():
        assert (np.array(p) <= 0.05).mean() < 0.12, kind
        assert (np.array(p) <= 0.05).mean(axis=0).max() <= 0.3, kind


@pytest.mark.slow
def test_a_head_made_of_frequency_is_told_apart_from_the_plain_null_alone():
    plain, held = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A, f = made_of_frequency(200, 8, rng)
        plain.append(told_apart(A, of_one_spectrum_and_sizes(A, rng, centred=True)))
        held.append(told_apart(A, of_one_spectrum_sizes_and_frequency(A, curves(f), rng, centred=True)))
    assert (np.array(plain) <= 0.05).mean() > 0.4
    assert (np.array(held) <= 0.05).mean() < 0.12


def as_states(A):
    """A softmax head with these rows and states of unit covariance, so that A are its coordinates."""
    d = A.shape[1]
    return Head(A, link="softmax"), np.sqrt(d) * np.concatenate([np.eye(d), -np.eye(d)])


def test_frequency_alone_is_not_shown_to_differ_once_it_is_kept_and_other_structure_is():
    rng = np.random.default_rng(3)
    A, f = made_of_frequency(160, 6, rng)
    head, F = as_states(A)
    r = different_from_random(head, F, frequency=f)
    assert "statistics differ from random heads of the same spectrum and sizes" in r.verdict
    assert "With what goes with frequency kept too, none of 6 is shown to differ." in r.verdict
    assert "Frequency may be the reason for:" in r.verdict
    name = "share of the logits that goes with frequency"
    assert r[name].value > 0.5 > r[f"{name}, dealt freely"].high

    head, F, _ = clustered_head(160, 6, 16)
    r = different_from_random(head, F, frequency=f)
    still = r.verdict.split("kept too, ")[1]
    assert "nearest" in still.split(").")[0]
    assert "may be the reason for: nearest" not in r.verdict
    assert r[name].value <= r[f"{name}, dealt freely"].high + 0.03


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), link=st.sampled_from(["softmax", "sigmoid"]), bias=st.booleans())
def test_no_equivalent_form_has_another_null(seed, link, bias):
    """The whole study with its random heads comes out the same in another form of the model, drawn from one seed."""
    head, F = random_head(60, 4, 90, seed, link, bias)
    moved, G = equivalent(head, F, seed + 1)
    a, b = (different_from_random(h, X, draws=5) for h, X in ((head, F), (moved, G)))
    stored = ("stored cosines", "offset", "covariance", "frequency", "rest")  # these are what a form moves
    for x, y in zip(a.measured, b.measured, strict=True):
        if x.name not in stored:
            assert x.value == pytest.approx(y.value, rel=1e-5, abs=1e-6), x.name


def test_parts_of_frequency_against_least_squares():
    rng = np.random.default_rng(0)
    A, f = made_of_frequency(90, 5, rng)
    U = curves(f)
    assert np.allclose(U.T @ U, np.eye(U.shape[1]))
    assert np.allclose(U.sum(axis=0), 0)
    for curve in (f, f**2):  # lines and parabolas are kept whole
        assert np.allclose(kept_part(curve - curve.mean(), U), curve - curve.mean())
    X = np.column_stack([np.ones(90), U])
    fitted = X @ np.linalg.lstsq(X, A, rcond=None)[0]
    assert np.allclose(kept_part(A, U), fitted)
    assert share(A, U) == pytest.approx((fitted**2).sum() / (A**2).sum())
    trend = size_trend(A - fitted, U)
    assert np.corrcoef(np.log(trend[:, 0]), f)[0, 1] > 0.8
    kept, rest, V = weighted_parts(A, U, trend)
    root = 1 / trend
    weighted = X @ np.linalg.lstsq(X * root, A * root, rcond=None)[0]
    assert np.allclose(kept, weighted)
    assert np.allclose(kept + trend * rest, A)
    assert np.allclose(V.T @ rest, 0, atol=1e-9)


def test_a_random_head_keeps_the_mean_row_of_every_frequency_and_the_sizes():
    rng = np.random.default_rng(1)
    A, f = made_of_frequency(300, 6, rng)
    U = curves(f)
    kept, _, _ = weighted_parts(A, U, size_trend(A - kept_part(A, U), U))
    drawn = list(islice(of_one_spectrum_sizes_and_frequency(A, U, rng, centred=True), 30))
    left = np.array([B - kept for B in drawn])
    assert np.abs(left.mean(axis=0)).mean() < 0.25 * np.abs(A - kept).mean()  # around the same mean row
    lengths = np.linalg.norm(left, axis=2).mean(axis=0)
    assert np.corrcoef(lengths, np.linalg.norm(A - kept, axis=1))[0, 1] > 0.99


def test_labels_that_occur_equally_often_have_no_frequency_part():
    A = random_head(50, 4)[0].W
    U = curves(np.zeros(50))
    assert U.shape == (50, 0)
    assert frequency_share(A, U, np.random.default_rng(0))[0].value == 0
    few = curves(np.repeat([0.0, 1.0, 2.0], [20, 20, 10]))
    assert few.shape == (50, 2)
    assert next(of_one_spectrum_sizes_and_frequency(A, U, np.random.default_rng(0), centred=False)).shape == A.shape


def test_labels_without_frequency_are_left_out_and_a_table_needs_no_states():
    head, F = random_head(90, 5)
    f = np.random.default_rng(0).normal(size=90)
    f[::9] = np.nan
    r = different_from_random(head, F, frequency=f, draws=5, counted_in="a list")
    assert "80 of 80 labels of known frequency x 5, 400 states; frequency: a list" in r.about
    table = different_from_random(Head(head.W, link="input"), frequency=f, draws=5)
    assert "as stored" in table.about
    assert "convention" not in table.verdict
    with pytest.raises(GonioError, match="neither states nor frequencies"):
        different_from_random(head)
    with pytest.raises(GonioError, match=r"frequencies have shape \(3,\); one for each label is needed, 90"):
        different_from_random(head, F, frequency=[1, 2, 3])


def test_a_random_head_is_not_shown_to_differ_and_a_clustered_one_is():
    head, F = random_head(60, 5, 200)
    r = different_from_random(head, F, draws=139)
    assert r.verdict.startswith("None of 6 statistics is shown to differ")
    head, F, _ = clustered_head(70, 5, 7, 200, names=True)
    r = different_from_random(head, F, draws=139)
    assert "statistics differ from random heads" in r.verdict
    assert "nearest" in r.verdict.split("not shown")[0]
    assert r["nearest spelled alike"].value > 0.95
    assert r["nearest spelled alike, dealt freely"].high < 0.3


def test_the_verdict_is_what_the_numbers_say():
    numbers = {
        m.name: m for m in (Measured("stored cosines", 0.5), Measured("offset", 0.2), Measured("covariance", 0.05))
    }
    p = {"spread": 0.004, "hubs": 0.5}
    said = verdict({SIZES: p, FREQUENCY: p}, numbers)
    assert said.startswith("1 of 2 statistics differs")
    assert "not shown to differ: hubs" in said
    assert "With what goes with frequency kept too, 1 of 2 differs (spread)." in said
    assert "may be the reason" not in said
    assert "50% is due to the offset and the covariance" in said
    held = verdict({SIZES: p, FREQUENCY: {"spread": 0.5, "hubs": 0.5}}, numbers)
    assert "kept too, none of 2 is shown to differ. Frequency may be the reason for: spread." in held
    q = {"spread": 0.04, "hubs": 0.5}
    none = verdict({SIZES: q, FREQUENCY: q}, {**numbers, "offset": Measured("offset", 0.0)}, centred=True)
    assert none.startswith("None of 2")
    assert "10%" in none


def test_the_p_value_is_even_where_there_is_nothing():
    rng = np.random.default_rng(0)
    ps = [p_value(rng.normal(), rng.normal(size=99)) for _ in range(400)]
    assert 0.02 < np.mean([p <= 0.05 for p in ps]) < 0.09


def test_parts_of_the_spread_add_up_and_an_offset_is_called_one():
    rng = np.random.default_rng(0)
    W, f = rng.normal(size=(150, 6)), rng.normal(size=150)
    plain = {m.name: m for m in cosine_spread(W, f, np.random.default_rng(1))}
    far = {m.name: m for m in cosine_spread(W + 4, f, np.random.default_rng(1))}
    for parts in (plain, far):
        total = sum(parts[k].value for k in ("offset", "covariance", "frequency", "rest"))
        assert total == pytest.approx(parts["stored cosines"].value)
    assert far["offset"].low > 0.5 > plain["offset"].high
    assert far["rest"].value == pytest.approx(plain["rest"].value, abs=1e-6)
    assert plain["rest if the rows were random"].value == pytest.approx(1 / 6)


def test_formulas_of_the_spread_against_loops():
    rng = np.random.default_rng(2)
    X, f = rng.normal(size=(20, 3)), rng.normal(size=20)
    C = correlations(X)
    pairs = list(combinations(range(20), 2))
    assert mean_square(C, np.ones((1, 20)))[0] == pytest.approx(np.mean([C[i, j] ** 2 for i, j in pairs]))
    assert np.allclose(whitened(X) @ whitened(X).T, X @ np.linalg.inv(X.T @ X) @ X.T)
    left = without_frequency(C, f)
    z = (f - f.mean()) / f.std()
    for g in (lambda i, j: z[i] + z[j], lambda i, j: abs(z[i] - z[j]), lambda i, j: z[i] * z[j]):
        assert np.corrcoef([left[p] for p in pairs], [g(*p) for p in pairs])[0, 1] == pytest.approx(0, abs=1e-9)


def test_meaning_is_seen_where_planted_and_not_where_names_are_dealt():
    head, F, _ = clustered_head(120, 6, 12, names=True)
    near = np.argsort(-(correlations(head.W) - 2 * np.eye(120)), axis=1)[:, 0]
    planted = {m.name: m for m in label_meaning(head.labels, near, mean_probability(head, F), np.random.default_rng(0))}
    dealt = tuple(np.random.default_rng(3).permutation(head.labels))
    chance = {m.name: m for m in label_meaning(dealt, near, mean_probability(head, F), np.random.default_rng(0))}
    assert planted["nearest spelled alike"].value > planted["nearest spelled alike, dealt freely"].high
    assert chance["nearest spelled alike"].value <= chance["nearest spelled alike, dealt freely"].high + 0.05
