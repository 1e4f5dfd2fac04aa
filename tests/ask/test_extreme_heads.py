"""Heads whose numbers are as large, small and far apart as floats allow: every question has an answer or a sentence."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import gonio
from gonio import AfterLayerNorm, AfterRMSNorm, Box, Head
from gonio.core.errors import GonioError
from gonio.proofs.bulk import verify_all
from tests.proofs.forging import head_of

QUESTIONS = {
    "can_win": lambda head: list(gonio.can_win(head).certificates()),
    "can_tie": lambda head: [gonio.can_tie(head, 0, 1).certificate],
    "can_rank": lambda head: [gonio.can_rank(head, list(range(head.shape[0]))).certificate],
    "can_top": lambda head: [gonio.can_top(head, [0]).certificate],
    "can_label": lambda head: [gonio.can_label(head, on=[0], off=[1]).certificate],
}


def ask_of(seed, heads):
    """How often each question was proven either way, left open, or answered with a sentence."""
    rng, tally = np.random.default_rng(seed), Counter()
    for _ in range(heads):
        try:
            head = head_of(rng)
        except GonioError:  # no input is possible, or a number that the type does not hold
            continue
        for name, ask in QUESTIONS.items():
            if head.shape[0] < 2 and name != "can_win":
                continue
            asked = head.replace(link="sigmoid") if name == "can_label" else head
            try:
                proofs = ask(asked)
            except GonioError as e:
                assert "divide rows and bias" in str(e), (name, e)
                tally[name, "sentence"] += 1
                continue
            proofs = [c for c in proofs if c.kind not in ("undecided", "open")]
            assert not verify_all(asked, proofs).refused, (name, asked.W.tolist(), asked.bias, asked.inputs.to_dict())
            tally[name, "proven"] += len(proofs)
    return tally


def test_every_question_about_extreme_heads_is_answered_or_refused_in_a_sentence():
    tally = ask_of(1, 60)
    assert min(tally[name, "proven"] for name in QUESTIONS) > 20
    assert sum(n for (_, what), n in tally.items() if what == "sentence") < 10


@pytest.mark.slow
def test_a_thousand_extreme_heads():
    assert ask_of(2, 1000)["can_win", "proven"] > 2000


@pytest.mark.parametrize("size", [1e200, 1e308])
def test_gains_and_shifts_beyond_floats_are_a_sentence(size):
    W = np.array([[10.0, 0, 1], [0, 10, 1], [-10, -10, 1]]) * (1e120 if size < 1e300 else 1)
    for inputs in (AfterRMSNorm(np.full(3, size)), AfterLayerNorm(np.ones(3), np.array([size, -size, 0]))):
        for name, ask in QUESTIONS.items():
            head = Head(W, link="sigmoid" if name == "can_label" else "softmax", inputs=inputs)
            with pytest.raises(GonioError, match="beyond the largest float"):
                ask(head)


@pytest.mark.parametrize("mask", [-100.0, -1e9, -1e30, -1e200])
@pytest.mark.parametrize(
    "inputs", [AfterLayerNorm(np.linspace(0.5, 2, 6)), AfterRMSNorm(np.ones(6)), Box(-1, 1)], ids=str
)
def test_masked_labels_do_not_blur_the_others(mask, inputs):
    rng = np.random.default_rng(0)
    W, bias = rng.standard_normal((40, 6)), rng.standard_normal(40)
    bias[:5] = mask
    masked = gonio.can_win(Head(W, bias, link="softmax", inputs=inputs))
    alone = gonio.can_win(Head(W[5:], bias[5:], link="softmax", inputs=inputs))
    kinds = [c.kind for c in masked.certificates()]
    assert kinds[:5] == ["never wins"] * 5
    assert kinds[5:] == [c.kind for c in alone.certificates()]
    assert "undecided" not in kinds
    if mask < -1e6:
        highest = masked.head.labels[int(bias.argmax())]
        assert masked.reason(0) == f"so far below {highest!r} by its bias that no input makes up for it"
    pairs = [(0, 1), (0, int(bias.argmax())), (7, 3), (6, 7), (20, 30), (8, int(bias.argmax()))]
    ties = gonio.can_tie(masked.head, pairs=[p for p in pairs if p[0] != p[1]])
    assert not verify_all(masked.head, [ties.certificate(k) for k in range(len(ties))]).refused
    assert ties.answers[:3] == ("no",) * 3


@pytest.mark.parametrize("what", [1.5, None, True, np.nan, 5.0, object()])
def test_what_is_no_list_of_labels_is_a_sentence(what):
    head = Head(np.eye(3), link="softmax")
    scores = head.replace(link="sigmoid")
    asks = [
        lambda: gonio.can_rank(head, what),
        lambda: gonio.can_top(head, what),
        lambda: gonio.can_tie(head, pairs=[what]),
        lambda: gonio.can_label(scores, on=what),
        lambda: gonio.can_label(scores, off=what),
        lambda: gonio.can_labels(scores, [what]),
    ]
    asks += [lambda: gonio.can_win(head, what), lambda: gonio.can_tie(head, pairs=what)] if what is not None else []
    for ask in asks:
        with pytest.raises(GonioError):
            ask()


def test_one_label_may_be_asked_for_without_a_list():
    assert gonio.can_label(Head(np.eye(3), link="sigmoid"), on=2).answer == "yes"


def test_a_label_whose_row_another_has_with_a_higher_bias_never_wins_over_observed_inputs_either():
    head = Head(np.eye(3)[[0, 0, 1]], [0.0, 1, 0], link="softmax", inputs=gonio.Observed(np.eye(3)))
    verdict = gonio.can_win(head, 0)
    assert verdict.answer == "no"
    assert "observed embeddings" in str(verdict)
