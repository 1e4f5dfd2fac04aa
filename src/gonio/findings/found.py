"""What an audit and a check have in common: findings by key and section, what to act on, JSON, a page, a card."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from gonio.core.atomic_write import whole_text
from gonio.core.errors import GonioError
from gonio.core.renderers import rendered
from gonio.findings.finding import Finding


class Found:
    """Findings in order of section, and what is asked of them."""

    asked_by: ClassVar[str]  # audit or check, as errors name it
    findings: tuple[Finding, ...]

    def __getitem__(self, key: str) -> Finding:
        """The first finding of that key."""
        for f in self.findings:
            if f.key == key:
                return f
        raise KeyError(key)

    def __contains__(self, key: str) -> bool:
        return any(f.key == key for f in self.findings)

    def section(self, name: str) -> tuple[Finding, ...]:
        """The findings of one section."""
        return tuple(f for f in self.findings if f.section == name)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings worth acting on."""
        return tuple(f for f in self.findings if f.state == "warning")

    def failing(self, keys: Sequence[str]) -> tuple[Finding, ...]:
        """The warnings among the named findings; "any" names all of them."""
        return tuple(f for f in self.warnings if f.key in keys or "any" in keys)

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        raise NotImplementedError

    def to_json(self, path: str | Path | None = None) -> str:
        """As JSON text, written to a file where one is named."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        if path is not None:
            whole_text(path, text + "\n", self.asked_by, lone="backslashreplace")
        return text

    def to_html(self, path: str | Path | None = None) -> str:
        """As one self-contained page, written to a file where one is named."""
        return self._written(rendered(self, "html"), path)

    def _written(self, text: str, path: str | Path | None) -> str:
        if path is not None:
            whole_text(path, text, self.asked_by)
        return text

    def _repr_html_(self) -> str:
        return rendered(self, "card")


def check_keys(who: str, keys: Sequence[str], warnings: Mapping[str, Callable[[Any], str]], s: Any) -> None:
    """Complain about a key that names no finding, or none that this subject can have: it would pass silently.

    warnings : by key, what keeps the subject from having it, in words; "" where nothing does
    """
    for key in keys:
        if key == "any":
            continue
        if key not in warnings:
            near = difflib.get_close_matches(key, warnings, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are any, {', '.join(warnings)}."
            raise GonioError(f"{who}: --fail-on names {key!r}, which is no finding; {hint}")
        why = warnings[key](s)
        if why:
            raise GonioError(f"{who}: --fail-on names {key!r}, which {why}.")


def plain(x: Any) -> Any:
    """Values that JSON can hold: no NaN, no infinity, no numpy."""
    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if hasattr(x, "item") and not isinstance(x, str):
        x = x.item()
    if isinstance(x, float) and (x != x or x in (float("inf"), float("-inf"))):
        return None
    return x
