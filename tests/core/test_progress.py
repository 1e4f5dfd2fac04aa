"""The bar: on a terminal it is drawn and goes away, in a log it is a line every ten seconds, otherwise silent."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time

from gonio.core import progress
from gonio.core.progress import Bar

NESTED = """
import time
from gonio.core.progress import Bar
with Bar("outer") as outer, Bar("inner") as inner:
    for k in range(4):
        outer(k, 4, "things"), inner(3 * k, 12, "[bold]parts")
        time.sleep(0.15)
print("done")
"""


def test_in_a_log_there_is_a_line_every_ten_seconds(capsys, monkeypatch):
    now = iter([0.0, 3.0, 11.0, 12.0, 22.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    with Bar("  work") as bar:
        for k in (1, 25, 26, 50):
            bar(k, 100, "rows")
    assert capsys.readouterr().err == "work: 25 of 100 rows, about 33 s left\nwork: 50 of 100 rows, about 22 s left\n"


def test_on_a_terminal_bars_stand_together_and_go_away():
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", NESTED], stderr=theirs, stdout=subprocess.PIPE) as running:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        assert running.stdout is not None
        assert running.stdout.read() == b"done\n"
    os.close(ours)
    assert running.returncode == 0
    assert b"outer" in seen
    assert b"inner" in seen
    assert b"[bold]parts" in seen  # what is being done is not markup
    assert progress._display is None


def test_a_compilation_is_told(monkeypatch):
    from numba import njit

    from gonio.core import progress

    assert not progress.compiling()
    seen: list[bool] = []

    @njit
    def inner(x):
        return x + 1

    plain = inner.get_call_template

    def watched(*given):
        seen.append(progress.compiling())
        return plain(*given)

    inner.get_call_template = watched

    @njit
    def outer(x):
        return inner(x)

    assert outer(1) == 2
    assert seen == [True] * len(seen)
    assert seen
    assert not progress.compiling()
    said: list[str] = []
    monkeypatch.setattr(progress.Bar, "_log", lambda self, done, total, doing: said.append(doing))
    monkeypatch.setattr(progress, "compiling", lambda: True)
    progress.Bar("work")(0, 3, "cuts")
    assert said == ["compiling, once on this machine"]
