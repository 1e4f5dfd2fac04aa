"""Two models of the same data side by side: do they agree in scores, in cosines, in what is projected back?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.correlations import pearson
from gonio.core.directions import cosines_of
from gonio.core.errors import GonioError
from gonio.factors.rescaling_survey import shared
from gonio.factors.similar import lists, triangle, vectors

if TYPE_CHECKING:
    from gonio.factors.model import FactorModel

PAIRS, SOME = 200_000, 500


@dataclass(frozen=True)
class Comparison:
    """How far a second model is from a first.

    scores            correlation of all scores
    score_change      ||scores - scores'|| / ||scores||
    recommended       share of each user's top k that is the same
    cosine_moves      mean |difference| of item-item cosines;  cosine_agreement: their correlation
    lists             share of each item's k nearest by cosine that is the same
    projected_moves, projected_lists     the same for the cosines projected back
    objective_change  relative change of the first model's objective
    """

    name: str
    scores: float
    score_change: float
    recommended: float
    cosine_moves: float
    cosine_agreement: float
    lists: float
    projected_moves: float
    projected_lists: float
    objective_change: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(name: str, a: FactorModel, b: FactorModel, k: int = 10, *, seed: int = 0) -> Comparison:
    """Model b beside model a: scores exactly over all users and items, cosines on up to 200,000 random pairs."""
    if (len(a.users), len(a.items)) != (len(b.users), len(b.items)):
        raise GonioError(
            f"compare: the models have shapes {a.shape} and {b.shape}; the same users and items are needed."
        )
    rng = np.random.default_rng(seed)
    p = len(a.items)
    alive = np.flatnonzero(a.items.any(axis=1) & b.items.any(axis=1))
    if len(alive) < 2:
        raise GonioError("compare: fewer than two items have a vector in both models.")
    i, j = alive[rng.integers(0, len(alive), (2, PAIRS))]
    i, j = i[i != j], j[i != j]
    users = np.sort(rng.choice(len(a.users), min(SOME, len(a.users)), replace=False))
    k = min(k, p - 1)
    top = [np.argpartition(-m.scores(users), k - 1, axis=1)[:, :k] for m in (a, b)]
    plain = [cosines_of(m.items, i, j) for m in (a, b)]
    back = [cosines_of(vectors(m.users, m.items, "projected"), i, j) for m in (a, b)]
    some = alive if len(alive) <= 1000 else np.sort(rng.choice(alive, 1000, replace=False))
    found = {
        method: [lists(vectors(m.users, m.items, method), k, some)[0] for m in (a, b)]
        for method in ("cosine", "projected")
    }
    return Comparison(
        name,
        _scorepearson(a, b),
        _score_change(a, b),
        float(shared(*top).mean()),
        float(np.abs(plain[0] - plain[1]).mean()),
        pearson(*plain),
        float(shared(*found["cosine"]).mean()),
        float(np.abs(back[0] - back[1]).mean()),
        float(shared(*found["projected"]).mean()),
        b.objective / a.objective - 1 if (a.penalty, a.lam) == (b.penalty, b.lam) else float("nan"),
    )


def _inner(a: FactorModel, b: FactorModel) -> float:
    """The sum over all users and items of the product of both scores, without forming any of them."""
    return a.scale * b.scale * float(((a.users.T @ b.users) * (a.items.T @ b.items)).sum())


def _score_change(a: FactorModel, b: FactorModel) -> float:
    """||scores - scores'|| / ||scores||, from one factorisation of both side by side: no digits cancel."""
    left = triangle(np.hstack([a.scale * a.users, b.scale * b.users]))
    right = triangle(np.hstack([a.items, -b.items]))
    return float(np.linalg.norm(left @ right.T) / np.sqrt(_inner(a, a)))


def _mean(a: FactorModel) -> float:
    return a.scale * float(a.users.mean(axis=0) @ a.items.mean(axis=0))


def _scorepearson(a: FactorModel, b: FactorModel) -> float:
    count = len(a.users) * len(a.items)
    joint = _inner(a, b) / count - _mean(a) * _mean(b)
    own = [_inner(m, m) / count - _mean(m) ** 2 for m in (a, b)]
    return float(joint / np.sqrt(own[0] * own[1])) if min(own) > 0 else float("nan")
