"""The neighbourhoods of a real head that the page carries: any of these labels can be searched for.

Of a label and its nearest by cosine the page carries every pair's chord  s = sqrt((1 - cos) / 2), to 16 bits: with the
lengths it gives the Gram matrix, and near 1 it keeps the digits that a cosine would lose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.packed_page_data import Packed
from gonio.core.parallel import spans
from gonio.similarity.measures import for_link, measure
from gonio.similarity.nearest import nearest_by_cosine, unit_rows

MOST = 28  # labels of one picture
NEAR = 20  # labels of a neighbourhood
CARRIED = 7000  # neighbourhoods that a page carries unless it is asked for every one: about 0.7 kB each
LONG = 80  # characters of a label's name on the page
SHADOWS, PRODUCTS = 100, 1_000_000  # states drawn in every neighbourhood; their products with rows, in all
BLOCK = 512  # neighbourhoods made at once


def places(head: Head, which: np.ndarray, m: Any = None, embeddings: np.ndarray | None = None) -> str:
    """Every label's name, and of the labels `which` the nearest by cosine with all their pairs, packed; "" if none."""
    n, d = head.shape
    live = head.norms > 0
    which = which[live[which]]
    k = min(NEAR, int(live.sum())) - 1
    if k < 2 or d < 2 or not len(which):
        return ""
    everybody = len(which) == n
    near = nearest_by_cosine(head.rows, k, None if everybody else which)[0]
    group = np.column_stack([which, near])
    lay = Packed()
    data: dict[str, Any] = {
        "names": [name_of(head, i) for i in range(n)],
        "rows": None if everybody else lay.whole(which.tolist()),
        "size": k + 1,
        "near": lay.whole(near.reshape(-1).tolist()),
        "chords": lay.raw(_planes(_chords(unit_rows(head.rows), group))),
        "alike": None if m is None else lay.raw(_shades(m, group).tobytes()),
        "lengths": lay.raw(head.norms.astype("<f4").tobytes()),
        "bias": None if head.bias is None else lay.raw(head.bias.astype("<f4").tobytes()),
        "states": None,
    }
    if embeddings is not None:
        some = embeddings[np.unique(np.linspace(0, len(embeddings) - 1, min(SHADOWS, 1 + PRODUCTS // n)).astype(int))]
        products = np.concatenate([block.astype(np.float64) @ some.T for _, block in head.blocks()])
        unit = float(np.abs(products).max()) or 1.0
        data["states"] = {"count": len(some), "unit": unit, "data": lay.raw((products / unit).astype("<f2").tobytes())}
    return lay.text(data)


def carried(head: Head, first: list[int], embeddings: np.ndarray | None, every: bool) -> np.ndarray:
    """The labels whose neighbourhoods the page carries: all, or those named, those on top somewhere, the first rows."""
    n = head.shape[0]
    if every or n <= CARRIED:
        return np.arange(n)
    wanted = list(first)
    if embeddings is not None:
        some = embeddings[np.unique(np.linspace(0, len(embeddings) - 1, 400).astype(int))]
        wanted += np.concatenate([head.logits(some[a:b]).argmax(axis=1) for a, b in spans(len(some), 64)]).tolist()
    return np.sort(np.array(list(dict.fromkeys([*wanted, *range(CARRIED)]))[:CARRIED]))


def _pairs(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of a neighbourhood: 1 0, 2 0, 2 1, 3 0, ..."""
    return np.tril_indices(size, -1)


def _chords(U: np.ndarray, group: np.ndarray) -> np.ndarray:
    """sqrt((1 - cos) / 2) of every pair of each group, in 65535ths; from differences where the cosine is near 1."""
    a, b = _pairs(group.shape[1])
    out = np.empty((len(group), len(a)), np.uint16)
    for start, stop in spans(len(group), BLOCK):
        V = U[group[start:stop]]
        cosine = (V @ V.transpose(0, 2, 1))[:, a, b].astype(np.float64)
        chord = np.sqrt(np.clip((1 - cosine) / 2, 0, 1))
        close, pair = np.nonzero(cosine > 0.999)
        for s, e in spans(len(close), 1 << 14):
            apart = V[close[s:e], a[pair[s:e]]].astype(np.float64) - V[close[s:e], b[pair[s:e]]]
            chord[close[s:e], pair[s:e]] = np.linalg.norm(apart, axis=1) / 2
        out[start:stop] = np.rint(chord * 65535)
    return out


def _planes(x: np.ndarray) -> bytes:
    """All low bytes, then all high ones: that deflates better."""
    return np.ascontiguousarray(x.reshape(-1).astype("<u2").view(np.uint8).reshape(-1, 2).T).tobytes()


def _shades(m: Any, group: np.ndarray) -> np.ndarray:
    """The measure of every pair of each group, to 1/127: a shade of a heat map; 255 where it is undefined."""
    V, zero = m.space.screen(unit=True), m.space.zero()
    a, b = _pairs(group.shape[1])
    out = np.empty((len(group), len(a)), np.uint8)
    for start, stop in spans(len(group), BLOCK):
        mine = group[start:stop]
        S = (V[mine] @ V[mine].transpose(0, 2, 1))[:, a, b]
        out[start:stop] = np.rint((np.clip(S, -1, 1) + 1) * 127)
        out[start:stop][zero[mine[:, a]] | zero[mine[:, b]]] = 255
    return out


def agreement(m: Any, which: list[int]) -> dict[str, Any]:
    """How alike some labels are predicted, by a measure; nothing where there is none."""
    if m is None:
        return {}
    n = len(which)
    C = np.nan_to_num(m.pairs(np.repeat(which, n), np.tile(which, n))).reshape(n, n)
    return {"C": C.round(6).tolist(), "alike": measure_words(m)}


def measure_words(m: Any) -> str:
    """The measure's name as a heading."""
    return f"{m.name[:1].upper()}{m.name[1:]}"


def shadows(states: int) -> str:
    """What is said of states."""
    return f"Correlations are over {states:,} states; dots are where some of them fall onto the plane."


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
