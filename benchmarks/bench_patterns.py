"""Label sets and rankings: against the papers' loops, linear programs, sampling, and other packages where installed."""

from __future__ import annotations

import importlib.util
import inspect
import math
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import combinations, product

import numpy as np

from benchmarks import Case
from gonio import Head, label_sets, rankings
from gonio.core.compiled import njit
from gonio.listing import generic_cells, generic_walk, kernel_options, packed_signs
from gonio.listing.cell_list import CellList
from gonio.listing.gram_factor import rows_from_gram
from gonio.listing.oriented_matroid import minor_signs
from gonio.listing.reconstruct import cosines
from gonio.papers import reconstruction_grid
from gonio.papers.invariance_table import braid
from gonio.proofs.comparisons import NOBODY, ZERO
from gonio.search.feasible import newton, pose


def determinants(A: np.ndarray, most: int | None = None, eps: float = 1e-10) -> np.ndarray:
    """The papers' way: one determinant a subset of rows."""
    out = []
    for k, rows in enumerate(combinations(range(len(A)), A.shape[1])):
        if k == most:
            break
        v = np.linalg.det(A[list(rows)])
        out.append(0 if abs(v) < eps else int(np.sign(v)))
    return np.array(out, np.int8)


def by_programs(W: np.ndarray) -> set[tuple[int, ...]]:
    """Incremental enumeration: each sign vector of the first rows is tried with both signs of the next, one LP each."""
    import highspy

    n, d = W.shape
    found = [np.zeros(0)]
    inf = highspy.kHighsInf
    for i in range(n):
        h = highspy.Highs()
        h.setOptionValue("output_flag", False)
        for _ in range(d):
            h.addVar(-inf, inf)
        for k in range(i + 1):
            h.addRow(-inf, inf, d, np.arange(d, dtype=np.int32), W[k])
        nxt = []
        for s in found:
            for e in (1.0, -1.0):
                signs = np.append(s, e)
                for k, v in enumerate(signs):
                    h.changeRowBounds(k, 1.0 if v > 0 else -inf, inf if v > 0 else -1.0)
                h.run()
                if h.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                    nxt.append(signs)
        found = nxt
    return {tuple(int(x) for x in s) for s in found}


class Warm:
    """Feasibility of sign(W x) = s by HiGHS, warm-started from question to question."""

    def __init__(self, W: np.ndarray) -> None:
        import highspy

        n, d = W.shape
        self.h, self.n, self.highspy = highspy.Highs(), n, highspy
        self.h.setOptionValue("output_flag", False)
        self.h.setOptionValue("threads", 1)
        for _ in range(d):
            self.h.addVar(-highspy.kHighsInf, highspy.kHighsInf)
        for row in W:
            self.h.addRow(-highspy.kHighsInf, highspy.kHighsInf, d, np.arange(d, dtype=np.int32), row)

    def __call__(self, s: np.ndarray) -> bool:
        inf = self.highspy.kHighsInf
        low, high = np.where(s > 0, 1.0, -inf), np.where(s > 0, inf, -1.0)
        self.h.changeRowsBounds(self.n, np.arange(self.n, dtype=np.int32), low, high)
        self.h.run()
        return self.h.getModelStatus() == self.highspy.HighsModelStatus.kOptimal


def cases(toy: bool) -> Iterator[Case]:
    """The ratios of what was published or is in use to ours."""
    rng = np.random.default_rng(0)
    n, d = (5, 3) if toy else (10, 6)
    A = braid(n) @ rng.normal(size=(n, d))
    total = len(minor_signs(A))
    some = total if toy else 40_000  # the loop is timed on its first subsets and counted for all of them
    yield Case(
        f"chirotope of {len(A)} differences, {total:,} minors, against one determinant each ({some:,} of them)",
        lambda: minor_signs(A),
        lambda: determinants(A, some),
        lambda ours, theirs: np.array_equal(ours[:some], theirs),
        most=total / some / 3000 if not toy else 10,
        repeats=5,
    )
    runs = [r for r in reconstruction_grid.runs() if not toy or (r.n <= 5 and r.seed == 1)]
    small = [r for r in runs if r.n <= 5 and r.seed == 1]
    minors = sum(2 * math.comb(len(reconstruction_grid.rows(r)), r.d) for r in runs)
    part = minors if toy else 40_000
    yield Case(
        f"the verification grid, {len(runs)} runs, {minors:,} minors, against one determinant each ({part:,} of them)",
        lambda: (
            reconstruction_grid.verify_grid() == (200, 200)
            if not toy
            else all(reconstruction_grid.passes(r) for r in runs)
        ),
        lambda: determinants(A, part),
        lambda ours, theirs: ours and all(_papers(r) for r in small),
        most=minors / part / 2500 if not toy else 100,
        repeats=3,
    )
    n, d = (6, 3) if toy else (20, 6)
    W = rng.normal(size=(n, d))
    yield Case(
        f"label sets of {n} x {d} against incremental linear programs",
        lambda: label_sets(Head(W, link="sigmoid")).to_array(),
        lambda: by_programs(W),
        lambda ours, theirs: {tuple(r) for r in ours.tolist()} == theirs,
        most=1 / 2000 if not toy else 10,
        repeats=1,
    )
    n, d, draws = (6, 3, 1000) if toy else (10, 6, 100_000)
    V = rng.normal(size=(n, d))
    X = rng.normal(size=(draws, d))
    sampled = lambda: np.unique(np.argsort(-X @ V.T, axis=1), axis=0)  # noqa: E731
    yield Case(
        f"all rankings of {n} x {d} against {draws:,} sampled inputs",
        lambda: rankings(Head(V, link="softmax")).to_array(),
        sampled,
        lambda ours, theirs: {tuple(r) for r in theirs.tolist()} <= {tuple(r) for r in ours.tolist()},
        most=1.0,
        extra=lambda: {"share_found_by_sampling": len(sampled()) / rankings(Head(V, link="softmax")).count},
    )
    n, d, asked = (40, 5, 6) if toy else (1000, 64, 60)
    M = rng.normal(size=(n, d))
    problem = Head(M, link="sigmoid").inputs.reduce(M)
    questions = [np.sign(M @ rng.normal(size=d)) for _ in range(asked // 2)]
    questions += [q * np.where(rng.random(n) < 0.02, -1, 1) for q in questions]
    warm = Warm(M)
    yield Case(
        f"{asked} label sets of {n} x {d} against warm HiGHS",
        lambda: [_newton(problem, q) for q in questions],
        lambda: [warm(q) for q in questions],
        lambda ours, theirs: ours == theirs,
        most=1 / 20 if not toy else 10,
        repeats=1 if toy else 3,
    )
    n, d = (12, 4) if toy else (45, 7)
    L = CellList(_arranged(rng.normal(size=(n, d))), general=True)
    yield Case(
        f"listing {L.count:,} cells with all cores against one thread",
        lambda: sum(len(b) for b, _ in L.blocks()),
        lambda: sum(len(b) for p in L._generic_pieces() for b in L._generic_piece(p)),
        lambda ours, theirs: ours == theirs == L.count,
        most=1 / 1.8 if not toy else 100,
        repeats=1 if toy else 9,
        extra=(dict) if toy else _streaming,
    )
    quick = _without_bounds()
    n, d = (12, 4) if toy else (30, 7)
    P = CellList(_arranged(rng.normal(size=(n, d))), general=True)
    yield Case(
        f"{P.count:,} cells of {n} x {d} with proven signs against the same walk without bounds",
        lambda: _walk(P, generic_cells.list_cells),
        lambda: _walk(P, quick),
        lambda ours, theirs: all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True)),
        most=1.45 if not toy else 100,
        repeats=1 if toy else 15,
    )
    if not toy:
        yield from _others("10 x 6", np.round(rng.normal(size=(10, 6)) * 1000).astype(int))
        yield from _others("threshold functions of 4 bits, 16 x 5", _threshold(4))


def _arranged(W: np.ndarray):
    from gonio.listing.arrangement import arrange, whole_rows

    return arrange(whole_rows(W))


BOUNDS = ("doubt |= near", "terms[i]", "terms_leaf[i]", "next_bound[", "next_size[", "after =", "size = max",
          "error = max", "levels.terms[")  # fmt: skip


def _without_bounds() -> Callable:
    """`generic_cells.list_cells` with every line struck out that only tells signs from zero."""
    modules = (kernel_options, packed_signs, generic_walk, generic_cells)
    imports = r"from (gonio|__future__)\S* import (\([^)]*\)|.*)"
    source = "\n".join(re.sub(imports, "", inspect.getsource(m)) for m in modules)
    lines = ["from __future__ import annotations"]
    for line in source.replace('"cache": True, ', "").splitlines():
        bare = line.lstrip()
        lines.append(line[: len(line) - len(bare)] + "pass" if bare.startswith(BOUNDS) else line)
    room: dict = {"__name__": "without_bounds", "njit": njit}
    exec(compile("\n".join(lines), "without_bounds", "exec"), room)
    return room["list_cells"]


def _walk(L: CellList, kernel: Callable) -> list[np.ndarray]:
    """The blocks of a listing by a kernel, in one thread."""
    A, bounds, _ = L._rotated
    blocks = []
    for p in L._generic_pieces():
        out = np.empty((p.count, L.words), np.uint64)
        unsure, at = np.zeros((4096, A.shape[1] - p.stage - 1), np.int64), np.zeros(4096, np.int64)
        rows = np.ascontiguousarray(A[:, p.stage :])
        kernel(rows, bounds, np.array(p.prefix, np.int64), p.high, p.low, p.stage == 0, out, unsure, at)
        blocks.append(out)
    return blocks


def _papers(run: reconstruction_grid.Run) -> bool:
    W = reconstruction_grid.rows(run)
    L = rows_from_gram(cosines(W) if run.cosine else W @ W.T)
    a, b = determinants(W), determinants(L)
    return bool((a * a[np.flatnonzero(a)[0]] == b * b[np.flatnonzero(b)[0]]).all())


def _newton(problem, signs: np.ndarray) -> bool:
    zero = np.full(len(signs), ZERO)
    above, below = np.where(signs > 0, np.arange(len(signs)), zero), np.where(signs > 0, zero, np.arange(len(signs)))
    system = pose(problem, above, below, NOBODY)
    assert system is not None
    return newton(system).u is not None


def _streaming() -> dict[str, float]:
    """Megabytes that all 1.26 x 10^9 label sets of a 64 x 8 head, gone through, add to a process that listed a few."""
    code = (
        "import numpy as np, resource, gonio\n"
        "draw = np.random.default_rng(0).normal\n"
        "sets = lambda n, d: gonio.label_sets(gonio.Head(draw(size=(n, d)), link='sigmoid'))\n"
        "sum(len(b.rows) for b in sets(40, 5).blocks())\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "count = sum(len(b.rows) for b in sets(64, 8).blocks())\n"
        "print(count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)\n"
    )
    count, added = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    return {
        "streamed_cells": float(count),
        "added_mb": float(added),
        "own_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _threshold(n: int) -> np.ndarray:
    """The planes of all threshold functions of n bits: (1, v) for v in {0, 1}^n."""
    return np.array([(1, *v) for v in product((0, 1), repeat=n)])


def _others(name: str, W: np.ndarray) -> Iterator[Case]:
    """Our listing of all cells against the packages that can do it, where they are installed."""
    times = 20  # theirs takes seconds, ours about a millisecond

    def ours() -> list[int]:
        return [2 * sum(len(b) for b, _ in CellList(_arranged(W.astype(float))).blocks()) for _ in range(times)]

    def same(mine: list[int], theirs: int) -> bool:
        return mine == [theirs] * times

    if shutil.which("polymake"):
        rows = "],[".join(",".join(map(str, r)) for r in W.tolist())
        script = (
            f'use application "fan"; my $h = new HyperplaneArrangement(HYPERPLANES=>[[{rows}]]); '
            "print $h->CHAMBER_DECOMPOSITION->N_MAXIMAL_CONES;"
        )
        run = lambda: int(subprocess.run(["polymake", script], capture_output=True, text=True, check=True).stdout)  # noqa: E731
        yield Case(
            f"cells of {name}, listed {times} times, against polymake's chamber decomposition once, its start included",
            ours, run, same, most=times / 20_000, repeats=1,
        )  # fmt: skip
    if importlib.util.find_spec("sage"):
        import sage.all__sagemath_polyhedra  # noqa: F401  # pyright: ignore[reportMissingImports]
        from sage.geometry.hyperplane_arrangement.arrangement import (  # pyright: ignore[reportMissingImports]
            HyperplaneArrangements,
        )
        from sage.rings.rational_field import QQ  # pyright: ignore[reportMissingImports]

        H = HyperplaneArrangements(QQ, tuple(f"x{i}" for i in range(W.shape[1])))
        yield Case(
            f"cells of {name}, listed {times} times, against passagemath-polyhedra's regions once",
            ours, lambda: len(H([[0, *r] for r in W.tolist()]).regions()), same, most=times / 3000, repeats=1,
        )  # fmt: skip
