"""A head in the making: what a loader has read, and how it decided each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gonio.core import inputs as _inputs
from gonio.core.errors import LoadError
from gonio.core.head import Head, Link, Trained
from gonio.core.row_table import RowTable
from gonio.core.source import Source


@dataclass
class Draft:
    """What a loader found. `decided` says in words how each part was decided; `assumed` names the parts guessed at."""

    place: str
    format: str
    rows: RowTable
    bias: np.ndarray | None = None
    link: Link = "unknown"
    labels: Sequence[str] | None = None
    inputs: _inputs.Inputs = field(default_factory=_inputs.AllInputs)
    trained: Trained | None = None
    softcap: float | None = None
    padded: tuple[int, ...] = ()
    bytes_read: int = 0
    decided: dict[str, str] = field(default_factory=dict)
    assumed: set[str] = field(default_factory=set)
    tensors: dict[str, str] = field(default_factory=dict)
    file: str = ""
    turned: bool = False
    tied: bool = False
    offset_in: str | None = None
    factor: float = 1.0
    fed_by: tuple[str, int] | None = None

    def decide(self, part: str, why: str, *, assumed: bool = False) -> None:
        """Note why a part is as it is, and whether that was a guess."""
        self.decided[part] = why
        (self.assumed.add if assumed else self.assumed.discard)(part)

    def suppose(self, link: Link, why: str) -> None:
        """Take a link for granted where nothing tells it; it is marked as assumed."""
        self.link = link
        self.decide("link", why, assumed=True)

    def override(self, part: str, value: Any) -> None:
        """Put what the user said in place of what the loader thought."""
        setattr(self, part, value)
        self.decide(part, "given by the caller")

    def finish(self) -> Head:
        """The head, once everything is known."""
        if "link" not in self.decided:
            nothing = "nothing says what these rows are: a head's, embeddings, or something else"
            self.decide("link", nothing if self.link == "unknown" else "given by the caller")
        if "inputs" not in self.decided:
            self.decide("inputs", "nothing in the file tells what feeds the head, so nothing is excluded", assumed=True)
        if self.labels is None and "labels" not in self.decided:
            self.decide("labels", "none found; rows go by their numbers")
        n = self.rows.shape[0]
        if n == 1 and self.link != "sigmoid":
            raise LoadError(
                f"load: the head of {self.place} has one row; two or more are needed to compare. "
                f"If it is one yes-or-no score, say link='sigmoid'; if another tensor is meant, name it with tensor=."
            )
        source = Source(
            place=self.place,
            format=self.format,
            bytes_read=self.bytes_read,
            decided=self.decided,
            assumed=frozenset(self.assumed),
            padded=self.padded,
            tensors=self.tensors,
            file=self.file,
            turned=self.turned,
            tied=self.tied,
            factor=self.factor,
            fed_by=self.fed_by,
        )
        return Head(
            self.rows,
            self.bias,
            link=self.link,
            labels=self.labels,
            inputs=self.inputs,
            trained=self.trained,
            softcap=self.softcap,
            offset_in=self.offset_in,
            source=source,
        )


Reader = Callable[..., Draft]
