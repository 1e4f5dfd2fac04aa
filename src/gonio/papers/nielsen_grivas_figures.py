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


FINE = 900  # points of a picture along a side
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999")  # Okabe-Ito


def _plane(ax: Any, W: Any, title: str, reach: float = 3, first: int = 0) -> None:
    """The regions of the plane, each in its label's colour and with its name."""
    from matplotlib.colors import ListedColormap

    side = np.linspace(-reach, reach, FINE)
    x = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    best = np.argmax(x @ np.array(W).T, axis=1)
    colours = ListedColormap(COLOURS[: len(W)])
    ax.imshow(
        best.reshape(FINE, FINE),
        origin="lower",
        extent=(-reach, reach, -reach, reach),
        cmap=colours,
        vmin=-0.5,
        vmax=len(W) - 0.5,
        interpolation="nearest",
        alpha=0.75,
    )
    for i in np.unique(best):
        ax.text(*x[best == i].mean(axis=0), str(i + first), ha="center", va="center", weight="bold")
    ax.set_title(title, fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])


def _arrows(ax: Any, W: Any, title: str, first: int = 0) -> None:
    W = np.array(W)
    far = 1.3 * np.abs(W).max()
    for i, w in enumerate(W):
        ax.annotate("", w, (0, 0), arrowprops={"arrowstyle": "->", "lw": 2.5, "color": COLOURS[i]})
        ax.text(*(w + 0.09 * far * w / np.linalg.norm(w)), str(i + first), ha="center", va="center", weight="bold")
    ax.set_xlim(-far, far)
    ax.set_ylim(-far, far)
    ax.axhline(0, color="0.85", lw=0.8, zorder=0)
    ax.axvline(0, color="0.85", lw=0.8, zorder=0)
    ax.set_aspect("equal")
    ax.set_title(title, fontsize=10)


def _rankings(ax: Any, W: Any, title: str, only: tuple[str, ...], first: int = 1) -> None:
    """Every line on which two labels tie, and between them the ranking, from the top; in bold those of `only`."""
    W = np.array(W)
    _plane(ax, W, title, 1.0, first)
    for text in list(ax.texts):  # here rankings name the regions
        text.remove()
    angles = []
    for a, b in combinations(range(len(W)), 2):
        d = W[a] - W[b]
        t = np.arctan2(d[0], -d[1]) % np.pi
        angles += [t, t + np.pi]
        ax.plot(*np.outer([np.cos(t), np.sin(t)], [-2, 2]), color="0.25", lw=0.8)
    edges = np.sort(np.array(angles))
    edges = edges[np.append(True, np.diff(edges) > 1e-9)]
    for k, (low, high) in enumerate(zip(edges, np.append(edges[1:], edges[0] + 2 * np.pi), strict=True)):
        t = (low + high) / 2
        x = np.array([np.cos(t), np.sin(t)])
        name = "".join(str(i + first) for i in np.argsort(-(W @ x)))
        far = (0.88, 0.62)[k % 2] if high - low < 0.35 else 0.75
        look = {"weight": "bold", "color": "#8b0000"} if name in only else {"color": "black"}
        ax.text(*(far * x), name, ha="center", va="center", fontsize=8, **look)
    ax.set_xlim(-1, 1)
    ax.set_ylim(-1, 1)


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
        _plane(ax, W, name, 6.5, 1)
        for w in W:
            ax.annotate("", w, (0, 0), arrowprops={"arrowstyle": "->", "lw": 1.5})


def figure_4(fig: Any) -> None:
    """Two point configurations with the same label sets, and every ranking that each can give."""
    axes = fig.subplots(2, 2)
    several = ((FIGURE_4_A, ("52314", "41325")), (FIGURE_4_B, ("14352", "25341")))
    for k, (W, only) in enumerate(several):
        _arrows(axes[0, k], W, f"model {k + 1}", 1)
        _rankings(axes[1, k], W, f"14 rankings; {' and '.join(only)} only here", only)
