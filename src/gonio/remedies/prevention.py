"""Two ways to make a head in which every label can win, over all inputs (Grivas et al. 2022).

Both have the same witness, x = w_i: with unit rows  w_i.w_i = 1 > w_i.w_j,  and with the Voronoi bias
score_i - score_j = |w_i - w_j|^2 / 2 > 0.
"""

from __future__ import annotations

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.row_table import groups_of_equal
from gonio.core.source import Source


def unit_rows(head: Head) -> Head:
    """w_i -> w_i / |w_i|, without bias: labels of distinct direction can all win, each at x = w_i.

    Over all inputs only; the note in `source.decided["can win"]` of the result says whether that covers the head's.
    For x >= 0 it promises nothing: of 60 random rows in few dimensions most still cannot win. In floats the lengths
    are 1 up to rounding; rows closer in angle than that can still lose to each other.
    """
    if len(head.zero_rows):
        raise GonioError(f"unit_rows: row {head.zero_rows[0]} is zero and has no direction; drop such rows first.")
    W = np.empty(head.shape)
    for start, block in head.blocks():
        top = np.abs(block).max(axis=1, keepdims=True).astype(np.float64)  # squares of huge or tiny rows would not fit
        u = block.astype(np.float64) / top
        W[start : start + len(block)] = u / np.sqrt((u * u).sum(axis=1, keepdims=True))
    link = "dot" if head.link == "cosine" else head.link
    return _told(head.replace(W=W, bias=None, link=link, source=None), "unit_rows")


def voronoi_bias(head: Head) -> Head:
    """b_i = -|w_i|^2 / 2, so that score_i = |x|^2/2 - |x - w_i|^2/2: the label whose row is nearest to x wins.

    Distinct rows can all win, each at x = w_i, over all inputs (the note in `source.decided["can win"]` says whether
    that covers the head's). For x >= 0 it promises nothing: rows with negative
    entries are seen from the positive side only, and of 60 random ones most still cannot win. The bias is kept in
    float64: rounded further, rows that differ by less than its rounding can lose.
    """
    if head.link == "cosine":
        raise GonioError(
            "voronoi_bias: the head's link is 'cosine', which has no use for a bias; all its rows are unit rows."
        )
    bias = np.concatenate([-0.5 * (b.astype(np.float64) ** 2).sum(axis=1) for _, b in head.blocks()])
    return _told(head.replace(bias=bias, source=None), "voronoi_bias")


def _told(head: Head, maker: str) -> Head:
    """The head, with a note on which of its labels can win for certain."""
    twins = sum(len(g) for g in groups_of_equal(head.rows, head.bias))
    note = "every label can win over all inputs, at x = its own row"
    if twins:
        note += f", but for {twins} labels that share their row with another"
    if head.inputs.shape != "space":
        note += f"; the inputs of this head are narrower ({head.inputs}), for which nothing is promised: ask can_win"
    return head.replace(source=Source(f"made by {maker}", "array", decided={"can win": note}))
