"""The same bytes from one thread, two threads, two processes of loky and three dask workers, for every kind of work."""

from __future__ import annotations

import os

import joblib
import numpy as np
import pytest

from gonio.ask.wins import can_win
from gonio.core import inputs, tasks
from gonio.core.head import Head
from tests.cluster import made


def can_win_everything(head: Head) -> str:
    return made.verdicts(can_win(head))


WORK = {
    "can_win": lambda: can_win_everything(made.head()),
    "can_win with bias": lambda: can_win_everything(made.head(600, 8, bias=True)),
    "can_win in a box": lambda: can_win_everything(made.head(500, 6).replace(inputs=inputs.Box(-1.0, 1.0))),
    "can_win of some": lambda: made.verdicts(can_win(made.head(900, 12), [3, 700, 44])),
}


@pytest.fixture(scope="module")
def expected():
    """What two threads answer, made once."""
    known: dict[str, str] = {}

    def of(name: str) -> str:
        if name not in known:
            known[name] = WORK[name]()
        return known[name]

    return of


@pytest.mark.parametrize("name", WORK)
def test_one_thread_answers_the_same(name, expected, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert WORK[name]() == expected(name)


@pytest.mark.parametrize("name", WORK)
def test_two_processes_of_loky_answer_the_same(name, expected, on_loky):
    with on_loky():
        assert not tasks.in_this_process()
        assert WORK[name]() == expected(name)


@pytest.mark.parametrize("name", WORK)
def test_three_dask_workers_answer_the_same(name, expected, on_dask):
    with on_dask():
        assert not tasks.in_this_process()
        assert WORK[name]() == expected(name)


def test_a_backend_of_threads_stays_in_this_process():
    assert tasks.in_this_process()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert tasks.in_this_process()
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert not tasks.in_this_process()


def test_a_task_carries_places_and_not_rows(tmp_path):
    """What goes over the wire for a block is a place and an item, whatever the size of the rows."""
    import pickle

    from gonio.core.shared_files import shared

    np.save(tmp_path / "rows.npy", np.random.default_rng(0).standard_normal((4000, 64)).astype(np.float32))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    head = Head(mapped, link="softmax")
    made_here = np.arange(100_000.0)
    with shared((head, mapped[100:300], made_here)) as place:
        assert len(pickle.dumps(place)) < 500
        files = sorted(os.listdir(os.path.dirname(place.file)))
        sizes = [os.path.getsize(os.path.join(os.path.dirname(place.file), f)) for f in files]
        there, part, other = pickle.loads(pickle.dumps(place)).open()
        assert there.digest == head.digest
        assert np.array_equal(part, mapped[100:300])
        assert np.array_equal(other, made_here)
        del there, part, other
    assert sum(sizes) < made_here.nbytes + 100_000  # the norms of the survey, not the rows
    assert not os.path.exists(place.file)
