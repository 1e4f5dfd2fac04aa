"""Forged certificates of every kind, over inputs of every kind and numbers of every size, judged by exact rationals.

A certificate that `verify` accepts is false if its own embedding refutes it, if an embedding that was tried refutes it,
or if it claims a larger margin, or a lower bound, than is true there. Small whole numbers make edges likely; powers of
two from 2^-1070 to 2^1020 make floats underflow, overflow and lose digits beside each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

import ml_dtypes
import numpy as np

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Nonnegative, Observed
from gonio.core.errors import GonioError
from gonio.proofs import CertificateError, Impossible, NeverTies, NeverWins, Possible, Ties, Undecided, Wins
from gonio.proofs.score_gaps import ZERO
from tests.proofs.rationals import exact, meant, score

TYPES = (np.float64, np.float64, np.float32, np.float16, ml_dtypes.bfloat16)
SIZES = {np.float64: (-1060, 1000), np.float32: (-140, 120), np.float16: (-20, 12), ml_dtypes.bfloat16: (-125, 120)}


@dataclass
class Tally:
    """What became of the forgeries: how many were tried and accepted by kind, and the false ones among them."""

    tried: Counter = field(default_factory=Counter)
    accepted: Counter = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)


def numbers(rng, shape, kind=np.float64):
    """Small whole numbers and their neighbours, at one scale or at many, as the type holds them."""
    low, high = SIZES[kind]
    wild = rng.random()
    power = rng.integers(low, high) if wild < 0.5 else rng.integers(-3, 4)
    powers = power + (rng.integers(-60, 61, shape) if rng.random() < 0.3 else 0)
    out = rng.integers(-3, 4, shape) * (1 + rng.integers(-1, 2, shape) * (2.0**-52 if rng.random() < 0.3 else 0.0))
    with np.errstate(all="ignore"):
        out = np.ldexp(out, np.clip(powers, low, high)).astype(kind)
    return np.where(np.isfinite(out.astype(np.float64)), out, np.ones_like(out))


def inputs_of(rng, d):
    """Inputs of some kind."""
    which = rng.integers(0, 7)
    if which < 2:
        return AllInputs() if which else Nonnegative()
    if which == 2:
        sides = np.sort(numbers(rng, (2, d)), axis=0)
        sides[1] = np.where(rng.random(d) < 0.2, np.inf, sides[1])
        return Box(*sides)
    gain = numbers(rng, d)
    if not gain.any():
        gain[0] = 1.0
    if which == 3:
        return AfterRMSNorm(gain)
    if which in (4, 5):
        return AfterLayerNorm(gain, numbers(rng, d) if which == 5 else 0.0)
    return Observed(numbers(rng, (int(rng.integers(1, 5)), d)))


def head_of(rng):
    """A head of up to five labels, some of whose rows are equal, near-equal or sums of others."""
    n, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    kind = TYPES[rng.integers(0, len(TYPES))]
    W = numbers(rng, (n, d), kind)
    if n > 2 and rng.random() < 0.5:
        with np.errstate(all="ignore"):
            middle = (W[1].astype(float) / 2 + W[2].astype(float) / 2).astype(kind)
        if np.isfinite(middle.astype(float)).all():
            W[0] = middle
    bias = numbers(rng, n) if rng.random() < 0.5 else None
    if bias is not None and rng.random() < 0.3:
        bias = np.full(n, bias[0])
    return Head(W, bias, link="softmax", inputs=inputs_of(rng, d))


def embedding(rng, head):
    """An embedding in or near the inputs."""
    d, inputs = head.shape[1], head.inputs
    if inputs.points is not None and rng.random() < 0.9:
        return inputs.points[rng.integers(0, len(inputs.points))].astype(float)
    if inputs.shape == "ball" and rng.random() < 0.9:
        z = rng.integers(-3, 4, d) * (0.5 if rng.random() < 0.5 else 0.3)
        if inputs.centred:
            z = z - z.mean()
        gain, shift = inputs.gain_and_shift(d)
        with np.errstate(all="ignore"):
            x = gain * z + shift
        return np.where(np.isfinite(x), x, 0.0)
    if inputs.shape == "box" and rng.random() < 0.8:
        low, high = inputs.bounds(d)
        with np.errstate(all="ignore"):
            x = np.where(rng.random(d) < 0.5, low, np.where(np.isfinite(high), high, low + rng.integers(0, 9, d)))
        return np.where(np.isfinite(x), x, 0.0)
    x = numbers(rng, d)
    return np.abs(x) if inputs.shape == "orthant" else x


def weights(rng, m):
    w = rng.integers(0, 4, m).astype(float)
    w = np.ones(m) if not w.any() else w
    w = w / w.sum()
    return w * (1 + rng.integers(-1, 2, m) * rng.choice([0.0, 2.0**-52, 1e-8, 4e-7]))


def forged(rng, head):
    """A certificate that may or may not be true."""
    n, digest = head.shape[0], head.digest
    labels = rng.permutation(n)
    i = int(labels[0])
    rest = labels[1 : int(rng.integers(1, n + 1))]
    which = rng.integers(0, 7)
    w = np.zeros(0) if head.inputs.points is not None else weights(rng, len(rest)) if len(rest) else np.zeros(0)
    if which == 0:
        return Wins(digest, i, embedding(rng, head), head.equals(i))
    if which == 1:
        return NeverWins(digest, i, rest, w)
    if which == 2 and n > 1:
        x = embedding(rng, head)
        return Ties(digest, i, int(labels[1]), x, x if rng.random() < 0.5 else embedding(rng, head))
    if which == 3 and n > 1:
        p = float(rng.integers(-2, 4)) / 2
        rivals = labels[2 : int(rng.integers(2, n + 1))]
        w = w[: len(rivals)] / (w[: len(rivals)].sum() or 1) if len(w) else w
        both = np.zeros(0) if head.inputs.points is not None or not len(rivals) else np.array([1 - p, p])
        return NeverTies(digest, i, int(labels[1]), rivals, w, both)
    if which == 4:
        with np.errstate(all="ignore"):
            return Undecided(digest, i, float(numbers(rng, 1)[0]) * (rng.random() < 0.7), "forged", rest, w)
    m = int(rng.integers(0, 4))
    sides = rng.integers(-1, n, (2, m))
    sides = sides[:, sides[0] != sides[1]]
    top = labels[: int(rng.integers(0, n + 1))] if rng.random() < 0.5 else labels[:0]
    if which == 5:
        return Possible(digest, *sides, top, embedding(rng, head))
    m = sides.shape[1]
    w = np.zeros(0) if head.inputs.points is not None or not m else weights(rng, m)
    return Impossible(digest, *sides, top if head.inputs.points is not None else labels[:0], w)


def inside(inputs, x):
    """Whether an exact embedding is one of the inputs; after a norm with a gain of 0, None: not judged."""
    d = len(x)
    if inputs.points is not None:
        return any(x == exact(p.astype(float)) for p in inputs.points)
    if inputs.shape == "ball":
        gain, shift = (exact(v) for v in inputs.gain_and_shift(d))
        if not all(gain):
            return None
        z = [(a - s) / g for a, s, g in zip(x, shift, gain, strict=True)]
        return sum(v * v for v in z) < d and (not inputs.centred or sum(z) == 0)
    low, high = inputs.bounds(d)
    return all(
        (np.isinf(a) or exact(a) <= v) and (np.isinf(b) or v <= exact(b)) for a, v, b in zip(low, x, high, strict=True)
    )


def at_least(value, claimed):
    """Whether a proven float is a lower bound of the exact value (None: there is nothing to be above)."""
    return claimed == np.inf if value is None else np.isfinite(claimed) and exact(claimed) <= value


def gap_at(head, c, x):
    """What the certificate is about, at an exact embedding: a margin or the least difference; None: nothing to compare."""
    s = [score(head, i, x) for i in range(head.shape[0])]
    if c.kind in ("wins", "never wins", "undecided"):
        equals = [] if c.kind == "undecided" else head.equals(c.label)
        rivals = [s[j] for j in range(len(s)) if j != c.label and j not in equals]
        return s[c.label] - max(rivals) if rivals else None
    if c.kind in ("ties", "never ties"):
        rivals = [s[j] for j in range(len(s)) if j not in (c.a, c.b)]
        return min(s[c.a], s[c.b]) - max(rivals) if rivals else None
    value = lambda i: Fraction(0) if i == ZERO else s[i]  # noqa: E731
    gaps = [value(i) - value(j) for i, j in zip(c.above.tolist(), c.below.tolist(), strict=True)]
    top = set(c.top.tolist())
    gaps += [s[i] - s[j] for i in top for j in range(len(s)) if j not in top]
    return min(gaps) if gaps else None


def true_of(head, c, claimed, tried):
    """Whether what was accepted is true at its own embeddings and at all that are tried."""
    if c.kind in ("wins", "possible"):
        x = meant(head.inputs, c.x.astype(float))
        return inside(head.inputs, x) is not False and claimed > 0 and at_least(gap_at(head, c, x), claimed)
    if c.kind == "ties":
        x, y = (meant(head.inputs, v.astype(float)) for v in (c.x, c.y))
        order = score(head, c.a, x) >= score(head, c.b, x) and score(head, c.b, y) >= score(head, c.a, y)
        there = all(inside(head.inputs, v) is not False for v in (x, y)) and (head.inputs.points is None or x == y)
        return order and there and claimed > 0 and all(at_least(gap_at(head, c, v), claimed) for v in (x, y))
    for x in tried:
        if c.kind == "never ties" and score(head, c.a, x) != score(head, c.b, x):
            continue
        gap = gap_at(head, c, x)
        room = claimed
        if c.kind == "undecided" and not head.inputs.bounded:
            longest = max(1, sum(v * v for v in x))  # |x|^2 >= |x| there: a bound that is weaker than the claimed one
            room = None if np.isinf(claimed) else exact(claimed) * longest
        elif c.kind != "undecided" and not claimed <= 0:
            return False
        room = exact(room) if isinstance(room, float) and np.isfinite(room) else room
        if gap is None or (isinstance(room, Fraction) and gap > room):
            return False
    return True


def trials(rng, head):
    """Exact embeddings of the inputs: all observed ones, or a few drawn."""
    if head.inputs.points is not None:
        return [exact(p.astype(float)) for p in head.inputs.points]
    drawn = [meant(head.inputs, embedding(rng, head)) for _ in range(6)]
    return [x for x in drawn if inside(head.inputs, x)]


def forge(seed, at_least, each=25, check=None):
    """Forge so many certificates, `each` about one head; `check(head, certificates)` may ask a second verifier."""
    rng, tally = np.random.default_rng(seed), Tally()
    while sum(tally.tried.values()) < at_least:
        try:
            head = head_of(rng)
        except GonioError:  # no input is possible, or a number that the type does not hold
            continue
        tried, certificates = trials(rng, head), []
        for _ in range(each):
            c = forged(rng, head)
            tally.tried[c.kind] += 1
            certificates.append(c)
            try:
                claimed = c.verify(head)
            except CertificateError:
                continue
            tally.accepted[c.kind] += 1
            if not true_of(head, c, claimed, tried):
                tally.false.append(
                    f"{head!r} {head.W.tolist()} {head.bias} {head.inputs.to_dict()} {c.to_dict()} {claimed}"
                )
        if check is not None:
            check(head, certificates)
    return tally
