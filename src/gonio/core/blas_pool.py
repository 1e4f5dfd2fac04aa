"""A thread pool whose threads call single-threaded BLAS: no barriers inside a product, Ctrl-C between pieces."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from gonio.core.parallel import cores, one_blas_thread

Report = Callable[[int, int, str], None]  # labels decided, labels asked, what is being done


class BlasPool:
    """A pool of threads for the length of one question; use it as a context manager."""

    def __init__(self) -> None:
        self.size = cores()
        self.local = threading.local()

    def __enter__(self) -> BlasPool:
        self.limits = one_blas_thread()
        self.limits.__enter__()
        self.pool = ThreadPoolExecutor(self.size)
        return self

    def __exit__(self, *_: Any) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.limits.__exit__(None, None, None)

    def run(
        self, job: Callable[[Any], Any], items: Iterable[Any], after: Callable[[], None] | None = None
    ) -> list[Any]:
        """`job` on every item, results in order; `after` is called in the caller's thread as pieces are finished.

        An interrupt drops what has not begun, waits for what has, and is raised again.
        """

        def quietly(x: Any) -> Any:
            with np.errstate(all="ignore"):  # a thread starts with numpy's own settings, whatever its parent's are
                return job(x)

        if self.size < 2:
            return list(self._here(quietly, items, after))
        futures: list[Future] = [self.pool.submit(quietly, x) for x in items]
        try:
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, timeout=0.2 if after else None, return_when=FIRST_COMPLETED)
                for f in done:
                    f.result()
                if after:
                    after()
        except BaseException:
            for f in futures:
                f.cancel()
            wait(futures)
            raise
        return [f.result() for f in futures]

    def _here(self, job: Callable[[Any], Any], items: Iterable[Any], after: Callable[[], None] | None) -> Iterator[Any]:
        """The same in the caller's own thread."""
        for x in items:
            yield job(x)
            if after:
                after()

    def buffer(self, name: str, size: int, kind: type = np.float32) -> np.ndarray:
        """A scratch array of this thread, kept from piece to piece."""
        return buffer(name, size, self.local, kind)


_local = threading.local()


def buffer(name: str, size: int, local: threading.local = _local, kind: type = np.float32) -> np.ndarray:
    """A scratch array of this thread, kept from piece to piece."""
    held = getattr(local, name, None)
    if held is None or len(held) < size:
        held = np.empty(size, kind)
        setattr(local, name, held)
    return held[:size]


def product(a: np.ndarray, b: np.ndarray, local: threading.local = _local) -> np.ndarray:
    """a @ b.T of float32 rows, in memory of this thread that the next product is written to.

    Fresh memory for each product costs as much again where it goes back to the system at once, as in dask's workers.
    """
    out = buffer("product", len(a) * len(b), local).reshape(len(a), len(b))
    return np.matmul(a, b.T, out=out)
