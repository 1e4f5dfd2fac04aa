"""One progress bar for all long work: rich's on a terminal and in a notebook, a line every ten seconds in a log."""

from __future__ import annotations

import sys
import time
from typing import Any

LOGGED = 10.0  # seconds between two lines where there is no terminal
_watching: list[Any] = []  # what counts the compilations under way, once it has been asked for
_display: Any = None  # the display of the outermost bar; bars inside of it are lines of the same


def compiling() -> bool:
    """Whether numba is compiling at the moment; what a cache on disk holds is not compiled again."""
    numba = sys.modules.get("numba.core.event")  # where nothing has imported numba, nothing compiles
    if numba is None:
        return False
    if not _watching:

        class Watch(numba.Listener):
            begun = 0

            def on_start(self, event: Any) -> None:
                self.begun += 1

            def on_end(self, event: Any) -> None:
                self.begun -= 1

        _watching.append(Watch())
        numba.register("numba:compile", _watching[0])
    return _watching[0].begun > 0


class Bar:
    """How far the work is and how long the rest may take.

    Use it as a context manager and call it with (done, total, what is being done). On a terminal and in a notebook it
    is a bar that goes away in the end; elsewhere, work that takes longer than ten seconds writes a line every ten.
    """

    def __init__(self, title: str) -> None:
        self.title = title.strip()
        self.began = self.told = time.monotonic()
        self.shown: Any = None
        self.task: Any = None
        self.outermost = False

    def __enter__(self) -> Bar:
        if sys.stderr.isatty() or "ipykernel" in sys.modules:
            self._show()
        return self

    def _show(self) -> None:
        global _display
        if _display is None:
            _display, self.outermost = self._started(), True
        self.shown = _display
        self.task = self.shown.add_task(self.title, total=1, doing="")

    def _started(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f} {task.fields[doing]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        display = Progress(*columns, console=Console(stderr=True), transient=True)
        display.start()
        return display

    def __call__(self, done: int, total: int, doing: str = "") -> None:
        doing = "compiling, once on this machine" if compiling() else doing
        if self.shown is not None:
            self.shown.update(self.task, completed=done, total=max(total, 1), doing=doing)
        else:
            self._log(done, total, doing)

    def _log(self, done: int, total: int, doing: str) -> None:
        now = time.monotonic()
        if now - self.told < LOGGED:
            return
        self.told = now
        share, spent = done / total if total else 1.0, now - self.began
        left = f"about {spent / share - spent:.0f} s left" if 0.02 < share < 1 else f"{spent:.0f} s"
        sys.stderr.write(f"{self.title}: {done:,} of {total:,} {doing}, {left}\n")
        sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        global _display
        if self.shown is not None:
            self.shown.remove_task(self.task)
        if self.outermost:
            _display.stop()
            _display = None
