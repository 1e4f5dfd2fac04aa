"""InfoNCE on handwritten digits: what the similarity inside the loss, a norm penalty and small weights do.

    L = - mean log [ exp(sim(u, v) / tau) / sum_i exp(sim(u, v_i) / tau) ]  + gamma mean (|z| - 1)^2

An encoder z = B max(0, A x) is trained with plain gradient steps on two noisy views of each digit; gradients by hand.
Its directions do not depend on the scale of A and B: over cosines a cut of the start changes nothing but lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gonio.core.parallel import one_blas_thread
from gonio.diagnostics.result import Result, axes, called

if TYPE_CHECKING:
    from jaxtyping import Float

TAU = 0.2
DOT_TAU = 1.0  # a dot product is not bounded: its temperature is in its lengths


@dataclass(frozen=True)
class Way:
    """One way of training: the similarity in the loss, the penalty on norms, weight decay, the cut of the start."""

    name: str
    sim: Literal["dot", "cosine"]
    penalty: float = 0.0
    decay: float = 0.0
    cut: float = 1.0
    rate: float = 1.0  # times the common rate: a dot product, unbounded, does not bear steps that a cosine does


WAYS = (
    Way("plain (dot product)", "dot", rate=0.02),
    Way("dot product, norm penalty", "dot", penalty=0.05, rate=0.02),
    Way("cosine", "cosine"),
    Way("cosine, norm penalty", "cosine", penalty=0.05),
    Way("cosine, cut initialisation", "cosine", cut=3.0),
    Way("cosine, cut and weight decay", "cosine", decay=1e-3, cut=3.0),
)


@dataclass(frozen=True, eq=False)
class Training:
    """One run: mean length of embeddings at the start and at the end; steps until the loss wanted (-1: never).

    losses     InfoNCE over cosines on held-out views, every `every` steps, whatever the run was trained on
    same       share of the 10 nearest held-out digits by cosine that are the same digit; `same_dot` by dot product
    """

    name: str
    norm_start: float
    norm_end: float
    steps: int
    losses: np.ndarray
    same: float
    same_dot: float
    spread: float


@dataclass(frozen=True, eq=False, repr=False)
class Contrastive(Result):
    """Runs side by side; `wanted` is the held-out loss whose steps are counted."""

    runs: tuple[Training, ...]
    wanted: float
    every: int

    def __getitem__(self, name: str) -> Training:
        return called(self.runs, name, "contrastive")

    def lines(self) -> tuple[str, str]:
        told = ", ".join(f"{r.name} {r.steps if r.steps >= 0 else 'never'}" for r in self.runs)
        return f"{len(self.runs)} runs, steps to held-out loss {self.wanted:g}", told

    def explain(self) -> str:
        """One paragraph in plain words."""
        return " ".join(
            f"{r.name}: lengths {r.norm_start:.2f} to {r.norm_end:.2f}, "
            f"{f'{r.steps} steps' if r.steps >= 0 else 'never'} to loss {self.wanted:g}, "
            f"{100 * r.same:.0f}% of the nearest are the same digit."
            for r in self.runs
        )

    def plot(self, ax: Any = None) -> Any:
        """The held-out loss of every run."""
        ax = axes(ax)
        for r in self.runs:
            ax.plot(np.arange(len(r.losses)) * self.every, r.losses, label=f"{r.name}, length {r.norm_end:.2g}")
        ax.set_xlabel("gradient step")
        ax.set_ylabel("held-out InfoNCE over cosines")
        ax.legend(frameon=False, fontsize=8)
        return ax


def contrastive(
    ways: tuple[Way, ...] = WAYS,
    *,
    steps: int = 200,
    rate: float = 0.3,
    size: float = 6.0,
    dim: int = 16,
    hidden: int = 64,
    batch: int = 96,
    wanted: float = 3.4,
    every: int = 10,
    seed: int = 0,
) -> Contrastive:
    """Train an encoder of scikit-learn's digits with InfoNCE, once each way, from the same start and views.

    `size` scales the initial weights: with long embeddings a cosine loss has small gradients.
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = np.asarray(X, np.float64) / 16 - 0.3
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    train, held = X[order[:1200]], X[order[1200:]]
    digit = np.asarray(y)[order[1200:]]
    A = rng.standard_normal((hidden, X.shape[1])) / np.sqrt(X.shape[1])
    B = size * rng.standard_normal((dim, hidden)) / np.sqrt(hidden)
    test = (held[:256], _view(held[:256], rng))
    plan = [(rng.integers(0, len(train), batch), int(rng.integers(0, 2**31))) for _ in range(steps)]

    with one_blas_thread():  # the matrices are small: threads would wait for one another
        runs = tuple(_train(w, A, B, train, held, digit, test, plan, rate, wanted, every) for w in ways)
    return Contrastive(runs, wanted, every)


def _view(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The digit moved by a pixel at most, with noise."""
    across, down = ((np.arange(8) + rng.integers(-1, 2, (len(X), 1))) % 8 for _ in range(2))
    moved = X.reshape(-1, 8, 8)[np.arange(len(X))[:, None, None], down[:, :, None], across[:, None, :]]
    return moved.reshape(len(X), -1) + 0.1 * rng.standard_normal(X.shape)


def _train(way, A, B, train, held, digit, test, plan, rate, wanted, every) -> Training:
    A, B = A / way.cut, B / way.cut
    start = float(np.linalg.norm(_embed(A, B, held), axis=1).mean())
    losses = []
    for t, (which, seed) in enumerate(plan):
        if t % every == 0:
            losses.append(_held_out(A, B, test))
        rng = np.random.default_rng(seed)
        views = np.concatenate([_view(train[which], rng), _view(train[which], rng)])
        H = np.maximum(views @ A.T, 0)
        Z = H @ B.T
        _, G = info_nce(Z, way.sim, TAU if way.sim == "cosine" else DOT_TAU)
        G = G + _penalty_gradient(Z, way.penalty)
        gB = G.T @ H
        gA = ((G @ B) * (H > 0)).T @ views
        A, B = (W - way.rate * rate * (g + way.decay * W) for W, g in ((A, gA), (B, gB)))
    losses.append(_held_out(A, B, test))
    losses = np.array(losses)
    reached = np.flatnonzero(losses <= wanted)
    Z = _embed(A, B, held)
    length = np.linalg.norm(Z, axis=1)
    U = Z / length[:, None]
    return Training(
        way.name,
        start,
        float(length.mean()),
        int(reached[0]) * every if len(reached) else -1,
        losses,
        _same(U @ U.T, digit),
        _same(Z @ Z.T, digit),
        float(length.std() / length.mean()),
    )


def info_nce(Z: np.ndarray, sim: str, tau: float = TAU) -> tuple[float, Float[np.ndarray, "points dim"]]:
    """The loss of two stacked views (the first half's partners are in the second) and its gradient in Z.

    Over cosines the gradient has no part along z: a step on z itself only makes it longer.
    """
    m = len(Z) // 2
    length = np.linalg.norm(Z, axis=1, keepdims=True)
    U = Z / length if sim == "cosine" else Z
    S = U[:m] @ U[m:].T / tau
    loss, D = 0.0, np.zeros_like(S)
    for scores, turn in ((S, False), (S.T, True)):
        top = scores.max(axis=1, keepdims=True)
        E = np.exp(scores - top)
        P = E / E.sum(axis=1, keepdims=True)
        loss -= float((np.diag(scores) - top[:, 0] - np.log(E.sum(axis=1))).mean()) / 2
        P = (P - np.eye(m)) / (2 * m * tau)
        D += P.T if turn else P
    G = np.concatenate([D @ U[m:], D.T @ U[:m]])
    if sim == "cosine":
        G = (G - np.einsum("ij,ij->i", G, U)[:, None] * U) / length
    return loss, G


def _penalty_gradient(Z: np.ndarray, gamma: float) -> np.ndarray:
    """Of gamma mean (|z| - 1)^2."""
    length = np.linalg.norm(Z, axis=1, keepdims=True)
    return 2 * gamma * (length - 1) * Z / length / len(Z)


def _held_out(A: np.ndarray, B: np.ndarray, test: tuple[np.ndarray, np.ndarray]) -> float:
    return info_nce(_embed(A, B, np.concatenate(test)), "cosine")[0]


def _embed(A: np.ndarray, B: np.ndarray, X: np.ndarray) -> np.ndarray:
    return np.maximum(X @ A.T, 0) @ B.T


def _same(S: np.ndarray, digit: np.ndarray, k: int = 10) -> float:
    S = S.copy()
    np.fill_diagonal(S, -np.inf)
    near = np.argsort(-S, axis=1)[:, :k]
    return float((digit[near] == digit[:, None]).mean())
