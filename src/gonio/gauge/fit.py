"""The least-squares map that takes one head's rows to another's, on labels they share, without holding either twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from gonio.gauge.transforms import Chain, InputShift, Linear, Transform, Translation
from gonio.head import Head
from gonio.parallel import in_threads, spans

ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Fit:
    """The map, what it leaves over, and what rounding alone would leave.

    residual, rounding   root mean squares, relative to the size of b's rows
    worst_row            the largest error of a label over what rounding explains of it, its bias counted
    clear                whether both ranks are beyond doubt
    errors               the error of each label, its rows' and its bias's, each over their mean
    """

    transform: Transform | None
    residual: float
    rounding: float
    worst_row: float
    rank_a: int
    rank_b: int
    clear: bool
    errors: np.ndarray

    def worst(self, most: int = 10) -> np.ndarray:
        """The labels that fit least, as positions among the shared ones."""
        return np.argsort(-self.errors)[:most]


def rounding_of(head: Head) -> float:
    """The relative rounding of the type a head's rows are given in."""
    rows = head.rows
    kind = rows.stored.dtype.name if rows.unpack is None else rows[:1].dtype.name
    return ROUNDING.get(kind, 2.0**-4)  # the 8-bit floats


@dataclass(frozen=True, eq=False)
class Rows:
    """Chosen rows of a head, minus a mean, over a scale."""

    head: Head
    which: np.ndarray
    mean: np.ndarray
    scale: float

    def block(self, span: tuple[int, int]) -> np.ndarray:
        """Some of them, in float64."""
        which = self.which[span[0] : span[1]]
        first = int(which[0])
        # A slice of a memory map is read in place, a list of rows is gathered.
        in_a_row = np.array_equal(which, np.arange(first, first + len(which)))
        block = self.head.rows[first : first + len(which)] if in_a_row else self.head.rows[which]
        return (block.astype(np.float64) - self.mean) / self.scale


def shared_rows(head: Head, which: np.ndarray, centre: bool) -> Rows:
    """The rows of a head on the shared labels, centred if wanted, of length about one at most."""
    raw = Rows(head, which, np.zeros(head.shape[1]), 1.0)
    scale = float(head.norms[which].max()) or 1.0
    if not centre:
        return Rows(head, which, raw.mean, scale)
    sums = in_threads(lambda s: raw.block(s).sum(axis=0), spans(len(which), BLOCK))
    return Rows(head, which, np.sum(sums, axis=0) / len(which), scale)


def fit(a: Head, b: Head, ia: np.ndarray, ib: np.ndarray, shifts: bool) -> Fit:
    """min over M, v, u of  |W_b - W_a M' - 1 v'|^2 + |b_b - b_a - W_a u - t|^2  on the rows ia of a and ib of b.

    Centred rows remove v and t (`shifts`, for softmax). Heads of full rank and fair condition are solved by normal
    equations with one correction; for others the triangular factor of [X Y g], folded together from blocks, holds the
    whole problem without squaring its condition.
    """
    n = len(ia)
    X, Y = shared_rows(a, ia, shifts), shared_rows(b, ib, shifts)
    ba, bb = (np.zeros(n) if h.bias is None else h.bias[w].astype(np.float64) for h, w in ((a, ia), (b, ib)))
    gap = bb - ba
    gap = gap - gap.mean() if shifts else gap
    da, db = X.head.shape[1], Y.head.shape[1]
    top = max(float(np.abs(ba).max()), float(np.abs(bb).max())) or 1.0

    with threadpool_limits(1, "blas"):  # a thread a block, and no barriers inside
        quick = _normal(X, Y, gap, n, max(rounding_of(a), rounding_of(b)))
    if quick is not None:
        Mt, u, size = quick
        rank_a, rank_b, clear_a, clear_b = da, db, True, True
    else:

        def columns(span: tuple[int, int]) -> np.ndarray:
            return np.column_stack([X.block(span), Y.block(span), gap[span[0] : span[1]] / top])

        with threadpool_limits(1, "blas"):
            R = _folded(columns, n, da + db + 1)
        left, values, right, rank_a, clear_a = _range(R[:, :da], rounding_of(a), n)
        rank_b, clear_b = _range(R[:, da : da + db], rounding_of(b), n)[3:]
        inverse = right / values @ left.T
        Mt, u = inverse @ R[:, da : da + db], inverse @ R[:, -1] * top
        size = float(np.linalg.norm(R[:, da : da + db])) / np.sqrt(n) or 1.0
    norms_a, norms_b = a.norms[ia] / X.scale, b.norms[ib] / Y.scale
    stretch = float(np.linalg.norm(Mt, 2)) if Mt.size else 1.0
    # What rounding explains of a row: u of its size in a, mapped, and in b; of a bias: u of both.
    expected = rounding_of(a) * norms_a * stretch + rounding_of(b) * norms_b
    expected = np.maximum(expected, 2.0**-50 * (norms_b + stretch * norms_a))  # this computation rounds too
    reach = float(np.linalg.norm(u))
    expected_bias = _eps(a.bias) * np.abs(ba) + _eps(b.bias) * np.abs(bb)
    expected_bias = expected_bias + (rounding_of(a) + 2.0**-50) * norms_a * reach + 2.0**-50 * top

    def look(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        x, y = X.block(span), Y.block(span)
        return np.linalg.norm(y - x @ Mt, axis=1), np.abs(gap[span[0] : span[1]] - x @ u)

    with threadpool_limits(1, "blas"):
        parts = in_threads(look, spans(n, BLOCK))
    rows, biases = (np.concatenate(p) for p in zip(*parts, strict=True))
    over, over_bias = rows / np.maximum(expected, 1e-300), biases / np.maximum(expected_bias, 1e-300) * gap.any()
    errors = sum(x / (_rms(x) or 1.0) * (y.max() > 1) for x, y in ((rows, over), (biases, over_bias)))
    return Fit(
        _transform(X, Y, Mt, u, gap, shifts),
        _rms(rows) / size,
        _rms(expected) / size,
        float(max(over.max(), over_bias.max())),
        rank_a,
        rank_b,
        clear_a and clear_b,
        np.asarray(errors),
    )


def _normal(X: Rows, Y: Rows, gap: np.ndarray, n: int, noise: float) -> tuple[np.ndarray, np.ndarray, float] | None:
    """M', u and the size of Y's rows by normal equations; None unless both tables are clearly of full rank.

    The condition is squared: below 1e8 there, one correction on the residual brings the solution to rounding.
    """

    def moments(span: tuple[int, int]) -> tuple[np.ndarray, ...]:
        x, y = X.block(span), Y.block(span)
        return x.T @ x, x.T @ y, y.T @ y, x.T @ gap[span[0] : span[1]]

    xx, xy, yy, xg = (np.sum(p, axis=0) for p in zip(*in_threads(moments, spans(n, BLOCK)), strict=True))
    for gram in (xx, yy):
        values = np.linalg.eigvalsh(gram)
        if not values[0] > max(1e-8 * float(values[-1]), 256 * noise * noise * n):
            return None
    inverse = np.linalg.inv(xx)
    Mt, u = inverse @ xy, inverse @ xg

    def left_over(span: tuple[int, int]) -> tuple[np.ndarray, ...]:
        x, y = X.block(span), Y.block(span)
        return x.T @ (y - x @ Mt), x.T @ (gap[span[0] : span[1]] - x @ u)

    more, extra = (np.sum(p, axis=0) for p in zip(*in_threads(left_over, spans(n, BLOCK)), strict=True))
    return Mt + inverse @ more, u + inverse @ extra, float(np.sqrt(np.trace(yy) / n)) or 1.0


def _folded(columns: Callable[[tuple[int, int]], np.ndarray], n: int, width: int) -> np.ndarray:
    """The triangular factor of all rows, folded together from blocks: none but a block is ever held."""

    def fold(span: tuple[int, int]) -> Any:
        r = np.zeros((0, width))
        for a, b in spans(span[1] - span[0], 2 * width):
            r = np.linalg.qr(np.vstack([r, columns((span[0] + a, span[0] + b))]), mode="r")
        return r

    parts = in_threads(fold, spans(n, max(4 * width, -(-n // 2))))
    return np.asarray(np.linalg.qr(np.vstack(parts), mode="r"))


def _eps(bias: np.ndarray | None) -> float:
    return 0.0 if bias is None else ROUNDING.get(bias.dtype.name, 2.0**-24)


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt((x.astype(np.float64) ** 2).mean()))


def _range(R: np.ndarray, noise: float, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, bool]:
    """Singular vectors and values of the part that rounding of the rows cannot have made, its rank, and whether no
    value lies so near the edge that the rank is in doubt. Rows have length one at most, and there are n of them."""
    U, s, Vt = np.linalg.svd(R, full_matrices=False)
    floor = max(float(s[0]) * 2.0**-46, 2 * noise * np.sqrt(n)) if len(s) else 0.0
    keep = s > floor
    clear = not ((s > floor / 8) & (s < 8 * floor)).any()
    return U[:, keep], s[keep], Vt[keep].T, int(keep.sum()), clear


def _transform(X: Rows, Y: Rows, Mt: np.ndarray, u: np.ndarray, gap: np.ndarray, shifts: bool) -> Chain | None:
    """The fit as a change of a head: input shift (in a's coordinates), linear map, translation."""
    da, db = Mt.shape
    if da != db:
        return None  # rows of another width are no transform of these, though they may predict the same
    steps: list[Transform] = []
    if gap.any():
        steps.append(InputShift(-u / X.scale))
    M = _completed(Mt.T * (Y.scale / X.scale))
    steps.append(Linear(M))
    if shifts:
        steps.append(Translation(Y.mean - M @ X.mean))
    return Chain(tuple(steps))


def _completed(M: np.ndarray) -> np.ndarray:
    """M made invertible: least squares maps directions that no row uses to zero, where any map will do."""
    U, s, Vt = np.linalg.svd(M)
    used = s > s[0] * 1e-10 if s[0] > 0 else np.zeros(len(s), bool)
    fill = float(np.median(s[used])) if used.any() else 1.0
    return (U * np.where(used, s, fill)) @ Vt
