"""The audit as one self-contained HTML file: no network, dark and light, for the screen reader and the printer too."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import Any

from gonio.findings.audit_run import Audit
from gonio.findings.finding import SECTIONS, STATES, Finding
from gonio.report.charts import charts
from gonio.report.text import printable

WORDS = {"fact": "fact", "convention": "convention", "fine": "fine", "warning": "act on this", "open": "open"}


def page(audit: Audit) -> str:
    """The whole page."""
    from bokeh.embed import components
    from bokeh.resources import INLINE

    drawn = charts(audit)
    script, divs = components([f for _, _, f in drawn]) if drawn else ("", ())
    figures: dict[str, list[str]] = {}
    for (section, caption, figure), div in zip(drawn, divs, strict=True):
        title = escape(str(figure.title.text))
        figures.setdefault(section, []).append(
            f'<figure role="group" aria-label="{title}">'
            f"<figcaption><b>{title}.</b> {escape(caption)}</figcaption>{div}</figure>"
        )
    library = "\n".join(f"<script>{js}</script>" for js in _library(INLINE)) if drawn else ""
    css = (files("gonio.report") / "page.css").read_text(encoding="utf-8")
    body = "\n".join(_section(audit, name, figures.get(name, [])) for name in SECTIONS if audit.section(name))
    links = "".join(f'<li><a href="#{n}">{escape(t)}</a></li>' for n, t in SECTIONS.items() if audit.section(n))
    title = f"gonio audit: {_place(audit)}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{css}</style>
{library}
</head>
<body>
<a class="skip" href="#findings">Skip to the findings</a>
<main>
<header>
<h1>{escape(title)}</h1>
<p class="lead">{_lead(audit)}</p>
{_first(audit)}
<nav aria-label="sections"><ul>{links}</ul></nav>
</header>
<div id="findings">
{body}
</div>
<footer>
<p>gonio {escape(audit.to_dict()["gonio"])}, head {audit.head.digest[:16]}. Colours: {_legend()}.</p>
<p>This page is one file and asks no server for anything. Proofs are checked with <code>gonio verify</code>.</p>
</footer>
</main>
{script}
</body>
</html>
"""


def summary(audit: Audit) -> str:
    """A few lines for a notebook."""
    css = (files("gonio.report") / "page.css").read_text(encoding="utf-8")
    rows = (
        "".join(f"<li>{escape(printable(f.title))}</li>" for f in audit.warnings) or "<li>Nothing worth acting on.</li>"
    )
    body = f"<h3>{escape(_place(audit))}</h3><p>{_lead(audit)}</p>{_first(audit)}<ul>{rows}</ul>"
    return f"<style>{css}</style><main>{body}</main>"


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
    return escape(
        f"{h.shape[0]:,} labels of width {h.shape[1]}, link {h.link}, {printable(str(h.inputs))}{extra}.{stopped}"
    )


def _first(audit: Audit) -> str:
    """The four things to know first."""
    found = {f.key: f for f in reversed(audit.findings)}
    cards = []
    for key, says in (
        ("single-cosine", "what a cosine of two rows is worth here"),
        ("pair", "evidence from this model"),
        ("never-wins", "what it can never do"),
        ("similarity", "what to use instead"),
    ):
        if key in found:
            cards.append(f"<div><b>{_rich(found[key].title)}</b><span>{says}</span></div>")
    return f'<div class="first">{"".join(cards)}</div>'


def _legend() -> str:
    return "; ".join(f"{WORDS[k]}: {v}" for k, v in STATES.items())


def _section(audit: Audit, name: str, figures: list[str]) -> str:
    parts = [_finding(f) for f in audit.section(name)]
    heading = f'<h2 id="{name}">{escape(SECTIONS[name])}</h2>'
    return f'<section aria-labelledby="{name}">{heading}{"".join(parts)}{"".join(figures)}</section>'


def _finding(f: Finding) -> str:
    why = []
    if f.theorem:
        why.append(f"by {escape(source(f.theorem))}")
    if f.verify:
        why.append(f"check with <code>{escape(printable(f.verify))}</code>")
    last = f'<p class="why">{"; ".join(why)}</p>' if why else ""
    return (
        f'<article class="finding {f.state}"><span class="state">{WORDS[f.state]}</span>'
        f"<h3>{_rich(f.title)}</h3><p>{_rich(f.says)}</p>{_details(f)}{last}</article>"
    )


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


def _rich(text: str) -> str:
    return escape(printable(text))


def _label(name: Any) -> str:
    shown = printable(str(name)) or "(empty)"
    return f'<span class="label">{escape(shown[:80])}</span>'


def _details(f: Finding) -> str:
    d = f.data
    out = ""
    if d.get("labels") and isinstance(d["labels"], (list, tuple)) and f.key != "pair":
        total = f.value if isinstance(f.value, int) else len(d["labels"])
        more = f" and {total - len(d['labels']):,} more" if isinstance(total, int) and total > len(d["labels"]) else ""
        out += f"<details><summary>which</summary><p>{' '.join(map(_label, d['labels']))}{more}</p></details>"
    if d.get("sets"):
        rows = "".join(f"<li>{' '.join(map(_label, s)) or _label('(no label)')}</li>" for s in d["sets"])
        out += f"<details><summary>which</summary><ul>{rows}</ul></details>"
    if d.get("cannot"):
        rows = "".join(f"<li>{_label(a)} and {_label(b)}</li>" for a, b in d["cannot"])
        out += f"<details><summary>pairs that cannot</summary><ul>{rows}</ul></details>"
    if d.get("lists"):
        rows = "".join(
            f"<tr><td>{_label(x['label'])}</td><td>{' '.join(map(_label, x['cosine']))}</td>"
            f"<td>{' '.join(map(_label, x['instead']))}</td></tr>"
            for x in d["lists"]
        )
        out += (
            '<details><summary>where the lists differ most</summary><div class="wide"><table><tr><th>label</th>'
            f"<th>nearest by cosine</th><th>nearest by the invariant similarity</th></tr>{rows}</table></div></details>"
        )
    if d.get("largest_gaps"):
        rows = "".join(
            f"<tr><td>{_label(a)} {_label(b)}</td><td>{x:.3f}</td><td>{_number(y)}</td></tr>"
            for a, b, x, y in d["largest_gaps"]
        )
        out += (
            '<details><summary>where they part most</summary><div class="wide"><table><tr><th>pair</th><th>cosine</th>'
            f"<th>invariant</th></tr>{rows}</table></div></details>"
        )
    if d.get("groups"):
        rows = "".join(f"<li>{' '.join(map(_label, g))}</li>" for g in d["groups"])
        out += f"<details><summary>groups</summary><ul>{rows}</ul></details>"
    return out


def _number(x: Any) -> str:
    return f"{x:.3f}" if isinstance(x, (int, float)) and x == x else "undefined"
