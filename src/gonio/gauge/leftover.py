"""What a map leaves of every entry, held to what rounding explains of it.

Rounding errors of the entries are taken as independent and evenly spread over half a step to either side. Then with
s^2_ik = (step_b(ik)^2 + sum_l step_a(il)^2 M_lk^2) / 3  and h_i the leverage of row i, a fit leaves of entry ik
something of variance  (1 - h_i)^2 s^2_ik + h_i (1 - h_i) mean s^2_k.  Entries, rows and all of them together are held
to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gonio.core.parallel import in_threads
from gonio.gauge.rounding import RoundedTable, pieces

U = 2.0**-53
CLIP = 36.0  # in the mean over all entries none counts for more than six standard deviations
SEEN = 0.02  # the share of x's rounding that is still allowed for where none is seen
ALMOST_CERTAIN, BEYOND_DOUBT = 25.0, 40.0  # chances of e^-25 and e^-40 that rounding alone makes a row so large


class Target(Protocol):
    """What is to be explained: values and how far rounding may have moved each."""

    def block(self, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]: ...


@dataclass(frozen=True, eq=False)
class Weighted:
    """Rows of a table and a target, centred if wanted, times the weight of their row."""

    a: RoundedTable
    target: Target
    near: bool
    weights: np.ndarray
    mean_x: np.ndarray
    mean_y: np.ndarray

    def block(self, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        w = self.weights[span[0] : span[1], None]
        return (self.a.block(span)[0] - self.mean_x) * w, (self.target.block(span)[0] - self.mean_y) * w


@dataclass(frozen=True, eq=False)
class Leftover:
    """What a map leaves, in units of what rounding explains.

    residual, rounding   root mean squares of what is left and of what rounding would leave, over the size of the target
    entry      the largest entry over its standard deviation
    beyond     whether an entry exceeds what the rounding of its numbers can add up to
    row        the largest mean square of a row over what chance e^-25 allows, and over what e^-40 does
    amplified  what the map makes of a's rounding, over b's own
    returned   about what b's rounding would leave of a's rows on the way back, over their size
    overall    root mean square of all entries over their standard deviations, outliers clipped
    spread     the same without clipping
    errors     for each label its largest entry over its standard deviation
    """

    residual: float
    rounding: float
    entry: float
    beyond: bool
    row: tuple[float, float]
    amplified: float
    returned: float
    overall: float
    spread: float
    errors: np.ndarray


@dataclass(frozen=True, eq=False)
class _Block:
    """What was seen in some rows.

    left, explained, size   sums of squares: of what is left, of what rounding explains of it, of the target
    beyond   whether an entry exceeds what its roundings add up to
    rows     of each row the mean square, entries over their variances
    both     figures of entries with the rounding of x and y counted
    exact    figures of entries with that of y alone, nearly
    """

    left: float
    explained: float
    size: float
    beyond: bool
    rows: np.ndarray
    both: _Ratios
    exact: _Ratios


@dataclass(frozen=True, eq=False)
class _Ratios:
    """Squares of entries over their variances: the largest, their sums with outliers clipped and not, and per row."""

    largest: float
    clipped: float
    total: float
    errors: np.ndarray

    @classmethod
    def of(cls, ratio: np.ndarray) -> _Ratios:
        return cls(ratio.max(), np.minimum(ratio, CLIP).sum(), ratio.sum(), np.sqrt(ratio.max(axis=1)))


class _Rounding:
    """What rounding explains under a map M: one pass over the data when made, then asked a block of rows at a time."""

    def __init__(self, data: Weighted, M: np.ndarray, whiten: np.ndarray, shifts: bool, rounded_map: bool) -> None:
        self.data, self.M, self.rounded_map = data, M, rounded_map
        self.near, self.n = data.near, len(data.weights)
        self.squares = M**2
        # Of variances a few digits are enough.
        self.short = self.squares.astype(np.float32) if 1e-15 < self.squares.max() < 1e15 else self.squares
        self._what_computing_adds(shifts)
        self._typical_sizes()
        self._bias_of_the_fit(whiten)
        self.one = 1 / float((data.weights**2).sum()) if shifts else 0.0
        self.flat = (whiten * (self.size_x or 1.0)).astype(np.float32)

    def _what_computing_adds(self, shifts: bool) -> None:
        """A product in float64 adds about sqrt(d) roundings of x M, and those of a step with the offset added first."""
        data, (da, db) = self.data, self.M.shape
        self.back = np.zeros(da) if self.near or da != db or not shifts else _taken_back(self.M, data.mean_y)
        self.added = 0.0 if self.near else 4 * da * U * U
        columns = np.sum(in_threads(lambda s: (data.a.block(s)[0] ** 2).sum(axis=0), pieces(self.n)), axis=0)
        self.share = columns / (
            columns.sum() or 1.0
        )  # a small entry may be a difference of numbers as large as its row
        storage = data.a.storage
        self.added_is_small = "float64" not in (storage.kind, getattr(data.target, "storage", storage).kind)

    def _typical_sizes(self) -> None:
        """Means over the rows: of x squared, and of the squared steps of x and y."""

        def sums(span: tuple[int, int]) -> tuple[np.ndarray, ...]:
            x, _, *squared = self.steps(span)
            return (x**2).sum(axis=0), *(p.sum(axis=0) for p in squared)

        parts = zip(*in_threads(sums, pieces(self.n)), strict=True)
        of_x, self.mean_a, self.mean_b, mean_added = (np.sum(p, axis=0) / self.n for p in parts)
        self.size_x = float(np.sqrt(of_x.sum() * self.n)) / np.sqrt(self.n)
        self.all_a = self.mean_a + mean_added
        self.typical = (self.mapped(self.all_a) + self.mean_b) / 3
        self.typical_exact = (SEEN * self.mapped(self.all_a) + self.mean_b) / 3
        # Where the image of x's rounding is as large as y's and yet not seen, x is exact, and y's alone is what counts.
        self.sharp = (
            not self.near
            and float(self.mapped(self.mean_a).sum()) > 0.3 * float(self.mean_b.sum())
            and self.added_is_small
        )

    def _bias_of_the_fit(self, whiten: np.ndarray) -> None:
        """Rounding of x makes the fit of M too small by this much at most, where it is not small beside x."""
        M = self.M
        moved = M + np.eye(len(M)) if self.near else M
        self.bias = whiten @ (whiten.T @ (self.n / 3 * self.all_a[:, None] * moved))
        self.biased = float(np.abs(self.bias).max()) > 1e-7 * float(np.abs(M).max()) and not self.near

    def steps(self, span: tuple[int, int]) -> tuple[np.ndarray, ...]:
        """x, y, their steps squared, and what computing adds to those of x, all times the weights."""
        data = self.data
        v = data.weights[span[0] : span[1], None]
        (x, ex), (y, ey) = data.a.block(span), data.target.block(span)
        lengths = (x**2).sum(axis=1, keepdims=True)
        if self.rounded_map:
            ey = np.sqrt(ey**2 + 48 * U * U * lengths)
        more = self.added * (x**2 + lengths * self.share + self.back**2) * v**2
        return (x - data.mean_x) * v, (y - data.mean_y) * v, (ex * v) ** 2, (ey * v) ** 2, more

    def mapped(self, of_a: np.ndarray) -> np.ndarray:
        """Variances of x's entries, as M passes them on to y's."""
        if self.near:
            return of_a
        scale = float(of_a.max()) or 1.0
        return (of_a / scale).astype(self.short.dtype) @ self.short * np.float64(scale)

    def look(self, span: tuple[int, int]) -> _Block:
        """Hold what M leaves of some rows to what rounding explains."""
        x, y, ea, eb, more = self.steps(span)
        left = y - x @ self.M
        of_a = self.mapped(ea + more)
        h = self._leverage(x, span)
        also = self._also(x, left)
        ratio = left**2 / (_variance((of_a + eb) / 3, self.typical, h) + also)
        exact = left**2 / (_variance((SEEN * of_a + eb) / 3, self.typical_exact, h) + also)
        computed = (0.0 if self.added_is_small or self.near else 1.0) * self.mapped(more)
        slack = 6 * np.sqrt(3 * h * (1 - h) * self.typical + computed + also)
        return _Block(
            (left**2).sum(),
            (of_a + eb).sum() / 3,
            ((x if self.near else y) ** 2).sum(),
            _beyond(left, ratio, np.sqrt(ea), np.sqrt(eb), self.M, self.near, slack),
            ratio.mean(axis=1),
            _Ratios.of(ratio),
            _Ratios.of(exact),
        )

    def _leverage(self, x: np.ndarray, span: tuple[int, int]) -> np.ndarray:
        """h_i = |x_i whiten|^2, and the share of the shift."""
        scaled = (x / (self.size_x or 1.0)).astype(np.float32) @ self.flat
        shift = self.one * self.data.weights[span[0] : span[1]] ** 2
        return np.minimum((scaled**2).sum(axis=1, dtype=np.float64) + shift, 1.0)[:, None]

    def _also(self, x: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Squares of what else an entry may be off by: the bias of the fit, or the rounding of a small product."""
        if self.biased:
            return (x @ self.bias) ** 2
        if self.near:  # the small product x M is rounded, and so is the difference from it
            return (U * left) ** 2 + len(self.M) * U * U * ((x**2) @ self.squares) + 1e-300
        return np.full((1, 1), 1e-300)

    def beyond_where_most_are_exact(self, errors: np.ndarray, overall: float) -> bool:
        """Whether one of the worst rows exceeds its own roundings, where there are no others to hide behind."""
        slack = 12 * overall * np.sqrt(self.typical)
        for i in np.argsort(-errors)[:64]:
            x, y, ea, eb, _ = self.steps((int(i), int(i) + 1))
            limit = (np.sqrt(ea) + np.sqrt(eb)) * (1 + 2.0**-7) + slack
            if bool((np.abs(y - x @ self.M) > limit).any()):
                return True
        return False


def leftover(data: Weighted, M: np.ndarray, whiten: np.ndarray, shifts: bool, *, rounded_map: bool = False) -> Leftover:
    """Hold what M leaves of every entry, of every row and of all to what rounding explains.

    `rounded_map`: M is not free, like a rotation, which float64 holds to a few roundings of each row's length.
    """
    model = _Rounding(data, M, whiten, shifts, rounded_map)
    n, (da, db) = model.n, M.shape
    seen = in_threads(model.look, pieces(n))
    scale = np.sqrt(sum(b.size for b in seen)) or 1.0
    exactly = model.sharp and np.sqrt(sum(b.exact.clipped for b in seen) / (n * db)) <= 1.15
    chosen = [b.exact if exactly else b.both for b in seen]
    errors = np.concatenate([r.errors for r in chosen])
    overall = float(np.sqrt(sum(r.clipped for r in chosen) / (n * db)))
    beyond = any(b.beyond for b in seen)
    if data.near and overall < 0.5:
        beyond = beyond or model.beyond_where_most_are_exact(errors, overall)
    widest = float(np.concatenate([b.rows for b in seen]).max())
    limits = [_row_limit(M, model.all_a, model.mean_b, data.near, x) for x in (ALMOST_CERTAIN, BEYOND_DOUBT)]
    of_a = model.mapped(model.mean_a)
    return Leftover(
        residual=float(np.sqrt(sum(b.left for b in seen)) / scale),
        rounding=float(np.sqrt(sum(b.explained for b in seen)) / scale),
        entry=float(np.sqrt(max(r.largest for r in chosen))),
        beyond=beyond,
        row=(widest / limits[0], widest / limits[1]),
        amplified=float(np.sqrt(of_a.sum() / model.mean_b.sum())) if model.mean_b.any() else np.inf,
        returned=_returned(M, model.mean_b, model.size_x) if da == db and not data.near else 0.0,
        overall=overall,
        spread=float(np.sqrt(sum(r.total for r in chosen) / (n * db))),
        errors=errors,
    )


def _variance(own: np.ndarray, typical: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The variance of what a fit leaves of entries of variance `own` in columns of variance `typical`.

    (1 - h)^2 own + sum over the others of h_ij^2 times theirs, of which the sum of h_ij^2 is h (1 - h); columns whose
    variance differs from row to row are allowed three times the usual.
    """
    return (1 - h) ** 2 * own + 3 * h * (1 - h) * typical


def _returned(M: np.ndarray, of_b: np.ndarray, size: float) -> float:
    """sqrt(sum_k of_b_k (M^-1)_kl^2 / 3) over the size of x's rows."""
    if np.linalg.cond(M) > 1e12:
        return 0.0  # then ranks decide
    return float(np.sqrt((of_b @ np.linalg.inv(M) ** 2).sum() / 3)) / (size or 1.0)


def _taken_back(M: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The mean of y before M, where M can be undone: how large a step in between may have been."""
    if np.linalg.cond(M) > 1e8:
        return np.zeros(len(M))
    return np.asarray(np.linalg.solve(M.T, mean))


def _row_limit(M: np.ndarray, of_a: np.ndarray, of_b: np.ndarray, near: bool, x: float) -> float:
    """What the mean square of a row, each entry over its variance, exceeds with chance e^-x at most.

    With P the correlation of a row's errors: 1 + 2 sqrt(x) |P| / d + 2 x max eigenvalue / d (Laurent & Massart).
    """
    d = M.shape[1]
    if near:
        return 1 + 2 * np.sqrt(x / d) + 2 * x / d
    C = np.diag(of_b) + (M.T * of_a) @ M
    size = np.sqrt(np.diag(C))
    size[size == 0] = 1.0
    P = C / np.outer(size, size)
    return float(1 + 2 * np.sqrt(x) * np.linalg.norm(P) / d + 2 * x * np.linalg.eigvalsh(P)[-1] / d)


def _beyond(
    left: np.ndarray, ratio: np.ndarray, ea: np.ndarray, eb: np.ndarray, M: np.ndarray, near: bool, slack: np.ndarray
) -> bool:
    """Whether some entry is larger than all roundings of its numbers together can make it.

    Only entries beyond three standard deviations are asked, the largest first: sums of many roundings never get there,
    and sums of few have a limit that is nearer than any chance.
    """
    i, k = np.nonzero(ratio > 9.0)
    if len(i) > 500:
        most = np.argsort(-ratio[i, k])[:500]
        i, k = i[most], k[most]
    if not len(i):
        return False
    of_a = ea[i, k] if near else np.einsum("ij,ji->i", ea[i], np.abs(M)[:, k])
    limit = (of_a + eb[i, k]) * (1 + 2.0**-7) + slack[i, k]
    return bool((np.abs(left[i, k]) > limit).any())
