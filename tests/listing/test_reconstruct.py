"""What all cosines together fix: label sets, rankings, the head; and the examples that show what they do not."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonio import GonioError, Head, label_sets, rankings, remedies
from gonio.listing.gram_factor import rows_from_gram
from gonio.listing.oriented_matroid import minor_signs
from gonio.listing.reconstruct import (
    cosines,
    cosines_of_differences,
    head_from_cosines,
    head_from_cosines_of_differences,
    label_sets_from_cosines,
    rankings_from_cosines,
    with_bias,
)
from gonio.papers import reconstruction_grid
from gonio.papers.counterexamples import affine_points, scaled_row
from tests.listing import made


@pytest.mark.theorem("NG26.D5.2")
def test_the_cosine_matrix_is_that_of_single_cosines():
    from gonio.gauge.reach import cosine

    W = np.random.default_rng(0).normal(size=(5, 3)) * [[1e-3], [1], [1e3], [2], [5]]
    single = [[cosine(a, b) for b in W] for a in W]
    assert np.abs(cosines(W) - single).max() < 1e-14


@pytest.mark.theorem("NG26.L5.3")
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 7), d=st.integers(1, 4))
def test_the_cosine_matrix_fixes_the_label_sets(seed, n, d):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, d)) * rng.uniform(0.1, 10, size=(n, 1))
    assert made.as_set(label_sets_from_cosines(cosines(W)).to_array()) == made.as_set(
        label_sets(Head(W, link="sigmoid")).to_array()
    )


@pytest.mark.theorem("NG26.T5.6")
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 6), d=st.integers(1, 4))
def test_the_cosines_of_differences_fix_the_rankings(seed, n, d):
    W = np.random.default_rng(seed).normal(size=(n, d)) + 7
    found = rankings_from_cosines(cosines_of_differences(W))
    assert made.as_set(found) == made.as_set(rankings(Head(W, link="softmax")).to_array())


@pytest.mark.theorem("GONIO.head-from-differences")
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 7), d=st.integers(2, 4))
def test_the_cosines_of_differences_fix_the_head_up_to_translation_rotation_and_scale(seed, n, d):
    W = np.random.default_rng(seed).normal(size=(n, d)) * 3 + 5
    back = head_from_cosines_of_differences(cosines_of_differences(W)).W
    X, Y = W - W.mean(axis=0), back - back.mean(axis=0)
    X, Y = X / np.linalg.norm(X), Y / np.linalg.norm(Y)
    assert np.abs(X @ X.T - Y @ Y.T).max() < 1e-7


def test_labels_on_a_line_keep_nothing_but_their_order():
    W = np.array([[0.0, 0], [1, 2], [3, 6]])
    with pytest.raises(GonioError, match="one line"):
        head_from_cosines_of_differences(cosines_of_differences(W))
    assert made.as_set(rankings_from_cosines(cosines_of_differences(W))) == {(0, 1, 2), (2, 1, 0)}


@pytest.mark.theorem("GONIO.head-from-cosines")
def test_for_rows_of_one_length_the_cosines_fix_the_head_and_its_rankings():
    W = np.random.default_rng(0).normal(size=(6, 3))
    W = 4 * W / np.linalg.norm(W, axis=1, keepdims=True)
    back = head_from_cosines(cosines(W))
    assert np.abs(16 * back.W @ back.W.T - W @ W.T).max() < 1e-12
    assert made.as_set(rankings(back).to_array()) == made.as_set(rankings(Head(W, link="softmax")).to_array())


def test_with_a_bias_the_extra_row_is_needed():
    W = np.array([[1.0, 0], [0, 1], [1, 1]])
    one, other = (Head(W, np.array([0, 0, b]), link="sigmoid") for b in (1.0, -1.0))
    assert np.array_equal(cosines(one.W), cosines(other.W))
    assert made.as_set(label_sets(one).to_array()) != made.as_set(label_sets(other).to_array())
    # With the extra row the cosines do fix them: the plus side of that row, from cosines alone.
    for head in (one, other):
        signs = label_sets_from_cosines(cosines(with_bias(head))).to_array()
        assert made.as_set(signs[signs[:, 0] > 0][:, 1:]) == made.as_set(label_sets(head).to_array())


@pytest.mark.theorem("NG26.T5.5")
def test_figure_3_equal_cosines_and_different_rankings():
    c = scaled_row()
    assert c.largest_cosine_difference < 1e-15
    assert c.label_sets == 8
    assert c.counts == (16, 28)
    assert len(c.first_only) == 8
    assert len(c.second_only) == 20
    assert not (rankings(c.second, numbers=1e-9).to_array()[:, 0] == 2).any()
    assert (rankings(c.first, numbers=1e-9).to_array()[:, 0] == 2).any()


@pytest.mark.theorem("NG26.TH.1")
def test_figure_4_equal_label_sets_and_different_rankings_of_points():
    c = affine_points()
    assert c.label_sets == 20
    assert c.counts == (14, 14)
    told = lambda rows: {"".join(str(i + 1) for i in r) for r in rows.tolist()}  # noqa: E731
    assert told(c.first_only) == {"52314", "41325"}
    assert told(c.second_only) == {"14352", "25341"}
    sets = label_sets(Head(np.hstack([np.ones((5, 1)) * 20, c.first.W]), link="sigmoid"))
    positive = {"".join("+" if x > 0 else "-" for x in r) for r in sets.to_array().tolist() if r[0] > 0}
    assert positive == {"+++++", "++++-", "+++-+", "+++--", "++-+-", "++---", "+-+++", "+-++-", "+--+-", "+----"}


def test_the_papers_whole_verification_grid_passes():
    assert reconstruction_grid.verify_grid() == (200, 200)


@pytest.mark.theorem("GRIV24.dft")
@pytest.mark.theorem("GRIV24.rule")
@pytest.mark.parametrize(("n", "k", "count"), [(8, 1, 58), (8, 2, 198), (10, 2, 512), (5, 0, 2), (7, 3, 128)])
def test_the_fourier_head_outputs_what_its_rule_says(n, k, count):
    head = remedies.dft(n, k)
    assert np.abs(head.W.T @ head.W - np.eye(2 * k + 1)).max() < 1e-14
    have = made.as_set(label_sets(head).to_array())
    everything = np.array(list(product([-1, 1], repeat=n)))
    assert have == made.as_set(everything[remedies.dft_allows(everything, k)])
    assert len(have) == count
    assert all(tuple(s) in have for s in everything.tolist() if sum(x > 0 for x in s) <= k)


def test_a_random_head_of_the_same_shape_misses_small_sets():
    W = np.random.default_rng(0).normal(size=(10, 5))
    have = made.as_set(label_sets(Head(W, link="sigmoid")).to_array())
    small = [s for s in product([-1, 1], repeat=10) if sum(x > 0 for x in s) <= 2]
    assert len(have) == 512
    assert sum(s not in have for s in small) > 10
    slack = remedies.dft(10, 2, slack=W[:, :1])
    assert slack.shape == (10, 6)
    assert made.as_set(label_sets(remedies.dft(10, 2)).to_array()) <= made.as_set(label_sets(slack).to_array())


ROUNDED = {
    "12 decimals": lambda C: C.round(12),
    "9 decimals": lambda C: C.round(9),
    "6 decimals": lambda C: C.round(6),
    "float32": lambda C: C.astype(np.float32),
    "float32 in float64": lambda C: C.astype(np.float32).astype(float),
}


def from_cosines(function, C):
    """The patterns, or None where they were refused with the precision of the cosines as the reason."""
    try:
        found = function(C)
    except GonioError as e:
        assert "good to" in str(e) or "form a cycle" in str(e)
        return None
    return made.as_set(found if isinstance(found, np.ndarray) else found.to_array())


@pytest.mark.parametrize("rounded", ROUNDED)
def test_rounded_cosines_of_the_figures_give_the_figures_patterns(rounded):
    points = affine_points()
    for head in (points.first, points.second):
        W = np.hstack([np.full((5, 1), 20.0), head.W])
        C, D = (ROUNDED[rounded](X) for X in (cosines(W), cosines_of_differences(head.W)))
        assert len(from_cosines(label_sets_from_cosines, C)) == 20
        assert from_cosines(rankings_from_cosines, D) == made.as_set(rankings(head).to_array())
    circle = scaled_row()
    for head, count in ((circle.first, 16), (circle.second, 28)):
        assert len(from_cosines(label_sets_from_cosines, ROUNDED[rounded](cosines(head.W)))) == 8
        assert len(from_cosines(rankings_from_cosines, ROUNDED[rounded](cosines_of_differences(head.W)))) == count


@pytest.mark.parametrize("rounded", ROUNDED)
def test_no_pattern_is_invented_from_rounded_cosines(rounded):
    right = asked = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, d, thin = int(rng.integers(2, 7)), int(rng.integers(1, 5)), 10.0 ** -rng.integers(0, 3)
        W = rng.normal(size=(n, d)) * np.r_[1, np.full(d - 1, thin)]
        sets, orders = (
            made.as_set(x.to_array()) for x in (label_sets(Head(W, link="sigmoid")), rankings(Head(W, link="softmax")))
        )
        for function, C, truth in (
            (label_sets_from_cosines, cosines(W), sets),
            (rankings_from_cosines, cosines_of_differences(W), orders),
        ):
            found = from_cosines(function, ROUNDED[rounded](C))
            assert found in (None, truth)
            asked, right = asked + 1, right + (found is not None)
    assert right > asked / 2


def test_a_precision_that_is_told_is_believed():
    W = np.random.default_rng(5).normal(size=(5, 2))
    noisy = cosines_of_differences(W) + 1e-6 * np.triu(np.random.default_rng(0).normal(size=(10, 10)), 1)
    noisy = np.triu(noisy, 1) + np.triu(noisy, 1).T + np.eye(10)
    truth = made.as_set(rankings(Head(W, link="softmax")).to_array())
    assert made.as_set(rankings_from_cosines(noisy, tol=3e-6)) == truth
    with pytest.raises(GonioError, match=r"good to 0.001 \(as given\)"):
        rankings_from_cosines(noisy, tol=1e-3)


def test_cosines_of_no_differences_are_refused():
    # Six unit vectors in a plane that are not the differences of four labels.
    angles = np.array([0.1, 2.0, 1.1, 0.5, 2.9, 1.4])
    with pytest.raises(GonioError, match="form a cycle"):
        rankings_from_cosines(np.cos(angles[:, None] - angles))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: remedies.dft(4, 2), "choose k <= 1"),
        (lambda: remedies.dft(0, 0), "n from 1"),
        (lambda: remedies.dft(5, 1, slack=np.ones((3, 1))), "shape"),
        (lambda: cosines(np.zeros((2, 2))), "zero"),
        (lambda: cosines_of_differences(np.ones((2, 2))), "equal rows"),
        (lambda: rows_from_gram(np.array([[1.0, 2], [2, 1]])), "none below 0"),
        (lambda: rows_from_gram(np.ones((2, 3))), "symmetric"),
        (lambda: rankings_from_cosines(np.eye(4)), "differences of n labels"),
        (lambda: minor_signs(np.ones((200, 40))), "minors"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, words):
    with pytest.raises(GonioError, match=words):
        call()
