"""Lists of queries against faiss, and a whole check of a parquet file against reading it and one product."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path

import numpy as np

import gonio
from benchmarks import Case, Cases
from gonio.embeddings import table_of
from gonio.embeddings.query_lists import query_lists
from gonio.embeddings.scorers import metric_scorer


def cases(toy: bool) -> Cases:
    n, dim, q = (2000, 24, 100) if toy else (200_000, 384, 10_000)
    rng = np.random.default_rng(0)
    X, Q = (rng.standard_normal((m, dim), dtype=np.float32) for m in (n, q))

    def flat() -> np.ndarray:
        """faiss's exact inner-product index, or where it is not installed a product and a partial sort."""
        try:
            import faiss  # type: ignore[import-not-found]
        except ImportError:
            return np.concatenate([np.argsort(-(Q[s : s + 100] @ X.T), axis=1)[:, :10] for s in range(0, q, 100)])
        index = faiss.IndexFlatIP(dim)
        index.add(X)
        return index.search(Q, 10)[1]

    yield Case(
        f"10 best of {n:,} x {dim} for {q:,} queries, against a flat inner-product index",
        lambda: query_lists(table_of(X), [metric_scorer("dot", Q)], 10)["dot"].near,
        flat,
        lambda a, b: bool(np.mean(a == b) > 0.999),  # near-equals may swap in float32
        most=1.3,
        repeats=1,
    )
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return
    rows, asked = (3000, 100) if toy else (2_000_000, 2000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "half.parquet"
        kind = pa.list_(pa.float16(), dim)
        with pq.ParquetWriter(path, pa.schema([("embedding", kind)]), compression="none") as out:
            for s in range(0, rows, 20_000):
                block = rng.standard_normal((min(20_000, rows - s), dim), dtype=np.float32).astype(np.float16)
                out.write_table(
                    pa.table({"embedding": pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), dim)})
                )
        some = rng.standard_normal((asked, dim), dtype=np.float32)

        def read_once() -> int:
            seen = 0
            for _, block in table_of(path).blocks():
                seen += (some @ block.T).shape[1]
            return seen

        yield Case(
            f"check of {rows:,} x {dim} in float16 parquet with a sample of {asked:,}, against reading and one product",
            lambda: gonio.check(path, sample=asked).about["shape"][0],
            read_once,
            lambda a, b: a == b,
            most=3.0,
            repeats=1,
            extra=lambda: {"peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6},
        )
