"""How documents are ordered for a query: every measure, remedy and cheaper copy as one inner product.

    score(q, d) = A(q) . B(d) + c(d)

    cosine          q^ . d^
    dot             q . d
    l2              2 q . d - |d|^2                     the order of -|q - d|
    centred         cosine of q - m and d - m           m the mean of the documents
    whitened        cosine after (x - m) U S^-1/2       of the leading directions, or all
    without top     cosine of x - m less its leading components
    CSLS            2 q^ . d^ - r(d)                    r(d) the mean cosine of d with its k nearest queries
    local scaling   (2 q^ . d^ - 2) / s(d)              s(d) the distance of d to its k-th nearest query
    truncated       cosine of the first components
    int8            cosine of entries rounded to 255 steps of each dimension's range
    binary          cosine of signs

What depends on the query alone is left out: it changes no order. Query normalisation only does that, so it is tried on
judged pairs of several queries alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.errors import GonioError
from gonio.embeddings.row_survey import unit
from gonio.remedies import Center, QueryNormalizer, RemoveTopComponents, Whiten

if TYPE_CHECKING:
    from jaxtyping import Float

METRICS = ("cosine", "dot", "l2")
NEAR = 10  # queries that CSLS and local scaling look at
Documents = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]


@dataclass(frozen=True, eq=False)
class Scorer:
    """A way to order documents.

    queries    A(q), one row a query
    documents  a block of rows -> B(d) and c(d)
    code       a line that makes it from documents X and queries Q
    """

    name: str
    queries: Float[np.ndarray, "queries width"]
    documents: Documents
    code: str


def metric_scorer(metric: str, Q: np.ndarray) -> Scorer:
    """One of cosine, dot and l2."""
    if metric == "cosine":
        code = "scores = gonio.remedies.Normalize().fit_transform(Q) @ gonio.remedies.Normalize().fit_transform(X).T"
        return Scorer("cosine", unit(Q), lambda D: (unit(D), None), code)
    if metric == "dot":
        return Scorer("dot", np.asarray(Q, np.float32), lambda D: (D, None), "scores = Q @ X.T")
    if metric == "l2":
        code = "scores = 2 * Q @ X.T - (X * X).sum(axis=1)"
        return Scorer("l2", 2 * np.asarray(Q, np.float32), lambda D: (D, -np.einsum("ij,ij->i", D, D)), code)
    raise GonioError(f"check: metric is {metric!r}; choose one of {', '.join(METRICS)}.")


def remedy_scorers(rows: np.ndarray, Q: np.ndarray) -> list[Scorer]:
    """Every remedy that fits these rows: learned from the sample of documents, judgements unseen."""
    X = np.asarray(rows, np.float32)
    n, d = X.shape
    made: list[tuple[str, str, object]] = [("centred", "Center()", Center())]
    for drop in sorted({1, max(1, round(d / 100)), 10}):
        if drop < d // 2:
            made.append((f"without top {drop}", f"RemoveTopComponents({drop})", RemoveTopComponents(components=drop)))
    if n > 2 * d:
        for keep in sorted({d, d // 2}):
            if keep > 1:
                made.append((f"whitened, {keep} directions", f"Whiten(components={keep})", Whiten(components=keep)))
    out = []
    for name, call, remedy in made:
        fitted = remedy.fit(X)  # type: ignore[attr-defined]
        code = f"remedy = gonio.remedies.{call}.fit(X); remedy.transform(X), remedy.transform(Q)"
        out.append(Scorer(name, unit(fitted.transform(Q)), lambda D, f=fitted: (unit(f.transform(D)), None), code))
    return [*out, *hub_scorers(Q)]


def query_normalised(rows: np.ndarray, Q: np.ndarray) -> Scorer:
    """(cos - mean) / spread of each query's own cosines: keeps its order, changes what one threshold means."""
    fitted = QueryNormalizer().fit(np.asarray(rows, np.float32))
    code = "remedy = gonio.remedies.QueryNormalizer().fit(X); scores = remedy.scores(Q, X)"
    return Scorer("query-normalised", fitted.transform(Q), lambda D: (fitted.documents(D), None), code)


def hub_scorers(Q: np.ndarray, k: int = NEAR) -> list[Scorer]:
    """CSLS and local scaling, with the queries themselves as the other side."""
    U = unit(Q)
    k = min(k, len(U))

    def nearest_queries(D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        V = unit(D)
        cos = V @ U.T
        top = np.partition(cos, len(U) - k, axis=1)[:, len(U) - k :]
        return V, top

    def csls(D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        V, top = nearest_queries(D)
        return V, -top.mean(axis=1)

    def scaled(D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        V, top = nearest_queries(D)
        s = np.sqrt(np.maximum(2 - 2 * top.min(axis=1), 1e-12))
        return V / s[:, None], -2 / s

    one = "U, V = (gonio.remedies.Normalize().fit_transform(A) for A in (Q, X)); near = np.sort(V @ U.T)"
    return [
        Scorer("CSLS", 2 * U, csls, f"{one}[:, -{k}:]; scores = 2 * U @ V.T - near.mean(axis=1)"),
        Scorer(
            "local scaling",
            2 * U,
            scaled,
            f"{one}[:, -{k}]; scores = (2 * U @ V.T - 2) / np.sqrt(np.maximum(2 - 2 * near, 1e-12))",
        ),
    ]


def cheaper_scorers(rows: np.ndarray, Q: np.ndarray) -> list[Scorer]:
    """Smaller copies of the same table, compared by cosine."""
    d = rows.shape[1]
    out = []
    for keep in (d // 2, d // 4):
        if keep > 1:
            code = f"smaller = X[:, :{keep}]"
            out.append(
                Scorer(f"truncated to {keep}", unit(Q[:, :keep]), lambda D, c=keep: (unit(D[:, :c]), None), code)
            )
    low, high = np.quantile(rows, [0.001, 0.999], axis=0)
    step = np.maximum((high - low) / 254, 1e-12).astype(np.float32)
    middle = ((high + low) / 2).astype(np.float32)

    def rounded(D: np.ndarray) -> np.ndarray:
        return unit(np.clip(np.rint((D - middle) / step), -127, 127) * step + middle)

    code = "low, high = np.quantile(X, [0.001, 0.999], axis=0); step = (high - low) / 254; " + (
        "smaller = np.clip(np.rint((X - (low + high) / 2) / step), -127, 127).astype(np.int8)"
    )
    out.append(Scorer("int8", rounded(Q), lambda D: (rounded(D), None), code))
    signs: Callable[[np.ndarray], np.ndarray] = lambda D: np.where(D > 0, 1, -1).astype(np.float32) / np.sqrt(d)  # noqa: E731
    out.append(
        Scorer(
            "binary", signs(Q).astype(np.float32), lambda D: (signs(D), None), "smaller = np.packbits(X > 0, axis=1)"
        )
    )
    return out
