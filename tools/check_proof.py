#!/usr/bin/env python3
"""Check a gonio proof file with the Python standard library alone, in whole numbers; gonio itself is not needed.

    python check_proof.py p.npz [p.head.npz] [--kind KIND] [--label N] [--sample N] [--seed S]

docs/proofs.md describes both files. Floats are the rationals they are: the numbers of the head are whole numbers over
2^E, those of an embedding over 2^e. For a verdict to be right, these must be: `read` and Head.__init__ (the digest),
Head.at (is x an input? its scores), Mean.least, Mean.proven, and Head's method for each kind; all else only proposes
weights, or prints. Exit code: 0 all that was looked at holds, 1 something is refused, 2 bad files or options.
"""

import argparse
import array
import ast
import hashlib
import itertools
import json
import math
import random
import struct
import sys
import time
import zipfile
from functools import lru_cache
from operator import mul
from types import SimpleNamespace as Array

INF, NEAR, PRIME = math.inf, 10**6, (1 << 127) - 1  # stored weights are within 1 / NEAR of exact ones
WIDE, SAMPLE = 128, 20  # of wider heads so many certificates are taken, unless --sample says otherwise
TYPES = {"<f2": "e", "<f4": "f", "<f8": "d", "<i8": "q", "|u1": "B"}
INPUTS = dict(all="", nonnegative="", box="high low", rmsnorm="gain", layernorm="gain shift", observed="F")
FLOATS, SINGLE = ("x", "y", "weights", "pair_weights"), ("label", "a", "b")
GROUPS = [  # of a proof file, in order: its name, the kind of its certificates, their fields
    ("wins32", "wins", "label x equals"), ("wins64", "wins", "label x equals"),
    ("never", "never wins", "label rivals weights"), ("ties", "ties", "a b x y"),
    ("never_ties", "never ties", "a b rivals weights pair_weights"), ("undecided", "undecided", "label"),
    ("possible", "possible", "above below top x"), ("impossible", "impossible", "above below top weights"),
    ("open", "open", "above below top"),
]  # fmt: skip
dot = lambda a, b: sum(map(mul, a, b))  # noqa: E731


class Refused(Exception): ...  # noqa: N818  a certificate does not prove what it says


def need(fine, why, kind=Refused):
    if not fine:
        raise kind(why)


def whole(values, e=None):
    """The values times 2^e as whole numbers, and e: if not given, the least that will do."""
    ratios = [v.as_integer_ratio() for v in values]
    e = max((b.bit_length() - 1 for _, b in ratios), default=0) if e is None else e
    return [a << (e + 1 - b.bit_length()) for a, b in ratios], e


def read(path, version):
    """The arrays of a .npz file by name: shape, all values in one row, and where each item (a row, a list) begins."""
    out = {}
    with zipfile.ZipFile(path) as z:
        for name, raw in ((name.removesuffix(".npy"), z.read(name)) for name in z.namelist()):
            wide = 2 if raw[6] == 1 else 4
            start = 8 + wide + int.from_bytes(raw[8 : 8 + wide], "little")
            about, raw = ast.literal_eval(raw[8 + wide : start].decode("latin1")), raw[start:]
            shape, code = about["shape"], TYPES.get(about["descr"])
            if code is None:
                out[name] = raw.decode("utf-32-le").rstrip("\0")
                continue
            flat = array.array("f", struct.unpack(f"<{len(raw) // 2}e", raw)) if code == "e" else array.array(code, raw)
            fine = len(flat) == math.prod(shape) and not (about["fortran_order"] and shape[1:])
            need(fine and sys.byteorder == "little", f"{path}[{name}] is not stored as it says", ValueError)
            out[name] = Array(shape=shape, flat=flat, starts=range(0, len(flat) + 1, math.prod(shape[1:]) or 1))
    for name in (n for n in out if n.endswith("_count")):
        out[name.removesuffix("_count")].starts = list(itertools.accumulate(out[name].flat, initial=0))
    need(out["format"] == version, f"{path} is of the format {out['format'][:40]!r}, not {version!r}", ValueError)
    return out


class Head:
    """A head in whole numbers over 2^E with its digest and inputs, and one method a kind of certificate."""

    def __init__(self, path):
        file = read(path, "gonio head 1")
        W, self.link, self.kind, bias = file["W"], file["link"], file["inputs"], file.get("bias")
        (n, d), given = W.shape, {part: file["inputs_" + part] for part in INPUTS[self.kind].split()}
        cap = file["softcap"].flat[0] if "softcap" in file else None
        about = {"gonio": "head 1", "shape": [n, d], "link": self.link, "softcap": cap, "bias": bias is not None}
        about["inputs"] = {"kind": self.kind} | {part: list(a.shape) for part, a in given.items()}
        hashed, E = hashlib.sha256(json.dumps(about, sort_keys=True).encode()), 0
        for a in [*given.values(), *([bias] if bias else []), W]:
            for k in range(0, len(a.flat), 1 << 16):
                values = array.array("d", (v + 0.0 for v in a.flat[k : k + (1 << 16)]))  # -0.0 becomes 0.0
                hashed.update(values)
                E = max(E, whole(v for v in values if a is W or abs(v) < INF)[1])  # the sides of a box may be infinite
        self.n, self.d, self.E, self.digest = n, d, E, hashed.hexdigest()
        side = {part: list(a.flat) * (1 if a.shape else d) for part, a in given.items()}
        F, self.bias = side.pop("F", []), [*(whole(bias.flat, E)[0] if bias else [0] * n), 0]  # -1: the number 0
        self.F = dict.fromkeys(tuple(F[k : k + d]) for k in range(0, len(F), d))  # in order, each once
        usual = {"low": 0.0 if self.kind == "nonnegative" else -INF, "high": INF, "gain": 1.0, "shift": 0.0}.items()
        self.low, self.high, gain, shift = (side.get(part, [v] * d) for part, v in usual)
        fine = len(self.bias) == n + 1 and all(len(v) == d for v in [*side.values(), *self.F])
        full = all(a <= b and a < INF and b > -INF for a, b in zip(self.low, self.high))
        full &= bool(F) == ("F" in given)
        need(fine and full, f"bias or inputs of {path} do not fit its rows, or no input is possible", ValueError)
        self.gain, self.shift = whole(gain, E)[0], whole(shift, E)[0]
        self.ball, self.centred = "gain" in given, "shift" in given
        self.row = lru_cache(3_000_000 // d + 1)(lambda j: whole(W.flat[j * d : (j + 1) * d], E)[0] or [0] * d)
        self.at = lru_cache(3_000_000 // n + 1)(self.at)

    def at(self, x):
        """The scores at the embedding x by label, all times one positive number; refused where x is not an input."""
        inside = all(a <= v <= b and abs(v) < INF for a, v, b in zip(self.low, x, self.high)) and len(x) == self.d
        need(inside and (self.kind != "observed" or x in self.F), f"x is not one of the head's inputs ({self.kind})")
        (x, e), p, q, d, E = whole(x), 0, 1, self.d, self.E
        if self.ball:
            U, dead = math.lcm(*filter(None, self.gain)), self.gain.count(0)  # z = Z / U / 2^e
            Z = [((v << E) - (s << e)) * (U // g if g else 1) for v, g, s in zip(x, self.gain, self.shift)]
            need(not any(v for v, g in zip(Z, self.gain) if not g), "x moves a coordinate whose gain is 0")
            total, squares, limit = sum(Z), dot(Z, Z), d * (U << e) ** 2
            if self.centred and dead:  # such coordinates bring the sum to zero, at the least cost in length
                squares, limit = squares * dead + total**2, limit * dead
            elif self.centred:  # the point that is meant is x - gain p / q
                size = sum(((abs(v) << E) + (abs(s) << e)) * abs(U // g) for v, g, s in zip(x, self.gain, self.shift))
                need(abs(total) * NEAR <= size, "(x - shift) / gain does not sum to zero")
                squares, limit, p, q = squares * d - total**2, limit * d, total, d * U << e
            need(squares < limit, "(x - shift) / gain is not shorter than the root of the width")
        own = lambda j: dot(self.row(j), x) + (self.bias[j] << e)  # noqa: E731
        return lru_cache(None)(lambda j: (own(j) * q << E) - (dot(self.row(j), self.gain) * p << e) if p else own(j))

    def equal(self, i, j):
        """Whether two labels have the same score at every input; a LayerNorm takes out multiples of (1, ..., 1)."""
        gap, b = [p - q for p, q in zip(self.row(i), self.row(j))], self.bias[i] - self.bias[j] << self.E
        seen = {p * g for p, g in zip(gap, self.gain)}
        return dot(gap, self.shift) + b == 0 and (len(seen) == 1 if self.centred else seen == {0})

    def wins(self, label, x, equals):
        at, fine = self.at(x), all(self.equal(label, j) and j != label for j in equals)
        need(fine, f"a label is named as an equal of label {label}, and is not")
        rival = next((j for j in range(self.n) if j != label and at(j) >= at(label) and j not in equals), None)
        need(rival is None, f"label {label} does not win at x, where label {rival} scores at least as high")

    def never_wins(self, label, rivals, weights):
        need(not any(self.equal(label, j) for j in rivals), f"label {label} or an equal of it is among its rivals")
        rivals = rivals or [j for j in range(self.n) if self.kind == "observed" and not self.equal(label, j)]
        self.never([(label, j) for j in rivals], weights)

    def ties(self, a, b, x, y):
        at, to = self.at(x), self.at(y)
        need(a != b and (self.kind != "observed" or x == y), "it needs two labels and, of observed embeddings, one")
        need(at(a) >= at(b) and to(b) >= to(a), f"label {a} is not the higher at x, or label {b} not at y")
        above = all(at(j) < at(b) and to(j) < to(a) for j in range(self.n) if j not in (a, b))
        need(above, f"labels {a} and {b} are not both above all others at x and y")

    def never_ties(self, a, b, rivals, weights, pair_weights):
        need(a != b and not {a, b} & set(rivals), "it needs two labels, neither of them among the rivals")
        if self.kind == "observed" or rivals or weights:
            rivals = rivals or [j for j in range(self.n) if self.kind == "observed" and j not in (a, b)]
            return self.never([(a, j) for j in rivals], weights, (a, b), pair_weights)
        # One is always above the other; a lead in the centre of the open ball that ends on its surface will do.
        for mean in (Mean(self, [(a, b)], [1.0]), Mean(self, [(b, a)], [1.0])):
            if mean.least([1]) > 0 or (self.ball and mean.least([1]) == 0 and mean.c[0] > 0):
                return None
        raise Refused(f"neither of labels {a} and {b} is always the higher")

    def possible(self, above, below, top, x):
        at = self.at(x)
        need(all(at(i) > at(j) for i, j in self.compared(above, below, top)), "at x not all of its comparisons hold")

    def impossible(self, above, below, top, weights):
        need(not top or self.kind == "observed", "a proof with weights names each comparison")
        self.never(self.compared(above, below, top), weights)

    def compared(self, above, below, top):
        """Pairs of labels of which the first is to be above the second."""
        fine = len(above) == len(below) and (above or top) and not any(i == j for i, j in zip(above, below))
        need(fine, "it compares nothing, a score with itself, or lists of different lengths")
        return [*zip(above, below), *((i, j) for i in set(top) for j in range(self.n) if j not in top)]

    def never(self, pairs, weights, tied=(), shares=()):
        """At no input is the first label of every pair above the second, and the two of `tied` equal."""
        if self.kind == "observed":
            points, tie = enumerate(map(self.at, self.F)), lambda at: len(set(map(at, tied))) < 2
            found = next((k for k, at in points if all(at(i) > at(j) for i, j in pairs) and tie(at)), None)
            return need(found is None and not weights + shares, f"embedding {found} shows otherwise, or it has weights")
        need(len(pairs) == len(weights) and all(0 <= w < INF for w in weights), "its weights are not numbers >= 0")
        (w, e), ((p, q), f) = whole(weights), whole(shares if tied else (0.0, 1.0))
        need(abs(sum(w) - (1 << e)) * NEAR <= 1 << e, "its weights do not sum to 1")
        need(abs(p + q - (1 << f)) * NEAR <= max(1 << f, abs(p), abs(q)), "its pair weights do not sum to 1")
        used = [*((pair, w) for pair, w in zip(pairs, weights) if w), *([(tied, -shares[1])] if tied else [])]
        near = Mean(self, *map(list, zip(*used)), free=bool(tied)).proven()
        return need(near, f"no exact weights near its {len(weights)} weights prove it over the inputs ({self.kind})")

    def check(self, digest, kind, fields):
        """Refused where a certificate of some kind, given by its fields, proves nothing about this head."""
        need(digest == self.digest, f"it is about the head {digest[:8]}, and this is {self.digest[:8]}")
        need(self.link in ("softmax", "sigmoid", "dot"), f"nothing is proved about scores of the link {self.link!r}")
        need(kind not in ("undecided", "open"), "it proves nothing, and says so")
        named = [(j, -(f in ("above", "below"))) for f in fields if f not in FLOATS for j in fields[f]]
        need(all(low <= j < self.n for j, low in named), f"it names labels that are not among 0 to {self.n - 1}")
        fields = {name: v[0] if name in SINGLE else tuple(v) for name, v in fields.items()}
        getattr(self, kind.replace(" ", "_"))(**fields)


class Mean:
    """Weighted differences score_j - score_i = v.z + c of pairs (i, j) of labels; D and B are the sums of v and c."""

    def __init__(self, head, pairs, weights, free=False):  # the last weight may have any sign if `free`
        self.head, self.weights, (self.stored, self.e), self.rows, self.c = head, weights, whole(weights), [], []
        for i, j in pairs:
            gap = [p - q for p, q in zip(head.row(j), head.row(i))]
            self.rows.append([p * g for p, g in zip(gap, head.gain)])
            self.c.append((head.bias[j] - head.bias[i] << head.E) + dot(gap, head.shift))
        self.signed = len(weights) - free
        self.top = max(range(self.signed), key=weights.__getitem__)

    def least(self, v):
        """A number with the sign of the least D.z + B on the closed inputs for weights v; -1 where there is none."""
        head, D, B = self.head, [dot(v, column) for column in zip(*self.rows)], dot(v, self.c)
        if head.ball:  # B - sqrt(d) |D|; after a LayerNorm with D less its mean
            return -1 if B < 0 else B * B - head.d * dot(D, D) + (sum(D) ** 2 if head.centred else 0)
        ends = [a if p > 0 else b if p < 0 else 0.0 for p, a, b in zip(D, head.low, head.high)]
        return -1 if INF in map(abs, ends) else (B << head.E) + dot(D, whole(ends, head.E)[0])

    def proven(self):
        """Whether weights >= 0 near the stored ones, up to a factor, make D.z + B >= 0 on the inputs."""
        for v in filter(None, self.candidates()):
            ours, theirs = v[self.top], self.stored[self.top]
            near = all(abs(p * theirs - s * ours) * NEAR <= ours << self.e for p, s in zip(v, self.stored))
            if ours > 0 and min(v[: self.signed]) >= 0 and near and self.least(v) >= 0:
                return True
        return False

    def candidates(self):
        """The stored weights, and exact ones near them at which what nearly vanishes does vanish."""
        yield self.stored
        head, rows = self.head, self.rows
        if head.ball:  # on the very edge the stored weights fail by rounding: a little more or less of one rival may do
            for k, s in itertools.product(range(min(len(rows), 2 * head.d)), (1, -1)):
                yield [(p << 21) + (s * self.stored[self.top] if j == k else 0) for j, p in enumerate(self.stored)]
        if head.centred:  # D counts up to a constant
            k = head.gain.index(0) if 0 in head.gain else head.d - 1
            rows = [[p - row[k] for p in row] for row in rows]
        columns, sides = list(zip(*rows)), list(enumerate(zip(head.low, head.high)))
        off = lambda D: [k for k, (a, b) in sides if (D[k] < 0 and b == INF) or (D[k] > 0 and a == -INF)]  # noqa: E731
        D, size = ([dot(map(f, self.stored), map(f, column)) for column in columns] for f in (int, abs))
        wrong = off(D)
        if any(abs(D[k]) * NEAR > size[k] for k in wrong):
            return  # farther off than rounding explains
        zero = [k for k, (a, b) in sides if size[k] and a != b and (k in wrong or abs(D[k]) * 10**9 <= size[k])]
        corner = whole([0.0 if k in zero or not size[k] else side[D[k] < 0] for k, side in sides], head.E)[0]
        last = [dot(row, corner) + (c << head.E) for row, c in zip(rows, self.c)]  # D.corner + B
        yield solve([columns[k] for k in zero], self.weights, self.stored)
        yield solve([*(columns[k] for k in zero), last], self.weights, self.stored)
        # That may ask for too much: only what has the wrong sign need vanish, some more coordinates at a time.
        active, v = [], self.stored
        while v and set(wrong) - set(active):
            active += set(wrong) - set(active)
            v = solve([columns[k] for k in active], self.weights, self.stored)
            yield v
            wrong = off([dot(v, column) for column in columns]) if v else []


def solve(table, weights, stored):
    """Whole numbers near the stored ones, up to a factor, that each row of the table sends to 0 (Dixon's lifting)."""
    order, kept = sorted(range(len(stored)), key=lambda k: -abs(weights[k]))[: 4 * len(table) + 8], []
    for row in ([p // g for p in r] for r in table for g in [math.gcd(*r) or 1]):
        left, factors = [row[k] % PRIME for k in order], []
        for *_, u, k in kept:
            factors.append(left[k])
            left = [(p - factors[-1] * q) % PRIME for p, q in zip(left, u)]
        k = next((k for k, p in enumerate(left) if p), None)
        if k is not None:  # a row that depends on others modulo the prime is left out: the caller judges the outcome
            inverse = pow(left[k], -1, PRIME)
            kept.append((row, factors, inverse, [p * inverse % PRIME for p in left], k))
    basic = [order[k] for *_, k in kept]
    rest = set(range(len(stored))) - set(basic)
    upper, square = [[u[k] for *_, k in kept] for *_, u, _ in kept], [[row[k] for k in basic] for row, *_ in kept]
    right = [-sum(row[k] * stored[k] for k in rest) for row, *_ in kept]
    size = sum(dot(a, a).bit_length() // 2 + 1 for a in (right, *zip(*square)))  # in bits, by Hadamard's inequality
    found, power, denominator = [0] * len(basic), 1, 1
    while power.bit_length() <= 2 * size + 2:
        digits = []
        for b, (_, factors, inverse, _, _) in zip(right, kept):
            digits.append((b - dot(factors, digits)) * inverse % PRIME)
        for k in reversed(range(len(digits))):
            digits[k] = (digits[k] - dot(upper[k][k + 1 :], digits[k + 1 :])) % PRIME
        found = [p + power * q for p, q in zip(found, digits)]
        right = [(b - dot(row, digits)) // PRIME for b, row in zip(right, square)]
        power *= PRIME
    for p in found:
        a, b, r, s = power, 0, p * denominator % power, 1
        while min(r, power - r).bit_length() > size:  # not a whole number of that size: which r / s is it?
            a, b, r, s = r, s, a % r, b - a // r * s
        denominator *= abs(s)
    solved = {k: (p * denominator + power // 2) % power - power // 2 for k, p in zip(basic, found)}
    return [solved.get(k, stored[k] * denominator) for k in range(len(stored))] if rest else None


def certificates(proof):
    """Number, kind and fields of every certificate of a proof file."""
    seen = [0] * len(GROUPS)
    for number, at in enumerate(proof["order"].flat):
        (group, kind, names), fields = GROUPS[at], {}
        for name in names.split():
            column, k = f"{group}_{name}", seen[at]
            if name == "rivals":  # lists of rivals are shared
                column, k = "support_rivals", proof[f"{group}_support"].flat[k]
            fields[name] = proof[column].flat[slice(*proof[column].starts[k : k + 2])]
        seen[at] += 1
        yield number, kind, fields


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proof", help="the proof file that gonio ... --proof wrote")
    parser.add_argument("head", nargs="?", help="the exact head: p.head.npz beside p.npz if not given")
    parser.add_argument("--kind", choices=sorted({kind for _, kind, _ in GROUPS}), help="of this kind only")
    parser.add_argument("--label", type=int, help="those that name this label only")
    parser.add_argument("--sample", type=int, metavar="N", help=f"N at random ({SAMPLE} of heads wider than {WIDE})")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    asked = parser.parse_args(arguments)
    head, proof = Head(asked.head or asked.proof.removesuffix(".npz") + ".head.npz"), read(asked.proof, "gonio proof 2")
    about = lambda fields: {j for name, v in fields.items() if name not in FLOATS for j in v}  # noqa: E731
    chosen = [c for c in certificates(proof) if asked.kind in (None, c[1]) and asked.label in (None, *about(c[2]))]
    need(chosen, f"{asked.proof} has no certificate of that kind about that label", ValueError)
    count = asked.sample if asked.sample is not None else SAMPLE if head.d > WIDE else len(chosen)
    picked, tally = sorted(random.Random(asked.seed).sample(range(len(chosen)), min(count, len(chosen)))), {}
    print(f"head     {head.n:,} labels x {head.d}, inputs {head.kind}, digest {head.digest[:16]} made from its numbers")
    print(f"checking {len(picked):,} of {len(chosen):,} certificates in whole numbers", flush=True)
    for number, kind, fields in map(chosen.__getitem__, picked):
        start, seen = time.perf_counter(), tally.setdefault(kind, [0, 0, 0.0])
        try:
            head.check(proof["head"], kind, fields)
            seen[0] += 1
        except (Refused, ArithmeticError, LookupError, TypeError, ValueError) as e:
            seen[1] += 1
            print(f"refused: certificate {number} ({kind}): {e}.")
        seen[2] += time.perf_counter() - start
    for kind, (good, bad, spent) in tally.items():
        print(f"  {kind:11s}{good:,} hold, {bad:,} refused, {1000 * spent / (good + bad):.3g} ms each")
    return int(any(bad for _, bad, _ in tally.values()))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, zipfile.BadZipFile, ArithmeticError, LookupError, TypeError, ValueError, struct.error) as e:
        print(f"check_proof: the files cannot be used ({type(e).__name__}: {e}).", file=sys.stderr)
        sys.exit(2)
