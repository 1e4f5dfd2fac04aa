"""Columns saved as CSV, JSON or Parquet, by the ending of the file's name."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any, TextIO

from gonio.core.atomic_write import whole
from gonio.core.errors import GonioError, missing_extra


def save(columns: dict[str, list[Any]], path: str | Path) -> Path:
    """Write columns of equal length; the ending decides: .csv, .json or .parquet. "-" prints CSV."""
    path = Path(path)
    if str(path) == "-":
        _rows(columns, sys.stdout)
        return path
    writers = {".csv": _csv, ".json": _json, ".parquet": _parquet}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise GonioError(f"save: {path} ends in {path.suffix or 'nothing'!r}; choose .csv, .json or .parquet.")
    with whole(path, "save") as temporary:
        writer(columns, temporary)
    return path


def _csv(columns: dict[str, list[Any]], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as f:
        _rows(columns, f)


def _rows(columns: dict[str, list[Any]], f: TextIO) -> None:
    writer = csv.writer(f)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


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
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
