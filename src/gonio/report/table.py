"""Columns saved as CSV, JSON or Parquet, by the ending of the file's name."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

from gonio.core.atomic_write import whole
from gonio.core.errors import GonioError, missing_extra

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def save(columns: dict[str, list[Any]], path: str | Path, *, raw: bool = False) -> Path:
    """Write columns of equal length; the ending decides: .csv, .json or .parquet. "-" prints CSV.

    In CSV a text that begins like a formula gets an apostrophe in front, as spreadsheets want it, unless `raw`.
    """
    path = Path(path)
    if str(path) == "-":
        sys.stdout.write(_rows(columns, raw))
        return path
    writers = {".csv": partial(_csv, raw=raw), ".json": _json, ".parquet": _parquet}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise GonioError(f"save: {path} ends in {path.suffix or 'nothing'!r}; choose .csv, .json or .parquet.")
    with whole(path, "save") as temporary:
        writer(columns, temporary)
    return path


def _csv(columns: dict[str, list[Any]], path: Path, raw: bool) -> None:
    path.write_bytes(_rows(columns, raw).encode("utf-8"))


def _rows(columns: dict[str, list[Any]], raw: bool) -> str:
    f = io.StringIO(newline="")
    writer = csv.writer(f)
    writer.writerow(columns)
    cells = ([_cell(x, raw) for x in column] for column in columns.values())
    writer.writerows(zip(*cells, strict=True))
    return f.getvalue()


def _cell(x: Any, raw: bool) -> Any:
    """A cell of a CSV file: text that a spreadsheet would take for a formula begins with an apostrophe."""
    if not isinstance(x, str):
        return x
    text = _encodable(x)
    return f"'{text}" if text.startswith(FORMULA) and not raw else text


def _encodable(text: str) -> str:
    """A text with half of a surrogate pair, which no encoding has, as its escape."""
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")


def _json(columns: dict[str, list[Any]], path: Path) -> None:
    # JSON has no infinity: an absent bound is null.
    plain = {k: [None if isinstance(x, float) and not math.isfinite(x) else x for x in v] for k, v in columns.items()}
    path.write_text(json.dumps(plain, ensure_ascii=False), encoding="utf-8", errors="backslashreplace")


def _parquet(columns: dict[str, list[Any]], path: Path) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise missing_extra("save", "pyarrow", "arrow") from None
    plain = {k: [_encodable(x) if isinstance(x, str) else x for x in v] for k, v in columns.items()}
    pyarrow.parquet.write_table(pyarrow.table(plain), path)
