"""Embeddings in Arrow's columns: a list column, or one column a dimension. Parquet and Arrow files, folders and frames.

A file is read a batch at a time, one file after the other; what is not a rectangle of numbers is named with its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
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
    for p, schema, _ in opened:
        lacking = [c for c in (*chosen.numbers, *([chosen.ids] if chosen.ids else [])) if c not in schema.names]
        if lacking:
            raise LoadError(
                f"check: {p.name} has no column {lacking[0]!r}, which {opened[0][0].name} has; give files of one kind."
            )

    parts = [(count, partial(_read, p, part)) for p, _, counts in opened for part, count in enumerate(counts)]
    seen = [(str(p.absolute()), p.stat().st_size, p.stat().st_mtime_ns) for p in paths]
    return _table(pa, name, parts, chosen, seen)


def of_arrow(table: Any, name: str, column: str | None, id_column: str | None) -> EmbeddingTable:
    """A table in memory."""
    pa = pyarrow(name)
    chosen = choose(pa, table.schema, name, column, id_column)
    every: Batches = lambda columns, size: iter(table.select(columns).to_batches(size))  # noqa: E731
    return _table(pa, name, [(table.num_rows, every)], chosen, None)


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


def _table(pa: Any, name: str, parts: list[tuple[int, Batches]], chosen: Chosen, known_by: Any) -> EmbeddingTable:
    """The table of some parts, each with its number of rows and how its batches are read."""
    parts = [(count, read) for count, read in parts if count]
    rows = sum(count for count, _ in parts)
    if rows == 0:
        raise LoadError(f"check: {name} has no rows; at least one embedding is needed.")
    columns = list(chosen.numbers)
    first = next(b for b in parts[0][1](columns, 16) if b.num_rows)
    width = _block(pa, first, chosen, name, 0, None).shape[1]
    ends = np.cumsum([count for count, _ in parts]).tolist()
    streams = {
        (end - count, end): partial(_stream, read, chosen, name, end - count, width)
        for end, (count, read) in zip(ends, parts, strict=True)
    }

    def ids() -> np.ndarray:
        found = [b.column(0) for _, read in parts for b in read([str(chosen.ids)], 1 << 16)]
        return np.array([x for p in found for x in p.to_pylist()], dtype=object)

    return EmbeddingTable(name, (rows, width), parts=streams, ids=ids if chosen.ids else None, known_by=known_by)


def _stream(read: Batches, chosen: Chosen, name: str, start: int, width: int, size: int) -> Iterator[np.ndarray]:
    """The rows of a part, which begins at row `start` of the table."""
    pa = pyarrow(name)
    for batch in read(list(chosen.numbers), size):
        yield _block(pa, batch, chosen, name, start, width)
        start += batch.num_rows


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


def _opened(pa: Any, path: Path) -> tuple[Any, list[int]]:
    """The schema of a file, and the rows of each part of it that can be read by itself."""
    try:
        kind = _kind_of_file(path)
        if kind == "parquet":
            import pyarrow.parquet as pq

            about = pq.ParquetFile(path, pre_buffer=False)
            groups = [about.metadata.row_group(k).num_rows for k in range(about.metadata.num_row_groups)]
            return about.schema_arrow, groups
        if kind == "file":
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            return reader.schema, [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        with pa.ipc.open_stream(pa.memory_map(str(path))) as stream:
            return stream.schema, [sum(b.num_rows for b in stream)]
    except (pa.ArrowException, OSError) as e:
        raise _cut(path, e) from None


def _read(path: Path, part: int, columns: list[str], size: int) -> Iterator[Any]:
    """The batches of one part of a file, opened anew: a worker has only its name."""
    pa = pyarrow(path.name)
    try:
        kind = _kind_of_file(path)
        if kind == "parquet":
            import pyarrow.parquet as pq

            file = pq.ParquetFile(path, pre_buffer=False)
            yield from file.iter_batches(batch_size=size, row_groups=[part], columns=columns, use_threads=False)
        elif kind == "file":
            yield from _parts([pa.ipc.open_file(pa.memory_map(str(path))).get_batch(part)], columns, size)
        else:
            yield from _parts(pa.ipc.open_stream(pa.memory_map(str(path))), columns, size)
    except (pa.ArrowException, OSError) as e:
        raise _cut(path, e) from None


def _kind_of_file(path: Path) -> str:
    with path.open("rb") as f:
        magic = f.read(6)
    return "parquet" if magic[:4] == b"PAR1" else "file" if magic == b"ARROW1" else "stream"


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
