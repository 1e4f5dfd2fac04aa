"""The rows that a page may carry so that it answers for any pair: directions alone, in half precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.directions import unit
from gonio.core.errors import GonioError
from gonio.core.head import Head

if TYPE_CHECKING:
    from jaxtyping import Float

LARGEST = 600_000  # numbers of a table that a page may carry


def embedded_rows(head: Head, measure: Any = None) -> dict[str, Float[np.ndarray, "labels some"]]:
    """The rows' directions, and those of the vectors whose cosine the measure is, in float16.

    >>> {k: v.dtype.name for k, v in embedded_rows(Head([[3.0, 4.0], [1.0, 0.0]], link="softmax")).items()}
    {'rows': 'float16'}
    """
    n, d = head.shape
    if n * d > LARGEST:
        raise GonioError(
            f"audit: --embed-rows would put {n:,} x {d} numbers into the page, and {LARGEST:,} are the most; name the "
            f"pairs you care about with --pairs FILE."
        )
    out = {"rows": unit(head.W.astype(np.float64)).astype(np.float16)}
    space = getattr(measure, "space", None)
    if space is not None and measure.name != "cosine" and measure.name.endswith(("cosine", "correlation")):
        out["meant"] = unit(np.asarray(space[np.arange(n)], np.float64)).astype(np.float16)
    return out
