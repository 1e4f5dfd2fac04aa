"""Drawings of the figures of Nielsen & Grivas 2026, from gonio's own answers."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from gonio.ask.ties import can_tie
from gonio.core.head import Head
from gonio.explorer.figure_heads import FIGURE_1, FIGURE_2_LEFT, FIGURE_2_RIGHT, FIGURE_3, FIGURE_4_A, FIGURE_4_B, moved
from gonio.gauge.reach import cosine


def ties(W: Any) -> list[tuple[int, int]]:
    """The pairs that can share the top: edges of the hull of the rows."""
    head = Head(W, link="softmax")
    pairs = list(combinations(range(len(W)), 2))
    found = can_tie(head, pairs=pairs)
    return [p for p, a in zip(pairs, found.answers, strict=True) if a == "yes"]


def _plane(ax: Any, W: Any, title: str, reach: float = 3) -> None:
    side = np.linspace(-reach, reach, 300)
    x = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    ax.imshow(
        np.argmax(x @ np.array(W).T, axis=1).reshape(300, 300),
        origin="lower",
        extent=(-reach, reach, -reach, reach),
        cmap="Set3",
        vmin=0,
        vmax=11,
        interpolation="nearest",
    )
    ax.set_title(title, fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])


def _arrows(ax: Any, W: Any, title: str, first: int = 0) -> None:
    W = np.array(W)
    for i, w in enumerate(W):
        ax.annotate("", w, (0, 0), arrowprops={"arrowstyle": "->", "lw": 2, "color": f"C{i}"})
        ax.text(*(w * 1.12), str(i + first), ha="center", va="center")
    far = 1.3 * np.abs(W).max()
    ax.set_xlim(-far, far)
    ax.set_ylim(-far, far)
    ax.axhline(0, color="0.85", lw=0.8, zorder=0)
    ax.axvline(0, color="0.85", lw=0.8, zorder=0)
    ax.set_aspect("equal")
    ax.set_title(title, fontsize=10)


def figure_1(fig: Any) -> None:
    """One model in three coordinate systems: the regions above, the rows and a cosine below."""
    axes = fig.subplots(2, 3)
    several = (FIGURE_1, moved(FIGURE_1, (-0.75, -0.75)), moved(FIGURE_1, (-1.25, -0.25)))
    for k, (W, name) in enumerate(zip(several, "bcd", strict=True)):
        _plane(axes[0, k], W, f"{name}) regions")
        c = cosine(np.array(W[0]), np.array(W[1]))
        _arrows(axes[1, k], W, f"cosine of 0 and 1: {c:.2f}")


def figure_2(fig: Any) -> None:
    """Rows as arrows, and a line between labels that can share the top."""
    for ax, W, name in zip(
        fig.subplots(1, 2), (FIGURE_2_LEFT, FIGURE_2_RIGHT), ("centred", "unit length"), strict=True
    ):
        _arrows(ax, W, name)
        for a, b in ties(W):
            ax.plot(*np.array([W[a], W[b]]).T, color="0.5", lw=1, ls="--")


def figure_3(fig: Any) -> None:
    """Equal cosines, different regions."""
    short = [FIGURE_3[k] if k != 2 else [0.0, 2.0] for k in range(7)]
    for ax, W, name in zip(
        fig.subplots(1, 2), (FIGURE_3, short), ("16 rankings", "28 rankings, label 3 never wins"), strict=True
    ):
        _plane(ax, W, name, 6.5)
        for i, w in enumerate(W):
            ax.annotate("", w, (0, 0), arrowprops={"arrowstyle": "->", "lw": 1.5})
            ax.text(*(np.array(w) * 1.15), str(i + 1), ha="center", va="center")


def figure_4(fig: Any) -> None:
    """Two point configurations with the same label sets."""
    for ax, W, name in zip(
        fig.subplots(1, 2),
        (FIGURE_4_A, FIGURE_4_B),
        ("52314 and 41325 possible", "14352 and 25341 possible"),
        strict=True,
    ):
        _arrows(ax, W, name, 1)
