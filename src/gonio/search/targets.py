"""The points that the cutting planes separate from the rows, and what is known of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gonio.search.cutting_round import OPEN, FactorArrays, TargetArrays

if TYPE_CHECKING:
    from jaxtyping import Float, Int

KEPT = 16_000_000  # numbers of inverse factors that are kept from round to round; beyond it they are made anew


@dataclass(eq=False)
class Targets:
    """Points to separate from all rows but their own: one row for a label, two for a tie. State: see TargetArrays."""

    labels: Int[np.ndarray, "targets two"]  # the rows a target stands for, the same twice for a single label
    points: Float[np.ndarray, "targets rank"]
    across: Float[np.ndarray, "pairs rank"]  # unit vectors that directions are orthogonal to, for ties; else no rows
    row_distance: np.ndarray = field(default_factory=lambda: np.zeros(0))  # between the two rows of each tie
    inputs: dict[int, np.ndarray] = field(init=False, default_factory=dict)  # at which the winning targets win

    def __post_init__(self) -> None:
        m, rank = self.points.shape
        self.directions = self.points.copy()
        self.columns = np.zeros((m, rank + 2), np.int32)
        self.weights = np.zeros((m, rank + 2))
        self.size = np.zeros(m, np.int64)
        self.factors, self.spare_factors = np.zeros(0), np.zeros(0)
        self.factor_start = np.full(m, -1)
        self.status = np.zeros(m, np.int8)
        self.stage = np.zeros(m, np.int8)
        self.margin = np.zeros(m)
        self.hull_distance = np.full(m, np.inf)

    @property
    def open(self) -> Int[np.ndarray, " open"]:
        """The targets that are neither settled nor stalled."""
        return np.flatnonzero(self.status == OPEN)

    @property
    def pairs(self) -> bool:
        """Whether the targets are ties."""
        return len(self.across) > 0

    def arrays(self, aims: np.ndarray) -> TargetArrays:
        """The same memory under the names of the compiled round."""
        return TargetArrays(
            self.points, aims, self.across, self.directions, self.columns, self.weights, self.size,
            self.factor_start, self.status, self.margin, self.hull_distance,
        )  # fmt: skip

    def factor_memory(self, active: np.ndarray, new_columns: np.ndarray) -> FactorArrays:
        """The factors of the last round and room for those of this one, of size <= size + new_columns each.

        A triangle of s rows takes s (s + 1)/2 numbers. Targets that are not active lose their factors.
        """
        size = np.minimum(self.size[active] + new_columns, self.points.shape[1] + 1)
        numbers = size * (size + 1) // 2
        ends = np.cumsum(numbers)
        fit = ends <= KEPT
        if fit.any() and len(self.spare_factors) < ends[fit][-1]:
            self.spare_factors = np.empty(ends[fit][-1])
        old_start = self.factor_start[active]
        self.factor_start[:] = -1
        return FactorArrays(self.factors, old_start, self.spare_factors, np.where(fit, ends - numbers, -1))

    def swap_factors(self) -> None:
        """After a round: what was written is read next time, and what was read is room."""
        self.factors, self.spare_factors = self.spare_factors, self.factors
