"""Is there an input at which all comparisons hold? A finite Newton method, and one linear program where it cannot tell.

With rows V of length 1, one a comparison, the question is whether V u > 0 for some u. The method minimises

    delta |u|^2 / 2 + |max(0, 1 - V u)|^2 / 2

by Newton steps, which are exact after finitely many. Either some u on the way has V u > 0, or at the minimum the
weights max(0, 1 - V u) combine the rows to nearly 0: they are what a proof starts from. Both are only proposals: the
certificates of `regions.comparison` decide.

u is the input z, with one more coordinate for the constant where there is a bias or a box, and one for the threshold
of a top-k set. Inputs that are a cone or a box add their own rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from gonio.core.inputs import Problem
from gonio.core.parallel import one_blas_thread
from gonio.proofs.score_gaps import ZERO

if TYPE_CHECKING:
    from jaxtyping import Float

DELTA = 1e-13
STEPS = 100
SMALL = 2_000_000  # entries of a system that one core works off quickest
LARGEST = 20_000_000  # entries of the matrix of a linear program


@dataclass(frozen=True, eq=False)
class System:
    """V u > 0: rows of length 1, the first `asked` of them comparisons (or top labels, then the others)."""

    V: Float[np.ndarray, "rows unknowns"]
    lengths: Float[np.ndarray, " rows"]
    asked: int
    width: int
    constant: bool
    stretch: int = 0  # z is 2^stretch times the unknowns that stand for it

    def input(self, u: Float[np.ndarray, " unknowns"]) -> Float[np.ndarray, " dim"]:
        """The input z that u stands for."""
        z = u[: self.width] / (u[self.width] if self.constant else 1.0)
        return np.ldexp(z, self.stretch)


def pose(problem: Problem, above: np.ndarray, below: np.ndarray, top: np.ndarray) -> System:
    """The system of a question over all inputs, an orthant, a box with width in every direction, or a ball about 0.

    For a ball the constants c must be 0: then only the direction of z counts.
    """
    d = problem.V.shape[1]
    shape, c = problem.shape, problem.c
    low, high = problem.low, problem.high
    constant = bool(c.any()) or shape == "box"
    V = problem.V
    # Verdicts do not depend on the scale of scores, nor over a cone on that of z: numbers of size 1 serve the solvers.
    of_rows, of_constants = _power(V), _power(c)
    if not c.any():
        of_constants = of_rows
    elif shape == "box":
        of_rows = of_constants = max(of_rows, of_constants)

    def of(labels: np.ndarray) -> np.ndarray:
        rows = np.ldexp(V[labels].astype(np.float64), -of_rows)
        return np.column_stack([rows, np.ldexp(c[labels], -of_constants)]) if constant else rows

    parts = []
    if len(above):
        rows = np.zeros((len(above), d + constant))
        a, b = above != ZERO, below != ZERO
        rows[a] = of(above[a])
        rows[b] -= of(below[b])
        parts = [rows]
    if len(top):
        others = np.setdiff1d(np.arange(len(V)), top)
        parts = [np.column_stack([p, np.zeros(len(p))]) for p in parts]
        parts.append(np.column_stack([of(top), -np.ones(len(top))]))
        parts.append(np.column_stack([-of(others), np.ones(len(others))]))
    asked = sum(len(p) for p in parts)
    width = d + constant + bool(len(top))
    unit = np.eye(d, width)
    if shape == "orthant":
        parts.append(unit)
    if shape == "box":
        assert low is not None
        assert high is not None
        for side, sign in ((low, 1.0), (high, -1.0)):
            fine = np.isfinite(side)
            rows = sign * unit[fine]
            rows[:, d] -= sign * side[fine]
            parts.append(rows)
    if constant:
        parts.append(np.eye(1, width, d))
    G = np.concatenate(parts)
    lengths = np.sqrt(np.einsum("ij,ij->i", G, G))
    G /= np.where(lengths > 0, lengths, 1)[:, None]
    return System(G, lengths, asked, d, constant, of_constants - of_rows)


def _power(a: np.ndarray) -> int:
    """The power of two just above the largest entry."""
    return int(np.frexp(max(float(a.max(initial=0)), -float(a.min(initial=0))))[1])


@dataclass(frozen=True, eq=False)
class Proposal:
    """Either u with V u > 0 (as floats see it), or weights of the rows and how near to 0 they combine them."""

    u: np.ndarray | None
    weights: np.ndarray
    bound: float


def newton(system: System) -> Proposal:
    """The proposal of the finite Newton method."""
    if system.V.size < SMALL:
        with one_blas_thread():  # on small products BLAS threads only wait for each other
            return _newton(system)
    return _newton(system)


def _newton(system: System) -> Proposal:
    V = system.V
    d = V.shape[1]
    x, v = np.zeros(d), np.zeros(len(V))
    if (system.lengths[: system.asked] == 0).any():  # a score compared with an equal one
        weights = (system.lengths == 0).astype(float)
        return Proposal(None, weights / weights.sum(), 0.0)
    value = 0.5 * len(V)
    for _ in range(STEPS):
        active = v < 1
        Va = V[active]
        gradient = DELTA * x - Va.T @ (1 - v[active])
        H = Va.T @ Va
        H[np.diag_indices(d)] += DELTA
        step = _solve(H, -gradient)
        dv = V @ step
        size = 1.0
        while True:
            vn = v + size * dv
            xn = x + size * step
            new = 0.5 * DELTA * float(xn @ xn) + 0.5 * float((np.maximum(0, 1 - vn) ** 2).sum())
            if new <= value - 1e-12 * abs(value) or size < 1e-6:
                break
            size *= 0.5
        same = bool(((vn < 1) == active).all())
        x, v, value = xn, V @ xn, new
        if v.min() > 0:
            return Proposal(x, np.zeros(0), float(v.min()))
        if (same and size == 1.0) or size < 1e-6:
            break
    weights = np.maximum(0, 1 - v)
    weights /= weights.sum()
    return Proposal(None, weights, float(np.linalg.norm(V.T @ weights)))


def _solve(H: np.ndarray, g: np.ndarray) -> np.ndarray:
    try:
        return scipy.linalg.cho_solve(scipy.linalg.cho_factor(H, check_finite=False), g, check_finite=False)
    except np.linalg.LinAlgError:
        H = H + 1e-10 * np.trace(H) / len(H) * np.eye(len(H))
        return np.linalg.solve(H, g)


def program(system: System) -> Proposal | None:
    """The proposal of one linear program: the largest t <= 1 with V u >= t."""
    from scipy.optimize import linprog

    V = system.V
    if V.size > LARGEST:
        return None
    A = np.column_stack([-V, np.ones(len(V))])
    cost = np.zeros(A.shape[1])
    cost[-1] = -1
    bounds = [(None, None)] * V.shape[1] + [(None, 1.0)]
    found = linprog(cost, A_ub=A, b_ub=np.zeros(len(V)), bounds=bounds, method="highs")
    if found.status != 0 or found.x is None:
        return None
    if found.x[-1] > 0 and (V @ found.x[:-1] > 0).all():
        return Proposal(found.x[:-1], np.zeros(0), float(found.x[-1]))
    weights = np.maximum(0, -found.ineqlin.marginals)
    if not weights.sum() > 0:
        return None
    return Proposal(None, weights / weights.sum(), float(max(found.x[-1], 0)))
