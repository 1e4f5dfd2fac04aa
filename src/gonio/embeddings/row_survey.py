"""One pass over a table: which rows are wrong, how long all are, which are equal, and a sample of them.

The mean cosine of all pairs of n unit rows needs no pairs:  (|sum u|^2 - n) / (n (n - 1)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.compiled import njit
from gonio.core.errors import GonioError
from gonio.core.tasks import run
from gonio.embeddings.embedding_table import EmbeddingTable, Piece

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, UInt64

SAMPLE = 20_000  # rows kept for pairs, moments and remedies
SHOWN = 20  # groups of equal rows that are kept


@dataclass(frozen=True, eq=False)
class Copies:
    """Equal rows.

    spare     every row that is equal to an earlier one
    groups    how many groups of equal rows there are
    largest   the rows of the largest of them
    """

    spare: Int[np.ndarray, " spare"]
    groups: int
    largest: tuple[Int[np.ndarray, " members"], ...]


@dataclass(frozen=True, eq=False)
class RowSurvey:
    """What one pass saw.

    norms        length of each row; NaN where it is not finite
    constant     rows whose entries are all one number, other than 0
    signs        two 64-bit hashes of each row: equal rows have equal ones
    mean_cosine  of all pairs of rows with a direction
    which, rows  a random sample of the rows with a direction
    """

    norms: Float[np.ndarray, " rows"]
    constant: Bool[np.ndarray, " rows"]
    signs: UInt64[np.ndarray, "rows 2"]
    mean_cosine: float
    which: Int[np.ndarray, " some"]
    rows: Float[np.ndarray, "some dim"]

    def __post_init__(self) -> None:
        for a in (self.norms, self.constant, self.signs, self.which, self.rows):
            a.flags.writeable = False

    @property
    def not_finite(self) -> Int[np.ndarray, " bad"]:
        """Rows with a NaN or an infinity."""
        return np.flatnonzero(~np.isfinite(self.norms))

    @property
    def empty(self) -> Int[np.ndarray, " bad"]:
        """Rows of zeros."""
        return np.flatnonzero(self.norms == 0)

    @cached_property
    def live(self) -> int:
        """How many rows have a direction: finite, and not all zeros."""
        return int((self.norms > 0).sum())

    @cached_property
    def copies(self) -> Copies:
        """Rows that are equal; empty rows are left out."""
        live = np.flatnonzero(self.norms > 0)
        if not len(live := live[_repeated(self.signs[live, 0])]):
            return Copies(live, 0, ())
        s = self.signs[live]
        order = np.lexsort((live, s[:, 1], s[:, 0]))
        new = np.ones(len(order), bool)
        new[1:] = (s[order[1:]] != s[order[:-1]]).any(axis=1)
        starts = np.flatnonzero(new)
        sizes = np.diff(np.append(starts, len(order)))
        several = np.flatnonzero(sizes > 1)
        first = several[np.argsort(-sizes[several], kind="stable")][:SHOWN]
        largest = tuple(live[order[starts[g] : starts[g] + sizes[g]]] for g in first)
        return Copies(np.sort(live[order[~new]]), len(several), largest)

    @cached_property
    def effective_rank(self) -> float:
        """(tr C)^2 / tr C^2 of the covariance C of the sampled unit rows: how many directions they use."""
        U = unit(self.rows[:: max(1, len(self.rows) // 5000)]).astype(np.float64)
        U -= U.mean(axis=0)
        C = U.T @ U
        return float(np.trace(C) ** 2 / max((C * C).sum(), 1e-300))


def _repeated(values: np.ndarray) -> Bool[np.ndarray, " values"]:
    """Which values occur more than once: one plain sort where none does, as in most tables."""
    ordered = np.sort(values)
    return np.isin(values, ordered[1:][ordered[1:] == ordered[:-1]])


def unit(X: np.ndarray) -> Float[np.ndarray, "rows dim"]:
    """Rows divided by their lengths, in float32; zero rows stay zero."""
    X = np.ascontiguousarray(X, np.float32)
    out = np.empty_like(X)
    _unit(X, out)
    return out


@njit(cache=True, nogil=True, fastmath={"reassoc"})  # sums in any order: lanes of a register
def _unit(X: np.ndarray, out: np.ndarray) -> None:
    rows, dim = X.shape
    for i in range(rows):
        size = 0.0
        for j in range(dim):
            size += np.float64(X[i, j]) * np.float64(X[i, j])
        inverse = 1 / np.sqrt(size) if size > 0 else 1.0
        for j in range(dim):
            out[i, j] = np.float32(np.float64(X[i, j]) * inverse)


@njit(cache=True, nogil=True)
def _look(
    block: np.ndarray,
    bits: np.ndarray,
    keys: np.ndarray,
    norms: np.ndarray,
    constant: np.ndarray,
    signs: np.ndarray,
    total: np.ndarray,
) -> None:
    """Length, constancy and hashes of each row of a block; the unit rows are added to `total`."""
    rows, dim = block.shape
    for i in range(rows):
        size, finite, same = 0.0, True, dim > 1
        for j in range(dim):
            v = block[i, j]
            finite &= np.isfinite(v)
            same &= v == block[i, 0]
            size += np.float64(v) * np.float64(v)
        first, second = np.uint64(0), np.uint64(0)
        for j in range(dim):
            h = np.uint64(0) if block[i, j] == 0 else np.uint64(bits[i, j])  # -0.0 is 0.0
            h *= np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
            first += h * keys[j, 0]
            second += h * keys[j, 1]
        signs[i, 0], signs[i, 1] = first, second
        norms[i] = np.sqrt(size) if finite else np.nan
        constant[i] = finite and same and size > 0
        if finite and size > 0:
            for j in range(dim):
                total[j] += block[i, j] / norms[i]


def _survey_piece(shared: tuple[EmbeddingTable, np.ndarray], piece: Piece) -> tuple[np.ndarray, ...]:
    """Lengths, constancy, hashes and the sum of unit rows of a piece, and its rows among those drawn."""
    table, drawn = shared
    n, d = piece[1] - piece[0], table.shape[1]
    keys = np.random.default_rng(64).integers(0, 2**63, (d, 2), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    norms, constant, signs, total = np.empty(n), np.zeros(n, bool), np.empty((n, 2), np.uint64), np.zeros(d)
    first, last = np.searchsorted(drawn, piece)
    kept = np.empty((last - first, d), np.float32)
    for start, block in table.read(piece):
        span = slice(start - piece[0], start - piece[0] + len(block))
        block = np.ascontiguousarray(block)
        _look(block, block.view(np.uint32), keys, norms[span], constant[span], signs[span], total)
        a, b = np.searchsorted(drawn, [start, start + len(block)])
        kept[a - first : b - first] = block[drawn[a:b] - start]
    return norms, constant, signs, total, kept


def survey_rows(table: EmbeddingTable, *, sample: int = SAMPLE, seed: int = 0) -> RowSurvey:
    """Look at every row once."""
    n, d = table.shape
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.choice(n, min(n, sample), replace=False))
    kept = np.empty((len(drawn), d), np.float32)
    norms, constant, signs = np.empty(n), np.zeros(n, bool), np.empty((n, 2), np.uint64)
    pieces = table.pieces()
    totals = np.empty((len(pieces), d))
    key = None if table.known_by() is None else [*(table.known_by() or ()), drawn]

    def take(at: int, seen: tuple[np.ndarray, ...]) -> None:
        piece = pieces[at]
        norms[slice(*piece)], constant[slice(*piece)], signs[slice(*piece)], totals[at] = seen[:4]
        a, b = np.searchsorted(drawn, piece)
        kept[a:b] = seen[4]

    run("rows", _survey_piece, (table, drawn), pieces, key=key, each=take, held=False)
    total = totals.sum(axis=0)  # in the order of the pieces, whoever looked at them
    live = int((norms > 0).sum())
    if live == 0:
        raise GonioError(f"check: no row of {table.name} is finite and other than zero; there is nothing to compare.")
    mean = float((total @ total - live) / (live * (live - 1))) if live > 1 else float("nan")
    ok = norms[drawn] > 0
    return RowSurvey(norms, constant, signs, mean, drawn[ok], kept[ok])
