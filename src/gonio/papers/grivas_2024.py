"""Grivas, Vergari & Lopez 2024: the sigmoid bottleneck and the Fourier head."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np

from gonio.ask.questions import can_labels
from gonio.core.head import Head
from gonio.listing.label_set_list import label_sets
from gonio.papers.comparison import Picture, Reproduction, Row, alone, holds
from gonio.remedies.dft_head import dft, dft_allows


def reproduce() -> Reproduction:
    """Impossible label sets of random heads, and the head that guarantees every set of at most k labels."""
    return Reproduction(
        "grivas-2024",
        "Grivas, Vergari & Lopez 2024, Taming the sigmoid bottleneck",
        tuple(_all()),
        (
            Picture(
                "small-sets",
                "Share of the label sets of at most two labels that a random head of ten labels can output, by width.",
                _draw,
                (7, 4),
            ),
        ),
        "gonio can-label MODEL --sets TRAINING_LABELS, for each of the paper's models",
    )


def small_sets(W: np.ndarray, most: int = 2) -> tuple[int, int]:
    """How many sets of at most so many labels a head can output, and how many there are."""
    n = len(W)
    sets = [s for k in range(most + 1) for s in combinations(range(n), k)]
    found = can_labels(Head(W, link="sigmoid"), sets)
    return len(sets) - len(found.impossible), len(sets)


def _all() -> list[Row]:
    where = {"function": "gonio.remedies.dft_head.dft", "test": "tests/listing/test_reconstruct.py"}
    out = []
    for n, k, count in ((8, 1, 58), (8, 2, 198), (10, 2, 512)):
        sets = label_sets(dft(n, k)).to_array()
        everything = np.array(list(product([-1, 1], repeat=n)))
        rule = {tuple(r) for r in everything[dft_allows(everything, k)].tolist()}
        mine = {tuple(r) for r in sets.tolist()}
        out.append(
            holds(
                f"Fourier head, {n} labels, k = {k}: as many label sets as a head of its shape can have",
                len(sets) == count,
                f"{len(sets)} of {count}",
                how="every label set listed, against Cover's closed form",
                **where,
            )
        )
        out.append(
            holds(
                f"Fourier head, {n} labels, k = {k}: at most {2 * k} sign changes, and no others",
                mine == rule,
                len(rule),
                **where,
            )
        )
        small = [s for s in rule if sum(x > 0 for x in s) <= k]
        every = sum(1 for j in range(k + 1) for _ in combinations(range(n), j))
        out.append(
            holds(
                f"Fourier head, {n} labels: every set of at most {k} labels is possible",
                len(small) == every,
                f"{len(small)} of {every}",
                how="every label set listed",
                **where,
            )
        )
    yes, total = small_sets(np.random.default_rng(0).normal(size=(10, 5)))
    out.append(
        holds(
            "A random head of the same shape misses small sets",
            yes < total,
            f"{total - yes} of {total} impossible",
            how="one draw; another had 30 of 56",
            function="gonio.ask.questions.can_labels",
            test="tests/ask/test_questions.py",
        )
    )
    out.append(
        alone(
            "Impossible label sets of the paper's trained models",
            "not run",
            why="reported per model; their weights are behind a hub; the pipeline is tested on made heads",
            function="gonio.ask.questions.can_labels",
            test="tests/ask/test_questions.py",
        )
    )
    return out


def _draw(fig: Any) -> None:
    ax = fig.subplots()
    widths = (2, 3, 4, 5, 6, 7, 8)
    shares = []
    for d in widths:
        yes, total = small_sets(np.random.default_rng(d).normal(size=(10, d)))
        shares.append(yes / total)
    ax.plot(widths, shares, "o-", label="random head")
    ax.axhline(1, color="C1", ls="--", label="Fourier head, width 5")
    ax.set_xlabel("width")
    ax.set_ylabel("share possible")
    ax.legend()
