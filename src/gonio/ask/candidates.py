"""Labels whose scores are equal at every input stand as one candidate for the top."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.head import Head
from gonio.core.inputs import Problem

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


@dataclass(frozen=True, eq=False)
class Candidates:
    """The labels of a head, equal ones together.

    rows       the label that stands for each candidate, in order
    place      the candidate of each label
    repeated   whether a candidate stands for more than one label
    """

    rows: Int[np.ndarray, " candidates"]
    place: Int[np.ndarray, " labels"]
    repeated: Bool[np.ndarray, " candidates"]

    def reduced(self, problem: Problem) -> Problem:
        """The problem with one row a candidate."""
        if len(self.rows) == len(self.place):
            return problem
        return replace(problem, V=problem.V[self.rows], c=problem.c[self.rows])


def candidates_of(head: Head) -> Candidates:
    """The candidates of a head: each group of equal labels (`Head.twins`) is one, its first member stands for it."""
    n = head.shape[0]
    first = np.arange(n)
    for group in head.twins:
        first[group] = group[0]
    rows, place, count = np.unique(first, return_inverse=True, return_counts=True)
    return Candidates(rows, place.reshape(-1), count > 1)
