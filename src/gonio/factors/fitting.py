"""fit: interactions in, users and items out, with what the training leaves open."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.factors.alternating import als
from gonio.factors.closed_forms import CLOSED, Solution
from gonio.factors.interactions import Interactions
from gonio.factors.model import FactorModel, Penalty
from gonio.factors.remedies import InteractionRemedy

PENALTIES = get_args(Penalty)[:3]


def fit(
    X: Any,
    rank: int,
    penalty: str = "product",
    lam: float | None = None,
    *,
    rate: float | None = None,
    link: str = "dot",
    remedy: InteractionRemedy | None = None,
    by: str = "closed",
    seed: int = 0,
    steps: int = 500,
    tolerance: float = 1e-13,
    labels: Sequence[str] | None = None,
    signed: bool = False,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> FactorModel:
    """Factorise interactions  X ~ X A B'  (users X A, items B).

    penalty    what is added to  ||X - X A B'||^2                     what it leaves open
    product    lam ||A B'||^2                                         every invertible map: item cosines are arbitrary
    dropout    lam sum_j (X'X)_jj ||(A B')_j||^2,  lam = rate/(1-rate)     the same
    factors    lam (||X A||^2 + ||B||^2)                              rotations: cosines are unique, and depend on lam

    Parameters
    ----------
    X : array or any scipy.sparse, users x items, entries >= 0 (or any, with signed=True); a sparse X stays sparse
    rank : number of columns of the factors
    lam : strength of the penalty; for dropout give `rate`, the share of inputs dropped, instead
    link : "dot"; "cosine" trains on the cosine itself, rows normalised during training (no penalty then)
    remedy : what to do to X before: `Standardise()`, `Propensity()`, `NegativeSampling()`
    by : "closed" for the closed form, "als" for alternating least squares from a random start given by `seed`
    steps, tolerance : when alternating stops: after so many steps, or when one gains less than that share of ||X||^2

    >>> import numpy as np
    >>> X = np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 0]])
    >>> fit(X, 2, "factors", lam=0.5)
    FactorModel(3 users x 3 items, rank 2, 2 dimensions survive; penalty on factors, lam 0.5)
      rotations are left open: cosines are unique, and depend on lam
    """
    checks.one_of(link, ("dot", "cosine"), "fit", "link")
    checks.one_of(by, ("closed", "als"), "fit", "by")
    table = Interactions(X, signed=signed)
    rank = _rank(rank, table.shape)
    names = None if labels is None else checks.names(labels, table.shape[1], "fit")
    empty_users, empty_items = table.empty_users, table.empty_items
    _tell_empty(empty_users, empty_items)
    popularity = table.counts
    done = "none"
    if remedy is not None:
        table, done = remedy.apply(table), str(remedy)
    about: dict[str, Any] = {
        "remedy": done,
        "empty_users": empty_users,
        "empty_items": empty_items,
        "popularity": popularity.copy(),
        "labels": names,
        "total": table.total,
        "squares": table.squares,
    }
    if link == "cosine":
        if lam is not None or rate is not None:
            raise GonioError(
                "fit: training on the cosine has no penalty (lengths do not count); leave out lam and rate."
            )
        from gonio.factors.item_cosine import on_cosine

        s, scale = on_cosine(table, rank, seed=seed, steps=steps, on_progress=on_progress)
        cross = table.transposed(s.users)
        return FactorModel(s.users, s.B, s.A, "none", 0.0, s.s, s.how, link="cosine", scale=scale, cross=cross, **about)
    checks.one_of(penalty, PENALTIES, "fit", "penalty")
    lam = _strength(penalty, lam, rate)
    if by == "closed":
        s = CLOSED[penalty](table, rank, lam, seed)
    else:
        s = als(table, rank, penalty, lam, seed=seed, steps=steps, tolerance=tolerance, on_progress=on_progress)
    _some_must_survive(s, penalty, lam, table.total)
    if remedy is None:  # what rounding left of the vectors of those without data
        s.B[empty_items] = s.A[empty_items] = 0.0
        s.users[empty_users] = 0.0
    cross = table.transposed(s.users)
    return FactorModel(s.users, s.B, s.A, penalty, lam, s.s, s.how, cross=cross, **about)  # type: ignore[arg-type]


def _rank(rank: Any, shape: tuple[int, int]) -> int:
    if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)):
        raise GonioError(f"fit: rank is {rank!r}; a whole number of columns is needed.")
    if not 1 <= rank <= min(shape):
        raise GonioError(
            f"fit: rank {rank} was asked of a {shape[0]:,} x {shape[1]:,} table; "
            f"it has at most {min(shape):,} singular directions, so give 1 to {min(shape):,}."
        )
    return int(rank)


def _strength(penalty: str, lam: float | None, rate: float | None) -> float:
    if penalty == "dropout" and rate is not None:
        if lam is not None:
            raise GonioError("fit: both lam and rate are given; for dropout lam = rate/(1-rate), so give one.")
        if not 0 < rate < 1:
            raise GonioError(f"fit: rate is {rate}; the share of inputs dropped lies strictly between 0 and 1.")
        return float(rate) / (1 - float(rate))
    if rate is not None:
        raise GonioError(f"fit: rate belongs to penalty='dropout', and the penalty is {penalty!r}; give lam instead.")
    if lam is None:
        wanted = "rate (the share of inputs dropped)" if penalty == "dropout" else "lam (0 for no penalty)"
        raise GonioError(f"fit: the penalty on {penalty!r} has no strength; give {wanted}.")
    try:
        value = float(lam)
    except (TypeError, ValueError):
        raise GonioError(f"fit: lam is {lam!r}; one number of 0 or more is needed.") from None
    if not (np.isfinite(value) and value >= 0):
        raise GonioError(f"fit: lam is {value:g}; a finite number of 0 or more is needed.")
    return value


def _some_must_survive(s: Solution, penalty: str, lam: float, total: float) -> None:
    if penalty == "factors" and (s.s <= lam).all() and s.how.startswith("closed"):
        top, last = float(s.s[0]), float(s.s[-1])
        raise GonioError(
            f"fit: lam = {lam:g} removes every dimension, since a dimension survives where its singular value exceeds "
            f"lam and the largest is {top:.6g}; lam below {top:.6g} keeps one, below {last:.6g} all {len(s.s)}."
        )
    if np.linalg.norm(s.B) * np.linalg.norm(s.users) <= 1e-12 * np.sqrt(total):
        raise GonioError(f"fit: nothing is left of the factors at lam = {lam:g}; choose a smaller one.")


def _tell_empty(users: np.ndarray, items: np.ndarray) -> None:
    for which, what in ((users, "users"), (items, "items")):
        if len(which):
            some = ", ".join(map(str, which[:5])) + (", ..." if len(which) > 5 else "")
            warnings.warn(
                f"fit: {len(which):,} {what} have no interaction ({some}); they are kept, with no similarity.",
                stacklevel=3,
            )
