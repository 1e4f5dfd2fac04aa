"""Who wins and who ties where only the given embeddings count: a look at each of them, proven whatever the rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.core.float_units import TINY, UNIT
from gonio.core.head import Head
from gonio.core.parallel import spans
from gonio.proofs.margins import SLACK, Places, beats

if TYPE_CHECKING:
    from jaxtyping import Float

POINTS = 1024
CELLS = 2_000_000  # scores that are held at a time


def most(head: Head, label: int, rivals: np.ndarray) -> float:
    """The most by which the label is above the best of its rivals, rounded up; all labels that are not its equals, if
    none are named.

    Positive where it wins at one of the embeddings, or may. Cost: embeddings x rivals x dim.
    """
    observed = head.inputs.points
    assert observed is not None
    n, d = head.shape
    js = rivals if len(rivals) else np.setdiff1d(np.arange(n), [label, *head.equals(label)])
    if not len(js):
        return np.inf
    rows, bias = _rows(head, js, label)
    out = -np.inf
    for a, b in spans(len(observed), POINTS):
        F = observed[a:b].astype(np.float64)
        with np.errstate(all="ignore"):
            value = F @ rows.T + bias  # label less rival
            bound = ((d + 8) * UNIT * (np.abs(F) @ np.abs(rows).T + np.abs(bias))) * SLACK + TINY
            upper = (value + bound).min(axis=1)
        for i in np.flatnonzero(~(upper <= 0)):
            places = Places(head.inputs, F[i : i + 1])
            near = np.flatnonzero(~(value[i] > bound[i]))
            exact = [-float(beats(head, int(js[k]), np.array([label]), places, 0)[0]) for k in near]
            upper[i] = min([float(upper[i]), *exact]) if not np.isnan(upper[i]) else min([np.inf, *exact])
        out = max(out, float(upper.max()))
    return out


def most_of_all(head: Head) -> Float[np.ndarray, " labels"]:
    """For every label a bound, from above, of the most by which it is above all that are not its equals.

    As `most` without rivals named, for all labels from one product, and without a second look where floats cannot tell
    the sign: a positive bound (or NaN) says nothing. Cost: embeddings x labels x dim.
    """
    observed = head.inputs.points
    assert observed is not None
    n, d = head.shape
    group = head.first_equals  # equals have one number
    out = np.full(n, -np.inf)
    bias = np.zeros(n) if head.bias is None else head.bias.astype(np.float64)
    with np.errstate(all="ignore"):
        for a, b in spans(len(observed), max(1, CELLS // n)):
            F = observed[a:b].astype(np.float64)
            score, size = np.empty((len(F), n)), np.empty((len(F), n))
            for start, block in head.blocks():
                rows, part = block.astype(np.float64), slice(start, start + len(block))
                score[:, part] = F @ rows.T + bias[part]
                size[:, part] = np.abs(F) @ np.abs(rows).T + np.abs(bias[part])
            wrong = ((d + 8) * UNIT * size) * SLACK + TINY
            rival = _best_of_others(score - wrong, group)
            high = score + wrong
            above = high - rival
            out = np.maximum(out, (above + 4 * UNIT * (np.abs(high) + np.abs(rival))).max(axis=0))  # keeps NaN
    return out


def _best_of_others(low: np.ndarray, group: np.ndarray) -> np.ndarray:
    """For each embedding (row) and label the largest entry of labels of another group; -inf where there is none."""
    at = np.arange(len(low))
    first = low.argmax(axis=1)
    rest = np.where(group[None, :] == group[first][:, None], -np.inf, low)
    return np.where(group[None, :] == group[first][:, None], rest.max(axis=1)[:, None], low[at, first][:, None])


def tied(head: Head, a: int, b: int, rivals: np.ndarray) -> int | None:
    """The first embedding at which the two may share the top above all rivals (all labels, if none are named)."""
    observed = head.inputs.points
    assert observed is not None
    n, d = head.shape
    js = rivals if len(rivals) else np.setdiff1d(np.arange(n), [a, b])
    rows, bias = _rows(head, np.array([b]), a)
    F = observed.astype(np.float64)
    with np.errstate(all="ignore"):
        value = F @ rows[0] + bias[0]
        bound = (d + 8) * UNIT * (np.abs(F) @ np.abs(rows[0]) + np.abs(bias[0])) * SLACK + TINY
    for i in np.flatnonzero(~(np.abs(value) > bound)):
        places = Places(head.inputs, F[i : i + 1])
        apart = beats(head, a, np.array([b]), places, 0)[0] > 0 or beats(head, b, np.array([a]), places, 0)[0] > 0
        if not apart and not any(beats(head, int(j), np.array([a]), places, 0)[0] >= 0 for j in js):
            return int(i)
    return None


def _rows(head: Head, js: np.ndarray, label: int) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(over="ignore"):  # an infinite difference has an infinite bound: it is looked at exactly
        rows = head.rows[[label]].astype(np.float64) - head.rows[js].astype(np.float64)
        bias = np.zeros(len(js)) if head.bias is None else head.bias[label].astype(np.float64) - head.bias[js]
    return rows, bias
