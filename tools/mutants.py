"""Break the code in one place at a time (tools/mutations.py) and see whether a test notices.

    NUMBA_DISABLE_JIT=1 python tools/mutants.py src/gonio/proofs --tests tests/proofs --out mutants.json

The tests are collected and run once, with a look at which lines each of them reaches. Then a process is forked for
every mutant: it puts the changed code in place and runs the tests that reach the changed line, first those that
killed lately, then the quick ones, until one fails. Mutants that the file --out has as killed are not tried again, so
a run can be stopped and resumed, and repeated after tests were added. What survives is printed; docs/mutants.md
explains it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import coverage
import pytest
from mutations import Mutant, install, mutants


class Session:
    """A pytest plugin that runs the tests once as they are, and then some of them for every mutant."""

    def __init__(self, files: list[Path], out: Path, seconds: int, workers: int, only: str) -> None:
        self.files, self.out, self.seconds, self.workers, self.only = files, out, seconds, workers, only
        self.failed = False
        self.killers: list[str] = []  # tests that killed lately: likely to kill the next one too
        self.results: dict[str, str] = json.loads(out.read_text()) if out.exists() else {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: Any) -> bool:
        """Called by pytest once the tests are collected."""
        reached = self._baseline(session.items)
        every = [m for f in self.files for m in mutants(f) if self.only in m.key]
        left = [m for m in every if self.results.get(m.key) != "killed"]
        print(f"{len(every)} mutants, {len(left)} of them to try", flush=True)
        running: dict[int, str] = {}
        for done, m in enumerate(left):
            if len(running) >= self.workers:
                self._collect(running)
            running[self._start(m, reached)] = m.key
            if done % 100 == 99:
                print(f"  {done + 1} tried", flush=True)
        while running:
            self._collect(running)
        for m in every:
            if self.results[m.key] != "killed":
                print(f"{self.results[m.key]}: {m.file.name}:{m.first} {m.function}: {m.text}")
        return True

    def _baseline(self, items: list[Any]) -> dict[tuple[str, int], list[Any]]:
        """Which tests reach which lines, the quick ones first; all must pass on the code as it is."""
        from hypothesis import Phase, settings  # not before pytest, which rewrites its asserts

        seen = coverage.Coverage(data_file=None, include=[str(f) for f in self.files])
        cost: dict[str, float] = {}
        seen.start()
        for item in items:
            mine = getattr(item.obj, "_hypothesis_internal_use_settings", None)
            if mine is not None:  # a failure need not be made small
                item.obj._hypothesis_internal_use_settings = settings(
                    mine,
                    phases=[Phase.explicit, Phase.generate],
                    derandomize=True,
                    max_examples=min(60, mine.max_examples),
                )
            seen.switch_context(item.nodeid)
            start = time.perf_counter()
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
            cost[item.nodeid] = time.perf_counter() - start
            if self.failed:
                raise SystemExit(f"{item.nodeid} fails before anything was changed")
        seen.stop()
        by_name = {item.nodeid: item for item in items}
        out = {}
        for file in self.files:
            for line, names in seen.get_data().contexts_by_lineno(str(file)).items():
                out[str(file), line] = [by_name[n] for n in sorted(set(names) & set(by_name), key=lambda n: cost[n])]
        out["", 0] = sorted(items, key=lambda item: cost[item.nodeid])
        return out

    def _start(self, mutant: Mutant, reached: dict[tuple[str, int], list[Any]]) -> int:
        child = os.fork()
        if child:
            return child
        signal.alarm(self.seconds)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        try:
            install(mutant)
            lines = range(mutant.first, mutant.last + 1)
            chosen = {item.nodeid for k in lines for item in reached.get((str(mutant.file), k), ())}
            lately = {name: k for k, name in enumerate(self.killers[-12:])}
            for item in sorted(reached["", 0], key=lambda item: -lately.get(item.nodeid, -1)):
                if not mutant.function or item.nodeid in chosen:
                    item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
                    if self.failed:
                        self._killer(os.getpid()).write_text(item.nodeid)
                        os._exit(1)
        except BaseException:
            os._exit(2)  # the change cannot be put in place, or a test was stopped by more than an exception
        os._exit(0)

    def _killer(self, child: int) -> Path:
        return self.out.with_suffix(f".{child}")

    def _collect(self, running: dict[int, str]) -> None:
        child, status = os.wait()
        end = "timed out" if os.WIFSIGNALED(status) else ("survived", "killed", "not installed")[os.WEXITSTATUS(status)]
        self.results[running.pop(child)] = end
        if end == "killed":
            name = self._killer(child).read_text()
            self._killer(child).unlink()
            self.killers = [k for k in self.killers if k != name] + [name]
        self.out.write_text(json.dumps(self.results, indent=0))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("paths", nargs="+", type=Path)
    arguments.add_argument("--tests", nargs="+", default=["tests/proofs"])
    arguments.add_argument("--out", type=Path, default=Path("mutants.json"))
    arguments.add_argument("--seconds", type=int, default=60, help="the longest that one mutant may take")
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--only", default="", help="mutants whose key holds this text")
    a = arguments.parse_args()
    files = [f.resolve() for p in a.paths for f in (sorted(p.glob("*.py")) if p.is_dir() else [p])]
    plugin = Session(files, a.out, a.seconds, a.workers, a.only)
    pytest.main([*a.tests, "-q", "-s", "-p", "no:cacheprovider", "-m", "not slow"], plugins=[plugin])


if __name__ == "__main__":
    main()
