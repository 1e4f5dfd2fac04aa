"""The check of a table of embeddings as plain text for the terminal."""

from __future__ import annotations

import textwrap

from gonio.findings.check_run import Check
from gonio.findings.finding import TABLE_SECTIONS
from gonio.report.audit import MARKS, WIDTH
from gonio.report.text import printable


def check(c: Check) -> str:
    """What `gonio check` prints."""
    n, d = c.about["shape"]
    asked = c.about["queries"]
    with_ = f", {asked['count']:,} queries" if asked else ", no queries"
    lines = [f"{printable(c.about['corpus'])}: {n:,} embeddings of width {d}{with_}, by {c.about['metric']}"]
    for name, title in TABLE_SECTIONS.items():
        found = c.section(name)
        if found:
            lines += ["", title]
        for f in found:
            lines += textwrap.wrap(
                printable(f.title), WIDTH, initial_indent=f"  {MARKS[f.state]:<2} ", subsequent_indent="     "
            )
            lines += textwrap.wrap(printable(f.says), WIDTH, initial_indent="       ", subsequent_indent="       ")
            lines.append(f"       try: {printable(str(f.data['try']))}")
    lines += ["", "  = fact   ! worth acting on   ok fine   ? open"]
    return "\n".join(lines)
