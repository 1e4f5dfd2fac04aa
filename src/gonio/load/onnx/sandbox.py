"""The process in which pieces of an untrusted graph are run: limited in memory and time, kept for the next question."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

from gonio.load.onnx import evaluator

SECONDS = 20  # of computing; twice that by the clock
MEMORY = 1 << 30  # bytes, beyond three times the constants

# The child sees the modules that this process sees; numpy and onnx are all it imports.
START = "import json, runpy, sys; sys.path[:] = json.loads(sys.argv[1]); runpy.run_path(sys.argv[2], run_name='__main__')"


class CannotRun(Exception):  # noqa: N818  not an error of gonio's user: one attempt of several
    """Why a piece of a graph gave no numbers; `final` where no other attempt can fare better."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class Child:
    """One process, started at the first question and again whenever it has gone."""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None
        self.owner = 0
        self.lock = threading.Lock()

    def ask(self, header: dict[str, Any], arrays: list[np.ndarray]) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Its answer; CannotRun where it died or took too long."""
        with self.lock:
            fresh = self._start()
            try:
                return self._exchange(header, arrays)
            except (OSError, EOFError, ValueError):
                self.close()
                if fresh:
                    raise CannotRun("it broke off without an answer", final=True) from None
            self._start()  # the old one had ended for want of questions
            try:
                return self._exchange(header, arrays)
            except (OSError, EOFError, ValueError):
                self.close()
                raise CannotRun("it broke off without an answer", final=True) from None

    def _start(self) -> bool:
        if self.owner != os.getpid():  # after a fork the pipes are the parent's
            self.process, self.owner = None, os.getpid()
        if self.process is not None and self.process.poll() is None:
            return False
        self.close()
        environment = os.environ | {f"{k}_NUM_THREADS": "1" for k in ("OMP", "OPENBLAS", "MKL")}
        command = [sys.executable, "-c", START, json.dumps(sys.path), str(Path(evaluator.__file__))]
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
            )
        except (OSError, ValueError, TypeError) as e:
            raise CannotRun(f"no second Python process can be started here ({type(e).__name__})", final=True) from None
        return True

    def _exchange(self, header: dict[str, Any], arrays: list[np.ndarray]) -> tuple[dict[str, Any], list[np.ndarray]]:
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        clock = threading.Timer(2 * header["seconds"], end)
        clock.start()
        try:
            evaluator.send(process.stdin, header, arrays)
            return evaluator.receive(process.stdout)
        except (OSError, EOFError, ValueError):
            process.wait(timeout=10) if not late.is_set() else None
            if late.is_set() or process.poll() == -24:  # SIGXCPU
                self.close()
                raise CannotRun(f"it took more than {header['seconds']} seconds", final=True) from None
            raise
        finally:
            clock.cancel()

    def close(self) -> None:
        """End the process, if it is ours."""
        process, self.process = self.process, None
        if process is None or self.owner != os.getpid():
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            try:
                pipe.close()  # type: ignore[union-attr]
            except OSError:  # what was still to be written has no reader
                pass


_child = Child()
atexit.register(_child.close)


def run(
    model: bytes, constants: dict[str, np.ndarray], feeds: dict[str, np.ndarray], keep: list[str]
) -> dict[str, np.ndarray]:
    """The tensors `keep` of a model, stacked over runs; `feeds` holds the inputs of all runs, one run an entry."""
    names = [k for k in constants if k not in feeds]
    arrays = [np.frombuffer(model, np.uint8), *(constants[k] for k in names), *feeds.values()]
    memory = MEMORY + 3 * sum(a.nbytes for a in arrays)
    header = {"constants": names, "feeds": list(feeds), "keep": keep, "memory": memory, "seconds": SECONDS}
    answer, got = _child.ask(header, arrays)
    if "error" in answer:
        memory_gone = answer["error"] == "memory"
        raise CannotRun(f"it needs more than {memory / 2**30:.0f} GB" if memory_gone else answer["error"])
    return dict(zip(answer["names"], got, strict=True))
