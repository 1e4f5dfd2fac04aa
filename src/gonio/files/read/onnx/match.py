"""Whether what a piece of a graph gave on random features is  link(k W f + b),  with which k, b and link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gonio.core.head import Link
from gonio.core.row_table import RowTable
from gonio.files.read.onnx.evaluator import log_softmax

TOLERANCE = 1e-6  # of |f| |w| + |b|: a few roundings of float32
SIZES = (0.0, 1.0, 1.0, 10.0, 500.0)  # of the features in the first runs, where all positions have the same
EQUAL = slice(0, len(SIZES))
FIRST, SECOND, BOTH = -3, -2, -1  # runs in which positions differ; the last one's features are the sum of the others'


@dataclass(frozen=True, eq=False)
class Scores:
    """A tensor of the graph that is  k W f + b  (or  softcap tanh  of that over softcap) on random features."""

    name: str
    values: np.ndarray  # of all runs
    axis: int  # of `values`, where the labels lie
    vectors: np.ndarray  # (runs with equal positions, labels)
    factor: float
    bias: np.ndarray
    span: slice
    error: float
    softcap: float | None = None


@dataclass(frozen=True)
class TailOutputs:
    """What an output is of the scores, and what else happens to them."""

    link: Link | None
    said: str
    note: str = ""


def random_features(
    rng: np.random.Generator, shape: tuple[int, ...], axis: int, size: float, picked: np.ndarray
) -> np.ndarray:
    """Features of all runs, in tensors of the given shape: of about the given size where picked, zero elsewhere."""
    lie = [-1 if i == axis % len(shape) else 1 for i in range(len(shape))]
    equal = [np.broadcast_to(rng.standard_normal(shape[axis]).reshape(lie) * s, shape) for s in SIZES]
    a, b = rng.standard_normal((2, *shape))
    some = np.isin(np.arange(shape[axis]), picked).reshape(lie)
    return np.stack([*equal, a, b, a + b]) * (size * some)


def products(rows: RowTable, F: np.ndarray) -> np.ndarray:
    """F W^T in float64, a block of rows at a time."""
    return np.concatenate([F @ block.astype(np.float64).T for _, block in rows.blocks()], axis=1)


def _near(a: np.ndarray, b: np.ndarray) -> bool:
    return bool((np.abs(a - b) <= TOLERANCE * (1 + np.abs(b))).all())


def vectors(a: np.ndarray, most: int) -> list[tuple[np.ndarray, int]]:
    """The (runs, labels) tables that a tensor may be, since all positions agree, and the axis of the labels."""
    out = []
    for axis in range(1, a.ndim):
        if 0 < a.shape[axis] <= most and (a.shape[axis] > 1 or most == 1):
            v = np.moveaxis(a[EQUAL], axis, -1).reshape(len(SIZES), -1, a.shape[axis])
            if v.size and (np.array_equal(v[:, 1:], v[:, :-1], equal_nan=True) or _near(v, v[:, :1])):
                out.append((v[:, 0], axis))
    return sorted(out, key=lambda t: -t[0].shape[1])


def scores_of(name: str, a: np.ndarray, S: np.ndarray, size: np.ndarray, last: Scores | None) -> Scores | None:
    """The tensor as scores, if it is; S is W f in the runs with equal positions, `size` the largest |w| |f| of each."""
    if a.dtype.kind != "f" or not np.isfinite(a).all():
        return None
    for v, axis in vectors(a, S.shape[1]):
        if np.abs(v - v[0]).max() < 1e-8:  # W f is of size 1: these are roundings of nothing
            continue
        apart = np.abs(a[FIRST] + a[SECOND] - a[0] - a[BOTH]).max()  # maxima over positions, say, do not add up
        found = _affine(v, S, size) if apart <= 1e-5 * (1 + np.abs(a[BOTH]).max()) else None
        if found is not None:
            k, span, error = found
            return Scores(name, a, axis, v, k, v[0], span, error)
        if last is not None and last.vectors.shape == v.shape:
            base = last.vectors if last.softcap else np.tanh(last.vectors)
            cap = float((v * base).sum() / (base * base).sum())
            if cap > 0 and _near(v / cap, base):
                own, k, b = _tidy(cap * (last.softcap or 1.0)), _tidy(last.factor * cap), last.bias * cap
                return replace(last, name=name, values=a, axis=axis, vectors=v, factor=k, bias=b, softcap=own)
    return None


def _affine(v: np.ndarray, S: np.ndarray, size: np.ndarray) -> tuple[float, slice, float] | None:
    """k and the span of rows for which  v - v[0] = k S[:, span],  and how far off it is at most."""
    y, m, n = v - v[0], v.shape[1], S.shape[1]
    firsts = [0]
    if m < n:  # which rows: by the largest column, which must be k times that of some row
        j = int(np.abs(y).max(axis=0).argmax())
        with np.errstate(all="ignore"):
            off = np.abs(y[:, [j]] - (y[:, j] @ S) / (S * S).sum(axis=0) * S).max(axis=0) / np.abs(y[:, j]).max()
        firsts = [int(i) - j for i in np.flatnonzero(off < 1e-5)[:64] if 0 <= i - j <= n - m]
    for first in firsts:
        part = S[:, first : first + m]
        total = float((part * part).sum())
        k = float((y * part).sum()) / total if total > 0 else 0.0
        if k:
            off = np.abs(y - k * part)[1:] / (abs(k) * size[1:, None] + np.abs(v[0]))
            if off.max() <= TOLERANCE:
                return _tidy(k), slice(first, first + m) if m < n else slice(None), float(off.max())
    return None


def _tidy(k: float) -> float:
    """The factor in float32, in which graphs keep their constants; 1 where rounding alone parts it from 1."""
    return 1.0 if abs(k - 1) < 1e-6 else float(np.float32(k))


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


WAYS: tuple[tuple[Link | None, str, Callable[[np.ndarray], np.ndarray]], ...] = (
    (None, "the scores themselves", lambda z: z),
    ("softmax", "the softmax of the scores over the labels", lambda z: np.exp(log_softmax(z))),
    ("softmax", "the log-softmax of the scores over the labels", log_softmax),
    ("sigmoid", "the sigmoid of each score", _sigmoid),
    ("sigmoid", "the sigmoid of each score over their sum", lambda z: _sigmoid(z) / _sigmoid(z).sum(-1, keepdims=True)),
)


@np.errstate(all="ignore")
def link_of(name: str, a: np.ndarray, s: Scores) -> TailOutputs | None:
    """How the output `a` comes from the scores; None where it is none of the known ways."""
    n = s.vectors.shape[1]
    apart = np.moveaxis(s.values[FIRST], s.axis - 1, -1).reshape(-1, n)
    for link, what, way in WAYS:
        if n == 1 and link == "softmax":  # of one score it is 1, whatever the score
            continue
        expected, rows = way(s.vectors), way(apart)
        said, note = f"on random features output {name!r} is {what}", ""
        if "sum" in what:
            note = "the model then divides each probability by their sum"
        if any(_comes_from(a, v, axis, expected, rows) for v, axis in vectors(a, n)):
            return TailOutputs(link, said, note)
        largest = (x.max(axis=1, keepdims=True) for x in (expected, rows))
        if n > 1 and any(_comes_from(a[..., None], v, axis, *largest) for v, axis in vectors(a[..., None], 1)[-1:]):
            return TailOutputs(link, f"{said}, the largest of them")
    for axis in range(1, a.ndim) if a.shape == s.values.shape else ():
        one = np.moveaxis(log_softmax(np.moveaxis(s.values[FIRST], axis - 1, -1)), -1, axis - 1)
        if any(_near(a[FIRST], np.exp(x)) for x in (one, log_softmax(s.values[FIRST], axis - 1))):
            said = f"a softmax runs over axis {axis - 1} and not over the labels, so softmax over them is assumed"
            return TailOutputs(None, said, "a softmax over another axis follows")
    return None


def _comes_from(a: np.ndarray, v: np.ndarray, axis: int, expected: np.ndarray, rows: np.ndarray) -> bool:
    """Equal in all runs that overflow in neither; and where positions differ, each is as one position of the scores."""
    if v.shape != expected.shape:
        return False
    fine = np.asarray(np.isfinite(v).all(axis=1) & np.isfinite(expected).all(axis=1))
    given = np.moveaxis(a[FIRST], axis - 1, -1).reshape(-1, v.shape[1])
    same = bool(np.all(fine[:3])) and _near(v[fine], expected[fine])
    return same and (
        (given.shape == rows.shape and _near(given, rows)) or all(any(_near(g, r) for r in rows) for g in given[:20])
    )
