"""Who can win, of heads that are hard: untrained crowds, heavy-tailed lengths, boxes, non-negative inputs.

Each head is decided with all verdicts proven; before the clock runs, some labels are compared with one linear program
each, and all of them with the search without its positive means and without climbing.
"""

from __future__ import annotations

from unittest import mock

import numpy as np

import gonio
from benchmarks import Case, Cases
from benchmarks.bench_can_win import made, product, recogniser
from gonio.core.inputs import AllInputs, Problem
from gonio.core.status import WINS

LABELS, FEW, WIDE = 50, 2, 150  # that programs are asked about: few in wide heads, where one takes minutes


def crowded(toy: bool) -> np.ndarray | None:
    """PP-OCRv4's rows, 12,000 of them once more and perturbed by 30 %, and 4,000 drawn like its untrained ones."""
    head = None if toy else recogniser("1.4.4", "ch_PP-OCRv4")
    rng = np.random.default_rng(0)
    if toy:
        W = made(300, 12)[0]
        W[:60] = W.mean(axis=0) + 0.02 * W[:60]
        never, perturbed, drawn = np.arange(60), 200, 60
    elif head is None:
        return None
    else:
        W, never, perturbed, drawn = np.ascontiguousarray(head.W), gonio.can_win(head).never, 12_000, 4_000
    again = W[rng.integers(0, len(W), perturbed)]
    size = np.linalg.norm(again, axis=1, keepdims=True) / np.sqrt(W.shape[1])
    again = again + 0.3 * size * rng.standard_normal(again.shape)
    like = rng.multivariate_normal(W[never].mean(axis=0), np.cov(W[never].T), drawn, method="eigh")
    return np.vstack([W, again, like]).astype(np.float32)


def heavy_tailed(n: int, d: int) -> np.ndarray:
    """Rows of eight-bit numbers with lengths from 1.8 to 8."""
    rng = np.random.default_rng(1)
    W = rng.standard_normal((n, d))
    W *= np.exp(rng.normal(np.log(3.2), 0.33, (n, 1))).clip(1.8, 8) / np.linalg.norm(W, axis=1, keepdims=True)
    step = np.abs(W).max(axis=1, keepdims=True) / 127
    return (np.round(W / step) * step).astype(np.float32)


def after_lstm(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose lengths go over five orders of size, and biases about -4: many labels never win in the box."""
    rng = np.random.default_rng(2)
    W = rng.standard_normal((n, d))
    W *= np.exp(rng.normal(np.log(0.8), 1.2, (n, 1))).clip(2e-5, 12.5) / np.linalg.norm(W, axis=1, keepdims=True)
    return W.astype(np.float32), rng.normal(-4, 1, n).astype(np.float32)


def best_lead(problem: Problem, i: int) -> float:
    """The largest lead of label i, at most 1, by linear programs over the rivals met so far: the last holds for all."""
    from scipy.optimize import linprog

    n, d = problem.V.shape
    V, c = problem.V.astype(np.float64), np.asarray(problem.c, np.float64)
    scale = float(np.abs(V).max())
    low, high = (np.full(d, -np.inf) if v is None else np.asarray(v, np.float64) for v in (problem.low, problem.high))
    if problem.high is None:
        high = -low
    if problem.shape == "orthant":
        low = np.zeros(d)
    if problem.shape in ("space", "orthant") and (c == c[0]).all():  # a cone: as far as 1 is as good as any
        low, high = np.maximum(low, -1), np.minimum(high, 1)
    D, more = (V[i] - V) / scale, (c[i] - c) / scale
    met = np.delete(np.arange(n), i)
    met = met[np.argsort((D @ (V[i] - V.mean(axis=0)) + more)[met])[: 3 * d]]
    while True:
        A = np.column_stack([-D[met], np.ones(len(met))])
        bounds = [*zip(low, high, strict=True), (None, 1e-3)]
        found = linprog(np.append(np.zeros(d), -1.0), A_ub=A, b_ub=more[met], bounds=bounds, method="highs")
        assert found.status == 0, found.message
        z, t = found.x[:-1], float(found.x[-1])
        leads = D @ z + more
        leads[i] = np.inf
        new = np.setdiff1d(np.flatnonzero(leads < t - 1e-10), met)
        if not len(new):
            return t
        met = np.union1d(met, new[np.argsort(leads[new])[:d]])


def cases(toy: bool) -> Cases:
    crowd = crowded(toy)
    if crowd is not None:
        yield row("a crowd of untrained rows", gonio.Head(crowd, link="softmax"), 12.0 if not toy else 999.0)
    tails = heavy_tailed(*((400, 12) if toy else (32_768, 288)))
    yield row("lengths from 1.8 to 8", gonio.Head(tails, link="softmax"), 1.5 if not toy else 999.0)
    sets = {"as loaded": None, "all inputs": AllInputs(), "x >= 0": gonio.Nonnegative()}
    for version, model in () if toy else (("1.2.3", "ch_PP-OCRv3"), ("1.4.4", "ch_PP-OCRv4")):
        head = recogniser(version, model, as_loaded=True)
        for name, inputs in sets.items() if head else ():
            whole = head if inputs is None else head.replace(inputs=inputs)  # type: ignore[union-attr]
            yield row(f"{model}, {name}", whole, 18.0)
    W, b = after_lstm(*((300, 12) if toy else (6_436, 512)))
    yield row(
        "after an LSTM, a box", gonio.Head(W, b, link="sigmoid", inputs=gonio.Box(-1, 1)), 20.0 if not toy else 999.0
    )
    wide = made(*((300, 12) if toy else (6_522, 1_024)))[0]
    yield row("wide, x >= 0", gonio.Head(wide, link="softmax", inputs=gonio.Nonnegative()), 4.0 if not toy else 999.0)
    narrow = made(*((300, 12) if toy else (6_625, 64)))[0]
    yield row("x >= 0", gonio.Head(narrow, link="softmax", inputs=gonio.Nonnegative()), 22.0 if not toy else 999.0)
    if toy:
        yield row("a box", gonio.Head(made(300, 8)[0], link="softmax", inputs=gonio.Box(-1, 1)), 999.0)


def row(name: str, head: gonio.Head, most: float) -> Case:
    """One head against one float32 W W' of its rows."""
    W = np.ascontiguousarray(head.W, np.float32)
    n, d = W.shape

    def agrees(codes: np.ndarray, cells: int) -> bool:
        with (
            mock.patch("gonio.search.propose.positive_means", return_value=()),
            mock.patch("gonio.search.scaled_box.ScaledBox.possible", return_value=False),
        ):
            slowly = gonio.can_win(head).codes
        problem = head.inputs.reduce(head.W, head.bias, differences=True)
        asked = np.random.default_rng(0).permutation(n)[: LABELS if d <= WIDE else FEW]
        leads = {int(i): best_lead(problem, int(i)) for i in asked if not len(head.equals(int(i)))}
        clear = [i for i, lead in leads.items() if abs(lead) > 1e-9 or codes[i] != WINS]  # the others: within tolerance
        as_programs = all((leads[i] > 1e-9) == (codes[i] == WINS) for i in clear)
        return as_programs and bool((codes == slowly).all()) and cells == n * n

    return Case(
        f"{name}: every label of {n:,} x {d} proven, against one float32 W W'",
        lambda: gonio.can_win(head).codes,
        lambda: product(W),
        agrees,
        most=most,
        repeats=3,
    )
