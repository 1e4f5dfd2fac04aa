"""What the engine proposes for each label: it wins here, it never wins because of these rivals, or neither is known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.status import NEVER, UNDECIDED, WINS
from gonio.search.cone import FarBelow
from gonio.search.positive_means import PositiveMean, Spread
from gonio.search.support import basic_support

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from gonio.core.inputs import Problem
    from gonio.search.cone import Cone
    from gonio.search.inscribed import Ball
    from gonio.search.whitening import WhitenedRows

STAGES = (
    "open",  # 0: nothing settled it
    "own direction",  # 1: it wins in its own whitened direction
    "cuts",  # 2: batched cutting planes, aim pushed out by 2 %
    "positive mean",  # 3: one positive mean of many rows, bent to it
    "fine",  # 4: cutting planes, aim pushed out by 1e-6
    "knife edge",  # 5: cutting planes, aim pushed out by 1e-9
    "twin",  # 6: another label has the same row and bias
    "dominated",  # 7: another label has the same row and a higher bias, or a bias so much higher that no row counts
    "points",  # 8: all points were looked at
    "alone",  # 9: there is no other label
    "program",  # 10: one program for this question alone
    "first try",  # 11: it wins in its own whitened direction, brought into the inputs
    "ascent",  # 12: climbing in a box, it wins there, or a mean of the rivals met is above it everywhere
)
STAGE = {name: k for k, name in enumerate(STAGES)}
AS_FOUND = tuple(STAGE[name] for name in ("twin", "dominated", "ascent"))  # whose combination needs no polish


@dataclass(frozen=True, eq=False)
class Ground:
    """What is kept to compute a direction or a support when it is asked for."""

    problem: Problem
    cone: Cone | None = None
    own: WhitenedRows | None = None  # the coordinates of stage 1, without their rows
    lead: np.ndarray | None = None  # the margins of stage 1 there
    space: WhitenedRows | None = None  # the coordinates of the later stages, without their rows
    ball: Ball | None = None
    pool: Int[np.ndarray, " pool"] = field(default_factory=lambda: np.zeros(0, np.int64))  # the rows of the ball

    @cached_property
    def far(self) -> FarBelow:
        """The labels that are too far below to count."""
        return FarBelow.of(self.problem)

    @cached_property
    def pool_vectors(self) -> Float[np.ndarray, "pool rank"]:
        """The rows of the ball in the coordinates of the later stages, kept for all supports."""
        assert self.space is not None
        return self.space.vectors(self.pool)


@dataclass(frozen=True, eq=False, repr=False)
class Proposals:
    """One entry for each label asked about, in the order asked.

    status   WINS, NEVER or UNDECIDED
    stage    which stage settled it: an index into STAGES
    margin   WINS: a proven lower bound of  min_j score_i - score_j  at direction(i), positive.
             UNDECIDED: a proven upper bound of that margin over all inputs of whitened length one, or infinity.
             NEVER: 0; over points, how near it came (negative or zero).
    twins    groups of labels with equal row and bias
    """

    labels: Int[np.ndarray, " asked"]
    status: Int[np.ndarray, " asked"]
    stage: Int[np.ndarray, " asked"]
    margin: Float[np.ndarray, " asked"]
    twins: tuple[Int[np.ndarray, " members"], ...]
    interrupted: bool
    ground: Ground
    inputs: dict[int, np.ndarray]  # label -> z, for those that win and have one stored
    combined: dict[int, tuple[np.ndarray, np.ndarray]]  # label -> rivals and weights, as the deciding stage left them
    spread: tuple[Spread, ...] = ()  # of labels that never win: weights over many rows, positive up to rounding
    _polished: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for a in (self.labels, self.status, self.stage, self.margin):
            a.flags.writeable = False

    def __repr__(self) -> str:
        wins, never, rest = (int((self.status == s).sum()) for s in (WINS, NEVER, UNDECIDED))
        tail = ", interrupted" if self.interrupted else ""
        return f"Proposals({len(self.labels):,} labels{tail})\n  {wins:,} win, {never:,} never win, {rest:,} undecided"

    def position(self, label: int) -> int:
        """Where a label stands among those asked about."""
        if 0 <= label < len(self.labels) and self.labels[label] == label:  # all were asked about
            return int(label)
        at = np.flatnonzero(self.labels == label)
        if not len(at):
            raise GonioError(f"propose: label {label} was not asked about.")
        return int(at[0])

    def direction(self, label: int) -> Float[np.ndarray, " reduced"]:
        """A z of the problem's set at which the label is strictly highest.

        Over a cone without bias its length is such that the scores of all labels have variance about one (whitened
        length one); over a ball or box it lies inside; with bias it is the point itself.
        """
        k = self.position(label)
        if self.status[k] != WINS:
            raise GonioError(f"propose: label {label} is not known to win, so there is no direction to give.")
        if label in self.inputs:
            return self.inputs[label].copy()
        own, lead = self.ground.own, self.ground.lead
        assert own is not None
        assert lead is not None
        v = own.vectors(np.array([label]))
        with np.errstate(all="ignore"):
            return from_own(self.ground, v / np.linalg.norm(v), lead[[label]])[0][0]

    def support(self, label: int) -> tuple[Int[np.ndarray, " rivals"], Float[np.ndarray, " rivals"]]:
        """Rivals and weights (positive, sum 1) whose combination is the label's row, or is above it on the whole set.

        With r = sum w_j V_j - V_i and e = sum w_j c_j - c_i: over space r = 0 and e >= 0; over the orthant r >= 0 and
        e >= 0; over a box and a ball  min r.z + e >= 0  over the set; each up to rounding. The rivals are as few as
        can be, affinely independent: rank + 1 where the label lies inside a full simplex. For an undecided label, the
        nearest combination that was found: exact arithmetic may yet prove it.
        """
        k = self.position(label)
        if self.status[k] == WINS:
            raise GonioError(f"propose: label {label} wins, so there is no support to give.")
        if label not in self._polished:
            rivals, weights = self.combined.get(label, (np.zeros(0, np.int64), np.zeros(0)))
            if self.ground.space is not None and self.stage[k] not in AS_FOUND:
                rivals, weights, _ = basic_support(self._ground_of(label), label, rivals, weights)
                rivals, weights = self.ground.far.replaced(rivals, weights, (label,))
            self._polished[label] = (rivals, weights)
        rivals, weights = self._polished[label]
        return rivals.copy(), weights.copy()

    def _ground_of(self, label: int) -> Ground:
        """The ground, with the rows of the mean that settled the label as those to choose from."""
        for found in self.spread:
            if label in found.labels:
                return self._ground_with[found.mean]
        return self.ground

    @cached_property
    def _ground_with(self) -> dict[PositiveMean, Ground]:
        return {found.mean: replace(self.ground, pool=found.mean.rivals) for found in self.spread}

    def spread_weights(self, label: int) -> tuple[Int[np.ndarray, " rivals"], Float[np.ndarray, " rivals"]]:
        """The rivals and weights (positive, sum 1) that settled a label together with others; none if it was not."""
        for found in self.spread:
            at = np.flatnonzero(found.labels == label)
            if len(at):
                part = slice(int(at[0]), int(at[0]) + 1)
                rivals = np.concatenate([found.mean.rivals, found.own[part][0]])
                weights = np.concatenate([found.weights(part)[0], found.own_weights[part][0]])
                rivals, inverse = np.unique(rivals, return_inverse=True)
                weights = np.bincount(inverse, weights)
                kept = (rivals != label) & (weights > 0)
                return rivals[kept], weights[kept] / weights[kept].sum()
        return np.zeros(0, np.int64), np.zeros(0)


def from_own(ground: Ground, unit: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inputs z that whitened unit directions of stage 1 stand for, and their margins.

    Where there is a bias, stage 1 looked at the rows alone: a win there by m is a win with bias far enough out.
    """
    own, cone = ground.own, ground.cone
    assert own is not None
    assert cone is not None
    Y = unit @ own.L
    return cone.fit(np.column_stack([Y, np.zeros(len(Y))]) if cone.affine else Y, margin, own.reach)
