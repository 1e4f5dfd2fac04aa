"""Whatever a user has as a table of embeddings: files, folders, globs, arrays, frames, indexes."""

from __future__ import annotations

import glob
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError, LoadError, missing_extra
from gonio.core.head import Head
from gonio.core.npy_file import read_npy
from gonio.core.npz_archive import NpzArchive
from gonio.core.readable_label import quoted
from gonio.embeddings.arrow_columns import of_arrow, of_files, pyarrow
from gonio.embeddings.embedding_table import EmbeddingTable
from gonio.embeddings.text_rows import of_csv, of_jsonl
from gonio.models import load

ARROW = (".parquet", ".arrow", ".feather", ".ipc", ".pq")
IDS = ("ids", "id", "labels", "keys")


def table_of(source: Any, *, column: str | None = None, id: str | None = None, ids: Any = None) -> EmbeddingTable:
    """A table of embeddings, wherever it lies; of files no more than a block is read at a time.

    Parameters
    ----------
    source : a path (npy, npz, parquet, arrow, csv, jsonl, safetensors, word vectors, a faiss index), a folder or glob
        of parquet files, a folder of a model (its table of tokens, or its head), a `gonio.Head`, a numpy or torch
        array, a pandas or polars frame, a pyarrow table, a faiss index
    column : the column, field, entry or tensor that holds the embeddings, where several could
    id : the column or field that names the rows
    ids : the names themselves, one a row

    >>> table_of(np.eye(3), ids=["a", "b", "c"]).shape
    (3, 3)
    """
    table = _opened(source, column, id)
    if isinstance(source, (str, Path)):
        table.place = str(source)
    if ids is None:
        return table
    held = np.array([str(x) for x in ids], dtype=object)
    return EmbeddingTable(
        table.name, table.shape, fetch=table._fetch, parts=table._parts, ids=lambda: held, known_by=table._known_by
    )


def _opened(source: Any, column: str | None, id_column: str | None) -> EmbeddingTable:
    if isinstance(source, EmbeddingTable):
        return source
    if isinstance(source, Head):
        return _of_head(source, "the head")
    if isinstance(source, (str, Path)):
        return _of_path(str(source), column, id_column)
    if hasattr(source, "reconstruct_n") and hasattr(source, "ntotal"):
        return _of_faiss(source, "a faiss index")
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        pa = pyarrow("a pandas frame")
        source = source.rename(columns=str)
        if id_column is None and not isinstance(source.index, pandas.RangeIndex) and "id" not in source.columns:
            source, id_column = source.rename_axis(index="id").reset_index(), "id"
        try:
            return of_arrow(pa.Table.from_pandas(source, preserve_index=False), "the frame", column, id_column)
        except pa.ArrowException as e:
            raise LoadError(
                f"check: the frame has a column of mixed kinds ({str(e)[:120]}); one kind is needed."
            ) from None
    if hasattr(source, "to_batches") and hasattr(source, "schema"):
        return of_arrow(source, "the table", column, id_column)
    if hasattr(source, "__arrow_c_stream__"):
        return of_arrow(pyarrow("a frame").table(source), "the frame", column, id_column)
    if hasattr(source, "detach") and hasattr(source, "cpu"):
        source = source.detach().cpu()
        source = source.float().numpy() if "bfloat16" in str(source.dtype) else source.numpy()
    return _of_array(source, "the array")


def _of_array(x: Any, name: str, ids: np.ndarray | None = None) -> EmbeddingTable:
    try:
        a = x if isinstance(x, np.ndarray) else np.asarray(x)
    except ValueError:
        raise LoadError(f"check: {name} has rows of unequal length; all embeddings need one width.") from None
    if a.dtype.kind not in "biu":
        a = checks.array(a, "check", name)
    if a.ndim != 2:
        raise LoadError(f"check: {name} has shape {a.shape}; two axes (rows, dim) are needed.")
    return EmbeddingTable(
        name, a.shape, fetch=lambda s, e: a[s:e], ids=None if ids is None else lambda: ids.astype(object), known_by=a
    )


def _of_path(path: str, column: str | None, id_column: str | None) -> EmbeddingTable:
    place = Path(path)
    if any(c in path for c in "*?[") and not place.exists():
        found = sorted(Path(x) for x in glob.glob(path, recursive=True))
        if not found:
            raise LoadError(f"check: no file matches {path}; give a pattern that matches parquet files.")
        return of_files(found, path, column, id_column)
    if place.is_dir():
        found = sorted(p for p in place.rglob("*") if p.suffix.lower() in ARROW and not p.name.startswith((".", "_")))
        if not found and (place / "config.json").is_file():
            return _of_head(load(place, tensor=column), place.name)
        if not found:
            raise LoadError(f"check: {place} holds no parquet file; give a file, or a folder of parquet files.")
        return of_files(found, place.name, column, id_column)
    if not place.is_file():
        raise LoadError(f"check: there is no file {place}; give a table of embeddings.")
    if place.stat().st_size == 0:
        raise LoadError(f"check: {place.name} is empty; a table of embeddings is needed.")
    ending = place.suffix.lower()
    if ending in ARROW:
        return of_files([place], place.name, column, id_column)
    if ending == ".npy":
        return _of_array(read_npy(place, "check"), place.name)
    if ending == ".npz":
        return _of_npz(place, column)
    if ending in (".csv", ".tsv"):
        return of_csv(place, column, id_column)
    if ending in (".jsonl", ".ndjson"):
        return of_jsonl(place, column, id_column)
    if ending in (".faiss", ".index"):
        faiss = _faiss()
        try:
            return _of_faiss(faiss.read_index(str(place)), place.name)
        except RuntimeError as e:
            raise LoadError(f"check: {place.name} is no faiss index ({str(e).splitlines()[-1][:120]}).") from None
    return _of_head(load(place, link="cosine", tensor=column), place.name)


def _of_head(head: Head, name: str) -> EmbeddingTable:
    """The rows of a head, or of a model's own table of tokens, named by its labels."""
    ids = (lambda: np.array(head.labels, dtype=object)) if head.named else None
    return EmbeddingTable(name, head.shape, fetch=lambda s, e: head.rows[s:e], ids=ids, known_by=head.digest)


def _of_npz(path: Path, column: str | None) -> EmbeddingTable:
    archive = NpzArchive(path)
    arrays = {x: archive.read(x) for x in archive.entries if column is None or x == column or x in IDS}
    tables = [x for x, a in arrays.items() if a.ndim == 2 and a.dtype.kind in "fiub"]
    if column is not None and column not in arrays:
        raise LoadError(f"check: {path.name} has no entry {quoted(column)}; it has {', '.join(archive.entries)}.")
    if column is None and len(tables) != 1:
        has = ", ".join(f"{x} {a.shape}" for x, a in arrays.items())
        raise LoadError(f"check: {path.name} has {len(tables)} tables of numbers ({has}); name one with --column.")
    name = column or tables[0]
    ids = next((a for x, a in arrays.items() if x in IDS and x != name and a.ndim == 1), None)
    return _of_array(arrays[name], path.name, ids)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise missing_extra("check: a faiss index", "faiss-cpu", "faiss") from None
    return faiss


def _of_faiss(index: Any, name: str) -> EmbeddingTable:
    try:
        index.reconstruct_n(0, 1)
    except Exception as e:
        raise GonioError(
            f"check: {name} ({type(index).__name__}) cannot give its vectors back ({str(e).splitlines()[-1][:80]}); "
            f"give the embeddings it was made of."
        ) from None
    return EmbeddingTable(name, (index.ntotal, index.d), fetch=lambda s, e: index.reconstruct_n(int(s), int(e - s)))
