"""Source: where a head came from, and how each part of it was decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Source:
    """Where a head came from, and in words how each part of it was decided."""

    place: str
    format: str
    bytes_read: int = 0
    decided: Mapping[str, str] = field(default_factory=dict)
    assumed: frozenset[str] = frozenset()
    padded: tuple[int, ...] = ()
    tensors: Mapping[str, str] = field(default_factory=dict)  # part of the head -> tensor it was read from
    file: str = ""  # the file that holds the rows
    turned: bool = False  # the table is stored (dim, labels)
    tied: bool = False  # the model reads the same table as its input embeddings
    factor: float = 1.0  # rows are read times this
    fed_by: tuple[str, int] | None = None  # in a graph: the tensor that the rows multiply, and the axis of its features
    typed: str = ""  # how a command line names this model, options included; empty where none did

    def __post_init__(self) -> None:
        object.__setattr__(self, "decided", MappingProxyType(dict(self.decided)))
        object.__setattr__(self, "tensors", MappingProxyType(dict(self.tensors)))

    def __reduce__(self):  # a read-only view of a dict cannot be pickled
        return Source, tuple(dict(v) if isinstance(v, Mapping) else v for v in vars(self).values())
