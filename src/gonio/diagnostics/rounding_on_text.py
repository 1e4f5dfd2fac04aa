"""What rounding a head does on a text: the positions at which another label comes out on top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.ask.precision import Precision, cast
from gonio.core.head import Head
from gonio.core.states import LEAST_DOCUMENTS, documents_of
from gonio.diagnostics.labels_on_text import seen_labels
from gonio.similarity.bootstrap import mean_intervals

if TYPE_CHECKING:
    from jaxtyping import Int


@dataclass(frozen=True, eq=False, repr=False)
class CastOnText:
    """Positions whose winner a cast changes.

    changed    the positions, by their place among the states
    before, after   the winners there
    interval   of the share, by drawing documents again; None below ten documents
    """

    kind: str
    labels: tuple[str, ...]
    changed: Int[np.ndarray, " changed"]
    before: Int[np.ndarray, " changed"]
    after: Int[np.ndarray, " changed"]
    positions: int
    interval: tuple[float, float] | None

    def __post_init__(self) -> None:
        for a in (self.changed, self.before, self.after):
            a.flags.writeable = False

    @property
    def share(self) -> float:
        """The share of positions that change."""
        return len(self.changed) / self.positions

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {
            "kind": self.kind,
            "positions": self.positions,
            "changed": self.changed.tolist(),
            "share": self.share,
            "interval": None if self.interval is None else list(self.interval),
            "before": [self.labels[i] for i in self.before],
            "after": [self.labels[i] for i in self.after],
        }

    def __repr__(self) -> str:
        many = f"{len(self.changed):,} of {self.positions:,} positions"
        return f"CastOnText({self.kind})\n  another label is on top at {many}"


def cast_on_text(head: Head, kind: Precision, embeddings: Any) -> CastOnText:
    """The positions of a text at which a rounded head puts another label on top."""
    a, b = (seen_labels(h, embeddings, 1).winners for h in (head, cast(head, kind)))
    moved = a != b
    changed = np.flatnonzero(moved)
    documents = documents_of(embeddings)
    interval = None
    if documents is not None and len(np.unique(documents)) >= LEAST_DOCUMENTS:
        low, high = mean_intervals(moved[:, None].astype(np.float64), documents=documents)
        interval = (float(low[0]), float(high[0]))
    return CastOnText(kind, head.labels, changed, a[changed], b[changed], len(a), interval)
