"""One linear programme a label, written from the definition: the slow truth that the engine is compared with."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from gonio.core.inputs import Problem


def rays(p: Problem) -> np.ndarray:
    """G with  {z of the set} = {z : G (z, 1) <= 0}, the ball's cuts left to `best`."""
    d = p.V.shape[1]
    eye, out = np.eye(d), [np.append(np.zeros(d), -1.0)]
    low = np.zeros(d) if p.shape == "orthant" else p.low
    if low is not None:
        out += [np.append(-eye[k], low[k]) for k in range(d) if np.isfinite(low[k])]
    if p.high is not None:
        out += [np.append(eye[k], -p.high[k]) for k in range(d) if np.isfinite(p.high[k])]
    return np.array(out)


def best(p: Problem, own: tuple[int, ...]) -> float:
    """max over (z, t) in the cone of the set, entries at most 1, of  min_j score_i - score_j, all i of `own` equal.

    Positive iff the labels can win (or tie at the top) somewhere. Rows and biases are scaled to size one first.
    """
    V, c = p.V.astype(np.float64), p.c.astype(np.float64)
    V = V - V.mean(axis=0)
    s, spread = np.abs(V).max() or 1.0, np.ptp(c)
    a = np.column_stack([V / s, np.zeros(len(V))])
    if spread > 0:
        a[:, -1] = (c - c.mean()) / spread
    # z' = z, t' = t spread / s keeps  s V' z' + spread c' t'  proportional to the scores
    G = rays(p)
    if spread > 0:
        G[:, -1] *= s / spread
    i = own[0]
    rivals = np.array([j for j in range(len(V)) if j not in own])
    if not len(rivals):
        return 1.0
    D = a.shape[1]
    A = np.vstack([np.column_stack([a[rivals] - a[i], np.ones(len(rivals))]), np.column_stack([G, np.zeros(len(G))])])
    same = np.array([np.append(a[j] - a[i], 0.0) for j in own[1:]]).reshape(-1, D + 1)
    cost = np.append(np.zeros(D), -1.0)
    for _ in range(200):
        found = linprog(
            cost, A_ub=A, b_ub=np.zeros(len(A)), A_eq=same if len(same) else None,
            b_eq=np.zeros(len(same)) if len(same) else None, bounds=[(-1, 1)] * D + [(None, 1)], method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )  # fmt: skip
        assert found.status == 0, found.message
        y = found.x[:D]
        if p.shape != "ball" or found.x[-1] < 1e-10:
            break
        radius = p.radius * (s / spread if spread > 0 else 1.0)
        length = np.linalg.norm(y[:-1])
        if length <= radius * y[-1] * (1 + 1e-9) + 1e-13:
            break
        A = np.vstack([A, np.append(np.append(y[:-1] / length, -radius) / max(1, radius), 0.0)])
    return float(found.x[-1])
