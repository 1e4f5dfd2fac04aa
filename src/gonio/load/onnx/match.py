"""Whether what a piece of a graph gave on random features is  link(k W f + b),  with which k, b and link."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gonio.head import Link
from gonio.load.onnx.evaluator import log_softmax
from gonio.rows import Rows

TOLERANCE = 1e-6  # of |f| |w| + |b|: a few roundings of float32
EQUAL = slice(0, 7)  # runs in which all positions have the same features: none, of usual size, large, huge
SIZES = (0.0, 1.0, 1.0, 1.0, 10.0, 10.0, 500.0)
FIRST, SECOND, BOTH = 7, 8, 9  # runs in which positions differ; the features of the last are the sum of the other two


@dataclass(frozen=True, eq=False)
class Scores:
    """A tensor of the graph that is  k W f + b  (or  softcap tanh  of that over softcap) on random features."""

    name: str
    values: np.ndarray  # all runs
    axis: int  # of `values`, where the labels lie
    vectors: np.ndarray  # (runs with equal positions, labels)
    factor: float
    bias: np.ndarray
    span: slice
    softcap: float | None = None
    error: float = 0.0


def random_features(rng: np.random.Generator, shape: tuple[int, ...], axis: int, size: float) -> np.ndarray:
    """Features of all runs, in a tensor of the given shape, with entries of about the given size."""
    width = shape[axis]
    lie = [-1 if i == axis % len(shape) else 1 for i in range(len(shape))]
    equal = [np.broadcast_to(rng.standard_normal(width).reshape(lie) * s, shape) for s in SIZES]
    a, b = rng.standard_normal((2, *shape))
    return np.stack([*equal, a, b, a + b]) * size


def vectors(a: np.ndarray, most: int) -> list[tuple[np.ndarray, int]]:
    """The (runs, labels) tables that a tensor may be, where all positions agree, and the axis of the labels."""
    out = []
    for axis in range(1, a.ndim):
        if a.shape[axis] > most or (a.shape[axis] == 1 < most):
            continue
        v = np.moveaxis(a[EQUAL], axis, -1).reshape(len(SIZES), -1, a.shape[axis])
        if np.array_equal(v, np.broadcast_to(v[:, :1], v.shape), equal_nan=True) or _near(v, v[:, :1]):
            out.append((v[:, 0], axis))
    return sorted(out, key=lambda t: -t[0].shape[1])


def _near(a: np.ndarray, b: np.ndarray, size: np.ndarray | float = 0.0) -> bool:
    with np.errstate(all="ignore"):
        return bool((np.abs(a - b) <= TOLERANCE * (1 + np.abs(b) + size)).all())


def scores_of(name: str, a: np.ndarray, S: np.ndarray, size: np.ndarray, last: Scores | None) -> Scores | None:
    """The tensor as scores; S is W f for the runs with equal positions, `size` the largest |w| |f| of each."""
    if a.dtype.kind != "f" or a.size == 0 or not np.isfinite(a[0]).all():
        return None
    for v, axis in vectors(a, S.shape[1]):
        if np.abs(v - v[0]).max() < 1e-8:  # W f is of size 1: these are roundings of nothing
            continue
        found = _affine(v, S, size)
        if found is not None:
            k, span, error = found
            spread = np.abs(a[FIRST] + a[SECOND] - a[0] - a[BOTH]).max()  # maxima of positions, say, do not add up
            if spread <= 1e-5 * (1 + np.abs(a[BOTH]).max()):
                return Scores(name, a, axis, v, k, v[0], span, error=error)
        if last is not None and last.vectors.shape == v.shape:
            base = last.vectors if last.softcap else np.tanh(last.vectors)
            cap = float((v * base).sum() / (base * base).sum()) if base.any() else 0.0
            if cap > 0 and _near(v, cap * base, cap):
                k, own = _tidy(last.factor * cap), _tidy(cap * (last.softcap or 1.0))
                return replace(
                    last, name=name, values=a, axis=axis, vectors=v, factor=k, bias=last.bias * cap, softcap=own
                )
    return None


def _affine(v: np.ndarray, S: np.ndarray, size: np.ndarray) -> tuple[float, slice, float] | None:
    """k and the span of rows for which  v - v[0] = k S[:, span],  and how far off it is at most."""
    y, m, n = v - v[0], v.shape[1], S.shape[1]
    offsets = [0]
    if m < n:  # which rows: by the column that is largest, which is some row's own
        j = int(np.abs(y).max(axis=0).argmax())
        squares = (S * S).sum(axis=0)
        with np.errstate(all="ignore"):
            ratio = (y[:, j] @ S) / squares
            off = np.abs(y[:, [j]] - ratio * S).max(axis=0) / np.abs(y[:, j]).max()
        offsets = [int(i) - j for i in np.flatnonzero(off < 1e-5)[:64] if 0 <= i - j <= n - m]
    for first in offsets:
        part = S[:, first : first + m]
        total = (part * part).sum()
        k = float((y * part).sum() / total) if total > 0 else 0.0
        with np.errstate(all="ignore"):
            off = np.abs(y - k * part) / (abs(k) * size[:, None] + np.abs(v[0]) + 1e-30)
        if k and off[1:].max() <= TOLERANCE:
            return _tidy(k), slice(first, first + m) if m < n else slice(None), float(off[1:].max())
    return None


def _tidy(k: float) -> float:
    """The factor in float32, in which graphs keep their constants; 1 where rounding alone parts it from 1."""
    return 1.0 if abs(k - 1) < 1e-6 else float(np.float32(k))


@dataclass(frozen=True)
class Seen:
    """What an output is of the scores."""

    link: Link | None
    note: str
    after: str = ""


def link_of(name: str, a: np.ndarray, s: Scores) -> Seen | None:
    """How the tensor `a` comes from the scores; None where it is none of the known ways."""
    z = s.vectors
    with np.errstate(all="ignore"):
        log, sigmoid = log_softmax(z), 1 / (1 + np.exp(-z))
        ways: list[tuple[Link | None, str, np.ndarray, str]] = [
            (None, "the scores themselves", z, ""),
            ("softmax", "the softmax of the scores over the labels", np.exp(log), ""),
            ("softmax", "the log-softmax of the scores over the labels", log, ""),
            ("sigmoid", "the sigmoid of each score", sigmoid, ""),
            ("sigmoid", "the sigmoid of each score, divided by their sum", sigmoid / sigmoid.sum(axis=1, keepdims=True),
             "the model then divides each probability by their sum"),
        ]  # fmt: skip
    if z.shape[1] == 1:  # one score: a softmax of it is 1 whatever it is
        ways = [w for w in ways if w[0] != "softmax"]
    tables = vectors(a, z.shape[1])
    flat = a[EQUAL].reshape(len(SIZES), -1)
    for link, what, expected, after in ways:
        told = f"on random features output {name!r} is {what}"
        for v, _ in tables:
            if v.shape == z.shape and _same(v, expected):
                return Seen(link, told, after)
        if flat.shape[1] and _same(flat, np.broadcast_to(expected.max(axis=1, keepdims=True), flat.shape)):
            return Seen(link, f"{told}, the largest of them")
    return _over_positions(name, a, s)


def _same(v: np.ndarray, expected: np.ndarray) -> bool:
    """Equal in all runs that overflow in neither."""
    fine = np.isfinite(v).all(axis=1) & np.isfinite(expected).all(axis=1)
    return fine[:4].all() and _near(v[fine], expected[fine])


def _over_positions(name: str, a: np.ndarray, s: Scores) -> Seen | None:
    """A softmax over another axis than that of the labels, or over several."""
    for axis in range(1, a.ndim):
        for z in {s.values.shape: s.values}.values():
            if z.shape != a.shape:
                continue
            one = np.moveaxis(np.exp(log_softmax(np.moveaxis(z, axis, -1))), -1, axis)
            several = np.exp(log_softmax(z.reshape((*z.shape[:axis], -1)))).reshape(z.shape)
            if any(_near(a[r], e[r]) for e in (one, several) for r in (FIRST,)):
                said = f"a softmax runs over axis {axis - 1} and not over the labels, so softmax over them is assumed"
                return Seen(None, said, "a Softmax over another axis follows")
    return None


def products(rows: Rows, F: np.ndarray) -> np.ndarray:
    """F W^T in float64, a block of rows at a time."""
    return np.concatenate([F @ block.astype(np.float64).T for _, block in rows.blocks()], axis=1)
