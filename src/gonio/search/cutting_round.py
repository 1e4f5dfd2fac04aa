"""One round for one label: accept its direction, or take in the rivals that beat it and project anew."""

from __future__ import annotations

import numpy as np
from numba import njit

from gonio.search.kernels import dot, nnls

OPEN, WINS, NEVER, STALLED = 0, 1, 2, 3


@njit(nogil=True, cache=True)
def _refine(A, M, P, p, b, lam, r):
    """Newton steps on the passive weights, with the residual formed from the columns and not from their products."""
    width = len(b)
    slope, change = np.empty(p), np.empty(p)
    for _ in range(3):
        for i in range(p):
            slope[i] = dot(A[P[i]], r, width)
        change[:] = 0.0
        for i in range(p):
            v = dot(M[i], slope, i + 1)
            for t in range(i + 1):
                change[t] += v * M[i, t]
        for i in range(p):
            if lam[P[i]] + change[i] <= 0:
                return
        r[:] = b
        for i in range(p):
            lam[P[i]] += change[i]
            for t in range(width):
                r[t] -= lam[P[i]] * A[P[i], t]


@njit(nogil=True, cache=True)
def _violated_rays(rays, fixed, extra, x, most):
    """The rays that x breaks, the worst `most` of them."""
    d = len(x)
    breach = np.zeros(fixed)
    count = 0
    for k in range(fixed):
        v = dot(rays[k], x, d)
        if v > 1e-12:
            breach[k] = v
            count += 1
    if count > most:
        floor = np.sort(breach)[fixed - most]
        for k in range(fixed):
            if breach[k] < floor:
                breach[k] = 0.0
    out = np.flatnonzero(breach)
    return np.append(out, extra) if extra >= 0 else out


@njit(nogil=True, cache=True)
def _allowed(rays, fixed, extra, x):
    """Whether x keeps to the rays, up to rounding."""
    for k in range(fixed):
        if dot(rays[k], x, len(x)) > 1e-9:
            return False
    return extra < 0 or dot(rays[extra], x, len(x)) <= 1e-9


@njit(nogil=True, cache=True)
def step(
    chosen, act, V, rays, fixed, extra, P, Q, across, X, Y, found, count,
    sets, weights, size, factors, begins, kept, room_for, place, R, status, margin, gap, slack,
    kappa, coarse, fine, ray_drift, tol, first_round,
):  # fmt: skip
    """The round of the labels act[chosen]; all else is indexed by act[a] (what is kept) or a (what is of this round).

    Columns (v_j, kappa) and (ray, 0), target (Q, kappa). Columns below len(V) are rows, the others rays; `fixed` rays
    are always watched, extra[a] >= 0 is one more. X[a] is the residual's direction, Y[a] the one that is tried: the
    same, or the nearest that the rays allow. slack[a] is what the direction falls short of by its rounding. The rows
    of the inverse factor of the columns are read from factors[begins[a]] on and written to kept[room_for[a]] on, which
    place[g] then says; -1 is nowhere.
    """
    n, d = V.shape
    room = found.shape[1]
    paired = across.shape[0] > 0
    M, order = np.empty((d + 2, d + 2)), np.empty(d + 2, np.int64)
    for a in chosen:
        g, x, new = act[a], Y[a], min(count[a], room)
        if count[a] <= room:
            mine, least = dot(x, P[g], d), coarse
            for k in range(new):
                least = min(least, mine - dot(V[found[a, k]], x, d))
            if least > fine + slack[a] and (not paired or _allowed(rays, fixed, extra[a], x)):
                status[g] = WINS
                margin[g] = least - fine - slack[a]
                R[g] = x
                continue
        broken = _violated_rays(rays, fixed, extra[a], X[a], max(24, d // 4))
        k0 = size[g]
        S = np.empty(k0 + new + len(broken), np.int64)
        S[:k0] = sets[g, :k0]
        k = k0
        for t in range(new + len(broken)):
            c = found[a, t] if t < new else n + broken[t - new]
            known = False
            for q in range(k):
                if S[q] == c:
                    known = True
                    break
            if not known:
                S[k] = c
                k += 1
        if k == k0 and not first_round:
            status[g] = STALLED
            continue
        A = np.empty((k, d + 1))
        for q in range(k):
            if S[q] < n:
                A[q, :d] = V[S[q]]
                A[q, d] = kappa
            else:
                A[q, :d] = rays[S[q] - n]
                A[q, d] = 0.0
            if paired:
                v = dot(A[q], across[g], d)
                for t in range(d):
                    A[q, t] -= v * across[g, t]
        b = np.empty(d + 1)
        b[:d] = Q[g]
        b[d] = kappa
        lam = np.zeros(k)
        lam[:k0] = weights[g, :k0]
        known, t = 0, begins[a]
        if t >= 0:
            known = k0
            for q in range(k0):
                M[q, : q + 1] = factors[t : t + q + 1]
                t += q + 1
        p = nnls(A, b, lam, M, order, known, 3 * k + 50)
        r = b - np.dot(lam, A)
        if dot(r, r, d + 1) < 1e-8 * dot(b, b, d + 1):
            _refine(A, M, order, p, b, lam, r)
        total, on_rays, off, t = 0.0, 0.0, 0.0, room_for[a]
        for q in range(p):
            c = order[q]
            if S[c] < n:
                total += lam[c]
            else:
                on_rays += lam[c]
            off = max(off, abs(dot(A[c], r, d + 1)))
            sets[g, q] = S[c]
            weights[g, q] = lam[c]
            if t >= 0:
                kept[t : t + q + 1] = M[q, : q + 1]
                t += q + 1
        place[g] = room_for[a] if off <= 1e-9 * dot(b, b, d + 1) else -1  # if rounding has had its way, begin anew
        size[g] = p
        R[g] = r[:d]
        if total > 0:
            away, near = 0.0, 0.0
            for t in range(d):
                v = (b[t] - r[t]) / total
                away += (v - Q[g, t]) ** 2
                near += (v - P[g, t]) ** 2
            wrong = fine + ray_drift * on_rays / total
            gap[g] = min(gap[g], np.sqrt(near) + wrong)
            if np.sqrt(away) + wrong <= tol:
                status[g] = NEVER
