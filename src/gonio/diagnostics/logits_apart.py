"""How two models differ, label by label, in what they predict at the same positions of the same text.

    D_i(x) = centred logit of label i in the one - that in the other        centred: less the mean over labels (softmax)

    largest  max_x |D_i(x)|          rms  root of mean_x D_i(x)^2

Rows may differ by any change of convention and D stays; a distance of rows would not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.states import States

if TYPE_CHECKING:
    from jaxtyping import Float

ROWS = 128


@dataclass(frozen=True, eq=False, repr=False)
class LogitDifferences:
    """Per label, how far two models' (centred) logits are apart over some positions.

    size     root mean square of the first model's own (centred) logits: what the differences are to be seen against
    changed  share of positions at which another label is on top
    """

    labels: tuple[str, ...]
    largest: Float[np.ndarray, " labels"]
    rms: Float[np.ndarray, " labels"]
    size: float
    changed: float
    positions: int
    centred: bool

    def __post_init__(self) -> None:
        self.largest.flags.writeable = self.rms.flags.writeable = False

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {
            "positions": self.positions,
            "centred": self.centred,
            "size_of_logits": self.size,
            "top_changed": self.changed,
            "largest": self.largest.tolist(),
            "rms": self.rms.tolist(),
        }

    def columns(self) -> dict[str, list[Any]]:
        """One row a label."""
        return {"label": list(self.labels), "largest": self.largest.tolist(), "rms": self.rms.tolist()}

    def __repr__(self) -> str:
        return (
            f"LogitDifferences({len(self.labels):,} labels at {self.positions:,} positions)\n"
            f"  largest {self.largest.max():.3g}, logits of size {self.size:.3g}; top changed at {self.changed:.1%}"
        )


def logit_differences(a: Head, F_a: Any, b: Head, F_b: Any) -> LogitDifferences:
    """How far the logits of two heads are apart at the same positions; States must come from the same tokens."""
    if a.shape[0] != b.shape[0]:
        raise GonioError(f"compare: the models have {a.shape[0]:,} and {b.shape[0]:,} labels; as many are needed.")
    if a.link != b.link:
        raise GonioError(f"compare: the links are {a.link} and {b.link}; they must be one.")
    if isinstance(F_a, States) and isinstance(F_b, States):
        for name in ("documents", "positions", "tokens"):
            if not np.array_equal(getattr(F_a, name), getattr(F_b, name)):
                raise GonioError(
                    "compare: the two models did not read the same tokens at the same places; they need one tokenizer."
                )
    x, y = np.asarray(F_a), np.asarray(F_b)
    if len(x) != len(y):
        raise GonioError(f"compare: {len(x):,} and {len(y):,} states were given; the same positions are needed.")
    n = a.shape[0]
    centred = a.link == "softmax" and a.softcap is None and b.softcap is None
    largest, squares, own, changed = np.zeros(n), np.zeros(n), 0.0, 0
    for s in range(0, len(x), ROWS):
        p, q = (h.logits(F[s : s + ROWS]) for h, F in ((a, x), (b, y)))
        changed += int((p.argmax(axis=1) != q.argmax(axis=1)).sum())
        if centred:
            p, q = (z - z.mean(axis=1, keepdims=True) for z in (p, q))
        gap = (p - q).astype(np.float64)
        np.maximum(largest, np.abs(gap).max(axis=0), out=largest)
        squares += (gap**2).sum(axis=0)
        own += float((p.astype(np.float64) ** 2).sum())
    return LogitDifferences(
        a.labels,
        largest,
        np.sqrt(squares / len(x)),
        float(np.sqrt(own / (len(x) * n))),
        changed / len(x),
        len(x),
        centred,
    )
