"""The same documents under an old and a new model: what became of their neighbours.

kept        share of the k nearest under the old model that are among the k nearest under the new one
carried     the same for queries that a linear map takes from the old space to the new, fitted on other documents
CKA         |Y'X|_F^2 / (|X'X|_F |Y'Y|_F) of centred rows (Kornblith et al. 2019), beside shuffled rows
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.embeddings.embedding_table import EmbeddingTable, common_rows
from gonio.embeddings.query_lists import query_lists, shared_share
from gonio.embeddings.random_pairs import pair_scores
from gonio.embeddings.row_survey import unit
from gonio.embeddings.sampling_intervals import mean_interval
from gonio.embeddings.scorers import Scorer, metric_scorer
from gonio.gauge import SameModel, same_model
from gonio.similarity.bootstrap import Interval

if TYPE_CHECKING:
    from jaxtyping import Float, Int

FITTED, COMPARED, SHUFFLES, PAIRS, RESAMPLES = 20_000, 2000, 20, 20_000, 400


@dataclass(frozen=True, eq=False)
class TableDrift:
    """Two tables over their common documents.

    here, there    rows of the common documents in the new and in the old table
    asked          which of the common documents asked for their neighbours
    whole          whether all of them did that have a direction in both tables
    kept           what each of them kept
    """

    new: EmbeddingTable
    old: EmbeddingTable
    metric: str
    k: int
    seed: int
    here: Int[np.ndarray, " common"]
    there: Int[np.ndarray, " common"]
    asked: Int[np.ndarray, " asked"]
    near_new: Int[np.ndarray, "asked near"]
    near_old: Int[np.ndarray, "asked near"]
    rows_new: Float[np.ndarray, "asked dim"]
    rows_old: Float[np.ndarray, "asked width"]
    whole: bool

    @property
    def kept(self) -> Float[np.ndarray, " asked"]:
        """The share of its old neighbours that each document kept."""
        return shared_share(self.near_old, self.near_new)

    @property
    def mean_kept(self) -> Interval:
        """Its mean over documents; exact where all asked."""
        if self.whole:
            value = float(self.kept.mean())
            return Interval(value, value, value)
        return mean_interval(self.kept, bounds=(0, 1))

    @cached_property
    def same(self) -> SameModel | None:
        """Whether one table is the other up to a rotation and lengths; None where the widths differ."""
        if self.rows_new.shape[1] != self.rows_old.shape[1]:
            return None
        new, old = (Head(x[:COMPARED], link="cosine") for x in (self.rows_new, self.rows_old))
        return same_model(new, old)

    @cached_property
    def cka(self) -> tuple[float, float]:
        """Linear CKA of the asked documents, and the largest of twenty with the rows of one table shuffled."""
        X, Y = (unit(x[:COMPARED]).astype(np.float64) for x in (self.rows_new, self.rows_old))
        X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
        size = np.linalg.norm(X.T @ X) * np.linalg.norm(Y.T @ Y)
        rng = np.random.default_rng(self.seed)
        if not size > 1e-12 * len(X) ** 2:
            return float("nan"), float("nan")  # the rows of one table are all equal
        value = np.linalg.norm(Y.T @ X) ** 2 / size
        null = max(np.linalg.norm(Y[rng.permutation(len(Y))].T @ X) ** 2 / size for _ in range(SHUFFLES))
        return float(value), float(null)

    def carried(self) -> tuple[Interval, int] | None:
        """What old vectors, mapped linearly into the new space, find there of what the new ones find, and how many ask.

        The map is fitted on documents that do not ask, on half of them at least where all do; None where these are
        fewer than twice the width.
        """
        rng = np.random.default_rng(self.seed + 5)
        some = np.sort(rng.permutation(len(self.asked))[: max(1, len(self.here) // 2)])
        asked = self.asked[some]
        rest = np.setdiff1d(np.arange(len(self.here)), asked)
        rest = np.sort(rng.permutation(rest)[:FITTED])
        if len(rest) < 2 * (self.old.shape[1] + 1):
            return None
        taught = self.old.take(self.there[rest]), self.new.take(self.here[rest])
        known = np.isfinite(taught[0]).all(axis=1) & np.isfinite(taught[1]).all(axis=1)
        M = linear_map(*(x[known] for x in taught))
        mapped = apply_map(M, self.rows_old[some])
        found = _lists(self.new, metric_scorer("cosine", mapped), self.k, self.here, asked)
        wanted = _lists(self.new, metric_scorer("cosine", self.rows_new[some]), self.k, self.here, asked)
        return mean_interval(shared_share(wanted, found), bounds=(0, 1)), len(asked)

    def carried_threshold(self, threshold: float) -> tuple[Interval, Interval, int]:
        """The new threshold that as many random pairs of documents reach, their share, and how many pairs there are.

        Both intervals are from resampled pairs. With c of m pairs above the old threshold the new one lies between the
        new scores of rank c + 1 and c.
        """
        rng = np.random.default_rng(self.seed + 6)
        order = rng.permutation(len(self.here))[: 2 * PAIRS]
        half = len(order) // 2
        if half < 50:
            found = f"{len(self.here):,} common documents give {half} pairs"
            raise GonioError(f"check: {found}; 50 are needed to carry a threshold over, so give more documents.")
        i, j = np.arange(half), np.arange(half, 2 * half)
        rows = self.new.take(self.here[order]), self.old.take(self.there[order])
        new, old = (pair_scores(x, x, i, j, self.metric) for x in rows)
        sign = -1 if self.metric == "l2" else 1
        shares, ends = np.empty(RESAMPLES + 1), np.empty((RESAMPLES + 1, 2))
        for b in range(RESAMPLES + 1):
            w = i if b == 0 else rng.integers(0, half, half)
            above = int((old[w] >= sign * threshold).sum())
            ranked = np.sort(new[w])[::-1]
            shares[b] = above / half
            ends[b] = ranked[min(above, half - 1)], ranked[max(above - 1, 0)]
        low, high = np.quantile(ends[1:, 0], 0.025), np.quantile(ends[1:, 1], 0.975)
        low, high = sorted((sign * float(low), sign * float(high)))
        share = Interval(float(shares[0]), *(float(x) for x in np.quantile(shares[1:], [0.025, 0.975])))
        return Interval(sign * float(ends[0].mean()), low, high), share, half


def linear_map(old: np.ndarray, new: np.ndarray) -> Float[np.ndarray, "more dim"]:
    """M of least squares in  [u_old, 1] M = u_new  over unit rows, with a hint of ridge."""
    A = np.column_stack([unit(old), np.ones(len(old))]).astype(np.float64)
    G = A.T @ A
    return np.linalg.solve(G + 1e-6 * np.trace(G) / len(G) * np.eye(len(G)), A.T @ unit(new).astype(np.float64))


def apply_map(M: np.ndarray, old: np.ndarray) -> Float[np.ndarray, "rows dim"]:
    """The old vectors in the new space."""
    return (np.column_stack([unit(old), np.ones(len(old))]) @ M).astype(np.float32)


def compare_tables(
    new: EmbeddingTable, old: EmbeddingTable, *, k: int, metric: str, sample: int, seed: int = 0
) -> TableDrift:
    """Match the documents of two tables and ask for the neighbours of a sample in both."""
    here, there = common_rows(new, old)
    if len(here) < 3:
        raise GonioError(
            f"check: {new.name} and {old.name} have {len(here)} documents in common; at least 3 are needed."
        )
    rng = np.random.default_rng(seed + 4)
    asked = np.sort(rng.permutation(len(here))[:sample])
    rows_new, rows_old = new.take(here[asked]), old.take(there[asked])
    live = np.isfinite(rows_new).all(axis=1) & np.isfinite(rows_old).all(axis=1)
    live &= rows_new.any(axis=1) & rows_old.any(axis=1)
    if live.sum() < 3:
        raise GonioError(f"check: {int(live.sum())} common documents have a direction in both tables; 3 are needed.")
    whole = len(asked) == len(here)
    asked, rows_new, rows_old = asked[live], rows_new[live], rows_old[live]
    k = min(k, len(here) - 1)
    near_new = _lists(new, metric_scorer(metric, rows_new), k, here, asked)
    near_old = _lists(old, metric_scorer(metric, rows_old), k, there, asked)
    return TableDrift(new, old, metric, k, seed, here, there, asked, near_new, near_old, rows_new, rows_old, whole)


def _lists(table: EmbeddingTable, scorer: Scorer, k: int, rows: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """The nearest common documents, by their number among the common ones."""
    among = np.zeros(len(table), bool)
    among[rows] = True
    number = np.full(len(table), -1)
    number[rows] = np.arange(len(rows))
    near = query_lists(table, [scorer], k, own=rows[asked], among=among)[scorer.name].near
    return np.where(near >= 0, number[near], -1)
