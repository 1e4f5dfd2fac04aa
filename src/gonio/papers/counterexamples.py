"""Two pairs of heads that cosines or label sets cannot tell apart and rankings can (Nielsen and Grivas 2026)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gonio.core.directions import unit
from gonio.core.head import Head
from gonio.listing.label_set_list import label_sets
from gonio.listing.ranking_list import rankings


@dataclass(frozen=True, eq=False, repr=False)
class CounterExample:
    """Two heads with the same label sets, and the rankings (label indices from 0, winner first) that only one has."""

    name: str
    first: Head
    second: Head
    label_sets: int
    counts: tuple[int, int]
    first_only: np.ndarray
    second_only: np.ndarray
    largest_cosine_difference: float | None

    def __repr__(self) -> str:
        return (
            f"CounterExample({self.name}: {self.label_sets} label sets each, {self.counts[0]} and "
            f"{self.counts[1]} rankings)\n"
            f"  {len(self.first_only)} rankings only in the first, {len(self.second_only)} only in the second"
        )


def scaled_row() -> CounterExample:
    """Equal cosines, different rankings: seven labels around a circle, and the third made shorter (Fig. 3).

    Claims: NG26.T5.5
    """
    angles = np.deg2rad([0, 45, 90, 135, 180, 225, 315])
    W = 5 * np.column_stack([np.cos(angles), np.sin(angles)])
    V = W.copy()
    V[2] *= 2 / 5
    # The coordinates hold sqrt(1/2), which no float is: the parallel chords of the octagon are so up to rounding.
    A, B = unit(W), unit(V)
    off = float(np.abs(A @ A.T - B @ B.T).max())
    return _compare("Theorem 5.5", W, V, W, V, 1e-9, off)


def affine_points() -> CounterExample:
    """Equal label sets, different rankings, even among heads whose first column is constant (Fig. 4).

    The papers' coordinates times 20, so that they are whole numbers and everything is exact.

    Claims: NG26.TH.1
    """
    A = np.array([[-16, 20], [16, 20], [11, -10], [-20, -20], [20, -20]], float)
    B = np.array([[-20, 20], [20, 20], [7, -10], [-16, -20], [16, -20]], float)
    one = np.full((5, 1), 20.0)
    return _compare("Theorem H.1", np.hstack([one, A]), np.hstack([one, B]), A, B, "floats", None)


def _compare(name, first, second, rank_first, rank_second, numbers, off) -> CounterExample:
    sets = [label_sets(Head(X, link="sigmoid"), numbers=numbers) for X in (first, second)]
    assert len(sets[0].difference(sets[1])) == len(sets[1].difference(sets[0])) == 0
    heads = [Head(X, link="softmax") for X in (rank_first, rank_second)]
    ranked = [rankings(h, numbers=numbers) for h in heads]
    return CounterExample(
        name,
        heads[0],
        heads[1],
        len(sets[0]),
        (len(ranked[0]), len(ranked[1])),
        ranked[0].difference(ranked[1]),
        ranked[1].difference(ranked[0]),
        off,
    )
