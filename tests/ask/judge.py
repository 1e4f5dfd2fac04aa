"""The judge of certificates: a simplex method and margins in fractions, over small heads of every kind of inputs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from gonio import AllInputs, Box, Head, Nonnegative

FIG2 = np.array([[1.4, -1], [1.4, 1], [-0.9, 0.3], [-1, 0], [-0.9, -0.3]])


def equals(head, i):
    """The labels with the row and the bias of label i, by a plain comparison."""
    W, b = np.asarray(head.W, float), np.zeros(len(head)) if head.bias is None else head.bias
    return [j for j in range(len(W)) if j != i and (W[j] == W[i]).all() and b[j] == b[i]]


def exact_lp(V, c, i, low, high, but=()):
    """max t <= 1 with (v_i - v_j).z + c_i - c_j >= t for all j and low <= z <= high: (t, z, multipliers of the rivals)."""
    n, d = len(V), len(V[0])
    V, c = [[Fraction(v) for v in row] for row in V], [Fraction(v) for v in c]
    # z = base + direction * (non-negative variables)
    base, variables = [Fraction(0)] * d, []
    for k in range(d):
        if np.isfinite(low[k]):
            base[k] = Fraction(low[k])
            variables.append((k, 1))
        elif np.isfinite(high[k]):
            base[k] = Fraction(high[k])
            variables.append((k, -1))
        else:
            variables += [(k, 1), (k, -1)]
    rows, right = [], []
    rivals = [j for j in range(n) if j != i and j not in but]
    for j in rivals:
        diff = [a - b for a, b in zip(V[i], V[j], strict=True)]
        rows.append([-diff[k] * s for k, s in variables] + [Fraction(1), Fraction(-1)])
        right.append(sum((a * b for a, b in zip(diff, base, strict=True)), c[i] - c[j]))
    rows.append([Fraction(0)] * len(variables) + [Fraction(1), Fraction(-1)])
    right.append(Fraction(1))
    for q, (k, s) in enumerate(variables):
        if s == 1 and np.isfinite(low[k]) and np.isfinite(high[k]):
            rows.append([Fraction(int(p == q)) for p in range(len(variables))] + [Fraction(0)] * 2)
            right.append(Fraction(high[k]) - Fraction(low[k]))
    m, w = len(rows), len(variables) + 2
    T = [
        row + [Fraction(int(r == s)) for s in range(m)] + [b]
        for r, (row, b) in enumerate(zip(rows, right, strict=True))
    ]
    T.append([Fraction(0)] * (w - 2) + [Fraction(-1), Fraction(1)] + [Fraction(0)] * (m + 1))
    basis = [w + r for r in range(m)]

    def pivot(r, col):
        p = T[r][col]
        T[r] = [v / p for v in T[r]]
        for s in range(m + 1):
            if s != r and T[s][col]:
                f = T[s][col]
                T[s] = [a - f * b for a, b in zip(T[s], T[r], strict=True)]
        basis[r] = col

    worst = min(range(m), key=lambda r: T[r][-1])
    if T[worst][-1] < 0:
        pivot(worst, w - 1)  # t low enough makes every rival's row hold
    while True:
        col = next((k for k in range(w + m) if T[m][k] < 0), None)
        if col is None:
            break
        choices = [(T[r][-1] / T[r][col], basis[r], r) for r in range(m) if T[r][col] > 0]
        pivot(min(choices)[2], col)
    value = {b: T[r][-1] for r, b in enumerate(basis)}
    z = base[:]
    for q, (k, s) in enumerate(variables):
        z[k] += s * value.get(q, Fraction(0))
    return T[m][-1], z, {j: T[m][w + r] for r, j in enumerate(rivals) if T[m][w + r]}


def sides(inputs, d):
    return {
        AllInputs: lambda: ([-np.inf] * d, [np.inf] * d),
        Nonnegative: lambda: ([0.0] * d, [np.inf] * d),
        Box: lambda: (np.broadcast_to(inputs.low, d), np.broadcast_to(inputs.high, d)),
    }[type(inputs)]()


def exact_margin(head, i, x, but=()):
    W, b = (
        [[Fraction(float(v)) for v in row] for row in head.W],
        head.bias if head.bias is not None else np.zeros(len(head)),
    )
    scores = [
        sum((p * q for p, q in zip(row, x, strict=True)), Fraction(float(v))) for row, v in zip(W, b, strict=True)
    ]
    return min((scores[i] - s for j, s in enumerate(scores) if j != i and j not in but), default=np.inf)


entries = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.0, 0.25, 0.1, 1.0, 1.0, 1 / 3, 2.0, 3.0, 1e-9, -1e-9])
shapes = st.tuples(st.integers(2, 7), st.integers(1, 4))


@st.composite
def heads(draw, kinds=("all", "nonnegative", "box", "swish", "mixed")):
    n, d = draw(shapes)
    W = np.array(draw(st.lists(st.lists(entries, min_size=d, max_size=d), min_size=n, max_size=n)))
    for _ in range(draw(st.integers(0, 2))):  # duplicates, mid-points, collinear and interior rows
        a, b, c = (draw(st.integers(0, n - 1)) for _ in range(3))
        W[c] = draw(st.sampled_from([W[a], (W[a] + W[b]) / 2, W[a] + 2 * (W[b] - W[a]), W.mean(axis=0), np.zeros(d)]))
    W = W * draw(st.sampled_from([1.0, 1.0, 1e-30, 1e30, 1e150, 1e-150]))
    bias = draw(st.none() | st.lists(entries, min_size=n, max_size=n))
    kind = draw(st.sampled_from(kinds))
    inputs = {
        "all": AllInputs(),
        "nonnegative": Nonnegative(),
        "box": Box(-1, 1),
        "swish": Box(-0.2785, np.inf),
        "mixed": Box(np.array([0, -np.inf, -1, 2.0])[:d], np.array([6, 0.5, np.inf, 2])[:d]),
    }[kind]
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    with np.errstate(all="ignore"):
        narrow = W.astype(dtype)
    return Head(narrow if np.isfinite(narrow).all() else W, bias, link="softmax", inputs=inputs)


def interior_head(n, d, seed=0, dtype=np.float32, bias=False):
    """A head whose label 0 lies inside the hull of the others, and with a bias below them: it never wins."""
    r = np.random.default_rng(seed)
    W = r.standard_normal((n, d))
    W[0] = r.dirichlet(np.ones(n - 1)) @ W[1:]
    b = r.standard_normal(n) if bias else None
    if bias:
        b[0] = b.min() - 1
    return Head(W.astype(dtype), b, link="softmax")


def basic_weights(head, i=0):
    """Rivals whose weighted mean is row i, as few as a linear program needs, and their weights in floats."""
    V, others = head.W.astype(float), np.delete(np.arange(len(head)), i)
    b = np.zeros(len(head)) if head.bias is None else head.bias
    A, rhs = np.vstack([V[others].T, np.ones(len(others))]), np.r_[V[i], 1]
    found = linprog(-b[others], A_eq=A, b_eq=rhs, method="highs-ds")
    assert found.status == 0
    support = np.flatnonzero(found.x > 1e-12)
    refined = np.linalg.lstsq(A[:, support], rhs, rcond=None)[0]
    return others[support], refined
