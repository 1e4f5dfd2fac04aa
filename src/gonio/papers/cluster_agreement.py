"""Do clusters suffer? k-means in the space of every measure and remedy, against classes that are known.

    F_i = 2 p r / (p + r),   p = |C n T| / |C|,  r = |C n T| / |T|     of row i with cluster C and class T

The mean of F_i is B-cubed F (Bagga and Baldwin 1998). It is a mean over rows, so two clusterings are compared on the
same resamples of rows. k-means starts from the same random rows in every space, and of all restarts that of the least
inertia is kept; "cosine, other restarts" does it again from other rows: what restarts alone change.

k-means needs a space: cosine is l2 of unit rows; the dot product, CSLS and local scaling have none.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.embeddings.paired_comparison import compare_paired
from gonio.embeddings.row_survey import unit
from gonio.embeddings.sampling_intervals import mean_interval
from gonio.embeddings.scorers import remedy_scorers
from gonio.similarity.bootstrap import Interval

if TYPE_CHECKING:
    from jaxtyping import Float, Int

OTHER = "cosine, other restarts"


@dataclass(frozen=True)
class ClusterRow:
    """One space: B-cubed F with its interval over rows, the adjusted Rand index, and its F beside that of cosine.

    restarts   the 5 % and 95 % quantiles of F over the restarts
    verdict    better, worse or not shown on resampled rows, corrected (Holm) for all spaces; "within restarts" where
               it would be better or worse but restarts of cosine alone reach as far
    """

    name: str
    f: Interval
    rand: float
    restarts: tuple[float, float]
    difference: Interval | None
    verdict: str


@dataclass(frozen=True, eq=False, repr=False)
class ClusterAgreement:
    """k-means in every space, against known classes. Intervals are over rows, for these clusterings."""

    count: int
    classes: int
    restarts: int
    rows: tuple[ClusterRow, ...]

    def row(self, name: str) -> ClusterRow:
        return next(r for r in self.rows if r.name == name)

    def to_dict(self) -> dict[str, Any]:
        out = {key: value for key, value in vars(self).items() if key != "rows"}
        return out | {"rows": [asdict(r) for r in self.rows]}

    def __repr__(self) -> str:
        best = max(self.rows, key=lambda r: r.f.value)
        said = f"ClusterAgreement({self.count:,} rows, {self.classes} classes, {self.restarts} restarts)"
        return f"{said}\n  best B-cubed F: {best.f.value:.3f}, {best.name}"


def cluster_agreement(X: Any, classes: Any, *, restarts: int = 20, seed: int = 0) -> ClusterAgreement:
    """Cluster rows in every space with as many clusters as there are classes, and compare with the classes.

    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(3) * 9, 40, axis=0) + rng.standard_normal((120, 3))
    >>> cluster_agreement(X, np.repeat(["a", "b", "c"], 40), restarts=5).row("cosine").f.value > 0.95
    True
    """
    X = np.asarray(X, np.float32)
    live = X.any(axis=1)
    names, truth = np.unique(np.asarray(classes)[live], return_inverse=True)
    X = X[live]
    if len(names) < 2 or len(X) < 10 * len(names):
        raise GonioError(
            f"cluster_agreement: {len(X):,} rows of {len(names)} classes were given; at least two classes and ten rows "
            f"a class are needed."
        )
    spaces = {"cosine": unit(X), "l2": X}
    for s in remedy_scorers(X, X[:1]):
        rows, column = s.documents(X)
        if column is None:  # CSLS and local scaling are scores without a space
            spaces[s.name] = rows
    rng = np.random.default_rng(seed)
    starts = [rng.choice(len(X), len(names), replace=False) for _ in range(2 * restarts)]
    found = {name: _clustered(V, truth, starts[:restarts]) for name, V in spaces.items()}
    found[OTHER] = _clustered(spaces["cosine"], truth, starts[restarts:])
    others = {n: x[0] for n, x in found.items() if n != "cosine"}
    compared = {c.name: c for c in compare_paired(found["cosine"][0], others, seed=seed)}
    rows = []
    low, high = found["cosine"][2]
    for n, (f, rand, spread) in found.items():
        c = compared.get(n)
        verdict = "base" if c is None else c.verdict
        if verdict in ("better", "worse") and low <= f.mean() <= high:
            verdict = "within restarts"
        rows.append(ClusterRow(n, mean_interval(f, bounds=(0, 1)), rand, spread, c and c.difference, verdict))
    return ClusterAgreement(len(X), len(names), restarts, tuple(rows))


def _clustered(
    V: np.ndarray, truth: np.ndarray, starts: list[np.ndarray]
) -> tuple[np.ndarray, float, tuple[float, float]]:
    """F of each row in the clustering of least inertia, its adjusted Rand index, and the spread of F over restarts."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    runs: list[Any] = [KMeans(len(s), init=V[s], n_init=1).fit(V) for s in starts]  # type: ignore[arg-type]
    every = [float(b_cubed(r.labels_, truth).mean()) for r in runs]
    best = min(runs, key=lambda r: r.inertia_)
    low, high = (float(x) for x in np.quantile(every, [0.05, 0.95]))
    return b_cubed(best.labels_, truth), float(adjusted_rand_score(truth, best.labels_)), (low, high)


def b_cubed(clusters: Int[np.ndarray, " rows"], classes: Int[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    """F of each row.

    >>> b_cubed(np.array([0, 0, 1]), np.array([0, 0, 0])).round(3).tolist()
    [0.8, 0.8, 0.5]
    """
    both = np.zeros((clusters.max() + 1, classes.max() + 1))
    np.add.at(both, (clusters, classes), 1)
    shared = both[clusters, classes]
    p, r = shared / both.sum(axis=1)[clusters], shared / both.sum(axis=0)[classes]
    return 2 * p * r / (p + r)
