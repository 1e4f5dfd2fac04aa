"""The compiled inner loops: row maxima, the strongest rivals of a direction, non-negative least squares."""

from __future__ import annotations

import numpy as np
from numba import njit

LOWEST = np.float32(-3e38)  # stands for minus infinity where fastmath forbids it


@njit(nogil=True, cache=True, fastmath=True)
def row_max(S, out):
    """out_i = max_j S_ij."""
    for i in range(S.shape[0]):
        top = LOWEST
        for j in range(S.shape[1]):
            v = S[i, j]
            top = v if v > top else top
        out[i] = top


@njit(nogil=True, cache=True, fastmath=True)
def row_max_with_tails(S, own, tails, out):
    """out_i = max_j S_ij + own_i tails_j: a bound of a dot product of which S holds the leading coordinates."""
    for i in range(S.shape[0]):
        mine = own[i]
        top = LOWEST
        for j in range(S.shape[1]):
            v = S[i, j] + mine * tails[j]
            top = v if v > top else top
        out[i] = top


@njit(nogil=True, cache=True, fastmath=True)
def any_above(row, floor):
    """Whether an entry exceeds `floor` (a separate loop, because it runs at memory speed)."""
    top = LOWEST
    for j in range(len(row)):
        v = row[j]
        top = v if v > top else top
    return top > floor


@njit(nogil=True, cache=True)
def strongest(S, skip_a, skip_b, floor, first, found, value, count):
    """The largest entries above floor_i of each row, whose columns are the rivals first, first + 1, ...

    Row i of `found` and `value` keeps as many as fit; count_i counts all of them, fitting or not.
    """
    room = found.shape[1]
    for i in range(S.shape[0]):
        if not any_above(S[i], floor[i]):
            continue
        a, b, low, k = skip_a[i] - first, skip_b[i] - first, floor[i], count[i]
        weakest = 0
        if k >= room:
            for q in range(1, room):
                if value[i, q] < value[i, weakest]:
                    weakest = q
        for j in range(S.shape[1]):
            v = S[i, j]
            if v <= low or j == a or j == b:  # noqa: SIM109  numba: faster than a tuple
                continue
            if k < room:
                value[i, k] = v
                found[i, k] = j + first
                if v < value[i, weakest]:
                    weakest = k
            elif v > value[i, weakest]:
                value[i, weakest] = v
                found[i, weakest] = j + first
                for q in range(room):
                    if value[i, q] < value[i, weakest]:
                        weakest = q
            k += 1
        count[i] = k


@njit(nogil=True, cache=True, fastmath=True)
def dot(a, b, n):
    """The sum of the first n products."""
    total = 0.0
    for t in range(n):
        total += a[t] * b[t]
    return total


@njit(nogil=True, cache=True)
def _drop(L, P, r, p):
    """Take row r out of the passive set P of size p and out of its Cholesky factor L, by Givens rotations."""
    for x in range(r, p - 1):
        P[x] = P[x + 1]
        for t in range(x + 2):
            L[x, t] = L[x + 1, t]
    for x in range(r, p - 1):
        a, b = L[x, x], L[x, x + 1]
        h = np.sqrt(a * a + b * b)
        c, s = a / h, b / h
        L[x, x] = h
        L[x, x + 1] = 0.0
        for m in range(x + 1, p - 1):
            u, w = L[m, x], L[m, x + 1]
            L[m, x] = c * u + s * w
            L[m, x + 1] = c * w - s * u


@njit(nogil=True, cache=True)
def _factor(G, P, p, L):
    """The Cholesky factor of the passive block, all at once, into L; whether that went well."""
    block = np.empty((p, p))
    for r in range(p):
        row = G[P[r]]
        for t in range(r + 1):
            block[r, t] = row[P[t]]
            block[t, r] = row[P[t]]
    try:
        factor = np.linalg.cholesky(block)
    except Exception:  # not positive definite to rounding
        return False
    for r in range(p):
        if factor[r, r] * factor[r, r] <= 1e-13 * block[r, r]:
            return False
        L[r, :p] = factor[r]
    return True


@njit(nogil=True, cache=True)
def nnls(G, q, lam, most):
    """min lam'G lam / 2 - q'lam over lam >= 0, in place: Lawson and Hanson on the Gram matrix.

    The positive entries of `lam` are the first passive set. The Cholesky factor of the passive block grows by a row
    for each column that enters and is downdated for each that leaves; columns that depend on the set are banned.
    """
    k = len(q)
    P = np.empty(k, np.int64)
    passive = np.zeros(k, np.bool_)
    banned = np.zeros(k, np.bool_)
    L = np.zeros((k, k))
    s, y = np.zeros(k), np.zeros(k)
    p, largest = 0, 0.0
    for a in range(k):
        largest = max(largest, G[a, a])
        if lam[a] > 0:
            P[p] = a
            passive[a] = True
            p += 1
    factored, solved, enter = 0, 0, -1  # rows of L, and of the forward solution y, that are up to date
    warm = p > 0
    if p > 12 and _factor(G, P, p, L):
        factored = p
    for _ in range(most):
        if not warm:
            enter, best = -1, 1e-14 * largest
            for a in range(k):
                if passive[a] or banned[a]:
                    continue
                slope, row = q[a], G[a]
                for b in range(p):
                    slope -= lam[P[b]] * row[P[b]]
                if slope > best:
                    best = slope
                    enter = a
            if enter < 0:
                break
            P[p] = enter
            passive[enter] = True
            p += 1
        warm = False
        while True:
            c = factored
            while c < p:
                row, column = L[c], G[P[c]]
                for r in range(c):
                    row[r] = (column[P[r]] - dot(L[r], row, r)) / L[r, r]
                v = column[P[c]] - dot(row, row, c)
                if v <= 1e-13 * column[P[c]]:
                    lam[P[c]] = 0.0
                    passive[P[c]] = False
                    banned[P[c]] = True
                    for t in range(c, p - 1):
                        P[t] = P[t + 1]
                    p -= 1
                    continue
                row[c] = np.sqrt(v)
                c += 1
            factored = p
            if p == 0:
                break
            for r in range(solved, p):
                y[r] = (q[P[r]] - dot(L[r], y, r)) / L[r, r]
            solved = p
            s[:p] = y[:p]
            for r in range(p - 1, -1, -1):
                s[r] /= L[r, r]
                v, row = s[r], L[r]
                for t in range(r):
                    s[t] -= v * row[t]
            step, blocking = 2.0, -1
            for r in range(p):
                if s[r] <= 0:
                    w = lam[P[r]]
                    a = w / (w - s[r]) if w - s[r] > 0 else 0.0
                    if a < step:
                        step = a
                        blocking = r
            if blocking < 0:
                for r in range(p):
                    lam[P[r]] = s[r]
                break
            for r in range(p):
                a = P[r]
                lam[a] = max(0.0, lam[a] + step * (s[r] - lam[a]))
            lam[P[blocking]] = 0.0
            for r in range(p - 1, -1, -1):
                a = P[r]
                if lam[a] <= 0.0 and s[r] <= 0:
                    lam[a] = 0.0
                    passive[a] = False
                    banned[a] = banned[a] or a == enter  # it came in and went out at once: rounding, not descent
                    _drop(L, P, r, p)
                    p -= 1
                    solved = min(solved, r)
            factored = p
