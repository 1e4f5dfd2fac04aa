"""The neighbourhoods of a real head that the page carries: any of these labels can be searched for."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.similarity.measures import for_link, measure
from gonio.similarity.nearest import nearest_by_cosine

MOST = 28  # labels of one picture
NEAR = 20  # labels of a neighbourhood
PLACES = 200  # neighbourhoods that a page carries
LONG = 80  # characters of a label's name on the page


def places(head: Head, m: Any = None, states: int = 0) -> list[dict[str, Any]]:
    """For each of up to two hundred labels, spread evenly: its nearest by cosine, in a plane through three of them.

    Inputs are those of the plane through 0; regions and probabilities are among the labels drawn.
    """
    d = head.shape[1]
    live = np.flatnonzero(head.norms > 0)
    k = min(NEAR, len(live)) - 1
    if k < 2 or d < 2:
        return []
    asked = live[np.unique(np.linspace(0, len(live) - 1, PLACES).astype(int))]
    near = nearest_by_cosine(head.rows, k, asked)[0]
    made = (_place(head, np.array([i, *row]), m, states) for i, row in zip(asked.tolist(), near, strict=True))
    return [x for x in made if x is not None]


def _place(head: Head, which: np.ndarray, m: Any, states: int) -> dict[str, Any] | None:
    rows = head.rows[which].astype(np.float64)
    Q, size, _ = np.linalg.svd((rows[[1, -1]] - rows[0]).T, full_matrices=False)
    if not size[1] > 1e-9 * size[0]:
        return None
    flat = rows @ Q
    spread = float(np.abs(flat - flat.mean(axis=0)).max()) or 1.0
    names = [name_of(head, int(i)) for i in which]
    return {
        "of": names[0],
        "W": _short(flat),
        "G": _lower(rows @ rows.T, 5),
        "bias": None if head.bias is None else _short(head.bias[which].astype(np.float64)),
        "softcap": head.softcap,
        "labels": names,
        "pair": [0, 1],
        "reach": 6 / spread,
        "story": f"{names[0]} and its {len(names) - 1} nearest labels by cosine, in a plane of inputs through 0. "
        "Regions and probabilities are among these labels.",
        "slice": True,
        **agreement(m, which.tolist(), states),
    }


def agreement(m: Any, which: list[int], states: int) -> dict[str, Any]:
    """How alike some labels are predicted, by a measure; nothing where there is none."""
    if m is None:
        return {}
    n = len(which)
    C = np.nan_to_num(m.pairs(np.repeat(which, n), np.tile(which, n))).reshape(n, n)
    over = f" over {states:,} states" if states else ""
    return {"C": _lower(C, 4), "alike": f"{m.name[:1].upper()}{m.name[1:]}{over}"}


def measure_of(head: Head, embeddings: Any = None) -> Any:
    """The measure that every equivalent model has; None where there is none, or it says nothing."""
    try:
        m = measure(for_link(head.link, embeddings=embeddings is not None))(head, embeddings)
    except GonioError:
        return None
    return None if m.empty else m


def name_of(head: Head, i: int) -> str:
    """A label's name, cut where it is long."""
    name = head.labels[i]
    return name if len(name) <= LONG else name[: LONG - 1] + "…"


def _short(x: np.ndarray, digits: int = 6) -> Any:
    """Numbers of so many digits as nested lists."""
    if x.ndim > 1:
        return [_short(r, digits) for r in x]
    return [float(f"{v:.{digits}g}") for v in x]


def _lower(x: np.ndarray, digits: int) -> Any:
    """A symmetric matrix as the rows of its lower half."""
    return [_short(r[: i + 1], digits) for i, r in enumerate(x)]
