"""What work costs by its size and the number of workers: counted, checked against runs, carried on to larger sizes.

python -m benchmarks.scale measure   runs five sizes of each kind of work by two dask workers; writes docs/scale.json
python -m benchmarks.scale           writes the tables of docs/scale.md anew

The counts (flops, scores, bytes, memory) follow from the plan of tasks. What a product and a score cost a worker, and
what a row costs the client, is fitted to the five runs.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parent.parent / "docs"
ASKED, LISTED = 2000, 10  # rows that ask in a check, and how long lists are
DRAWN, FEW = 20_000, 250  # rows that a check keeps, and rows that ask by other metrics too
SIZES = {
    "can_win": ((12_000, 192), (20_000, 256), (30_522, 384), (40_000, 512), (50_257, 768)),
    "nearest": ((10_000, 96), (16_000, 128), (24_000, 192), (30_522, 384), (50_000, 256)),
    "check": ((100_000, 64), (200_000, 128), (400_000, 64), (800_000, 64), (400_000, 256)),
}
LARGE = {"can_win": ((262_144, 4_096),), "check": ((10**8, 768), (10**9, 128)), "nearest": ((10**8, 768), (10**9, 128))}
WORKERS = (16, 128, 1024)
FILES = 10e9  # bytes a second that a shared file system gives to all workers together: an assumption
PER_TASK = 1e-3  # seconds of a dask scheduler for a task, as its documentation says


@dataclass(frozen=True)
class Cost:
    """One piece of work of n rows of width d.

    flops         of the products that workers make
    scores        that they look through, for `can_win` labels: what does not grow with the width
    client        what the client's time grows with
    tasks         that they come in: more workers than these have nothing to do
    returned      bytes of results
    read          bytes of rows that a worker maps, where it does its share of the tasks
    worker_bytes  that a worker holds beside what it maps
    client_bytes  that the client holds
    """

    flops: float
    scores: float
    client: tuple[float, ...]
    tasks: int
    returned: float
    read: Callable[[int], float]
    worker_bytes: float
    client_bytes: float


def can_win(n: int, d: int) -> Cost:
    """Products of all rows with all longer ones (half of a GEMM), in blocks of 512 labels; the client maps the rows."""
    return Cost(
        flops=n * n * d, scores=float(n), client=(1, n * d, n * d * d), tasks=-(-n // 512), returned=16.0 * n,
        read=lambda _: 4.0 * n * d, worker_bytes=4.0 * 512 * 8192 + 72.0 * n, client_bytes=12.0 * n * d + 8.0 * d * d,
    )  # fmt: skip


def nearest(n: int, d: int) -> Cost:
    """Products of all pairs once, in square tiles of at least 4,096 rows and at most 64 along a side."""
    side = 1024 * max(4, -(-n // (1024 * 64)))
    sides = -(-n // side)
    tasks = sides * (sides + 1) // 2
    return Cost(
        flops=n * n * d, scores=n * n, client=(n * d, n * sides), tasks=tasks, returned=8.0 * (LISTED + 1) * n * sides,
        read=lambda workers: 4.0 * d * min(n, 2 * side * -(-tasks // workers)),
        worker_bytes=24.0 * side * LISTED + 4.0 * 1024**2, client_bytes=4.0 * n * d + 12.0 * n * LISTED,
    )  # fmt: skip


def check(n: int, d: int, width: int = 2) -> Cost:
    """The rows are read twice, for lengths and copies and for neighbours; 2,000 of them ask all others."""
    block = (1 << 22) // d
    tasks = -(-n // (8 * block))
    return Cost(
        flops=2.0 * ASKED * n * d, scores=float(ASKED * n), client=(1, d * d, n), tasks=tasks,
        returned=25.0 * n + 4.0 * min(n, DRAWN) * d + 12.0 * LISTED * tasks * (ASKED + 2 * FEW),
        read=lambda workers: 2.0 * width * n * d / min(workers, tasks), worker_bytes=3 * 4.0 * (1 << 22),
        client_bytes=41.0 * n,
    )  # fmt: skip


COSTS = {"can_win": can_win, "nearest": nearest, "check": check}


@dataclass(frozen=True)
class Run:
    """One run by two workers of one thread each, processor seconds of all of them and of the client."""

    kind: str
    n: int
    d: int
    flops_a_second: float  # of one core, in a product of the same width, just before
    workers_s: float
    client_s: float
    sent: int
    returned: int
    worker_mb: float  # the most that a worker held, rows that it maps left out


def fitted(runs: list[Run]) -> tuple[np.ndarray, np.ndarray]:
    """What a product and a score cost a worker (in times of its products, in seconds), and the client's costs."""
    from scipy.optimize import nnls

    def fit(columns: list[Any], seconds: list[float]) -> np.ndarray:
        A, y = np.array(columns, float), np.array(seconds)
        scale = np.where(A.any(axis=0), A.max(axis=0), 1)
        return nnls(A / scale / y[:, None], np.ones(len(y)))[0] / scale  # each run counts alike, however long

    costs = [COSTS[r.kind](r.n, r.d) for r in runs]
    workers = [(c.flops / r.flops_a_second, c.scores) for c, r in zip(costs, runs, strict=True)]
    return fit(workers, [r.workers_s for r in runs]), fit([c.client for c in costs], [r.client_s for r in runs])


def measure() -> list[Run]:
    """All sizes of all kinds, one after another."""
    import joblib
    from distributed import Client, LocalCluster

    runs = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
        joblib.parallel_config(backend="dask", client=client),
        tempfile.TemporaryDirectory() as folder,
    ):
        for kind, sizes in SIZES.items():
            _work(kind, 3000, 32, folder)()  # start-up: imports and compiled loops
            for n, d in sizes:
                run = _run(kind, n, d, folder, [x.pid for x in cluster.workers.values()])
                print(run, flush=True)
                runs.append(run)
    return runs


def _run(kind: str, n: int, d: int, folder: str, workers: list[int]) -> Run:
    import psutil

    work = _work(kind, n, d, folder)
    processes = [psutil.Process(p) for p in workers]
    rate = _flops_a_second(d)
    before = [_used(p) for p in processes]
    peaks, stop = [0] * len(processes), threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            for i, p in enumerate(processes):
                peaks[i] = max(peaks[i], _used(p)[1])

    watching = threading.Thread(target=watch)
    watching.start()
    began = time.process_time()
    with counted_bytes() as wire:
        work()
    client_s = time.process_time() - began
    stop.set()
    watching.join()
    rate = (rate + _flops_a_second(d)) / 2
    spent = sum(_used(p)[0] - b[0] for p, b in zip(processes, before, strict=True))
    return Run(kind, n, d, rate, spent, client_s, wire[0], wire[1], max(peaks) / 1e6)


def _work(kind: str, n: int, d: int, folder: str) -> Callable[[], Any]:
    """The work of a kind on a made table; a head has rows of unlike lengths, as trained ones do."""
    import gonio
    from gonio.core.head import Head
    from gonio.similarity.nearest import nearest_by_cosine

    rng = np.random.default_rng(n + d)
    W = rng.standard_normal((n, d), dtype=np.float32)
    if kind == "can_win":
        W *= rng.uniform(0.5, 2, (n, 1)).astype(np.float32)
        return lambda: gonio.can_win(Head(W, link="softmax"))
    if kind == "nearest":
        return lambda: nearest_by_cosine(W, LISTED)
    path = Path(folder) / f"{n}_{d}.npy"
    np.save(path, W.astype(np.float16))
    return lambda: gonio.check(str(path), sample=ASKED)


def _used(process: Any) -> tuple[float, int]:
    """Processor seconds of a process, and the bytes it holds that belong to no file."""
    t, m = process.cpu_times(), process.memory_info()
    return t.user + t.system, m.rss - m.shared


def _flops_a_second(d: int) -> float:
    """Of one core: a product of 2,048 rows by 4,096 in float32."""
    from gonio.core.parallel import one_blas_thread

    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2048, d), dtype=np.float32), rng.standard_normal((4096, d), dtype=np.float32)
    with one_blas_thread():
        began, times = time.thread_time(), 0
        while time.thread_time() - began < 0.5:
            A @ B.T
            times += 1
        return times * 2 * 2048 * 4096 * d / (time.thread_time() - began)


class counted_bytes:  # noqa: N801  a context
    """Bytes of tasks and of results, counted where they pass."""

    def __enter__(self) -> list[int]:
        import pickle

        from gonio.core import tasks

        self.real, wire = tasks._by_joblib, [0, 0]

        def counted(name: str, work: Any, context: Any, left: list[Any]) -> Any:
            wire[0] += sum(len(pickle.dumps((work, k, item))) + 200 for k, item in left)  # and the place of the rows
            for k, result in self.real(name, work, context, left):
                wire[1] += len(pickle.dumps(result, protocol=5))
                yield k, result

        tasks._by_joblib = counted
        return wire

    def __exit__(self, *_: object) -> None:
        from gonio.core import tasks

        tasks._by_joblib = self.real


def checked(runs: list[Run]) -> str:
    """Predicted and measured, a line a run."""
    lines = [
        "| work | rows x width | workers' time (s) | client's time (s) | returned (MB) | a worker holds (MB) |",
        "|---|---|---|---|---|---|",
    ]
    for kind in SIZES:
        mine = [r for r in runs if r.kind == kind]
        workers, client = fitted(mine)
        for r in mine:
            c = COSTS[kind](r.n, r.d)
            spent, here = workers @ (c.flops / r.flops_a_second, c.scores), client @ c.client
            lines.append(
                f"| `{kind}` | {r.n:,} x {r.d} | {spent:.1f} / {r.workers_s:.1f} | {here:.1f} / {r.client_s:.1f} "
                f"| {c.returned / 1e6:.2g} / {r.returned / 1e6:.2g} | {r.worker_mb:.0f} |"
            )
    return "\n".join(lines)


def carried_on(runs: list[Run]) -> str:
    """The time on more workers, and what is the bottleneck."""
    rate = float(np.median([r.flops_a_second for r in runs]))
    lines = [
        "| work | rows x width | workers | products and lists | reading | client | in all | what takes longest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, sizes in LARGE.items():
        each, client = fitted([r for r in runs if r.kind == kind])
        for n, d in sizes:
            c = COSTS[kind](n, d)
            for workers in WORKERS:
                a_task = each @ (c.flops / rate, c.scores) / c.tasks
                parts = {
                    "products and lists": a_task * math.ceil(c.tasks / workers),
                    "reading": min(workers, c.tasks) * c.read(workers) / FILES,
                    "the client": float(client @ c.client) + PER_TASK * c.tasks,
                }
                lines.append(
                    f"| `{kind}` | {n:,} x {d:,} | {workers:,} | {' | '.join(map(_time, parts.values()))} "
                    f"| {_time(sum(parts.values()))} | {_bottleneck(c, parts, workers)} |"
                )
    return "\n".join(lines)


def _bottleneck(c: Cost, parts: dict[str, float], workers: int) -> str:
    first = max(parts, key=lambda k: parts[k])
    idle = f"; {workers - c.tasks:,} workers idle" if c.tasks < workers else ""
    held = f"; the client holds {c.client_bytes / 1e9:,.0f} GB" if c.client_bytes > 24e9 else ""
    return first + idle + held


def _time(seconds: float) -> str:
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


def main(arguments: list[str]) -> int:
    kept = DOCS / "scale.json"
    if arguments == ["measure"]:
        kept.write_text(json.dumps([asdict(r) for r in measure()], indent=1) + "\n")
    runs = [Run(**r) for r in json.loads(kept.read_text())]
    page = DOCS / "scale.md"
    if page.exists():
        page.write_text(with_tables(page.read_text(), runs))
    else:
        print(checked(runs), carried_on(runs), sep="\n\n")
    return 0


def with_tables(text: str, runs: list[Run]) -> str:
    """The page with its tables made anew: each stands between two marks."""
    for mark, table in (("checked", checked(runs)), ("carried on", carried_on(runs))):
        before, _, rest = text.partition(f"<!-- {mark} -->\n")
        text = f"{before}<!-- {mark} -->\n{table}\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
