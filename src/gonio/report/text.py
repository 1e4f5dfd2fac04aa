"""Results as plain text for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from gonio.core.head import Head
from gonio.core.head_summary import Profile
from gonio.core.printed_bounds import at_most
from gonio.core.readable_label import printable, quoted
from gonio.core.states import States
from gonio.findings.finding import LONG, counted
from gonio.findings.verdict import READINGS
from gonio.gauge import Chain, Dialled, SameModel, Transform
from gonio.gauge.export import Written
from gonio.gauge.group import SCORES

WIDTH = 110


def some(labels: Sequence[str], most: int = 5) -> str:
    """The first few labels, quoted."""
    cut = (x if len(x) <= LONG else x[: LONG - 1] + "…" for x in labels[:most])
    shown = ", ".join(map(quoted, cut))
    return shown + (f" and {len(labels) - most:,} more" if len(labels) > most else "")


def info(p: Profile, states: States | None = None) -> str:
    """What `gonio info` prints: each part of the head, and how it was decided."""
    h, s = p.head, p.head.source
    n, d = h.shape
    decided = dict(s.decided) if s else {}
    low, quarter, median, three, high = (f"{q:.4g}" for q in p.quantiles)
    names = [h.labels[i] for i in range(min(n, 3))]
    lines: list[tuple[str, str, str]] = [
        ("head", f"{n:,} labels x {d}, stored as {h.rows.kind}", decided.get("weight", "")),
        ("link", h.link, decided.get("link", "")),
        ("inputs", str(h.inputs) if h.link in SCORES else "none", decided.get("inputs", "")),
        ("bias", "none" if h.bias is None else f"{h.bias.min():.4g} to {h.bias.max():.4g}", decided.get("bias", "")),
    ]
    if h.link in ("vectors", "input"):
        lines.append(("offset", h.offset_in or "stays", decided.get("offset", "")))
    if h.link == "unknown":
        lines += [("may be", f"--link {k}", means) for k, means in READINGS.items()]
    if h.trained:
        lines.append(("trained", f"penalty on the {h.trained}", decided.get("trained", "")))
    lines.append(("soft-cap", "none" if h.softcap is None else f"{h.softcap:g}", decided.get("softcap", "")))
    if "scale" in decided:
        lines.append(("scale", "applied", decided["scale"]))
    lines += [
        ("labels", f"{n:,}, beginning {some(names)}" if h.named else f"{n:,} numbers", decided.get("labels", "")),
        ("rank", f"{p.rank} of {min(n, d)}; of the differences between rows {p.rank_differences}", ""),
        ("norms", f"{low} to {high}, median {median}, quartiles {quarter} and {three}", ""),
        ("zero rows", _rows(h, h.zero_rows), ""),
        ("twins", _twins(h), "labels whose rows score alike at every input" if h.twins else ""),
        ("padded", _rows(h, h.padded, names=False), decided.get("padded", "")),
    ]
    if states is not None and states.difference is not None:
        off = f"at most {at_most(states.difference, 2)} off the model's own probabilities"
        lines.append(
            ("checked", off, f"at {states.about['positions_checked']:,} positions of a text that it was run on")
        )
    place = f"{s.place} ({s.format}, {s.bytes_read:,} bytes read)" if s else "a head made in memory"
    assumed = s.assumed if s else frozenset()
    out = [printable(place), ""]
    for part, value, why in lines:
        out += _line(part, value, why, {"head": "weight"}.get(part, part) in assumed)
    return "\n".join(out)


def checked_values(states: States | None) -> dict[str, object]:
    """What running the model showed, for JSON."""
    if states is None or states.difference is None:
        return {}
    return {"largest_difference": states.difference, "positions_checked": states.about["positions_checked"]}


def dialled(r: Dialled) -> str:
    """What `gonio dial` prints."""
    said = r.to_dict()
    a, b = (quoted(x) for x in said["labels"])
    how = f"a {r.transform.name} map of rows and embeddings"
    if r.translation is not None:
        length = float(np.linalg.norm(r.translation))
        share = length / (float(r.before.norms.mean()) or 1.0)
        how = f"one vector of length {length:.4g}, {share:.2g} of the mean row's, added to all {len(r.head):,} rows"
    return "\n".join(
        (
            f"cos({a}, {b}) = {said['cosine_before']:.6f} becomes {said['cosine']:.6f}",
            f"  by         {how}",
            f"  {'proven' if r.bound is not None else 'claimed':<10} {r.promise}",
            *(
                (f"  measured   {at_most(measured, 2)} at most, on {len(r.points):,} embeddings",)
                if (measured := said["max_probability_difference"]) is not None
                else ()
            ),
        )
    )


def written(w: Written, difference: tuple[float, float] | None, alone: str = "") -> str:
    """What `gonio dial --out` adds: where the checkpoint is and what its rounding does."""
    lines = [
        f"  written    {w.path} (head in {w.tensor}, {w.dtype}"
        f"{', untied from the embeddings' if w.untied else ''}){alone}"
    ]
    if difference is not None:
        proven, measured = difference
        lines.append(
            f"  as written no probability differs by more than {at_most(proven, 2)} (proven), "
            f"{at_most(measured, 2)} (measured)"
        )
    return "\n".join(lines)


def written_tables(w: Written, off: float) -> str:
    """What `gonio dial --out` adds for input embeddings: both tables, and what their rounding does."""
    return "\n".join(
        (
            f"  written    {w.path} (rows in {w.tensor}, {w.dtype}; {w.second} moved the opposite way)",
            f"  as written no entry of a row plus {w.second} differs by more than {at_most(off, 2)} (proven)",
        )
    )


def compared(a: Head, b: Head, r: SameModel) -> str:
    """What `gonio compare` prints."""
    said = {True: "the same, as far as heads can tell", False: "not the same", None: "cannot be told from the heads"}
    places = [printable(h.source.place if h.source else "a head") for h in (a, b)]
    lines = [
        f"{places[0]} and {places[1]}: {said[r.same]}",
        *textwrap.wrap(printable(r.reason), WIDTH, initial_indent="  because    ", subsequent_indent=" " * 13),
        f"  residual   {r.residual:.3g} of the rows; rounding explains {r.rounding:.3g}",
    ]
    if r.transform is not None and r.same:
        lines.append(f"  map        {printable(_steps(r.transform))}")
    if len(r.worst) and r.same is False:
        lines.append(f"  differ     {some([a.labels[i] for i in r.worst])}")
    return "\n".join(lines)


def _steps(t: Transform) -> str:
    return ", then ".join(s.name for s in t.steps) if isinstance(t, Chain) else t.name


def _line(part: str, value: str, why: str, assumed: bool) -> list[str]:
    note = ("assumed: " if assumed else "") + why
    head = f"  {part:<10} {value}"
    if not note:
        return [head]
    if len(head) < 54 and 56 + len(note) <= WIDTH:
        return [f"{head:<54}  {printable(note)}"]
    return [head, *textwrap.wrap(printable(note), WIDTH, initial_indent=" " * 15, subsequent_indent=" " * 15)]


def _rows(h: Head, rows: np.ndarray, names: bool = True) -> str:
    if not len(rows):
        return "none"
    if names and h.named:
        return f"{len(rows):,}: {some([h.labels[i] for i in rows])}"
    first, last = int(rows[0]), int(rows[-1])
    return f"{len(rows):,}: " + (
        f"rows {first} to {last}" if last - first + 1 == len(rows) else f"rows {first}, ... {last}"
    )


def _twins(h: Head) -> str:
    if not h.twins:
        return "none"
    total = sum(len(g) for g in h.twins)
    largest = max(h.twins, key=len)
    return (
        f"{total:,} labels in {counted(len(h.twins), 'group')}; the largest has {len(largest):,}: "
        f"{some([h.labels[i] for i in largest])}"
    )
