"""The audit and single verdicts as plain text for the terminal."""

from __future__ import annotations

import textwrap

from gonio.core.readable_label import quoted
from gonio.findings.audit_run import Audit
from gonio.findings.finding import SECTIONS, plainly, typed_label
from gonio.findings.pair import Alike
from gonio.gauge.group import SCORES
from gonio.report.audit_page import facts, place
from gonio.report.terminal import findings_text
from gonio.report.text import WIDTH, printable


def audit(a: Audit, *, explain: bool = False, page: str = "") -> str:
    """What `gonio audit` prints."""
    return findings_text(f"{place(a)}: {facts(a)}", a.findings, SECTIONS, explain=explain, page=page)


def alike(r: Alike) -> str:
    """What `gonio alike` prints: one question, one screen."""
    a, b = (quoted(r.head.labels[i]) for i in r.labels)
    name, value, interval = r.instead
    lines = [f"How alike are {a} and {b} to this model?"]
    span = "" if interval is None else f", 95 % interval {interval[0]:.4f} to {interval[1]:.4f}"
    answer = f"{name}: {plainly(value)}{span}; the same in every equivalent model"
    if r.over and value == value and name != "cosine":
        lines += textwrap.wrap(f"{answer}, {r.over}", WIDTH, initial_indent="  answer     ", subsequent_indent=" " * 13)
    lines.append(f"  verdict    {r.verdict}")
    lines += textwrap.wrap(r.why, WIDTH, initial_indent="  because    ", subsequent_indent="             ")
    reach = f"; {r.reach.why}" if r.reach.low == r.reach.high else f"; equivalent models reach {r.reach}"
    lines += textwrap.wrap(
        f"{plainly(r.cosine)} as stored{reach}", WIDTH, initial_indent="  cosine     ", subsequent_indent=" " * 13
    )
    if r.fragility is not None:
        lines.append(f"  fragility  {r.fragility:.3g} of a row's mean length, added to all rows, makes it 0")
    if name == "cosine":
        lines.append("  instead    nothing: the cosine is the number")
    elif value == value and not r.over:
        lines.append(f"  instead    {answer}")
    elif value != value:
        lines.append("  instead    none")
    if r.note:
        lines += textwrap.wrap(
            printable(r.note), WIDTH, initial_indent="  note       ", subsequent_indent="             "
        )
    lines += [f"  next       {x}" for x in _next(r, *(typed_label(r.head, i) for i in r.labels))]
    return "\n".join(lines)


def _next(r: Alike, a: str, b: str) -> list[str]:
    """Commands that this head does not refuse, and that go on from here."""
    link = r.head.link
    out = []
    if link in SCORES and r.instead[2] is None:
        out.append("give --text FILE, or states that reach the head (--embeddings): similarity of use is about inputs")
    elif link in ("softmax", "dot"):
        out.append(f"gonio can-tie {r.head.typed} {a} {b}")
    target = next((c for c in (-1.0, -0.9, 0.9, 1.0) if c in r.reach and abs(c - r.cosine) > 0.05), None)
    if target is not None:
        out.append(f"gonio dial {r.head.typed} {a} {b} --cosine {target:g}")
    return out
