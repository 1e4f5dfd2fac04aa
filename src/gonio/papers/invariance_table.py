"""The invariance table: which quantities of a head are facts about the model and which are convention.

Each quantity is written once, in its plainest form, for a small head W (labels x dim) with embeddings F (points x dim),
and declares under which groups it stays the same:

    T  g -> g + v              M  g -> M g, f -> M^-T f        S  g -> c g, f -> f / c
    R  rotation                P  g_i -> s_i g_i, s_i > 0

A law test moves every quantity along every group and checks both what is declared to stay and what is declared to move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from gonio.core.directions import unit
from gonio.gauge.transforms import Linear, Rotation, RowScaling, Scaling, Transform, Translation
from gonio.listing.braid_matrix import braid

GROUPS: dict[str, type[Transform]] = {"T": Translation, "M": Linear, "S": Scaling, "R": Rotation, "P": RowScaling}


@dataclass(frozen=True)
class Quantity:
    """A quantity of a head, the groups that leave it alone, and why."""

    name: str
    stays: frozenset[str]
    why: str
    compute: Callable[[np.ndarray, np.ndarray], Any]

    def to_dict(self) -> dict[str, Any]:
        """One row of the table."""
        return {"quantity": self.name, **{g: g in self.stays for g in GROUPS}, "why": self.why}


TABLE: list[Quantity] = []


def _declare(name: str, stays: str, why: str) -> Callable:
    def keep(compute: Callable) -> Callable:
        TABLE.append(Quantity(name, frozenset(stays), why, compute))
        return compute

    return keep


def _centred(W: np.ndarray) -> np.ndarray:
    return W - W.mean(axis=0)


def _correlation(C: np.ndarray) -> np.ndarray:
    s = np.sqrt(np.diag(C))
    return C / np.outer(s, s)


@_declare("dot product", "R", "T: (a+v).(b+v); S: c^2; P: s_i s_j")
def dot(W, F):
    return W @ W.T


@_declare("cosine", "SRP", "T and M give a pair any cosine")
def cosine(W, F):
    return unit(W) @ unit(W).T


@_declare("Euclidean distance", "TR", "differences survive T; S scales by |c|, so ratios survive")
def euclid(W, F):
    return np.linalg.norm(W[:, None] - W[None], axis=2)


@_declare("normalised Euclidean distance", "SRP", "sqrt(2 - 2 cos), so as the cosine")
def normalised_euclid(W, F):
    return euclid(unit(W), F)


@_declare("cosine of centred rows", "TSR", "centring removes T; M moves it as any cosine")
def centred_cosine(W, F):
    return cosine(_centred(W), F)


@_declare("cosine of differences", "TSR", "differences remove T; M moves them as any cosine")
def difference_cosine(W, F):
    return cosine(braid(len(W)) @ W, F)


@_declare("sign pattern", "MSRP", "depends on the column space of W; closed under negation")
def sign_pattern(W, F):
    return frozenset(_cells(W))


@_declare("ranking pattern", "TMSR", "depends on the column space of the centred rows; P: Theorem 5.5")
def ranking_pattern(W, F):
    return frozenset(_cells(braid(len(W)) @ W))


@_declare("labels that can win", "TMSR", "the tops of the rankings")
def argmaxable(W, F):
    n, pairs = len(W), list(combinations(range(len(W)), 2))
    beats = [
        {(i, j) if s > 0 else (j, i) for s, (i, j) in zip(cell, pairs, strict=True)} for cell in ranking_pattern(W, F)
    ]
    return frozenset(i for i in range(n) for b in beats if all((i, j) in b for j in range(n) if j != i))


@_declare("logit covariance", "MSR", "the embeddings' covariance undoes M; T adds terms in v; P scales")
def logit_covariance(W, F):
    return np.cov((F @ W.T).T)


@_declare("logit correlation", "MSRP", "P cancels in the normalisation")
def logit_correlation(W, F):
    return _correlation(logit_covariance(W, F))


@_declare("centred-logit covariance", "TMSR", "the covariance of the logits minus their mean over labels")
def centred_logit_covariance(W, F):
    return logit_covariance(_centred(W), F)


@_declare("centred-logit correlation", "TMSR", "the gauge-invariant cosine, weighted by the inputs")
def centred_logit_correlation(W, F):
    return _correlation(centred_logit_covariance(W, F))


@_declare("whitened-centred cosine", "TMSR", "the normalised projector onto the column space of the centred rows")
def whitened_cosine(W, F):
    return _correlation(hat_matrix(_centred(W), F))


@_declare("hat matrix", "MSR", "the projector onto the column space of W: a complete invariant of M")
def hat_matrix(W, F):
    return W @ np.linalg.pinv(W)


@_declare("softmax probabilities", "TMSR", "Lemma 3.1; M and S leave every logit")
def softmax(W, F):
    z = F @ W.T
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


@_declare("sigmoid probabilities", "MSR", "M and S leave every logit; T and P move them")
def sigmoid(W, F):
    return 1 / (1 + np.exp(-F @ W.T))


@_declare("softmax argmax", "TMSR", "as the probabilities")
def argmax(W, F):
    return (F @ W.T).argmax(axis=1)


@_declare("sigmoid label set", "MSRP", "P keeps every sign")
def label_set(W, F):
    return F @ W.T > 0


def _cells(V: np.ndarray) -> set[tuple[int, ...]]:
    """All sign vectors of V x without zeros, by adding one row at a time and asking an LP which sides are met.

    For the small heads of the table; `gonio.ask` lists the cells of large ones.
    """
    from scipy.optimize import linprog

    V = unit(V)
    d = V.shape[1]
    cells: list[tuple[int, ...]] = [()]
    for k in range(1, len(V) + 1):
        longer = []
        for cell in cells:
            for side in (1, -1):
                signs = np.array([*cell, side])
                # max t with s_i v_i.x >= t, |x|_inf <= 1: the cell is open exactly when t > 0
                A = np.column_stack([-signs[:, None] * V[:k], np.ones(k)])
                cost = np.r_[np.zeros(d), -1.0]
                found = linprog(cost, A_ub=A, b_ub=np.zeros(k), bounds=[(-1, 1)] * d + [(None, 1)])
                if found.x[-1] > 1e-9:
                    longer.append((*cell, side))
        cells = longer
    return set(cells)
