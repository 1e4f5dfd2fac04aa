"""How a command ends when it cannot go on: one sentence, the right exit code, the old output whole."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

GONIO = [sys.executable, "-m", "gonio"]


@pytest.fixture
def model(tmp_path):
    W = np.random.default_rng(0).standard_normal((300, 8))
    np.savez(tmp_path / "m.npz", W=W, labels=np.array([f"label {k}" for k in range(len(W))]))
    return tmp_path / "m.npz"


def heeds_signals(pid: int) -> bool:
    """Whether a process has a handler for SIGTERM, which Python alone does not install."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            caught = next(int(x.split()[1], 16) for x in f if x.startswith("SigCgt"))
    except (OSError, StopIteration):
        return False
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def interrupted(arguments, number, after):
    """Run a command and send it a signal some time after it answers signals."""
    process = subprocess.Popen(
        [*GONIO, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not heeds_signals(process.pid) and process.poll() is None:
        time.sleep(0.001)
    time.sleep(after)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [0.0, 0.02, 0.1, 0.3, 0.5])
def test_a_signal_during_the_imports_or_the_work_ends_it_with_one_sentence(model, number, after):
    code, out, err = interrupted(["info", model], number, after)
    if code == 0:  # it was quicker
        assert "300 labels" in out
        return
    assert code == 128 + number
    assert err.strip() == {2: "gonio: stopped.", 15: "gonio: ended from outside (SIGTERM)."}[number]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["audit", "can-win", "explore", "patterns"])
def test_a_signal_at_any_moment_ends_it_without_a_traceback_and_keeps_the_old_output(model, tmp_path, command, number):
    out = tmp_path / "out"
    options = {
        "audit": ["--html", out], "can-win": ["--json", out], "explore": ["--no-open", "--html", out],
        "patterns": ["--link", "sigmoid", "--out", out],
    }[command]  # fmt: skip
    if command == "patterns":
        np.savez(model, W=np.random.default_rng(0).standard_normal((12, 4)))
    began = time.monotonic()
    subprocess.run([*GONIO, command, str(model), *map(str, options)], check=True, capture_output=True)
    whole_time = time.monotonic() - began
    for k in range(12):
        out.write_text("old")
        code, _, err = interrupted([command, model, *options], number, whole_time * k / 10)
        assert "Traceback" not in err
        assert "Exception" not in err
        assert code in (0, 128 + number)
        if code and number == signal.SIGTERM:
            assert out.read_text(errors="replace") == "old" or out.stat().st_size > 100  # ended after the writing
        assert not [p.name for p in tmp_path.iterdir() if p.name not in ("m.npz", "out")]


def limited(kind, size):
    def set_limit():
        resource.setrlimit(kind, (size, size))

    return set_limit


def run(*arguments, **options):
    return subprocess.run([*GONIO, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options)


def test_a_full_disk_leaves_the_old_output_whole(model, tmp_path):
    out = tmp_path / "out.json"
    for before in (None, "old"):
        if before:
            out.write_text(before)
        done = run("info", model, "--json", out, preexec_fn=limited(resource.RLIMIT_FSIZE, 100))
        assert done.returncode == 2
        kept = "what stood there is as it was." if before else "nothing was left behind."
        assert done.stderr == f"gonio: info: {out} could not be written (File too large); {kept}\n"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["m.npz", *(["out.json"] if before else [])]
    assert out.read_text() == "old"


def test_output_that_the_terminal_cannot_take_is_said(model):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([*GONIO, "info", model], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "gonio: output: No space left on device.\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_folder_that_may_not_be_written_leaves_the_old_output_whole():
    code = "import os, sys\nfrom gonio.core.atomic_write import whole_text\nos.setuid(65534)\n"
    code += "try:\n    whole_text(sys.argv[1], 'new', 'info')\nexcept ValueError as e:\n    print(e)\n"
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        os.chmod(folder, 0o755)
        _written_by_another(code, Path(folder) / "out.json")


def _written_by_another(code, out):
    out.write_text("old")
    out.chmod(0o666)
    done = subprocess.run([sys.executable, "-c", code, out], capture_output=True, text=True, check=False)
    assert done.stdout == (
        f"info: {out} could not be written (Permission denied); choose a folder that you may write in.\n"
    )
    assert out.read_text() == "old"


@pytest.mark.parametrize("megabytes", [120, 700])
def test_a_lack_of_memory_is_one_sentence(tmp_path, megabytes):
    np.save(tmp_path / "m.npy", np.ones((9000, 9000), np.float32))
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    limit = limited(resource.RLIMIT_AS, megabytes << 20)
    done = run("info", tmp_path / "m.npy", "--json", tmp_path / "o.json", preexec_fn=limit, env=one_thread)
    assert done.returncode == 2, done.stderr
    assert "not enough memory" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "o.json").exists()
