"""One progress bar for all long work: a line that is redrawn on a terminal, a line every ten seconds in a log."""

from __future__ import annotations

import sys
import time

WIDTH = 30
EVERY = 0.1  # seconds between two drawings
LOGGED = 10.0  # seconds between two lines where there is no terminal


class Bar:
    """A line on the terminal that says how far the work is and how long the rest may take.

    Use it as a context manager and call it with (done, total, what is being done). Where standard error is not a
    terminal, work that takes longer than ten seconds writes a line every ten.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.began = self.drawn = time.monotonic()
        self.shown = False
        self.watched = sys.stderr.isatty()

    def __call__(self, done: int, total: int, doing: str = "") -> None:
        now = time.monotonic()
        if not self.watched and now - self.drawn < LOGGED:
            return
        if self.watched and now - self.drawn < EVERY and done < total:
            return
        self.drawn, self.shown = now, self.watched
        share = done / total if total else 1.0
        filled = round(WIDTH * share)
        spent = now - self.began
        left = f"about {spent / share - spent:.0f} s left" if 0.02 < share < 1 and spent > 1 else f"{spent:.0f} s"
        if not self.watched:
            sys.stderr.write(f"{self.title.strip()}: {done:,} of {total:,} {doing}, {left}\n")
            sys.stderr.flush()
            return
        bar = "#" * filled + "." * (WIDTH - filled)
        sys.stderr.write(f"\r\x1b[K{self.title} [{bar}] {done:,} of {total:,} {doing}, {left}")
        sys.stderr.flush()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
