"""A saved remedy applied to a table, a block at a time: .npy without ids, parquet with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.atomic_write import whole
from gonio.core.errors import GonioError
from gonio.embeddings.arrow_columns import pyarrow
from gonio.embeddings.embedding_table import EmbeddingTable
from gonio.embeddings.open_table import table_of
from gonio.files.write.npy_rows import save_rows
from gonio.remedies import Remedy, load


def apply_remedy(remedy: Any, source: Any, out: str | Path, *, column: str | None = None, id: str | None = None) -> int:
    """Write the changed rows of a table to a .npy or .parquet file; how many there are.

    `remedy` is a fitted remedy or the file it was saved in, `source` anything that `table_of` reads.
    """
    fitted = remedy if isinstance(remedy, Remedy) else load(remedy)
    table = table_of(source, column=column, id=id)
    if table.shape[1] != fitted.n_features_in_:
        raise GonioError(
            f"apply: {table.name} has width {table.shape[1]} and the remedy was fitted on width "
            f"{fitted.n_features_in_}; give embeddings of the same model."
        )
    out = Path(out)
    if out.suffix == ".npy":
        save_rows(
            out, (b for _, b in _changed(fitted, table)), lambda: np.zeros((0, table.shape[1]), np.float32), "apply"
        )
    elif out.suffix == ".parquet":
        _parquet(out, fitted, table)
    else:
        raise GonioError(f"apply: {out.name} is to be written; a name that ends in .npy or .parquet is needed.")
    return len(table)


def _changed(fitted: Remedy, table: EmbeddingTable) -> Iterator[tuple[int, np.ndarray]]:
    for start, block in table.blocks():
        bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
        if len(bad):
            raise GonioError(f"apply: row {start + int(bad[0]):,} of {table.name} is not finite; mend or drop it.")
        yield start, np.asarray(fitted.transform(block), np.float32)


def _parquet(out: Path, fitted: Remedy, table: EmbeddingTable) -> None:
    pa = pyarrow("apply")
    import pyarrow.parquet as pq

    with whole(out, "apply") as temporary:
        writer = None
        for start, block in _changed(fitted, table):
            lists = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), block.shape[1])
            part = pa.table({"id": pa.array(table.ids[start : start + len(block)].tolist()), "embedding": lists})
            if writer is None:
                writer = pq.ParquetWriter(temporary, part.schema)
            writer.write_table(part)
        assert writer is not None
        writer.close()
