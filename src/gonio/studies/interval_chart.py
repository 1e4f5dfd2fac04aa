"""A chart of numbers with their intervals as SVG: a row a number, a group a result; in the colours of any page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

ROW, GROUP, WIDE, LEFT, RIGHT = 19, 30, 880, 440, 130
COLOURS = ("#1f6f8b", "#c0392b", "#7a5195", "#666666")


@dataclass(frozen=True)
class ChartRow:
    """A row of the chart; `colour` counts kinds of number."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    colour: int = 0


def interval_chart(
    title: str, groups: Sequence[tuple[str, Sequence[ChartRow]]], span: tuple[float, float], mark: float | None = None
) -> str:
    """The chart; values beyond the span are drawn at its ends and told by number. `mark`: a line, chance say."""
    low, high = span
    height = 34 + sum(GROUP + ROW * len(rows) for _, rows in groups) + 26
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {height}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title, quote=True)}">',
        f'<rect width="{WIDE}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" font-size="14" font-weight="bold" fill="#222222">{escape(title)}</text>',
    ]

    def x(v: float) -> float:
        return LEFT + (min(max(v, low), high) - low) / (high - low) * (WIDE - LEFT - RIGHT)

    bottom = height - 22
    for at in (low, (low + high) / 2, high):
        out.append(f'<line x1="{x(at):.1f}" y1="30" x2="{x(at):.1f}" y2="{bottom}" stroke="#dddddd"/>')
        out.append(f'<text x="{x(at):.1f}" y="{height - 7}" text-anchor="middle" fill="#555555">{at:g}</text>')
    if mark is not None:
        out.append(f'<line x1="{x(mark):.1f}" y1="30" x2="{x(mark):.1f}" y2="{bottom}" stroke="#222222" '
                   'stroke-dasharray="3 3"/>')  # fmt: skip
    y = 34.0
    for name, rows in groups:
        out.append(f'<text x="10" y="{y + 18:.1f}" fill="#222222" font-weight="bold">{escape(name)}</text>')
        y += GROUP
        for b in rows:
            colour = COLOURS[b.colour % len(COLOURS)]
            shown = f"{b.value:.2f}" if abs(b.value) < 100 else f"{b.value:,.0f}"
            out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#333333">{escape(b.name)}</text>')
            if b.low is not None and b.high is not None:
                out.append(f'<line x1="{x(b.low):.1f}" y1="{y:.1f}" x2="{x(b.high):.1f}" y2="{y:.1f}" '
                           f'stroke="{colour}" stroke-width="5" stroke-opacity="0.45"/>')  # fmt: skip
                shown += f" ({b.low:.2f} to {b.high:.2f})" if abs(b.high) < 100 else ""
            out.append(f'<circle cx="{x(b.value):.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
            out.append(f'<text x="{WIDE - RIGHT + 8}" y="{y + 4:.1f}" fill="#555555" font-size="10">{shown}</text>')
            y += ROW
    out.append("</svg>")
    return "\n".join(out) + "\n"
