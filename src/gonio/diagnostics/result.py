"""What every diagnosis can do: stay as it is, say itself in two lines or a paragraph, give plain values, be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from gonio.core.errors import GonioError


class Named(Protocol):
    """A row of a result that is asked for by name."""

    @property
    def name(self) -> str: ...


Row = TypeVar("Row", bound=Named)


class Result:
    """The base of the frozen results of this room: arrays are read-only, values plain on demand."""

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            _freeze(getattr(self, f.name))

    def to_dict(self) -> dict[str, Any]:
        """The result in plain values; what is undefined (NaN) is None."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name != "labels"}  # type: ignore[arg-type]

    def lines(self) -> tuple[str, str]:
        """The two lines of the repr."""
        raise NotImplementedError

    def explain(self) -> str:
        """One paragraph in plain words."""
        raise NotImplementedError

    def __repr__(self) -> str:
        first, second = self.lines()
        return f"{type(self).__name__}({first})\n  {second}"


def called(rows: Sequence[Row], name: str, who: str) -> Row:
    """The row of that name; complains with the names there are."""
    for r in rows:
        if r.name == name:
            return r
    raise GonioError(f"{who}: none is called {name!r}; there are {', '.join(r.name for r in rows)}.")


def _freeze(value: Any) -> None:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, (tuple, list)):
        for v in value:
            _freeze(v)
    elif isinstance(value, Mapping):
        for v in value.values():
            _freeze(v)


def plain(value: Any) -> Any:
    """A value as JSON can hold it.

    >>> plain({"a": np.array([1.0, np.nan])})
    {'a': [1.0, None]}
    """
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return value


def axes(ax: Any, **size: Any) -> Any:
    """The axes given, or fresh ones on a page of their own that needs no screen."""
    if ax is not None:
        return ax
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    page = Figure(figsize=(6.4, 4.2), layout="constrained", **size)
    FigureCanvasAgg(page)
    return page.subplots()


LONG = 80  # characters of a label's name in a sentence


def quoted(labels: tuple[str, ...], which: Any, most: int = 5) -> str:
    """The first few of some labels, by name."""
    names = [labels[int(i)] for i in list(which)[:most]]
    some = [repr(x if len(x) <= LONG else x[: LONG - 1] + "…") for x in names]
    more = len(which) - most
    return ", ".join(some) + (f" and {more:,} more" if more > 0 else "")
