"""`--cluster local:N` and `--cluster ADDRESS`: a dask client whose workers do the heavy work for a while."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from gonio.core.errors import GonioError, missing_extra

LOCAL = re.compile(r"local:([1-9]\d{0,3})")
ANSWER = "10s"  # how long an address is waited for
ENGINE = ("distributed", "tornado", "asyncio")  # whose loggers tell of every connection that breaks
FROZEN = "30s"  # a worker of ours that is silent for so long is taken for dead, and its tasks go elsewhere


@contextmanager
def connected(where: str | None) -> Iterator[None]:
    """A context in which heavy work goes to a cluster: 'local:4', the address of a dask scheduler, or None for none."""
    if where is None:
        yield
        return
    import joblib

    distributed = _engine()
    # A worker that dies is started again, and its tasks are done elsewhere: no news. What ends the work is told once.
    for name in [x for x in logging.root.manager.loggerDict if x.partition(".")[0] in ENGINE]:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as held:
        client = held.enter_context(
            _local(where, distributed) if where.startswith("local") else _at(where, distributed)
        )
        held.enter_context(joblib.parallel_config(backend="dask", client=client))
        yield


def _engine() -> Any:
    try:
        import distributed
    except ImportError:
        raise missing_extra("cluster", "distributed", "cluster") from None
    return distributed


@contextmanager
def _local(where: str, distributed: Any) -> Iterator[Any]:
    """Worker processes of this machine, with one thread each, that end with the context."""
    found = LOCAL.fullmatch(where)
    if not found:
        raise GonioError(f"cluster: {where!r} names no number of workers; write local:4 for four of this machine.")
    from dask import config

    quiet = logging.CRITICAL
    settings = {"distributed.scheduler.worker-ttl": FROZEN, "distributed.logging.distributed": "critical"}
    with config.set(settings):
        try:
            workers = distributed.LocalCluster(
                n_workers=int(found[1]), threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
                silence_logs=quiet,
            )  # fmt: skip
        except (OSError, RuntimeError) as e:
            raise GonioError(f"cluster: {where} could not be started ({e}).") from None
        with workers, distributed.Client(workers) as client:
            yield client


@contextmanager
def _at(where: str, distributed: Any) -> Iterator[Any]:
    """The workers of the scheduler at an address."""
    try:
        client = distributed.Client(where, timeout=ANSWER)
    except (OSError, ValueError, TimeoutError) as e:
        reason = str(e).splitlines()[0] if str(e) else type(e).__name__
        raise GonioError(
            f"cluster: no dask scheduler answers at {where} ({reason[:120]}); give an address such as "
            f"tcp://HOST:8786, or local:N for N workers of this machine."
        ) from None
    with client:
        yield client
