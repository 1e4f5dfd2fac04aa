"""The check of a table of embeddings as one self-contained page."""

from __future__ import annotations

from typing import Any

from gonio.core.packed_page_data import Packed
from gonio.core.readable_label import readable
from gonio.findings.check_run import Check
from gonio.report.causes import SURE, fine_words, how_sure, to_act_on
from gonio.report.frame import NAME, packed, page, plain_json
from gonio.report.glossary import TABLE_WORDS
from gonio.report.svg_charts import distributions
from gonio.report.text import printable

SCRIPTS = ("labels.js", "threshold.js")


def check_page(c: Check) -> str:
    """The whole page."""
    causes = to_act_on(c.findings)
    told = {id(f) for x in causes for f in (x.first, *x.more)}
    curve = _curve(c)
    documents = _documents(c)
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
        start=0 if curve is None else _start(curve),
        judged=curve is not None and "relevant" in curve,
        documents=None if documents is None else packed(documents, Packed()),
        count=0 if documents is None else len(documents["names"]),
        moved=_moved(c),
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


def _start(curve: dict[str, Any]) -> int:
    """Where the slider begins: the first threshold that at most one in a hundred random pairs reaches."""
    return next((k for k, share in enumerate(curve["random"]) if share <= 0.01), len(curve["at"]) - 1)


def _documents(c: Check) -> dict[str, Any] | None:
    """The documents that are in lists, busiest first, and how many of their neighbours those that were asked keep."""
    busiest = c["hubs"].data.get("busiest") if "hubs" in c else None
    if not busiest:
        return None
    names = [str(x["id"])[:NAME] for x in busiest]
    columns = [{"key": "lists", "title": "in lists", "kind": "number", "values": [x["lists"] for x in busiest]}]
    above = [i for i, x in enumerate(busiest) if x["lists"] > (c["hubs"].threshold or 0)]
    looks = {i: readable(x) for i, x in enumerate(names)}
    return {
        "titles": ["document", "rank"],
        "first": 1,
        "names": names,
        "named": True,
        "shown": {i: x for i, x in looks.items() if x != names[i]},
        "columns": columns,
        "flags": {"more than chance": above} if above else {},
        "near": None,
        "pairs": [],
        "measure": "",
    }


def _moved(c: Check) -> list[dict[str, Any]]:
    """The documents whose neighbours changed most since the old table."""
    return list(c["drift"].data.get("moved", ())) if "drift" in c else []
