"""Assertions about what a head can output: every label can win, no padded row does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gonio.ask.wins import CanWin, can_win
from gonio.core.errors import GonioError
from gonio.core.head import Head, Label
from gonio.core.readable_label import quoted
from gonio.proofs.certificate_base import Certificate
from gonio.proofs.certificates import NeverWins, Wins
from gonio.testing.kept_proofs import SHOWN, head_of, kept, named


def assert_every_label_can_win(
    model: Any, *, but: Sequence[Label] = (), with_equals: bool = False, **options: Any
) -> None:
    """Fail unless every label is proven to win at some input.

    but           labels that need not (padded rows, say)
    with_equals   whether a label may share the top with labels whose scores are its own at every input
    options       of `gonio.load`, where the model is not a `Head`
    """
    __tracebackhide__ = True
    head = head_of(model, **options)
    result = can_win(head)
    excused = {head.index(x) for x in but}
    groups = [("can never win", result.never), ("are neither proven to win nor proven not to", result.undecided)]
    if not with_equals:
        groups.append(("can be on top only with equal rows (with_equals=True allows it)", result.shared))
    failing = [(words, [int(i) for i in which if int(i) not in excused]) for words, which in groups]
    failing = [(words, which) for words, which in failing if which]
    if failing:
        raise AssertionError(_told(head, result, failing, head.shape[0], "labels", "never-wins"))


def assert_no_padded_wins(model: Any, *, padded: Sequence[Label] | None = None, **options: Any) -> None:
    """Fail unless every padded row is proven never to be on top, neither alone nor tied with rows equal to it.

    padded    the rows; without them those that the model's file tells (more rows than its tokenizer has tokens)
    options   of `gonio.load`, where the model is not a `Head`
    """
    __tracebackhide__ = True
    head = head_of(model, **options)
    rows = head.padded if padded is None else np.array([head.index(x) for x in padded], dtype=np.int64)
    if padded is None and not len(rows):
        raise GonioError(
            "assert_no_padded_wins: nothing in the model tells which rows are padded; give padded=[labels], or "
            "padded=[] if there are none."
        )
    if not len(rows):
        return
    result = can_win(head, rows)
    groups = [("can be on top", result.tops), ("are neither proven to win nor proven not to", result.undecided)]
    failing = [(words, which.tolist()) for words, which in groups if len(which)]
    if failing:
        told = _told(head, result, failing, len(rows), "padded rows", "padded-wins")
        raise AssertionError(f"{told} gonio pad writes rows that provably never win.")


def _told(head: Head, result: CanWin, failing: list[tuple[str, list[int]]], of: int, word: str, name: str) -> str:
    """The message: how many, which, why each of the first, and where the proofs are."""
    lines = [f"{len(which):,} of {of:,} {word} {words}: {named(head, which)}." for words, which in failing]
    all_of_them = [i for _, which in failing for i in which]
    proofs = [result.certificate(i) for i in all_of_them]
    lines += [f"  {quoted(head.labels[i])}: {_why(head, p)}" for i, p in zip(all_of_them[:SHOWN], proofs, strict=False)]
    proven = [p for p in proofs if isinstance(p, (Wins, NeverWins))]
    return "\n".join(x for x in [*lines, kept(head, proven, name)] if x)


def _why(head: Head, proof: Certificate) -> str:
    """A proof in words."""
    if isinstance(proof, NeverWins) and len(proof.weights):
        order = np.argsort(-proof.weights)
        shares = ", ".join(f"{proof.weights[k]:.3g} {quoted(head.labels[int(proof.rivals[k])])}" for k in order[:SHOWN])
        more = f" and {len(order) - SHOWN} more" if len(order) > SHOWN else ""
        return f"a mean of other labels is never below it: {shares}{more} (verified)"
    if isinstance(proof, NeverWins):
        return "at each of the observed embeddings another label is not below it (verified)"
    if isinstance(proof, Wins):
        return f"there is an input at which it leads by at least {proof.verify(head):.3g} (verified)"
    return str(getattr(proof, "why", "not decided"))
