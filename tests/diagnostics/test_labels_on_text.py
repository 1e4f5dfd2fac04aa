"""What was seen over a text: counted naively, and estimates that hold where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.core.errors import GonioError
from gonio.core.states import States
from gonio.diagnostics.labels_on_text import seen_labels


def states_of(F, documents=None, tokens=None):
    n = len(F)
    return States(
        F,
        np.zeros(n, int) if documents is None else documents,
        np.arange(n),
        np.full(n, -1) if tokens is None else tokens,
    )


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("softcap", [None, 2.0])
def test_winners_lists_and_probabilities_are_those_of_plain_softmax(bias, softcap):
    rng = np.random.default_rng(0)
    head = gonio.Head(
        rng.standard_normal((40, 6)), rng.standard_normal(40) if bias else None, link="softmax", softcap=softcap
    )
    F = rng.standard_normal((333, 6))
    found = seen_labels(head, F, k=5)
    p = head.probabilities(F)
    assert found.winners.tolist() == p.argmax(axis=1).tolist()
    assert found.top.tolist() == np.bincount(p.argmax(axis=1), minlength=40).tolist()
    lists = np.argsort(-p, axis=1, kind="stable")[:, :5]
    assert found.among.tolist() == np.bincount(lists.ravel(), minlength=40).tolist()
    assert np.abs(found.largest - p.max(axis=0)).max() < 1e-12


def test_the_first_of_equal_labels_is_on_top():
    head = gonio.Head([[1.0, 0], [1, 0], [0, 1]], link="softmax")
    assert seen_labels(head, [[1.0, 0]], k=1).winners.tolist() == [0]


def test_estimates_by_their_definitions():
    head = gonio.Head(np.eye(6), link="softmax")
    winners = [0, 0, 0, 1, 1, 2, 3]
    S = states_of(np.eye(6)[winners], np.array([0, 0, 1, 1, 1, 2, 2]))
    found = seen_labels(head, S, k=1)
    assert found.next_is_new.value == 2 / 7  # 2 and 3 were seen once
    assert found.twice_the_text.value == 2 - 1 + 1  # n_1 - n_2 + n_3
    assert found.new_in_another_document.value == 4 / 7  # 1, 1, 2 and 3
    assert found.next_is_new.low is None  # three documents tell nothing of others


def test_intervals_hold_what_they_estimate():
    """Documents that each are fond of some labels; truth from fresh documents of the same kind."""
    rng = np.random.default_rng(7)
    popular = rng.dirichlet(np.full(200, 0.25))
    head = gonio.Head(np.eye(200), link="softmax")

    def text(count):
        out, of = [], []
        for d in range(count):
            fond = rng.dirichlet(popular * 30 + 1e-3)
            out.append(rng.choice(200, 40, p=fond))
            of.append(np.full(40, d))
        return np.concatenate(out), np.concatenate(of)

    inside = 0
    for _ in range(60):
        winners, of = text(40)
        found = seen_labels(head, states_of(np.eye(200)[winners], of), k=1)
        fresh, _ = text(100)
        truth = float((~np.isin(fresh, winners)).mean())
        e = found.new_in_another_document
        inside += e.low <= truth <= e.high
    assert inside >= 51  # 57 of 60 are meant; fewer than 51 would come by chance once in 500


def test_hubs_follow_frequency_where_the_text_is_what_is_predicted():
    head = gonio.Head(np.eye(8), link="softmax")
    tokens = np.repeat(np.arange(8), [40, 20, 10, 8, 6, 4, 2, 1])
    found = seen_labels(head, states_of(np.eye(8)[tokens], tokens=tokens), k=1)
    assert found.follows_frequency == pytest.approx(1)
    assert found.frequency.tolist() == [40, 20, 10, 8, 6, 4, 2, 1]


def test_only_softmax_heads_have_winners():
    with pytest.raises(GonioError, match="link is 'sigmoid'"):
        seen_labels(gonio.Head(np.eye(3), link="sigmoid"), np.eye(3))
