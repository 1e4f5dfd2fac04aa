"""The check of a table of embeddings as one self-contained HTML file."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from gonio.findings.check_run import Check
from gonio.findings.finding import STATES, TABLE_SECTIONS
from gonio.report.html import WORDS, templates
from gonio.report.text import printable

FIRST = (
    ("false-alarms", "what a score means here"),
    ("hubs", "what queries find too often"),
    ("remedies", "what was measured to help"),
    ("drift", "what changed"),
)


def check_page(c: Check) -> str:
    """The whole page."""
    sections = [
        {"name": n, "title": title, "findings": c.section(n)} for n, title in TABLE_SECTIONS.items() if c.section(n)
    ]
    legend = "; ".join(f"{WORDS[k]}: {v}" for k, v in STATES.items() if k != "convention")
    page = templates().get_template("check.html")
    return page.render(
        _shared(c),
        title=f"gonio check: {_place(c)}",
        sections=sections,
        version=c.to_dict()["gonio"],
        legend=legend,
    )


def check_summary(c: Check) -> str:
    """A few lines for a notebook."""
    return templates().get_template("summary.html").render(_shared(c), place=_place(c), warnings=c.warnings)


def _place(c: Check) -> str:
    return printable(str(c.about["corpus"]))


def _shared(c: Check) -> dict[str, Any]:
    from markupsafe import Markup

    n, d = c.about["shape"]
    asked = c.about["queries"]
    css = (files("gonio.report") / "page.css").read_text(encoding="utf-8")
    return {
        "css": Markup(css),  # noqa: S704  our own file
        "lead": f"{n:,} embeddings of width {d}, {asked['count'] if asked else 'no'} queries, by {c.about['metric']}.",
        "cards": [(c[key].title, says) for key, says in FIRST if key in c],
    }
