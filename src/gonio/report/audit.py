"""The audit and single verdicts as plain text for the terminal."""

from __future__ import annotations

import textwrap

from gonio.audit.alike import Alike
from gonio.audit.finding import SECTIONS
from gonio.audit.run import Audit
from gonio.report.text import printable

MARKS = {"fact": "=", "convention": "~", "fine": "ok", "warning": "!", "open": "?"}
WIDTH = 110


def audit(a: Audit) -> str:
    """What `gonio audit` prints."""
    h = a.head
    place = printable(h.source.place) if h.source and h.source.place else "a head"
    lines = [f"{place}: {h.shape[0]:,} labels of width {h.shape[1]}, link {h.link}"]
    for name, title in SECTIONS.items():
        found = a.section(name)
        if not found:
            continue
        lines += ["", title]
        for f in found:
            mark = MARKS[f.state]
            lines += textwrap.wrap(printable(f.title), WIDTH, initial_indent=f"  {mark:<2} ", subsequent_indent="     ")
            lines += textwrap.wrap(printable(f.says), WIDTH, initial_indent="       ", subsequent_indent="       ")
    lines += [
        "",
        "  = fact   ~ convention, another value describes the same model   ! worth acting on   ok fine   ? open",
    ]
    return "\n".join(lines)


def alike(r: Alike) -> str:
    """What `gonio alike` prints: one question, one screen."""
    a, b = (f"'{printable(r.head.labels[i])}'" for i in r.labels)
    name, value, interval = r.instead
    lines = [f"How alike are {a} and {b} to this model?", f"  verdict    {r.verdict}"]
    lines += textwrap.wrap(r.why, WIDTH, initial_indent="  because    ", subsequent_indent="             ")
    low, high = r.reachable
    lines.append(f"  cosine     {r.cosine:.4f} as stored; equivalent models have any from {low:g} to {high:g}")
    if r.fragility is not None:
        lines.append(f"  fragility  {r.fragility:.3g} of a row's mean length, added to all rows, makes it 0")
    span = "" if interval is None else f", 95 % interval {interval[0]:.4f} to {interval[1]:.4f}"
    lines.append(
        f"  instead    {name}: {value:.4f}{span}; the same in every equivalent model"
        if value == value
        else f"  instead    {name}"
    )
    if r.note:
        lines += textwrap.wrap(
            printable(r.note), WIDTH, initial_indent="  note       ", subsequent_indent="             "
        )
    if interval is None and r.head.link != "cosine":
        lines.append(
            "  next       give --embeddings F.npy, states that reach the head: similarity of use is about inputs"
        )
    else:
        lines.append(f"  next       gonio can-tie MODEL {a} {b}; gonio dial MODEL {a} {b} --cosine -1")
    return "\n".join(lines)
