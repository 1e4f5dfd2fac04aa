"""Can these labels be on and those off, can labels be ranked so, can these be the top.

One answer with its proof, any size: what is asked is put into comparisons here, and `decide` settles them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.ask.decide import Question, decide
from gonio.ask.verdict import Verdict
from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head, Label
from gonio.core.parallel import in_threads, one_blas_thread, spans
from gonio.core.readable_label import quoted
from gonio.proofs.certificate_base import Certificate
from gonio.proofs.comparisons import Impossible, Open, Possible
from gonio.proofs.score_gaps import NOBODY, ZERO

if TYPE_CHECKING:
    from jaxtyping import Int

CHUNK = 256  # label sets between two looks at the progress bar
ANSWER = {Possible: "yes", Impossible: "no", Open: "undecided"}


def can_label(head: Head, on: Any = (), off: Any = ()) -> Verdict:
    """Can these labels be on and those off at once, whatever the others are?

    yes  iff  some input x of the head has  w_i.x + b_i > 0 for i in `on`  and  w_j.x + b_j < 0 for j in `off`.

    `off="rest"` switches off every label that is not in `on`: one whole label set.

    >>> head = Head([[1, 0], [0, 1], [1, 1]], link="sigmoid", labels=["cat", "dog", "pet"])
    >>> can_label(head, on=["cat", "dog"], off=["pet"]).answer
    'no'

    Claims: GRIV24.feasible
    """
    _fits(head, "can_label")
    if head.link == "softmax":
        raise GonioError(
            "can_label: the head's link is softmax, which has one winner and no label sets (the sign of a "
            "logit changes "
            "with the gauge); ask can_win, can_rank or can_top, or load it with link sigmoid."
        )
    return _ask(head, _label_question(head, on, off), _label_words(head, on, off))


def can_labels(head: Head, sets: Iterable[Any], on_progress: Callable | None = None) -> CanLabel:
    """Whole label sets, one after the other: which of them can the head output? Each is a list of the labels
    that are on.
    """
    _fits(head, "can_label")
    several = [tuple(checks.listed(s, "can_label", "labels")) for s in checks.listed(sets, "can_label", "label sets")]
    if not several:
        raise GonioError("can_label: no label set was given.")
    indices = []
    for k, s in enumerate(several):
        try:
            indices.append(frozenset(head.index(x) for x in s))
        except GonioError as e:
            raise GonioError(f"can_label: label set {k + 1}: {e}") from None
    distinct = list(dict.fromkeys(indices))
    problem = head.inputs.reduce(head.W, head.bias)
    verdicts: dict[frozenset[int], Certificate] = {}
    head.digest  # noqa: B018  computed once, before threads ask for it
    with one_blas_thread():
        for start, stop in spans(len(distinct), CHUNK):
            part = distinct[start:stop]
            asked = [_label_question(head, sorted(s), "rest") for s in part]
            verdicts |= zip(part, in_threads(lambda q: decide(head, problem, q), asked), strict=True)
            if on_progress is not None:
                on_progress(stop, len(distinct), "label sets")
    return CanLabel(head, tuple(tuple(sorted(s)) for s in indices), tuple(verdicts[s] for s in indices))


@dataclass(frozen=True, eq=False, repr=False)
class CanLabel:
    """Label sets of a data set: which can the head output?"""

    head: Head
    sets: tuple[tuple[int, ...], ...]
    certificates: tuple[Certificate, ...]

    @property
    def answers(self) -> tuple[str, ...]:
        """yes, no or undecided for each set."""
        return tuple(ANSWER[type(c)] for c in self.certificates)

    @property
    def impossible(self) -> Int[np.ndarray, " some"]:
        """The places of the sets that no input gives."""
        return np.flatnonzero([a == "no" for a in self.answers])

    @property
    def undecided(self) -> Int[np.ndarray, " some"]:
        """The places of the sets of which neither is proven."""
        return np.flatnonzero([a == "undecided" for a in self.answers])

    def columns(self) -> dict[str, list[Any]]:
        """The result as columns, one entry a set."""
        return {
            "set": [", ".join(self.head.labels[i] for i in s) for s in self.sets],
            "size": [len(s) for s in self.sets],
            "can_label": list(self.answers),
        }

    def to_dict(self) -> dict[str, Any]:
        """The result in plain values."""
        return {
            "head": self.head.digest,
            "asked": len(self.sets),
            "impossible": [list(self.sets[k]) for k in self.impossible],
            "undecided": [list(self.sets[k]) for k in self.undecided],
        }

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        distinct = len(set(self.sets))
        return (
            f"CanLabel({len(self):,} label sets, {distinct:,} distinct, over {self.head.inputs})\n"
            f"  {len(self) - len(self.impossible) - len(self.undecided):,} possible, {len(self.impossible):,} "
            "impossible, "
            f"{len(self.undecided):,} undecided"
        )


def can_rank(head: Head, order: Any, *, top: bool = False) -> Verdict:
    """Can the scores be in this order, each strictly above the next?

    `order` is a list of labels from the highest down (all of them, or some with the others anywhere), or a list of
    pairs (higher, lower) that need not name every label: a partial order. top=True: they are also above all other
    labels, so these are the first k in this order.

    >>> square = Head([[1, 1], [1, -1], [-1, 1], [-1, -1]], link="softmax")
    >>> can_rank(square, [0, 1, 2, 3]).answer, can_rank(square, [0, 3, 1, 2]).answer
    ('yes', 'no')
    """
    _fits(head, "can_rank")
    pairs, words = _order(head, order, top)
    above, below = (np.array(x, np.int64) for x in zip(*pairs, strict=True)) if pairs else (NOBODY, NOBODY)
    return _ask(head, Question(above, below), words)


def can_top(head: Head, labels: Sequence[Label]) -> Verdict:
    """Can these labels be the top k, in whatever order: each strictly above every other label?

    >>> square = Head([[1, 1], [1, -1], [-1, 1], [-1, -1]], link="softmax")
    >>> can_top(square, [0, 1]).answer, can_top(square, [0, 3]).answer
    ('yes', 'no')
    """
    _fits(head, "can_top")
    top = _labels(head, labels, "can_top")
    if not top:
        raise GonioError("can_top: no label was named; name the labels that are to be the top.")
    names = ", ".join(quoted(head.labels[i]) for i in top[:6]) + (" ..." if len(top) > 6 else "")
    return _ask(head, Question(NOBODY, NOBODY, np.array(sorted(top), np.int64)), f"can {names} be the top {len(top)}?")


# ----- what was asked


def _fits(head: Head, who: str) -> None:
    head.must_score(who)
    if head.link == "cosine":
        raise GonioError(
            f"{who}: the link is cosine, whose rows are compared with each other; there is no input to ask for."
        )


def _labels(head: Head, labels: Any, who: str) -> list[int]:
    if isinstance(labels, (str, int, np.integer)):
        labels = [labels]
    out = [head.index(x) for x in checks.listed(labels, who, "labels")]
    if len(set(out)) != len(out):
        twice = next(i for i in out if out.count(i) > 1)
        raise GonioError(f"{who}: {quoted(head.labels[twice])} is named twice; name each label once.")
    return out


def _label_question(head: Head, on: Any, off: Any) -> Question:
    first = _labels(head, on, "can_label")
    if isinstance(off, str) and off == "rest":
        named = set(first)
        second = [i for i in range(head.shape[0]) if i not in named]
    else:
        second = _labels(head, off, "can_label")
    both = set(first) & set(second)
    if both:
        raise GonioError(f"can_label: {quoted(head.labels[both.pop()])} is asked to be on and off; choose one.")
    if not first and not second:
        raise GonioError("can_label: no label was named; name some in on=, off= or both.")
    zeros = np.full(len(first) + len(second), ZERO)
    above, below = zeros.copy(), zeros
    above[: len(first)] = first
    below[len(first) :] = second
    return Question(above, below)


def _label_words(head: Head, on: Any, off: Any) -> str:
    def names(labels: Any) -> str:
        if isinstance(labels, str) and labels == "rest":
            return "all others"
        several = _labels(head, labels, "can_label")
        return ", ".join(quoted(head.labels[i]) for i in several[:6]) + (" ..." if len(several) > 6 else "")

    parts = [f"{named} {word}" for named, word in ((names(on), "on"), (names(off), "off")) if named]
    return f"can the labels be {' and '.join(parts)}?"


def _order(head: Head, order: Any, top: bool) -> tuple[list[tuple[int, int]], str]:
    items = checks.listed(order, "can_rank", "labels, or of pairs of labels,")
    paired = bool(items) and all(isinstance(x, (list, tuple)) and len(x) == 2 for x in items)
    if paired:
        pairs = [(head.index(a), head.index(b)) for a, b in items]
        _no_cycle(head, pairs)
        members = sorted({i for p in pairs for i in p})
        if top:
            lowest = [i for i in members if all(a != i for a, _ in pairs)]
            pairs += [(i, j) for i in lowest for j in range(head.shape[0]) if j not in set(members)]
        return pairs, f"can {len(items)} orders of two labels hold at once?"
    chain = _labels(head, items, "can_rank")
    if len(chain) < 2 and not (top and chain):
        raise GonioError(f"can_rank: {len(chain)} labels were named; an order needs two at least.")
    pairs = list(itertools.pairwise(chain))
    if top:
        named = set(chain)
        pairs += [(chain[-1], j) for j in range(head.shape[0]) if j not in named]
    names = " > ".join(quoted(head.labels[i]) for i in chain[:6]) + (" > ..." if len(chain) > 6 else "")
    return pairs, f"can the {'top ' + str(len(chain)) if top else 'order'} be {names}?"


def _no_cycle(head: Head, pairs: list[tuple[int, int]]) -> None:
    """Complain about a contradictory partial order, naming the cycle."""
    import graphlib

    below: dict[int, set[int]] = {}
    for a, b in pairs:
        if a == b:
            raise GonioError(f"can_rank: {quoted(head.labels[a])} is asked to be above itself.")
        below.setdefault(b, set()).add(a)
    try:
        tuple(graphlib.TopologicalSorter(below).static_order())
    except graphlib.CycleError as e:
        names = " > ".join(quoted(head.labels[i]) for i in e.args[1])
        raise GonioError(f"can_rank: the order contradicts itself: {names}; drop one of these.") from None


# ----- the answer


def _ask(head: Head, question: Question, words: str) -> Verdict:
    certificate = decide(head, head.inputs.reduce(head.W, head.bias), question)
    margin = certificate.verify(head) if isinstance(certificate, Possible) else 0.0
    if isinstance(certificate, Open):
        margin = certificate.bound
    return Verdict(head, words, ANSWER[type(certificate)], certificate, margin)  # type: ignore[arg-type]
