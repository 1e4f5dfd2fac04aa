"""Embeddings written as text, a row a line: CSV (a column a dimension, or one with lists) and JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.errors import LoadError
from gonio.core.readable_label import quoted
from gonio.embeddings.arrow_columns import ID_NAMES, VECTOR_NAMES
from gonio.embeddings.embedding_table import EmbeddingTable

Row = tuple[Any, list[Any]]  # its id, or None, and its numbers


def of_csv(path: Path, column: str | None, id_column: str | None) -> EmbeddingTable:
    """A CSV file with one row a line; the first line names the columns unless it is all numbers."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as f:
        rows = csv.reader(f)
        head, first = next(rows, None), next(rows, None)
    if head is None:
        raise LoadError(f"check: {path.name} is empty; rows of numbers are needed.")
    named = not all(_is_number(x) for x in head)
    if not named and (column is not None or id_column is not None):
        raise LoadError(f"check: {path.name} begins with numbers and so names no column; leave --column and --id away.")
    if named and first is None:
        raise LoadError(f"check: {path.name} has a line of names and no row; at least one embedding is needed.")
    sample = dict(zip(head, first, strict=False)) if named and first is not None else {}
    for said, option in ((column, "--column"), (id_column, "--id")):
        if said is not None and said not in sample:
            known = ", ".join(quoted(x) for x in head[:6])
            raise LoadError(
                f"check: {path.name} has no column {quoted(said)}; it has {known}, so name one with {option}."
            )
    ids = id_column or next((x for x in ID_NAMES if x in sample), None)
    lists = [column] if column is not None else [x for x, v in sample.items() if v.lstrip().startswith("[")]
    if column is not None and not sample[column].lstrip().startswith("["):
        raise LoadError(
            f"check: column {quoted(column)} of {path.name} holds {quoted(sample[column][:30])}; lists of numbers such "
            f"as [0.1, 0.2] are needed."
        )
    if len(lists) > 1:
        raise LoadError(f"check: {path.name} has several columns of lists; name the embeddings with --column.")
    at = {x: i for i, x in enumerate(head)} if named else {}
    if lists:
        where = [at[lists[0]]]
    elif named:
        where = [at[x] for x, v in sample.items() if x != ids and _is_number(v)]
    else:
        where = list(range(len(head)))
    if not where:
        raise LoadError(f"check: {path.name} has no column of numbers; embed its texts first.")

    def read() -> Iterator[Row]:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as f:
            lines = csv.reader(f)
            if named:
                next(lines)
            for line in lines:
                if line:
                    values = _listed(line[where[0]]) if lists else [line[i] for i in where if i < len(line)]
                    yield (line[at[ids]] if ids is not None and at[ids] < len(line) else None), values

    return _table(path, read, ids is not None)


def of_jsonl(path: Path, column: str | None, id_column: str | None) -> EmbeddingTable:
    """A file with one JSON object (or list) a line."""

    def lines() -> Iterator[Any]:
        with path.open(encoding="utf-8", errors="replace") as f:
            for number, line in enumerate(f, 1):
                if line.strip():
                    try:
                        yield json.loads(line)
                    except json.JSONDecodeError as e:
                        raise LoadError(
                            f"check: line {number:,} of {path.name} is not JSON ({e.msg}); mend it."
                        ) from None

    first = next(lines(), None)
    if first is None:
        raise LoadError(f"check: {path.name} is empty; one JSON object a line is needed.")
    if isinstance(first, list):
        return _table(path, lambda: ((None, x) for x in lines()), False)
    if not isinstance(first, dict):
        raise LoadError(
            f"check: the first line of {path.name} is a {type(first).__name__}; an object or list is needed."
        )
    fields = [x for x, v in first.items() if isinstance(v, list)]
    liked = [x for x in fields if x.lower() in VECTOR_NAMES]
    field = column or (fields[0] if len(fields) == 1 else liked[0] if len(liked) == 1 else None)
    ids = id_column or next((x for x in ID_NAMES if x in first and x != field), None)
    for said, option in ((field, "--column"), (id_column, "--id")):
        if said is not None and said not in first:
            known = ", ".join(map(quoted, first))
            raise LoadError(
                f"check: {path.name} has no field {quoted(said)}; it has {known}, so name one with {option}."
            )
    if field is None or not isinstance(first[field], list):
        raise LoadError(
            f"check: {path.name} has the fields {', '.join(map(quoted, first))}, of which "
            f"{'none is' if not fields else 'several are'} a list of numbers; name the embeddings with --column."
        )

    def read() -> Iterator[Row]:
        for number, x in enumerate(lines()):
            if not isinstance(x, dict) or not isinstance(x.get(field), list):
                raise LoadError(
                    f"check: row {number:,} of {path.name} has no list {quoted(str(field))}; fill or drop it."
                )
            yield (x.get(ids) if ids is not None else None), x[field]

    return _table(path, read, ids is not None)


def _table(path: Path, read: Callable[[], Iterator[Row]], has_ids: bool) -> EmbeddingTable:
    """Count the rows, in one pass that looks at their widths, then stream them."""
    rows = width = 0
    names: list[Any] = []
    for name, values in read():
        if not isinstance(values, list):
            raise LoadError(f"check: row {rows:,} of {path.name} is a {type(values).__name__}; a list is needed.")
        width = width or len(values)
        if len(values) != width:
            raise LoadError(
                f"check: row {rows:,} of {path.name} has {len(values):,} numbers and the first row {width:,}; all "
                f"embeddings need one width, so embed them with one model."
            )
        if has_ids:
            names.append(name)
        rows += 1
    if not rows or not width:
        raise LoadError(f"check: {path.name} holds no numbers; at least one embedding is needed.")

    def stream(size: int) -> Iterator[np.ndarray]:
        held: list[list[float]] = []
        start = 0
        for _, values in read():
            held.append(values)
            if len(held) == size:
                yield _numbers(held, start, path)
                start, held = start + size, []
        if held:
            yield _numbers(held, start, path)

    return EmbeddingTable(
        path.name, (rows, width), stream=stream, ids=(lambda: np.array(names, dtype=object)) if has_ids else None
    )


def _numbers(held: list[list[float]], start: int, path: Path) -> np.ndarray:
    try:
        a = np.array(held, dtype=np.float32)
        if a.ndim == 2 and not (np.isnan(a).any() and any(None in x for x in held)):
            return a
    except (ValueError, TypeError):
        pass
    for i, values in enumerate(held):
        for v in values:
            if isinstance(v, (list, dict, bool)) or v is None or not _is_number(str(v)):
                raise LoadError(
                    f"check: row {start + i:,} of {path.name} holds {quoted(str(v)[:30])} among its numbers; mend or "
                    f"drop it."
                ) from None
    raise LoadError(f"check: {path.name} holds rows that are no numbers from row {start:,} on; mend or drop them.")


def _listed(text: str) -> list[Any]:
    """The numbers of '[0.1, 0.2]', also with spaces only between them, as numpy prints them."""
    return text.strip().strip("[]").replace(",", " ").split()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
