"""MovieLens-100k as retrieval: the last film of every user is held out, and every measure and remedy looks for it.

users ask      a user's vector orders all films but those that the user has rated before
films ask      the vector of the film that the user rated just before does
relevant       the film that the user rated last; the others count as not relevant
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.embeddings.paired_comparison import Compared, compare_paired
from gonio.embeddings.query_lists import QueryLists
from gonio.embeddings.relevance_judgements import RelevanceJudgements
from gonio.embeddings.retrieval_quality import RetrievalQuality, retrieval_quality
from gonio.embeddings.sampling_intervals import mean_interval
from gonio.embeddings.scorers import METRICS, Scorer, metric_scorer, remedy_scorers
from gonio.factors.fitting import fit
from gonio.factors.similar import vectors
from gonio.papers.movielens import MovieLens
from gonio.papers.steck_figure1 import choices
from gonio.similarity.bootstrap import Interval

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

K = 10


@dataclass(frozen=True, eq=False, repr=False)
class LastFilms:
    """What is known before the last film: who rated what (binary), each user's last film and the one before."""

    X: Any
    seen: Bool[np.ndarray, "users items"]
    last: Int[np.ndarray, " users"]
    before: Int[np.ndarray, " users"]


@dataclass(frozen=True)
class HeldOutRow:
    """One way to order the films: its quality, and its nDCG beside that of the dot product, or of cosine."""

    name: str
    ndcg: Interval
    recall: Interval
    difference: Interval | None
    verdict: str


@dataclass(frozen=True)
class HeldOutTable:
    """One set of vectors, who asks with them, and every way that was tried; the first row is the base."""

    vectors: str
    asks: str
    rows: tuple[HeldOutRow, ...]

    def row(self, name: str) -> HeldOutRow:
        return next(r for r in self.rows if r.name == name)


@dataclass(frozen=True, eq=False, repr=False)
class HeldOut:
    """Every table, and how many users ask.

    answers   films ask by cosine, with several answers of the one training with a penalty on the product (the first
              as fitted), with the penalty on each factor, and projected back
    """

    users: int
    films: int
    rank: int
    lam_product: float
    lam_factors: float
    tables: tuple[HeldOutTable, ...]
    answers: tuple[HeldOutRow, ...]

    def table(self, vectors: str, asks: str) -> HeldOutTable:
        return next(t for t in self.tables if (t.vectors, t.asks) == (vectors, asks))

    def to_dict(self) -> dict[str, Any]:
        out = {key: value for key, value in vars(self).items() if key not in ("tables", "answers")}
        rows = {"tables": [asdict(t) for t in self.tables], "answers": [asdict(r) for r in self.answers]}
        return out | rows

    def __repr__(self) -> str:
        best = max((r.ndcg.value, r.name, t.vectors, t.asks) for t in self.tables for r in t.rows)
        said = f"HeldOut({self.users:,} users, {self.films:,} films)"
        return f"{said}\n  best nDCG@{K}: {best[0]:.3f}, {best[1]}, {best[2]}, {best[3]} ask"


def last_films(data: MovieLens) -> LastFilms:
    """Hold out each user's last film by time; of films rated in the same second, the later in the file is the last."""
    users, films = data.order
    X = data.X.copy().tolil()
    starts = np.flatnonzero(np.diff(users, prepend=-1))
    ends = np.append(starts[1:], len(users)) - 1
    last, before = films[ends], films[ends - 1]
    X[users[ends], last] = 0
    X = X.tocsr()
    X.eliminate_zeros()
    X.data = np.ones_like(X.data)
    return LastFilms(X, X.toarray() > 0, last, before)


def leave_last_out(
    data: MovieLens, rank: int = 50, *, lam_product: float = 400.0, lam_factors: float | None = None, seed: int = 0
) -> HeldOut:
    """Fit both objectives to all but the last film of every user, and look for that film in every way.

    The penalty on each factor is the root of that on the product unless given, as in the paper. Films that nobody has
    rated before have no vector, and no way finds them.
    """
    held = last_films(data)
    lam_factors = float(np.sqrt(lam_product)) if lam_factors is None else lam_factors
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # films that only a last rating names have no vector, as the docstring says
        product = fit(held.X, rank, "product", lam=lam_product)
        factors = fit(held.X, rank, "factors", lam=lam_factors)
    back = vectors(product.users, product.items, "projected")
    sets = {
        "penalty on the product": (product.users, product.items),
        "penalty on each factor": (factors.users, factors.items),
        "projected back": (None, back),
    }
    tables = []
    for name, (users, items) in sets.items():
        if users is not None:
            tables.append(_table(name, "users", users, items, held, "dot", seed))
        tables.append(_table(name, "films", items[held.before], items, held, "cosine", seed))
    answers = {**choices(product), "penalty on each factor": factors.items, "projected back": back}
    by_cosine = {
        name: _quality(metric_scorer("cosine", V[held.before]), np.asarray(V, np.float32), held)
        for name, V in sorted(answers.items(), key=lambda x: x[0] != "D = I")
    }
    n, p = held.X.shape
    return HeldOut(n, p, rank, lam_product, lam_factors, tuple(tables), _rows(by_cosine, seed))


def _table(
    name: str, asks: str, Q: np.ndarray, items: np.ndarray, held: LastFilms, base: str, seed: int
) -> HeldOutTable:
    """Every measure and remedy; users are matched with films by dot product, films with films by cosine."""
    alive = items.any(axis=0)  # the penalty on each factor leaves columns of zeros
    items, Q = (np.asarray(a[:, alive], np.float32) for a in (items, Q))
    names = [base, *(m for m in METRICS if m != base)]
    live = items[items.any(axis=1)]
    ways = [*(metric_scorer(m, Q) for m in names), *remedy_scorers(live, Q)]
    return HeldOutTable(name, asks, _rows({w.name: _quality(w, items, held) for w in ways}, seed))


def _rows(found: dict[str, RetrievalQuality], seed: int) -> tuple[HeldOutRow, ...]:
    """Each way with its intervals, the first as the base of the others."""
    base, *others = found
    compared = compare_paired(found[base].ndcg, {n: found[n].ndcg for n in others}, seed=seed)
    by = {c.name: c for c in compared}
    return tuple(_row(n, x, by.get(n)) for n, x in found.items())


def _row(name: str, x: RetrievalQuality, c: Compared | None) -> HeldOutRow:
    ndcg, recall = (mean_interval(v, bounds=(0, 1)) for v in (x.ndcg, x.recall))
    return HeldOutRow(name, ndcg, recall, None if c is None else c.difference, "base" if c is None else c.verdict)


def _quality(way: Scorer, items: np.ndarray, held: LastFilms) -> RetrievalQuality:
    keys, column = way.documents(items)
    scores = way.queries @ keys.T + (0 if column is None else column)
    scores[held.seen | ~items.any(axis=1)] = -np.inf
    near = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    lists = QueryLists(near, np.take_along_axis(scores, near, 1))
    users = np.arange(len(held.last))
    return retrieval_quality(lists, RelevanceJudgements(users, held.last, np.ones(len(users))), users, k=K)
