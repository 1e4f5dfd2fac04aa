"""Orbit: how far neighbour lists, hubs, retrieval and clusters move along the gauge and under each remedy.

    overlap      mean share of the k nearest that stay, against the lists of the head as given
    skewness     of N_k: hubness in that form
    retrieval    mean share of the k nearest that have the label's own class, where classes are given
    judged       Spearman of the similarity with judged pairs, where they are given
    clusters     adjusted Rand index of k-means clusters against those of the head as given

Forms: random members of the head's gauge (other writings of the same model), each remedy of gonio.remedies (other
vectors), and measures that correct for hubs (other readings of the same vectors). Beside the cosine, one measure that
no change of convention moves is followed along the gauge: it must stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.correlations import spearman
from gonio.core.directions import unit
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.diagnostics.agreement_of_heads import overlap
from gonio.diagnostics.hubs import Hubness, check_k, from_lists
from gonio.diagnostics.result import Result, axes
from gonio.gauge import gauge_of
from gonio.gauge.group import SCORES
from gonio.gauge.transforms import LayerNormShift
from gonio.similarity import for_link
from gonio.similarity import measure as measure_of
from gonio.similarity.nearest import nearest, nearest_by_cosine, unit_rows

if TYPE_CHECKING:
    from jaxtyping import Int

ASKED = 2000  # labels whose lists are followed
RULES = ("Center", "Standardize", "RemoveTopComponents", "Whiten")  # remedies that move cosines and need no judgements
MOST_CLUSTERED = 5000


@dataclass(frozen=True, eq=False)
class Form:
    """One form of the head and what became of the lists in it; None where it was not asked for."""

    name: str
    kind: str
    measure: str
    overlap: float
    skewness: float
    antihub_rate: float
    retrieval: float | None = None
    judged: float | None = None
    clusters: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Orbit(Result):
    """How lists move; the first form is the head as given.

    forms      one row a form and measure
    hubness    of the head as given, over the labels asked
    asked      labels whose lists were followed
    """

    forms: tuple[Form, ...]
    hubness: Hubness
    asked: Int[np.ndarray, " asked"]
    k: int
    labels: tuple[str, ...] = field(default=())
    stays: str = "predictions"

    def of_kind(self, kind: str, measure: str | None = None) -> tuple[Form, ...]:
        """The forms of one kind ("given", "gauge", "remedy", "measure"), by one measure if named."""
        return tuple(f for f in self.forms if f.kind == kind and measure in (None, f.measure))

    def lines(self) -> tuple[str, str]:
        gauge = self.of_kind("gauge", "cosine")
        low = min((f.overlap for f in gauge), default=float("nan"))
        kept = [f for f in self.forms if f.kind == "gauge" and f.measure != "cosine"]
        firm = f"; {kept[0].measure} keeps {100 * min(f.overlap for f in kept):.0f}%" if kept else ""
        remedies = ", ".join(f"{f.name} {100 * f.overlap:.0f}%" for f in self.of_kind("remedy"))
        return (
            f"{len(self.asked):,} labels, {self.k} nearest each: "
            + (f"equivalent forms keep {100 * low:.0f}% or more{firm}" if gauge else "no equivalent form is known"),
            f"remedies keep {remedies or 'not asked'}",
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        gauge = self.of_kind("gauge", "cosine")
        said = ""
        if gauge:
            low, high = min(f.overlap for f in gauge), max(f.overlap for f in gauge)
            said += (
                f"In {len(gauge)} equivalent forms (the {self.stays} stay), a label keeps {100 * low:.1f}% to "
                f"{100 * high:.1f}% of its {self.k} nearest by cosine; the skewness of hubs among these lists is "
                f"{self.forms[0].skewness:.1f} as given and {min(f.skewness for f in gauge):.1f} to "
                f"{max(f.skewness for f in gauge):.1f} there. "
            )
            kept = [f for f in self.forms if f.kind == "gauge" and f.measure != "cosine"]
            if kept:
                said += f"By {kept[0].measure} it keeps {100 * min(f.overlap for f in kept):.1f}%. "
        for f in (*self.of_kind("remedy"), *self.of_kind("measure")):
            said += f"{f.name}: {100 * f.overlap:.0f}% kept, skewness {f.skewness:.1f}. "
        return said.strip() or "No other form of this head was asked for."

    def plot(self, ax: Any = None) -> Any:
        """The share of the nearest that stay, one bar a form."""
        ax = axes(ax)
        shown = [f for f in self.forms if f.kind != "given"]
        colours = {"gauge": "#c0392b", "remedy": "#1f6f8b", "measure": "0.5"}
        names = [
            f"{f.name}" + ("" if f.measure == "cosine" or f.kind == "measure" else f", {f.measure}") for f in shown
        ]
        at = np.arange(len(shown))[::-1]
        ax.barh(at, [f.overlap for f in shown], color=[colours[f.kind] for f in shown])
        ax.set_yticks(at, names, fontsize=8)
        ax.set_xlim(0, 1)
        ax.set_xlabel(f"share of the {self.k} nearest that stay")
        return ax


def orbit(
    head: Head,
    *,
    k: int = 10,
    embeddings: Any = None,
    gauges: int = 3,
    size: float = 1.0,
    remedies: Any = RULES,
    measures: Any = ("CSLS",),
    classes: Any = None,
    judged: tuple[Any, Any] | None = None,
    clusters: int | None = None,
    asked: int = ASKED,
    neighbours: tuple[Any, Any] | None = None,
    seed: int = 0,
) -> Orbit:
    """How far neighbour lists and what is read from them move along the gauge and under each remedy.

    One pass over all pairs serves the lists as given, hubness and CSLS; any other form asks only about `asked` labels.

    Parameters
    ----------
    embeddings : what reaches the head; the measure that must stay is then one of logits over these
        After a LayerNorm nothing of the rows alone stays, so without embeddings only the cosine is followed.
    gauges, size : random members of the gauge, and how large
    remedies : names of gonio.remedies.REMEDIES, or transformers
    measures : "CSLS" and any other measure of gonio.similarity by name
    classes : one class a label, for retrieval
    judged : (pairs of rows, judgements)
    clusters : number of k-means clusters to follow
    neighbours : (indices, cosines) of that one pass, if it was made before
    """
    n, _ = head.shape
    k = check_k(k, n, "orbit")
    rng = np.random.default_rng(seed)
    which = np.arange(n) if n <= asked else np.sort(rng.choice(n, asked, replace=False))
    read = _Readings(head, k, which, clusters, _classes(classes, n), _judged(judged, n), seed)
    near, values = nearest_by_cosine(head.rows, k) if neighbours is None else _pass(neighbours, n, k)
    base, live = near[which], head.norms > 0
    gauge = gauge_of(head) if head.link != "unknown" else None
    forms = [read.form("as given", "given", "cosine", base, base, live, _cosine(head), head.rows)]
    if gauge is not None and gauge.kinds:  # else nothing is known that may change
        changes = [gauge.random(head, rng, size) for _ in range(gauges)]
        forms += _along_the_gauge(read, base, changes, embeddings)
    for name, rows in _remedied(head, remedies):
        changed = Head(rows, link="cosine", labels=head.labels if head.named else None)
        lists = nearest_by_cosine(changed.rows, k, which)[0]
        forms.append(
            read.form(name, "remedy", "cosine", lists, base, changed.norms > 0, _cosine(changed), changed.rows)
        )
    for name in measures:
        lists, similarity = _by(name, head, k, which, values, live)
        forms.append(read.form(name, "measure", name, lists, base, live, similarity))
    stays = "predictions" if gauge is None else gauge.predictions
    return Orbit(tuple(forms), from_lists(near, live, head, k), which, k, head.labels, stays)


class _Readings:
    """What is read from the lists of every form: hubs, retrieval, judged pairs, clusters."""

    def __init__(
        self,
        head: Head,
        k: int,
        which: np.ndarray,
        clusters: int | None,
        classes: np.ndarray | None,
        judged: tuple[Any, Any],
        seed: int,
    ) -> None:
        self.head, self.k, self.which, self.classes = head, k, which, classes
        self.live = head.norms > 0
        self.pairs, self.scores = judged
        self.clusters = _Clusters(clusters, which, self.live, seed) if clusters else None

    def form(self, name, kind, measure, lists, before, live, similarity, rows=None) -> Form:
        """One row: the lists of a form against those `before`, over the labels that have a direction in both."""
        which = self.which
        hubs = from_lists(lists, live, self.head, self.k, which)
        ok = self.live[which] & live[which]
        retrieval = judged = clusters = None
        if self.classes is not None:
            retrieval = float((self.classes[lists[ok]] == self.classes[which[ok]][:, None]).mean())
        if self.pairs is not None:
            judged = spearman(similarity(self.pairs[:, 0], self.pairs[:, 1]), self.scores)
        if self.clusters is not None and rows is not None:
            clusters = self.clusters(rows)
        kept = overlap(lists[ok], before[ok])
        return Form(name, kind, measure, kept, hubs.skewness, hubs.antihub_rate, retrieval, judged, clusters)


def _along_the_gauge(read: _Readings, base: np.ndarray, changes: list[Any], embeddings: Any) -> Iterator[Form]:
    """Each equivalent head by cosine, and by the measure that must stay where there is one."""
    head, k, which = read.head, read.k, read.which
    firm = _must_stay(head, embeddings)
    firm_base = None if firm == "cosine" else measure_of(firm)(head, embeddings).nearest(k, which).near
    for g, change in enumerate(changes):
        name, moved = f"equivalent head {g + 1}", change.apply(head)
        lists = nearest_by_cosine(moved.rows, k, which)[0]
        yield read.form(name, "gauge", "cosine", lists, base, moved.norms > 0, _cosine(moved), moved.rows)
        if firm_base is not None:
            by = measure_of(firm)(moved, None if embeddings is None else change.embeddings(embeddings))
            yield read.form(name, "gauge", firm, by.nearest(k, which).near, firm_base, read.live, by.pairs)


def _must_stay(head: Head, embeddings: Any) -> str:
    """The measure that no change of convention moves; "cosine" where the rows alone have none."""
    if head.link not in SCORES:
        return "cosine"
    if embeddings is None and LayerNormShift in gauge_of(head).kinds:
        return "cosine"  # each row may move along 1/gain by itself: of the rows alone, nothing stays
    return for_link(head.link, embeddings=embeddings is not None)


def _cosine(head: Head) -> Any:
    return measure_of("cosine")(head).pairs


def _by(name: str, head: Head, k: int, which: np.ndarray, values: np.ndarray, live: np.ndarray) -> tuple[Any, Any]:
    """Lists by another measure; those of CSLS come from the pass that was already made."""
    if name != "CSLS":
        made = measure_of(name)(head)
        return made.nearest(k, which).near, made.pairs
    around = np.where(live, np.nan_to_num(np.where(np.isfinite(values), values, 0)).mean(axis=1), 0)
    lists = nearest(unit_rows(head.rows), k, which=which, column=-0.5 * around, barred=~live)[0]
    cosine = _cosine(head)
    return lists, lambda i, j: 2 * cosine(i, j) - around[i] - around[j]


def _remedied(head: Head, remedies: Any) -> Iterator[tuple[str, np.ndarray]]:
    from gonio.remedies import REMEDIES

    for r in remedies:
        if isinstance(r, str):
            if r not in REMEDIES:
                raise GonioError(f"orbit: no remedy is called {r!r}; there are {', '.join(REMEDIES)}.")
            r = REMEDIES[r]()
        yield type(r).__name__, np.asarray(r.fit(head.W).transform(head.W))


class _Clusters:
    """k-means on the rows asked about, compared with the clusters found first."""

    def __init__(self, clusters: int, which: np.ndarray, live: np.ndarray, seed: int) -> None:
        self.which = which[live[which]][:MOST_CLUSTERED]
        if isinstance(clusters, bool) or not 2 <= clusters <= len(self.which):
            raise GonioError(f"orbit: clusters is {clusters}; from 2 to {len(self.which)} can be made.")
        self.clusters, self.seed, self.first = clusters, seed, None

    def __call__(self, rows: Any) -> float:
        from sklearn.cluster import KMeans
        from sklearn.metrics import adjusted_rand_score

        X = unit(rows[self.which].astype(np.float64))
        means = KMeans(self.clusters, n_init=3, random_state=self.seed)  # type: ignore[arg-type]
        found = means.fit_predict(X)
        if self.first is None:
            self.first = found
        return float(adjusted_rand_score(self.first, found))


def _classes(classes: Any, n: int) -> np.ndarray | None:
    if classes is None:
        return None
    c = np.asarray(classes)
    if c.shape != (n,):
        raise GonioError(f"orbit: classes has shape {c.shape}; one class a label is needed, so shape ({n},).")
    return c


def _judged(judged: Any, n: int) -> tuple[Any, Any]:
    if judged is None:
        return None, None
    p, y = np.asarray(judged[0]), checks.vector(judged[1], "orbit", "judgements", per="pair")
    if (
        p.ndim != 2
        or p.shape != (len(y), 2)
        or p.dtype.kind not in "iu"
        or (len(p) and not 0 <= p.min() <= p.max() < n)
    ):
        raise GonioError(
            f"orbit: pairs has shape {p.shape} of {p.dtype} beside {len(y)} judgements; rows 0 to {n - 1}, two a "
            f"judgement, are needed."
        )
    return p.astype(np.int64), y.astype(np.float64)


def _pass(given: Any, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    from gonio.diagnostics.hubs import given_neighbours

    near = given_neighbours(given[0], n, k, "orbit")[:, :k]
    values = np.asarray(given[1], np.float64)
    if values.shape[:1] != (n,) or values.ndim != 2 or values.shape[1] < k:
        raise GonioError(f"orbit: the cosines of the neighbours have shape {values.shape}; ({n}, {k}) is needed.")
    return near, values[:, :k]
