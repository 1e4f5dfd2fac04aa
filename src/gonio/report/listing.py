"""Label sets, rankings and single questions, as plain text for the terminal."""

from __future__ import annotations

import numpy as np

from gonio.ask.questions import CanLabel
from gonio.ask.verdict import Verdict
from gonio.core.printed_bounds import at_least
from gonio.core.readable_label import readable
from gonio.listing.label_set_list import LabelSets
from gonio.listing.pattern import Patterns, digits
from gonio.proofs.comparisons import Impossible, Possible
from gonio.proofs.score_gaps import ZERO
from gonio.report.text import printable

FEW = 12  # comparisons or patterns that are told one by one


def verdict(v: Verdict) -> str:
    """What can-label, can-rank and can-top print about one question."""
    c, h = v.certificate, v.head
    lines = [printable(v.question), f"  answer     {v.answer}, over {printable(str(h.inputs))}"]
    if isinstance(c, Possible):
        lines.append(f"  by         {at_least(v.margin)} at least, at an input of norm {np.linalg.norm(c.x):.4g}")
        lines.append("  proof      checked at that input, exactly where rounding could matter")
    elif isinstance(c, Impossible):
        lines.append(f"  because    {len(c.above)} of the comparisons never hold together:")
        order = np.argsort(-c.weights)[:FEW] if len(c.weights) else range(min(FEW, len(c.above)))
        for k in order:
            weight = f"  (weight {c.weights[k]:.3g})" if len(c.weights) else ""
            lines.append(f"               {_name(v, c.above[k])} > {_name(v, c.below[k])}{weight}")
        if len(c.above) > FEW:
            lines.append(f"               and {len(c.above) - FEW} more")
        lines.append("  proof      their weighted sum is never above 0, proven without a solver")
    else:
        lines.append(f"  why        {printable(repr(c).splitlines()[-1].strip())}")
    return "\n".join(lines)


def _name(v: Verdict, label: int) -> str:
    return "0" if label == ZERO else readable(v.head.labels[label])


def can_label(r: CanLabel) -> str:
    """What `gonio can-label --sets` prints."""
    distinct = len(set(r.sets))
    possible = len(r) - len(r.impossible) - len(r.undecided)
    lines = [
        f"{len(r):,} label sets, {distinct:,} of them distinct, over {printable(str(r.head.inputs))}",
        f"  possible   {possible:,}",
        f"  impossible {len(r.impossible):,} ({len(r.impossible) / len(r):.2%}): the head can never output them",
        f"  undecided  {len(r.undecided):,}",
    ]
    for k in list(dict.fromkeys(r.sets[k] for k in r.impossible))[:FEW]:
        lines.append(f"    {{{', '.join(readable(r.head.labels[i]) for i in k)}}}")
    return "\n".join(lines)


def patterns(p: Patterns, *, listed: int = 0) -> str:
    """What `gonio patterns` prints."""
    n, d = p.head.shape
    sets = isinstance(p, LabelSets)
    kind = "label sets" if sets else "rankings"
    if p.limit is not None and p.most > p.limit:
        return "\n".join(
            (
                f"{n:,} labels of width {d}, link {p.head.link}",
                f"  {kind:<10} {_large(p.most)} of {_large(p.conceivable)} at most (closed form, general position)",
                "  note       too many to go through; ask about single ones with gonio can-rank, can-top or can-label",
                *(f"  note       {printable(x)}" for x in p.notes),
            )
        )
    count = p.count
    lines = [
        f"{n:,} labels of width {d}, link {p.head.link}",
        f"  {kind:<10} {count:,} of {_large(p.conceivable)} can be output, a share of {p.share:.3g}",
        f"  impossible {_large(p.impossible)}",
        f"  position   {_position(p, count)}",
    ]
    near = p.near_degenerate
    if near is not None:
        lines.append(f"  readings   exactly as stored: {count:,}; {near}: {near.count:,}")
        how = "decimals" if near.reading == "decimals" else f"{near.patterns.tol:.2g}"
        lines.append(
            f"             which of the two is meant the numbers do not tell; --numbers {how} lists the second"
        )
    lines += [f"  note       {printable(x)}" for x in p.notes]
    for k, row in zip(range(listed), p, strict=False):
        if sets:
            on = [readable(p.head.labels[i]) for i in np.flatnonzero(row > 0)]
            lines.append(f"  {k + 1:>8}   {{{', '.join(on)}}}")
        else:
            lines.append(f"  {k + 1:>8}   {' > '.join(readable(p.head.labels[i]) for i in row)}")
    if 0 < listed < count:
        lines.append(f"             and {count - listed:,} more")
    return "\n".join(lines)


def _position(p: Patterns, count: int) -> str:
    if not count:
        return "no pattern without ties exists"
    if count == p.generic:
        return "general: as many as a head of this shape can have (Cover's count), proven"
    return f"degenerate: general position would give {_large(p.generic)}"


def _large(x: int) -> str:
    return f"{x:,}" if x < 10**15 else f"10^{digits(x) - 1} or so"
