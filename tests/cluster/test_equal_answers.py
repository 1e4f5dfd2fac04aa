"""The same bytes from one thread, two threads, two processes of loky and three dask workers, for every kind of work."""

from __future__ import annotations

import os

import joblib
import numpy as np
import pytest

import gonio
from gonio import label_sets, rankings
from gonio.ask.wins import can_win
from gonio.core import inputs, tasks
from gonio.core.head import Head
from gonio.diagnostics.hubs import hubness
from gonio.embeddings import embedding_table
from gonio.listing import cell_list, ranking_list
from gonio.papers.reconstruction_grid import verify_grid
from gonio.similarity.nearest import nearest_by_cosine
from tests.cluster import made


def table() -> np.ndarray:
    """A table of embeddings with copies, an empty row and hubs, of more than one piece."""
    X = np.random.default_rng(3).standard_normal((5000, 24)).astype(np.float32) + 0.3
    X[17] = 0
    X[40:45] = X[3]
    return X


def checked(**options) -> str:
    """All findings of a check."""
    result = gonio.check(table(), np.random.default_rng(4).standard_normal((300, 24)), **options)
    return made.digest([repr(f.to_dict()) for f in result.findings])


def audited() -> str:
    """All findings of an audit."""
    result = gonio.audit(made.head(4200, 12))
    return made.digest([repr(f.to_dict()) for f in result.findings])


def ties() -> str:
    result = gonio.can_tie(made.head(400, 6), nearest=3)
    proofs = [result.certificate(k) for k in range(len(result))]
    return made.digest([result.pairs, result.status.astype(str), result.margin, proofs])


def whole_numbers(link: str) -> Head:
    return Head(np.random.default_rng(5).integers(-2, 3, (9, 4)).astype(float), link=link)


def counted() -> str:
    return made.digest([label_sets(whole_numbers("sigmoid")).count, rankings(whole_numbers("softmax")).count])


def generic_rankings() -> str:
    W = np.random.default_rng(6).standard_normal((9, 4))
    return made.digest(rankings(Head(W, link="softmax")).count)


WORK = {
    "can_win": lambda: made.verdicts(can_win(made.head())),
    "can_win with bias": lambda: made.verdicts(can_win(made.head(600, 8, bias=True))),
    "can_win in a box": lambda: made.verdicts(can_win(made.head(500, 6).replace(inputs=inputs.Box(-1.0, 1.0)))),
    "can_win of some": lambda: made.verdicts(can_win(made.head(900, 12), [3, 700, 44])),
    "can_tie": ties,
    "nearest of all": lambda: made.digest(nearest_by_cosine(made.head(5500, 20).rows, 7)),
    "nearest of some": lambda: made.digest(nearest_by_cosine(made.head(1300, 20).rows, 7, np.arange(0, 1300, 2))),
    "nearest by another measure": lambda: made.digest(
        gonio.similarity.measure("Euclid")(made.head(1200, 20)).nearest(5).near
    ),
    "hubs": lambda: made.digest(hubness(made.head(4300, 16)).to_dict()),
    "check": checked,
    "check by dot product": lambda: checked(metric="dot", sample=100),
    "audit": audited,
    "counts": counted,
    "rankings in general position": generic_rankings,
    "a grid of a paper": lambda: made.digest(verify_grid()),
}


LONGER = ("audit", "can_win in a box", "check by dot product", "a grid of a paper", "hubs")
MOST = [pytest.param(x, marks=pytest.mark.slow) if x in LONGER else x for x in WORK]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Small tables have several pieces, and small counts are cut up like large ones."""
    monkeypatch.setattr(embedding_table, "BLOCK", 1 << 12)
    monkeypatch.setattr(cell_list, "WORTH_THREADS", 10)
    monkeypatch.setattr(ranking_list, "WORTH_THREADS", 10)
    monkeypatch.setattr(ranking_list, "RANKINGS_PER_PIECE", 1 << 9)


@pytest.fixture(scope="module")
def expected():
    """What two threads answer, made once."""
    known: dict[str, str] = {}

    def of(name: str) -> str:
        if name not in known:
            known[name] = WORK[name]()
        return known[name]

    return of


@pytest.mark.parametrize("name", MOST)
def test_one_thread_answers_the_same(name, expected, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert WORK[name]() == expected(name)


@pytest.mark.parametrize("name", MOST)
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
