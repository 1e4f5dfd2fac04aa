"""States: embeddings that reached a head, with where each came from, so that what hangs together is drawn together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from gonio.core.head import Head

LEAST_DOCUMENTS = 10  # below so many documents there is no telling how much another text would change


@dataclass(frozen=True, eq=False, repr=False)
class States:
    """What entered a head while a model read a text. It stands wherever embeddings are asked for.

    F           one state a row, float32 or float64
    documents   the document each came from: states of one document hang together
    positions   its place in the document, in tokens
    tokens      the token read there, by its number; -1 where there is none
    head        the fingerprint of the head's rows and bias (`rows_digest`)
    about       in plain values: model, text, how the positions were chosen, how near the model's own numbers are
    """

    F: Float[np.ndarray, "points dim"]
    documents: Int[np.ndarray, " points"]
    positions: Int[np.ndarray, " points"]
    tokens: Int[np.ndarray, " points"]
    head: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "F", checks.wide(checks.matrix(self.F, "states", "F", axes=("points", "dim"))))
        for name in ("documents", "positions", "tokens"):
            a = np.array(getattr(self, name), dtype=np.int64).reshape(-1)
            if len(a) != len(self.F):
                raise GonioError(
                    f"states: {len(self.F):,} states and {len(a):,} entries of {name} were given; give one a state."
                )
            a.flags.writeable = False
            put(self, name, a)
        put(self, "about", MappingProxyType(dict(self.about)))

    def __len__(self) -> int:
        return len(self.F)

    @property
    def shape(self) -> tuple[int, int]:
        """(points, dim)."""
        return self.F.shape  # type: ignore[return-value]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.F, dtype=dtype, copy=copy)

    @property
    def difference(self) -> float | None:
        """The largest difference seen between softmax(W f + b) and the model's own probabilities."""
        return self.about.get("largest_difference")

    def __repr__(self) -> str:
        n, d = self.shape
        near = "" if self.difference is None else f"; at most {self.difference:.2g} off the model's own probabilities"
        return (
            f"States({n:,} x {d} of {len(np.unique(self.documents)):,} documents)\n"
            f"  {self.about.get('how', 'given')}{near}"
        )


def documents_of(embeddings: Any) -> Int[np.ndarray, " points"] | None:
    """The document of each state; None for embeddings of which nothing is known, which count as independent."""
    return embeddings.documents if isinstance(embeddings, States) else None


def rows_digest(head: Head) -> str:
    """A fingerprint of a head's rows and bias alone: what the user says of its link or inputs does not change it."""
    h = hashlib.sha256(json.dumps({"gonio": "rows 1", "shape": head.shape, "bias": head.bias is not None}).encode())
    if head.bias is not None:
        h.update(_bytes(head.bias))
    for _, block in head.blocks():
        h.update(_bytes(block))
    return h.hexdigest()


def _bytes(a: np.ndarray) -> bytes:
    return (np.ascontiguousarray(a, "<f8") + 0.0).tobytes()  # -0.0 becomes 0.0: one number, one text of it


def must_fit(states: States, head: Head, who: str) -> None:
    """Complain where states were captured before another head, or not before a head at all."""
    layer = states.about.get("layer", "final")
    if layer != "final":
        raise GonioError(
            f"{who}: these are states of layer {layer}, which do not enter the head; capture them with --layer final."
        )
    if states.shape[1] != head.shape[1]:
        raise GonioError(f"{who}: the states have width {states.shape[1]} and the head {head.shape[1]}; capture anew.")
    if states.head and states.head != rows_digest(head):
        raise GonioError(
            f"{who}: these states entered another head ({states.about.get('model', 'not named')}), whose rows differ "
            f"from those of this model; capture them with `gonio states` from this one."
        )
