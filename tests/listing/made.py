"""Arrangements whose cells are known, and slow second writings of what is listed."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
from scipy.optimize import linprog

from gonio import Head


def sigmoid(W, b=None):
    return Head(np.asarray(W, float), b, link="sigmoid")


def softmax(W, b=None):
    return Head(np.asarray(W, float), b, link="softmax")


def resonance(n):
    """All non-zero 0-1 vectors."""
    return np.array([v for v in product([0, 1], repeat=n) if any(v)])


def threshold(n):
    """(1, v) for all v of +-1: its cells are the threshold functions."""
    return np.array([(1, *v) for v in product([-1, 1], repeat=n)])


def type_d(n):
    return np.array(
        [[1 if k == i else s if k == j else 0 for k in range(n)] for i, j in combinations(range(n), 2) for s in (1, -1)]
    )


def type_b(n):
    return np.vstack([type_d(n), np.eye(n, dtype=int)])


def braid(n):
    return np.array([[(k == i) - (k == j) for k in range(n)] for i, j in combinations(range(n), 2)])


def holds(V, c=None):
    """Whether V x + c > 0 for some x, by one linear program."""
    V = np.asarray(V, float)
    c = np.zeros(len(V)) if c is None else np.asarray(c, float)
    if not len(V):
        return True
    A = np.column_stack([-V, np.ones(len(V))])
    cost = np.r_[np.zeros(V.shape[1]), -1.0]
    found = linprog(cost, A_ub=A, b_ub=c, bounds=[(None, None)] * V.shape[1] + [(None, 1)], method="highs")
    assert found.status == 0
    return found.x[-1] > 1e-9


def sets_by_programs(W, b=None):
    """Every possible label set, one program each."""
    n = len(W)
    b = np.zeros(n) if b is None else b
    return {s for s in product([-1, 1], repeat=n) if holds(np.array(s)[:, None] * W, np.array(s) * b)}


def rankings_by_programs(W, b=None):
    """Every possible ranking, one program each."""
    n = len(W)
    b = np.zeros(n) if b is None else b
    out = set()
    for p in permutations(range(n)):
        p = list(p)
        if holds(W[p[:-1]] - W[p[1:]], b[p[:-1]] - b[p[1:]]):
            out.add(tuple(p))
    return out


def as_set(rows):
    return {tuple(int(x) for x in r) for r in rows}
