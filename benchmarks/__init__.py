"""Speed as a ratio to a named reference: answers compared first, runs interleaved, medians taken.

Each `bench_*.py` has `cases(toy)`, which yields a `Case` for each claim. `python -m benchmarks [NAME...]` runs them
and appends a line each to results.jsonl; a test runs every one at toy size, answers only.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Case:
    """One claim: `ours` takes at most `most` times as long as `reference`, and gives the same answer."""

    name: str
    ours: Callable[[], Any]
    reference: Callable[[], Any]
    same: Callable[[Any, Any], bool]
    most: float
    repeats: int = 5
    extra: Callable[[], dict[str, float]] = field(default=dict)  # further measurements, such as memory

    def compare(self) -> None:
        """Both answers, which must agree."""
        assert self.same(self.ours(), self.reference()), f"{self.name}: the answers differ"

    def measure(self) -> dict[str, Any]:
        """The ratio of medians over interleaved runs."""
        self.compare()
        ours, theirs = [], []
        for _ in range(self.repeats):
            for run, times in ((self.ours, ours), (self.reference, theirs)):
                began = time.perf_counter()
                run()
                times.append(time.perf_counter() - began)
        a, b = statistics.median(ours), statistics.median(theirs)
        return {"name": self.name, "ratio": a / b, "most": self.most, "ours_s": a, "reference_s": b, **self.extra()}


Cases = Iterator[Case]
