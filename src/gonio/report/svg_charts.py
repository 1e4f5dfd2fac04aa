"""The few charts of a page as inline SVG in the page's own colours; hovering a mark names it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from gonio.findings.audit_run import Audit
from gonio.findings.subject import word_of
from gonio.report.frame import shown, trusted

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 420, 250, 48, 34, 26
POINTS = 200  # of each kind in a scatter
SLIDER = 20, 420  # where the thresholds of a check begin and end, of 440; threshold.js draws its line by them


@dataclass(frozen=True)
class Chart:
    """A drawing with what it shows."""

    title: str
    caption: str
    svg: Any


def charts(audit: Audit) -> list[Chart]:
    """What the findings have numbers for: neighbours kept, the cosine against its replacement, margins."""
    found = {f.key: f for f in audit.findings}
    word = word_of(audit.head)
    drawn = [draw(found[key], word) for key, draw in DRAWN.items() if key in found]
    return [c for c in drawn if c is not None]


def _kept(f: Any, word: str) -> Chart | None:
    groups = {k: v["counts"] for k, v in f.data.items() if isinstance(v, dict) and "counts" in v}
    if not groups or max(sum(c > 0 for c in counts) for counts in groups.values()) < 2:  # one bar is no chart
        return None
    k = f.data["k"]
    most = max(c / sum(counts) for counts in groups.values() for c in counts) or 1.0
    x, y = _scale(-0.5, k + 0.5, LEFT, WIDTH - 6), _scale(0, most, HEIGHT - BOTTOM, TOP)
    wide = 0.84 * (x(1) - x(0)) / len(groups)
    marks = []
    for place, (name, counts) in enumerate(groups.items()):
        for kept, c in enumerate(counts):
            share = c / sum(counts)
            if c:
                left = x(kept) + (place - len(groups) / 2) * wide
                words = f"after {name}: {share:.0%} of {word}s keep {kept} of {k}"
                marks.append(_rect(left, y(share), wide * 0.94, y(0) - y(share), "ab"[place % 2], words))
    ticks = [(x(i), str(i)) for i in range(0, k + 1, max(1, k // 10))]
    body = _axes(ticks, [(y(v), f"{v:.0%}") for v in (0, most)], f"of {k} nearest by cosine, kept", f"{word}s")
    legend = _legend([(f"after {name}", "ab"[i % 2]) for i, name in enumerate(groups)])
    return Chart(
        "Neighbours kept",
        f"How many of the nearest by cosine of each {word} stay in models that predict the same.",
        _svg(body + "".join(marks) + legend, "Neighbours kept"),
    )


def _against(f: Any, word: str) -> Chart | None:
    points = f.data.get("points") or []
    if len(points) < 3:
        return None
    xs, ys = [p[2] for p in points], [p[3] for p in points]
    x = _scale(min(xs), max(xs), LEFT, WIDTH - 8)
    y = _scale(min(ys), max(ys), HEIGHT - BOTTOM, TOP)
    marks = []
    for kind, name in ((1, "c"), (0, "a")):
        some = [p for p in points if p[4] == kind]
        for a, b, u, v, _ in some[:: max(1, -(-len(some) // POINTS))]:
            words = f"{shown(a)[:40]}, {shown(b)[:40]}: cosine {u:.3f}, instead {v:.3f}"
            marks.append(_dot(x(u), y(v), name, words))
    body = _axes(
        [(x(v), f"{v:.2f}") for v in (min(xs), (min(xs) + max(xs)) / 2, max(xs))],
        [(y(v), f"{v:.2f}") for v in (min(ys), max(ys))],
        "cosine as stored",
        str(f.data.get("measure", "instead")),
    )
    legend = _legend([("nearest by cosine", "a"), ("random pairs", "c")])
    return Chart(
        "Cosine against what to use instead",
        f"Each point is a pair of {word}s.",
        _svg(body + "".join(marks) + legend, "Cosine against what to use instead"),
    )


def _margins(f: Any, word: str) -> Chart | None:
    h = f.data.get("margins")
    if not h or sum(c > 0 for c in h["counts"]) < 3:  # one bar is no chart
        return None
    counts, edges = h["counts"], h["log10_edges"]
    x, y = _scale(edges[0], edges[-1], LEFT, WIDTH - 8), _scale(0, max(counts), HEIGHT - BOTTOM, TOP)
    marks = [
        _rect(x(a), y(c), max(1.0, x(b) - x(a) - 1), y(0) - y(c), "a", f"{c:,} {word}s, {10**a:.2g} to {10**b:.2g}")
        for a, b, c in zip(edges[:-1], edges[1:], counts, strict=True)
        if c
    ]
    at = (edges[0], (edges[0] + edges[-1]) / 2, edges[-1])
    ticks = [(x(v), f"{10**v:.1g}") for v in at]
    body = _axes(ticks, [(y(v), f"{v:,}") for v in (0, max(counts))], "margin proven at a witness", f"{word}s")
    return Chart(
        f"How far {word}s win by",
        f"At least by so much one of the {word}s wins at the input of its proof; another input may give it more.",
        _svg(body + "".join(marks), f"How far {word}s win by"),
    )


DRAWN = {"neighbours-kept": _kept, "cosine-against": _against, "never-wins": _margins}


def distributions(curve: dict[str, Any]) -> Any:
    """The scores of random pairs, and of relevant ones where they were judged, over the thresholds of the slider."""
    steps = len(curve["at"])
    kinds = [("random", curve["random_in"], "c")]
    kinds += [("relevant", curve["relevant_in"], "a")] if "relevant_in" in curve else []
    marks = []
    x = _scale(0, steps - 1, *SLIDER)
    for name, shares, colour in kinds:
        y = _scale(0, max(shares) or 1.0, 150, 12)
        for k, share in enumerate(shares):
            if share:
                words = f"{name} pairs: {share:.2%} from {curve['at'][k]:.3g}"
                marks.append(_rect(x(k), y(share), x(1) - x(0), 150 - y(share), f"{colour} thin", words))
    ticks = "".join(
        f'<text x="{x(k):.0f}" y="166" text-anchor="middle">{curve["at"][k]:.3g}</text>'
        for k in (0, (steps - 1) // 2, steps - 1)
    )
    line = f'<line id="curve-line" class="line" x1="{SLIDER[0]}" x2="{SLIDER[0]}" y1="8" y2="150"/>'
    left = SLIDER[0] + 4
    key = "".join(f'<text class="ink" x="{left}" y="{20 + 14 * i}">{_swatch(n)}</text>' for i, n in enumerate(kinds))
    return trusted(
        f'<svg viewBox="0 0 440 172" role="img" aria-label="Scores of random and of relevant pairs">'
        f'<path class="axis" d="M{SLIDER[0]} 150H{SLIDER[1]}"/>{"".join(marks)}{ticks}{line}{key}</svg>'
    )


def _swatch(kind: tuple[str, Any, str]) -> str:
    name, _, colour = kind
    return f'<tspan class="{colour}">■</tspan> {name} pairs'


def _scale(low: float, high: float, first: float, last: float) -> Any:
    wide = (high - low) or 1.0
    return lambda v: first + (last - first) * (v - low) / wide


def _rect(x: float, y: float, w: float, h: float, kind: str, words: str) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{max(h, 0.5):.1f}">'
        f"<title>{escape(words)}</title></rect>"
    )


def _dot(x: float, y: float, kind: str, words: str) -> str:
    return f'<circle class="{kind} thin" cx="{x:.1f}" cy="{y:.1f}" r="2.5"><title>{escape(words)}</title></circle>'


def _axes(xs: Sequence[tuple[float, str]], ys: Sequence[tuple[float, str]], across: str, up: str) -> str:
    floor = HEIGHT - BOTTOM
    out = [f'<path class="axis" d="M{LEFT} {TOP}V{floor}H{WIDTH - 6}"/>']
    for k, (x, t) in enumerate(xs):  # the outermost stay inside
        anchor = "start" if k == 0 and x < LEFT + 9 else "end" if k == len(xs) - 1 and x > WIDTH - 20 else "middle"
        out.append(f'<text x="{x:.0f}" y="{floor + 13}" text-anchor="{anchor}">{escape(t)}</text>')
    out += [f'<text x="{LEFT - 4}" y="{y + 4:.0f}" text-anchor="end">{escape(t)}</text>' for y, t in ys]
    out.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 4}" text-anchor="middle">{escape(across)}</text>')
    middle = (TOP + floor) / 2
    out.append(
        f'<text x="10" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 10 {middle:.0f})">{up}</text>'
    )
    return "".join(out)


def _legend(entries: Sequence[tuple[str, str]]) -> str:
    spans = "  ".join(f'<tspan class="{colour}">■</tspan> {escape(name)}  ' for name, colour in entries)
    return f'<text class="ink" x="{LEFT}" y="14">{spans}</text>'


def _svg(body: str, title: str) -> Any:
    return trusted(f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{body}</svg>')
