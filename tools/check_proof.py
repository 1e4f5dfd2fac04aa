#!/usr/bin/env python3
"""Check a gonio proof file with the Python standard library alone, in whole numbers; gonio itself is not needed.

    python check_proof.py p.npz [p.head.npz] [--kind KIND] [--label N] [--sample N] [--seed S] [--all]

Both files are described in docs/proofs.md. Floats are the rationals they are: the head's numbers are whole numbers over
2^E, those of an embedding over 2^e, and all that follows is sums and products of whole numbers and fractions. For a
verdict to be right, these must be: Array and Head (reading, digest), Head.at (is x an input?), Point (scores),
Mean.least, and one function a kind of certificate. `solve` only proposes weights, which Mean.least judges.
Exit code: 0 all that was looked at holds, 1 something is refused, 2 the files or the options are no good.
"""

import argparse
import ast
import functools
import hashlib
import itertools
import json
import math
import random
import struct
import sys
import time
import zipfile
from fractions import Fraction
from operator import mul

CODES = {"<f2": "e", "<f4": "f", "<f8": "d", "<i8": "q", "|u1": "B"}
INPUTS = {"all": [], "nonnegative": [], "box": ["high", "low"], "rmsnorm": ["gain"], "layernorm": ["gain", "shift"],
          "observed": ["F"]}  # fmt: skip
# The groups of a proof file in order: the kind, then its columns of labels, embeddings, lists of labels, lists of numbers.
GROUPS = {
    "wins32": ("wins", ["label"], ["x"], ["equals"], []),
    "wins64": ("wins", ["label"], ["x"], ["equals"], []),
    "never": ("never wins", ["label"], [], ["rivals"], ["weights"]),
    "ties": ("ties", ["a", "b"], ["x", "y"], [], []),
    "never_ties": ("never ties", ["a", "b"], [], ["rivals"], ["weights", "pair_weights"]),
    "undecided": ("undecided", ["label"], [], [], []),
    "possible": ("possible", [], ["x"], ["above", "below", "top"], []),
    "impossible": ("impossible", [], [], ["above", "below", "top"], ["weights"]),
    "open": ("open", [], [], ["above", "below", "top"], []),
}
INF = math.inf
NEAR = Fraction(1, 10**6)  # how far stored weights may be from exact ones
PRIME = (1 << 127) - 1
WIDE, SAMPLE = 128, 20  # of wider heads so many certificates are taken, unless --all or --sample says otherwise
KEPT = 3_000_000  # whole numbers that are kept for rows, and for scores


class BadInput(Exception):
    """A file or an option that cannot be used."""


class Refused(Exception):
    """A certificate that does not prove what it says."""


def need(fine, why, kind=Refused):
    if not fine:
        raise kind(why)


def whole(values, e):
    """The values times 2^e, which are whole numbers."""
    return [a << (e + 1 - b.bit_length()) for a, b in (v.as_integer_ratio() for v in values)]


def exponent(values):
    """The least e >= 0 for which the values times 2^e are whole numbers."""
    return max((v.as_integer_ratio()[1].bit_length() - 1 for v in values), default=0)


# -- the files ---------------------------------------------------------------------------------------------------------


class Array:
    """One array of a .npz file: its shape, and its values as they lie there."""

    def __init__(self, raw):
        wide = 2 if raw[6:7] == b"\x01" else 4
        self.start = 8 + wide + int.from_bytes(raw[8 : 8 + wide], "little")
        about = ast.literal_eval(raw[8 + wide : self.start].decode("latin1"))
        self.raw, self.shape, kind = raw, about["shape"], about["descr"]
        need(len(self.shape) < 2 or not about["fortran_order"], "its columns are stored one after the other", BadInput)
        need(kind in CODES or kind.startswith("<U"), f"its type {kind} is not read", BadInput)
        self.count, self.code = math.prod(self.shape), CODES.get(kind)
        self.size = struct.calcsize("<" + self.code) if self.code else 4 * int(kind[2:])
        need(min(self.shape, default=0) >= 0, f"its shape is {self.shape}", BadInput)
        need(len(raw) == self.start + self.count * self.size, "it is shorter or longer than it says", BadInput)

    def values(self, first=0, last=None):
        """The entries from `first` to before `last`."""
        count = (self.count if last is None else last) - first
        return struct.unpack_from(f"<{count}{self.code}", self.raw, self.start + first * self.size)

    def text(self):
        return self.raw[self.start :].decode("utf-32-le").rstrip("\0")


def read(path, version):
    """A function that gives the arrays of a .npz file by name, and their names."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as e:
        raise BadInput(f"{path} cannot be read ({e})") from None
    names = {n.removesuffix(".npy") for n in archive.namelist()}

    @functools.lru_cache(None)
    def get(name):
        need(name in names, f"{path} has no array {name}", BadInput)
        try:
            return Array(archive.read(name + ".npy"))
        except (BadInput, ValueError, SyntaxError, LookupError, TypeError, struct.error, zipfile.BadZipFile) as e:
            raise BadInput(f"{path}[{name}] is damaged: {e}") from None

    found = get("format").text()
    need(found == version, f"{path} is of the format {found[:40]!r}; {version!r} is wanted", BadInput)
    return get, names


class Head:
    """The numbers of a head over 2^E, the digest made from them, and its inputs."""

    def __init__(self, path):
        get, names = read(path, "gonio head 1")
        self.W, self.link, self.kind = get("W"), get("link").text(), get("inputs").text()
        need(len(self.W.shape) == 2 and self.W.count, f"{path}[W] has the shape {self.W.shape}", BadInput)
        need(self.kind in INPUTS, f"{path} has inputs of the kind {self.kind!r}, which is not known", BadInput)
        self.n, self.d = n, d = self.W.shape
        given = {part: get("inputs_" + part) for part in INPUTS[self.kind]}
        bias = get("bias") if "bias" in names else None
        shapes = [(v.shape, {"gain": [(d,)], "shift": [(d,)], "F": [(*v.shape[:1], d)]}.get(p, [(), (d,)]))
                  for p, v in given.items()]  # fmt: skip
        fit = all(shape in wanted for shape, wanted in shapes) and (bias is None or bias.shape == (n,))
        need(fit, f"{path}: the shapes of W, bias and inputs do not fit together", BadInput)
        cap = get("softcap").values()[0] if "softcap" in names else None
        about = {"gonio": "head 1", "shape": [n, d], "link": self.link, "softcap": cap, "bias": bias is not None}
        about["inputs"] = {"kind": self.kind} | {p: list(v.shape) for p, v in given.items()}
        hashed, self.E = hashlib.sha256(json.dumps(about, sort_keys=True).encode()), 0
        for part in [*given.values(), *([bias] if bias else []), self.W]:
            for first in range(0, part.count, 1 << 16):
                values = part.values(first, min(part.count, first + (1 << 16)))
                hashed.update(struct.pack(f"<{len(values)}d", *(v + 0.0 for v in values)))  # -0.0 becomes 0.0
                sides = part in given.values() and self.kind == "box"  # these may be infinite
                values = [v for v in values if not (sides and math.isinf(v))]
                need(all(map(math.isfinite, values)), f"{path} holds NaN or infinity", BadInput)
                self.E = max(self.E, exponent(values))
        self.digest = hashed.hexdigest()
        self.bias = [0] * n if bias is None else whole(bias.values(), self.E)
        side = {p: list(v.values()) * (d if v.shape == () else 1) for p, v in given.items()}
        ends = {"nonnegative": ([0.0] * d, [INF] * d), "box": (side.get("low"), side.get("high"))}
        self.low, self.high = ends.get(self.kind, ([-INF] * d, [INF] * d))
        empty = any(a > b or a == INF or b == -INF for a, b in zip(self.low, self.high))
        need(not empty, f"{path}: some low is above its high", BadInput)
        self.ball, self.centred = self.kind in ("rmsnorm", "layernorm"), self.kind == "layernorm"
        self.gains, self.shifts = side.get("gain", [1.0] * d), side.get("shift", [0.0] * d)
        self.gain, self.shift = whole(self.gains, self.E), whole(self.shifts, self.E)
        F = side.get("F", [])
        self.F = [tuple(F[k : k + d]) for k in range(0, len(F), d)]
        self.row = functools.lru_cache(max(1, KEPT // d))(self._row)
        self.at = functools.lru_cache(max(1, KEPT // n))(self._at)

    def _row(self, j):
        """The row of a label; the label -1 stands for the number 0."""
        return whole(self.W.values(j * self.d, (j + 1) * self.d), self.E) if j >= 0 else [0] * self.d

    def equal(self, i, j):
        """Whether two labels have the same score at every input."""
        gap, b = [p - q for p, q in zip(self.row(i), self.row(j))], self.bias[i] - self.bias[j]
        if self.centred:  # multiples of (1, ..., 1) are what a LayerNorm takes out
            alike = len({p * g for p, g in zip(gap, self.gain)}) == 1
            return alike and sum(map(mul, gap, self.shift)) + (b << self.E) == 0
        return b == 0 and not any(p and g for p, g in zip(gap, self.gain))

    def _at(self, x):
        """The point that the floats x stand for; refused where it is not one of the inputs."""
        need(len(x) == self.d, f"x has {len(x)} entries, and the head has width {self.d}")
        need(all(map(math.isfinite, x)), "x holds NaN or infinity")
        need(all(a <= v <= b for a, v, b in zip(self.low, x, self.high)), f"x is outside the inputs ({self.kind})")
        need(self.kind != "observed" or x in self.F, "x is none of the observed embeddings")
        mean = Fraction(0)
        if self.ball:
            every = list(zip(x, self.gains, self.shifts))
            need(all(v == s for v, g, s in every if not g), "x moves a coordinate whose gain is 0")
            z = [(Fraction(v) - Fraction(s)) / Fraction(g) for v, g, s in every if g]
            total, squares, dead = tree(z), tree([v * v for v in z]), self.d - len(z)
            if self.centred and dead:  # such coordinates bring the sum to zero, at the least cost in length
                squares += total * total / dead
            elif self.centred:
                need(total**2 <= NEAR**2 * self.d * squares, "(x - shift) / gain does not sum to zero")
                mean, squares = total / self.d, squares - total * total / self.d
            need(squares < self.d, "(x - shift) / gain is not shorter than the root of the width")
        return Point(self, x, mean)


def tree(terms):
    """The sum of fractions, in pairs, so that long denominators meet late."""
    while len(terms) > 1:
        terms = [sum(terms[k : k + 2]) for k in range(0, len(terms), 2)]
    return terms[0] if terms else Fraction(0)


class Point(dict):
    """The scores at the embedding x - gain * mean by label, all times one positive number; -1: the number 0."""

    def __init__(self, head, x, mean):
        self.head, self.e = head, exponent(x)
        self.x, self.p, self.q = whole(x, self.e), mean.numerator, mean.denominator
        self[-1] = 0

    def __missing__(self, j):
        head, row = self.head, self.head.row(j)
        score = sum(map(mul, row, self.x)) + (head.bias[j] << self.e)
        if self.p:
            score = (score * self.q << head.E) - (sum(map(mul, row, head.gain)) * self.p << self.e)
        return self.setdefault(j, score)


# -- weighted means ----------------------------------------------------------------------------------------------------


class Mean:
    """Differences score_i - score_j = v.z + c of pairs (i, j), with weights; D and B are the weighted sums of v and c."""

    def __init__(self, head, pairs, weights, free=()):
        self.head, self.free, E = head, set(free), head.E  # `free`: places of weights that may be negative
        self.rows, self.c = [], []
        for i, j in pairs:
            gap = [p - q for p, q in zip(head.row(i), head.row(j))]
            b = (head.bias[i] if i >= 0 else 0) - (head.bias[j] if j >= 0 else 0)
            self.rows.append([p * g for p, g in zip(gap, head.gain)])
            self.c.append((b << E) + sum(map(mul, gap, head.shift)))
        self.weights, self.f = weights, exponent(weights)
        self.stored = whole(weights, self.f)

    def least(self, v):
        """A number with the sign of the least D.z + B on the closed inputs for weights v; -1 where there is none."""
        D, B, head = [sum(map(mul, v, column)) for column in zip(*self.rows)], sum(map(mul, v, self.c)), self.head
        if head.ball:  # B - sqrt(d) |D|; after a LayerNorm with D less its mean
            return -1 if B < 0 else B * B - head.d * sum(p * p for p in D) + (sum(D) ** 2 if head.centred else 0)
        ends = [a if p > 0 else b if p < 0 else 0.0 for p, a, b in zip(D, head.low, head.high)]
        return -1 if any(map(math.isinf, ends)) else (B << head.E) + sum(map(mul, D, whole(ends, head.E)))

    def proven(self):
        """Whether weights near the stored ones, none negative but the free ones, make D.z + B >= 0 on the inputs."""
        top = max((k for k in range(len(self.stored)) if k not in self.free), key=self.stored.__getitem__)
        for v in self.candidates(top):
            if v[top] > 0 and all(p >= 0 or k in self.free for k, p in enumerate(v)):
                off = (abs(p * self.stored[top] - s * v[top]) for p, s in zip(v, self.stored))
                if all(o * NEAR.denominator <= v[top] << self.f for o in off) and self.least(v) >= 0:
                    return True
        return False

    def candidates(self, top):
        """The stored weights, and exact ones near them at which what nearly vanishes does vanish."""
        yield self.stored
        head, d, rows = self.head, self.head.d, self.rows
        if head.ball:
            yield self.downhill(top)
        if head.centred:  # D counts up to a constant
            k = head.gain.index(0) if 0 in head.gain else d - 1
            rows = [[p - row[k] for p in row] for row in rows]
        flat = list(zip(*rows))
        D = [sum(map(mul, self.stored, column)) for column in flat]
        size = [sum(abs(s * p) for s, p in zip(self.stored, column)) for column in flat]
        counts = [k for k in range(d) if size[k] and head.low[k] != head.high[k]]
        wrong = {k for k in counts if (D[k] < 0 and head.high[k] == INF) or (D[k] > 0 and head.low[k] == -INF)}
        if any(abs(D[k]) * NEAR.denominator > size[k] for k in wrong):
            return  # farther off than rounding explains
        zero = [k for k in counts if k in wrong or abs(D[k]) * 10**9 <= size[k]]
        corner = [0.0 if k in zero or not size[k] else head.low[k] if D[k] > 0 else head.high[k] for k in range(d)]
        corner = whole(corner, head.E)
        last = [sum(map(mul, row, corner)) + (c << head.E) for row, c in zip(rows, self.c)]
        for table in ([flat[k] for k in zero], [*(flat[k] for k in zero), last]):
            v = solve(table, self.weights, self.stored)
            if v:
                yield v
        # That may ask for too much: only what has the wrong sign need vanish, some more coordinates at a time.
        active, v = [k for k in zero if head.low[k] == -INF and head.high[k] == INF], self.stored
        while v:
            D = [sum(map(mul, v, column)) for column in flat]
            more = [k for k in range(d) if k not in active and (
                (D[k] < 0 and (head.high[k] == INF or head.low[k] == 0))
                or (D[k] > 0 and (head.low[k] == -INF or head.high[k] == 0)))]  # fmt: skip
            active += more
            v = solve([flat[k] for k in active], self.weights, self.stored) if more else None
            if v:
                yield v

    def downhill(self, top):
        """Weights a small step down the slope of sqrt(d) |D| - B: on the very edge the stored ones fail by rounding."""
        one = 1 << max(p.bit_length() for p in itertools.chain(self.c, *self.rows))
        rows, c = [[p / one for p in row] for row in self.rows], [p / one for p in self.c]
        D = [sum(map(mul, self.weights, column)) for column in zip(*rows)]
        D = [p - sum(D) / len(D) for p in D] if self.head.centred else D
        norm = math.hypot(*D) or 1.0
        slope = [math.sqrt(len(D)) * sum(map(mul, row, D)) / norm - b for row, b in zip(rows, c)]
        step = float(NEAR) / 4 * self.weights[top] / max(map(abs, self.weights)) / (max(map(abs, slope)) or 1.0)
        moved = [w - s * step if k in self.free else max(w - s * step, w / 2)
                 for k, (w, s) in enumerate(zip(self.weights, slope))]  # fmt: skip
        e = exponent([*moved, *self.weights])
        return whole(moved, e)


def solve(table, weights, stored):
    """Whole numbers near the stored ones, up to a factor, that each row of the table sends to 0; None if there are none.

    As many weights as the table's rank are solved for (Dixon's lifting modulo a prime, then fractions from residues);
    the others stay. Rows that depend on others modulo the prime are left out: the caller judges what comes out.
    """
    lower, upper, guides, basic, chosen = [], [], [], [], []
    for row in table:
        one = 1 << max(max(p.bit_length() for p in row), 1)
        left, guide, factors = [p % PRIME for p in row], [p / one * w for p, w in zip(row, weights)], []
        for u, g, k in zip(upper, guides, basic):
            f, h = left[k], guide[k] / g[k] if g[k] else 0.0
            factors.append(f)
            left, guide = [(p - f * q) % PRIME for p, q in zip(left, u)], [p - h * q for p, q in zip(guide, g)]
        k = max((k for k, p in enumerate(left) if p), key=lambda k: abs(guide[k]), default=None)
        if k is not None:  # of the weights that this row can fix, the one that bears it best
            inverse = pow(left[k], -1, PRIME)
            lower.append((factors, inverse))
            upper.append([p * inverse % PRIME for p in left])
            guides.append(guide)
            basic.append(k)
            chosen.append(row)
    rest = [k for k in range(len(stored)) if k not in basic]
    if not rest:
        return None
    square = [[row[k] for k in basic] for row in chosen]
    right = [-sum(row[k] * stored[k] for k in rest) for row in chosen]
    upper = [[u[k] for k in basic] for u in upper]
    size = sum(sum(p * p for p in [*row, b]).bit_length() // 2 + 1 for row, b in zip(square, right))  # Hadamard's bound
    found, power = [0] * len(basic), 1
    while power.bit_length() <= 2 * size + 2:
        digits = []
        for b, (factors, inverse) in zip(right, lower):
            digits.append((b - sum(map(mul, factors, digits))) * inverse % PRIME)
        for k in reversed(range(len(digits))):
            digits[k] = (digits[k] - sum(map(mul, upper[k][k + 1 :], digits[k + 1 :]))) % PRIME
        found = [p + power * q for p, q in zip(found, digits)]
        right = [(b - sum(map(mul, row, digits))) // PRIME for b, row in zip(right, square)]
        power *= PRIME
    denominator, values = 1, []
    for p in found:
        a, b, r, s = power, 0, p * denominator % power, 1
        if min(r, power - r).bit_length() > size:  # not yet a whole number: the fraction r / s that it is
            while r.bit_length() > size:
                q = a // r
                a, b, r, s = r, s, a - q * r, b - q * s
            denominator *= abs(s)
    for p in found:
        p = p * denominator % power
        values.append(p if 2 * p < power else p - power)
    back = dict(zip(basic, values)) | {k: stored[k] * denominator for k in rest}
    return [back[k] for k in range(len(stored))]


# -- one function a kind of certificate: each returns where the certificate holds, and raises Refused where not ------------


def check_wins(head, label, x, equals):
    need(label not in equals, f"label {label} is named as an equal of itself")
    need(all(head.equal(label, j) for j in equals), f"a label is named as an equal of label {label}, and is not")
    at, but = head.at(x), {label, *equals}
    rival = next((j for j in range(head.n) if j not in but and at[j] >= at[label]), None)
    need(rival is None, f"label {label} does not win at x, where label {rival} scores at least as high")


def check_never_wins(head, label, rivals, weights):
    need(label not in rivals, f"label {label} is among its own rivals, which proves nothing")
    need(not any(head.equal(label, j) for j in rivals), f"a rival scores as label {label} does everywhere")
    if head.kind == "observed":
        need(not weights, "over observed embeddings rivals have no weights")
        others = rivals or [j for j in range(head.n) if not head.equal(label, j)]
        won = any(all(at[j] < at[label] for j in others) for at in map(head.at, head.F))
        need(not won, f"label {label} is above its rivals at an observed embedding")
    else:
        check_mean(head, [(j, label) for j in rivals], weights)


def check_mean(head, pairs, weights, partner=None):
    """Some weights near these make the weighted sum of the pairs' differences >= 0 at every input."""
    need(len(pairs) == len(weights), f"{len(weights)} weights were given for {len(pairs)} rivals or comparisons")
    fine = all(0 <= w < INF for w in weights) and abs(sum(map(Fraction, weights)) - 1) <= NEAR
    need(fine, "its weights are not non-negative numbers that sum to 1")
    used = [k for k, w in enumerate(weights) if w]
    pairs, weights = [pairs[k] for k in used], [weights[k] for k in used]
    if partner:
        pairs, weights = [*pairs, partner[0]], [*weights, partner[1]]
    mean = Mean(head, pairs, weights, [len(used)] if partner else [])
    need(mean.proven(), f"no exact weights near its {len(used)} weights prove it over the inputs ({head.kind})")


def check_ties(head, a, b, x, y):
    need(a != b, f"label {a} is named twice")
    need(head.kind != "observed" or x == y, "observed embeddings are not convex: x and y must be the same")
    at, to = head.at(x), head.at(y)
    need(at[a] >= at[b], f"at x label {a} is below label {b}")
    need(to[b] >= to[a], f"at y label {b} is below label {a}")
    above = all(at[j] < at[b] and to[j] < to[a] for j in range(head.n) if j not in (a, b))
    need(above, f"labels {a} and {b} are not both above all others at x and y")


def check_never_ties(head, a, b, rivals, weights, pair_weights):
    need(a != b, f"label {a} is named twice")
    need(not {a, b} & set(rivals), "one of the two labels is among the rivals, which proves nothing")
    if head.kind == "observed":
        need(not weights and not pair_weights, "over observed embeddings rivals have no weights")
        others = rivals or [j for j in range(head.n) if j not in (a, b)]
        shared = any(at[a] == at[b] and all(at[j] < at[a] for j in others) for at in map(head.at, head.F))
        need(not shared, f"labels {a} and {b} share the top at an observed embedding")
    elif rivals or weights:
        p = pair_weights
        fine = len(p) == 2 and all(map(math.isfinite, p))
        need(fine and abs(Fraction(p[0]) + Fraction(p[1]) - 1) <= NEAR * max(1, *map(abs, map(Fraction, p))),
             "its pair weights are not two numbers that sum to 1")  # fmt: skip
        check_mean(head, [(j, a) for j in rivals], weights, ((b, a), -p[1]))
    else:  # one is above the other at every input: strictly, or on the open ball with a lead at its centre
        means = [Mean(head, [pair], [1.0]) for pair in ((a, b), (b, a))]
        apart = any(m.least([1]) > 0 or (head.ball and m.least([1]) == 0 and m.c[0] > 0) for m in means)
        need(apart, f"neither of labels {a} and {b} is always the higher")


def compared(head, above, below, top):
    """Look at the form of a question, and give a function that says whether all of it holds at a point."""
    need(len(above) == len(below), f"{len(above)} scores are above and {len(below)} below; as many are needed")
    need(min(top, default=0) >= 0 and (above or top), "it compares nothing")
    need(not any(i == j for i, j in zip(above, below)), "a score is compared with itself")
    others = [j for j in range(head.n) if j not in set(top)] if top else []
    return lambda at: all(at[i] > at[j] for i, j in zip(above, below)) and all(
        at[j] < least for least in [min((at[i] for i in top), default=0)] for j in others)  # fmt: skip


def check_possible(head, above, below, top, x):
    need(compared(head, above, below, top)(head.at(x)), "at x not all of its comparisons hold")


def check_impossible(head, above, below, top, weights):
    holds = compared(head, above, below, top)
    if head.kind == "observed":
        need(not weights, "over observed embeddings comparisons have no weights")
        need(not any(map(holds, map(head.at, head.F))), "all of its comparisons hold at an observed embedding")
    else:
        need(not top, "a proof with weights names each comparison")
        check_mean(head, list(zip(below, above)), weights)


CHECKS = {"wins": check_wins, "never wins": check_never_wins, "ties": check_ties, "never ties": check_never_ties,
          "possible": check_possible, "impossible": check_impossible}  # fmt: skip

# -- the proof file and the command line -----------------------------------------------------------------------------------


class Proof:
    """The certificates of a proof file, each read when it is asked for."""

    def __init__(self, path):
        self.get, names = read(path, "gonio proof 2")
        self.digest, self.path = self.get("head").text(), path
        seen, self.order = dict.fromkeys(GROUPS, 0), []
        for number in self.get("order").values():
            need(number < len(GROUPS), f"{path}[order] names a group that does not exist", BadInput)
            group = list(GROUPS)[number]
            self.order.append((group, seen[group]))
            seen[group] += 1

    @functools.cache
    def starts(self, name):
        """Where each list of an array begins, the end of the last one included."""
        counts = self.get(name + "_count" if name != "support_rival" else "support_count").values()
        need(min(counts, default=0) >= 0, f"{self.path}[{name}] has negative counts", BadInput)
        return [0, *itertools.accumulate(counts)]

    def part(self, name, k, of=None):
        """The k-th list of an array."""
        starts = self.starts(name)
        fine = 0 <= k < len(starts) - 1 and starts[-1] == self.get(name).count
        need(fine, f"{self.path}[{name}] does not hold the entries that are announced", BadInput)
        return self.get(name).values(starts[k], starts[k + 1])

    def certificate(self, group, k):
        """The fields of the k-th certificate of a group."""
        _, labels, points, lists, numbers = GROUPS[group]
        out = {}
        for field in labels + points:
            a = self.get(f"{group}_{field}")
            need(a.shape and k < a.shape[0], f"{self.path}[{group}_{field}] has too few rows", BadInput)
            wide = a.count // a.shape[0]
            values = a.values(k * wide, (k + 1) * wide)
            out[field] = values[0] if field in labels else values
        for field in lists + numbers:
            if field == "rivals":
                support = self.get(f"{group}_support").values(k, k + 1)[0]
                out[field] = self.part("support_rival", support)
            else:
                out[field] = self.part(f"{group}_{field}", k)
        return out


def check(head, proof, group, k):
    """Refused where the k-th certificate of a group does not prove what it says about the head."""
    need(proof.digest == head.digest, f"it is about the head {proof.digest[:8]}, and this is {head.digest[:8]}")
    need(head.link in ("softmax", "sigmoid", "dot"), f"the rows of a head of the link {head.link!r} are not scored exactly")
    fields = proof.certificate(group, k)
    named = itertools.chain.from_iterable(v if isinstance(v, tuple) else [v] for f, v in fields.items()
                                          if f not in ("x", "y", "weights", "pair_weights"))  # fmt: skip
    floor = -1 if GROUPS[group][0] in ("possible", "impossible") else 0
    need(all(floor <= j < head.n for j in named), f"it names labels that are not among 0 to {head.n - 1}")
    CHECKS[GROUPS[group][0]](head, **fields)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proof", help="the proof file that gonio ... --proof wrote")
    parser.add_argument("head", nargs="?", help="the exact head; p.head.npz beside p.npz if not given")
    parser.add_argument("--kind", choices=sorted({kind for kind, *_ in GROUPS.values()}), help="certificates of this kind")
    parser.add_argument("--label", type=int, help="certificates about this label")
    parser.add_argument("--sample", type=int, metavar="N", help=f"N at random; {SAMPLE} of heads wider than {WIDE}")
    parser.add_argument("--all", action="store_true", help="all certificates, however wide the head is")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    asked = parser.parse_args(arguments)
    try:
        return run(asked)
    except BadInput as e:
        print(f"check_proof: {e}.", file=sys.stderr)
        return 2


def run(asked):
    head, proof = Head(asked.head or asked.proof.removesuffix(".npz") + ".head.npz"), Proof(asked.proof)
    chosen = [(n, *place) for n, place in enumerate(proof.order) if asked.kind in (None, GROUPS[place[0]][0])]
    if asked.label is not None:
        chosen = [c for c in chosen if about(proof, *c[1:], asked.label)]
    need(chosen, "no certificate of the file is of that kind and about that label", BadInput)
    count = asked.sample if asked.sample is not None else SAMPLE if head.d > WIDE and not asked.all else len(chosen)
    found = len(chosen)
    if count < found:
        chosen = sorted(random.Random(asked.seed).sample(chosen, count))
    print(f"head     {head.n:,} labels x {head.d}, inputs {head.kind}, digest {head.digest[:16]}, made from its numbers")
    print(f"checking {len(chosen):,} of {found:,} certificates in whole numbers")
    tally, refused = {}, []
    for number, group, k in chosen:
        kind, start = GROUPS[group][0], time.perf_counter()
        seen = tally.setdefault(kind, [0, 0, 0.0])
        if kind in CHECKS:
            try:
                check(head, proof, group, k)
                seen[0] += 1
            except Refused as e:
                seen[1] += 1
                refused.append(f"refused: certificate {number} ({kind}): {e}.")
        seen[2] += time.perf_counter() - start
    for kind, (good, bad, spent) in sorted(tally.items()):
        told = f"{good:,} hold, {bad:,} refused, {1000 * spent / max(1, good + bad):.3g} ms each"
        print(f"  {kind:11s}{told if kind in CHECKS else 'proves nothing, and is not counted'}")
    print(*refused, sep="\n", end="\n" if refused else "")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
