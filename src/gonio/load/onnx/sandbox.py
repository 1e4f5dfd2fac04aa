"""The process in which pieces of an untrusted graph are run: limited in memory and time, kept for the next question."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np

from gonio.load.onnx import evaluator

SECONDS = 20  # of computing; twice that by the clock
MEMORY = 1 << 30  # bytes, beyond three times what is sent
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
            while True:
                fresh, process = self._started()
                clock = threading.Timer(2 * header["seconds"], process.kill)
                clock.start()
                try:
                    evaluator.send(process.stdin, header, arrays)  # type: ignore[arg-type]
                    return evaluator.receive(process.stdout)  # type: ignore[arg-type]
                except (OSError, EOFError, ValueError):
                    code = self.close()
                    if code in (-9, -24):  # killed by the clock, or by the limit on computing
                        raise CannotRun(f"that took more than {header['seconds']} seconds", final=True) from None
                    if fresh:  # an old one may have ended for want of questions
                        raise CannotRun(f"that ended without an answer (exit code {code})", final=True) from None
                finally:
                    clock.cancel()

    def _started(self) -> tuple[bool, subprocess.Popen]:
        if self.owner != os.getpid():  # after a fork the pipes are the parent's
            self.process, self.owner = None, os.getpid()
        if self.process is not None and self.process.poll() is None:
            return False, self.process
        self.close()
        environment = os.environ | {f"{k}_NUM_THREADS": "1" for k in ("OMP", "OPENBLAS", "MKL")}
        command = [sys.executable, "-c", START, json.dumps(sys.path), evaluator.__file__]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        try:
            self.process = subprocess.Popen(command, env=environment, **pipes)  # noqa: S603
        except (OSError, ValueError, TypeError) as e:
            raise CannotRun(f"no second Python process starts here ({type(e).__name__})", final=True) from None
        return True, self.process

    def close(self) -> int:
        """End the process; how it ended."""
        process, self.process = self.process, None
        if process is None or self.owner != os.getpid():
            return 0
        process.stdout.close()  # type: ignore[union-attr]
        try:
            process.stdin.close()  # type: ignore[union-attr]
            process.wait(timeout=2)  # no more questions: it leaves by itself
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
        return process.wait()


_child = Child()
atexit.register(_child.close)


def run(model: bytes, constants: dict[str, np.ndarray], start: str, feeds: np.ndarray, keep: list[str]) -> dict[str, Any]:
    """The tensors `keep` of a model, stacked over runs; `feeds` holds the tensor `start` of each run."""
    arrays = [np.frombuffer(model, np.uint8), *constants.values(), feeds]
    memory = MEMORY + 3 * sum(a.nbytes for a in arrays)
    header = {"constants": list(constants), "start": start, "keep": keep, "memory": memory, "seconds": SECONDS}
    answer, got = _child.ask(header, arrays)
    if "error" in answer:
        too_much = f"more than {memory / 2**30:.0f} GB are needed"
        raise CannotRun(too_much if answer["error"] == "memory" else answer["error"])
    return dict(zip(answer["names"], got, strict=True))
