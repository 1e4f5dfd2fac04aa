"""The enclosure of the smallest gap, given bounds of all scores: rounded outwards, and nobody left out of it."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import Head
from gonio.proofs.margins import Places
from gonio.proofs.score_gaps import (
    NOBODY,
    ZERO,
    LeastGap,
    _least_of_pairs,
    _least_of_top,
    least_gap,
    scores_with_bounds,
)
from tests.proofs.rationals import exact


def with_scores(*scores):
    """A head whose scores at its one place are these, and the place."""
    head = Head(np.array(scores, float)[:, None], link="softmax")
    return head, Places(head.inputs, np.ones((1, 1)))


def pairs(scores, above, below, least, most):
    head, places = with_scores(*scores)
    return _least_of_pairs(
        head, np.array(above), np.array(below), places, np.array(least, float), np.array(most, float)
    )


def top_of(scores, top, least, most):
    head, places = with_scores(*scores)
    return _least_of_top(head, np.array(top), places, np.array(least, float), np.array(most, float))


def test_differences_of_bounds_are_rounded_outwards_and_by_little():
    rng = np.random.default_rng(0)
    for _ in range(400):
        below, above = rng.uniform(-9, 9, 2), rng.uniform(10, 99, 2)
        below.sort()
        above.sort()
        least, most = [above[0], below[0]], [above[1], below[1]]
        low, high = exact(above[0]) - exact(below[1]), exact(above[1]) - exact(below[0])
        for found in (pairs([0, 0], [0], [1], least, most), top_of([0, 0], [0], least, most)):
            assert exact(found.at_least) <= low
            assert exact(found.at_most) >= high
            assert found.at_least == pytest.approx(float(low), rel=2e-15, abs=0)
            assert found.at_most == pytest.approx(float(high), rel=2e-15, abs=0)


def test_pairs_that_bounds_settle_count_by_them_and_the_others_exactly():
    least, most = [4.0, 2.5, 1.0], [5.0, 3.5, 2.0]
    assert pairs([4.5, 3, 1.5], [0], [1], least, most) == LeastGap(pytest.approx(0.5), pytest.approx(2.5))
    # bounds that touch are no proof: the exact scores are taken
    assert pairs([7, 0], [0], [1], [2, 0], [8, 2]) == LeastGap(7, 7)
    assert pairs([7, 7], [0], [1], [2, 0], [8, 2]) == LeastGap(0, 0)
    # a settled pair beside one that is not: the smaller counts, whichever it is
    both = pairs([4.5, 1.5, 9, 1], [0, 2], [1, 3], [4, 1, 0, 0], [5, 2, 9, 9])
    assert both == LeastGap(pytest.approx(2), pytest.approx(4))
    both = pairs([4.5, 1.5, 2, 1], [0, 2], [1, 3], [4, 1, 0, 0], [5, 2, 9, 9])
    assert both == LeastGap(1, 1)
    assert pairs([4.5, 1.5, 1, 2], [0, 2], [1, 3], [4, 1, 0, 0], [5, 2, 9, 9]) == LeastGap(-1, -1)


# Label 0 may be as low as 4 and is 8; label 2 may be as high as 5 and is 3. Those beside them do not overlap.
TOP, OTHER = (8, 4, 9), (3, 2, 5)  # score, least, most


@pytest.mark.parametrize(
    ("more_top", "more_others", "at_least"),
    [
        ([], [], 5),
        ([(7, 6, 7.5)], [], 3),
        ([(7, 6, 7.5), (8, 7, 9)], [], 3),
        ([], [(3.25, 3, 3.5)], 4.5),
        ([], [(3.25, 3, 3.5), (3, 3, 3.25)], 4.5),
        ([(8, 7, 9), (7, 6, 7.5)], [(3, 3, 3.25), (3.25, 3, 3.5)], 2.5),
        ([(9, 8.5, 9)], [(1, 0, 2)], 5),
    ],
)
def test_labels_that_do_not_overlap_lower_the_gap_by_their_bounds(more_top, more_others, at_least):
    several = [TOP, *more_top, OTHER, *more_others]
    scores, least, most = zip(*several, strict=True)
    found = top_of(scores, range(1 + len(more_top)), least, most)
    assert found == LeastGap(at_least, 5)


def test_a_gap_below_one_is_lowered_by_those_beside_it_too():
    found = top_of([0.8, 0.7, 0.3], [0, 1], [0.4, 0.6, 0.2], [0.9, 0.75, 0.5])
    assert found.at_least == pytest.approx(0.3)
    assert found.at_most == pytest.approx(0.5)


def test_labels_on_top_whose_bounds_touch_those_below_are_compared_exactly():
    assert top_of([8, 3], [0], [4, 2], [9, 4]) == LeastGap(5, 5)
    assert top_of([4, 4], [0], [4, 2], [9, 4]) == LeastGap(0, 0)
    assert top_of([2, 3], [0], [1, 2], [9, 4]) == LeastGap(-1, -1)


def test_gaps_are_those_of_the_bounds_of_the_scores():
    """Scores whose bounds are wide: a gap is counted from the low end of one to the high end of the other."""
    W = [[1e20, -1e20, 1e7], [1e20, -1e20, 0], [1e20, -1e20, -1e7]]
    head = Head(W, link="softmax")
    places = Places(head.inputs, np.ones((1, 3)))
    score, bound = scores_with_bounds(head, places)
    assert bound[0] > 1e4
    low, high = score - bound, score + bound
    for above, below, top in (([0], [1], NOBODY), ([0], [2], NOBODY), (NOBODY, NOBODY, [0])):
        found = least_gap(head, np.array(above), np.array(below), np.array(top), places)
        k = below[0] if len(below) else 1
        assert found.at_least == pytest.approx(low[0] - high[k], rel=1e-12)
        assert found.at_most == pytest.approx(high[0] - low[k], rel=1e-12)
    found = least_gap(head, np.array([0]), np.array([ZERO]), NOBODY, places)
    assert (found.at_least, found.at_most) == pytest.approx((low[0], high[0]), rel=1e-12)


def test_a_score_far_above_zero_is_enclosed_closely():
    head, places = with_scores(7, -5)
    for above, below, true in ((0, ZERO, 7), (ZERO, 1, 5)):
        found = least_gap(head, np.array([above]), np.array([below]), NOBODY, places)
        assert (found.at_least, found.at_most) == pytest.approx((true, true), rel=1e-13)
