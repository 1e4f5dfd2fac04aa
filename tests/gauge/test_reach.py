"""The geometry of the dial: every cosine, the smallest way there, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from gonio import GonioError, Head, fragility, reachable
from gonio.gauge.dialling import linear_map
from gonio.gauge.factor_ranges import diagonal_for, item_item, user_item
from gonio.gauge.reach import by_linear_map, by_translation, cosine, plain_translation, smallest_translation

calm = settings(max_examples=300, deadline=None)
entries = st.integers(-5, 5).map(float) | st.floats(-5, 5, width=32)
pairs = st.integers(2, 6).flatmap(lambda d: hnp.arrays(np.float64, (2, d), elements=entries))


@calm
@given(pairs, st.floats(-1, 1))
@pytest.mark.theorem("GONIO.1.6")
def test_two_different_rows_reach_every_cosine_by_translation(ab, c):
    a, b = ab
    if np.array_equal(a, b):
        return
    for v in (smallest_translation(a, b, c).v, plain_translation(a, b, c)):
        got = cosine(a + v, b + v)
        # near +-1 the cosine is flat: compare angles there
        assert abs(got - c) < 1e-7 or abs(np.arccos(np.clip(got, -1, 1)) - np.arccos(c)) < 1e-6


@pytest.mark.theorem("NG26.L3.2")
@given(pairs)
@calm
def test_lemma_3_2_the_midpoint_gives_minus_one(ab):
    a, b = ab
    if np.linalg.norm(a - b) < 1e-6:
        return
    v = plain_translation(a, b, -1)
    assert np.allclose(v, -a - (b - a) / 2)
    assert np.allclose(a + v, (a - b) / 2)
    assert np.allclose(a + v, -(b + v))
    assert cosine(a + v, b + v) == pytest.approx(-1, abs=1e-12)


@pytest.mark.theorem("NG26.L3.3")
@given(pairs)
@calm
def test_lemma_3_3_gives_plus_one(ab):
    a, b = ab
    if np.linalg.norm(a - b) < 1e-6:
        return
    v = plain_translation(a, b, 1)
    assert np.allclose(v, -a + (b - a) / 2)
    assert np.allclose(b + v, 3 * (a + v))
    assert cosine(a + v, b + v) == pytest.approx(1, abs=1e-12)


@pytest.mark.theorem("GONIO.1.6")
@pytest.mark.filterwarnings("ignore")  # SLSQP's own
def test_no_shorter_translation_is_found_by_search():
    rng = np.random.default_rng(0)
    for _ in range(40):
        d = int(rng.integers(2, 5))
        a, b = rng.standard_normal((2, d))
        c = float(rng.uniform(-0.98, 0.98))
        ours = smallest_translation(a, b, c)
        assert ours.least <= ours.length <= ours.least + 0.05 * np.linalg.norm(a - b) + 1e-12
        same = {"type": "eq", "fun": lambda v, a=a, b=b, c=c: cosine(a + v, b + v) - c}
        for _ in range(4):
            found = minimize(lambda v: v @ v, ours.v + 0.5 * rng.standard_normal(d), constraints=same, method="SLSQP")
            if found.success and abs(same["fun"](found.x)) < 1e-7:
                assert np.linalg.norm(found.x) >= ours.least - 1e-5


def test_the_least_length_is_only_approached_where_it_says_so():
    far = smallest_translation([1.0, 0.0], [3.0, 0.1], -1)  # the origin's foot lies outside the segment
    assert not far.attained
    assert far.least == pytest.approx(1.0)
    assert far.length > far.least
    near = smallest_translation([1.0, 0.5], [0.5, 1.0], -1)
    assert near.attained
    assert np.allclose(near.v, [-0.75, -0.75])


@pytest.mark.parametrize("c", [-1, -0.5, 0, 0.5, 1])
def test_opposite_rows_and_special_places_work(c):
    for a, b in (([1, 0], [-1, 0]), ([2, 0, 0], [-1, 0, 0]), ([1, 1], [2, 2]), ([0, 0], [1, 0]), ([0, 1e-8], [0, 1])):
        a, b = np.array(a, float), np.array(b, float)
        s = smallest_translation(a, b, c)
        assert cosine(a + s.v, b + s.v) == pytest.approx(c, abs=1e-6)
    assert smallest_translation([1, 0], [-1, 0], -1).length == 0  # a = -b: Lemma 3.2 gives v = 0


def test_huge_and_tiny_rows_are_dialled_too():
    for scale in (1e-150, 1e150):
        a, b = np.array([1.0, 0.5]) * scale, np.array([0.5, 1.0]) * scale
        s = smallest_translation(a, b, 0.25)
        assert cosine(a + s.v, b + s.v) == pytest.approx(0.25, abs=1e-9)


def test_what_cannot_be_reached_is_said():
    equal = by_translation(np.ones(3), np.ones(3))
    assert (equal.low, equal.high) == (1, 1)
    assert -1 not in equal
    line = by_translation(np.array([1.0]), np.array([2.0]))
    assert 1 in line
    assert -1 in line
    assert 0.5 not in line
    assert "nothing between" in str(line)
    for a, b, c in (([1, 1], [1, 1], -1), ([1.0], [2.0], 0.3), ([1, 0], [0, 1], 1.5)):
        with pytest.raises(GonioError, match="cannot be reached"):
            smallest_translation(a, b, c)
    for target in (-1, 1):
        s = smallest_translation([1.0], [2.0], target)
        assert cosine(1 + s.v, 2 + s.v) == target
    assert smallest_translation([0, 0], [0, 0], 1).least == 0  # undefined before, 1 after any translation


@pytest.mark.theorem("GONIO.1.6")
@given(pairs, st.floats(-0.999, 0.999))
@calm
def test_independent_rows_reach_every_open_cosine_by_a_linear_map(ab, c):
    a, b = ab
    now = cosine(a, b)
    if np.isnan(now) or abs(now) > 0.999:
        return
    M = linear_map(a, b, c)
    assert cosine(M @ a, M @ b) == pytest.approx(c, abs=1e-6)
    assert np.linalg.matrix_rank(M) == len(M)
    assert str(by_linear_map(a, b)) == "(-1, 1)"


def test_dependent_rows_keep_their_cosine_under_every_linear_map():
    assert str(by_linear_map(np.array([1.0, 2]), np.array([2.0, 4]))) == "1 only"
    assert str(by_linear_map(np.array([1.0, 2]), np.array([-2.0, -4]))) == "-1 only"
    assert str(by_linear_map(np.array([1.0, 2]), np.array([2.0, 4 + 1e-15]))) == "(-1, 1)"  # not quite: exactly told
    assert str(by_linear_map(np.zeros(2), np.ones(2))) == "nothing"


@pytest.mark.theorem("GONIO.1.6")
def test_every_correlation_matrix_is_reachable_by_one_map_for_independent_rows():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((4, 6))
    X = rng.standard_normal((4, 4))
    C = X @ X.T
    C /= np.sqrt(np.outer(np.diag(C), np.diag(C)))
    M = np.linalg.pinv(W) @ np.column_stack([np.linalg.cholesky(C), np.zeros((4, 2))])
    M += (np.eye(6) - np.linalg.pinv(W) @ W) @ rng.standard_normal((6, 6))  # fill the rest: invertible
    V = W @ M
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    assert np.allclose(V @ V.T, C)
    assert np.linalg.matrix_rank(M) == 6


def test_fragility_is_small_where_a_small_offset_rewrites_the_cosine():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((50, 16))
    offset = Head(W + 30 * np.ones(16), link="softmax")
    plain = Head(W, link="softmax")
    assert fragility(offset, 0, 1) == pytest.approx(1, abs=0.2)  # the whole offset must go
    assert fragility(plain, 0, 1) < 0.2
    assert fragility(plain, 0, 1, target=cosine(W[0], W[1])) == 0
    assert fragility(Head(np.ones((2, 3)), link="softmax"), 0, 1) == np.inf
    assert str(reachable(plain, 0, 1)["all"]) == "[-1, 1]"
    assert str(reachable(plain.replace(link="sigmoid"), 0, 1)["all"]) == "(-1, 1)"
    assert str(reachable(plain.replace(link="cosine"), 0, 1)["all"]).endswith("only")


@pytest.mark.theorem("GONIO.2.2")
@given(st.integers(1, 5).flatmap(lambda d: hnp.arrays(np.float64, (2, d), elements=entries)), st.integers(0, 10**6))
@calm
def test_no_rescaling_leaves_the_range_of_a_factor_cosine(xy, seed):
    x, y = xy
    if not x.any() or not y.any():
        assert str(item_item(x, y)) == "nothing"
        return
    rng = np.random.default_rng(seed)
    items, mixed = item_item(x, y), user_item(x, y)
    for spread in (0.3, 2, 6):
        d = np.exp(spread * rng.standard_normal(len(x)))
        assert items.low - 1e-9 <= cosine(x / d, y / d) <= items.high + 1e-9
        assert mixed.low - 1e-9 <= cosine(x * d, y / d) <= mixed.high + 1e-9


@pytest.mark.theorem("GONIO.2.2")
def test_every_cosine_inside_the_range_is_met_by_some_rescaling():
    rng = np.random.default_rng(0)
    for k in range(60):
        x, y = rng.standard_normal((2, int(rng.integers(2, 6))))
        x, y = (np.abs(x), np.abs(y)) if k % 3 == 0 else (x, y)
        reach = item_item(x, y)
        for share in (0.03, 0.4, 0.97):
            target = reach.low + (reach.high - reach.low) * share
            d = diagonal_for(x, y, target)
            assert cosine(x / d, y / d) == pytest.approx(target, abs=1e-6)
    assert item_item([1, 2], [3, 8]).low == pytest.approx(2 * np.sqrt(3 * 4) / 7)  # Kantorovich with tau 3 and 4
    assert str(item_item([1, 0], [0, 1])) == "0 only"
    assert user_item([3, 1], [1, 1]).high == 1  # all products positive: |p.q| = sum |p_l q_l|
    best = np.sqrt(np.array([1, 2]) / np.array([3, 1]))
    assert cosine(np.array([3, -1]) * best, np.array([1, 2]) / best) == pytest.approx(user_item([3, -1], [1, 2]).high)


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_parallel_already_are_not_moved(seed):
    a = np.random.default_rng(seed).standard_normal(5)
    for factor in (1.0, 2.0, 0.5, 2.0**-40):
        assert smallest_translation(a, factor * a, 1).length == 0
        assert smallest_translation(a, -factor * a, -1).length == 0
    assert smallest_translation([0.1, 0.2, 0.3], [0.1, 0.2, 0.3], 1).length == 0
    assert smallest_translation([1.0, 2.0], [2.0, 4.0 + 1e-6], 1).length > 0


@pytest.mark.parametrize("scale", [1e-200, 1e-300, 1e200, 1.0])
def test_ranges_do_not_depend_on_how_long_the_vectors_are(scale):
    rng = np.random.default_rng(0)
    assert str(item_item([scale], [scale])) == "1 only"
    assert str(item_item([scale], [-scale])) == "-1 only"
    assert str(item_item([1.0, scale], [1.0, -scale])) == "(-1, 1)"
    for _ in range(20):
        x, y = rng.integers(-3, 4, (2, 3)).astype(float)
        if not x.any() or not y.any():
            continue
        power = 2.0 ** np.round(np.log2(scale))
        for ask in (item_item, user_item):
            assert ask(power * x, power * y) == ask(x, y)
    d = diagonal_for([scale, 2 * scale], [3 * scale, -scale], 0.5)
    a, b = np.array([1.0, 2.0]) / d, np.array([3.0, -1.0]) / d
    assert cosine(a, b) == pytest.approx(0.5)


def test_ratios_beyond_floats_are_told_apart():
    reach = item_item([1e-300, 1.0], [1.0, 1e-300])
    assert (reach.low, reach.high_reached) == (0.0, False)
    assert user_item([1e-300, 1.0], [1e-300, 0.0]).high == 1.0
