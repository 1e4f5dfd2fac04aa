"""The compiled inner loops: the strongest rivals of a direction, non-negative least squares."""

from __future__ import annotations

import numpy as np

from gonio.core.compiled import njit

CHUNK = 64  # entries of a row that are passed over at once where none is large enough


@njit(nogil=True, cache=True)
def _some_above(some, low):
    """Whether an entry is above `low`: without a branch, so that the compiler looks at many at once."""
    above = False
    for q in range(len(some)):
        above |= some[q] > low
    return above


@njit(nogil=True, cache=True, fastmath=True)
def dot(a, b, n):
    """The sum of the first n products."""
    total = 0.0
    for t in range(n):
        total += a[t] * b[t]
    return total


@njit(nogil=True, cache=True)
def _offer(value, found, kept, weakest, v, j):
    """Keep the rival j of score v if it fits or beats the weakest that is kept: (how many there are, the weakest)."""
    room = len(value)
    if kept < room:
        value[kept], found[kept] = v, j
        return kept + 1, kept if v < value[weakest] else weakest
    if v > value[weakest]:
        value[weakest], found[weakest] = v, j
        weakest = _weakest(value, room)
    return room + 1, weakest


@njit(nogil=True, cache=True)
def _weakest(value, kept):
    """Where the smallest of those kept stands."""
    at = 0
    for q in range(1, kept):
        if value[q] < value[at]:
            at = q
    return at


@njit(nogil=True, cache=True)
def strongest(S, skip_a, skip_b, floor, first, found, value, count):
    """The largest entries above floor_i of each row, whose columns are the rivals first, first + 1, ...

    Row i of `found` and `value` keeps as many as fit; count_i says how many there are, or that more than fit.
    """
    room, width = found.shape[1], S.shape[1]
    for i in range(S.shape[0]):
        a, b, low, k = skip_a[i] - first, skip_b[i] - first, floor[i], count[i]
        row, mine, names = S[i], value[i], found[i]
        weakest = _weakest(mine, min(k, room))
        if k > room:  # what does not displace one that is kept is of no interest any more
            low = max(low, mine[weakest])
        for start in range(0, width, CHUNK):
            stop = min(start + CHUNK, width)
            if not _some_above(row[start:stop], low):
                continue
            for j in range(start, stop):
                v = row[j]
                if v <= low or j == a or j == b:  # noqa: SIM109  numba: faster than a tuple
                    continue
                k, weakest = _offer(mine, names, k, weakest, v, j + first)
                if k > room:
                    low = max(low, mine[weakest])
        count[i] = k


@njit(nogil=True, cache=True)
def _some_product_above(some, scale, low):
    """Whether a product of bytes times its scale is above `low`."""
    above = False
    for q in range(len(some)):
        above |= np.float32(some[q]) * scale[q] > low
    return above


@njit(nogil=True, cache=True)
def strongest_by_bytes(S, scale, sizes, slack, X, rows, skip_a, skip_b, floor, first, found, value, count):
    """As `strongest`, for the scores X_i.rows_j, from products of bytes: S_ij scale_j sizes_i is within slack_i of it.

    A score that may be above all that is asked of it is computed anew, in float32. S may have more columns than rows.
    """
    room, width = found.shape[1], len(scale)
    for i in range(len(X)):
        a, b, low, k = skip_a[i] - first, skip_b[i] - first, floor[i], count[i]
        products, x, mine, names = S[i], X[i], value[i], found[i]
        weakest = _weakest(mine, min(k, room))
        if k > room:
            low = max(low, mine[weakest])
        reach = (low - slack[i]) / sizes[i]
        for start in range(0, width, CHUNK):
            stop = min(start + CHUNK, width)
            if not _some_product_above(products[start:stop], scale[start:stop], reach):
                continue
            for j in range(start, stop):
                if not np.float32(products[j]) * scale[j] > reach or j == a or j == b:  # noqa: SIM109  as above
                    continue
                v = dot(x, rows[j], len(x))
                if v <= low:
                    continue
                k, weakest = _offer(mine, names, k, weakest, v, j + first)
                if k > room:
                    low = max(low, mine[weakest])
                    reach = (low - slack[i]) / sizes[i]
        count[i] = k


@njit(nogil=True, cache=True)
def copy(to, source, n):
    """The first n entries of one array into another (a loop compiles in a tenth of the time of a slice)."""
    for t in range(n):
        to[t] = source[t]


@njit(nogil=True, cache=True, fastmath=True)
def _enter(M, P, p, G, q, s, y, held, c):
    """Append column c to the passive set P of size p, to its inverse factor M, to y = M q and to the solution s = M'y.

    Whether it went well: a column that depends on the set is refused.
    """
    if p == len(M) - 1:
        return False
    row, g = M[p], G[c]
    for t in range(p):
        held[t] = g[P[t]]
        row[t] = 0.0
    left = g[c]
    for x in range(p):
        other = M[x]
        z = dot(other, held, x + 1)
        left -= z * z
        for t in range(x + 1):
            row[t] -= z * other[t]
    if left <= 1e-13 * g[c]:
        return False
    scale = 1 / np.sqrt(left)
    P[p] = c
    row[p] = 1.0
    gain = 0.0
    for t in range(p + 1):
        row[t] *= scale
        gain += row[t] * q[P[t]]
    y[p] = gain
    s[p] = 0.0
    for t in range(p + 1):
        s[t] += gain * row[t]
    return True


@njit(nogil=True, cache=True)
def _leave(M, P, p, s, y, r):
    """Take entry r out of all these: rotations gather column r of M in its last row, which goes."""
    for x in range(r, p - 1):
        up, down = M[x], M[x + 1]
        h = np.sqrt(up[r] * up[r] + down[r] * down[r])
        cos, sin = down[r] / h, up[r] / h
        up[x + 1] = 0.0
        for t in range(r):
            u, v = up[t], down[t]
            up[t] = cos * u - sin * v
            down[t] = sin * u + cos * v
        down[r] = h
        for t in range(r + 1, x + 2):
            u, v = up[t], down[t]
            up[t - 1] = cos * u - sin * v
            down[t] = sin * u + cos * v
        y[x], y[x + 1] = cos * y[x] - sin * y[x + 1], sin * y[x] + cos * y[x + 1]
    last = M[p - 1]
    for t in range(r):
        s[t] -= y[p - 1] * last[t]
    for t in range(r, p - 1):
        s[t] = s[t + 1] - y[p - 1] * last[t + 1]
        P[t] = P[t + 1]


@njit(nogil=True, cache=True, fastmath=True)
def _steepest(G, q, lam, P, p, open_, known, slope, floor):
    """The open column whose slope  q - G lam  is the largest above `floor`, or -1."""
    k = len(q)
    best, at = floor, -1
    for c in range(known):
        if open_[c]:
            v = q[c] - dot(G[c], lam, k)
            if v > best:
                best = v
                at = c
    for c in range(known, k):
        slope[c] = q[c]
    for r in range(p):
        w, g = lam[P[r]], G[P[r]]
        for c in range(known, k):
            slope[c] -= w * g[c]
    for c in range(known, k):
        if open_[c] and slope[c] > best:
            best = slope[c]
            at = c
    return at


@njit(nogil=True, cache=True)
def nnls(A, b, lam, M, P, known, most):
    """min |b - sum lam_j A_j| over lam >= 0, in place: Lawson and Hanson; the size p of the passive set P[:p].

    M is the inverse of the Cholesky factor of the passive block of A A' (lower triangular): M'M is its inverse. A
    column that enters adds a row, one that leaves rotates rows: products only, nothing is solved. The first `known`
    columns are passive and have their rows of M from an earlier call, for any b; the others with lam > 0 are passive
    at once. Columns that depend on the set are banned.
    """
    k = len(A)
    G = np.empty((k, k))
    np.dot(A[known:], A.T, G[known:])
    for c in range(known, k):
        for r in range(known):
            G[r, c] = G[c, r]
    q, open_ = np.empty(k), np.empty(k, np.bool_)  # open: who may enter; columns with products, not passive, not banned
    for c in range(k):
        q[c], open_[c] = dot(A[c], b, len(b)), c >= known
    s, y, held, slope = np.zeros(k + 1), np.zeros(k + 1), np.empty(k + 1), np.empty(k)
    p, largest = known, dot(b, b, len(b))
    for r in range(known):
        P[r] = r
        y[r] = dot(M[r], q, r + 1)
        for t in range(r + 1):
            s[t] += y[r] * M[r, t]
    for c in range(known, k):
        largest = max(largest, G[c, c])
        if lam[c] > 0:
            open_[c] = False
            if _enter(M, P, p, G, q, s, y, held, c):
                p += 1
            else:
                lam[c] = 0.0
    enter = -1
    for turn in range(most):
        while p > 0:
            step, out = 2.0, np.int64(-1)  # a plain -1 would be a type of its own, and compiled for
            for r in range(p):
                if s[r] <= 0:
                    w = lam[P[r]]
                    a = w / (w - s[r]) if w - s[r] > 0 else 0.0
                    if a < step:
                        step = a
                        out = r
            if out < 0:
                for r in range(p):
                    lam[P[r]] = s[r]
                break
            for r in range(p):
                a = P[r]
                lam[a] = max(0.0, lam[a] + step * (s[r] - lam[a]))
            c = P[out]
            lam[c] = 0.0
            open_[c] = c != enter  # it came in and went out at once: rounding, not descent
            _leave(M, P, p, s, y, out)
            p -= 1
            if c < known:
                for r in range(k):
                    G[c, r] = dot(A[r], A[c], len(b))
        enter = _steepest(G, q, lam, P, p, open_, known, slope, 1e-14 * largest)
        if enter < 0 or turn == most - 1:
            break
        open_[enter] = False
        if _enter(M, P, p, G, q, s, y, held, enter):
            p += 1
    return p
