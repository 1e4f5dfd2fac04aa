"""Cells of a central arrangement in general position, each listed once, without search (numba).

Rows a_0 .. a_{n-1} of width r. Cells with + on row 0 correspond one to one to the subsets S of {1, .., n-1} with fewer
than r elements ("no broken circuit" sets). The walk goes depth first through the subsets, adding rows in decreasing
order; Q_t = A N_t, with N_t a basis of the subspace where the t rows of S vanish, one elimination a level.

With D = r - |S| and generic functionals c_1, c_2, ..:
    |S| = r-1   u is the point with S = 0, a_0 = 1;          rows of S take the signs of c_1's coordinates there
    |S| < r-1   u is the point far out with S = a_0 = 0, .., c_{D-1} < 0;   rows of S take those of c_D
    all other rows take the sign of a_i . u
Because the columns are turned at random beforehand, c_m is the m-th coordinate, and the cells of |S| < r-1 are those of
the same walk on the columns s:, one stage s = 0 .. r-2 for each size.

Every sign is told from zero by a running bound E of the rounding of Q: with phi = 2 E_j / (|pivot| - E_j) + u, one
elimination gives  E' = (2 + phi) E + (phi + u) |q_pivot| + u |q|,  |q| bounding the row before it. Cells with a sign
in doubt are handed back by their S.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

UNIT = 2.0**-53
FAINT = 1e-13  # a coordinate this small against its terms may have the wrong sign: some hundred roundings
ONE = np.uint64(1)
NONE = np.uint64(0)
OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "nsz"}, "error_model": "numpy"}


@njit(**OPTIONS)
def padded(n):
    """The next multiple of 16: loops over so many columns leave no rest beside the vector registers."""
    return (n + 15) // 16 * 16


@njit(**OPTIONS)
def signs(q0, q1, a, b, bound, bits):
    """Bits of at most 64 rows: which are positive at the point (b, -a), and which may be zero there."""
    positive = NONE
    doubt = NONE
    for i in range(len(bits)):
        v = q0[i] * b - q1[i] * a
        positive |= bits[i] if v > 0 else NONE
        doubt |= bits[i] if abs(v) <= bound else NONE
    return positive, doubt


@njit(**OPTIONS)
def coordinates(Q, col, row, pivot, bits, t, n, begin, end, Y, M, first, size, own):
    """c_1 = sum_k Y_k a_k + first a_0 for S with each leaf j in begin..end; `own` gets the bits of Y_k > 0.

    Back-substitution over the stored pivots, all leaves at once. M sums the absolute values of the terms through all
    levels, and M[0] is infinite where a sign is in doubt.
    """
    m = end - begin
    q0, q1 = Q[t, 0, begin:end], Q[t, 1, begin:end]
    a0, a1, c0, c1 = Q[t, 0, 0], Q[t, 1, 0], Q[t, 0, n], Q[t, 1, n]
    yt, mt, f, g0 = Y[t, :m], M[t, :m], first[:m], size[:m]
    for w in range(len(own)):
        own[w, :m] = NONE
    for j in range(m):
        x, y = q0[j], q1[j]
        v0 = a0 * y - a1 * x
        f[j] = (c0 * y - c1 * x) / v0
        g0[j] = (abs(c0 * y) + abs(c1 * x)) / abs(v0)
        large = abs(x) >= abs(y)
        X, a, pv = (c0 if large else c1), (a0 if large else a1), (x if large else y)
        v = X - f[j] * a
        g = abs(X) + g0[j] * abs(a)
        yt[j] = v / pv
        mt[j] = g / abs(pv) if abs(v) > FAINT * g else np.inf
        own[(begin + j) >> 6, j] |= bits[begin + j] if yt[j] > 0 else NONE
    for k in range(t - 1, -1, -1):
        qp = Q[k, col[k]]
        qj, yk, mk = qp[begin:end], Y[k, :m], M[k, :m]
        C, A0, ip = qp[n], qp[0], 1 / pivot[k]
        aC, aA, aip = abs(C), abs(A0), abs(ip)
        for j in range(m):
            yk[j] = C - f[j] * A0 - yt[j] * qj[j]
            mk[j] = aC + g0[j] * aA + mt[j] * abs(qj[j])
        for q in range(k + 1, t):
            x, yq, mq = qp[row[q]], Y[q, :m], M[q, :m]
            ax = abs(x)
            for j in range(m):
                yk[j] -= yq[j] * x
                mk[j] += mq[j] * ax
        bit, ours = bits[row[k]], own[row[k] >> 6, :m]
        for j in range(m):
            g = mk[j]
            mk[j] = g * aip if abs(yk[j]) > FAINT * g else np.inf
            v = yk[j] * ip
            yk[j] = v
            ours[j] |= bit if v > 0 else NONE


@njit(**OPTIONS)
def list_cells(A, E0, prefix, high, low, leaves, out, unsure, unsure_at):
    """The cells under the rows of `prefix` whose next row lies in low..high; returns (cells, cells in doubt).

    leaves: also those with |S| = r-1 (stage 0). out: (cells, words) of 64 bits each. unsure, unsure_at: the rows of S
    of a cell in doubt, -1 after the last, and its place in `out`.
    """
    n, r = A.shape
    words = (n + 63) // 64
    ld = padded(n + 2)
    last = r - 2
    Q = np.zeros((r, r, ld))
    E = np.zeros((r, ld))
    size = np.zeros((r, ld))
    bits = np.zeros(ld, np.uint64)  # none for the columns that only fill up
    row = np.zeros(r, np.int64)
    col = np.zeros(r, np.int64)
    pivot = np.zeros(r)
    nxt = np.zeros(r, np.int64)
    stop = np.ones(r, np.int64)
    weak = np.zeros(r, np.bool_)
    F = np.zeros((r, words), np.uint64)
    Y = np.zeros((r, ld))
    M = np.zeros((r, ld))
    first = np.zeros(ld)
    terms = np.zeros(ld)
    own = np.zeros((words, ld), np.uint64)
    y = np.zeros(r)
    m = np.zeros(r)
    for i in range(n):
        bits[i] = ONE << np.uint64(i & 63)
        E[0, i] = E0[i]
        for c in range(r):
            Q[0, c, i] = A[i, c]
            size[0, i] = max(size[0, i], abs(A[i, c]))
    Q[0, 0, n] = size[0, n] = 1.0
    Q[0, 1, n + 1] = size[0, n + 1] = 1.0
    depth = len(prefix)
    pos = 0
    doubts = 0
    t = 0
    nxt[0] = prefix[0] if depth else high
    stop[0] = prefix[0] if depth else low
    while t >= 0:
        if t == last:
            q0 = Q[t, 0]
            q1 = Q[t, 1]
            e = E[t]
            a0, a1, c0, c1 = q0[0], q1[0], q0[n], q1[n]
            wide, worst = 0.0, 0.0  # one bound for all rows: they have about one length
            for i in range(n):
                wide = max(wide, abs(q0[i]) + abs(q1[i]))
                worst = max(worst, e[i])
            # The one cell of |S| = r-2: far out on the line S = a_0 = 0, where c_1 < 0.
            z0, z1 = -a1, a0
            s = c0 * z0 + c1 * z1
            wrong = weak[t] or abs(s) <= e[n] * (abs(a0) + abs(a1)) + (e[0] + 4 * UNIT * (abs(a0) + abs(a1))) * (
                abs(c0) + abs(c1) + 2 * e[n]
            )
            if s > 0:
                z0, z1 = -z0, -z1
            far = abs(z0) + abs(z1)
            bound = worst * (far + 2 * e[0]) + wide * (e[0] + 2 * UNIT * far)
            for w in range(words):
                i, k = 64 * w, min(ld, 64 * w + 64)
                p, z = signs(q0[i:k], q1[i:k], -z1, z0, bound, bits[i:k])
                if w == 0:
                    p |= ONE
                    z &= ~ONE
                if z != F[t, w]:
                    wrong = True
                out[pos, w] = p & ~F[t, w]
            if t > 0:
                x, yy, det = q0[n + 1], q1[n + 1], a0 * c1 - a1 * c0
                b0 = (x * c1 - yy * c0) / det
                b1 = (a0 * yy - a1 * x) / det
                g0 = (abs(x * c1) + abs(yy * c0)) / abs(det)
                g1 = (abs(a0 * yy) + abs(a1 * x)) / abs(det)
                for k in range(t - 1, -1, -1):
                    qp = Q[k, col[k]]
                    v = qp[n + 1] - b0 * qp[0] - b1 * qp[n]
                    g = abs(qp[n + 1]) + g0 * abs(qp[0]) + g1 * abs(qp[n])
                    for q in range(k + 1, t):
                        v -= y[q] * qp[row[q]]
                        g += m[q] * abs(qp[row[q]])
                    y[k] = v / pivot[k]
                    m[k] = g / abs(pivot[k])
                    if abs(v) <= FAINT * g:
                        wrong = True
                    if y[k] > 0:
                        out[pos, row[k] >> 6] |= bits[row[k]]
            if wrong:
                if doubts < len(unsure):
                    unsure_at[doubts] = pos
                    for k in range(r - 1):
                        unsure[doubts, k] = row[k] if k < t else -1
                doubts += 1
            pos += 1
            if leaves:
                end = n if t == 0 else row[t - 1]
                begin = 1
                if depth > last:  # a single leaf was asked for
                    begin, end = prefix[last], prefix[last] + 1
                coordinates(Q, col, row, pivot, bits, t, n, begin, end, Y, M, first, terms, own)
                for j in range(end - 1, begin - 1, -1):
                    a, b, ej = q0[j], q1[j], e[j]
                    if a0 * b - a1 * a < 0:
                        a, b = -a, -b
                    far = abs(a) + abs(b)
                    bound = worst * (far + 2 * ej) + wide * (ej + 2 * UNIT * far)
                    wrong = weak[t]
                    for w in range(words):
                        i, k = 64 * w, min(ld, 64 * w + 64)
                        p, z = signs(q0[i:k], q1[i:k], a, b, bound, bits[i:k])
                        mine = F[t, w] | (bits[j] if j >> 6 == w else NONE)
                        if z != mine:
                            wrong = True
                        out[pos, w] = (p & ~mine) | own[w, j - begin]
                    wrong |= M[0, j - begin] == np.inf
                    if wrong:
                        if doubts < len(unsure):
                            unsure_at[doubts] = pos
                            for k in range(r - 1):
                                unsure[doubts, k] = row[k] if k < t else j
                        doubts += 1
                    pos += 1
            t -= 1
            continue
        j = nxt[t]
        if j < stop[t] or j < 1:
            t -= 1
            continue
        nxt[t] = j - 1
        D = r - t
        p_ = 0
        best = -1.0
        for c in range(D):
            if abs(Q[t, c, j]) > best:
                best = abs(Q[t, c, j])
                p_ = c
        row[t], col[t], pivot[t] = j, p_, Q[t, p_, j]
        ej = E[t, j]
        weak[t + 1] = weak[t] or 2 * ej >= best
        phi = 2 * ej / (best - ej) + 2 * UNIT
        qp, pv, e, en = Q[t, p_], Q[t, p_, j], E[t], E[t + 1]
        # |w| <= size + |q_pivot|, so the sizes need no look at the columns.
        now, later = size[t], size[t + 1]
        for i in range(ld):
            x = abs(qp[i])
            en[i] = ((2 + phi) * e[i] + (phi + UNIT) * x + UNIT * now[i]) * (1 + 8 * UNIT)
            later[i] = now[i] + x
        cc = 0
        for c in range(D):
            if c == p_:
                continue
            qc, w_ = Q[t, c], Q[t + 1, cc]
            f = qc[j] / pv
            cc += 1
            for i in range(ld):
                w_[i] = qc[i] - f * qp[i]
            w_[j] = 0.0
        en[j] = 0.0
        for w in range(words):
            F[t + 1, w] = F[t, w]
        F[t + 1, j >> 6] |= bits[j]
        t += 1
        nxt[t] = prefix[t] if t < depth else (high if t == depth else j - 1)
        stop[t] = prefix[t] if t < depth else (low if t == depth else 1)
        if t == last and t < depth:
            nxt[t] = 0
    return pos, doubts
