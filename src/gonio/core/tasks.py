"""The one seam through which heavy work leaves its thread: threads here, or whatever backend joblib is set to.

    with joblib.parallel_config(backend="dask"): gonio.can_win(head)

A plan is a list of items and a function of (shared, item); it does not depend on who does the work, so neither do the
results. Without a backend the items go to the threads of this process. With one, what is shared is written once to a
scratch folder (`shared_files`) and a task carries its place and the item. Finished items are kept in the state folder
where there is one (`run_state`), and are not done again.
"""

from __future__ import annotations

import logging
import pickle
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from gonio.core import run_state
from gonio.core.errors import GonioError
from gonio.core.parallel import cores, one_blas_thread, one_of_several
from gonio.core.shared_files import CannotShareError, Place, shared
from gonio.core.version import __version__
from gonio.core.worker_faults import sentence

FIRST_WORKER = 10  # seconds that a cluster without workers is given
Work = Callable[[Any, Any], Any]
Each = Callable[[int, Any], None]
Finished = Generator[tuple[int, Any], None, None]


def run(
    name: str,
    work: Work,
    context: Any,
    items: Iterable[Any],
    *,
    key: Sequence[Any] | None = None,
    wide: bool = False,
    each: Each | None = None,
    after: Callable[[], None] | None = None,
    held: bool = True,
) -> list[Any]:
    """`work(context, item)` for every item, results in order.

    name    what is done, in a word or two
    work    a function of a module: workers find it by its name
    key     what the results depend on beside the items: numbers, text and arrays. Kept results are found by it;
            without it none are kept
    wide    the work splits itself over the threads of a process, so here one item is done at a time
    each    called with the number of an item and its result as they come, in the caller's thread
    after   called now and then in the caller's thread
    held    whether results are given back; if not, `each` alone sees them, and None stands in their place
    """
    items = list(items)
    out: list[Any] = [None] * len(items)
    kept = run_state.blocks(name, key, items)

    def take(k: int, result: Any) -> None:
        out[k] = result if held else None
        if each:
            each(k, result)

    left = []
    for k, item in enumerate(items):
        found = kept.read(k) if kept else None
        if found is None:
            left.append((k, item))
        else:
            take(k, found)
    finished = _finished(name, work, context, left, wide, after)
    try:
        with closing(finished):
            for k, result in finished:
                if kept:
                    kept.write(k, result)
                take(k, result)
                if after:
                    after()
    except BaseException:
        run_state.broken()
        raise
    return out


def in_this_process() -> bool:
    """Whether work stays in the threads of this process: no backend of joblib is set that goes elsewhere."""
    joblib = sys.modules.get("joblib")  # where nobody has imported it, nobody has set a backend
    if joblib is None or _working():
        return True
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")  # threads, unless something else was asked for
    return bool(getattr(backend, "supports_sharedmem", False))


def plain(steps: float) -> bool:
    """Whether work of so many multiplications needs no plan: it stays in this process, and no block of it is kept."""
    return in_this_process() and not run_state.active(steps)


def _working() -> bool:
    return getattr(_worker, "tasks", 0) > 0


def _finished(
    name: str, work: Work, context: Any, left: list[tuple[int, Any]], wide: bool, after: Callable[[], None] | None
) -> Finished:
    """The items and their results as they are finished, wherever that is."""
    if left and not in_this_process():
        try:
            yield from _by_joblib(name, work, context, left)
            return
        except CannotShareError as e:
            logging.getLogger("gonio").warning("%s: done in this process, for workers cannot be given it (%s)", name, e)
    yield from _in_threads(work, context, left, wide, after)


def _in_threads(
    work: Work, context: Any, left: list[tuple[int, Any]], wide: bool, after: Callable[[], None] | None
) -> Finished:
    if wide or len(left) < 2 or cores() < 2:
        for k, item in left:
            with one_blas_thread(), np.errstate(all="ignore"):
                result = work(context, item)
            yield k, result
        return

    def one(k: int, item: Any) -> tuple[int, Any]:
        with one_of_several(), np.errstate(all="ignore"):  # a thread starts with numpy's own settings
            return k, work(context, item)

    with one_blas_thread(), ThreadPoolExecutor(min(cores(), len(left))) as pool:
        waiting = {pool.submit(one, k, item) for k, item in left}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.2 if after else None, return_when=FIRST_COMPLETED)
                for f in done:
                    yield f.result()
                if after:
                    after()
        finally:
            for f in waiting:
                f.cancel()


def _by_joblib(name: str, work: Work, context: Any, left: list[tuple[int, Any]]) -> Finished:
    import joblib

    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    with shared(context) as place:
        # As bytes: joblib would have an array scattered to one of the workers, where it is lost with it.
        calls = [(place, work, k, pickle.dumps(item), __version__) for k, item in left]
        try:
            if "client" in vars(backend):
                yield from _by_dask(vars(backend)["client"], calls)
            else:
                lazily = getattr(backend, "supports_return_generator", False)
                settings: Any = {"batch_size": 1, "pre_dispatch": "all"}
                parallel = joblib.Parallel(**settings, return_as="generator_unordered" if lazily else "list")
                jobs: Any = parallel(joblib.delayed(_task)(*call) for call in calls)
                yield from jobs
        except GonioError:
            raise
        except Exception as e:
            told = sentence(e, name)
            if told is None:
                raise
            raise GonioError(told) from None


def _by_dask(client: Any, calls: list[tuple[Any, ...]]) -> Finished:
    """The calls by the client of joblib's dask backend itself.

    joblib's own loop does by itself what it would send to a single core, never hears of a task whose workers died each
    time (KilledWorker), and waits for ever where a worker dies with a result that was not fetched yet.
    """
    from distributed import as_completed

    if not client.ncores():
        try:
            client.wait_for_workers(1, timeout=FIRST_WORKER)
        except TimeoutError:
            raise GonioError(
                f"workers: the cluster has had no worker for {FIRST_WORKER} seconds; start some: dask worker ADDRESS"
            ) from None
    waiting = {client.submit(_task, *call, pure=False) for call in calls}
    try:
        for future in as_completed(waiting):
            yield future.result()
            waiting.discard(future)  # its result need not be kept by the workers
    finally:
        if waiting and client.status == "running":
            client.cancel(list(waiting))


_worker = threading.local()
_blas_lock = threading.Lock()
_blas_users = 0
_blas_limits: Any = None


@contextmanager
def _single_blas() -> Iterator[None]:
    """One thread for BLAS as long as any task runs in this process: tasks begin and end in any order."""
    global _blas_users, _blas_limits
    with _blas_lock:
        if not _blas_users:
            _blas_limits = one_blas_thread()
            _blas_limits.__enter__()
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if not _blas_users:
                _blas_limits.__exit__(None, None, None)


def _task(place: Place, work: Work, k: int, item: bytes, version: str) -> tuple[int, Any]:
    """One item, in a process of the cluster."""
    if version != __version__:
        raise GonioError(
            f"workers: this is gonio {version} and the worker has {__version__}; install the same version on both."
        )
    _worker.tasks = getattr(_worker, "tasks", 0) + 1
    try:
        with one_of_several(), _single_blas(), np.errstate(all="ignore"):
            return k, work(place.open(), pickle.loads(item))  # noqa: S301  packed by the process that sent it
    finally:
        _worker.tasks -= 1
