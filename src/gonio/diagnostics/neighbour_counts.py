"""How often labels occur: read from an array or by name; what is absent or zero is left out, and counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.readable_label import quoted

if TYPE_CHECKING:
    from jaxtyping import Float

LEAST = 3  # with fewer known labels a correlation says nothing


def log2_frequencies(frequencies: Any, head: Head, who: str) -> Float[np.ndarray, " labels"]:
    """log2 of each label's frequency; NaN where it is absent, NaN or zero.

    `frequencies` is one number a label, or a mapping from label to number; labels that it does not name are absent.
    """
    n = head.shape[0]
    if isinstance(frequencies, Mapping):
        named = {str(k): v for k, v in frequencies.items()}
        values = np.array([_number(named.get(x), x, who) for x in head.labels])
        if not np.isfinite(values).any():
            some = ", ".join(repr(x) for x in list(named)[:3])
            raise GonioError(
                f"{who}: none of the {len(named):,} names of the frequencies ({some}) is a label of the head "
                f"({', '.join(repr(x) for x in head.labels[:3])}, ...); name them as the head does."
            )
    else:
        values = checks.array(frequencies, who, "frequencies").astype(np.float64)
        if values.ndim == 2 and 1 in values.shape:
            values = values.reshape(-1)
        if values.shape != (n,):
            raise GonioError(
                f"{who}: frequencies has shape {values.shape}; one number a label is needed, so shape ({n},), "
                f"or a mapping from label to number."
            )
    if (values < 0).any() or np.isinf(values).any():
        bad = int(np.flatnonzero((values < 0) | np.isinf(values))[0])
        raise GonioError(
            f"{who}: the frequency of {quoted(head.labels[bad])} is {values[bad]:g}; counts from 0 on are needed."
        )
    known = np.isfinite(values) & (values > 0)
    if known.sum() < LEAST:
        raise GonioError(
            f"{who}: {int(known.sum())} labels have a frequency above 0; at least {LEAST} are needed to see a trend."
        )
    out = np.full(n, np.nan)
    out[known] = np.log2(values[known])
    return out


def _number(x: Any, label: str, who: str) -> float:
    if x is None:
        return float("nan")
    try:
        return float(x)
    except (TypeError, ValueError):
        raise GonioError(f"{who}: the frequency of {quoted(label)} is {x!r}; a number is needed.") from None
