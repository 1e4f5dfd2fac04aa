"""Near-duplicates: labels whose rows point almost the same way, every pair of them.

A label whose list of nearest reaches down to a cosine below the threshold has all its near-duplicates in that list. The
others, members of a group as large as a list, are compared with all labels, block by block: float32 screens, and what
is near the threshold is decided in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.compiled import njit
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import spans
from gonio.diagnostics.hubs import given_neighbours
from gonio.diagnostics.result import Result, axes
from gonio.similarity import Cosine
from gonio.similarity.nearest import RIVALS, ROWS, nearest_by_cosine, unit_rows

if TYPE_CHECKING:
    from jaxtyping import Float, Int

LISTED = 10  # neighbours looked at first
HELD = 1_000_000  # pairs that are kept one by one; all are counted
UNIT32 = 2.0**-24


@dataclass(frozen=True, eq=False, repr=False)
class NearDuplicates(Result):
    """Pairs of labels with a cosine of at least `cosine`, and the groups they join.

    count    how many such pairs there are, all of them
    equal    how many of these have equal rows and biases (labels that are always tied)
    pairs    i < j, largest cosine first: all of them, or a million where there are more
    groups   labels connected by such pairs, largest group first
    twins    groups of labels with equal row and bias
    """

    count: int
    equal: int
    pairs: Int[np.ndarray, "pairs 2"]
    cosines: Float[np.ndarray, " pairs"]
    groups: tuple[tuple[int, ...], ...]
    twins: int
    cosine: float
    labels: tuple[str, ...] = field(default=())

    def lines(self) -> tuple[str, str]:
        first = ", ".join(repr(self.labels[i]) for i in self.groups[0][:4]) if self.groups else "none"
        return (
            f"{self.count:,} pairs with cosine >= {self.cosine:g}, {len(self.groups):,} groups",
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


def near_duplicates(
    head: Head, cosine: float = 0.999, *, neighbours: Any = None, cosines: Any = None
) -> NearDuplicates:
    """Every two labels whose rows have a cosine of at least `cosine`. Zero rows have none.

    neighbours, cosines : each label's nearest by cosine, and their float32 cosines, where they are known
        (`nearest_by_cosine`); found otherwise

    Cost: one look at all pairs for the lists, and one more for the members of groups larger than a list.

    >>> near_duplicates(Head([[1, 0], [1, 0.001], [0, 1]], link="softmax")).pairs
    array([[0, 1]])
    """
    if not isinstance(cosine, (int, float, np.floating)) or isinstance(cosine, bool) or not -1 <= cosine <= 1:
        raise GonioError(f"near_duplicates: cosine is {cosine!r}; a number from -1 to 1 is needed.")
    n = head.shape[0]
    if n < 2:
        near = np.zeros((n, 0), np.int64)
    elif neighbours is None:
        near, cosines = nearest_by_cosine(head.rows, min(LISTED, n - 1))
    else:
        near = given_neighbours(neighbours, n, 1, "near_duplicates")
    if cosines is not None and np.shape(cosines) != near.shape:
        raise GonioError(
            f"near_duplicates: cosines has shape {np.shape(cosines)} and neighbours {near.shape}; one cosine a "
            f"neighbour is needed."
        )
    found = _Found(n)
    full = _from_lists(head, near, cosines, cosine, found)
    if len(full):
        _from_all(head, full, cosine, found)
    pairs, values = found.pairs()
    order = np.argsort(-values, kind="stable")
    twins = [g for g in head.twins if head.norms[g[0]] > 0]
    equal = sum(len(g) * (len(g) - 1) // 2 for g in twins)
    return NearDuplicates(
        found.count, equal, pairs[order], values[order], found.groups(), len(head.twins), float(cosine), head.labels
    )


class _Found:
    """Pairs as they are found: all are counted and joined into groups, the first million are kept."""

    def __init__(self, n: int) -> None:
        self.count, self.held = 0, 0
        self._kept: list[np.ndarray] = [np.zeros((0, 2), np.int64)]
        self._values: list[np.ndarray] = [np.zeros(0)]
        self._parent = np.arange(n)

    def add(self, i: np.ndarray, j: np.ndarray, values: np.ndarray) -> None:
        """Distinct pairs, none of which was added before."""
        self.count += len(i)
        _join(self._parent, i, j)
        some = slice(0, max(0, HELD - self.held))
        self._kept.append(np.column_stack([np.minimum(i, j), np.maximum(i, j)])[some])
        self._values.append(values[some])
        self.held += len(self._values[-1])

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        pairs, values = np.concatenate(self._kept), np.concatenate(self._values)
        order = np.lexsort(pairs.T[::-1])
        return pairs[order], values[order]

    def groups(self) -> tuple[tuple[int, ...], ...]:
        groups: dict[int, list[int]] = {}
        for i in range(len(self._parent)):
            groups.setdefault(_root(self._parent, i), []).append(i)
        return tuple(sorted((tuple(g) for g in groups.values() if len(g) > 1), key=lambda g: (-len(g), g)))


@njit(cache=True)
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True)
def _join(parent, first, second):
    for k in range(len(first)):
        a, b = _root(parent, first[k]), _root(parent, second[k])
        if a != b:
            parent[max(a, b)] = min(a, b)


def _from_lists(head: Head, near: np.ndarray, cosines: np.ndarray | None, cosine: float, found: _Found) -> np.ndarray:
    """The pairs of labels whose lists are known to hold all of theirs; the labels whose lists may not, come back."""
    n, k = near.shape
    measure = Cosine(head)
    # A list is whole where it goes on below the threshold, by more than the float32 that made it can be wrong.
    slack = (head.shape[1] + 8) * UNIT32
    values = np.full((n, k), -2.0)
    good = (near >= 0) & (near != np.arange(n)[:, None])
    if cosines is not None:  # what is clearly below the threshold in float32 need not be looked at again
        values[good] = np.nan_to_num(np.asarray(cosines, np.float64)[good], nan=-2.0, neginf=-2.0)
        good &= values >= cosine - 2 * slack
    i, at = np.nonzero(good)
    for s, e in spans(len(i), 40_960):
        c = measure.pairs(i[s:e], near[i[s:e], at[s:e]])
        values[i[s:e], at[s:e]] = np.nan_to_num(c, nan=-2.0)
    whole = (values.min(axis=1, initial=np.inf) < cosine - slack) | (head.norms == 0) | (k >= n - 1)
    i, at = np.nonzero(values >= cosine)
    j = near[i, at]
    both = whole[i] & whole[j]
    i, j, c = i[both], j[both], values[i, at][both]
    low, high = np.minimum(i, j), np.maximum(i, j)
    _, first = np.unique(low * n + high, return_index=True)
    found.add(low[first], high[first], c[first])
    return np.flatnonzero(~whole)


def _from_all(head: Head, full: np.ndarray, cosine: float, found: _Found) -> None:
    """The pairs of the labels `full` with each other and with all others, from a look at all rows."""
    unit, measure, n = unit_rows(head.rows), Cosine(head), head.shape[0]
    asked = np.zeros(n, bool)
    asked[full] = True
    zero = head.norms == 0
    slack = (head.shape[1] + 8) * UNIT32
    for s, e in spans(len(full), ROWS):
        mine = full[s:e]
        for a, b in spans(n, RIVALS):
            scores = unit[mine] @ unit[a:b].T
            i, j = np.nonzero(scores >= cosine - slack)
            c = scores[i, j].astype(np.float64)
            i, j = mine[i], j + a
            once = ((j > i) | ~asked[j]) & (i != j) & ~zero[j]  # a pair of two of these is met twice
            i, j, c = i[once], j[once], c[once]
            near = np.flatnonzero(c < cosine + slack)
            c[near] = measure.pairs(i[near], j[near]) if len(near) else 0.0
            high = c >= cosine
            found.add(i[high], j[high], np.minimum(c[high], 1.0))
