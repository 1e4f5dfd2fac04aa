"""The interactive page: one HTML file, no server, in which cosines run through every value and no prediction moves."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.atomic_write import whole_text
from gonio.core.directions import unit
from gonio.core.errors import GonioError
from gonio.core.head import Head, Label
from gonio.core.packed_page_data import unpack_script
from gonio.core.self_contained_page import inline_json, policy
from gonio.core.version import __version__
from gonio.explorer.places import MOST, NEAR, agreement, carried, measure_of, measure_words, name_of, places, shadows
from gonio.explorer.steps import steps
from gonio.findings.finding import short
from gonio.similarity.nearest import nearest_by_cosine

SCRIPTS = ("geometry.js", "inputs.js", "places.js", "view.js", "controls.js")
DOTS = 400  # states that are drawn


def page(
    head: Head | None = None,
    labels: Sequence[Label] | None = None,
    *,
    embeddings: Any = None,
    every: bool = False,
    title: str | None = None,
) -> str:
    """The page as text: the paper in four steps, one of inputs, and first a head, where one is given.

    A head of up to 7,000 labels can be searched for any of them; of a larger one the page carries so many, and all
    with `every`, at about 0.7 kB a label.
    """
    css, js = _text("page.css"), unpack_script() + "".join(_text(name) for name in SCRIPTS)
    shown, searched = (None, "") if head is None else model(head, labels, embeddings, every)
    parts = {
        "title": escape(title or "Same model. Any cosine."),
        "css": css,
        "policy": escape(policy(js, css)),
        "data": inline_json({"steps": steps(), "model": shown}),
        "labels": searched,
        "version": __version__,
        "js": js,
    }
    out = _text("page.html")
    for name, value in parts.items():
        out = out.replace("{{ " + name + " }}", value)
    return out


def model(
    head: Head, labels: Sequence[Label] | None = None, embeddings: Any = None, every: bool = False
) -> tuple[dict[str, Any], str]:
    """A head as the page carries it: the plane of three labels, and the neighbourhoods that can be searched for."""
    F = None if embeddings is None else checks.embeddings(embeddings, head.shape[1], "explore").astype(np.float64)
    first = plane(head, labels, F)
    m = measure_of(head, F)
    states = 0 if F is None else len(F)
    moves = head.link == "sigmoid" or head.softcap is not None  # a vector added to all rows would change predictions
    which = carried(head, [head.index(x) for x in labels or ()], F, every)
    shown = {
        "scenes": [first],
        "link": "sigmoid" if head.link == "sigmoid" else "softmax",
        "how": "map" if moves else "add",
        "ranks": head.link == "dot",
        "stretch": None,
        "pair": [0, 1],
        "softcap": head.softcap,
        "alike": None if m is None else measure_words(m),
        "note": shadows(states) if states else "",
        "command": f"gonio explore {head.typed} --every-label",
    }
    return shown, places(head, which, m, F)


def plane(head: Head, labels: Sequence[Label] | None = None, embeddings: Any = None) -> dict[str, Any]:
    """A head seen in the plane of inputs through three of its labels.

    With Q an orthonormal basis of the differences of the three rows, inputs x = centre + Q u have the scores
    (W Q) u + W centre + b: a head of two dimensions with the same gauge. The labels that win somewhere in the plane are
    kept, and the three; the Gram matrix of their whole rows gives whole cosines.
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
    there = None
    if centre is not None:
        there = np.concatenate([block.astype(np.float64) @ centre for _, block in head.blocks()])
    bias = None if head.bias is None else head.bias.astype(np.float64)
    level = there if bias is None else bias if there is None else bias + there
    reach = _reach(flat, level, three, head.link == "sigmoid")
    kept = _with_neighbours(head, _kept(flat, level, reach, three))
    names = [name_of(head, i) for i in kept]
    where = "about an input at which they are the top" if centre is not None else "through 0"
    among = "" if head.link == "sigmoid" else "; probabilities are among these"
    story = (
        f"A plane of inputs, that of {short(names[0])}, {short(names[1])} and {short(names[2])}, {where}: "
        f"{len(kept)} of {head.shape[0]:,} labels are drawn{among}."
    )
    if head.link == "dot":
        story += " The model ranks by score; a softmax of the scores is shown, whose order is the same."
    whole = head.rows[np.array(kept)].astype(np.float64)
    dots = None
    if embeddings is not None:
        some = embeddings[np.unique(np.linspace(0, len(embeddings) - 1, DOTS).astype(int))]
        dots = ((some - (0 if centre is None else centre)) @ Q).round(6).tolist()
    return {
        "of": names[0],
        "W": flat[kept].tolist(),
        "G": (whole @ whole.T).tolist(),
        "at0": None if there is None else there[kept].tolist(),  # products with the centre of the picture
        "q0": None if centre is None else (centre @ Q).tolist(),
        "bias": None if bias is None else bias[kept].tolist(),
        "softcap": head.softcap,
        "labels": names,
        "pair": [0, 1],
        "reach": reach,
        "story": story,
        "slice": True,
        "dots": dots,
        "note": shadows(len(embeddings)) if embeddings is not None else "",
        **agreement(measure_of(head, embeddings), kept),
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


def _reach(flat: np.ndarray, bias: np.ndarray | None, three: list[int], sets: bool) -> float:
    """How far from its middle the picture goes: until some fifteen other labels have overtaken the three."""
    spread = float(np.abs(flat - flat.mean(axis=0)).max()) or 1.0
    if bias is None:
        return 6 / spread
    if sets:  # as far as the lines on which the three switch
        away = np.abs(bias[three]) / np.maximum(np.linalg.norm(flat[three], axis=1), 1e-12 * spread)
        return max(6 / spread, 1.5 * float(away.max()))
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
    order = [int(i) for i in np.argsort(-count, kind="stable")[:MOST] if count[i] and i not in three]
    return [*three, *order][:MOST]


def _with_neighbours(head: Head, kept: list[int]) -> list[int]:
    """The labels kept, filled up with the nearest of the first one by cosine."""
    k = min(NEAR, head.shape[0] - 1)
    if head.norms[kept[0]] == 0 or len(kept) >= NEAR:
        return kept
    near = nearest_by_cosine(head.rows, k, np.array(kept[:1]))[0][0].tolist()
    return [*kept, *(i for i in near if i not in kept and head.norms[i] > 0)][: max(NEAR, len(kept))]


def write(path: str | Path, text: str) -> Path:
    """Write a page into place, whole or not at all."""
    return whole_text(path, text, "explore")


def _text(name: str) -> str:
    return (files("gonio.explorer") / name).read_text(encoding="utf-8")
