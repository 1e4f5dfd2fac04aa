"""How results reach their pages without knowing them: a table of renderers, which the report fills when it is needed.

Results stand on lower floors than the pages that show them, so they cannot import these. `rendered(result, "html")`
looks the result's class up here instead; `gonio` says once, with `fill_with`, who fills the table.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it; this is imported before the command can answer signals
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Renderer = Callable[[Any], str]

_table: dict[tuple[type, str], Renderer] = {}
_fillers: list[Callable[[], None]] = []


def fill_with(filler: Callable[[], None]) -> None:
    """Call `filler`, once, before the first result is rendered."""
    _fillers.append(filler)


def register(kind: type, form: str, renderer: Renderer) -> None:
    """Show results of a class in a form ("html", "summary") with this function."""
    _table[kind, form] = renderer


def rendered(result: Any, form: str) -> str:
    """The result in a form."""
    while _fillers:
        _fillers.pop()()
    for kind in type(result).__mro__:
        if (kind, form) in _table:
            return _table[kind, form](result)
    raise KeyError(f"no renderer shows a {type(result).__name__} as {form}")
