"""Inputs in a box: the best lead of one label, by an interior point method.

For a label i over the scaled box (`scaled_box`) the linear program is

    max t   with   s = A u + c - t >= 0,  1 - u >= 0,  1 + u >= 0,        A_j = v_i - v_j,  c_j = c_i - c_j,

with shares p (sum 1) of the rivals j and a - b = A'p for the sides, all positive. A step of Newton's method towards
p_j s_j = a_k (1 - u_k) = b_k (1 + u_k) = mu solves one system of the width of the head; mu falls by what has been
gained. All iterates are inside on both sides, so that both ends are seen on the way:

    min_j (A u + c)_j  <=  the best lead  <=  p.c + |A'p|_1,

and the sign of it is all that is wanted. Most labels that climbing leaves open need some seven steps. Only the rivals
that are strongest where a label begins take part; those that beat it where it leads over them join.

Example: one input in [-1, 1], rows 1, -1 and 0 without constants. For the last label p = (1/2, 1/2) gives A'p = 0: its
best lead is 0, at u = 0, and neither end is ever beyond it: nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.search.scaled_box import CLEAR, ScaledBox

if TYPE_CHECKING:
    from jaxtyping import Float, Int

HERE, STRONG = 1.0, 0.6  # rivals for each coordinate to begin with: strongest where the label is, and anywhere
STEPS = 40  # at most; where rivals join, it begins anew
JOINS = 4  # times that rivals join
INSIDE = 0.98  # of the way to the sides: where labels begin at most
ROOM = 0.03  # typical scores: how far below the lead t begins
FALL = 0.03  # what mu is to fall by in one step
SHORT = 0.95  # of the way to where the first number would be 0


class BoxProgram:
    """One label among some rivals: the iterates on both sides, and the steps."""

    def __init__(self, box: ScaledBox, label: int, rivals: np.ndarray, u: np.ndarray) -> None:
        self.rivals = rivals
        self.A = box.scaled[label] - box.scaled[rivals]
        self.c = (box.shifted[label] - box.shifted[rivals]).astype(np.float64)
        self.u = np.clip(u.astype(np.float64), -INSIDE, INSIDE)
        leads = self._leads()
        self.t = float(leads.min()) - ROOM * box.tau
        self.s = leads - self.t
        self.p = 1 / self.s
        mu = 1 / float(self.p.sum())
        self.p *= mu
        self._balance(mu / (1 - self.u), mu / (1 + self.u))

    def _leads(self) -> Float[np.ndarray, " rivals"]:
        return self.A @ self.u.astype(np.float32) + self.c

    def _balance(self, a: np.ndarray, b: np.ndarray) -> None:
        """Raise a or b until a - b = A'p."""
        self.slope = (self.p.astype(np.float32) @ self.A).astype(np.float64)
        missing = self.slope - (a - b)
        self.a, self.b = a + np.maximum(missing, 0), b + np.maximum(-missing, 0)

    @property
    def least(self) -> float:
        """The lead over these rivals at u."""
        return float(self.s.min()) + self.t

    @property
    def most(self) -> float:
        """What no lead is above."""
        return float(self.p @ self.c + np.abs(self.slope).sum())

    def step(self) -> None:
        """One step of Newton's method towards a smaller mu."""
        up, down = 1 - self.u, 1 + self.u
        mu = FALL * float(self.p @ self.s + self.a @ up + self.b @ down) / (len(self.p) + 2 * len(self.u))
        du, dt = self._direction(mu, up, down)
        ds = self.A @ du.astype(np.float32) - dt
        dp = (mu - self.p * ds) / self.s - self.p
        da, db = (mu + self.a * du) / up - self.a, (mu - self.b * du) / down - self.b
        far = min(_until_zero(self.s, ds), _until_zero(up, -du), _until_zero(down, du))
        far_shares = min(_until_zero(self.p, dp), _until_zero(self.a, da), _until_zero(self.b, db))
        self.u += far * du
        self.t += far * dt
        leads = self._leads()
        self.t = min(self.t, float(leads.min()) - 1e-3 * float(self.s.min()))  # but for rounding it is below already
        self.s = leads - self.t
        self.p += far_shares * dp
        self.p /= self.p.sum()
        self._balance(self.a + far_shares * da, self.b + far_shares * db)

    def _direction(self, mu: float, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, float]:
        """How u and t move: the system that is left when s, p, a and b are put in terms of them.

        At this precision there may be no more steps: then LinAlgError.
        """
        from scipy.linalg import cho_factor, cho_solve

        weights = self.p / self.s
        half = self.A * np.sqrt(weights).astype(np.float32)[:, None]
        M = half.T @ half
        M[np.diag_indices_from(M)] += (self.a / up + self.b / down).astype(np.float32)
        missing = mu / self.s - self.p
        right = np.stack([missing, weights]).astype(np.float32) @ self.A
        right[0] += (self.a - mu / up + mu / down - self.b).astype(np.float32)
        factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        found = cho_solve(factor, right.T, check_finite=False)
        (x, y), h = found.T.astype(np.float64), right[1].astype(np.float64)
        dt = (h @ x - missing.sum()) / (weights.sum() - h @ y)
        return x + dt * y, float(dt)


def _until_zero(x: np.ndarray, dx: np.ndarray) -> float:
    """Which part of the step dx may be taken for x to stay positive."""
    fall = float((-dx / x).max())
    return min(1.0, SHORT / fall) if fall > 0 else 1.0


Win = tuple[np.ndarray, float]  # an input, and by how much the label leads there at least
Mean = tuple[np.ndarray, np.ndarray]  # rivals, and weights of sum 1


def best_leads(
    box: ScaledBox, labels: Int[np.ndarray, " open"], u: Float[np.ndarray, "open dim"], workers: BlasPool
) -> tuple[dict[int, Win], dict[int, Mean]]:
    """The labels that win and those that never do, from where they are: a program each, several at a time."""
    found = workers.run(lambda k: _signs(box, int(labels[k]), u[k]), range(len(labels)))
    named = list(zip(labels.tolist(), found, strict=True))
    return {a: win for a, (win, _) in named if win}, {a: mean for a, (_, mean) in named if mean}


def _signs(box: ScaledBox, label: int, u: Float[np.ndarray, " dim"]) -> tuple[Win | None, Mean | None]:
    """A win or a mean above the label, whichever the steps come to; neither where they end before."""
    program, joins = BoxProgram(box, label, _strongest(box, label, u), u), 0
    for _ in range(STEPS):
        try:
            program.step()
        except np.linalg.LinAlgError:
            break
        least, most = program.least, program.most
        if not most - least > CLEAR * box.largest:
            break
        if least > 0:
            win, beaten_by = _led(box, label, program.u)
            new = np.setdiff1d(beaten_by, program.rivals)
            if win or joins == JOINS:
                return win, None
            if len(new):
                rivals = np.union1d(program.rivals, _strongest(box, label, program.u))
                program, joins = BoxProgram(box, label, np.union1d(rivals, new), program.u), joins + 1
        elif most < -CLEAR * box.largest and box.whole:
            mean = box.means_above(np.array([label]), program.rivals, program.p[None]).get(0)
            if mean:
                return None, mean
    return None, None


def _led(box: ScaledBox, label: int, u: np.ndarray) -> tuple[Win | None, Int[np.ndarray, " rivals"]]:
    """Whether the label leads all others at u, and who is above it if not."""
    nobody, nowhere = np.zeros(len(box.rows), bool), np.full(1, -np.inf, np.float32)
    z, leads, rivals = box.leads(np.array([label]), u[None].astype(np.float32), nowhere, nobody)
    return ((z[0], float(leads[0])) if leads[0] > 0 else None), rivals


def _strongest(box: ScaledBox, label: int, u: np.ndarray) -> Int[np.ndarray, " rivals"]:
    """The rivals with the highest scores at u, and those that are strong anywhere."""
    d, n = len(u), len(box.scaled)
    scores = box.scaled @ u + box.shifted
    here = np.argpartition(-scores, min(int(HERE * d), n - 1))[: int(HERE * d)]
    return np.setdiff1d(np.union1d(here, box.by_strength[: int(STRONG * d)]), [label])
