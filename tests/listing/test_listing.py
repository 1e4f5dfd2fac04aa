"""Cells, each once: against known counts, linear programs, exact arithmetic, and other row orders."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gonio import GonioError, Head, Nonnegative, label_sets, rankings
from gonio.listing import exact_cells
from gonio.listing.arrangement import arrange, whole_rows
from gonio.listing.cell_list import CellList
from gonio.listing.counts import count_label_sets, count_rankings
from gonio.listing.packed_signs import unpack
from tests.listing import made
from tests.listing.made import sigmoid, softmax

KNOWN = [
    ("resonance 3", made.resonance(3), 32),
    ("resonance 4", made.resonance(4), 370),
    ("resonance 5", made.resonance(5), 11292),
    ("threshold 2", made.threshold(2), 14),
    ("threshold 3", made.threshold(3), 104),
    ("threshold 4", made.threshold(4), 1882),
    ("threshold 5", made.threshold(5), 94572),
    ("type B 3", made.type_b(3), 2**3 * 6),
    ("type B 5", made.type_b(5), 2**5 * 120),
    ("type D 4", made.type_d(4), 2**3 * 24),
    ("type D 5", made.type_d(5), 2**4 * 120),
    ("braid 6", made.braid(6), 720),
    ("braid 8", made.braid(8), 40320),
    ("three lines, 66 rows", made.braid(12) @ np.eye(12, 2, dtype=int), 6),
]


@pytest.mark.parametrize(("name", "W", "count"), KNOWN, ids=[k[0] for k in KNOWN])
def test_degenerate_arrangements_have_their_known_number_of_cells(name, W, count):
    W = W[np.abs(W).sum(axis=1) > 0]
    sets = label_sets(sigmoid(W))
    array = sets.to_array()
    assert len(sets) == len(array) == count
    assert len(np.unique(array, axis=0)) == count


def test_the_largest_known_count_without_listing():
    assert label_sets(sigmoid(made.resonance(6))).count == 1_066_044


@pytest.mark.theorem("COV65.signs")
@pytest.mark.parametrize(("n", "d"), [(3, 2), (5, 3), (10, 5), (10, 6), (20, 6), (70, 3), (130, 2), (6, 6), (4, 7)])
def test_label_sets_in_general_position_are_covers_count(n, d):
    W = np.random.default_rng(n * d).normal(size=(n, d))
    sets = label_sets(sigmoid(W))
    assert sets.general
    array = sets.to_array()
    assert len(array) == sets.count == count_label_sets(n, min(n, d))
    assert len(np.unique(array, axis=0)) == len(array)


@pytest.mark.parametrize(("n", "d", "count"), [(4, 2, 11), (5, 3, 26), (9, 3, 130), (7, 4, 99)])
def test_label_sets_with_a_bias_are_an_affine_arrangement(n, d, count):
    rng = np.random.default_rng(n)
    sets = label_sets(sigmoid(rng.normal(size=(n, d)), rng.normal(size=n)))
    array = sets.to_array()
    assert len(np.unique(array, axis=0)) == len(array) == sets.count == count == count_label_sets(n, d, bias=True)


WITHOUT_BIAS = {
    3: [2, 6], 4: [2, 12, 24], 5: [2, 20, 72, 120], 6: [2, 30, 172, 480, 720], 7: [2, 42, 352, 1512, 3600, 5040],
    8: [2, 56, 646, 3976, 14184, 30240, 40320],
    10: [2, 90, 1742, 18990, 128288, 557640, 1575648, 2903040, 3628800],
}  # fmt: skip
WITH_BIAS = {
    3: [4, 6],
    4: [7, 18, 24],
    5: [11, 46, 96, 120],
    6: [16, 101, 326, 600, 720],
    7: [22, 197, 932, 2556, 4320, 5040],
}


@pytest.mark.theorem("COV67.rankings")
def test_the_closed_form_gives_the_published_table_of_rankings():
    for n, row in WITHOUT_BIAS.items():
        assert [count_rankings(n, d) for d in range(1, n)] == row
    for n, row in WITH_BIAS.items():
        assert [count_rankings(n, d, bias=True) for d in range(1, n)] == row


@pytest.mark.parametrize(("n", "d"), [(2, 1), (3, 1), (4, 2), (5, 3), (6, 2), (7, 4), (8, 3), (9, 8), (10, 4), (5, 9)])
@pytest.mark.parametrize("bias", [False, True])
def test_rankings_in_general_position_are_the_closed_form(n, d, bias):
    rng = np.random.default_rng(n + d)
    ranked = rankings(softmax(rng.normal(size=(n, d)), rng.normal(size=n) if bias else None))
    assert ranked.count == count_rankings(n, min(d, n - 1), bias=bias and d < n - 1)
    if ranked.most > 200_000:
        return  # counted, not listed: another test lists so many
    array = ranked.to_array()
    assert ranked.general
    assert len(array) == ranked.count == count_rankings(n, min(d, n - 1), bias=bias and d < n - 1)
    assert len(np.unique(array, axis=0)) == len(array)
    assert (np.sort(array, axis=1) == np.arange(n)).all()


def test_sampling_finds_few_rankings_and_the_listing_all():
    W = np.random.default_rng(0).normal(size=(10, 6))
    all_of_them = rankings(softmax(W)).to_array()
    assert len(np.unique(all_of_them, axis=0)) == 557_640
    x = np.random.default_rng(1).normal(size=(10_000, 6))
    seen = np.unique(np.argsort(-x @ W.T, axis=1), axis=0)
    assert len(seen) / len(all_of_them) < 0.03
    assert made.as_set(seen) <= made.as_set(all_of_them)


small_tables = hnp.arrays(np.int64, st.tuples(st.integers(2, 5), st.integers(1, 3)), elements=st.integers(-2, 2))


@settings(max_examples=60, deadline=None)
@given(W=small_tables, bias=st.booleans(), data=st.data())
@pytest.mark.theorem("NG26.D5.1")
def test_label_sets_are_those_of_one_program_each(W, bias, data):
    W = W.astype(float)
    b = data.draw(hnp.arrays(np.int64, len(W), elements=st.integers(-2, 2))).astype(float) if bias else None
    sets = label_sets(sigmoid(W, b))
    assert made.as_set(sets.to_array()) == made.sets_by_programs(W, b)
    assert sets.count == len(sets.to_array()) <= max(sets.most, 1)


@settings(max_examples=60, deadline=None)
@given(W=small_tables, bias=st.booleans(), data=st.data())
@pytest.mark.theorem("NG26.D5.4")
def test_rankings_are_those_of_one_program_each(W, bias, data):
    W = W.astype(float)
    b = data.draw(hnp.arrays(np.int64, len(W), elements=st.integers(-2, 2))).astype(float) if bias else None
    ranked = rankings(softmax(W, b))
    assert made.as_set(ranked.to_array()) == made.rankings_by_programs(W, b)
    assert ranked.count == len(ranked.to_array())


@settings(max_examples=40, deadline=None)
@given(
    W=hnp.arrays(np.int64, st.tuples(st.integers(2, 8), st.integers(2, 4)), elements=st.integers(-3, 3)),
    seed=st.integers(0, 9),
)
def test_the_quick_walk_lists_what_exact_arithmetic_lists_with_points_inside(W, seed):
    a = arrange(whole_rows(W))
    if a.rank < 2:
        return
    quick = CellList(a, general=False)
    cells = {tuple(unpack(w[None], a.planes)[0].tolist()) for words, _ in quick.blocks() for w in words}
    exact = {}
    for signs, point in exact_cells.cells(a.whole, exact_cells.random_functionals(a.rank, seed), points=True):
        assert all(
            sum(x * y for x, y in zip(row, point, strict=True)) * s > 0 for row, s in zip(a.whole, signs, strict=True)
        )
        exact[tuple(s > 0 for s in signs)] = point
    assert cells == set(exact)
    assert quick.count == len(exact)


@settings(max_examples=30, deadline=None)
@given(
    W=hnp.arrays(np.int64, st.tuples(st.integers(3, 7), st.integers(1, 4)), elements=st.integers(-3, 3)),
    seed=st.integers(0, 99),
)
def test_another_order_of_rows_lists_the_same_sets(W, seed):
    W = W[np.abs(W).sum(axis=1) > 0]
    if not len(W):
        return
    p = np.random.default_rng(seed).permutation(len(W))
    first, second = label_sets(sigmoid(W)).to_array(), label_sets(sigmoid(W[p])).to_array()
    assert made.as_set(first[:, p]) == made.as_set(second)


def test_zero_parallel_and_equal_rows_are_told_in_words():
    W = np.array([[1.0, 0], [0, 1], [0, 0], [2, 0], [-1, 0]])
    sets = label_sets(sigmoid(W))
    assert len(sets) == 0
    assert sets.to_array().shape == (0, 5)
    assert "zero for every input" in sets.notes[0]
    kept = label_sets(sigmoid(W), drop_zero=True)
    assert len(kept) == 4
    array = kept.to_array()
    assert (array[:, 0] == array[:, 3]).all()
    assert (array[:, 0] == -array[:, 4]).all()
    assert (array[:, 2] == 0).all()
    assert any("one line" in x for x in kept.notes)
    twins = rankings(softmax(W[[0, 1, 0]]))
    assert len(twins) == 0
    assert "always tied" in twins.notes[0]
    assert len(rankings(softmax(W[[0, 1, 0]]), drop_twins=True)) == 2
    low = label_sets(sigmoid(np.outer([1.0, 2, 3], [1.0, 2])))
    assert any("rank 1" in x for x in low.notes)
    assert any("can_label" in x for x in label_sets(Head([[1.0]], link="sigmoid", inputs=Nonnegative())).notes)


def test_one_label_one_dimension_and_no_rank_have_defined_answers():
    assert label_sets(sigmoid([[2.0]])).to_array().tolist() in ([[1], [-1]], [[-1], [1]])
    assert rankings(softmax([[2.0]])).to_array().tolist() == [[0]]
    assert len(rankings(softmax([[2.0], [1.0]]))) == 2
    assert len(label_sets(sigmoid([[0.0, 0.0]]))) == 0
    constant = label_sets(sigmoid([[0.0], [0.0]], np.array([1.0, -2.0])))
    assert constant.to_array().tolist() == [[1, -1]]
    assert rankings(softmax([[0.0], [0.0]], np.array([1.0, -2.0]))).to_array().tolist() == [[0, 1]]


def test_a_listing_goes_on_from_a_cursor():
    for sets in (
        label_sets(sigmoid(np.random.default_rng(1).normal(size=(40, 5)))),
        label_sets(sigmoid(made.resonance(5))),
        rankings(softmax(np.random.default_rng(1).normal(size=(11, 5)))),
        rankings(softmax(made.threshold(2))),
    ):
        whole = sets.to_array()
        parts, cursor = [], (0, 0)
        while True:
            block = next(iter(sets.blocks(after=cursor)), None)
            if block is None:
                break
            parts.append(sets.rows(block))
            cursor = block.cursor
        assert np.array_equal(np.concatenate(parts), whole)


def test_iteration_gives_rows_and_a_stopped_listing_leaves_no_thread_waiting():
    import threading

    before = threading.active_count()
    sets = label_sets(sigmoid(np.random.default_rng(1).normal(size=(60, 5))))
    it = iter(sets)
    assert next(it).shape == (60,)
    it.close()
    assert threading.active_count() <= before + 1


def test_blocks_are_packed_bits_in_label_order():
    W = np.random.default_rng(2).normal(size=(70, 2))
    sets = label_sets(sigmoid(W))
    block = next(iter(sets.blocks()))
    assert block.rows.dtype == np.uint64
    assert block.rows.shape[1] == 2
    row = sets.rows(block)[0]
    bits = [(int(block.rows[0, i // 64]) >> (i % 64)) & 1 for i in range(70)]
    assert (row == np.array(bits) * 2 - 1).all()


@pytest.mark.parametrize(
    "patterns",
    [
        label_sets(sigmoid(np.random.default_rng(3).normal(size=(6, 3)))),
        label_sets(sigmoid(np.random.default_rng(3).normal(size=(5, 2)), np.arange(5.0) - 2.1)),
        label_sets(sigmoid(made.threshold(2))),
        rankings(softmax(np.random.default_rng(3).normal(size=(5, 2)))),
        rankings(softmax(np.random.default_rng(3).normal(size=(4, 2)), np.arange(4.0) ** 1.5)),
        rankings(softmax([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])),
    ],
    ids=["sets", "sets with bias", "degenerate sets", "rankings", "rankings with bias", "degenerate rankings"],
)
def test_draws_are_uniform(patterns):
    from scipy.stats import chisquare

    draws = 200 * len(patterns)
    found, counts = np.unique(patterns.sample(draws, seed=1), axis=0, return_counts=True)
    assert made.as_set(found) == made.as_set(patterns.to_array())
    assert chisquare(counts).pvalue > 1e-3
    assert np.array_equal(patterns.sample(5, seed=2), patterns.sample(5, seed=2))


def test_a_draw_from_a_head_that_cannot_be_listed():
    sets = CellList(arrange(whole_rows(np.random.default_rng(1).normal(size=(90, 12)))), general=True)
    words = sets.draw(random.Random(0), 20)
    assert words.shape == (20, 2)
    W = np.random.default_rng(1).normal(size=(90, 12))
    for w in unpack(words, 90)[:3]:
        assert made.holds((w * 2.0 - 1)[:, None] * W)


def test_the_difference_of_two_heads():
    rng = np.random.default_rng(9)
    a, b = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    first, second = label_sets(sigmoid(a)), label_sets(sigmoid(b))
    assert made.as_set(first.difference(second)) == made.as_set(first.to_array()) - made.as_set(second.to_array())
    assert len(first.difference(first)) == 0
    with pytest.raises(GonioError, match="as many labels"):
        first.difference(label_sets(sigmoid(a[:5])))


def test_what_is_too_much_is_refused_before_it_begins():
    big = label_sets(sigmoid(np.random.default_rng(0).normal(size=(200, 20))))
    with pytest.raises(GonioError, match=r"up to \S+ of them, about \S+ minutes"):
        big.to_array()
    with pytest.raises(GonioError, match="limit=None"):
        next(big.blocks())
    assert big.most == count_label_sets(200, 20)
    with pytest.raises(GonioError, match="GB"):
        label_sets(sigmoid(np.random.default_rng(0).normal(size=(60, 9)))).to_array()
    with pytest.raises(GonioError, match="cosine"):
        label_sets(Head([[1.0]], link="cosine"))


def test_counts_shares_and_impossible_ones():
    W = np.random.default_rng(0).normal(size=(10, 5))
    sets, ranked = label_sets(sigmoid(W)), rankings(softmax(W))
    assert (sets.count, sets.impossible, sets.share) == (512, 512, 0.5)
    assert ranked.conceivable == 3_628_800
    assert ranked.impossible == 3_628_800 - 128_288
    assert ranked.to_dict()["count"] == 128_288
    assert "labels" in repr(sets)


def test_membership_is_that_of_the_listing():
    rng = np.random.default_rng(2)
    sets = label_sets(sigmoid(rng.normal(size=(5, 2)), rng.normal(size=5)))
    ranked = rankings(softmax(rng.normal(size=(4, 2))))
    from itertools import permutations, product

    have = made.as_set(sets.to_array())
    assert {s for s in product([-1, 1], repeat=5) if np.array(s) in sets} == have
    assert {p for p in permutations(range(4)) if p in ranked} == made.as_set(ranked.to_array())
    named = label_sets(Head(np.eye(2), link="sigmoid", labels=["a", "b"]))
    assert {"a"} in named
    assert ["a", "b"] in named
    with pytest.raises(GonioError, match="not a label set"):
        assert [1, -1] in sets
    with pytest.raises(GonioError, match="each of the 4 labels once"):
        assert [0, 1] in ranked


@pytest.mark.theorem("NG26.PE.2")
def test_sign_patterns_depend_on_the_column_space_alone():
    rng = np.random.default_rng(3)
    W = rng.integers(-3, 4, size=(6, 3)).astype(float)
    M = np.array([[1.0, 2, 0], [0, 1, 3], [2, 0, 1]])
    assert made.as_set(label_sets(sigmoid(W)).to_array()) == made.as_set(label_sets(sigmoid(W @ M)).to_array())
