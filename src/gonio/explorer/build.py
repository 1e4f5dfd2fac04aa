"""The interactive page: one HTML file, no server, in which cosines run through every value and no prediction moves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.atomic_write import whole_text
from gonio.core.directions import unit
from gonio.core.errors import GonioError
from gonio.core.head import Head, Label
from gonio.core.version import __version__
from gonio.explorer.presets import presets
from gonio.findings.finding import short

SHOWN = 60  # labels of a real head that are drawn


def page(head: Head | None = None, labels: Sequence[Label] | None = None, *, title: str | None = None) -> str:
    """The page as text: the papers' figures, and first a slice of a head where one is given."""
    shown = presets()
    if head is not None:
        shown.insert(0, plane(head, labels))
    parts = {
        "title": title or "What a cosine of label vectors cannot tell",
        "css": _text("page.css"),
        "js": _text("page.js"),
        "data": _safe(json.dumps({"presets": shown})),
        "version": __version__,
    }
    out = _text("page.html")
    for name, value in parts.items():
        out = out.replace("{{ " + name + " }}", value if name in ("css", "js", "data") else _escaped(value))
    return out


def plane(head: Head, labels: Sequence[Label] | None = None) -> dict[str, Any]:
    """A head seen in the plane of inputs through three of its labels.

    With Q an orthonormal basis of the differences of the three rows, inputs x = Q u have the scores (W Q) u + b: a head
    of two dimensions with the same gauge. Only labels that can win somewhere in the plane are kept, and the three.
    """
    head.must_score("explore")
    if head.link == "cosine":
        raise GonioError(
            "explore: the link is cosine, whose rows are compared with each other; there are no inputs to draw."
        )
    if head.shape[0] < 3 or head.shape[1] < 2:
        raise GonioError(f"explore: the head has shape {head.shape}; three labels of width two or more make a plane.")
    three = _three(head, labels)
    rows = head.rows[np.array(three)].astype(np.float64)
    Q, s, _ = np.linalg.svd((rows[1:] - rows[0]).T, full_matrices=False)
    if not s[1] > 1e-12 * s[0]:
        names = ", ".join(short(head.labels[i]) for i in three)
        raise GonioError(f"explore: the rows of {names} lie on one line and span no plane; choose others.")
    flat = np.concatenate([block.astype(np.float64) @ Q for _, block in head.blocks()])
    centre = _centre(head, three)
    bias = None if head.bias is None else head.bias.astype(np.float64)
    if centre is not None:
        there = np.concatenate([block.astype(np.float64) @ centre for _, block in head.blocks()])
        bias = there if bias is None else bias + there
    reach = _reach(flat, bias, three)
    kept = _kept(flat, bias, reach, three)
    names = [head.labels[i] if len(head.labels[i]) <= LONG else head.labels[i][: LONG - 1] + "…" for i in kept]
    where = "about an input at which these three are the top" if centre is not None else "through 0"
    story = (
        f"{head.shape[0]:,} labels of width {head.shape[1]}, in the plane of inputs spanned by {short(names[0])}, "
        f"{short(names[1])} and {short(names[2])}, {where}. The {len(kept)} labels drawn are these and those that win "
        "somewhere in it; probabilities are among these. Drag the vectors."
    )
    if head.link == "dot":
        story += " The model ranks by score; a softmax of the scores is shown, whose order is the same."
    rest = head.rows[np.array(kept)].astype(np.float64)
    rest = rest - (rest @ Q) @ Q.T
    return {
        "name": "this model",
        "W": flat[kept].tolist(),
        "outside": (rest @ rest.T).tolist(),  # inner products of what lies outside the plane: for whole cosines
        "softcap": head.softcap,
        "ranks": head.link == "dot",
        "bias": None if bias is None else bias[kept].tolist(),
        "labels": names,
        "pair": [0, 1],
        "reach": reach,
        "story": story,
        "stretch": 0,
        "slice": True,
        "link": "sigmoid" if head.link == "sigmoid" else "softmax",
    }


def _centre(head: Head, three: list[int]) -> np.ndarray | None:
    """An input at which the three labels are the top; None where there is none, or for sets instead of winners."""
    from gonio.ask.questions import can_top
    from gonio.proofs.comparisons import Possible

    if head.link == "sigmoid":
        return None
    answer = can_top(head, three)
    if not isinstance(answer.certificate, Possible):
        return None
    x = answer.certificate.x.astype(np.float64)
    # Without a bias a shorter input ranks alike: one at which the three lead by about 2 shows the probabilities best.
    return x * min(1.0, 2 / answer.margin) if head.bias is None else x


def _reach(flat: np.ndarray, bias: np.ndarray | None, three: list[int]) -> float:
    """How far from its middle the picture goes: until some fifteen other labels have overtaken the three."""
    spread = float(np.abs(flat - flat.mean(axis=0)).max()) or 1.0
    if bias is None:
        return 6 / spread
    lead = bias[three].min() - np.delete(bias, three)
    off = np.linalg.norm(np.delete(flat, three, axis=0) - flat[three].mean(axis=0), axis=1)
    ahead = np.maximum(lead, 0) / np.maximum(off, 1e-12 * spread)
    if not len(ahead):
        return 6 / spread
    return max(1.5 * float(np.partition(ahead, min(15, len(ahead) - 1))[min(15, len(ahead) - 1)]), 1 / spread)


def _three(head: Head, labels: Any) -> list[int]:
    if labels is not None:
        out = [head.index(x) for x in labels]
        if len(out) != 3 or len(set(out)) != 3:
            raise GonioError(f"explore: {len(out)} labels were named; a plane needs three different ones.")
        return out
    # The two most alike of the longest rows, and the one farthest from them.
    long = np.argsort(-head.norms, kind="stable")[:200]
    U = head.rows[long].astype(np.float64)
    U = unit(U)
    C = U @ U.T
    np.fill_diagonal(C, -2)
    C[np.abs(C) > 1 - 1e-9] = -2
    a, b = np.unravel_index(int(np.argmax(C)), C.shape)
    rest = C[a] + C[b]
    rest[[a, b]] = np.inf
    return [int(long[a]), int(long[b]), int(long[int(np.argmin(rest))])]


def _kept(flat: np.ndarray, bias: np.ndarray | None, reach: float, three: list[int]) -> list[int]:
    """The three labels, and those that win at one of the inputs of a fine grid or far out in some direction."""
    t = np.linspace(0, 2 * np.pi, 721)[:-1]
    far = np.column_stack([np.cos(t), np.sin(t)])
    side = np.linspace(-reach, reach, 61)
    near = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    points = near if bias is not None else far
    count = np.zeros(len(flat), np.int64)
    for start in range(0, len(points), 256):
        s = points[start : start + 256] @ flat.T
        np.add.at(count, np.argmax(s if bias is None else s + bias, axis=1), 1)
    order = [int(i) for i in np.argsort(-count, kind="stable")[:SHOWN] if count[i] and i not in three]
    return [*three, *order][:SHOWN]


LONG = 80  # characters of a label's name on the page


def write(path: str | Path, text: str) -> Path:
    """Write a page into place, whole or not at all."""
    return whole_text(path, text, "explore")


def _text(name: str) -> str:
    return (files("gonio.explorer") / name).read_text(encoding="utf-8")


def _safe(data: str) -> str:
    """JSON inside a script element: nothing in a label can end it."""
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _escaped(text: str) -> str:
    from html import escape

    return escape(text)
