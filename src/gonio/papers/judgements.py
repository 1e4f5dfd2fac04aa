"""Which measure and which remedy agree with people? Each beside the plain cosine, on pairs that people judged.

The number is Spearman's correlation with the judgements, with its 95 % bootstrap interval over the pairs. A row is
better or worse where it beats or loses to the cosine of the untouched rows in 97.5 % of the resamples. Remedies are
fitted on rows that no pair names, where there are enough of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gonio.core import checks
from gonio.core.correlations import spearman
from gonio.core.directions import cosines
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.diagnostics.result import Result, axes, called
from gonio.remedies import Center, LengthAsFeature, QueryNormalizer, RemoveTopComponents, Standardize, Whiten
from gonio.remedies.remedy import FOLDS, Remedy, resampled
from gonio.similarity import measure

RESAMPLES = 500
MEASURES = (
    "cosine",
    "dot",
    "Euclid",
    "centred cosine",
    "whitened-centred cosine",
    "CSLS",
    "local scaling",
    "NICDM",
    "mutual proximity",
    "query-normalised",
    "SCALED_SIM",
    "WRD as printed",
    "radially weighted angle",
    "augmented cosine",
)
OVER_INPUTS = ("logit correlation", "centred-logit correlation")  # these need inputs
REMEDIES: dict[str, Remedy] = {
    "Center": Center(),
    "Standardize": Standardize(),
    "Whiten": Whiten(),
    "Whiten, zca, shrinkage 0.5": Whiten("zca", shrinkage=0.5),
    "Whiten, 64 components": Whiten(components=64),
    "RemoveTopComponents": RemoveTopComponents(),
    "RemoveTopComponents, 10": RemoveTopComponents(10),
    "LengthAsFeature": LengthAsFeature(),
    "QueryNormalizer": QueryNormalizer(),
}


@dataclass(frozen=True)
class Tried:
    """One measure or remedy: its correlation with the judgements, the interval, and how it does beside the cosine.

    abstains   a remedy that is shown the judgements first would leave the rows as they are; None for a measure
    """

    name: str
    rho: float
    low: float
    high: float
    beside_cosine: Literal["better", "worse", "the same"]
    abstains: bool | None = None
    pairs: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Judgements(Result):
    """Every measure and remedy on one space and one set of judged pairs."""

    rows: tuple[Tried, ...]
    pairs: int

    def __getitem__(self, name: str) -> Tried:
        return called(self.rows, name, "judgements")

    @property
    def best(self) -> Tried:
        """The row of the largest correlation."""
        return max(self.rows, key=lambda r: r.rho)

    def lines(self) -> tuple[str, str]:
        better, worse = (sum(r.beside_cosine == x for r in self.rows) for x in ("better", "worse"))
        return (
            f"{self.pairs:,} judged pairs, {len(self.rows)} measures and remedies",
            f"cosine {self['cosine'].rho:.3f}; {better} do better, {worse} worse; best {self.best.name}, "
            f"{self.best.rho:.3f}",
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        said = [
            f"The plain cosine agrees with the {self.pairs:,} judgements with a rank correlation of "
            f"{self['cosine'].rho:.3f} ({self['cosine'].low:.3f} to {self['cosine'].high:.3f})."
        ]
        for word in ("better", "worse"):
            some = [f"{r.name} {r.rho:.3f}" for r in self.rows if r.beside_cosine == word]
            said.append(f"{word.capitalize()}: {', '.join(some) or 'none'}.")
        return " ".join(said)

    def plot(self, ax: Any = None) -> Any:
        """Correlations with their intervals; filled where they differ from the plain cosine."""
        ax = axes(ax)
        colours = {"better": "#1f6f8b", "worse": "#c0392b", "the same": "#888888"}
        for k, r in enumerate(reversed(self.rows)):
            ax.plot([r.low, r.high], [k, k], color=colours[r.beside_cosine], lw=2)
            ax.plot(r.rho, k, "o", color=colours[r.beside_cosine], ms=5)
        ax.axvline(self["cosine"].rho, color="#888888", lw=0.8, ls=":")
        ax.set_yticks(range(len(self.rows)), [r.name for r in reversed(self.rows)], fontsize=7)
        ax.set_xlabel("rank correlation with the judgements", fontsize=8)
        return ax


def judgements(
    X: Any,
    pairs: Any,
    scores: Any,
    *,
    inputs: Any = None,
    measures: tuple[str, ...] = MEASURES,
    remedies: Mapping[str, Remedy] | None = None,
    learned: bool = True,
    seed: int = 0,
) -> Judgements:
    """Measures and remedies on the rows of X, against judged pairs of them.

    Parameters
    ----------
    X : rows of vectors; those that no pair names serve to fit remedies and as rivals of the neighbour-based measures
    pairs, scores : pairs of row numbers, shape (pairs, 2), and one judgement each (larger: more alike)
    remedies : those to try, by name; if not given, REMEDIES as far as the width of X allows
    inputs : embeddings over which the measures of behaviour are taken; left out without them
    learned : also the supervised score (ridge on pair features), out of fold
    """
    X = checks.wide(checks.matrix(X, "judgements", "X", axes=("rows", "dim")))
    p, y = checks.judged(pairs, scores, len(X), "judgements", 2 * FOLDS)
    if remedies is None:
        remedies = {k: r for k, r in REMEDIES.items() if (r.get_params().get("components") or 1) <= X.shape[1]}
    head = Head(X, link="cosine")
    base = measure("cosine")(head).pairs(p[:, 0], p[:, 1])
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(y), np.full(len(y), 1 / len(y)), RESAMPLES)
    rows = [
        tried(name, found, y, base, drawn, abstains)
        for name, found, abstains in _found(head, X, p, y, inputs, measures, remedies, learned)
    ]
    return Judgements(tuple(rows), len(y))


def tried(
    name: str, found: np.ndarray, y: np.ndarray, base: np.ndarray, drawn: np.ndarray, abstains: bool | None = None
) -> Tried:
    """One row from the scores it gives the pairs; pairs without a score (a zero row) are left out."""
    known = np.isfinite(found) & np.isfinite(base)
    if known.sum() < 2:
        raise GonioError(f"judgements: {name} has a score for {int(known.sum())} of {len(y)} pairs; two are needed.")
    x, y, base, drawn = found[known], y[known], base[known], drawn[:, known]
    drawn = drawn[drawn.any(axis=1)]
    draws = resampled(x, y, drawn)
    low, high = np.quantile(draws, [0.025, 0.975])
    gain = np.quantile(draws - resampled(base, y, drawn), [0.025, 0.975])
    verdict = "better" if gain[0] > 0 else "worse" if gain[1] < 0 else "the same"
    return Tried(name, spearman(x, y), float(low), float(high), verdict, abstains, int(known.sum()))


def _found(
    head: Head, X: np.ndarray, p: np.ndarray, y: np.ndarray, inputs, measures, remedies, learned: bool
) -> Iterator[tuple[str, np.ndarray, bool | None]]:
    """(name, scores of the pairs, whether a remedy abstains) for each measure and remedy."""
    i, j = p.T
    soft = head.replace(link="softmax")
    for name in (*measures, *(OVER_INPUTS if inputs is not None else ())):
        m = measure(name)(soft if "logit" in name else head, inputs)
        yield name, m.nearer * m.pairs(i, j), None
    if learned:
        learner: Any = measure("judged")(head, pairs=p, judgements=y)
        yield "judged (ridge, out of fold)", learner.out_of_fold, None
    rest = np.setdiff1d(np.arange(len(X)), p.ravel())
    for name, remedy in remedies.items():
        r = type(remedy)(**remedy.get_params()).fit(X[rest] if len(rest) > 2 * X.shape[1] else X)
        if isinstance(r, QueryNormalizer):
            after = np.einsum("ij,ij->i", r.transform(X[i]), r.documents(X[j]))
        else:
            after = cosines(r.transform(X[i]), r.transform(X[j]))
        shown = type(remedy)(**remedy.get_params()).fit(X, pairs=p, judgements=y)
        yield name, after, bool(shown.abstained_)
