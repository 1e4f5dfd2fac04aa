"""Rankings of labels in general position, each listed once, without search (numba).

The cells of the differences w_j - w_p, p < j, whose "no broken circuit" sets are forests: every label j picks at most
one parent p < j, and at most r-1 labels do. The walk keeps label rows and adds edges by decreasing j; see `cells` for
the rest. Row 0 is w_1 - w_0 (so that 1 may have no parent), or, with a bias, the extra row (0, 1) whose plus side
counts.

At the point of a forest the labels of one tree are tied; they are parted from the smallest up by the signs of the
functional's coordinates. Labels of different trees must lie further apart than the rounding bound: this is what proves
the ranking, and that no other differences vanish there.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gonio.listing.cells import FAINT, OPTIONS, UNIT


@njit(**OPTIONS)
def _rank(key, near, n, out, sorted_keys):
    """Write the labels by falling key; how many neighbours in that order lie within `near`."""
    for i in range(n):
        place, mine = 0, key[i]
        for k in range(n):
            place += key[k] > mine
        out[place] = i
        sorted_keys[place] = mine
    close = 0
    for i in range(n - 1):
        close += sorted_keys[i] - sorted_keys[i + 1] <= near
    return close


@njit(**OPTIONS)
def list_orders(A, E0, biased, prefix, high, low, leaves, store, out):
    """The rankings under the edges (j, p) of `prefix` whose next j lies in low..high; returns (rankings, in doubt).

    A: (labels + 1) x r, the last row is row 0. leaves: also the forests with r-1 edges (stage 0).
    """
    n, r = A.shape[0] - 1, A.shape[1]
    ld = n + 3
    zero, one, two = n, n + 1, n + 2  # row 0 and the functionals c_1, c_2
    least = 1 if biased else 2
    last = r - 2
    Q = np.zeros((r, r, ld))
    E = np.zeros((r, ld))
    ej = np.zeros(r + 1, np.int64)
    ep = np.zeros(r + 1, np.int64)
    lim = np.zeros(r + 1, np.int64)
    stop = np.zeros(r + 1, np.int64)
    col = np.zeros(r + 1, np.int64)
    pivot = np.zeros(r + 1)
    weak = np.zeros(r + 1, np.bool_)
    y = np.zeros(r + 1)
    m = np.zeros(r + 1)
    Y = np.zeros((r + 1, n))
    M = np.zeros((r + 1, n))
    first = np.zeros(n)
    key = np.zeros(n)
    sorted_keys = np.zeros(n)
    size = np.zeros(ld)
    for i in range(n + 1):
        E[0, i] = E0[i]
        for c in range(r):
            Q[0, c, i] = A[i, c]
    Q[0, 0, one] = 1.0
    Q[0, 1, two] = 1.0
    pos = 0
    doubts = 0
    t = 0
    lim[0] = n
    depth = len(prefix)
    for k in range(r):
        stop[k] = prefix[k, 0] if k < depth else (max(low, least) if k == depth else least)
    ej[0], ep[0] = (prefix[0, 0], prefix[0, 1] - 1) if depth else (high, -1)
    while t >= 0:
        if t == last:
            q0, q1, e = Q[t, 0], Q[t, 1], E[t]
            a0, a1, c0, c1 = q0[zero], q1[zero], q0[one], q1[one]
            wide, worst = 0.0, 0.0
            for i in range(n):
                wide = max(wide, abs(q0[i]) + abs(q1[i]))
                worst = max(worst, e[i])
            # The one ranking of r-2 edges: far out where they and row 0 vanish and c_1 < 0.
            z0, z1 = -a1, a0
            s = c0 * z0 + c1 * z1
            far = abs(a0) + abs(a1)
            wrong = weak[t] or abs(s) <= e[one] * far + (e[zero] + 4 * UNIT * far) * (abs(c0) + abs(c1) + 2 * e[one])
            if s > 0:
                z0, z1 = -z0, -z1
            bound = worst * (far + 2 * e[zero]) + wide * (e[zero] + 2 * UNIT * far)
            eps = bound * 0.25 / 2.0 ** (t + 1)
            for i in range(n):
                key[i] = q0[i] * z0 + q1[i] * z1
            if not biased:
                key[1] = key[0] + eps * 2.0**t
            if t > 0:
                x, yy, det = q0[two], q1[two], a0 * c1 - a1 * c0
                b0, b1 = (x * c1 - yy * c0) / det, (a0 * yy - a1 * x) / det
                g0, g1 = (abs(x * c1) + abs(yy * c0)) / abs(det), (abs(a0 * yy) + abs(a1 * x)) / abs(det)
                for k in range(t - 1, -1, -1):
                    qp = Q[k, col[k]]
                    v = qp[two] - b0 * qp[zero] - b1 * qp[one]
                    g = abs(qp[two]) + g0 * abs(qp[zero]) + g1 * abs(qp[one])
                    for q in range(k + 1, t):
                        x = qp[ej[q]] - qp[ep[q]]
                        v -= y[q] * x
                        g += m[q] * abs(x)
                    wrong |= abs(v) <= FAINT * g
                    y[k], m[k] = v / pivot[k], g / abs(pivot[k])
                for k in range(t - 1, -1, -1):
                    key[ej[k]] = key[ep[k]] + (eps if y[k] > 0 else -eps) * 2.0**k
            if store:
                wrong |= _rank(key, 3 * bound, n, out[pos], sorted_keys) != t + (not biased)
            doubts += wrong
            pos += 1
            if leaves:
                j = lim[t] - 1
                while j >= least:
                    qj0, qj1 = q0[j], q1[j]
                    yt, mt = Y[t], M[t]
                    for p in range(j):
                        X, Z = qj0 - q0[p], qj1 - q1[p]
                        v0 = a0 * Z - a1 * X
                        f = (c0 * Z - c1 * X) / v0
                        g0 = (abs(c0 * Z) + abs(c1 * X)) / abs(v0)
                        first[p], size[p] = f, g0
                        large = abs(X) >= abs(Z)
                        v = (c0 if large else c1) - f * (a0 if large else a1)
                        g = abs(c0 if large else c1) + g0 * abs(a0 if large else a1)
                        w = X if large else Z
                        yt[p] = v / w
                        mt[p] = g / abs(w) if abs(v) > FAINT * g else np.inf
                    for k in range(t - 1, -1, -1):
                        qp, yk, mk = Q[k, col[k]], Y[k], M[k]
                        C, A0, ip, qpj = qp[one], qp[zero], 1 / pivot[k], qp[j]
                        aC, aA, aip = abs(C), abs(A0), abs(ip)
                        for p in range(j):
                            x = qpj - qp[p]
                            yk[p] = C - first[p] * A0 - yt[p] * x
                            mk[p] = aC + size[p] * aA + mt[p] * abs(x)
                        for q in range(k + 1, t):
                            x, yq, mq = qp[ej[q]] - qp[ep[q]], Y[q], M[q]
                            ax = abs(x)
                            for p in range(j):
                                yk[p] -= yq[p] * x
                                mk[p] += mq[p] * ax
                        for p in range(j):
                            g = mk[p]
                            mk[p] = g * aip if abs(yk[p]) > FAINT * g else np.inf
                            yk[p] *= ip
                    for p in range(j):
                        a, b = qj0 - q0[p], qj1 - q1[p]
                        err = e[j] + e[p] + UNIT * (abs(a) + abs(b))
                        far = abs(a) + abs(b)
                        v0 = a0 * b - a1 * a
                        off = e[zero] * (far + 2 * err) + (err + 2 * UNIT * far) * (abs(a0) + abs(a1))
                        wrong = weak[t] or abs(v0) <= off or M[0, p] == np.inf
                        if v0 < 0:
                            a, b = -a, -b
                        bound = worst * (far + 2 * err) + wide * (err + 2 * UNIT * far)
                        eps = bound * 0.25 / 2.0 ** (t + 1)
                        for i in range(n):
                            key[i] = q0[i] * b - q1[i] * a
                        key[j] = key[p] + (eps if yt[p] > 0 else -eps) * 2.0**t
                        for k in range(t - 1, -1, -1):
                            key[ej[k]] = key[ep[k]] + (eps if Y[k, p] > 0 else -eps) * 2.0**k
                        if store:
                            wrong |= _rank(key, 3 * bound, n, out[pos], sorted_keys) != t + 1
                        doubts += wrong
                        pos += 1
                    j -= 1
            t -= 1
            continue
        ep[t] += 1
        if ep[t] >= ej[t]:
            ej[t] -= 1
            ep[t] = 0
        j, p = ej[t], ep[t]
        if j < stop[t] or (t < depth and p > prefix[t, 1]):
            t -= 1
            continue
        D = r - t
        b_, best = 0, -1.0
        for c in range(D):
            v = abs(Q[t, c, j] - Q[t, c, p])
            if v > best:
                best, b_ = v, c
        qp = Q[t, b_]
        pv = qp[j] - qp[p]
        col[t], pivot[t] = b_, pv
        err = E[t, j] + E[t, p] + UNIT * best
        weak[t + 1] = weak[t] or 2 * err >= best
        phi = 2 * err / (best - err) + 2 * UNIT
        e, en = E[t], E[t + 1]
        for i in range(ld):
            en[i] = (2 + phi) * e[i] + phi * abs(qp[i])
            size[i] = 0.0
        cc = 0
        for c in range(D):
            if c == b_:
                continue
            qc, w_ = Q[t, c], Q[t + 1, cc]
            f = (qc[j] - qc[p]) / pv
            cc += 1
            for i in range(ld):
                x = qc[i] - f * qp[i]
                w_[i] = x
                size[i] = max(size[i], abs(x))
            w_[j] = w_[p]
        for i in range(ld):
            en[i] = (en[i] + UNIT * size[i]) * (1 + 8 * UNIT)
        en[j] = max(en[j], en[p])
        t += 1
        lim[t] = j
        ej[t], ep[t] = (prefix[t, 0], prefix[t, 1] - 1) if t < depth else (high if t == depth else j - 1, -1)
    return pos, doubts
