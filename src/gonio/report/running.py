"""Answers that took the model itself, in words."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from gonio.core.head import Head
from gonio.core.printed_bounds import at_most
from gonio.diagnostics.logits_apart import LogitDifferences
from gonio.diagnostics.rounding_on_text import CastOnText
from gonio.diagnostics.undertrained_rows import Undertrained
from gonio.gauge.canonicalising import Canonicalised
from gonio.models.repetition import Repeated, Repetition
from gonio.report.text import WIDTH, printable, some
from gonio.similarity.directions import Direction
from gonio.similarity.input_pairs import InputsAlike


def canonicalised(r: Canonicalised, place: str, off: float | None) -> str:
    """What `gonio canonicalise` prints."""
    n, width = r.head.shape
    what = "centred-logit" if r.centred else "logit"
    lines = [
        f"{n:,} labels x {width}: the cosine of two rows is their {what} correlation over {r.states:,} states",
        f"  checked    logits at 64 of these states differ by at most {at_most(r.off, 2)}",
        f"  written    {place}",
    ]
    if off is not None:
        lines.insert(
            2, f"  reloaded   as written, probabilities on 24 random tokens differ by at most {at_most(off, 2)}"
        )
    return "\n".join(lines)


def direction(r: Direction, top: int) -> str:
    """What `gonio direction` prints."""
    value = np.nan_to_num(r.effect)
    order = np.argsort(-value, kind="stable")
    unit = "change of the centred logit" if r.use == "steering" else "correlation with the centred logit"
    if r.head.link != "softmax":
        unit = unit.replace("centred ", "")
    lines = [f"As a {'steering vector' if r.use == 'steering' else 'probe'}: {unit}, beside the cosine with the row"]
    for title, which in (("most up", order[:top]), ("most down", order[::-1][:top])):
        lines.append(f"  {title}")
        lines += [
            f"    {r.effect[i]:>9.4f}   cosine {r.cosine[i]:>7.4f}   '{printable(r.head.labels[i])}'" for i in which
        ]
    if r.agreement == r.agreement:
        lines.append(
            f"  note       over all labels the cosines order them as the effects do to {r.agreement:.2f} (rank "
            f"correlation); the cosines are convention"
        )
    return "\n".join(lines)


def inputs_alike(r: InputsAlike, numbers: np.ndarray, top: int) -> str:
    """What `gonio alike-inputs` prints."""
    order = np.argsort(r.divergence, kind="stable")[:top]
    lines = [f"{len(r.pairs):,} pairs of inputs; the nearest by what the model predicts after them"]
    lines.append("    divergence   logit distance   cosine    inputs")
    for k in order:
        i, j = (int(numbers[x]) for x in r.pairs[k])
        lines.append(f"    {r.divergence[k]:>8.4f}     {r.distance[k]:>10.4f}     {r.cosine[k]:>7.4f}    {i} and {j}")
    if r.agreement == r.agreement:
        lines.append(f"  cosines    order the pairs as the divergence does to {r.agreement:.2f} (rank correlation)")
    lines += textwrap.wrap(r.gauge, WIDTH, initial_indent="  gauge      ", subsequent_indent=" " * 13)
    return "\n".join(lines)


def undertrained(head: Head, found: Undertrained, r: Repetition, never: np.ndarray) -> str:
    """What `gonio undertrained` prints."""
    lines = [
        f"{len(found.candidates):,} rows look untrained, beside {len(found.reference):,} reference rows ({found.how}); "
        f"{len(r.tokens):,} were asked for"
    ]
    for verdict in (Repeated.NEVER, Repeated.WEAK, Repeated.MOSTLY, Repeated.AT_ONCE):
        which = [head.labels[int(t)] for t, v in zip(r.tokens, r.verdicts, strict=True) if v is verdict]
        lines.append(f"  {len(which):>6,}   {verdict.value}" + (f": {some(which, 8)}" if which else ""))
    if len(never):
        names = [head.labels[int(i)] for i in never]
        lines.append(f"  {len(never):>6,}   tokens come back as others when their own text is read: {some(names, 8)}")
    return "\n".join(lines)


def undertrained_columns(head: Head, r: Repetition) -> dict[str, list[Any]]:
    """One row a candidate."""
    return {
        "token": r.tokens.tolist(),
        "label": [head.labels[int(t)] for t in r.tokens],
        "probability": r.probability.tolist(),
        "verdict": [v.name.lower() for v in r.verdicts],
    }


def undertrained_values(head: Head, found: Undertrained, r: Repetition, never: np.ndarray) -> Mapping[str, Any]:
    """In plain values, for JSON."""
    return {
        "candidates": found.candidates.tolist(),
        "reference": found.how,
        "never_written": never.tolist(),
        "asked": undertrained_columns(head, r),
    }


def cast_on_text(r: CastOnText) -> str:
    """What `gonio can-win --cast` adds where a text is given."""
    span = "" if r.interval is None else f" ({r.interval[0]:.2%} to {r.interval[1]:.2%} of such text)"
    lines = [
        f"  on text    another label is on top at {len(r.changed):,} of {r.positions:,} positions, {r.share:.2%}{span}"
    ]
    pairs = [
        f"'{printable(r.labels[a])}' -> '{printable(r.labels[b])}'"
        for a, b in zip(r.before[:3], r.after[:3], strict=True)
    ]
    return "\n".join([*lines, *([f"             such as {', '.join(pairs)}"] if pairs else [])])


def differences(r: LogitDifferences, top: int = 8) -> str:
    """What `gonio compare --text` adds."""
    what = "centred logits" if r.centred else "logits"
    order = np.argsort(-r.rms, kind="stable")[:top]
    lines = [
        f"  on text    at {r.positions:,} positions the {what} differ by {at_most(float(r.largest.max()), 3)} at most "
        f"(their size is {r.size:.3g}); another label is on top at {r.changed:.2%}",
        "  most       root mean square, largest",
    ]
    lines += [f"             {r.rms[i]:.3g}, {r.largest[i]:.3g}   '{printable(r.labels[i])}'" for i in order]
    return "\n".join(lines)
