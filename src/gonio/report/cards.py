"""Results in a notebook: one compact card each, in a style of its own that touches nothing else on the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.ask.verdict import Verdict
from gonio.ask.wins import CanWin
from gonio.core.printed_bounds import at_most
from gonio.core.readable_label import quoted
from gonio.factors.checkup import FactorAudit
from gonio.factors.model import FactorModel
from gonio.findings.audit_run import Audit
from gonio.findings.check_run import Check
from gonio.findings.finding import plainly
from gonio.findings.pair import Alike
from gonio.gauge import Dialled, SameModel
from gonio.listing.pattern import Patterns, digits
from gonio.report.audit_page import facts, place
from gonio.report.causes import closing, to_act_on
from gonio.report.check_page import table_facts, table_name
from gonio.report.frame import shown, style, templates, trusted
from gonio.report.text import printable

NAMED = 12  # labels that a card names
LISTED = 200_000  # patterns up to which a card counts them


def card(title: str, lines: list[tuple[str, Any]], *, says: str = "", names: Any = (), state: str = "") -> str:
    """A title, lines of a word and what it is, a sentence, and labels by name."""
    return (
        templates()
        .get_template("card.html")
        .render(css=trusted(style()), title=title, lines=lines, says=says, names=names, state=state)
    )


def audit_card(a: Audit) -> str:
    """What to act on, and the counts."""
    causes = [("!", c.first.title) for c in to_act_on(a.findings)] or [("ok", "nothing to act on")]
    return card(place(a), causes, says=f"{facts(a)}. {closing(a.findings)}", state="warning" if a.warnings else "fine")


def check_card(c: Check) -> str:
    """What to act on, and the counts."""
    causes = [("!", x.first.title) for x in to_act_on(c.findings)] or [("ok", "nothing to act on")]
    says = f"{table_facts(c)}. {closing(c.findings)}"
    return card(table_name(c), causes, says=says, state="warning" if c.warnings else "fine")


def can_win_card(r: CanWin) -> str:
    """How many labels can win, and the first of those that never do."""
    h, n = r.head, len(r.labels)
    lines = [("can win", f"{len(r.wins):,}"), ("never win", f"{len(r.never):,}")]
    lines += [("only with equals", f"{len(r.shared):,}")] if len(r.shared) else []
    lines += [("undecided", f"{len(r.undecided):,}")] if len(r.undecided) else []
    return card(
        f"Which of {n:,} labels can win?",
        lines,
        says=f"Over {printable(str(h.inputs))}." + (" Stopped early." if r.interrupted else ""),
        names=[shown(h.labels[i]) for i in r.never[:NAMED]],
        state="warning" if len(r.never) else "fine",
    )


def verdict_card(v: Verdict) -> str:
    """One question and its answer."""
    lines = [("answer", v.answer), ("over", printable(str(v.head.inputs)))]
    return card(printable(v.question), lines, says=printable(v.note))


def alike_card(r: Alike) -> str:
    """The cosine, what equivalent models reach, and what to use instead."""
    a, b = (quoted(r.head.labels[i]) for i in r.labels)
    name, value, interval = r.instead
    span = "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
    lines = [("cosine as stored", plainly(r.cosine)), ("equivalent models", str(r.reach))]
    lines += [(f"instead: {name}", f"{plainly(value)}{span}")] if value == value and name != "cosine" else []
    return card(f"{a} and {b}", lines, says=f"{r.verdict}.{' ' + printable(r.note) if r.note else ''}")


def dialled_card(r: Dialled) -> str:
    """The cosine before and after, and what it does to predictions."""
    said = r.to_dict()
    a, b = (quoted(x) for x in said["labels"])
    lines = [("before", f"{said['cosine_before']:.6f}"), ("now", f"{said['cosine']:.6f}")]
    if r.translation is not None:
        lines.append(("added to every row", f"one vector of length {float(np.linalg.norm(r.translation)):.4g}"))
    if said["max_probability_difference"] is not None:
        lines.append(("measured change", f"{at_most(said['max_probability_difference'], 2)} at most"))
    return card(f"cos({a}, {b})", lines, says=printable(r.promise))


def same_card(r: SameModel) -> str:
    """Are two models one?"""
    title = {True: "The same model", False: "Not the same model", None: "Cannot be told from the heads"}[r.same]
    lines = [("residual", f"{r.residual:.3g}"), ("rounding explains", f"{r.rounding:.3g}")]
    return card(title, lines, says=printable(r.reason), state="fine" if r.same else "")


def patterns_card(p: Patterns) -> str:
    """How many label sets or rankings a head can output."""
    kind = p._name.replace("_", " ")
    exact = p.most <= LISTED
    count = p.count if exact else p.most
    lines = [("possible" if exact else "possible, at most", _large(count)), ("conceivable", _large(p.conceivable))]
    says = " ".join(printable(x) for x in p.notes)
    n, d = p.head.shape
    return card(f"{kind[:1].upper()}{kind[1:]} of {n:,} labels of width {d}", lines, says=says)


def factor_card(m: FactorModel | FactorAudit) -> str:
    """What a factor model's own two lines say."""
    first, _, rest = repr(m).partition("\n")
    return card(printable(first), [], says=printable(rest.strip()))


def _large(x: int) -> str:
    return f"{x:,}" if x < 10**15 else f"about 10^{digits(x) - 1}"


CARDS = (
    (Audit, audit_card),
    (Check, check_card),
    (CanWin, can_win_card),
    (Verdict, verdict_card),
    (Alike, alike_card),
    (Dialled, dialled_card),
    (SameModel, same_card),
    (Patterns, patterns_card),
    (FactorModel, factor_card),
    (FactorAudit, factor_card),
)
