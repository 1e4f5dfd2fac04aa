"""Workers that die, freeze, lack memory or see another file, and a scheduler that dies: equal verdicts, or a sentence."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pytest

import gonio
from gonio.ask.wins import can_win
from gonio.cluster import connected
from gonio.core import tasks
from gonio.core.errors import GonioError
from gonio.core.shared_files import Place
from tests.cluster import made
from tests.cluster.conftest import dask_workers

SETTINGS = {"distributed.scheduler.worker-ttl": "3s"}


@pytest.fixture
def workers():
    """Three workers for one test that kills some; a frozen one is missed after three seconds.

    No test waits for a worker to come back: one that is lost while it starts is not always started again.
    """
    with dask_workers(3, **SETTINGS) as client:
        yield client


@pytest.fixture(scope="module")
def expected():
    return made.verdicts(can_win(made.head(3000, 24)))


def processes(client) -> list[int]:
    """The processes of the workers, as their nannies know them: one that was just killed answers nobody."""
    return [nanny.pid for nanny in client.cluster.workers.values() if nanny.pid]


def asked(model, state) -> list[str]:
    """The command that asks who can win and keeps what is done."""
    ask = [sys.executable, "-m", "gonio", "can-win", str(model), "--link", "softmax", "--json", "-"]
    return [*ask, "--state", str(state)]


def asked_while(client, do) -> str:
    """The verdicts of the workers, `do` being done once as soon as some labels are decided but not all."""
    done = []

    def on_progress(decided: int, asked: int, doing: str) -> None:
        if not done and 0 < decided < asked:
            done.append(do())

    with joblib.parallel_config(backend="dask", client=client):
        result = can_win(made.head(3000, 24), on_progress=on_progress)
        assert done
        return made.verdicts(result)


def test_a_worker_that_is_killed_changes_no_verdict(workers, expected):
    victim = processes(workers)[0]
    assert asked_while(workers, lambda: os.kill(victim, signal.SIGKILL)) == expected


def test_the_tasks_of_a_frozen_worker_go_elsewhere(workers, expected):
    victim = processes(workers)[0]
    try:
        assert asked_while(workers, lambda: os.kill(victim, signal.SIGSTOP)) == expected
    finally:
        with contextlib.suppress(ProcessLookupError):  # its nanny has ended it and started another
            os.kill(victim, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(10))
def test_workers_killed_at_ten_random_moments_change_no_verdict(workers, expected, moment):
    rng = random.Random(moment)
    victim = rng.choice(processes(workers))
    timer = threading.Timer(rng.uniform(0.0, 2.0), os.kill, (victim, signal.SIGKILL))
    timer.start()
    with joblib.parallel_config(backend="dask", client=workers):
        assert made.verdicts(can_win(made.head(3000, 24))) == expected
    timer.join()


def _greedy(_, item: int) -> int:
    """Take ever more memory, slowly enough for a nanny to see it."""
    held = []
    for _ in range(40):  # 1.3 GB and no more
        held.append(np.ones(4_000_000))
        time.sleep(0.05)
    return len(held)


def test_a_worker_that_runs_out_of_memory_is_one_sentence_that_names_the_setting():
    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.worker.memory.monitor-interval": "20ms"}
    with (
        dask_workers(1, memory_limit="700MB", **settings) as client,
        joblib.parallel_config(backend="dask", client=client),
        pytest.raises(GonioError, match=r"lack of memory.*--memory-limit") as told,
    ):
        tasks.run("greed", _greedy, None, range(2))
    assert "\n" not in str(told.value)


def _process(_, item: int) -> int:
    return os.getpid()


def test_a_cluster_of_one_worker_does_the_work_itself():
    """joblib would do the work of a single core in the client's own process."""
    with dask_workers(1) as client, joblib.parallel_config(backend="dask", client=client):
        assert set(tasks.run("who", _process, None, range(3))) == set(processes(client))


def _no_memory(_, item: int) -> int:
    raise MemoryError


def test_an_allocation_that_fails_on_a_worker_is_told_as_such(on_dask):
    with on_dask(), pytest.raises(GonioError, match=r"ran out of memory in greed.*--memory-limit"):
        tasks.run("greed", _no_memory, None, range(2))


def _dies(_, item: int) -> int:
    os._exit(1)


def test_a_process_of_loky_that_dies_is_one_sentence(on_loky):
    with on_loky(), pytest.raises(GonioError, match="a process of the pool died in dying"):
        tasks.run("dying", _dies, None, range(3))


def test_a_mistake_in_the_work_comes_back_as_itself(on_dask):
    with on_dask(), pytest.raises(ZeroDivisionError):
        tasks.run("mistake", _mistake, None, range(2))


def _mistake(_, item: int) -> float:
    return 1 / 0


def test_a_file_changed_under_the_workers_is_refused_by_its_digest(tmp_path, client):
    file = tmp_path / "rows.npy"
    np.save(file, made.head(3000, 24).W)
    head = gonio.load(file, link="softmax")
    changed = []

    def on_progress(decided: int, asked: int, doing: str) -> None:
        if not changed and decided:
            with file.open("r+b") as f:
                f.seek(-4, os.SEEK_END)
                f.write(np.float32(0.5).tobytes())
            changed.append(True)

    with (
        joblib.parallel_config(backend="dask", client=client),
        pytest.raises(GonioError, match=r"another digest.*changed in between"),
    ):
        can_win(head, on_progress=on_progress)
    assert changed


def test_another_version_on_the_workers_is_refused(on_dask, monkeypatch):
    monkeypatch.setattr(tasks, "__version__", "99.0")
    with (
        on_dask(),
        pytest.raises(GonioError, match=r"this is gonio 99\.0 and the worker has .*the same version on both"),
    ):
        can_win(made.head())


def test_a_path_that_workers_do_not_see_is_told(on_dask):
    with on_dask(), pytest.raises(GonioError, match=r"does not see /nowhere/shared; set GONIO_SCRATCH"):
        joblib.Parallel()([joblib.delayed(tasks._task)(Place("/nowhere/shared"), _mistake, 0, 0, gonio.__version__)])


def test_a_scratch_folder_that_is_not_there_is_told(on_dask, monkeypatch):
    monkeypatch.setenv("GONIO_SCRATCH", "/nowhere")
    with on_dask(), pytest.raises(GonioError, match=r"nothing can be written in /nowhere .*GONIO_SCRATCH"):
        can_win(made.head())


@pytest.mark.parametrize("where", ["local:0", "local:many", "local"])
def test_a_number_of_workers_that_is_none_is_told(where):
    pytest.importorskip("distributed", reason="pip install 'gonio[cluster]'")
    with pytest.raises(GonioError, match="write local:4"), connected(where):
        pass


def test_no_cluster_at_the_address_is_told(monkeypatch):
    pytest.importorskip("distributed", reason="pip install 'gonio[cluster]'")
    monkeypatch.setattr("gonio.cluster.connecting.ANSWER", "1s")
    with (
        pytest.raises(GonioError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"),
        connected("tcp://127.0.0.1:9"),
    ):
        pass


class Closed:
    """An index of another library, say: it cannot be pickled."""

    def __reduce__(self):
        raise TypeError("cannot pickle")


def _plus(shared: Closed, item: int) -> int:
    return item + 1


def test_what_cannot_be_sent_is_done_here_and_said_in_the_log(on_dask, caplog):
    with on_dask():
        assert tasks.run("sums", _plus, Closed(), range(3)) == [1, 2, 3]
    assert "sums: done in this process" in caplog.text


@pytest.fixture
def model(tmp_path) -> str:
    np.savez(tmp_path / "head.npz", W=made.head(6000, 32).W)
    return str(tmp_path / "head.npz")


def cut_short(ask: list[str], state, stop) -> subprocess.CompletedProcess:
    """A run that `stop(process)` is done to once three of its blocks are kept."""
    running = subprocess.Popen(ask, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 90
    while len(list(state.glob("*.block"))) < 3 and running.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    stop(running)
    out, err = running.communicate(timeout=90)
    return subprocess.CompletedProcess(ask, running.returncode, out, err)


@pytest.mark.slow
def test_when_the_scheduler_is_killed_the_state_goes_on_locally_to_the_same_bytes(model, tmp_path):
    pytest.importorskip("distributed", reason="pip install 'gonio[cluster]'")
    engine = [sys.executable, "-m", "dask.__main__"]
    scheduler = subprocess.Popen(
        [*engine, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(tmp_path / "s.json")],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + 30
    while not (tmp_path / "s.json").exists() and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(0.5)
    import json

    address = json.loads((tmp_path / "s.json").read_text())["address"]
    worker = [*engine, "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "5"]
    several = [subprocess.Popen(worker, stderr=subprocess.DEVNULL, cwd=os.getcwd()) for _ in range(3)]
    try:
        ask = asked(model, tmp_path / "state")
        broken = cut_short([*ask, "--cluster", address], tmp_path / "state", lambda _: scheduler.kill())
        assert broken.returncode == 2, broken.stderr
        assert broken.stderr.startswith("gonio: workers: the cluster cannot be reached any more")
        assert broken.stderr.count("\n") == 1
        kept = list((tmp_path / "state").glob("*.block"))
        assert kept
        here = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
        alone = subprocess.run(ask[:-2], capture_output=True, text=True, check=True).stdout
        assert here == alone
    finally:
        for p in (scheduler, *several):
            p.kill()
            p.wait()


@pytest.mark.slow
def test_ctrl_c_stops_the_workers_and_keeps_what_is_done(model, tmp_path):
    pytest.importorskip("distributed", reason="pip install 'gonio[cluster]'")
    psutil = pytest.importorskip("psutil")
    ask = asked(model, tmp_path / "state")
    children = []

    def stop(running) -> None:
        children.extend(psutil.Process(running.pid).children(recursive=True))
        running.send_signal(signal.SIGINT)

    broken = cut_short([*ask, "--cluster", "local:2"], tmp_path / "state", stop)
    assert broken.returncode == 130, broken.stderr
    assert len(children) >= 2
    assert not psutil.wait_procs(children, timeout=20)[1]
    assert list((tmp_path / "state").glob("*.block"))
    again = subprocess.run([*ask, "--cluster", "local:2"], capture_output=True, text=True, check=True).stdout
    assert again == subprocess.run(ask[:-2], capture_output=True, text=True, check=True).stdout
