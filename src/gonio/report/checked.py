"""The check of a table of embeddings as plain text for the terminal."""

from __future__ import annotations

from gonio.findings.check_run import Check
from gonio.findings.finding import TABLE_SECTIONS
from gonio.report.check_page import table_facts, table_name
from gonio.report.terminal import findings_text


def check(c: Check, *, explain: bool = False, page: str = "") -> str:
    """What `gonio check` prints."""
    title = f"{table_name(c)}: {table_facts(c)}"
    return findings_text(title, c.findings, TABLE_SECTIONS, explain=explain, page=page)
