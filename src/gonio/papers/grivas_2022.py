"""Grivas, Bogoychev & Lopez 2022: labels that can never win."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.ask.wins import can_win
from gonio.core.head import Head
from gonio.listing.counts import count_rankings
from gonio.listing.ranking_list import rankings
from gonio.papers.comparison import Picture, Reproduction, Row, alone, holds, same
from gonio.papers.real import g2pm_head
from gonio.remedies.prevention import unit_rows, voronoi_bias

NO_BIAS = {
    3: [2, 6],
    4: [2, 12, 24],
    5: [2, 20, 72, 120],
    6: [2, 30, 172, 480, 720],
    7: [2, 42, 352, 1512, 3600, 5040],
    8: [2, 56, 646, 3976, 14184, 30240, 40320],
    10: [2, 90, 1742, 18990, 128288, 557640, 1575648, 2903040, 3628800],
}
BIAS = {
    3: [4, 6],
    4: [7, 18, 24],
    5: [11, 46, 96, 120],
    6: [16, 101, 326, 600, 720],
    7: [22, 197, 932, 2556, 4320, 5040],
}


def unable(n: int, d: int, seed: int) -> int:
    """How many of n random labels can never win."""
    return len(can_win(Head(np.random.default_rng(seed).normal(size=(n, d)), link="softmax")).never)


def reproduce() -> Reproduction:
    """Random heads by dimension, prevention, the tables of region counts, the search on a real head."""
    return Reproduction(
        "grivas-2022",
        "Grivas, Bogoychev & Lopez 2022, Low-rank softmax can have unargmaxable classes in theory but "
        "rarely in practice",
        tuple(_all()),
        (
            Picture(
                "never-wins-by-dimension",
                "Of 60 random labels, how many can never win (mean of five heads).",
                _draw,
                (7, 4),
            ),
        ),
        "gonio can-win MODEL --proof FILE, for each of the paper's models",
    )


def _all() -> list[Row]:
    where = {"function": "gonio.ask.wins.can_win", "test": "tests/ask/test_wins.py"}
    by_width = {d: [unable(60, d, s) for s in range(5)] for d in (2, 3, 5, 8)}
    out: list[Row] = [
        alone(
            f"Random head of 60 labels, width {d}: labels that never win, in five draws",
            v,
            why="the paper prints no counts for random heads; the fewer dimensions, the more such labels",
            **where,
        )
        for d, v in by_width.items()
    ]
    head = Head(np.random.default_rng(0).normal(size=(60, 2)), link="softmax")
    for make, name in ((unit_rows, "unit rows"), (voronoi_bias, "the bias -|w|^2/2")):
        out.append(
            holds(
                f"Prevention by {name}: every label can win",
                not len(can_win(make(head)).never),
                f"{len(can_win(make(head)).never)} of 60 labels never win, {len(can_win(head).never)} before",
                how="a random head of width 2",
                function=f"gonio.remedies.prevention.{make.__name__}",
                test="tests/remedies/test_prevention.py",
            )
        )
    for bias, table in ((False, NO_BIAS), (True, BIAS)):
        ours = {n: [count_rankings(n, d, bias=bias) for d in range(1, n)] for n in table}
        out.append(
            same(
                f"Table of possible rankings, {'with' if bias else 'without'} bias",
                table,
                ours,
                function="gonio.listing.counts.count_rankings",
                test="tests/listing/test_listing.py",
            )
        )
    rng = np.random.default_rng(1)
    listed = {
        (n, d): rankings(Head(rng.normal(size=(n, d)), link="softmax")).count for n, d in ((5, 2), (6, 3), (7, 4))
    }
    out.append(
        same(
            "The same by listing every ranking: (5, 2), (6, 3), (7, 4)",
            [20, 172, 1512],
            list(listed.values()),
            function="gonio.listing.ranking_list.rankings",
            test="tests/listing/test_listing.py",
        )
    )
    real = g2pm_head()
    if real is not None:
        out.append(
            alone(
                "Real models with labels that never win",
                f"g2pM: {len(can_win(real.replace(inputs=None)).never)} of {real.shape[0]}",
                why="the paper has 13 of 150 public models, which are behind a hub; this one comes inside a package",
                **where,
            )
        )
    return out


def _draw(fig: Any) -> None:
    ax = fig.subplots()
    widths = (2, 3, 4, 5, 6, 8, 10)
    ax.plot(widths, [np.mean([unable(60, d, s) for s in range(5)]) for d in widths], "o-")
    ax.set_xlabel("width")
    ax.set_ylabel("labels that never win, of 60")
