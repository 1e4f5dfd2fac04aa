"""The audit as one self-contained HTML file: no network, dark and light, for the screen reader and the printer too.

The pages are templates (`templates/`), which escape whatever they are given; here is what they are given.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gonio.core.readable_label import readable
from gonio.findings.audit_run import Audit
from gonio.findings.finding import SECTIONS, STATES, Finding
from gonio.report.charts import charts
from gonio.report.text import printable

if TYPE_CHECKING:
    from jinja2 import Environment

WORDS = {"fact": "fact", "convention": "convention", "fine": "fine", "warning": "act on this", "open": "open"}
FIRST = (
    ("single-cosine", "what a cosine of two rows is worth here"),
    ("pair", "evidence from this model"),
    ("never-wins", "what it can never do"),
    ("similarity", "what to use instead"),
)


def page(audit: Audit) -> str:
    """The whole page."""
    from bokeh.embed import components
    from bokeh.resources import INLINE
    from markupsafe import Markup

    drawn = charts(audit)
    script, divs = components([f for _, _, f in drawn]) if drawn else ("", ())
    figures: dict[str, list[dict[str, Any]]] = {}
    for (section, caption, figure), div in zip(drawn, divs, strict=True):
        parts = {"title": str(figure.title.text), "caption": caption, "div": Markup(div)}  # noqa: S704  bokeh wrote it
        figures.setdefault(section, []).append(parts)
    sections = [
        {"name": n, "title": title, "findings": audit.section(n), "figures": figures.get(n, [])}
        for n, title in SECTIONS.items()
        if audit.section(n)
    ]
    return (
        templates()
        .get_template("page.html")
        .render(
            _shared(audit),
            title=f"gonio audit: {_place(audit)}",
            library=[Markup(js) for js in _library(INLINE)] if drawn else [],  # noqa: S704  bokeh's own
            sections=sections,
            version=audit.to_dict()["gonio"],
            digest=audit.head.digest[:16],
            legend="; ".join(f"{WORDS[k]}: {v}" for k, v in STATES.items()),
            script=Markup(script),  # noqa: S704  bokeh wrote it
        )
    )


def summary(audit: Audit) -> str:
    """A few lines for a notebook."""
    return templates().get_template("summary.html").render(_shared(audit), place=_place(audit), warnings=audit.warnings)


def _shared(audit: Audit) -> dict[str, Any]:
    """What page and summary both show."""
    from markupsafe import Markup

    found = {f.key: f for f in reversed(audit.findings)}
    css = (files("gonio.report") / "page.css").read_text(encoding="utf-8")
    return {
        "css": Markup(css),  # noqa: S704  our own file
        "lead": _lead(audit),
        "cards": [(found[key].title, says) for key, says in FIRST if key in found],
    }


@cache
def templates() -> Environment:
    """The templates of the report, which escape every value."""
    from jinja2 import ChainableUndefined, Environment, PackageLoader

    env = Environment(autoescape=True, undefined=ChainableUndefined, loader=PackageLoader("gonio.report", "templates"))
    env.filters |= {"printable": printable, "label": _label, "more": _more, "number": _number, "source": source}
    env.globals["words"] = WORDS
    return env


def _library(inline: Any) -> list[str]:
    """bokeh's own script, without widgets and tables that no chart here uses."""
    kept = [
        js
        for js, name in zip(
            inline.js_raw, inline.components_for("js") if hasattr(inline, "components_for") else [], strict=False
        )
        if name == "bokeh"
    ]
    return kept or [inline.js_raw[0]]


def _place(audit: Audit) -> str:
    source = audit.head.source
    return printable(source.place.rsplit("/", 1)[-1]) if source and source.place else "a head"


def _lead(audit: Audit) -> str:
    h = audit.head
    given = [f"{v:,} {k.replace('_', ' ')}" for k, v in audit.given.items() if v]
    extra = f", with {' and '.join(given)}" if given else ""
    stopped = " The audit was stopped early." if audit.unfinished else ""
    return f"{h.shape[0]:,} labels of width {h.shape[1]}, link {h.link}, {printable(str(h.inputs))}{extra}.{stopped}"


PAPERS = {
    "NG26": "Nielsen & Grivas 2026",
    "SEK24": "Steck, Ekanadham & Kallus 2024",
    "GRIV22": "Grivas, Bogoychev & Lopez 2022",
    "GRIV24": "Grivas, Vergari & Lopez 2024",
    "COV65": "Cover 1965",
    "COV67": "Cover 1967",
    "GONIO": "a result derived for this project",
}
KINDS = {"L": "Lemma", "T": "Theorem", "D": "Definition", "P": "Proposition", "E": "Equation"}


def source(key: str) -> str:
    """A key of the theorem register in words: NG26.T3.4 is Theorem 3.4 of Nielsen & Grivas 2026."""
    paper, _, number = key.partition(".")
    kind = KINDS.get(number[:1], "") if number[1:2].isdigit() or number[1:2] in "EH" else ""
    what = f"{kind} {number[1:]} of " if kind else ""
    return f"{what}{PAPERS.get(paper, paper)} ({key})"


def _label(name: Any) -> str:
    return (readable(str(name)) or "(empty)")[:80]


def _more(f: Finding) -> str:
    """How many labels a finding counts beyond those it names."""
    named = len(f.data["labels"])
    return f" and {f.value - named:,} more" if isinstance(f.value, int) and f.value > named else ""


def _number(x: Any) -> str:
    return f"{x:.3f}" if isinstance(x, (int, float)) and x == x else "undefined"
