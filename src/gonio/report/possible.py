"""What is possible, as plain text for the terminal."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from gonio.ask.padding import Padded
from gonio.ask.precision import PrecisionAudit
from gonio.ask.ties import CanTie
from gonio.ask.wins import CanWin
from gonio.core.head import Head
from gonio.core.printed_bounds import at_least, at_most
from gonio.core.readable_label import quoted, readable
from gonio.core.status import Status
from gonio.proofs.proof_file import ProofCheck
from gonio.proofs.score_gaps import ZERO
from gonio.report.text import printable, some

FEW = 12  # labels that are told one by one
FEW_NAMED = 4  # proven things of a kind that are named; --json names all


def can_win(r: CanWin) -> str:
    """What `gonio can-win` prints."""
    h, n = r.head, len(r.labels)
    stopped = " (stopped early: the rest is undecided)" if r.interrupted else ""
    lines = [
        f"{n:,} label{'' if n == 1 else 's'}, over {printable(str(h.inputs))}{stopped}",
        f"  can win    {len(r.wins):,}{_margins(r)}",
        f"  never win  {len(r.never):,}{_names(h, r.never)}",
        f"  undecided  {len(r.undecided):,}{_names(h, r.undecided)}",
    ]
    if len(r.shared):
        groups = [g for g in r.twins if g.can_be_top == "yes"]
        lines.append(
            f"  with equals {len(r.shared):,} labels in {_groups(len(groups))} of equal rows reach the top together, "
            f"none alone{_names(h, r.shared)}"
        )
    padded = np.intersect1d(h.padded, r.labels)
    if len(padded):
        able = np.intersect1d(padded, r.tops)
        lines.append(f"  padded     {len(padded):,} rows without a token, {len(able):,} of which can be on top")
    lines += _surface(r)
    stages = Counter(r.stage)
    lines.append("  settled by " + ", ".join(f"{k} {v:,}" for k, v in stages.most_common()))
    if n <= FEW:
        lines += [_one(r, k) for k in range(n)]
    return "\n".join(lines)


def _groups(count: int) -> str:
    return f"{count:,} group{'' if count == 1 else 's'}"


def _surface(r: CanWin) -> list[str]:
    """After a norm: labels that were not found to win near its surface, where real states lie."""
    few = r.surface.not_reached
    if not len(few):
        return []
    found = r.surface.found[np.searchsorted(r.surface.labels, few)].max()
    inside = r.surface.only_inside
    bound = r.surface.at_most[np.searchsorted(r.surface.labels, inside)].max(initial=0)
    proven = f"; {len(inside):,} provably win only inside {at_most(bound, 2)} of it" if len(inside) else ""
    return [
        f"  inside     {len(few):,} of those were found to win only out to {found:.2g} of the norm's radius, where "
        f"states lie near 1{proven}{_names(r.head, few)}"
    ]


def _one(r: CanWin, k: int) -> str:
    i = int(r.labels[k])
    answer = r.status[k].answer
    why = r.reason(i)
    if r.status[k] is Status.SHARED:
        why = f"{why}; by at least {at_least(r.margin[k])} at an input of its proof"
    elif r.status[k] is Status.WINS:
        why = f"by at least {at_least(r.margin[k])} at an input of its proof"
    elif r.status[k] is Status.UNDECIDED:
        why = printable(" ".join(repr(r.certificate(i)).splitlines()[1:]))
    return f"  {readable(r.head.labels[i]):<10} {answer}: {printable(why)}"


def _margins(r: CanWin) -> str:
    won = r.margin[r.status == Status.WINS]
    return f" (each by at least {at_least(won.min())} at the input of its proof)" if len(won) else ""


def _names(h: Head, which: np.ndarray) -> str:
    return f": {some([h.labels[i] for i in which])}" if len(which) else ""


def can_tie(r: CanTie) -> str:
    """What `gonio can-tie` prints."""
    counts = {s: int((r.status == s).sum()) for s in Status}
    lines = [
        f"{len(r):,} pairs, over {printable(str(r.head.inputs))}",
        f"  can tie    {counts[Status.WINS]:,}",
        f"  cannot     {counts[Status.NEVER]:,}",
        f"  undecided  {counts[Status.UNDECIDED]:,}",
        f"  note       {r.note}",
    ]
    if len(r) <= FEW:
        for k, (a, b) in enumerate(r.pairs):
            names = " and ".join(quoted(r.head.labels[i]) for i in (a, b))
            tied = r.status[k] is Status.WINS and r.head.shape[0] > 2
            how = f" (both above all others by at least {at_least(r.margin[k])})" if tied else ""
            lines.append(f"  {names}: {r.answers[k]}{how}")
    return "\n".join(lines)


def verified(c: ProofCheck, head: Head) -> str:
    """What `gonio verify` prints."""
    held, refused = sum(c.proven.values()), len(c.failed)
    words = ["proof holds" if held == 1 else "proofs hold", "is" if refused == 1 else "are"]
    lines = [f"{held:,} {words[0]}, {refused:,} {words[1]} refused"]
    for kind, subjects in sorted(c.subjects.items()):
        named = "; ".join(_subject(head, s) for s in subjects[:FEW_NAMED])
        more = f"; and {len(subjects) - FEW_NAMED:,} more" if len(subjects) > FEW_NAMED else ""
        lines.append(f"  {kind:<10} {len(subjects):,}: {named}{more}")
    if c.smallest_margin is not None:
        lines.append(f"  margin     {at_least(c.smallest_margin)} at least, wherever something is proven possible")
    lines += [f"  refused    {printable(x)}" for x in c.failed[:5]]
    return "\n".join(lines)


def _subject(head: Head, subject: Any) -> str:
    """The label, the two, or the comparisons that something is proven of."""
    name = lambda i: "0" if i == ZERO else quoted(head.labels[i])  # noqa: E731
    if isinstance(subject, int):
        return name(subject)
    if len(subject) == 2:
        return " and ".join(map(name, subject))
    above, below, top = subject
    parts = [f"{name(i)} > {name(j)}" for i, j in zip(above[:4], below[:4], strict=True)]
    parts += [f"and {len(above) - 4:,} more comparisons"] if len(above) > 4 else []
    if top:
        parts.append(f"top {', '.join(map(name, top[:4]))}" + (f" and {len(top) - 4:,} more" if len(top) > 4 else ""))
    return ", ".join(parts)


def precision(a: PrecisionAudit) -> str:
    """What `gonio can-win --cast` prints."""
    h = a.head
    told = {
        "lost": "could be on top and cannot after rounding",
        "tied": "could win alone, and after rounding only together with labels that became equal",
        "gained": "could not be on top and can after rounding",
        "unclear": "undecided before or after",
    }
    lines = [f"rounded to {a.kind}: {_tops(a.before):,} labels could be on top, {_tops(a.after):,} can"]
    for part, words in told.items():
        which = getattr(a, part)
        lines.append(f"  {part:<10} {len(which):,} {words}{_names(h, which)}")
    if a.saturated:
        lines.append(f"  saturated  {a.saturated:,} entries are beyond the type's largest number")
    return "\n".join(lines)


def _tops(status: np.ndarray) -> int:
    return sum(s.answer == "yes" for s in status)


def padded(p: Padded, path: Path, again: str) -> str:
    """What `gonio pad` prints."""
    return "\n".join(
        (
            f"{len(p.places):,} rows that never win, for {len(p.head):,} in all",
            f"  proven     {len(p.certificates):,} rows, as written in {p.head.rows.kind}; {again}",
            f"  note       {p.note}",
            f"  written    {path}",
        )
    )
