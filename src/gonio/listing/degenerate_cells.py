"""Cells of any central arrangement, however degenerate, each listed once, without search (numba).

The walk of `cells` with the closures kept: S = {j1 < .. < jk} counts iff min(closure{jt, .., jk}) = jt for every t
and 0 is in none of them. Rows that vanish together with S take their signs from the row of S that made them vanish.

Whether a row vanishes is decided exactly: it must be zero within its rounding bound, and zero modulo primes whose
product exceeds every minor of the whole-number rows (Hadamard). Residues are kept in floats, whose products of two
26-bit numbers are exact. Signs come from the float rows and their running bound; the walk stops where one is in doubt.

With a tolerance instead of primes, a row vanishes where it is below `tol`; `seen` then holds the largest value taken
for zero and the smallest taken as it is, so that a caller can see whether the two are far apart.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gonio.listing.cells import FAINT, NONE, ONE, OPTIONS, UNIT, coordinates, padded, signs
from gonio.listing.elimination import null_vector, solve
from gonio.listing.modular import inverse_modulo, parallel, vanishes

DONE, FULL, DOUBT, UNLUCKY = 0, 1, 2, 3


class Walk:
    """The state of one walk, kept from block to block: begin at the largest row `first` of S (0: the empty S.

    -1: all).
    """

    def __init__(self, A, E0, residues, primes, C, first: int, tol: float) -> None:
        n, r = A.shape
        K, words, ld = len(primes), (n + 63) // 64, padded(n + len(C))
        self.Q = np.zeros((r, r, ld))
        self.Q[0, :, :n] = A.T
        self.Q[0, :, n : n + len(C)] = C.T
        self.E = np.zeros((r, ld))
        self.E[0, :n] = E0
        self.R = np.zeros((r, K, r, n))
        self.R[0] = residues
        self.primes = np.asarray(primes, np.float64)
        self.masks = np.zeros((4, r + 1, words), np.uint64)  # closure, seen, class members along / against their row
        self.ints = np.zeros((4, r + 1), np.int64)  # next row, limit, row, pivot column
        self.ints[0, 0] = 1
        self.ints[1, 0] = n
        self.pivot = np.ones(r + 1)
        self.now = np.array([0, 1, first], np.int64)  # level, entering it, the first row
        self.seen = np.array([0.0, np.inf])
        self.tol = tol
        self.n = n

    def block(self, out: np.ndarray, store: bool = True) -> tuple[int, int]:
        """Go on until `out` is full or the walk ends: (cells, DONE, FULL, DOUBT or UNLUCKY)."""
        return _go_on(
            self.Q, self.E, self.R, self.primes, self.masks, self.ints, self.pivot, self.now, self.seen, self.tol,
            self.n, out, store,
        )  # fmt: skip


@njit(**OPTIONS)
def _node(Q, E, R, primes, masks, row, col, pivot, t, n, r, tol, seen, M, S, z, be, y, size, order, out, pos):
    """The cell of S itself, |S| = t < r - 1: far out where S, a_0, c_1, .. vanish. True where a sign is in doubt."""
    D = r - t
    q, F = Q[t], masks[0, t]
    doubt = False
    for a in range(D - 1):
        i = 0 if a == 0 else n + a - 1
        s = 0.0
        for c in range(D):
            s = max(s, abs(q[c, i]))
        for c in range(D):
            M[a, c] = q[c, i] / s
    null_vector(M, D - 1, D, z, order)
    s, m = 0.0, 0.0
    for c in range(D):
        s += q[c, n + D - 2] * z[c]
        m += abs(q[c, n + D - 2] * z[c])
    doubt |= abs(s) <= FAINT * m
    far = 0.0
    for c in range(D):
        z[c] = -z[c] if s > 0 else z[c]
        far += abs(z[c])
    pc = 0
    for c in range(D):
        if abs(q[c, 0]) > abs(q[pc, 0]):
            pc = c
    for w in range(out.shape[1]):
        out[pos, w] = NONE
    out[pos, 0] = ONE
    for i in range(1, n):
        if F[i >> 6] & (ONE << np.uint64(i & 63)):
            continue
        s, m = 0.0, 0.0
        for c in range(D):
            s += q[c, i] * z[c]
            m += abs(q[c, i] * z[c])
        if tol > 0:
            # Along a_0 up to the tolerance: the part of row i off row 0.
            off, f = 0.0, q[pc, i] / q[pc, 0]
            for c in range(D):
                off = max(off, abs(q[c, i] - f * q[c, 0]))
            if off <= tol:
                seen[0] = max(seen[0], off)
                s = f
            else:
                seen[1] = min(seen[1], off)
        elif abs(s) <= E[t, i] * far + (D + 2) * UNIT * m:
            if parallel(R, primes, t, D, i, 0) and abs(q[pc, i]) > E[t, i]:
                s = q[pc, i] * q[pc, 0]
            else:
                doubt = True
        if s > 0:
            out[pos, i >> 6] |= ONE << np.uint64(i & 63)
    if t > 0:
        for c in range(D):
            for m_ in range(D):
                S[c, m_] = q[c, 0 if m_ == 0 else n + m_ - 1]
            S[c, D] = q[c, n + D - 1]
        solve(S, D, be)
        for k in range(t - 1, -1, -1):
            qp = Q[k, col[k]]
            v = qp[n + D - 1]
            m = abs(v)
            for q in range(D):
                i = 0 if q == 0 else n + q - 1
                v -= be[q] * qp[i]
                m += abs(be[q] * qp[i])
            for q in range(k + 1, t):
                v -= y[q] * qp[row[q]]
                m += size[q] * abs(qp[row[q]])
            size[k] = m / abs(pivot[k])
            doubt |= abs(v) <= FAINT * m
            y[k] = v / pivot[k]
            for w in range(out.shape[1]):
                out[pos, w] |= masks[2, k, w] if y[k] > 0 else masks[3, k, w]
    return doubt


@njit(**OPTIONS)
def _go_on(Q, E, R, primes, masks, ints, pivot, now, seen, tol, n, out, store):
    r = Q.shape[0]
    K = len(primes)
    words = masks.shape[2]
    ld = Q.shape[2]
    nxt, lim, row, col = ints[0], ints[1], ints[2], ints[3]
    M = np.zeros((r + 1, r + 1))
    S = np.zeros((r + 1, r + 2))
    z = np.zeros(r + 1)
    be = np.zeros(r + 1)
    y = np.zeros(r + 1)
    order = np.zeros(r + 1, np.int64)
    own = np.zeros((words, n), np.uint64)
    Y = np.zeros((r, n))
    T = np.zeros((r, n))
    first = np.zeros(n)
    size = np.zeros(ld)
    zero = np.zeros(words, np.uint64)
    along = np.zeros(words, np.uint64)
    inverse = np.zeros(K)
    bits = np.zeros(ld, np.uint64)
    for i in range(n):
        bits[i] = ONE << np.uint64(i & 63)
    pos = 0
    t = now[0]
    only = now[2]
    while t >= 0:
        if now[1]:
            if store and pos + n + 1 > len(out):
                now[0] = t
                return pos, FULL
            now[1] = 0
            if t > 0 or only <= 0:
                if store and _node(
                    Q, E, R, primes, masks, row, col, pivot, t, n, r, tol, seen, M, S, z, be, y, size, order, out, pos,
                ):  # fmt: skip
                    return pos, DOUBT
                pos += 1
            if t == 0 and only == 0:
                break
            if t == r - 2:
                m = lim[t]
                q0, q1, e, F = Q[t, 0], Q[t, 1], E[t], masks[0, t]
                a0, a1 = q0[0], q1[0]
                if store:
                    coordinates(Q, col, row, pivot, bits, t, n, 0, m, Y, T, first, size, own)
                for w in range(words):
                    masks[1, t, w] = F[w]
                wide, worst = 0.0, 0.0  # one bound for all rows: they have about one length
                for i in range(n):
                    wide = max(wide, abs(q0[i]) + abs(q1[i]))
                    worst = max(worst, e[i])
                for j in range(1, m):
                    if masks[1, t, j >> 6] & bits[j]:
                        continue
                    a, b, ej = q0[j], q1[j], e[j]
                    length = abs(a) + abs(b)
                    v0 = a0 * b - a1 * a
                    sign = -1.0 if v0 < 0 else 1.0
                    bound = tol * length if tol > 0 else worst * (length + 2 * ej) + wide * (ej + 2 * UNIT * length)
                    for w in range(words):
                        lo, hi = 64 * w, min(ld, 64 * w + 64)
                        p, zz = signs(q0[lo:hi], q1[lo:hi], sign * a, sign * b, bound, bits[lo:hi])
                        zz &= ~F[w]
                        if tol > 0:
                            for i in range(lo, min(n, hi)):
                                if i != j and not F[w] & bits[i]:
                                    v = abs(q0[i] * b - q1[i] * a) / length
                                    if zz & bits[i]:
                                        seen[0] = max(seen[0], v)
                                    else:
                                        seen[1] = min(seen[1], v)
                        elif zz:
                            for i in range(lo, hi):
                                if i != j and zz & bits[i] and not vanishes(R, primes, t, i, j):
                                    v = abs(q0[i] * b - q1[i] * a)
                                    mine = abs(q0[i]) + abs(q1[i])
                                    if v <= e[i] * (length + 2 * ej) + (ej + 2 * UNIT * length) * mine:
                                        return pos, DOUBT
                                    zz &= ~bits[i]
                        zero[w] = zz
                        masks[1, t, w] |= zz
                        if store:
                            out[pos, w] = p & ~(F[w] | zz)
                    # A leaf that vanishes together with row 0 is none of ours.
                    broken = zero[0] & ONE != NONE
                    if broken or (t == 0 and only > 0 and j != only):
                        continue
                    if store:
                        if T[0, j] == np.inf or T[0, j] != T[0, j]:
                            return pos, DOUBT
                        for w in range(words):
                            along[w] = NONE
                        for i in range(j, n):
                            if zero[i >> 6] & bits[i]:
                                if i != j and tol == 0 and abs(q0[i]) + abs(q1[i]) <= 2 * e[i]:
                                    return pos, DOUBT
                                if q0[i] * a + q1[i] * b > 0:
                                    along[i >> 6] |= bits[i]
                        for w in range(words):
                            out[pos, w] |= along[w] if Y[t, j] > 0 else zero[w] & ~along[w]
                            for k in range(t):
                                out[pos, w] |= masks[2, k, w] if Y[k, j] > 0 else masks[3, k, w]
                    pos += 1
                t -= 1
                continue
        j = nxt[t]
        while j < lim[t] and masks[1, t, j >> 6] & (ONE << np.uint64(j & 63)):
            j += 1
        if j >= lim[t] or (t == 0 and only > 0 and j > only):
            t -= 1
            continue
        nxt[t] = j + 1
        D = r - t
        p_ = -1
        best = -1.0
        for c in range(D):
            if abs(Q[t, c, j]) > best:
                regular = True
                for k in range(K):
                    regular &= R[t, k, c, j] != 0
                if regular:
                    best = abs(Q[t, c, j])
                    p_ = c
        ej = E[t, j]
        if p_ < 0:
            return pos, UNLUCKY
        if tol == 0 and best <= 2 * ej:
            return pos, DOUBT
        row[t], col[t], pivot[t] = j, p_, Q[t, p_, j]
        qp, pv, e, en = Q[t, p_], Q[t, p_, j], E[t], E[t + 1]
        biggest = 0.0
        for c in range(D):
            biggest = max(biggest, abs(Q[t, c, j]))
        ratio = biggest / abs(pv)  # 1 but where a larger entry is 0 modulo a prime
        phi = (1 + ratio) * ej / (abs(pv) - ej) + 2 * UNIT * ratio
        for i in range(ld):
            en[i] = (1 + ratio + phi) * e[i] + phi * abs(qp[i])
            size[i] = 0.0
        cc = 0
        for c in range(D):
            if c == p_:
                continue
            qc, w_ = Q[t, c], Q[t + 1, cc]
            f = qc[j] / pv
            for i in range(ld):
                x = qc[i] - f * qp[i]
                w_[i] = x
                size[i] = max(size[i], abs(x))
            w_[j] = 0.0
            cc += 1
        size[j] = 0.0
        for i in range(ld):
            en[i] = (en[i] + UNIT * size[i]) * (1 + 8 * UNIT)
        en[j] = 0.0
        for k in range(K):
            p = primes[k]
            inverse[k] = inverse_modulo(R[t, k, p_, j], p)
            cc = 0
            for c in range(D):
                if c == p_:
                    continue
                f = R[t, k, c, j] * inverse[k]
                f -= np.floor(f / p) * p
                rc, rp, rn = R[t, k, c], R[t, k, p_], R[t + 1, k, cc]
                ip = 1 / p
                for i in range(n):
                    x = f * rp[i]
                    x -= np.floor(x * ip) * p  # in [-p, p]: the quotient may be off by one
                    v = rc[i] - x
                    v += p if v < 0 else 0.0
                    v -= p if v >= p else 0.0
                    v += p if v < 0 else 0.0
                    rn[i] = v
                cc += 1
        below = NONE
        for w in range(words):
            zero[w] = NONE
            along[w] = NONE
        doubt = False
        for i in range(n):
            one = bits[i]
            if masks[0, t, i >> 6] & one:
                continue
            if tol > 0:
                gone = i == j or size[i] <= tol
                if i != j:
                    if gone:
                        seen[0] = max(seen[0], size[i])
                    else:
                        seen[1] = min(seen[1], size[i])
            else:
                gone = i == j or size[i] <= en[i]
                if gone and i != j:
                    for k in range(K):
                        for c in range(D - 1):
                            gone &= R[t + 1, k, c, i] == 0
            if gone:
                zero[i >> 6] |= one
                doubt |= tol == 0 and abs(qp[i]) <= e[i]
                if qp[i] * pv > 0:
                    along[i >> 6] |= one
                for c in range(D - 1):
                    Q[t + 1, c, i] = 0.0
                en[i] = 0.0
        for w in range(words):
            masks[1, t, w] |= zero[w]
        below = zero[0] & ONE
        if below != NONE or (t == 0 and only > 0 and j != only):
            continue
        if doubt:
            return pos, DOUBT
        for w in range(words):
            masks[2, t, w] = along[w]
            masks[3, t, w] = zero[w] & ~along[w]
            masks[0, t + 1, w] = masks[0, t, w] | zero[w]
            masks[1, t + 1, w] = masks[0, t, w] | zero[w]
        t += 1
        nxt[t] = 1
        lim[t] = j
        now[1] = 1
    now[0] = -1
    return pos, DONE
