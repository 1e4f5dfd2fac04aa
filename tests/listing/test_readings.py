"""What the stored numbers stand for: the rationals they are, the decimals they print as, or values up to a tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import GonioError, Head, label_sets, rankings
from gonio.listing import cell_list, exact_cells
from gonio.listing.arrangement import arrange, whole_rows
from tests.listing import made
from tests.listing.made import sigmoid, softmax

FIGURE_4 = (
    [[-0.8, 1], [0.8, 1], [0.55, -0.5], [-1, -1], [1, -1]],
    [[-1, 1], [1, 1], [0.35, -0.5], [-0.8, -1], [0.8, -1]],
)


def test_floats_of_every_size_are_the_rationals_they_are():
    rng = np.random.default_rng(4)
    W = rng.normal(size=(6, 3)) * np.array([1e-200, 1.0, 1e150, 3e-5, 1e9, 1.0])[:, None]
    W[5] = W[1] + W[3]  # a rounded sum: only nearly in their span
    sets = label_sets(sigmoid(W))
    a = arrange(whole_rows(W))
    exact = {tuple(s) for s, _ in exact_cells.cells(a.whole, exact_cells.random_functionals(a.rank))}
    assert len(sets) == 2 * len(exact)


def test_a_sum_of_floats_that_is_exact_is_found_to_be_dependent():
    rng = np.random.default_rng(5)
    W = np.round(rng.normal(size=(7, 3)) * 2**20) / 2**20
    W[6] = W[0] + W[1]
    sets = label_sets(sigmoid(W))
    assert not sets.general
    assert sets.count < sets.most
    W[6, 0] = np.nextafter(W[6, 0], 9)
    assert label_sets(sigmoid(W)).count == sets.most


def test_the_rounding_of_differences_would_give_other_rankings():
    # Differences formed in floats are no longer sums of each other; formed exactly they are.
    W = np.random.default_rng(6).normal(size=(7, 4))
    assert rankings(softmax(W)).count == 1512
    i, j = np.triu_indices(7, 1)
    assert label_sets(sigmoid(W[i] - W[j])).count > 1512


def test_a_tolerance_sees_through_noise_and_says_what_it_merged():
    rng = np.random.default_rng(7)
    W = made.resonance(4) @ rng.normal(size=(4, 4)) + 1e-13 * rng.normal(size=(15, 4))
    assert label_sets(sigmoid(W)).count > 370
    assert label_sets(sigmoid(W), numbers=1e-9).count == 370
    W = np.vstack([W, -3 * W[0] * (1 + 1e-12), 1e-14 * W[1]])
    sets = label_sets(sigmoid(W), numbers=1e-9, drop_zero=True)
    assert sets.count == 370
    assert any("merged" in x for x in sets.notes)
    assert any("taken for zero" in x for x in sets.notes)
    array = sets.to_array()
    assert (array[:, 15] == -array[:, 0]).all()
    assert (array[:, 16] == 0).all()


def test_a_tolerance_amid_the_values_is_refused():
    W = np.random.default_rng(8).normal(size=(12, 3))
    with pytest.raises(GonioError, match="not apart"):
        len(label_sets(sigmoid(W), numbers=0.05))


def test_many_cells_in_doubt_make_a_second_walk_and_the_same_list(monkeypatch):
    W = np.random.default_rng(0).normal(size=(9, 3))
    W[6:] = W[:3] + 1e-15 * W[3:6]  # nearly parallel: floats alone cannot tell many of the signs
    truth = made.as_set(label_sets(sigmoid(W)).to_array())
    monkeypatch.setattr(cell_list, "ROOM_FOR_DOUBTS", 1)
    assert made.as_set(label_sets(sigmoid(W)).to_array()) == truth
    whole = arrange(whole_rows(W)).whole
    assert len(truth) == 2 * sum(1 for _ in exact_cells.cells(whole, exact_cells.random_functionals(3)))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("points", FIGURE_4)
def test_decimals_that_floats_miss_have_two_readings(points, kind):
    X = np.array(points, kind)
    sets = label_sets(Head(np.hstack([np.ones((5, 1), kind), X]), link="sigmoid"))
    orders = rankings(Head(X, link="softmax"))
    for found, stored, meant in ((sets, 22, 20), (orders, 18, 14)):
        assert (found.count, found.near_degenerate.count) == (stored, meant)
        assert found.near_degenerate.reading == "decimals"
        assert found.to_dict()["near_degenerate"]["count"] == meant
    assert sets.near_degenerate.minors == 1
    assert len(label_sets(sets.head, numbers="decimals")) == 20
    assert made.as_set(rankings(orders.head, numbers="decimals").to_array()) < made.as_set(orders.to_array())


def test_roots_that_floats_miss_are_read_with_a_tolerance():
    from gonio.papers.counterexamples import scaled_row

    figure = scaled_row()
    for head, count in ((figure.first, 16), (figure.second, 28)):
        near = rankings(head).near_degenerate
        assert (near.reading, near.count) == ("tolerance", count)
        assert label_sets(head.replace(link="sigmoid")).near_degenerate.count == 8


def test_heads_far_from_degenerate_have_one_reading():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        W = rng.normal(size=(6, 3)).astype(np.float32 if seed % 2 else np.float64)
        for found in (label_sets(Head(W, link="sigmoid")), rankings(Head(W.round(1 + seed % 3), link="softmax"))):
            near = found.near_degenerate
            assert near is None or near.reading == "decimals"
    assert label_sets(Head([[1, 2], [3, 4], [5, 6.5]], link="sigmoid")).near_degenerate is None


def test_numbers_with_many_digits_are_no_decimals():
    with pytest.raises(GonioError, match="too many digits"):
        label_sets(Head([[np.sqrt(0.5), 1]], link="sigmoid"), numbers="decimals")


@pytest.mark.parametrize("bad", [0, -1, np.nan, 1.0, True, "exact"])
def test_what_is_no_reading_of_the_numbers_is_refused(bad):
    with pytest.raises(GonioError, match=f"numbers is {bad!r}; .* is needed"):
        rankings(softmax([[1.0], [2.0]]), numbers=bad)
