"""A dask cluster and a state folder against threads alone, and a table larger than memory against reading it."""

from __future__ import annotations

import contextlib
import logging
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import gonio
from benchmarks import Case, Cases
from benchmarks.scale import counted_bytes
from gonio.core.head import Head
from gonio.core.run_state import resumable
from gonio.listing.arrangement import arrange
from gonio.listing.cell_list import CellList
from gonio.similarity.nearest import nearest_by_cosine


@contextlib.contextmanager
def two_workers() -> Iterator[Callable[[], Any]]:
    """Two dask workers of one thread each; what is given back makes a context in which they do the work."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield lambda: joblib.parallel_config(backend="dask", client=client)


def cases(toy: bool) -> Cases:
    try:
        import distributed  # noqa: F401
    except ImportError:
        yield from _large_table(toy)
        return
    rng = np.random.default_rng(0)
    n, d = (600, 16) if toy else (30_522, 384)
    W = rng.standard_normal((n, d)).astype(np.float32) * rng.uniform(0.5, 2, (n, 1)).astype(np.float32)
    head = Head(W, link="softmax")
    few = Head(W[: max(20, n // 20)], link="softmax")
    planes = 14 if toy else 78
    rows = rng.integers(-9, 10, (planes, 6)).astype(object)
    with two_workers() as workers, tempfile.TemporaryDirectory() as folder:

        def there(work: Callable[[], Any]) -> Any:
            with workers():
                return work()

        def verdicts(h: Head = head) -> np.ndarray:
            return gonio.can_win(h).codes

        def cells() -> int:
            return sum(CellList(arrange([[int(x) for x in row] for row in rows]), general=False).piece_counts)

        def kept() -> np.ndarray:
            place = Path(folder) / "state"
            with resumable(place, head):
                found = verdicts()
            shutil.rmtree(place)
            return found

        there(lambda: verdicts(few))  # start-up: imports and compiled loops
        there(lambda: CellList(arrange([[1, 0, 2], [0, 1, 1], [1, 1, 1], [2, 1, 3]]), general=False).piece_counts)

        def bytes_per(work: Callable[[], Any], of: int, what: str) -> dict[str, float]:
            with counted_bytes() as wire, workers():
                work()
            return {f"sent_bytes_per_{what}": wire[0] / of, f"returned_bytes_per_{what}": wire[1] / of}

        yield Case(
            f"can_win of {n:,} x {d} by two dask workers, against two threads",
            lambda: there(verdicts), verdicts, np.array_equal, most=1.25,
            extra=lambda: bytes_per(verdicts, n, "label"),
        )  # fmt: skip
        yield Case(
            f"neighbours of {n:,} x {d} by two dask workers, against two threads",
            lambda: there(lambda: nearest_by_cosine(head.rows, 10)[0]), lambda: nearest_by_cosine(head.rows, 10)[0],
            np.array_equal, most=1.5, extra=lambda: bytes_per(lambda: nearest_by_cosine(head.rows, 10), n, "row"),
        )  # fmt: skip
        yield Case(
            f"{cells():,} cells counted by two dask workers, against two threads",
            lambda: there(cells), cells, lambda a, b: a == b, most=1.25, repeats=3,
        )  # fmt: skip
        yield Case(
            f"can_win of {n:,} x {d} with a state folder, against none", kept, verdicts, np.array_equal, most=1.05
        )
    yield from _large_table(toy)


def _large_table(toy: bool) -> Cases:
    rows, dim, asked = (5000, 16, 100) if toy else (10_000_000, 64, 2000)
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.npy"
        out = np.lib.format.open_memmap(path, "w+", np.float16, (rows, dim))
        for s in range(0, rows, 500_000):
            part = out[s : s + 500_000]
            part[:] = rng.standard_normal(part.shape, dtype=np.float32)
        out.flush()
        del out

        def read_twice() -> int:
            for _ in range(2):
                for _, block in gonio.embeddings.table_of(str(path)).blocks():
                    block.sum()
            return rows

        yield Case(
            f"check of {rows:,} x {dim} float16 with {asked:,} sampled rows, against reading it twice",
            lambda: gonio.check(str(path), sample=asked).about["shape"][0], read_twice, lambda a, b: a == b, most=3.0,
            repeats=1, extra=lambda: {"resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024},
        )  # fmt: skip
