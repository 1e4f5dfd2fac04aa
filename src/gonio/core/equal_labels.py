"""Labels that are one candidate: their scores are equal at every input of the head.

Two labels are equal when what their rows and biases become in `inputs.reduce` is equal, in exact arithmetic:

    inputs             equal when
    all, >= 0, box, observed   rows and biases are equal
    after RMSNorm      the rows are equal where the gain is not zero, and the biases are
    after LayerNorm    (g_i - g_j) * gain is a multiple of (1, ..., 1), and (g_i - g_j).shift + b_i - b_j = 0

The last lines are what a norm cannot see: coordinates that it switches off, and the direction that it takes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.inputs import AfterLayerNorm, Inputs
from gonio.core.row_table import RowTable, groups_of_equal

if TYPE_CHECKING:
    from jaxtyping import Int

NEAR = 1e-10  # rows whose reduced forms differ by a larger share of their size are not looked at exactly


@dataclass(frozen=True, eq=False)
class Columns:
    """Some columns of the rows of another table."""

    before: RowTable
    kept: np.ndarray

    def __call__(self, stored: np.ndarray, which: Any) -> np.ndarray:
        return self.before[which][:, self.kept]


def groups_of_equal_labels(
    rows: RowTable, bias: np.ndarray | None, inputs: Inputs
) -> tuple[Int[np.ndarray, " members"], ...]:
    """The groups of two or more labels whose scores are equal at every input, each in order, by first member."""
    gain = inputs.gain_and_shift(rows.shape[1])[0]
    if not inputs.centred and not gain.all():
        kept = np.flatnonzero(gain)
        if not len(kept):  # nothing reaches the head: only the biases tell labels apart
            rows = RowTable(np.zeros((rows.shape[0], 1)))
        else:
            rows = RowTable(rows.stored, dim=len(kept), unpack=Columns(rows, kept), kind=rows.kind, derived=True)
    groups = groups_of_equal(rows, bias)
    if isinstance(inputs, AfterLayerNorm):
        groups = _joined_after_layer_norm(rows, bias, inputs, groups)
    return groups


def _joined_after_layer_norm(
    rows: RowTable, bias: np.ndarray | None, inputs: AfterLayerNorm, groups: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """The groups, joined with one another and with single labels that the LayerNorm makes equal to them."""
    members = {int(g[0]): g for g in groups}
    repeats = np.concatenate([g[1:] for g in groups]) if groups else np.zeros(0, np.int64)
    alone = np.setdiff1d(np.arange(rows.shape[0]), repeats)  # one label of each group
    joined: list[np.ndarray] = []
    for cluster in _nearly_equal(rows, inputs, alone):
        left = cluster.tolist()
        while left:
            first = left[0]
            same = [first, *(j for j in left[1:] if _equal_after_layer_norm(rows, bias, inputs, first, j))]
            left = [j for j in left if j not in same]
            if len(same) > 1:
                joined.append(np.sort(np.concatenate([members.pop(j, np.array([j])) for j in same])))
    return tuple(sorted([*members.values(), *joined], key=lambda g: int(g[0])))


def _nearly_equal(rows: RowTable, inputs: AfterLayerNorm, labels: np.ndarray) -> list[np.ndarray]:
    """Clusters of two or more labels whose reduced rows have nearly equal products with one random direction.

    A product is only a hint: equal rows have nearly equal products, and the values decide.
    """
    d = rows.shape[1]
    direction = np.random.default_rng(0xE90A1).standard_normal(d)
    direction = inputs.gain * (direction - direction.mean())
    found = np.empty(rows.shape[0])
    size = np.empty(rows.shape[0])
    for start, block in rows.blocks():
        wide = block.astype(np.float64)
        with np.errstate(all="ignore"):
            found[start : start + len(block)] = wide @ direction
            size[start : start + len(block)] = np.abs(wide) @ np.abs(direction)
    order = labels[np.argsort(found[labels], kind="stable")]
    with np.errstate(all="ignore"):  # what is too large for floats is near everything: the values decide
        close = ~(np.diff(found[order]) > NEAR * np.maximum(size[order][1:], size[order][:-1]))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], close, [False]]).astype(int)))
    return [order[a : b + 1] for a, b in edges.reshape(-1, 2)]


def _equal_after_layer_norm(rows: RowTable, bias: np.ndarray | None, inputs: AfterLayerNorm, i: int, j: int) -> bool:
    """Whether two labels have equal scores at every input after the LayerNorm, in exact arithmetic."""
    two = rows[np.array([i, j])].astype(np.float64)
    with np.errstate(all="ignore"):
        seen = (two[0] - two[1]) * inputs.gain
        if np.ptp(seen) > NEAR * (np.abs(two) * np.abs(inputs.gain)).max():
            return False
    g, h = ([Fraction(float(v)) for v in row] for row in two)
    gap = [a - b for a, b in zip(g, h, strict=True)]
    scaled = {a * Fraction(float(s)) for a, s in zip(gap, inputs.gain, strict=True)}
    if len(scaled) > 1:
        return False
    constant = sum((a * Fraction(float(s)) for a, s in zip(gap, inputs.shift, strict=True)), Fraction(0))
    if bias is not None:
        constant += Fraction(float(bias[i])) - Fraction(float(bias[j]))
    return constant == 0
