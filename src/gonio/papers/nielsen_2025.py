"""Nielsen, Macocco & Baroni 2025: hubs among tokens and contexts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core.head import Head
from gonio.diagnostics.hubs import Hubness, hubness
from gonio.papers.comparison import Picture, Reproduction, Row, alone, holds
from gonio.papers.real import minilm_words
from gonio.similarity.measures import measure

WHERE = {"function": "gonio.diagnostics.hubs.hubness", "test": "tests/diagnostics"}


def gaussian(d: int, n: int = 3000, seed: int = 0) -> Hubness:
    """N_10 of standard normal points by Euclidean distance (by cosine they lie evenly on a sphere and have no hubs)."""
    head = Head(np.random.default_rng(seed).normal(size=(n, d)), link="cosine")
    return hubness(head, 10, neighbours=measure("Euclid")(head).nearest(10).near)


def reproduce() -> Reproduction:
    """Skewness of N_k on random points by dimension, and on a real embedding table; the self-neighbour of the code."""
    low, high = gaussian(3), gaussian(300)
    out: list[Row] = [
        holds(
            "Hubness grows with the dimension: skewness of N_10 for 3 and 300 dimensions",
            low.skewness < 1 < high.skewness,
            [round(float(low.skewness), 2), round(float(high.skewness), 2)],
            how="3,000 standard normal points, by Euclidean distance",
            **WHERE,
        ),
        holds(
            "Every list has k members: the mean of N_k is k = 10",
            abs(float(np.mean(high.counts)) - 10) < 1e-9,
            float(np.mean(high.counts)),
            how="so 'N_k far above the mean' is N_k far above k",
            **WHERE,
        ),
        holds(
            "With the point itself kept as its neighbour, as the published code does, nobody would be an anti-hub",
            high.antihub_rate > 0,
            f"{high.antihub_rate:.0%} are, without it",
            **WHERE,
        ),
    ]
    words = minilm_words()
    if words is not None:
        real = hubness(words)
        names = [words.labels[i] for i, _ in real.hubs[:6]]
        out.append(
            alone(
                "k-skew of token neighbourhoods (above 40 for all models)",
                f"MiniLM's input embeddings, by cosine: skewness {real.skewness:.1f}, largest hubs {names}",
                why="the paper's models are behind a hub, and it looks at neighbours of contexts by probability",
                **WHERE,
            )
        )
    out.append(
        alone(
            "Spearman of N_k and frequency in the same corpus (.69 to .79)",
            "not run",
            why="needs contexts of the paper's models",
            **WHERE,
        )
    )
    return Reproduction(
        "nielsen-2025",
        "Nielsen, Macocco & Baroni 2025, Prediction hubs are context-informed frequent tokens in LLMs",
        tuple(out),
        (Picture("skewness", "Skewness of N_10 for 3,000 standard normal points, by dimension.", _draw, (6, 3.6)),),
        "gonio diagnose MODEL --embeddings CONTEXTS.npy --frequencies COUNTS",
    )


def _draw(fig: Any) -> None:
    ax = fig.subplots()
    dims = (3, 10, 30, 100, 300)
    ax.semilogx(dims, [gaussian(d, 2000).skewness for d in dims], "o-")
    ax.set_xlabel("dimension")
    ax.set_ylabel("skewness of N_10")
