"""What is odd about a space, as plain text for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from gonio.diagnostics.result import Result
from gonio.report.text import WIDTH, printable


def diagnoses(found: Mapping[str, Result]) -> str:
    """What `gonio diagnose` prints: for each diagnosis its numbers, then a paragraph in plain words."""
    out = []
    for name, r in found.items():
        first, second = r.lines()
        out.append(f"{name}: {printable(first)}")
        out.append(f"  {printable(second)}")
        out += textwrap.wrap(printable(r.explain()), WIDTH, initial_indent="  ", subsequent_indent="  ")
        out.append("")
    return "\n".join(out).rstrip()
