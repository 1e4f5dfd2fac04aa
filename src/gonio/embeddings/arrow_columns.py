"""Embeddings in Arrow's columns: a list column, or one column a dimension. Parquet and Arrow files, folders and frames.

A file is read a batch at a time, one file after the other; what is not a rectangle of numbers is named with its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.errors import LoadError, missing_extra
from gonio.core.readable_label import quoted
from gonio.embeddings.embedding_table import EmbeddingTable

ID_NAMES = ("id", "_id", "ids", "doc_id", "docid", "document_id", "query_id", "key", "name")
VECTOR_NAMES = ("embedding", "embeddings", "vector", "vectors", "emb")
Batches = Callable[[list[str], int], Iterator[Any]]


@dataclass(frozen=True)
class Chosen:
    """Which columns hold the numbers, and which the ids."""

    numbers: tuple[str, ...]
    is_list: bool
    ids: str | None


def pyarrow(what: str) -> Any:
    """The package, or how to install it."""
    try:
        import pyarrow as pa
        import pyarrow.compute
    except ImportError:
        raise missing_extra(f"check: {what}", "pyarrow", "arrow") from None
    return pa


def of_files(paths: list[Path], name: str, column: str | None, id_column: str | None) -> EmbeddingTable:
    """One table of the parquet (or Arrow) files, in the order of their names."""
    pa = pyarrow(name)
    opened = [(p, *_opened(pa, p)) for p in paths]
    chosen = choose(pa, opened[0][1], name, column, id_column)
    for p, schema, _, _ in opened:
        lacking = [c for c in (*chosen.numbers, *([chosen.ids] if chosen.ids else [])) if c not in schema.names]
        if lacking:
            raise LoadError(
                f"check: {p.name} has no column {lacking[0]!r}, which {opened[0][0].name} has; give files of one kind."
            )

    def batches(columns: list[str], size: int) -> Iterator[Any]:
        for p, _, _, read in opened:
            try:
                yield from read(columns, size)
            except (pa.ArrowException, OSError) as e:
                raise _cut(p, e) from None

    return _table(pa, name, sum(count for _, _, count, _ in opened), chosen, batches)


def of_arrow(table: Any, name: str, column: str | None, id_column: str | None) -> EmbeddingTable:
    """A table in memory."""
    pa = pyarrow(name)
    chosen = choose(pa, table.schema, name, column, id_column)
    return _table(pa, name, table.num_rows, chosen, lambda columns, size: iter(table.select(columns).to_batches(size)))


def choose(pa: Any, schema: Any, name: str, column: str | None, id_column: str | None) -> Chosen:
    """The columns to read: those named, or the only ones that can be meant."""
    kinds = {f.name: _kind(pa, f.type) for f in schema}
    told = ", ".join(f"{quoted(k)} ({schema.field(k).type})" for k in list(kinds)[:6])
    told += ", ..." if len(kinds) > 6 else ""
    for said, option in ((column, "--column"), (id_column, "--id")):
        if said is not None and said not in kinds:
            raise LoadError(f"check: {name} has no column {quoted(said)}; it has {told}, so name one with {option}.")
    ids = id_column or next((x for x in ID_NAMES if x in kinds and kinds[x] != "list"), None)
    if column is not None:
        if kinds[column] != "list":
            what = "text" if kinds[column] == "text" else f"of type {schema.field(column).type}"
            raise LoadError(
                f"check: column {quoted(column)} of {name} is {what}; a column of lists of numbers is needed, so embed "
                f"it first or name another: {told}."
            )
        return Chosen((column,), True, ids)
    lists = [x for x, kind in kinds.items() if kind == "list"]
    liked = [x for x in lists if x.lower() in VECTOR_NAMES]
    if len(lists) == 1 or len(liked) == 1:
        return Chosen(((liked or lists)[0],), True, ids)
    if lists:
        raise LoadError(f"check: {name} has several columns of lists ({told}); name the embeddings with --column.")
    numbers = tuple(x for x, kind in kinds.items() if kind == "number" and x != ids)
    if not numbers:
        raise LoadError(f"check: {name} has no column of numbers or of lists of numbers; it has {told}.")
    return Chosen(numbers, False, ids)


def _kind(pa: Any, t: Any) -> str:
    number: Callable[[Any], bool] = lambda x: pa.types.is_floating(x) or pa.types.is_integer(x)  # noqa: E731
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t):
        return "list" if number(t.value_type) else "other"
    if pa.types.is_string(t) or pa.types.is_large_string(t) or getattr(pa.types, "is_string_view", lambda _: False)(t):
        return "text"
    return "number" if number(t) else "other"


def _table(pa: Any, name: str, rows: int, chosen: Chosen, batches: Batches) -> EmbeddingTable:
    if rows == 0:
        raise LoadError(f"check: {name} has no rows; at least one embedding is needed.")
    columns = list(chosen.numbers)
    first = next(b for b in batches(columns, 16) if b.num_rows)
    width = _block(pa, first, chosen, name, 0, None).shape[1]

    def stream(size: int) -> Iterator[np.ndarray]:
        start = 0
        for batch in batches(columns, size):
            yield _block(pa, batch, chosen, name, start, width)
            start += batch.num_rows

    def ids() -> np.ndarray:
        parts = [b.column(0) for b in batches([str(chosen.ids)], 1 << 16)]
        return np.array([x for p in parts for x in p.to_pylist()], dtype=object)

    return EmbeddingTable(name, (rows, width), stream=stream, ids=ids if chosen.ids else None)


def _block(pa: Any, batch: Any, chosen: Chosen, name: str, start: int, width: int | None) -> np.ndarray:
    """A batch as an array; the first row that does not fit is named."""
    if not chosen.is_list:
        columns = [batch.column(i) for i in range(batch.num_columns)]
        for label, c in zip(chosen.numbers, columns, strict=True):
            if c.null_count:
                row = start + int(np.flatnonzero(c.is_null().to_numpy(zero_copy_only=False))[0])
                raise LoadError(f"check: row {row:,} of {name} has nothing in column {quoted(label)}; fill or drop it.")
        return np.column_stack([c.to_numpy(zero_copy_only=False) for c in columns])
    lists = batch.column(0)
    where = f"column {quoted(chosen.numbers[0])} of {name}"
    if lists.null_count:
        row = start + int(np.flatnonzero(lists.is_null().to_numpy(zero_copy_only=False))[0])
        raise LoadError(f"check: row {row:,} of {where} has no embedding; fill or drop it.")
    lengths = pa.compute.list_value_length(lists).to_numpy(zero_copy_only=False)
    wanted = width if width is not None else int(lengths[0]) if len(lengths) else 0
    unequal = np.flatnonzero(lengths != wanted)
    if len(unequal):
        i = int(unequal[0])
        raise LoadError(
            f"check: row {start + i:,} of {where} has {int(lengths[i]):,} numbers and the first row {wanted:,}; all "
            f"embeddings need one width, so embed them with one model."
        )
    values = lists.flatten()
    if values.null_count:
        row = start + int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0]) // max(wanted, 1)
        raise LoadError(f"check: row {row:,} of {where} has a number missing; fill or drop it.")
    return values.to_numpy(zero_copy_only=False).reshape(len(lengths), wanted)


def _opened(pa: Any, path: Path) -> tuple[Any, int, Batches]:
    """The schema of a file, its number of rows, and how its batches are read."""
    try:
        with path.open("rb") as f:
            magic = f.read(6)
        if magic[:4] == b"PAR1":
            import pyarrow.parquet as pq

            file = pq.ParquetFile(path, pre_buffer=False)
            return (
                file.schema_arrow,
                file.metadata.num_rows,
                lambda columns, size: file.iter_batches(batch_size=size, columns=columns, use_threads=False),
            )
        if magic == b"ARROW1":
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            count = sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))

            def stored() -> Iterator[Any]:
                return (reader.get_batch(i) for i in range(reader.num_record_batches))

            return reader.schema, count, lambda columns, size: _parts(stored(), columns, size)
        with pa.ipc.open_stream(pa.memory_map(str(path))) as stream:
            schema, count = stream.schema, sum(b.num_rows for b in stream)
        return schema, count, lambda columns, size: _parts(pa.ipc.open_stream(pa.memory_map(str(path))), columns, size)
    except (pa.ArrowException, OSError) as e:
        raise _cut(path, e) from None


def _parts(stored: Any, columns: list[str], size: int) -> Iterator[Any]:
    """Stored batches, only some columns, cut where they are longer than a block."""
    for batch in stored:
        some = batch.select(columns)
        for start in range(0, some.num_rows, size):
            yield some.slice(start, size)


def _cut(path: Path, e: Exception) -> LoadError:
    first = str(e).splitlines()[0] if str(e) else type(e).__name__
    return LoadError(
        f"check: {path.name} cannot be read as parquet or Arrow ({first[:160]}); it may be cut short, so write it anew."
    )
