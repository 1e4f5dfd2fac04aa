"""Fitting factors: against scipy's svds on the same table, memory against the table's own, and `implicit`'s ALS."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix
from scipy.sparse.linalg import svds
from threadpoolctl import threadpool_limits

from benchmarks import Case, Cases
from gonio.core.directions import unit
from gonio.factors import fit, similar_items
from gonio.factors.similar import vectors
from gonio.papers.simulated_interactions import simulate


def generated(users: int, items: int, entries: int, seed: int = 0, groups: int = 30) -> csr_array:
    """About so many distinct interactions: users of many groups, items of power-law popularity in each group."""
    rng = np.random.default_rng(seed)
    activity = rng.pareto(1.5, users) + 0.3
    of_user, of_item = rng.integers(0, groups, users), rng.integers(0, groups, items)
    popularity = rng.permutation(items).astype(float) + 10
    popularity = popularity**-0.8
    per = np.maximum(1, np.round(activity / activity.sum() * entries * 1.35)).astype(np.int64)
    per = np.minimum(per, items // 3)
    rows, columns = [], []
    overall = np.cumsum(popularity) / popularity.sum()
    for g in range(groups):
        mine = np.flatnonzero(of_user == g)
        users_g = np.repeat(mine, per[mine])
        weights = popularity * np.where(of_item == g, 40.0, 1.0)
        own = np.cumsum(weights) / weights.sum()
        draw = rng.random(len(users_g))
        picked = np.where(rng.random(len(users_g)) < 0.7, np.searchsorted(own, draw), np.searchsorted(overall, draw))
        rows.append(users_g.astype(np.int32))
        columns.append(np.minimum(picked, items - 1).astype(np.int32))
    i, j = np.concatenate(rows), np.concatenate(columns)
    X = csr_array((np.ones(len(i)), (i, j)), shape=(users, items))
    X.sum_duplicates()
    X.data[:] = 1.0
    return X


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_of(work: Callable[[], Any]) -> int:
    """The most by which this process's memory grew while `work` ran, looked at every few milliseconds."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what earlier runs freed must not hide what this one needs
    before = top = resident()
    done = threading.Event()

    def watch() -> None:
        nonlocal top
        while not done.is_set():
            top = max(top, resident())
            time.sleep(0.003)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return top - before


def size_of(X: csr_array) -> int:
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def same_spectrum(a: Any, b: Any) -> bool:
    """Equal singular values and one subspace (the last directions may be close to a tie)."""
    s, V = a.singular, a.items / np.linalg.norm(a.items, axis=0)
    angles = np.linalg.svd(V.T @ b[2].T, compute_uv=False)
    return bool(np.allclose(np.sort(s), np.sort(b[1]), rtol=1e-9) and angles[:-1].min() > 1 - 1e-7)


def cases(toy: bool) -> Cases:
    warnings.simplefilter("ignore", UserWarning)  # generated tables may have an item that nobody took
    rank = 8 if toy else 50
    small = simulate(*((300, 60) if toy else (20_000, 1_000))).X.astype(np.float64)
    large = generated(*((2_000, 400, 30_000) if toy else (140_000, 27_000, 20_000_000)))
    for X, repeats in ((small, 5), (large, 1)):
        n, p = X.shape

        def fitted(X=X):
            return fit(X, rank, "product", lam=100.0)

        def memory(X=X, fitted=fitted) -> dict[str, float]:
            return {"memory_of_data": 1 + peak_of(fitted) / size_of(X), "data_mb": size_of(X) / 1e6}

        yield Case(
            f"fit {n:,} x {p:,}, {X.nnz:,} entries, rank {rank}, against svds",
            fitted,
            lambda X=X: svds(X, rank),
            same_spectrum,
            most=2.0,
            repeats=repeats,
            extra=memory,
        )
    yield Case(
        f"dropout {large.shape[0]:,} x {large.shape[1]:,}, rank {rank}, against svds of the table",
        lambda: fit(large, rank, "dropout", rate=0.5),
        lambda: svds(large, rank),
        lambda a, b: bool(0 < a.objective < large.nnz and len(b[1]) == rank),  # other problems, equally many directions
        most=10.0,
        repeats=1,
    )
    model = fit(large, rank, "product", lam=100.0)

    def ours() -> np.ndarray:
        return similar_items(model, k=10).near

    def plain() -> np.ndarray:
        U = unit(vectors(model.users, model.items, "projected")).astype(np.float32)
        out = np.empty((len(U), 10), np.int64)
        for a in range(0, len(U), 1000):
            S = U[a : a + 1000] @ U.T
            S[np.arange(len(S)), np.arange(a, a + len(S))] = -2
            top = np.argpartition(-S, 9, axis=1)[:, :10]
            order = np.argsort(-np.take_along_axis(S, top, 1), axis=1)
            out[a : a + 1000] = np.take_along_axis(top, order, 1)
        return out

    yield Case(
        f"similar_items, projected, of all {len(model.items):,} items, against plain blocks of numpy",
        ours,
        plain,
        lambda a, b: np.mean([len(set(x) & set(y)) for x, y in zip(a, b, strict=True)]) > 9.9,
        most=2.0,
        repeats=1 if toy else 3,
    )
    if importlib.util.find_spec("implicit") is not None:
        yield against_implicit(small, rank, lam=5.0 if toy else 100.0)


def against_implicit(X: csr_array, rank: int, lam: float = 100.0, near: float = 1e-3) -> Case:
    """The time `implicit` needs to come within `near` of the least objective.

    With every confidence 1 its objective is ||X - P Q'||^2 + lam (||P||^2 + ||Q||^2), the same as ours.
    """
    from implicit.cpu.als import AlternatingLeastSquares

    goal = fit(X, rank, "factors", lam=lam).objective
    table = csr_matrix(X.astype(np.float32))

    def value(m: Any) -> float:
        P, Q = m.user_factors.astype(np.float64), m.item_factors.astype(np.float64)
        fitted = float((X @ Q * P).sum())
        square = float(((P.T @ P) * (Q.T @ Q)).sum())
        return X.nnz - 2 * fitted + square + lam * float((P**2).sum() + (Q**2).sum())

    def train(iterations: int) -> float:
        with threadpool_limits(1, "blas"):  # as it advises: its own threads do the work
            m = AlternatingLeastSquares(
                factors=rank, regularization=lam, alpha=1.0, iterations=iterations, random_state=0
            )
            m.fit(table, show_progress=False)
        return value(m)

    steps = next(k for k in (5, 10, 15, 20, 30, 40, 60, 80, 120, 160, 240) if train(k) <= goal * (1 + near) or k == 240)
    return Case(
        f"weight decay, {X.shape[0]:,} x {X.shape[1]:,}, against implicit's ALS ({steps} iterations to 0.1 %)",
        lambda: fit(X, rank, "factors", lam=lam).objective,
        lambda: train(steps),
        lambda a, b: a <= b * (1 + 1e-6) and b <= a * (1 + 2 * near),
        most=1.0,
        repeats=3,
    )
