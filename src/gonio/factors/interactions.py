"""The table of interactions, users x items: dense or sparse, checked once, and the few products that fitting needs.

Columns may be shifted and scaled in thought,  X -> (X - 1 shift') diag(scale),  so that standardising a sparse table
never makes it dense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.parallel import cores, in_threads, spans

if TYPE_CHECKING:
    from jaxtyping import Float, Int

BLOCK = 1024  # rows made dense at a time
SMALL = 200_000  # below so many entries one thread is quicker than several


class Interactions:
    """X with its products. `X` is an array or any kind of scipy.sparse; a sparse one is kept in row order, not copied
    where it is that already."""

    def __init__(self, X: Any, *, signed: bool = False, who: str = "fit") -> None:
        if isinstance(X, Interactions):
            raise GonioError(f"{who}: X was checked already; give the table itself.")
        self.sparse = hasattr(X, "tocsr") and hasattr(X, "nnz")
        self.table: Any = _sparse(X, who) if self.sparse else _dense(X, who)
        self.shape: tuple[int, int] = self.table.shape
        self.shift: Float[np.ndarray, " items"] | None = None
        self.scale: Float[np.ndarray, " items"] | None = None
        self._judge(signed, who)
        sums, squares, counts = self._columns()
        self._sums, self._squares = sums, squares
        self.counts: Int[np.ndarray, " items"] = counts
        if not counts.any():
            raise GonioError(f"{who}: X of shape {self.shape} has no interaction at all; at least one is needed.")

    # -- checks ---------------------------------------------------------------------------------------------------

    def _judge(self, signed: bool, who: str) -> None:
        values = self.table.data if self.sparse else self.table
        for wrong, what, advice in (
            (lambda v: ~np.isfinite(v), "every interaction must be a finite number", "leave it out (0 means none)"),
            (lambda v: v < 0, "interactions are counts or strengths, 0 or more", "or say signed=True if meant"),
        ):
            if what.startswith("interactions") and signed:
                continue
            for a, b in spans(len(values), 1 << 20 if self.sparse else max(1, (1 << 20) // values.shape[1])):
                bad = np.argwhere(wrong(values[a:b]))
                if len(bad):
                    at = tuple(int(i) for i in bad[0] + np.array([a] + [0] * (values.ndim - 1)))
                    value = values[at]
                    if self.sparse:
                        user = int(np.searchsorted(self.table.indptr, at[0], side="right")) - 1
                        at = (user, int(self.table.indices[at[0]]))
                    raise GonioError(f"{who}: X[{at[0]}, {at[1]}] is {value:g}; {what}, so {advice}.")

    @property
    def empty_users(self) -> Int[np.ndarray, " empty"]:
        """The users without any interaction."""
        if self.sparse:
            touched = np.zeros(self.shape[0], bool)
            if (self.table.data != 0).all():
                touched = np.diff(self.table.indptr) > 0
            else:
                rows = np.repeat(np.arange(self.shape[0]), np.diff(self.table.indptr))
                touched[rows[self.table.data != 0]] = True
            return np.flatnonzero(~touched)
        return np.flatnonzero(~self.table.any(axis=1))

    @property
    def empty_items(self) -> Int[np.ndarray, " empty"]:
        """The items that nobody touched."""
        return np.flatnonzero(self.counts == 0)

    @property
    def entries(self) -> int:
        """How many numbers are stored."""
        return int(self.table.nnz) if self.sparse else self.table.size

    # -- columns --------------------------------------------------------------------------------------------------

    def _columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        p = self.shape[1]
        if not self.sparse:
            sums, squares, counts = np.zeros(p), np.zeros(p), np.zeros(p, np.int64)
            for a, b in spans(self.shape[0], BLOCK):
                block = self.table[a:b].astype(np.float64)
                sums += block.sum(axis=0)
                squares += np.einsum("ij,ij->j", block, block)
                counts += (block != 0).sum(axis=0)
            return sums, squares, counts
        from gonio.factors.kernels import column_sums

        t = self.table

        def look(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            out = np.zeros(p), np.zeros(p), np.zeros(p, np.int64)
            column_sums(t.indptr, t.indices, t.data, *span, *out)
            return out

        parts = in_threads(look, self._spans())
        return tuple(sum(x) for x in zip(*parts, strict=True))  # type: ignore[return-value]

    def columns(self, shift: np.ndarray | None, scale: np.ndarray | None) -> Interactions:
        """The same table with its columns shifted by -shift and then scaled, in thought."""
        if self.shift is not None or self.scale is not None:
            raise GonioError("fit: the columns are scaled already; use one remedy at a time.")
        out = object.__new__(Interactions)
        out.__dict__.update(self.__dict__)
        out.shift, out.scale = shift, scale
        return out

    @property
    def means(self) -> Float[np.ndarray, " items"]:
        """The mean of each stored column."""
        return self._sums / self.shape[0]

    @property
    def squares(self) -> Float[np.ndarray, " items"]:
        """diag(X'X), shift and scale included."""
        out = self._squares.copy()
        if self.shift is not None:
            out = np.maximum(0, out - 2 * self.shift * self._sums + self.shape[0] * self.shift**2)
        return out if self.scale is None else out * self.scale**2

    @property
    def total(self) -> float:
        """||X||^2."""
        return float(self.squares.sum())

    # -- products -------------------------------------------------------------------------------------------------

    def _spans(self) -> list[tuple[int, int]]:
        """Ranges of rows with about equally many entries, one a core."""
        n = self.shape[0]
        if not self.sparse or self.table.nnz < SMALL:
            return [(0, n)]
        cuts = np.searchsorted(self.table.indptr, np.linspace(0, self.table.nnz, cores() + 1)[1:-1])
        edges = [0, *(int(c) for c in cuts), n]
        return [(a, b) for a, b in pairwise(edges) if a < b]

    def times(self, V: np.ndarray) -> Float[np.ndarray, "users some"]:
        """X V."""
        V = np.ascontiguousarray(V if self.scale is None else V * self.scale[:, None], np.float64)
        if self.sparse:
            from gonio.factors.kernels import times_block

            t, out = self.table, np.empty((self.shape[0], V.shape[1]))
            in_threads(lambda s: times_block(t.indptr, t.indices, t.data, *s, V, out), self._spans())
        else:
            out = np.empty((self.shape[0], V.shape[1]))
            for a, b in spans(self.shape[0], BLOCK * 16):
                out[a:b] = self.table[a:b].astype(np.float64, copy=False) @ V
        return out if self.shift is None else out - self.shift @ V

    def transposed(self, U: np.ndarray) -> Float[np.ndarray, "items some"]:
        """X' U."""
        U = np.ascontiguousarray(U, np.float64)
        if self.sparse:
            from gonio.factors.kernels import transposed_block

            t = self.table

            def part(span: tuple[int, int]) -> np.ndarray:
                out = np.zeros((self.shape[1], U.shape[1]))
                transposed_block(t.indptr, t.indices, t.data, *span, U, out)
                return out

            out = sum(in_threads(part, self._spans()))
        else:
            out = np.zeros((self.shape[1], U.shape[1]))
            for a, b in spans(self.shape[0], BLOCK * 16):
                out += self.table[a:b].astype(np.float64, copy=False).T @ U[a:b]
        assert isinstance(out, np.ndarray)
        if self.shift is not None:
            out = out - np.outer(self.shift, U.sum(axis=0))
        return out if self.scale is None else out * self.scale[:, None]

    def gram_operator(self) -> Callable[[np.ndarray], np.ndarray]:
        """v -> X'(X v) for one vector, in one pass over the table."""
        if not self.sparse or self.shift is not None:
            return lambda v: self.transposed(self.times(v.reshape(-1, 1)))[:, 0]
        from gonio.factors.kernels import gram_vector

        t, some, scale = self.table, self._spans(), self.scale

        def product(v: np.ndarray) -> np.ndarray:
            v = np.ascontiguousarray(v.reshape(-1) if scale is None else v.reshape(-1) * scale, np.float64)

            def part(span: tuple[int, int]) -> np.ndarray:
                out = np.zeros(self.shape[1])
                gram_vector(t.indptr, t.indices, t.data, *span, v, out)
                return out

            out = sum(in_threads(part, some))
            assert isinstance(out, np.ndarray)
            return out if scale is None else out * scale

        return product

    def dense_blocks(self, axis: int = 0) -> Iterator[tuple[int, Float[np.ndarray, "some other"]]]:
        """The table in dense float64 blocks of rows (axis 0) or columns (axis 1): (first, block) pairs."""
        table = self.table.tocsc() if self.sparse and axis else self.table
        for a, b in spans(self.shape[axis], BLOCK):
            part = table[a:b] if axis == 0 else table[:, a:b]
            block = (part.toarray() if self.sparse else part).astype(np.float64, copy=False)
            here = slice(None) if axis == 0 else slice(a, b)
            if self.shift is not None:
                block = block - self.shift[here]
            if self.scale is not None:
                block = block * self.scale[here]
            yield a, block

    def gram(self, axis: int = 0) -> Float[np.ndarray, "side side"]:
        """X'X (axis 0), or X X' (axis 1), from dense blocks through BLAS."""
        side = self.shape[1 - axis]
        out = np.zeros((side, side))
        for _, block in self.dense_blocks(axis):
            out += block.T @ block if axis == 0 else block @ block.T
        return out


def _sparse(X: Any, who: str) -> Any:
    if X.ndim != 2 or 0 in X.shape:
        raise GonioError(f"{who}: X has shape {X.shape}; users x items, both at least one, are needed.")
    if X.dtype.kind not in "fbiu" or X.dtype.itemsize > 8:
        raise GonioError(f"{who}: X has dtype {X.dtype}; real numbers of at most 64 bits are needed.")
    csr = X.tocsr()
    if not csr.has_canonical_format:  # an entry given twice counts as their sum, as scipy has it
        csr = csr.copy() if csr is X else csr
        csr.sum_duplicates()
    if csr.dtype not in (np.float32, np.float64):
        exact = csr.dtype.itemsize <= 2 or csr.nnz == 0 or np.abs(csr.data).max() < 1 << 24
        csr = csr.astype(np.float32 if exact else np.float64)
    return csr


def _dense(X: Any, who: str) -> np.ndarray:
    return checks.wide(checks.matrix(X, who, "X", axes=("users", "items")))
