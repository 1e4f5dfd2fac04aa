"""One linear program for one question: what the search left open over polyhedral inputs.

Win:  max t  with  (V_i - V_j).z + c_i - c_j >= s_j t  for all j != i,  t <= 1,  z in the set.
Tie:  the same for label a against all but b, with  (V_a - V_b).z + c_a - c_b = 0.

s_j is the largest number of all rows, then that of each line: the solver's tolerances are absolute, and a rival may be
a near copy.

t > 0 gives an input; otherwise the multipliers of the rivals are the weights of a combination that is nowhere below.
Where t is within the solver's tolerance of 0, both are given. The solver only proposes: `verify` decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gonio.core.inputs import Problem

TOLERANCE = 1e-7  # of the solver: an optimum that is not above 0 may hide one that is
LARGEST = 20_000_000  # entries of the constraint matrix: beyond, one program takes too long


@dataclass(frozen=True, eq=False)
class ProgramAnswer:
    """An input z, or rivals and weights with the two labels' shares of a tie; both on the edge between the two."""

    z: np.ndarray | None
    rivals: np.ndarray
    weights: np.ndarray
    share: float


def can_pose(problem: Problem) -> bool:
    """Whether the set is one that a linear program can describe, and the program of a bearable size."""
    return problem.shape in ("space", "orthant", "box") and problem.V.size <= LARGEST


def answers(problem: Problem, a: int, b: int | None = None) -> Iterator[ProgramAnswer]:
    """What programs say about label a, or about the pair a and b, where the solver does not give up."""
    for by_line in (False, True):
        found = _solve(problem, a, b, by_line)
        if found is not None:
            yield found


def _solve(problem: Problem, a: int, b: int | None, by_line: bool) -> ProgramAnswer | None:
    from scipy.optimize import linprog

    n, d = problem.V.shape
    rivals = np.delete(np.arange(n), [a] if b is None else [a, b])
    V, c = problem.V.astype(np.float64), problem.c
    with np.errstate(over="ignore", invalid="ignore"):
        away, room = V[rivals] - V[a], c[a] - c[rivals]
        size, largest = np.full(len(rivals), float(np.abs(V).max()) or 1.0), float(np.abs(V).max()) or 1.0
        if by_line:
            size = np.maximum(np.abs(away).max(axis=1), np.abs(room))
            size = np.where(size > 0, size, 1.0)
            largest = 1.0 if b is None else max(float(np.abs(V[a] - V[b]).max()), abs(float(c[b] - c[a]))) or 1.0
        A, room = np.column_stack([away / size[:, None], np.ones(len(rivals))]), room / size
        tie = None if b is None else (np.r_[(V[a] - V[b]) / largest, 0.0], (c[b] - c[a]) / largest)
    if not (np.isfinite(A).all() and np.isfinite(room).all() and (tie is None or np.isfinite(np.r_[tie]).all())):
        return None  # beyond floats
    low, high = {
        "space": (np.full(d, -np.inf), np.full(d, np.inf)),
        "orthant": (np.zeros(d), np.full(d, np.inf)),
        "box": (problem.low, problem.high),
    }[problem.shape]
    assert low is not None
    assert high is not None
    equal = {} if tie is None else {"A_eq": tie[0][None], "b_eq": [tie[1]]}
    bounds = [*zip(low, high, strict=True), (None, 1.0)]
    found = linprog(np.r_[np.zeros(d), -1.0], A_ub=A, b_ub=room, bounds=bounds, method="highs", **equal)
    if found.status != 0 or found.x is None:
        return None
    t, z = found.x[-1], np.clip(found.x[:-1], low, high)  # which the solver keeps to within its tolerance only
    wins = ProgramAnswer(z, rivals[:0], np.zeros(0), 0.0)
    if t > 1e-12:
        return wins
    weights = np.maximum(0.0, -found.ineqlin.marginals)
    weights = np.where(weights > 1e-12, weights / size * size.min(), 0.0)
    used, total = np.flatnonzero(weights), weights.sum()
    near = t > -TOLERANCE
    if not total > 0:
        return wins if near else None
    share = 0.0 if b is None else float(found.eqlin.marginals[0]) / largest * size.min() / total
    return ProgramAnswer(z if near else None, rivals[used], weights[used] / total, share)
