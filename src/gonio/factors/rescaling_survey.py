"""What rescaling does to a whole model: signs of cosines, lists under the named choices, lists that no rescaling moves.

Nothing of size items x items is held: pairs are counted in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.directions import unit
from gonio.core.parallel import spans
from gonio.factors.rescaling import clean, singular_form
from gonio.factors.similar import lists
from gonio.gauge.factor_ranges import item_item

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Float, Int

    from gonio.factors.model import FactorModel

BLOCK = 1024
ASKED = 1_000  # items whose lists are followed through many rescalings
PULLS = (10.0, 100.0)  # how far one column is stretched beyond the others
CLEAR = 1e-9  # a neighbour is out of a list only if it is below the last of it by more than rounding


@dataclass(frozen=True)
class Signs:
    """Shares of all pairs of items (zero rows left out) by the signs their cosine can take over rescalings."""

    pairs: int
    either: float
    positive: float
    negative: float
    never: float  # no column in common: always 0


@dataclass(frozen=True, eq=False, repr=False)
class Survival:
    """Neighbours in the lists of the items asked about, that are there under every rescaling: proven, refuted, open."""

    asked: Int[np.ndarray, " asked"]
    near: Int[np.ndarray, "asked near"]
    refuted: Bool[np.ndarray, "asked near"]
    proven: Bool[np.ndarray, "asked near"]

    def __post_init__(self) -> None:
        for a in vars(self).values():
            a.flags.writeable = False

    @property
    def open(self) -> Bool[np.ndarray, "asked near"]:
        """Neither a proof nor a rescaling that moves the neighbour out was found."""
        return ~(self.refuted | self.proven)

    @property
    def whole_lists(self) -> int:
        """How many lists survive as they are."""
        return int(self.proven.all(axis=1).sum())

    def __repr__(self) -> str:
        n, k = self.near.shape
        return (
            f"Survival({n:,} lists of {k})\n  {self.proven.mean():.1%} of the neighbours stay under every rescaling, "
            f"{self.refuted.mean():.1%} do not, {self.open.mean():.1%} open"
        )


@dataclass(frozen=True, eq=False, repr=False)
class RescalingSurvey:
    """The summary of a model under rescaling.

    left_open   whether the training leaves rescalings open at all; if not, nothing moves
    overlap     named choice -> share of each item's list that it keeps (one entry an item asked about)
    """

    left_open: bool
    k: int
    signs: Signs
    overlap: dict[str, Float[np.ndarray, " asked"]]
    survival: Survival

    def to_dict(self) -> dict[str, Any]:
        return {
            "left_open": self.left_open,
            "neighbours": self.k,
            "pairs": self.signs.pairs,
            "either_sign": self.signs.either,
            "only_positive": self.signs.positive,
            "only_negative": self.signs.negative,
            "always_zero": self.signs.never,
            "overlap": {name: float(x.mean()) for name, x in self.overlap.items()},
            "asked": len(self.survival.asked),
            "survive": float(self.survival.proven.mean()),
            "moved": float(self.survival.refuted.mean()),
            "undecided": float(self.survival.open.mean()),
            "whole_lists": self.survival.whole_lists,
        }

    def __repr__(self) -> str:
        if not self.left_open:
            return (
                "RescalingSurvey(only rotations are left open)\n  every cosine and every list is fixed by the training"
            )
        least = min(self.overlap, key=lambda name: self.overlap[name].mean(), default="")
        kept = f"{self.overlap[least].mean():.1%} of a list is kept under {least!r}" if least else ""
        return (
            f"RescalingSurvey({self.signs.pairs:,} pairs, {self.signs.either:.1%} can have either sign)\n"
            f"  {kept}; {self.survival.proven.mean():.1%} of all neighbours stay under every rescaling"
        )


def survey(
    model: FactorModel, k: int = 10, *, asked: int = ASKED, seed: int = 0, on_progress: Callable | None = None
) -> RescalingSurvey:
    """Signs, lists under the named choices, and the neighbours that survive every rescaling of the model's columns.

    Where there are more items than `asked`, the lists of so many drawn at random are followed; signs count all pairs.
    """
    fixed = model.link == "cosine" or model.trained == "factors"
    return survey_of(model.users, model.items, k, left_open=not fixed, asked=asked, seed=seed, on_progress=on_progress)


def survey_of(
    users: np.ndarray,
    items: np.ndarray,
    k: int = 10,
    *,
    given: np.ndarray | None = None,
    left_open: bool = True,
    asked: int = ASKED,
    seed: int = 0,
    on_progress: Callable | None = None,
) -> RescalingSurvey:
    """As `survey`, for tables of users and items whose columns are what is rescaled.

    `given` is a table of the items in other columns, whose lists are the ones to follow.
    """
    items = np.asarray(items, np.float64)
    alive = np.flatnonzero(items.any(axis=1))
    which = alive
    if len(which) > asked:
        which = np.sort(np.random.default_rng(seed).choice(alive, asked, replace=False))
    near, _ = lists(items if given is None else given, k, which)
    if not left_open:
        all_, none = np.ones(near.shape, bool), np.zeros(near.shape, bool)
        return RescalingSurvey(False, k, signs(items, left_open=False), {}, Survival(which, near, none, all_))
    V, t, _ = singular_form(np.asarray(users, np.float64), items)
    named = {"items": V, "balanced": V * np.sqrt(t), "users": V * t}
    overlap = {name: shared(near, lists(W, k, which)[0]) for name, W in named.items()}
    return RescalingSurvey(True, k, signs(items), overlap, survival(items, near, which, on_progress))


def shared(a: np.ndarray, b: np.ndarray) -> Float[np.ndarray, " asked"]:
    """The share of each row of `a` that is in the same row of `b`."""
    return np.mean((a[:, :, None] == b[:, None, :]).any(axis=2), axis=1)


def signs(items: np.ndarray, *, left_open: bool = True) -> Signs:
    """Which signs the cosine of each pair can take: that of every product of two entries of a column occurs.

    Where nothing is left open, the sign each pair has.
    """
    items = clean(np.asarray(items, np.float64))
    items = items[items.any(axis=1)]
    n = len(items)
    S = (np.sign(items) if left_open else unit(items)).astype(np.float32 if left_open else np.float64)
    both = negative = positive = 0
    for a, b in spans(n, BLOCK):
        for c, d in spans(n, BLOCK):
            if c < a:
                continue
            net = S[a:b] @ S[c:d].T
            if left_open:
                size = np.abs(S[a:b]) @ np.abs(S[c:d]).T  # whole numbers below 2^24: exact
                plus, minus = size + net > 0, size - net > 0
            else:
                plus, minus = net > ROUNDING, net < -ROUNDING
            if c == a:
                upper = np.triu(np.ones(net.shape, bool), 1)
                plus, minus = plus & upper, minus & upper
            both += int((plus & minus).sum())
            positive += int((plus & ~minus).sum())
            negative += int((minus & ~plus).sum())
    pairs = n * (n - 1) // 2
    total = max(pairs, 1)
    return Signs(pairs, both / total, positive / total, negative / total, (pairs - both - positive - negative) / total)


ROUNDING = 1e-12


def survival(items: np.ndarray, near: np.ndarray, asked: np.ndarray, on_progress: Callable | None = None) -> Survival:
    """Which neighbours stay in their list under every rescaling.

    Refuted by an example: a rescaling under which k others are nearer. Proven by the ranges of
    `gauge.factor_ranges`: fewer than k others can ever come above the least cosine that the pair can have.
    """
    items = clean(items)
    k = near.shape[1]
    refuted = np.zeros(near.shape, bool)
    size = np.sqrt((items**2).mean(axis=0))
    size[size == 0] = 1
    probes = [np.where(np.arange(items.shape[1]) == m, c, 1.0) / size for c in PULLS for m in range(items.shape[1])]
    probes = [1 / size, *probes]
    for done, d in enumerate(probes):
        U = unit(items * d)
        for a, b in spans(len(asked), BLOCK):
            if refuted[a:b].all():
                continue
            mine = asked[a:b]
            C = U[mine] @ U.T
            C[np.arange(len(mine)), mine] = -np.inf
            last = np.partition(C, len(U) - k, axis=1)[:, len(U) - k]
            refuted[a:b] |= np.take_along_axis(C, near[a:b], 1) < last[:, None] - CLEAR
        if on_progress is not None:
            on_progress(done + 1, len(probes), "rescalings")
    proven = np.zeros(near.shape, bool)
    S = np.sign(items)
    alive = np.any(items, axis=1)
    for r in np.flatnonzero(~refuted.all(axis=1)):
        i = int(asked[r])
        can_be_positive = np.any(S[i] * S > 0, axis=1)
        for c in np.flatnonzero(~refuted[r]):
            j = int(near[r, c])
            least = item_item(items[i], items[j]).low if alive[i] and alive[j] else -1.0
            if least >= 1:
                rivals = 0
            else:
                rivals = int((can_be_positive if least >= 0 else alive).sum()) - int(can_be_positive[i])
                rivals -= int(can_be_positive[j]) if least >= 0 else int(alive[j])
            proven[r, c] = rivals < k
    return Survival(asked, near, refuted, proven)
