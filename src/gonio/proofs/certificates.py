"""Proofs of what a head can and cannot do. Each names the digest of its head and verifies itself without any solver.

    Wins        an embedding at which the label scores above all others but its equals
    NeverWins   rivals and weights: their weighted mean is never below the label, so some rival never is
    Ties        two embeddings between which two labels share the top, strictly above all others
    NeverTies   rivals and weights that are never below two labels where these two are equal
    Undecided   how near a search came

Scores are W x + b in real numbers; a soft-cap does not change who wins. Labels whose scores are equal at every input
(`Head.twins`) are one candidate: what wins or never wins, does so against all other labels. Over `Observed` inputs the
rivals of a NeverWins or NeverTies stand without weights, and no rivals stand for all other labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gonio.core.head import Head
from gonio.core.printed_bounds import at_most
from gonio.proofs import observed_inputs
from gonio.proofs.certificate_base import Certificate, CertificateError, fix
from gonio.proofs.exact_numbers import Dyadic
from gonio.proofs.margins import Places, beats, least_margins
from gonio.proofs.never_below import NEAR, proven
from gonio.proofs.rival_mean import RivalMean, beyond, exact_supremum, sums, supremum

__all__ = ["Certificate", "CertificateError", "NeverTies", "NeverWins", "Ties", "Undecided", "Wins"]


@dataclass(frozen=True, eq=False, repr=False)
class Wins(Certificate):
    """At x, an embedding that can reach the head, the label scores strictly above all others but its equals.

    min_j (w_i - w_j).x + b_i - b_j > 0  over the labels j that are neither i nor among `equals`

    `equals` are labels whose scores are those of i at every input, which `verify` checks. x is in the head's own
    coordinates, float32 or float64. After a norm it must be gain * z (+ shift) with |z| below sqrt(d), in exact
    arithmetic; after a LayerNorm, where floats z cannot sum to zero, the point meant is the exact x - gain * mean(z),
    z = (x - shift) / gain.
    """

    label: int
    x: np.ndarray
    equals: Any = ()
    kind: ClassVar[str] = "wins"

    def __post_init__(self) -> None:
        fix(self, "x", float)
        fix(self, "equals", int)

    @property
    def subject(self) -> int:
        return int(self.label)

    def verify(self, head: Head) -> float:
        """A proven lower bound of the margin, above 0; infinite where there is no other label."""
        self._check_label(head)
        places = self._place(head, self.x)
        margin = float(least_margins(head, np.array([self.label]), places, [self.equals])[0])
        if not margin > 0:
            raise self._refuse(_beaten(head, self.label, self.x, self.equals))
        return margin

    def _check_label(self, head: Head) -> None:
        self._check(head, self.label)
        other = np.setdiff1d(self.equals, head.equals(self.label)) if len(self.equals) else self.equals
        if len(other):
            raise self._refuse(f"label {other[0]} is named as an equal of label {self.label}, and is not.")

    def _words(self) -> tuple[str, str]:
        shared = f"{self.label}" + (f" and {len(self.equals)} equal to it" if len(self.equals) else "")
        return f"label {shared}", f"at an x of width {len(self.x)} and norm {np.linalg.norm(self.x):.4g}"


def _beaten(head: Head, label: int, x: np.ndarray, equals: np.ndarray) -> str:
    with np.errstate(all="ignore"):
        scores = np.concatenate([b.astype(np.float64) @ x for _, b in head.blocks()])
        scores += 0 if head.bias is None else head.bias
        scores[label] = scores[equals] = -np.inf
        rival = int(np.argmax(scores))
    return f"label {label} does not win at x, where label {rival} scores at least as high."


@dataclass(frozen=True, eq=False, repr=False)
class NeverWins(Certificate):
    """Over the head's inputs the label is never strictly above all others, since no mean of rivals is below it.

    score_i - max_j score_j  <=  sum_j w_j (score_i - score_j)  <=  0,  w >= 0, sum w = 1

    No rival may be an equal of the label, whose scores are its own everywhere: that would prove nothing. The weights
    are floats near exact ones; `verify` proves that exact ones exist. Over `Observed` inputs the weights are empty: at
    each of the embeddings some rival is not below the label.
    """

    label: int
    rivals: np.ndarray
    weights: np.ndarray
    kind: ClassVar[str] = "never wins"

    def __post_init__(self) -> None:
        fix(self, "rivals", int)
        fix(self, "weights", float)

    @property
    def subject(self) -> int:
        return int(self.label)

    def is_about_rivals(self, head: Head) -> bool:
        """Whether it is about this head, and its rivals are labels of it, none of them the label or its equal."""
        try:
            self._check(head, self.label)
            self._rivals(head, self.rivals, int(self.label))
        except CertificateError:
            return False
        return not len(self._equal_rivals(head))

    def _equal_rivals(self, head: Head) -> np.ndarray:
        """Its rivals whose scores are the label's own everywhere; the rivals must be labels of the head."""
        same = head.first_equals
        return self.rivals[same[self.rivals] == same[self.label]]

    @property
    def names_no_rivals(self) -> bool:
        """Whether it is about all other labels, as over observed embeddings it may be."""
        return not len(self.rivals) and not len(self.weights)

    def verify(self, head: Head) -> float:
        """A proven upper bound of what the label can win by, at most 0; 0.0 where the mean meets it exactly."""
        self._check(head, self.label)
        self._rivals(head, self.rivals, self.label)
        equal = self._equal_rivals(head)
        if len(equal):
            raise self._refuse(
                f"label {equal.min()} scores as label {self.label} does everywhere, which proves nothing."
            )
        if head.inputs.points is not None:
            if len(self.weights):
                raise self._refuse("over observed embeddings rivals have no weights; leave them empty.")
            value = observed_inputs.most(head, self.label, self.rivals)
            if value > 0:
                raise self._refuse(
                    f"label {self.label} wins at one of the observed embeddings, or its rivals miss one."
                )
            return value
        value = proven(self._mean(head, self.label, self.rivals, self.weights))
        if value is None:
            raise self._refuse(
                f"undecided: its {len(self.rivals)} weights do not prove that label {self.label} never wins over "
                f"{head.inputs}; they leave more than rounding can explain, or too few rows to enclose exact ones."
            )
        return value

    def _words(self) -> tuple[str, str]:
        return f"label {self.label}", _top(self.rivals, self.weights)


def _top(rivals: np.ndarray, weights: np.ndarray) -> str:
    if not len(weights) or len(weights) != len(rivals):
        return (
            f"rivals {', '.join(map(str, rivals[:4]))}{' ...' if len(rivals) > 4 else ''}"
            if len(rivals)
            else "all rivals"
        )
    first = np.argsort(-weights)[:3]
    more = f" and {len(rivals) - 3} more" if len(rivals) > 3 else ""
    return "below " + " + ".join(f"{weights[k]:.3g} x label {rivals[k]}" for k in first) + more


@dataclass(frozen=True, eq=False, repr=False)
class Ties(Certificate):
    """Labels a and b can share the top, strictly above all others.

    At x: score_a >= score_b.  At y: score_b >= score_a.  At both, both are strictly above every other label. The
    inputs are convex, so on the way from x to y the two are equal somewhere. Over `Observed` inputs x = y.
    """

    a: int
    b: int
    x: np.ndarray
    y: np.ndarray
    kind: ClassVar[str] = "ties"

    def __post_init__(self) -> None:
        fix(self, "x", float)
        fix(self, "y", float)

    @property
    def subject(self) -> tuple[int, int]:
        a, b = sorted((int(self.a), int(self.b)))
        return a, b

    def verify(self, head: Head) -> float:
        """A proven lower bound, above 0, of how far the tie is above all other labels."""
        self._check(head, self.a, self.b)
        places = self._place(head, self.x, self.y)
        margin = least_margins(head, np.array([self.b, self.a]), places, [(self.a,), (self.b,)])
        return self._judge(head, places, margin)

    def _judge(self, head: Head, places: Places, margin: np.ndarray) -> float:
        if self.a == self.b:
            raise self._refuse(f"label {self.a} is named twice; a tie needs two labels.")
        if head.inputs.points is not None and not np.array_equal(self.x, self.y):
            raise self._refuse("observed embeddings are not convex, so x and y must be the same one.")
        if beats(head, self.a, np.array([self.b]), places, 0)[0] < 0:
            raise self._refuse(f"at x label {self.a} is not proven to be at least as high as label {self.b}.")
        if beats(head, self.b, np.array([self.a]), places, 1)[0] < 0:
            raise self._refuse(f"at y label {self.b} is not proven to be at least as high as label {self.a}.")
        if not margin.min() > 0:
            raise self._refuse(f"labels {self.a} and {self.b} are not both strictly above all others at x and y.")
        return float(margin.min())

    def _words(self) -> tuple[str, str]:
        return f"labels {self.a} and {self.b}", f"between two embeddings {np.linalg.norm(self.x - self.y):.3g} apart"


@dataclass(frozen=True, eq=False, repr=False)
class NeverTies(Certificate):
    """Labels a and b never share the top: wherever their scores are equal, some rival's is not below.

    sum_j w_j score_j  >=  p_a score_a + p_b score_b  on the inputs,  w >= 0, sum w = 1 = p_a + p_b (of any sign)

    Without rivals: one of the two is strictly above the other for every input. Over `Observed` inputs only the
    rivals count, and `weights` is empty.
    """

    a: int
    b: int
    rivals: np.ndarray
    weights: np.ndarray
    pair_weights: np.ndarray
    kind: ClassVar[str] = "never ties"

    def __post_init__(self) -> None:
        fix(self, "rivals", int)
        fix(self, "weights", float)
        fix(self, "pair_weights", float)

    @property
    def subject(self) -> tuple[int, int]:
        a, b = sorted((int(self.a), int(self.b)))
        return a, b

    def verify(self, head: Head) -> float:
        """A proven upper bound, at most 0, of how far a tie of the two can be above all others."""
        self._check(head, self.a, self.b)
        if self.a == self.b:
            raise self._refuse(f"label {self.a} is named twice; a tie needs two labels.")
        if head.inputs.points is not None:
            self._rivals(head, self.rivals, self.a, self.b)
            if len(self.weights) or len(self.pair_weights):
                raise self._refuse("over observed embeddings rivals have no weights; leave them empty.")
            at = observed_inputs.tied(head, self.a, self.b, self.rivals)
            if at is not None:
                raise self._refuse(f"labels {self.a} and {self.b} share the top at observed embedding {at}.")
            return 0.0
        if not len(self.rivals) and not len(self.weights):
            return self._apart(head)
        p = self.pair_weights.astype(np.float64)
        if p.shape != (2,) or not np.isfinite(p).all() or not abs(p.sum() - 1) <= NEAR * max(1, np.abs(p).max()):
            raise self._refuse("its pair weights are not two numbers that sum to 1.")
        value = proven(self._mean(head, self.a, self.rivals, self.weights, (self.b, float(p[1]))))
        if value is None:
            raise self._refuse(
                f"undecided: its {len(self.rivals)} weights do not prove that labels {self.a} and {self.b} never tie "
                f"for the top over {head.inputs}."
            )
        return value

    def _apart(self, head: Head) -> float:
        values, open_ball = [], False
        for low, high in ((self.a, self.b), (self.b, self.a)):
            mean = RivalMean(head, low, np.array([high]), np.ones(1), np.zeros(1, bool))
            with np.errstate(all="ignore"):
                values.append(supremum(head, sums(mean)))
            rows, c = mean.exactly()
            exactly = exact_supremum(head, Dyadic.of(np.ones(1)).whole, rows, c)
            values.append(np.inf if exactly is None else exactly)
            # The ball is open: a lead above 0 at its centre that reaches 0 on its surface is above 0 inside.
            open_ball |= exactly is not None and head.inputs.shape == "ball" and c[0].ratio()[0] > 0
        if open_ball and not np.nanmin(values) < 0:
            return 0.0
        if not np.nanmin(values) < 0:
            raise self._refuse(f"it has no rivals, and neither of labels {self.a} and {self.b} is always the higher.")
        return float(np.nanmin(values))

    def _words(self) -> tuple[str, str]:
        return f"labels {self.a} and {self.b}", _top(self.rivals, self.weights)


@dataclass(frozen=True, eq=False, repr=False)
class Undecided(Certificate):
    """Neither proven: how near a search came, and why it stopped.

    With rivals and weights,  score_i - max_j score_j <= bound  over bounded inputs, and <= bound max(1, |x|) over
    others, which `verify` proves; it proves neither that the label wins nor that it cannot.
    """

    label: int
    bound: float
    why: str
    rivals: np.ndarray
    weights: np.ndarray
    kind: ClassVar[str] = "undecided"

    def __init__(
        self, head: str, label: int, bound: float, why: str, rivals: Sequence = (), weights: Sequence = ()
    ) -> None:
        for name, value in zip(
            ("head", "label", "bound", "why", "rivals", "weights"),
            (head, label, float(bound), why, rivals, weights),
            strict=True,
        ):
            object.__setattr__(self, name, value)
        fix(self, "rivals", int)
        fix(self, "weights", float)

    @property
    def subject(self) -> int:
        return int(self.label)

    def verify(self, head: Head) -> float:
        """The stored bound, once the weights have proven it."""
        self._check(head, self.label)
        if not len(self.rivals) or head.inputs.points is not None:
            raise self._refuse(f"it proves nothing about label {self.label} ({self.why}); decide it anew.")
        value = self._value(head)
        if not value <= self.bound:
            raise self._refuse(
                f"its weights prove a bound of {value:.3g} for label {self.label}, not {self.bound:.3g}."
            )
        return self.bound

    @classmethod
    def nearest(cls, head: Head, label: int, why: str, rivals: np.ndarray, weights: np.ndarray) -> Undecided:
        """With the bound that the nearest combination a search found proves; infinite where it proves none."""
        empty = cls(head.digest, label, np.inf, why)
        if not len(rivals) or head.inputs.points is not None:
            return empty
        found = cls(head.digest, label, np.inf, why, list(rivals), list(weights))
        try:
            value = found._value(head)
        except CertificateError:
            return empty
        return cls(head.digest, label, value, why, list(rivals), list(weights)) if np.isfinite(value) else empty

    def _value(self, head: Head) -> float:
        mean = self._mean(head, self.label, self.rivals, self.weights)
        with np.errstate(all="ignore"):
            s = sums(mean)
            value = float(supremum(head, s) if head.inputs.bounded else beyond(head, s)) / mean.scale
        return value + 1e-12 * abs(value)  # the sum of the weights was rounded

    def _words(self) -> tuple[str, str]:
        return f"label {self.label}", f"wins by at most {at_most(self.bound)}; {self.why}"
