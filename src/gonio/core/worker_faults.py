"""What can go wrong with workers, a sentence each. No engine is imported: their errors are known by name."""

from __future__ import annotations

KEPT = "What was finished is in the state folder, if one was given (--state): the same command goes on from there."


def sentence(error: BaseException, name: str) -> str | None:
    """What to tell of an error that an engine raised; None where it is not about workers."""
    kinds = {c.__name__ for c in type(error).__mro__}
    if "KilledWorker" in kinds:
        return (
            f"workers: {name} was begun several times and its worker died each time, most often for lack of memory; "
            f"give workers more (dask worker --memory-limit) or start fewer of them. {KEPT}"
        )
    if "MemoryError" in kinds:
        return (
            f"workers: a worker ran out of memory in {name}; give workers more (dask worker --memory-limit, or fewer "
            f"with --cluster local:N). {KEPT}"
        )
    if "TerminatedWorkerError" in kinds or "BrokenProcessPool" in kinds:
        return f"workers: a process of the pool died in {name}, killed or out of memory; ask for fewer (n_jobs). {KEPT}"
    if kinds & {"CancelledError", "FutureCancelledError", "CommClosedError", "TimeoutError", "StreamClosedError"}:
        return f"workers: the cluster cannot be reached any more, in {name}. {KEPT}"
    return None
