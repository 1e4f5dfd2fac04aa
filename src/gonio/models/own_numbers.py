"""Whether captured states give the model's own numbers: softmax(W f + b) beside what the model itself put out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head

if TYPE_CHECKING:
    from jaxtyping import Float

CHECKED = 8  # positions of each batch that are computed again
UNITS = {"float64": 2.0**-50, "float32": 2.0**-21, "float16": 2.0**-9, "bfloat16": 2.0**-6}  # four roundings each


@dataclass
class OwnNumbers:
    """The head as it was read, held against the outputs of the model batch by batch.

    difference   the largest difference of a probability (of a score, for links without) seen so far
    scale        captured states times this are the head's inputs: some models scale what enters their head
    """

    head: Head
    kind: str  # the float type in which the model computes
    difference: float = 0.0
    scale: float | None = None
    checked: int = 0

    def check(self, f: Float[np.ndarray, "points dim"], own: Float[np.ndarray, "points labels"], where: str) -> None:
        """Compare some positions; raise where the head is not what the model computes with."""
        if not np.isfinite(own).all():
            raise GonioError(f"states: the model gives scores that are not finite ({where}); nothing can be compared.")
        if own.shape[1] != self.head.shape[0]:
            raise GonioError(
                f"states: the model puts out {own.shape[1]:,} scores and the head has {self.head.shape[0]:,} rows; "
                f"another head was read than the one that is used, so name it (--tensor)."
            )
        if self.scale is None:
            factor = self.head.source.factor if self.head.source else 1.0
            options = dict.fromkeys((1.0, 1.0 / factor))
            self.scale = min(options, key=lambda s: self._excess(f * s, own)[0])
        excess, off = self._excess(f * self.scale, own)
        self.difference = max(self.difference, off)
        self.checked += len(f)
        if not excess <= 1:
            what = "a probability" if self.head.link in ("softmax", "sigmoid") else "a score"
            raise GonioError(
                f"states: from the states that were captured the head gives {what} that is {off:.3g} off the model's "
                f"own; something stands between them (an adapter, a second projection, another scale), or another head "
                f"was read. Name the head's tensor with --tensor (head=), or export the model as it is used."
            )

    def _excess(self, f: np.ndarray, own: np.ndarray) -> tuple[float, float]:
        """(largest difference of scores over what rounding explains, largest difference of probabilities)."""
        wide = np.float64 if self.kind == "float64" else np.float32  # as the model computes: its table is not copied
        z, own = self.head.logits(f.astype(wide)).astype(np.float64), own.astype(np.float64)
        unit = UNITS.get(self.kind, UNITS["float32"])
        size = np.linalg.norm(f, axis=1)[:, None] * self.head.norms[None, :]
        both = 4e-6 if wide is np.float32 else 1e-13  # what two orders of summing may differ by
        allowed = unit * (np.abs(z) + 0.1 * size) + both * size + 1e-30
        if self.head.bias is not None:
            allowed = allowed + unit * np.abs(self.head.bias)
        gap = np.abs(z - own)
        excess = float((gap / allowed).max())
        return excess, float(np.abs(_predicted(z, self.head) - _predicted(own, self.head)).max())


def _predicted(z: np.ndarray, head: Head) -> np.ndarray:
    """What the link makes of scores."""
    if head.link == "sigmoid":
        from scipy.special import expit

        return expit(z)
    if head.link == "softmax":
        from scipy.special import softmax

        return softmax(z, axis=1)
    return z
