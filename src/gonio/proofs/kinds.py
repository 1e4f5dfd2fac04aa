"""The one table of certificate kinds: which classes there are, and in which arrays a proof file holds them.

A group of the file holds certificates of one class. Each of their fields is a column, an array named GROUP_FIELD:

    LABEL     one label a certificate                         int64 (k)
    NUMBER    one number a certificate                        float64 (k)
    TEXT      one text a certificate                          text (k)
    POINT32   one embedding a certificate                     float32 (k, d)
    POINT64   one embedding a certificate                     float64 (k, d)
    LABELS    some labels a certificate, one after another    int64 (sum), and GROUP_FIELD_count: int64 (k)
    NUMBERS   some numbers a certificate, one after another   float64 (sum), and GROUP_FIELD_count: int64 (k)
    SUPPORT   rivals, by their place in the supports that all groups share: GROUP_support: int64 (k)

`of_dict`, the proof file and docs/proofs.md follow this table; a contract test compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.proofs.certificate_base import Certificate
from gonio.proofs.certificates import NeverTies, NeverWins, Ties, Undecided, Wins
from gonio.proofs.comparisons import Impossible, Open, Possible


class Column(Enum):
    """What a column holds; its values are the type and the axes of its array (k certificates of width d)."""

    LABEL = "int64 (k)"
    NUMBER = "float64 (k)"
    TEXT = "text (k)"
    POINT32 = "float32 (k, d)"
    POINT64 = "float64 (k, d)"
    LABELS = "int64 (sum of the counts)"
    NUMBERS = "float64 (sum of the counts)"
    SUPPORT = "int64 (k), places among the supports"


COUNT = "int64 (k)"

# What every file holds beside its groups; the supports only where some certificate has rivals.
SHARED = (
    ("format", "text"),
    ("head", "text"),
    ("order", "uint8 (certificates)"),
    ("support_rivals_count", "int64 (supports)"),
    ("support_rivals", "int64 (sum of the counts)"),
)


@dataclass(frozen=True)
class Group:
    """Certificates of one class as a proof file holds them: a column for each of their fields."""

    name: str
    certificate: type[Certificate]
    columns: dict[str, Column]

    def array(self, field: str) -> str:
        """The name of the array that holds a field."""
        return f"{self.name}_support" if self.columns[field] is Column.SUPPORT else f"{self.name}_{field}"

    def arrays(self) -> Iterator[tuple[str, str]]:
        """The name of every array of the group, with its type and axes."""
        for field, column in self.columns.items():
            if column in (Column.LABELS, Column.NUMBERS):
                yield f"{self.name}_{field}_count", COUNT
            yield self.array(field), column.value


_MEAN = {"rivals": Column.SUPPORT, "weights": Column.NUMBERS}
_PAIR = {"a": Column.LABEL, "b": Column.LABEL}
_COMPARED = {"above": Column.LABELS, "below": Column.LABELS, "top": Column.LABELS}

# The place of a group is its number in the file's `order`: new ones go to the end.
GROUPS = (
    Group("wins32", Wins, {"label": Column.LABEL, "x": Column.POINT32, "equals": Column.LABELS}),
    Group("wins64", Wins, {"label": Column.LABEL, "x": Column.POINT64, "equals": Column.LABELS}),
    Group("never", NeverWins, {"label": Column.LABEL} | _MEAN),
    Group("ties", Ties, _PAIR | {"x": Column.POINT64, "y": Column.POINT64}),
    Group("never_ties", NeverTies, _PAIR | _MEAN | {"pair_weights": Column.NUMBERS}),
    Group("undecided", Undecided, {"label": Column.LABEL, "bound": Column.NUMBER, "why": Column.TEXT} | _MEAN),
    Group("possible", Possible, _COMPARED | {"x": Column.POINT64}),
    Group("impossible", Impossible, _COMPARED | {"weights": Column.NUMBERS}),
    Group("open", Open, _COMPARED | {"bound": Column.NUMBER, "why": Column.TEXT}),
)

KINDS: dict[str, type[Certificate]] = {g.certificate.kind: g.certificate for g in GROUPS}


def arrays() -> list[tuple[str, str]]:
    """Every array that a proof file can hold, with its type and axes."""
    return [*SHARED, *(a for g in GROUPS for a in g.arrays())]


def group_of(certificate: Certificate) -> int:
    """The number of the group that holds a certificate; a win whose x float32 holds goes to `wins32`."""
    for place, group in enumerate(GROUPS):
        if type(certificate) is group.certificate and _fits(certificate, group):
            return place
    raise GonioError(f"proof: a {type(certificate).__name__} is no certificate that a file can hold.")


def _fits(certificate: Any, group: Group) -> bool:
    narrow = group.columns.get("x") is Column.POINT32
    with np.errstate(over="ignore"):
        return not narrow or np.array_equal(certificate.x.astype(np.float32), certificate.x)


def of_dict(values: dict[str, Any]) -> Certificate:
    """The certificate that `to_dict` wrote."""
    parts = dict(values)
    kind = KINDS.get(parts.pop("kind", None))  # type: ignore[arg-type]
    try:
        assert kind is not None
        return kind(**parts)
    except (AssertionError, TypeError):
        raise GonioError(
            f"certificate: the entries {', '.join(map(str, values))} are not those of a certificate; "
            f"its kinds are {', '.join(KINDS)}."
        ) from None
