"""How alike labels are, as plain text for the terminal."""

from __future__ import annotations

from gonio.core.readable_label import quoted
from gonio.report.text import printable
from gonio.similarity import Measure, Neighbours

GROUPS = {
    "T": "translation",
    "M": "invertible map",
    "S": "scaling",
    "R": "rotation",
    "P": "row lengths",
    "U": "input shift",
    "L": "layer-norm shift",
}


def similar(measure: Measure, by_measure: Neighbours, by_cosine: Neighbours, intervals: list[str]) -> str:
    """What `gonio similar` prints: neighbours under the measure beside those by cosine."""
    head = measure.head
    kept = ", ".join(GROUPS[g] for g in GROUPS if g in measure.invariant)
    lines = [
        f"{measure.name} ({'larger' if measure.nearer > 0 else 'smaller'} is nearer); stays under {kept or 'nothing'}"
    ]
    if head.link == "vectors" and measure.name == "cosine":
        lines.append("  note       training does not fix it for word vectors; judged pairs tell how useful it is")
    if measure.caveat:
        lines.append(f"  note       {printable(measure.caveat)}")
    for row, asked in enumerate(by_measure.asked):
        lines.append(quoted(head.labels[asked]))
        k = len(by_measure.near[row])
        left = [
            f"{value:8.3f}{f' {intervals[row * k + c]:<18}' if intervals else ''}  {quoted(head.labels[near])}"
            for c, (near, value) in enumerate(zip(by_measure.near[row], by_measure.values[row], strict=True))
        ]
        right = [
            f"{value:8.3f}  {quoted(head.labels[near])}"
            for near, value in zip(by_cosine.near[row], by_cosine.values[row], strict=True)
        ]
        if measure.name == "cosine":
            lines += [f"  {x}" for x in left]
            continue
        width = max(len(measure.name), *(len(x) for x in left)) + 3
        lines.append(f"  {measure.name:<{width}}cosine")
        lines += [f"  {a:<{width}}{b}" for a, b in zip(left, right, strict=True)]
        shared = len(set(by_measure.near[row].tolist()) & set(by_cosine.near[row].tolist()))
        lines.append(f"  {shared} of {len(left)} in both")
    return "\n".join(lines)
