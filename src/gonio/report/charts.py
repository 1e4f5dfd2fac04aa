"""The report's charts, from numbers the audit already has: drawn by bokeh, hover shows the labels."""

from __future__ import annotations

from typing import Any

from gonio.core.readable_label import readable
from gonio.findings.audit_run import Audit

NAME = 80  # characters of a label that hovering shows
INK, SOFT, BLUE, ORANGE = "#222222", "#777777", "#1f5fa8", "#c2570c"


def charts(audit: Audit) -> list[tuple[str, str, Any]]:
    """(section, caption, figure) for every chart the findings have numbers for."""
    found = {f.key: f for f in audit.findings}
    out = []
    for key, draw in DRAWN.items():
        if key in found:
            drawn = draw(found[key])
            if drawn is not None:
                out.append((found[key].section, *drawn))
    return out


def _figure(title: str, x: str, y: str, **more: Any) -> Any:
    from bokeh.plotting import figure

    p = figure(height=320, sizing_mode="stretch_width", tools="pan,wheel_zoom,box_zoom,reset", title=title, **more)
    p.xaxis.axis_label, p.yaxis.axis_label = x, y
    p.toolbar.logo = None
    p.toolbar.active_scroll = None  # type: ignore[assignment]
    return p


def _against(f: Any) -> tuple[str, Any] | None:
    points = f.data.get("points")
    if not points:
        return None
    from bokeh.models import ColumnDataSource, HoverTool

    p = _figure("Cosine against the invariant similarity", "cosine of rows", "invariant similarity")
    for kind, colour, name in ((1, SOFT, "random pairs"), (0, BLUE, "nearest by cosine")):
        some = [q for q in points if q[4] == kind]
        columns: Any = {
            "a": [q[0][:NAME] for q in some],
            "b": [q[1][:NAME] for q in some],
            "x": [q[2] for q in some],
            "y": [q[3] for q in some],
        }
        p.scatter("x", "y", source=ColumnDataSource(columns), size=5, alpha=0.55, color=colour, legend_label=name)
    p.add_tools(HoverTool(tooltips=[("labels", "@a, @b"), ("cosine", "@x"), ("invariant", "@y")]))
    p.legend.location = "top_left"
    return (
        "Each point is a pair of labels. Where the cloud is wide, a cosine does not say how alike two labels are used.",
        p,
    )


def _kept(f: Any) -> tuple[str, Any] | None:
    groups = {k: v for k, v in f.data.items() if isinstance(v, dict) and "counts" in v}
    if not groups:
        return None
    from bokeh.models import HoverTool

    k = f.data["k"]
    p = _figure(f"Of {k} nearest labels by cosine, how many stay", "kept", "share of labels")
    width = 0.8 / len(groups)
    for place, (name, v) in enumerate(groups.items()):
        total = sum(v["counts"]) or 1
        at = [i - 0.4 + width * (place + 0.5) for i in range(k + 1)]
        tops = [c / total for c in v["counts"]]
        p.vbar(x=at, top=tops, width=width * 0.95, color=(BLUE, ORANGE)[place % 2], legend_label=f"after {name}")
    p.add_tools(HoverTool(tooltips=[("share of labels", "@top{0.00}")]))
    p.legend.location = "top_left"
    return "In an equivalent model every prediction is the same. Lists that were facts would all be kept.", p


def _bars(title: str, x: str, caption: str, field: str, edges: str, colour: str = BLUE) -> Any:
    def draw(f: Any) -> tuple[str, Any] | None:
        h = f.data.get(field)
        if not h:
            return None
        from bokeh.models import HoverTool

        p = _figure(title, x, "labels")
        e = h[edges]
        p.quad(left=e[:-1], right=e[1:], top=h["counts"], bottom=0, color=colour, line_color="white")
        p.add_tools(HoverTool(tooltips=[("from", "@left{0.000}"), ("to", "@right{0.000}"), ("labels", "@top")]))
        return caption, p

    return draw


def _spectrum(f: Any) -> tuple[str, Any] | None:
    shares = f.data.get("spectrum")
    if not shares:
        return None
    from bokeh.models import HoverTool

    p = _figure("Share of the variance in each direction", "direction, largest first", "share", y_axis_type="log")
    p.line(list(range(1, len(shares) + 1)), [max(s, 1e-12) for s in shares], color=BLUE, line_width=2)
    p.add_tools(HoverTool(tooltips=[("direction", "@x"), ("share", "@y{0.0000}")]))
    return (
        "A flat line would mean that rows spread evenly; a steep start means that a few directions decide the cosines.",
        p,
    )


def _hubs(f: Any) -> tuple[str, Any] | None:
    hubs = f.data.get("hubs")
    if not hubs:
        return None
    from bokeh.models import ColumnDataSource, HoverTool, PlainText

    hubs = hubs[:20]
    p = _figure("Labels that are in the most lists of neighbours", "lists", "", y_range=(len(hubs) - 0.5, -0.5))
    columns: Any = {"y": list(range(len(hubs))), "name": [h[0][:NAME] for h in hubs], "count": [h[1] for h in hubs]}
    p.hbar(y="y", right="count", height=0.7, color=ORANGE, source=ColumnDataSource(columns))
    p.yaxis.ticker = columns["y"]
    p.yaxis.major_label_overrides = {i: PlainText(text=readable(h[0])[:16]) for i, h in enumerate(hubs)}
    p.add_tools(HoverTool(tooltips=[("label", "@name"), ("lists", "@count")]))
    return "A hub is near many labels without being like them.", p


DRAWN = {
    "cosine-against": _against,
    "neighbours-kept": _kept,
    "never-wins": _bars(
        "Margins of the labels that can win",
        "log10 of the margin proven",
        "By how much, at least, a label wins at the input of its proof. Small margins are lost first by rounding.",
        "margins",
        "log10_edges",
    ),
    "norms": _bars(
        "Lengths of the rows",
        "length",
        "Very short rows are often labels that were hardly trained.",
        "histogram",
        "edges",
    ),
    "anisotropy": _spectrum,
    "hubness": _hubs,
}
