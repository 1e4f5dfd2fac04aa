"""Findings on the terminal: what to act on first, its own width, colour for the marks alone, and a line that counts."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence

from gonio.findings.finding import Finding
from gonio.report.causes import MARKS, closing, fine_words, to_act_on
from gonio.report.text import WIDTH, printable

COLOURS = {"warning": "31", "fine": "32", "fact": "36", "convention": "36", "open": "33"}
LEGEND = "= fact   ~ convention, another value describes the same model   ! to act on   ok fine   ? open"
Paint = Callable[[str, str], str]


def width() -> int:
    """The terminal's width; 110 where there is none."""
    if not _is_terminal():
        return WIDTH
    from rich.console import Console

    return max(40, Console().width)


def painter() -> Paint:
    """Marks in colour where the terminal shows it and nobody asked it not to (NO_COLOR, a pipe, a dumb terminal)."""
    if not _is_terminal():
        return _plain
    from rich.console import Console

    console = Console()
    if console.color_system is None or console.no_color or console.is_dumb_terminal:
        return _plain
    return lambda mark, state: f"\x1b[{COLOURS[state]}m{mark}\x1b[0m"


def _is_terminal() -> bool:
    return bool(getattr(sys.stdout, "isatty", lambda: False)())


def _plain(mark: str, state: str) -> str:
    return mark


def findings_text(
    title: str, findings: Sequence[Finding], sections: Mapping[str, str], *, explain: bool = False, page: str = ""
) -> str:
    """Everything found: with `explain` also what each finding means."""
    wide, paint = width(), painter()
    lines = textwrap.wrap(printable(title), wide, subsequent_indent="  ")
    causes = to_act_on(findings)
    for c in causes:
        lines.append("")
        for k, f in enumerate((c.first, *c.more)):
            lines += _one(f, wide, paint, explain, indent="  " if k == 0 else "     ")
    if not causes:
        lines += ["", f"  {paint(MARKS['fine'], 'fine')} nothing to act on"]
    for name, words in sections.items():
        found = [f for f in findings if f.section == name and f.state != "warning" and (explain or f.state != "fine")]
        if found:
            lines += ["", words]
        for f in found:
            lines += _one(f, wide, paint, explain)
    fine = fine_words(findings)
    if fine and not explain:
        lines += ["", *textwrap.wrap(f"fine: {', '.join(fine)}", wide, subsequent_indent="      ")]
    lines += ["", *([LEGEND] if explain else []), closing(findings, page)]
    return "\n".join(lines)


def _one(f: Finding, wide: int, paint: Paint, explain: bool, indent: str = "  ") -> list[str]:
    deep = indent + "   "
    mark = MARKS[f.state]
    said = textwrap.wrap(printable(f.title), max(30, wide - len(deep)))
    out = [f"{indent}{paint(mark, f.state)}{' ' * (3 - len(mark))}{said[0]}", *(deep + x for x in said[1:])]
    if explain:
        out += textwrap.wrap(printable(f.says), wide, initial_indent=deep + "  ", subsequent_indent=deep + "  ")
        if "try" in f.data:
            out.append(f"{deep}  try: {printable(str(f.data['try']))}")
    return out
