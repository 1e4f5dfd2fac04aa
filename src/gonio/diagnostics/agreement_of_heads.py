"""Do two models agree on how alike labels are? Beside what their conventions alone can do to the answer.

    global   Pearson correlation of the two matrices of similarities, upper triangles, over shared labels
             (Lee et al. 2025)
    local    share of the k nearest that both name; correlation of local intrinsic dimensions

for four similarities: raw cosine, cosine of centred rows, whitened cosine, and correlation of logits over the same
inputs (the last two of centred rows for a softmax). Only the last two are functions of the models. The null puts the
second model into random equivalent forms: what moves then was never about the models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.correlations import pearson
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.diagnostics.moments import moments
from gonio.diagnostics.result import Result, axes
from gonio.gauge import gauge_of
from gonio.similarity import for_link, measure
from gonio.similarity.whitened import seen_by_inputs

if TYPE_CHECKING:
    from jaxtyping import Float, Int

SAMPLE = 1000
KINDS = ("raw", "centred", "whitened", "logit")


@dataclass(frozen=True, eq=False)
class Row:
    """One similarity: how two models agree by it, and how they agree when only conventions differ.

    correlation   of the two matrices of similarities
    gauge         the same with the second model in random equivalent forms: lowest and highest
    itself        the first model beside itself in random equivalent forms; 1 for what is no convention
    neighbours    mean share of the k nearest that both name; `chance` for lists drawn at random
    invariant     whether it is a function of the model
    """

    kind: str
    correlation: float
    gauge: tuple[float, float]
    itself: tuple[float, float]
    neighbours: float
    chance: float
    invariant: bool
    caveat: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(Result):
    """How two models agree, one row a similarity.

    count       shared labels looked at, of `shared`
    dimension   correlation over labels of the local intrinsic dimension in the two models (raw rows)
    """

    rows: tuple[Row, ...]
    count: int
    shared: int
    k: int
    dimension: float
    dimensions: tuple[Float[np.ndarray, " some"], Float[np.ndarray, " some"]]
    which: Int[np.ndarray, "some 2"]
    labels: tuple[str, ...] = field(default=())

    def __getitem__(self, kind: str) -> Row:
        """The row of one similarity."""
        for r in self.rows:
            if r.kind == kind:
                return r
        raise GonioError(
            f"agreement: no similarity {kind!r} was compared; there are {', '.join(r.kind for r in self.rows)}."
        )

    def lines(self) -> tuple[str, str]:
        said = ", ".join(f"{r.kind} {r.correlation:.3f} [{r.gauge[0]:.2f}, {r.gauge[1]:.2f}]" for r in self.rows)
        return (
            f"{self.count:,} of {self.shared:,} shared labels",
            f"correlation, and its range over equivalent forms of the second: {said}",
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        raw = self["raw"]
        said = (
            f"Over {self.count:,} shared labels the cosines of the two models correlate by {raw.correlation:.3f}. With "
            f"the second in equivalent forms, which predict the same, that number runs from {raw.gauge[0]:.2f} to "
            f"{raw.gauge[1]:.2f}; the first model beside an equivalent form of itself has {raw.itself[0]:.2f} to "
            f"{raw.itself[1]:.2f}. "
        )
        firm = [r for r in self.rows if r.invariant and np.isfinite(r.correlation)]
        if firm:
            told = ", ".join(f"{r.kind} {r.correlation:.3f}" for r in firm)
            said += f"What does not depend on the form: {told}. "
        else:
            said += "Nothing compared here is independent of the form; give embeddings of the same inputs in both. "
        said += " ".join(f"({r.kind}: {r.caveat}.)" for r in self.rows if r.caveat)
        return said.strip()

    def plot(self, ax: Any = None) -> Any:
        """Each correlation with its range over equivalent forms."""
        ax = axes(ax)
        at = np.arange(len(self.rows))
        for i, r in enumerate(self.rows):
            ax.plot([i, i], r.gauge, color="#c0392b", linewidth=6, alpha=0.4, solid_capstyle="butt")
        ax.scatter(at, [r.correlation for r in self.rows], color="#1f6f8b", zorder=3)
        ax.set_xticks(at, [r.kind for r in self.rows])
        ax.set_ylabel("correlation of similarities")
        ax.set_title("points: as given; bars: equivalent forms of the second model", fontsize=10)
        return ax


def agreement(
    a: Head,
    b: Head,
    *,
    embeddings: tuple[Any, Any] | None = None,
    sample: int = SAMPLE,
    k: int = 10,
    gauges: int = 5,
    seed: int = 0,
) -> Agreement:
    """How two models agree on which labels are alike, by four similarities, against random equivalent forms.

    Parameters
    ----------
    embeddings : (F_a, F_b), what reaches each head for the same inputs in the same order, for the similarity of logits
    sample : at most so many shared labels are drawn; the matrices are sample x sample
    gauges : random equivalent forms of the second model, and of the first
    """
    which, names = shared_labels(a, b)
    if isinstance(sample, bool) or not isinstance(sample, (int, np.integer)) or sample < 3:
        raise GonioError(f"agreement: sample is {sample}; at least 3 labels are needed.")
    rng, shared = np.random.default_rng(seed), len(which)
    if len(which) > sample:
        some = np.sort(rng.choice(len(which), sample, replace=False))
        which, names = which[some], tuple(names[i] for i in some)
    live = (a.norms[which[:, 0]] > 0) & (b.norms[which[:, 1]] > 0)
    total = len(which)
    which, names = which[live], tuple(x for x, ok in zip(names, live, strict=True) if ok)
    m = len(which)
    if m < 3:
        raise GonioError(f"agreement: {m} of {total} shared labels have a row of some length in both; 3 are needed.")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k < m:
        raise GonioError(f"agreement: k is {k} and {m} labels are compared; k from 1 to {m - 1} is needed.")
    Fa, Fb = _embeddings(embeddings, a, b)
    forms_b = [gauge_of(b).random(b, rng) for _ in range(gauges)]
    forms_a = [gauge_of(a).random(a, rng) for _ in range(gauges)]
    upper = np.triu_indices(m, 1)
    first = _all(a, Fa, which[:, 0])
    second = _all(b, Fb, which[:, 1])
    moved_b = [_all(g.apply(b), None if Fb is None else g.embeddings(Fb), which[:, 1]) for g in forms_b]
    moved_a = [_all(g.apply(a), None if Fa is None else g.embeddings(Fa), which[:, 0]) for g in forms_a]
    rows = []
    for kind in KINDS[: 4 if Fa is not None else 3]:
        x = first[kind][upper]
        against = [pearson(x, M[kind][upper]) for M in moved_b]
        own = [pearson(x, M[kind][upper]) for M in moved_a]
        caveat = _caveat(kind, a, b, Fa, Fb)
        rows.append(
            Row(
                kind,
                pearson(x, second[kind][upper]),
                _span(against),
                _span(own),
                overlap(_lists(first[kind], k), _lists(second[kind], k)),
                k / (m - 1),
                _is_invariant(kind, a) and _is_invariant(kind, b),
                caveat,
            )
        )
    near = max(2, min(2 * k, m - 1))
    dims = (
        local_dimensions(a.rows[which[:, 0]].astype(np.float64), _lists(first["raw"], near)),
        local_dimensions(b.rows[which[:, 1]].astype(np.float64), _lists(second["raw"], near)),
    )
    return Agreement(
        tuple(rows),
        m,
        shared,
        int(k),
        pearson(*dims),
        dims,
        which,
        names,
    )


def shared_labels(a: Head, b: Head) -> tuple[Int[np.ndarray, "shared 2"], tuple[str, ...]]:
    """Rows of the labels that both heads have: by name where both are named, otherwise by number.

    Names that one of them has twice are left out.
    """
    if a.named and b.named:
        both = [(i, b.names.positions.get(x, -1), x) for x, i in a.names.positions.items() if i >= 0]
        both = [(i, j, x) for i, j, x in both if j >= 0]
        if len(both) < 3:
            raise GonioError(
                f"agreement: the heads share {len(both)} label names (one has {', '.join(map(repr, a.labels[:3]))}, "
                f"the other {', '.join(map(repr, b.labels[:3]))}); at least 3 are needed."
            )
        return np.array([(i, j) for i, j, _ in both]), tuple(x for _, _, x in both)
    if a.shape[0] != b.shape[0]:
        raise GonioError(
            f"agreement: the heads have {a.shape[0]:,} and {b.shape[0]:,} labels and are not both named; "
            f"name the labels, or give heads with one row for each of the same labels."
        )
    n = a.shape[0]
    names = a.labels if a.named else b.labels
    return np.column_stack([np.arange(n)] * 2), names


def _embeddings(given: Any, a: Head, b: Head) -> tuple[np.ndarray | None, np.ndarray | None]:
    if given is None:
        return None, None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise GonioError("agreement: embeddings is a pair (F_a, F_b), one array for each model.")
    F = [checks.embeddings(x, h.shape[1], "agreement").astype(np.float64) for x, h in zip(given, (a, b), strict=True)]
    if len(F[0]) != len(F[1]):
        raise GonioError(
            f"agreement: F_a has {len(F[0])} rows and F_b {len(F[1])}; the same inputs are needed in both."
        )
    if len(F[0]) < 3:
        raise GonioError(f"agreement: {len(F[0])} inputs were given; a correlation over inputs needs at least 3.")
    return F[0], F[1]


def _all(head: Head, F: np.ndarray | None, rows: np.ndarray) -> dict[str, np.ndarray]:
    """The matrices of similarity among the chosen labels; mean and covariance are those of all rows of the head."""
    W = head.rows[rows].astype(np.float64)
    m = moments(head)
    centred = W - m.mean
    softmax = head.link == "softmax"
    base, spread = (centred, m.covariance) if softmax else (W, m.second)
    seen = seen_by_inputs(head)
    if seen is not None:
        base, spread = base @ seen, seen.T @ spread @ seen
    out = {"raw": _cosines(W), "centred": _cosines(centred), "whitened": _cosines(base @ _root(spread))}
    if F is not None:
        Z = measure(for_link("softmax" if softmax else "sigmoid", embeddings=True))(head, F).logits(rows)  # type: ignore[attr-defined]
        out["logit"] = _cosines((Z - Z.mean(axis=0)).T)
    return out


def _is_invariant(kind: str, head: Head) -> bool:
    """Whether a similarity is the same for every equivalent form that is compared here.

    Where a norm hides directions of the rows, these alone do not tell which ones once an invertible map moved them.
    """
    if head.link == "cosine":
        return True
    return kind == "logit" or (kind == "whitened" and seen_by_inputs(head) is None)


def _root(S: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(S)
    keep = values > max(values[-1], 1e-300) * 1e-10
    return vectors[:, keep] / np.sqrt(values[keep])


def _cosines(V: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(V, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        U = np.where(size > 1e-12 * max(float(size.max()), 1e-300), V / size, 0)
    return U @ U.T


def _span(values: list[float]) -> tuple[float, float]:
    known = [v for v in values if np.isfinite(v)]
    return (min(known), max(known)) if known else (float("nan"), float("nan"))


def _lists(S: np.ndarray, k: int) -> Int[np.ndarray, "some near"]:
    S = S.copy()
    np.fill_diagonal(S, -np.inf)
    return np.argsort(-np.round(S, 12), axis=1, kind="stable")[:, :k]


def overlap(x: np.ndarray, y: np.ndarray) -> float:
    """The mean share of the k nearest that two sets of lists have in common."""
    return float(np.mean([(np.isin(p, q)).mean() for p, q in zip(x, y, strict=True)])) if len(x) else float("nan")


def local_dimensions(X: np.ndarray, near: np.ndarray, share: float = 0.95) -> Float[np.ndarray, " rows"]:
    """The share of the principal axes of each row's neighbours that is needed for `share` of their variance."""
    out = np.empty(len(X))
    for i, js in enumerate(near):
        C = X[js] - X[js].mean(axis=0)
        values = np.linalg.svd(C, compute_uv=False) ** 2
        total = values.sum()
        out[i] = (np.searchsorted(np.cumsum(values), share * total) + 1) / len(values) if total > 0 else 0.0
    return out


def _caveat(kind: str, a: Head, b: Head, Fa: Any, Fb: Any) -> str:
    low: Callable[[Head], bool] = lambda h: h.shape[0] - (h.link == "softmax") <= h.shape[1]  # noqa: E731
    if kind == "whitened" and (low(a) or low(b)):
        return "with no more labels than dimensions it is the same for every model and tells nothing"
    if kind == "logit" and Fa is not None and Fb is not None and len(Fa) <= max(a.shape[1], b.shape[1]):
        return (
            f"{len(Fa)} inputs do not span the embeddings; more than {max(a.shape[1], b.shape[1])} are needed for that"
        )
    return ""
