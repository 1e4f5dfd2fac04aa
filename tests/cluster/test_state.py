"""Long work that is stopped, by whatever, goes on from its state folder to the same bytes."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gonio
from gonio.ask.wins import can_win
from gonio.core import block_file, run_state, tasks
from gonio.core.errors import GonioError
from gonio.core.run_state import resumable
from tests.cluster import made


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "gonio", *words]


def blocks(folder: Path) -> dict[str, int]:
    """The finished blocks of a state, and when each was written."""
    return {p.name: p.stat().st_mtime_ns for p in folder.glob("*.block")} if folder.is_dir() else {}


@pytest.fixture
def file(tmp_path) -> str:
    head = made.head(3000, 24)
    np.savez(tmp_path / "head.npz", W=head.W)
    return str(tmp_path / "head.npz")


def test_a_run_that_is_killed_goes_on_to_the_same_bytes(file, tmp_path):
    ask = command("can-win", file, "--link", "softmax", "--json", "-")
    expected = subprocess.run(ask, capture_output=True, check=True).stdout
    state = tmp_path / "state"
    running = subprocess.Popen([*ask, "--state", str(state)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while len(blocks(state)) < 3 and running.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.wait()
    before = blocks(state)
    assert len(before) >= 3
    again = subprocess.run([*ask, "--state", str(state)], capture_output=True, check=True)
    assert again.stdout == expected
    after = blocks(state)
    assert {k: after[k] for k in before} == before  # none of them was done again
    assert sorted(os.listdir(tmp_path)) == ["head.npz", "state"]  # nothing beside the user's files


def test_a_state_of_another_head_question_or_version_is_refused(file, tmp_path):
    head = gonio.load(file, link="softmax")
    with resumable(tmp_path / "s", head, question="who wins"):
        pass
    with (
        pytest.raises(GonioError, match="state of another head"),
        resumable(tmp_path / "s", made.head(), question="who wins"),
    ):
        pass
    with pytest.raises(GonioError, match="state of another question"), resumable(tmp_path / "s", head, question="ties"):
        pass
    about = tmp_path / "s" / "state.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"version": "0.0.1"}))
    with (
        pytest.raises(GonioError, match=r"another version \(0.0.1"),
        resumable(tmp_path / "s", head, question="who wins"),
    ):
        pass
    asked = subprocess.run(
        command("can-win", file, "--link", "softmax", "--state", str(tmp_path / "s")), capture_output=True, text=True
    )
    assert asked.returncode == 2
    assert asked.stderr.count("\n") == 1
    assert "give another folder, or remove this one" in asked.stderr


def test_a_folder_of_other_files_is_no_state(tmp_path):
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(GonioError, match="holds other files and no state"), resumable(tmp_path):
        pass
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_state_in_use_by_a_live_run_is_refused(tmp_path):
    holder = (
        "import sys, time\nfrom gonio.core.run_state import resumable\n"
        "with resumable(sys.argv[1]):\n    print('held', flush=True)\n    time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", holder, str(tmp_path / "s")], stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(GonioError, match="another run that is alive uses"), resumable(tmp_path / "s"):
            pass
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    with resumable(tmp_path / "s"):  # nobody has it any more
        pass


def test_a_full_disk_is_one_sentence_and_what_is_kept_is_whole(tmp_path, monkeypatch):
    head = made.head(1800, 8)
    expected = made.verdicts(can_win(head))
    written = 0

    def write(handle, raw):
        nonlocal written
        written += len(raw)
        if written > 12_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os_write(handle, raw)

    os_write = os.write
    with monkeypatch.context() as m:
        m.setattr(run_state.os, "write", write)
        with pytest.raises(GonioError, match=r"No space left on device.*make room"), resumable(tmp_path / "s", head):
            made.verdicts(can_win(head))
    kept = blocks(tmp_path / "s")
    assert kept
    assert all(p.suffix == ".block" or p.name in ("lock", "state.json") for p in (tmp_path / "s").iterdir())
    with resumable(tmp_path / "s", head):
        assert made.verdicts(can_win(head)) == expected
    assert kept.items() <= blocks(tmp_path / "s").items()


def _square(shared: int, item: int) -> np.ndarray:
    return np.array([shared * item])


def test_a_block_that_was_cut_short_is_done_again(tmp_path):
    with resumable(tmp_path / "s"):
        first = tasks.run("squares", _square, 3, range(4), key=("k",))
    one = sorted((tmp_path / "s").glob("*.block"))[0]
    one.write_bytes(one.read_bytes()[:-40])
    with resumable(tmp_path / "s"):
        again = tasks.run("squares", _square, 3, range(4), key=("k",))
    assert [x.tolist() for x in again] == [x.tolist() for x in first] == [[0], [3], [6], [9]]


def test_blocks_are_found_by_what_they_depend_on(tmp_path):
    with resumable(tmp_path / "s"):
        assert tasks.run("squares", _square, 3, range(2), key=(np.array([3]),))[1] == 3
        assert tasks.run("squares", _square, 4, range(2), key=(np.array([4]),))[1] == 4
        assert tasks.run("squares", _square, 5, range(2), key=(np.array([4]),))[1] == 4  # the key decides, not the work
        assert tasks.run("squares", _square, 5, range(2))[1] == 5  # without one nothing is kept
    assert len(blocks(tmp_path / "s")) == 4


@pytest.mark.parametrize(
    "result",
    [
        1,
        -2.5,
        None,
        "text",
        True,
        np.float32(0.1),
        np.arange(3),
        (1, [np.eye(2), {"a": np.zeros(0, np.int8), 3: None}]),
    ],
    ids=repr,
)
def test_a_result_comes_back_from_a_block_as_it_was(result):
    again = block_file.from_bytes(block_file.to_bytes(result))
    assert type(again) is type(result)
    assert made.digest(again) == made.digest(result)


def test_an_object_is_no_result():
    for x in (object(), np.array([object()]), {1, 2}):
        with pytest.raises(TypeError):
            block_file.to_bytes(x)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gonio" / "runs"


def test_work_below_a_minute_leaves_the_cache_folder_alone(cache):
    with resumable(None, question="short"):
        tasks.run("squares", _square, 3, range(3), key=("k",))
    assert not cache.exists()


def test_work_above_a_minute_is_kept_in_the_cache_until_it_succeeds(cache, monkeypatch):
    monkeypatch.setattr(run_state, "MINUTE", 0.05)

    def stopped_at_two(shared: int, item: int) -> np.ndarray:
        time.sleep(0.04)
        if item == 2:
            raise KeyboardInterrupt
        return _square(shared, item)

    with pytest.raises(KeyboardInterrupt), resumable(None, question="long"):
        tasks.run("squares", stopped_at_two, 3, range(3), key=("k",), wide=True)
    (folder,) = cache.iterdir()
    assert len(blocks(folder)) == 2  # also the one that was finished before anything was kept
    with resumable(None, question="long"):
        out = tasks.run("squares", _square, 3, range(3), key=("k",))
    assert [int(x[0]) for x in out] == [0, 3, 6]
    assert not list(cache.iterdir())


def test_a_cache_folder_that_cannot_be_had_is_no_reason_to_fail(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(run_state, "MINUTE", 0.0)
    with resumable(None, question="q"):
        assert tasks.run("squares", _square, 3, range(3), key=("k",))[2] == 6
