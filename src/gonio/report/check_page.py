"""The check of a table of embeddings as one self-contained page."""

from __future__ import annotations

from typing import Any

from gonio.core.packed_page_data import Packed
from gonio.findings.check_run import Check
from gonio.report.causes import SURE, fine_words, how_sure, to_act_on
from gonio.report.document_table import Documents
from gonio.report.frame import packed, page, plain_json
from gonio.report.glossary import TABLE_WORDS
from gonio.report.svg_charts import distributions
from gonio.report.text import printable

SCRIPTS = ("labels.js", "threshold.js")


def check_page(c: Check) -> str:
    """The whole page."""
    causes = to_act_on(c.findings)
    told = {id(f) for x in causes for f in (x.first, *x.more)}
    curve = _curve(c)
    documents, lay = Documents(c), Packed()
    return page(
        "check.html",
        SCRIPTS,
        title=f"gonio check: {table_name(c)}",
        place=table_name(c),
        facts=table_facts(c),
        causes=causes,
        fine=fine_words(c.findings),
        curve=None if curve is None else plain_json(curve),
        drawn=None if curve is None else distributions(curve),
        steps=0 if curve is None else len(curve["at"]),
        start=0 if curve is None else _start(curve, c),
        judged=curve is not None and "relevant" in curve,
        documents=packed(documents.carried(lay), lay) if len(documents) else None,
        count=len(documents),
        total=documents.total,
        flags={k: len(v) for k, v in documents.flags.items()},
        commands=_commands(c),
        sure_={SURE[k]: [f for f in c.findings if how_sure(f) == k and id(f) not in told] for k in SURE},
        glossary=TABLE_WORDS,
    )


def table_name(c: Check) -> str:
    """The table's file, without its folders."""
    return printable(str(c.about["corpus"]).rstrip("/").rsplit("/", 1)[-1])


def table_facts(c: Check) -> str:
    """Size, queries and metric in one line."""
    n, d = c.about["shape"]
    asked = c.about["queries"]
    return f"{n:,} embeddings x {d} · {format(asked['count'], ',') if asked else 'no'} queries · by {c.about['metric']}"


def _curve(c: Check) -> dict[str, Any] | None:
    """The counts of the slider: with judgements where there are some."""
    found = [c[key].data.get("curve") for key in ("reliability", "false-alarms") if key in c]
    return next((x for x in found if x), None)


def _start(curve: dict[str, Any], c: Check) -> int:
    """Where the slider begins: the threshold in use, or the first that at most a hundredth of random pairs reaches."""
    used = c["threshold"].data["in_use"] if "threshold" in c else None
    if used is not None:
        return min(range(len(curve["at"])), key=lambda k: abs(curve["at"][k] - used))
    return next((k for k, share in enumerate(curve["random"]) if share <= 0.01), len(curve["at"]) - 1)


def _commands(c: Check) -> list[str]:
    """Commands that ask again, with the tables' own names, each once."""
    tried = (str(f.data.get("try", "")) for f in c.findings)
    return [printable(x) for x in dict.fromkeys(tried) if x.startswith(("gonio check", "gonio.check"))]
