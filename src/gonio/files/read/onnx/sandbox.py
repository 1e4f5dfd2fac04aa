"""The process in which pieces of an untrusted graph are run: limited in memory and time, kept for the next question."""

from __future__ import annotations

import os
from concurrent.futures import BrokenExecutor
from typing import Any

import numpy as np
from joblib.externals.loky.process_executor import ProcessPoolExecutor

from gonio.files.read.onnx import evaluator

SECONDS = 20  # of computing
CLOCK = 60  # seconds by the clock, the start of the process included
MEMORY = 1 << 30  # bytes, beyond three times what is sent
PATIENCE = 60  # seconds without a question after which the process ends
_pools: dict[int, ProcessPoolExecutor] = {}  # by process, since a fork must not use its parent's


class CannotRun(Exception):  # noqa: N818  not an error of gonio's user: one attempt of several
    """Why a piece of a graph gave no numbers; `final` where no other attempt can fare better."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


def run(raw: bytes, constants: dict[str, np.ndarray], start: str, feeds: np.ndarray, keep: list[str]) -> dict[str, Any]:
    """The tensors `keep` of a model, stacked over runs; `feeds` holds the tensor `start` of each run."""
    piece = {"raw": raw, "constants": constants, "start": start, "feeds": feeds, "keep": keep}
    memory = MEMORY + 3 * sum(a.nbytes for a in (*constants.values(), feeds))
    me = os.getpid()
    one_thread = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    try:
        if me not in _pools:
            _pools[me] = ProcessPoolExecutor(max_workers=1, timeout=PATIENCE, env=one_thread)
        return _pools[me].submit(evaluator.run, piece, memory, SECONDS).result(timeout=CLOCK)
    except MemoryError:
        raise CannotRun(f"more than {memory / 2**30:.0f} GB are needed") from None
    except evaluator.GraphError as e:
        raise CannotRun(str(e)) from None
    except (BrokenExecutor, TimeoutError, OSError, NotImplementedError) as e:
        if me in _pools:
            _pools.pop(me).shutdown(wait=False, kill_workers=True)
        late = isinstance(e, TimeoutError) or "SIGXCPU" in str(e)
        raise CannotRun(
            f"that took more than {SECONDS} seconds" if late else f"that broke off ({type(e).__name__})", final=True
        ) from None
