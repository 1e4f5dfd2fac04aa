"""A table of embeddings, one a row, given out a block at a time: the rows may lie in a file larger than memory.

for start, block in table.blocks():     # float32, shape (rows, dim), as stored: not checked for NaN
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.mapped_pages import give_back
from gonio.core.parallel import spans
from gonio.core.readable_label import quoted

if TYPE_CHECKING:
    from jaxtyping import Float, Int

BLOCK = 1 << 22  # numbers of a block: 16 MB in float32
TOGETHER = 8  # blocks of a piece: what one task reads
Piece = tuple[int, int]  # the first row, and the first that is no longer in it


class EmbeddingTable:
    """Rows of one width, and their ids where there are any.

    name      what a sentence calls it: a file's name, or "an array"
    shape     (rows, dim)
    streamed  whether a row can only be reached by reading all before it
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, int],
        *,
        fetch: Callable[[int, int], np.ndarray] | None = None,
        stream: Callable[[int], Iterator[np.ndarray]] | None = None,
        parts: Mapping[Piece, Callable[[int], Iterator[np.ndarray]]] | None = None,
        ids: Callable[[], np.ndarray] | None = None,
        known_by: Any = None,
    ) -> None:
        assert sum(x is not None for x in (fetch, stream, parts)) == 1
        if shape[0] < 1 or shape[1] < 1:
            raise GonioError(f"check: {name} has shape {shape} and so is empty; at least one row of numbers is needed.")
        self.name, self.shape, self.streamed = name, (int(shape[0]), int(shape[1])), fetch is None
        self._fetch, self._read_ids = fetch, ids
        self._parts = parts if stream is None else {(0, self.shape[0]): stream}
        self._known_by = known_by  # an array, or where the rows lie: what kept results are found by
        self.place: str | None = None  # the path as it was typed
        self._ids: np.ndarray | None = None
        self._places: dict[str, int] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def pieces(self) -> list[Piece]:
        """The spans of rows that can be read by themselves, in order; they hang on the table alone."""
        if self._parts is not None:
            return list(self._parts)
        return list(spans(len(self), TOGETHER * max(1, BLOCK // self.shape[1])))

    def read(self, piece: Piece) -> Iterator[tuple[int, Float[np.ndarray, "rows dim"]]]:
        """The rows of a piece in order, a block at a time, with the number of the first of each block."""
        size = max(1, BLOCK // self.shape[1])
        if self._fetch is not None:
            for a, b in spans(piece[1] - piece[0], size):
                block = self._fetch(piece[0] + a, piece[0] + b)
                yield piece[0] + a, _float32(block)
                give_back(block)
            return
        assert self._parts is not None
        start = piece[0]
        for block in self._parts[piece](size):
            if len(block):
                yield start, _float32(block)
                start += len(block)
        if start != piece[1]:
            raise GonioError(
                f"check: {self.name} had {piece[1] - piece[0]:,} rows from row {piece[0]:,} on and now "
                f"{start - piece[0]:,}; it changed while being read."
            )

    def blocks(self) -> Iterator[tuple[int, Float[np.ndarray, "rows dim"]]]:
        """The rows in order, a block at a time, with the number of the first of each block."""
        for piece in self.pieces():
            yield from self.read(piece)

    def known_by(self) -> list[Any] | None:
        """What tells this table from others, for results that are kept; None where nothing does."""
        known = self._known_by
        return None if known is None else [self.name, self.shape, known]

    def __getstate__(self) -> dict[str, Any]:
        """What a worker needs: the rows, not their names."""
        return vars(self) | {"_ids": None, "_places": None, "_read_ids": None, "_known_by": None}

    def take(self, which: np.ndarray) -> Float[np.ndarray, "some dim"]:
        """The rows of these numbers, in this order."""
        which = np.asarray(which, np.int64)
        out = np.empty((len(which), self.shape[1]), np.float32)
        if self._fetch is not None and len(which) * 50 < len(self):
            for place, i in enumerate(which):
                out[place] = _float32(self._fetch(int(i), int(i) + 1))[0]
            return out
        order = np.argsort(which, kind="stable")
        sought = which[order]
        for start, block in self.blocks():
            a, b = np.searchsorted(sought, [start, start + len(block)])
            out[order[a:b]] = block[sought[a:b] - start]
        return out

    def whole(self) -> Float[np.ndarray, "rows dim"]:
        """All rows in memory: for tables of queries, not of documents."""
        return self.take(np.arange(len(self)))

    @property
    def has_ids(self) -> bool:
        """Whether the rows have names of their own."""
        return self._read_ids is not None

    @property
    def ids(self) -> np.ndarray:
        """One text a row; the row's number where the table has no ids."""
        if self._ids is None:
            found = np.arange(len(self)).astype(str) if self._read_ids is None else self._read_ids()
            if len(found) != len(self):
                raise GonioError(
                    f"check: {self.name} has {len(self):,} rows and {len(found):,} ids; one id a row is needed."
                )
            self._ids = np.array([str(x) for x in found], dtype=object)
            self._ids.flags.writeable = False
        return self._ids

    def names(self, rows: Any) -> list[str]:
        """The ids of some rows; where there are none only these numbers are written out, not those of all rows."""
        return [str(int(i)) for i in rows] if not self.has_ids else [str(self.ids[i]) for i in rows]

    @property
    def places(self) -> dict[str, int]:
        """The row of each id; ids that several rows have are refused, for none of these rows can be meant."""
        if self._places is None:
            self._places = {x: i for i, x in enumerate(self.ids)}
            if len(self._places) < len(self):
                repeated = next(x for i, x in enumerate(self.ids) if self._places[x] != i)
                rows = int((self.ids == repeated).sum())
                raise GonioError(
                    f"check: {len(self) - len(self._places):,} of the {len(self):,} rows of {self.name} have the id of "
                    f"another row (id {quoted(repeated)} has {rows:,}); ids must differ, so drop the copies or name "
                    f"another column with --id (id=)."
                )
        return self._places

    def __repr__(self) -> str:
        ids = "with ids" if self.has_ids else "rows by number"
        return f"EmbeddingTable({self.name}: {self.shape[0]:,} x {self.shape[1]}, {ids})"


def named_rows(table: EmbeddingTable, names: list[str], what: str) -> Int[np.ndarray, " some"]:
    """The rows of these ids; an unknown one is an error that counts them and shows the first."""
    lost = [x for x in names if x not in table.places]
    if lost:
        raise GonioError(
            f"check: {what} names {len(lost):,} of {len(names):,} ids that {table.name} does not have (the first is "
            f"{quoted(lost[0])}; {table.name} has {quoted(str(table.ids[0]))}"
            f"{'' if table.has_ids else ', for its rows go by number'}); give the ids of that table, --id (id=) names "
            f"their column."
        )
    return np.array([table.places[x] for x in names], np.int64)


def common_rows(a: EmbeddingTable, b: EmbeddingTable) -> tuple[Int[np.ndarray, " both"], Int[np.ndarray, " both"]]:
    """The rows of two tables that have one id; without ids, row by row, where there are as many."""
    if not (a.has_ids and b.has_ids):
        if len(a) != len(b):
            bare = a if not a.has_ids else b
            raise GonioError(
                f"check: {a.name} has {len(a):,} rows and {b.name} {len(b):,}, and {bare.name} has no ids to match "
                f"them by; give ids in both (a column, --id), or tables with one row for each of the same documents."
            )
        return np.arange(len(a)), np.arange(len(b))
    other = b.places
    pairs = [(i, other[x]) for x, i in a.places.items() if x in other]
    if not pairs:
        raise GonioError(
            f"check: {a.name} and {b.name} have no id in common (one has {quoted(str(a.ids[0]))}, the other "
            f"{quoted(str(b.ids[0]))}); give the same documents under both models, --id (id=) names the column of ids."
        )
    both = np.array(pairs, np.int64)
    return both[:, 0], both[:, 1]


def _float32(block: np.ndarray) -> np.ndarray:
    if block.dtype == np.float32:
        return block
    if block.dtype == np.float64:
        with np.errstate(over="ignore"):
            return block.astype(np.float32)
    return checks.wide(block) if checks.is_float(block.dtype) else block.astype(np.float32)
