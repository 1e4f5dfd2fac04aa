"""Three worker processes on loopback, for as long as the tests of this folder run."""

from __future__ import annotations

import contextlib
import logging

import joblib
import pytest


@contextlib.contextmanager
def dask_workers(count: int, memory_limit: str = "auto", **settings):
    """A dask cluster of this machine and its client."""
    distributed = pytest.importorskip("distributed", reason="pip install 'gonio[cluster]'")
    dask = pytest.importorskip("dask")
    quiet = {"distributed.logging.distributed": "critical", **settings}
    with (
        dask.config.set(quiet),
        distributed.LocalCluster(
            n_workers=count, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL, memory_limit=memory_limit,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


@pytest.fixture(scope="session")
def client():
    with dask_workers(3) as client:
        yield client


@pytest.fixture
def on_dask(client):
    """A context in which heavy work goes to the three workers."""
    return lambda: joblib.parallel_config(backend="dask", client=client)


@pytest.fixture(scope="session")
def on_loky():
    """A context in which heavy work goes to two processes of loky, which end with the tests."""
    yield lambda: joblib.parallel_config(backend="loky", n_jobs=2)
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)
