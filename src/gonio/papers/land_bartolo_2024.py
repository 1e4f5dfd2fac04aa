"""Land & Bartolo 2024: under-trained tokens found from the rows of the head."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core.head import Head
from gonio.diagnostics.undertrained_rows import undertrained
from gonio.gauge.transforms import Translation
from gonio.papers.comparison import Picture, Reproduction, Row, alone, holds
from gonio.papers.real import minilm_words

WHERE = {"function": "gonio.diagnostics.undertrained_rows.undertrained", "test": "tests/diagnostics"}


def planted(seed: int = 0) -> tuple[Head, np.ndarray, np.ndarray]:
    """A head with rows that were never trained, some of them known to be so: (head, known, all of them)."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(1000, 32)) + 0.3
    untrained = np.arange(60)
    W[untrained] = 0.3 + 0.4 * rng.normal(size=32) + 0.05 * rng.normal(size=(60, 32))
    return Head(W, link="softmax"), untrained[:20], untrained


def moves(head: Head, unused: Any) -> dict[str, float]:
    """By how much each indicator changes when one vector is added to all rows."""
    rng = np.random.default_rng(1)
    v = rng.normal(size=head.shape[1]) * float(np.median(head.norms)) / np.sqrt(head.shape[1])
    before, after = (undertrained(h, unused).indicators for h in (head, Translation(v).apply(head)))
    return {k: float(np.abs(before[k] - after[k]).max() / max(np.abs(before[k]).max(), 1e-300)) for k in before}


def reproduce() -> Reproduction:
    """The indicators on a planted and on a real head, and which of them survive a translation."""
    head, known, untrained = planted()
    found = undertrained(head, known.tolist())
    shift = moves(head, known.tolist())
    hits = int(np.isin(untrained[20:], found.candidates).sum())
    out: list[Row] = [
        holds(
            "Planted untrained rows are among the lowest 2 %",
            hits >= 0.45 * 40,
            f"{hits} of the {len(found.candidates)} candidates' room of 20",
            **WHERE,
        ),
        holds(
            "Only the centred and l2 indicators are translation invariant",
            all(v < 1e-6 for k, v in shift.items() if k in found.invariant)
            and all(v > 1e-3 for k, v in shift.items() if k not in (*found.invariant, "bias")),
            {k: float(f"{v:.1e}") for k, v in shift.items()},
            **WHERE,
        ),
    ]
    words = minilm_words()
    if words is not None:
        real = undertrained(words)
        names = [words.labels[i] for i in real.candidates[:8]]
        out.append(
            alone(
                "Tokens verified per model (Llama-2-7b 42 of 1,908, ...)",
                f"MiniLM's input embeddings: {len(real.reference)} reserved tokens as reference, "
                f"{len(real.candidates)} candidates such as {names}",
                why="the models are behind a hub, and candidates are verified by prompting them",
                **WHERE,
            )
        )
        for name, value in moves(words, real.reference.tolist()).items():
            if name != "bias":
                out.append(
                    holds(
                        f"MiniLM, {name}: {'stays' if name in real.invariant else 'moves'} under a translation",
                        (value < 1e-4) == (name in real.invariant),
                        f"{value:.1e}",
                        **WHERE,
                    )
                )
    return Reproduction(
        "land-bartolo-2024",
        "Land & Bartolo 2024, Fishing for Magikarp: automatically detecting under-trained tokens",
        tuple(out),
        (
            Picture(
                "indicators",
                "Every indicator before and after one vector is added to all rows: points off the "
                "diagonal are convention.",
                lambda fig: _draw(fig, head, known),
                (10, 3.2),
            ),
        ),
        "gonio diagnose MODEL",
    )


def _draw(fig: Any, head: Head, known: np.ndarray) -> None:
    v = np.random.default_rng(1).normal(size=head.shape[1])
    before, after = (undertrained(h, known.tolist()).indicators for h in (head, Translation(v).apply(head)))
    names = [k for k in before if k not in ("bias", "norm")]
    for ax, name in zip(fig.subplots(1, len(names)), names, strict=True):
        ax.scatter(before[name], after[name], s=4, linewidths=0)
        ax.set_title(name, fontsize=8)
        ax.set_xlabel("before")
    fig.axes[0].set_ylabel("after")
