"""The cluster simulation behind the paper's figure: users who like clusters, items with power-law popularity.

What the paper leaves out is set here: clusters equally likely, popularity rank^-beta within a
cluster, preferences Dirichlet(1, .., 1), basket sizes m with chance ~ m^-0.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.parallel import spans

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False, repr=False)
class Simulated:
    """Binary interactions (sparse), with each item's cluster; items are sorted by cluster, then by popularity."""

    X: Any
    cluster: Int[np.ndarray, " items"]
    baseline: Float[np.ndarray, " items"]
    seed: int

    def __repr__(self) -> str:
        n, p = self.X.shape
        return (
            f"Simulated({n:,} users x {p:,} items, {self.X.nnz:,} interactions, seed {self.seed})\n"
            f"  clusters of {', '.join(map(str, np.bincount(self.cluster)))} items"
        )


def simulate(users: int = 20_000, items: int = 1_000, clusters: int = 5, *, seed: int = 0) -> Simulated:
    """Draw the interactions.

    p_ui ~ p_{u, c_i} p_i;  user u takes k_u items without replacement (Gumbel top-k gives exactly that law).
    """
    for name, value, least in (("users", users, 1), ("items", items, 2), ("clusters", clusters, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise GonioError(f"simulate: {name} is {value!r}; a whole number of at least {least} is needed.")
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    cluster = np.sort(rng.integers(0, clusters, items))
    beta = rng.uniform(0.25, 1.5, clusters)
    sizes = np.bincount(cluster, minlength=clusters)
    ranks = np.concatenate([np.arange(1, m + 1) for m in sizes])
    baseline = ranks ** -beta[cluster]
    preference = rng.dirichlet(np.ones(clusters), users)
    chance = np.arange(1, items + 1) ** -0.5
    baskets = rng.choice(items, users, p=chance / chance.sum()) + 1
    indptr = np.zeros(users + 1, np.int32 if baskets.sum() < 1 << 31 else np.int64)
    np.cumsum(baskets, out=indptr[1:])
    indices = np.empty(indptr[-1], indptr.dtype)
    with np.errstate(divide="ignore"):
        log_preference, log_baseline = np.log(preference), np.log(baseline)
    for a, b in spans(users, 2048):
        keys = log_preference[a:b][:, cluster] + log_baseline + rng.gumbel(size=(b - a, items))
        order = np.argsort(-keys, axis=1)
        for u in range(a, b):
            indices[indptr[u] : indptr[u + 1]] = np.sort(order[u - a, : baskets[u]])
    X = csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=(users, items))
    popularity = np.bincount(indices, minlength=items)
    order = np.lexsort((-popularity, cluster))  # by cluster, then by how often an item was really taken
    return Simulated(X[:, order], cluster[order], baseline[order], seed)


@dataclass(frozen=True)
class Separation:
    """How well a similarity tells pairs of one cluster from pairs of two: mean cosines, and the area under ROC."""

    name: str
    same: float
    different: float
    auc: float

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "same": self.same, "different": self.different, "auc": self.auc}


def separation(name: str, V: np.ndarray, cluster: np.ndarray) -> Separation:
    """The cosines of all pairs of items, split by whether the two share their cluster.

    The area is the chance that a random pair of one cluster is more alike than a random pair of two (ties half).
    """
    from scipy.stats import rankdata

    from gonio.core.directions import unit

    U = unit(np.asarray(V, np.float64))
    i, j = np.triu_indices(len(U), 1)
    cosines = np.round((U @ U.T)[i, j], 12)
    same = cluster[i] == cluster[j]
    a, b = int(same.sum()), int((~same).sum())
    if not a or not b:
        raise GonioError("separation: pairs of one cluster and of two are both needed; the items are in one cluster.")
    ranks = rankdata(cosines)
    auc = (ranks[same].sum() - a * (a + 1) / 2) / (a * b)
    return Separation(name, float(cosines[same].mean()), float(cosines[~same].mean()), float(auc))
