"""The audit as one self-contained page: what to act on, every label, the evidence, how sure it is."""

from __future__ import annotations

from typing import Any

from gonio.core.head import Head
from gonio.core.packed_page_data import Packed
from gonio.core.readable_label import readable
from gonio.findings.audit_run import Audit
from gonio.findings.embedded_rows import embedded_rows
from gonio.findings.finding import Finding, counted
from gonio.findings.label_table import LabelTable
from gonio.findings.subject import is_factor_model, word_of
from gonio.findings.verdict import verdict_of
from gonio.gauge.group import SCORES
from gonio.report.causes import SURE, fine_words, how_sure, to_act_on
from gonio.report.frame import NAME, packed, page
from gonio.report.glossary import glossary
from gonio.report.svg_charts import charts
from gonio.report.text import printable

SCRIPTS = ("labels.js", "pair.js")
# The columns of the table: title and kind.
COLUMNS = {
    "can_win": ("can be on top", "word"),
    "can_be_first": ("can be first", "word"),
    "can_be": ("can be", "word"),
    "margin": ("margin", "number"),
    "length": ("length", "number"),
    "in_lists": ("in lists", "number"),
    "on_top": ("seen on top", "number"),
    "shown_to_users": ("shown to users", "number"),
    "nearest": ("nearest by cosine", "label"),
    "cosine": ("cosine", "number"),
    "nearest_by_measure": ("nearest that means it", "label"),
    "value": ("", "number"),  # the measure's name
}
FIRST_NEAR = {"nearest": "index", "cosine": "cosine"}  # columns that the first stored neighbours fill
IN_GLOSSARY = ("single-cosine",)  # true of every softmax and every sigmoid head: the glossary says it
ANSWERS = ("similar-items", "similarity")  # what to do with similarities: said first where nothing is wrong


def audit_page(audit: Audit) -> str:
    """The page without the rows."""
    return _page(audit, {})


def audit_page_with_rows(audit: Audit) -> str:
    """The page that carries the rows' directions, and so answers for any pair."""
    return _page(audit, embedded_rows(audit.head, None if audit.labels is None else audit.labels.by))


def _page(audit: Audit, rows: dict[str, Any]) -> str:
    h, table = audit.head, audit.labels
    causes = to_act_on(audit.findings)
    told = {id(f) for c in causes for f in (c.first, *c.more)}
    answer = next((f for key in ANSWERS for f in audit.findings if f.key == key and f.state != "warning"), None)
    return page(
        "audit.html",
        SCRIPTS,
        title=f"gonio audit: {place(audit)}",
        place=place(audit),
        facts=facts(audit),
        causes=causes,
        answer=answer,
        fine=fine_words(audit.findings),
        stopped=audit.unfinished,
        word=word_of(h),
        count=h.shape[0],
        flags={k: len(v) for k, v in table.flags.items()} if table is not None else {},
        data=None if table is None else _carried(audit, table, rows),
        pairbox=table is not None and h.link != "unknown" and h.shape[0] > 1,
        rows_carried=bool(rows),
        partly=_partly(table),
        measure="" if table is None else table.measure,
        charts=charts(audit),
        sure_={SURE[k]: _of(audit, k, told) for k in SURE},
        assumed=_assumed(audit),
        commands=_commands(audit),
        glossary=glossary(h.link, word_of(h)),
        digest=h.digest[:16],
    )


def _partly(table: LabelTable | None) -> str:
    """That the nearest by the measure was looked for of some labels only, where it was."""
    found = [] if table is None else table.columns.get("nearest_by_measure", [])
    known = sum(x is not None for x in found)
    said = f"The nearest that means it was looked for of {known:,} labels drawn at random."
    return said if 0 < known < len(found) // 2 else ""


def place(audit: Audit) -> str:
    """The file's name, or that there is none."""
    source = audit.head.source
    return printable(source.place.rstrip("/").rsplit("/", 1)[-1]) if source and source.place else "a head"


def facts(audit: Audit) -> str:
    """Link, size, inputs, and what was given, in one line."""
    h = audit.head
    assumed = h.source.assumed if h.source else frozenset()
    mark = lambda part: " (assumed)" if part in assumed else ""  # noqa: E731
    out = [f"{h.link}{mark('link')}", f"{h.shape[0]:,} {word_of(h)}s x {h.shape[1]}"]
    if is_factor_model(h):
        out.append(f"{audit.given['embeddings']:,} users")
    elif h.link in SCORES:
        out.append(f"{printable(str(h.inputs))}{mark('inputs')}")
    told = ("embeddings",) if h.inputs.points is not None else ()  # they are the inputs, said already
    out += [counted(v, k.replace("_", " ").removesuffix("s")) for k, v in audit.given.items() if v and k not in told]
    return " · ".join(out)


def _of(audit: Audit, sure: str, told: set[int]) -> list[Finding]:
    """The findings of one certainty; those on the first screen are not repeated, but for how they are proven."""
    general = IN_GLOSSARY if audit.head.link in ("softmax", "sigmoid") and audit.head.softcap is None else ()
    found = [f for f in audit.findings if how_sure(f) == sure and f.key not in general]
    return [f for f in found if id(f) not in told or f.theorem or f.verify]


def _assumed(audit: Audit) -> list[tuple[str, str]]:
    """The parts of the head that the file did not settle, with why they were taken so."""
    source = audit.head.source
    if source is None:
        return []
    decided = dict(source.decided)
    parts = sorted(p for p in source.assumed if p != "inputs" or audit.head.link in SCORES)
    return [(part, printable(str(decided.get(part, "")))) for part in parts]


def _commands(audit: Audit) -> list[str]:
    """Commands that check what is said, with the file's own name, each once."""
    out = [f"gonio info {audit.head.typed}"]
    out += [line for f in audit.findings if f.verify for line in f.verify.split("; ")]
    return [printable(x) for x in dict.fromkeys(out)]


def _carried(audit: Audit, table: LabelTable, rows: dict[str, Any]) -> Any:
    """What the page's script works with."""
    h, lay = audit.head, Packed()
    names = [x if len(x) <= NAME else x[: NAME - 1] + "…" for x in table.columns["label"]]
    looks = {i: readable(x) for i, x in enumerate(names)}
    data = {
        "titles": [word_of(h), "row"],
        "names": names,
        "named": h.named,
        "shown": {i: x for i, x in looks.items() if x != names[i]},
        "columns": [_column(key, table, h, lay) for key in COLUMNS if key in table.columns],
        "flags": table.flags,
        "near": _near(table, lay),
        "pairs": [dict(p) for p in table.pairs],
        "measure": table.measure,
        "reach": verdict_of(h).title,
        "command": " ".join(filter(None, ("gonio alike", h.typed, audit.states_typed))),
        **{key: {"width": x.shape[1], "data": lay.raw(x.astype("<f2").tobytes())} for key, x in rows.items()},
    }
    return packed(data, lay)


def _near(table: LabelTable, lay: Packed) -> dict[str, Any] | None:
    """The stored neighbours; the columns of the nearest are the first of these, and are not carried twice."""
    if not table.near:
        return None
    n = table.near
    value = None if n["value"] is None else lay.decimal(n["value"])
    return {"k": n["k"], "index": lay.whole(n["index"]), "cosine": lay.decimal(n["cosine"]), "value": value}


def _column(key: str, table: LabelTable, head: Head, lay: Packed) -> dict[str, Any]:
    title, kind = COLUMNS[key]
    if key == "can_win" and head.inputs.points is not None:
        title = "first for a user" if is_factor_model(head) else "on top at a given input"
    if key == "value":
        title = table.measure
    out: dict[str, Any] = {"key": key, "title": title, "kind": kind}
    if key in FIRST_NEAR:
        return {**out, "near": FIRST_NEAR[key]}
    values = table.columns[key]
    if kind == "word":
        words = sorted(set(values))
        place = {w: i for i, w in enumerate(words)}
        return {**out, "words": words, "values": lay.whole([place[v] for v in values])}
    return {**out, "values": lay.whole(values) if kind == "label" else lay.decimal(values)}
