"""The least-squares map that takes one head's rows to another's, on labels they share, without holding either twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gonio.gauge.transforms import Chain, InputShift, Linear, Transform, Translation
from gonio.head import Head
from gonio.parallel import in_threads, spans

ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Fit:
    """The map, what it leaves over, what rounding alone would leave, the two ranks, and the error of each label."""

    transform: Transform
    residual: float
    rounding: float
    rank_a: int
    rank_b: int
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
        first, last = int(which[0]), int(which[-1])
        # A slice of a memory map is read in place, a list of rows is gathered.
        block = self.head.rows[first : last + 1] if last - first + 1 == len(which) else self.head.rows[which]
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

    Centred rows remove v and t (`shifts`, for softmax). The normal equations are solved on the range of the rows, and
    solved twice more on the residual, which mends what squaring loses.
    """
    n = len(ia)
    X, Y = shared_rows(a, ia, shifts), shared_rows(b, ib, shifts)
    ba, bb = (np.zeros(n) if h.bias is None else h.bias[w].astype(np.float64) for h, w in ((a, ia), (b, ib)))
    gap = bb - ba
    gap = gap - gap.mean() if shifts else gap

    def over(work):  # type: ignore[no-untyped-def]
        parts = in_threads(lambda s: work(X.block(s), Y.block(s), gap[s[0] : s[1]]), spans(n, BLOCK))
        return [np.sum(p, axis=0) for p in zip(*parts, strict=True)]

    xx, xy, yy, xg = over(lambda x, y, g: (x.T @ x, x.T @ y, y.T @ y, x.T @ g))
    noise = max(rounding_of(a), rounding_of(b))
    basis, values, rank_a = _range(xx, noise, n)
    rank_b = _range(yy, noise, n)[2]

    def solve(right: np.ndarray) -> np.ndarray:
        return basis @ ((basis.T @ right) / (values[:, None] if right.ndim == 2 else values))

    def left_over(Mt: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
        return over(lambda x, y, g: (x.T @ (y - x @ Mt), x.T @ (g - x @ u)))

    Mt, u = solve(xy), solve(xg)
    for _ in range(2):
        more, extra = left_over(Mt, u)
        Mt, u = Mt + solve(more), u + solve(extra)
    parts = in_threads(lambda s: _errors(X.block(s), Y.block(s), gap[s[0] : s[1]], Mt, u), spans(n, BLOCK))
    errors, bias_errors = (np.concatenate(p) for p in zip(*parts, strict=True))
    size = float(np.sqrt(np.trace(yy) / n)) or 1.0
    residual = _rms(errors) / size
    # What rounding leaves: an entry is off by u of its own size, in a (and then mapped) and in b.
    stretch = float(np.linalg.norm(Mt, 2)) if Mt.size else 1.0
    sizes = (rounding_of(h) * _rms(h.norms[w]) / R.scale for h, w, R in ((a, ia, X), (b, ib, Y)))
    rounding = float(np.dot(list(sizes), [stretch, 1.0])) / size
    top = max(float(np.abs(ba).max()), float(np.abs(bb).max()))
    if top > 0:
        residual = max(residual, _rms(bias_errors) / top)
    return Fit(_transform(X, Y, Mt, u, gap, shifts), residual, rounding, rank_a, rank_b, errors)


def _errors(x, y, g, Mt, u) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[no-untyped-def]
    return np.linalg.norm(y - x @ Mt, axis=1), g - x @ u


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt((x.astype(np.float64) ** 2).mean()))


def _range(gram: np.ndarray, noise: float, n: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Eigenvectors and values of the part of a Gram matrix that rounding of the rows cannot have made."""
    values, vectors = np.linalg.eigh(gram)
    floor = max(float(values[-1]) * 1e-14, 4 * noise * noise * n)  # n rows of length one at most
    keep = values > floor
    return vectors[:, keep], values[keep], int(keep.sum())


def _transform(X: Rows, Y: Rows, Mt: np.ndarray, u: np.ndarray, gap: np.ndarray, shifts: bool) -> Chain:
    """The fit as a change of a head: input shift (in a's coordinates), linear map, translation."""
    da, db = Mt.shape
    if da != db:
        return Chain(())  # rows of another width are no transform of these, though they may predict the same
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
