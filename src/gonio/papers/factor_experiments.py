"""The experiments that a reader of the paper tries first, one function each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.factors.closed_forms import product_weights
from gonio.factors.fitting import fit
from gonio.factors.model import FactorModel
from gonio.factors.rescaling import rescale
from gonio.papers.factor_comparison import Comparison, compare


@dataclass(frozen=True, repr=False)
class Experiment:
    """A question, what it was tried on, one comparison a row, and what the rows say."""

    question: str
    on: str
    columns: tuple[tuple[str, str], ...]  # (attribute of a Comparison, its heading)
    groups: tuple[tuple[str, tuple[Comparison, ...]], ...]
    says: str

    @property
    def rows(self) -> tuple[Comparison, ...]:
        """All comparisons in order."""
        return tuple(r for _, rows in self.groups for r in rows)

    def to_dict(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "on": self.on,
            "groups": [{"against": name, "rows": [r.to_dict() for r in rows]} for name, rows in self.groups],
            "says": self.says,
        }

    def __repr__(self) -> str:
        return f"Experiment({self.question})\n  {self.says}"


MOVES = (("score_change", "scores move"), ("cosine_moves", "cosines move"), ("lists", "lists kept"))
BACK = (("projected_moves", "projected move"), ("projected_lists", "projected kept"))


def dropout_against_decay(X: Any, rank: int = 20, rate: float = 0.5, *, k: int = 10, seed: int = 0) -> Experiment:
    """Dropout against weight decay on the same data, both leaving the same residual ||X - X A B'||^2.

    The strength of each penalty is chosen so; the scores then agree closely and the item cosines do not.
    """
    dropped = fit(X, rank, "dropout", rate=rate, seed=seed)
    free = fit(X, rank, "product", lam=0.0, seed=seed)
    s, extra = free.singular, dropped.residual - free.residual
    decay = _strength(lambda lam: float((np.minimum(s, lam) ** 2).sum()), extra, float(s[0]))
    product = _strength(
        lambda lam: float((s**2 * (1 - product_weights(s, lam)) ** 2).sum()), extra, 1e3 * float(s[0]) ** 2
    )
    rows = (
        compare(f"weight decay on each factor, lam {decay:.4g}", dropped, fit(X, rank, "factors", lam=decay), k),
        compare(f"penalty on the product, lam {product:.4g}", dropped, fit(X, rank, "product", lam=product), k),
        compare("dropout again, items orthonormal", dropped, rescale(dropped, "items"), k),
        compare("dropout again, users orthonormal", dropped, rescale(dropped, "users"), k),
    )
    n, p = len(dropped.users), len(dropped.items)
    return Experiment(
        "dropout against weight decay: do the models agree, and do their cosines?",
        f"{n:,} users x {p:,} items, rank {rank}, dropout {rate:g}; the others at the same residual",
        (("scores", "score corr."), ("recommended", "top-k kept"), *MOVES[1:], *BACK),
        ((f"against dropout {rate:g}", rows),),
        f"scores correlate {rows[0].scores:.3f} with weight decay's, while item-item cosines differ by "
        f"{rows[0].cosine_moves:.2f} on average; two answers of dropout's own training differ by "
        f"{rows[2].cosine_moves:.2f} and score alike",
    )


def _strength(residual: Callable[[float], float], wanted: float, top: float) -> float:
    """The penalty at which the residual has grown by what is wanted."""
    from scipy.optimize import brentq

    if residual(top) <= wanted:
        return top
    return float(brentq(lambda lam: residual(lam) - wanted, 0.0, top, xtol=1e-12 * top, rtol=1e-12))  # type: ignore[arg-type]


def moves(model: FactorModel, seed: int = 0) -> dict[str, FactorModel]:
    """The model under rescalings of several kinds: named, random, and by a random invertible matrix."""
    rng = np.random.default_rng(seed)
    rank = model.shape[2]
    return {
        "items orthonormal": rescale(model, "items"),
        "balanced": rescale(model, "balanced"),
        "users orthonormal": rescale(model, "users"),
        "random diagonal": rescale(model, np.exp(rng.standard_normal(rank))),
        "random invertible": rescale(model, np.eye(rank) + rng.standard_normal((rank, rank)) / np.sqrt(rank)),
    }


def rescaling(
    X: Any, rank: int = 20, *, lam_product: float = 10_000.0, lam_factors: float = 100.0, k: int = 10, seed: int = 0
) -> Experiment:
    """The objective under rescaling: unchanged where the product was penalised, while the cosines move."""
    product = fit(X, rank, "product", lam=lam_product, seed=seed)
    factors = fit(X, rank, "factors", lam=lam_factors, seed=seed)
    groups = (
        (f"penalty on the product, lam {lam_product:g}", _rows(product, k, seed)),
        (f"penalty on each factor, lam {lam_factors:g}", _rows(factors, k, seed)),
    )
    most = max(abs(r.objective_change) for r in groups[0][1])
    moved = max(r.cosine_moves for r in groups[0][1])
    least = min(r.objective_change for r in groups[1][1] if r.name != "balanced")
    n, p = len(product.users), len(product.items)
    return Experiment(
        "rescaling: does the training objective notice?",
        f"{n:,} users x {p:,} items, rank {rank}",
        (("objective_change", "objective"), *MOVES),
        groups,
        f"with the penalty on the product the objective changes by {most:.1g} of itself at most while cosines move by "
        f"up to {moved:.2f} on average; with the penalty on each factor it rises by {least:.2g} or more",
    )


def projecting(X: Any, rank: int = 20, *, lam: float = 10_000.0, k: int = 10, seed: int = 0) -> Experiment:
    """Projecting back removes the arbitrariness: its cosines are the same for every rescaling."""
    model = fit(X, rank, "product", lam=lam, seed=seed)
    rows = _rows(model, k, seed)
    n, p = len(model.users), len(model.items)
    return Experiment(
        "projecting back: is its similarity the same for every answer of the training?",
        f"{n:,} users x {p:,} items, rank {rank}, penalty on the product, lam {lam:g}",
        (*MOVES[1:], *BACK),
        (("as fitted, against", rows),),
        f"plain cosines move by up to {max(r.cosine_moves for r in rows):.2f} on average, projected-back ones by "
        f"{max(r.projected_moves for r in rows):.1g} at most",
    )


def _rows(model: FactorModel, k: int, seed: int) -> tuple[Comparison, ...]:
    return tuple(compare(name, model, other, k) for name, other in moves(model, seed).items())


def restarts(
    X: Any,
    rank: int = 5,
    *,
    lam_product: float = 10_000.0,
    lam_factors: float = 100.0,
    rate: float = 0.5,
    starts: int = 3,
    k: int = 10,
    steps: int = 2000,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Experiment:
    """Alternating least squares from several random starts, beside the closed form: where do they agree?"""
    groups = []
    for title, options in (
        (f"penalty on the product, lam {lam_product:g}", {"penalty": "product", "lam": lam_product}),
        (f"dropout {rate:g}", {"penalty": "dropout", "rate": rate}),
        (f"penalty on each factor, lam {lam_factors:g}", {"penalty": "factors", "lam": lam_factors}),
    ):
        closed = fit(X, rank, **options)  # type: ignore[arg-type]
        alive = len(closed.survive)
        if alive < 2:
            raise GonioError(
                f"restarts: with the {title} {alive} of {rank} dimensions survive, in which every cosine is 1 or -1 "
                f"and agreement says nothing; lower the strength."
            )
        title += f" ({alive} of {rank} dimensions survive)"
        rows = []
        for seed in range(starts):
            again = fit(X, rank, by="als", seed=seed, steps=steps, on_progress=on_progress, **options)  # type: ignore[arg-type]
            rows.append(compare(f"start {seed}: {again.how.split(',')[1].split(' from')[0].strip()}", closed, again, k))
        groups.append((title, tuple(rows)))
    n, p = len(closed.users), len(closed.items)  # type: ignore[possibly-undefined]
    open_ = [r for _, rows in groups[:2] for r in rows]
    return Experiment(
        "restarts: in what do random starts of the same training agree?",
        f"{n:,} users x {p:,} items, rank {rank}",
        (("objective_change", "objective"), *MOVES, BACK[0]),
        tuple(groups),
        f"all {3 * starts} runs reach the closed form's objective to "
        f"{max(abs(r.objective_change) for _, rows in groups for r in rows):.1g}; cosines differ by "
        f"{min(r.cosine_moves for r in open_):.2f} or more where the product is penalised, by at most "
        f"{max(r.cosine_moves for r in groups[2][1]):.1g} where each factor is",
    )
