"""Near-duplicates: labels whose rows point almost the same way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.diagnostics.hubness import given_neighbours
from gonio.diagnostics.result import Result, axes
from gonio.errors import GonioError
from gonio.head import Head
from gonio.nearest import nearest_by_cosine
from gonio.parallel import spans
from gonio.similarity import Cosine

if TYPE_CHECKING:
    from jaxtyping import Float, Int

LISTED = 10  # neighbours looked at


@dataclass(frozen=True, eq=False, repr=False)
class NearDuplicates(Result):
    """Pairs of labels with a cosine of at least `cosine`, and the groups they join.

    pairs    i < j, largest cosine first; among each label's nearest only, so a large group may lack some of its pairs
    groups   labels connected by such pairs, largest group first
    twins    groups of labels with equal row and bias
    """

    pairs: Int[np.ndarray, "pairs 2"]
    cosines: Float[np.ndarray, " pairs"]
    groups: tuple[tuple[int, ...], ...]
    twins: int
    cosine: float
    labels: tuple[str, ...] = field(default=())

    def lines(self) -> tuple[str, str]:
        first = ", ".join(repr(self.labels[i]) for i in self.groups[0][:4]) if self.groups else "none"
        return (
            f"{len(self.pairs):,} pairs with cosine >= {self.cosine:g}, {len(self.groups):,} groups",
            f"largest group: {first}",
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        if not self.groups:
            return f"No two labels have a cosine of {self.cosine:g} or more."
        members = sum(map(len, self.groups))
        named = ", ".join(repr(self.labels[i]) for i in self.groups[0][:5])
        return (
            f"{members:,} labels point almost where another does (cosine {self.cosine:g} or more), in "
            f"{len(self.groups):,} groups, the largest of {len(self.groups[0]):,}: {named}. {self.twins:,} groups have "
            f"exactly equal rows, of which none can beat another."
        )

    def plot(self, ax: Any = None) -> Any:
        """How large the groups are."""
        ax = axes(ax)
        sizes, times = np.unique([len(g) for g in self.groups], return_counts=True) if self.groups else ([], [])
        if not self.groups:
            ax.text(0.5, 0.5, "none", ha="center", transform=ax.transAxes)
        ax.bar([str(s) for s in sizes], times, color="#1f6f8b")
        ax.set_xlabel("labels in a group")
        ax.set_ylabel("groups")
        return ax


def near_duplicates(head: Head, cosine: float = 0.999, *, neighbours: Any = None) -> NearDuplicates:
    """Labels whose rows have a cosine of at least `cosine` with another's.

    Candidates are each label's ten nearest (or the `neighbours` given), and decided in float64. Zero rows have none.

    >>> near_duplicates(Head([[1, 0], [1, 0.001], [0, 1]], link="softmax")).pairs
    array([[0, 1]])
    """
    if not isinstance(cosine, (int, float, np.floating)) or isinstance(cosine, bool) or not -1 <= cosine <= 1:
        raise GonioError(f"near_duplicates: cosine is {cosine!r}; a number from -1 to 1 is needed.")
    n = head.shape[0]
    if n < 2:
        near = np.zeros((n, 0), np.int64)
    elif neighbours is None:
        near = nearest_by_cosine(head.rows, min(LISTED, n - 1))[0]
    else:
        near = given_neighbours(neighbours, n, 1, "near_duplicates")
    measure, kept, values = Cosine(head), [], []
    for s, e in spans(n, 4096):
        i = np.repeat(np.arange(s, e), near.shape[1])
        j = near[s:e].ravel()
        good = (j >= 0) & (i != j)
        i, j = np.minimum(i, j)[good], np.maximum(i, j)[good]
        if len(i):
            c = measure.pairs(i, j)
            high = np.nan_to_num(c, nan=-2) >= cosine
            kept.append(np.column_stack([i[high], j[high]]))
            values.append(c[high])
    pairs = np.concatenate(kept) if kept else np.zeros((0, 2), np.int64)
    found = np.concatenate(values) if values else np.zeros(0)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    found = found[first]
    order = np.argsort(-found, kind="stable")
    return NearDuplicates(pairs[order], found[order], _groups(pairs, n), len(head.twins), float(cosine), head.labels)


def _groups(pairs: np.ndarray, n: int) -> tuple[tuple[int, ...], ...]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    component = connected_components(graph, directed=False)[1]
    touched = np.unique(pairs)
    groups: dict[int, list[int]] = {}
    for i in touched.tolist():
        groups.setdefault(int(component[i]), []).append(i)
    return tuple(sorted((tuple(g) for g in groups.values()), key=lambda g: (-len(g), g)))
