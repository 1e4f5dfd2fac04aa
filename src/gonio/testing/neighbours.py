"""Assertion that a new table of embeddings keeps the neighbours of an old one."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.readable_label import quoted
from gonio.embeddings.open_table import table_of
from gonio.embeddings.scorers import METRICS
from gonio.embeddings.table_drift import compare_tables
from gonio.testing.kept_proofs import SHOWN

ASKED = 2000  # documents that ask for their neighbours, where the caller does not say


def assert_neighbours_kept(
    new: Any,
    old: Any,
    *,
    at_least: float = 0.9,
    k: int = 10,
    metric: str = "cosine",
    sample: int = ASKED,
    **options: Any,
) -> None:
    """Fail unless documents keep, on average, this share of their k nearest neighbours from the old table to the new.

    at_least   the share, from 0 to 1; where only a sample asks, the lower end of its 95 % interval must reach it
    sample     how many documents ask; all of them where there are no more
    options    `column` and `id`, as `gonio.embeddings` takes them
    """
    __tracebackhide__ = True
    if not 0 <= at_least <= 1:
        raise GonioError(f"assert_neighbours_kept: at_least is {at_least}; a share from 0 to 1 is wanted.")
    if metric not in METRICS:
        raise GonioError(f"assert_neighbours_kept: metric is {metric!r}; there are {', '.join(METRICS)}.")
    tables = table_of(new, **options), table_of(old, **options)
    drift = compare_tables(*tables, k=k, metric=metric, sample=sample)
    kept = drift.mean_kept
    if kept.low >= at_least:
        return
    order = np.argsort(drift.kept, kind="stable")[:SHOWN]
    names = tables[0].names(drift.here[drift.asked[order]])
    moved = ", ".join(f"{quoted(n)} kept {drift.kept[i]:.2f}" for n, i in zip(names, order, strict=True))
    share = f"{kept.value:.4f}" if drift.whole else f"{kept.value:.4f} ({kept.low:.4f} to {kept.high:.4f}, estimated)"
    open_ = " More documents (sample=) would tell." if not drift.whole and kept.high >= at_least else ""
    raise AssertionError(
        f"of {drift.k} neighbours by {metric} the share {share} is kept, {at_least:g} is wanted, over "
        f"{len(drift.asked):,} of {len(drift.here):,} common documents. Moved most: {moved}.{open_}"
    )
