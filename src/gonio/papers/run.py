"""Reproduce: every paper in turn, its table beside ours, its pictures, and the gallery of both."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gonio.core.atomic_write import make_folder, whole, whole_text
from gonio.core.errors import GonioError
from gonio.papers.comparison import Picture, Reproduction, summary
from gonio.report.frame import style

PAPERS = {
    "nielsen-grivas-2026": "nielsen_grivas_2026",
    "steck-2024": "steck_2024",
    "grivas-2022": "grivas_2022",
    "grivas-2024": "grivas_2024",
    "land-bartolo-2024": "land_bartolo_2024",
    "lee-2025": "lee_2025",
    "nielsen-2025": "nielsen_2025",
    "draganov-2024": "draganov_2024",
    "mikolov-2013": "mikolov_2013",
    "you-2025": "you_2025",
    "zhou-2022": "zhou_2022",
}
# Words stay whole; only the paths of functions and tests may be broken anywhere.
WRAPPING = (
    ".gonio td { overflow-wrap: break-word; } .gonio td:last-child { overflow-wrap: anywhere; }\n"
    ".gonio .papers { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); }\n"
    ".gonio .papers img { width: 100%; height: 12rem; object-fit: contain; }\n"
    ".gonio .wide { overflow-x: auto; } .gonio img { max-width: 100%; height: auto; background: #fff; }\n"
)


def reproduce(
    papers: list[str] | None = None, on_progress: Callable[[int, int, str], None] | None = None
) -> list[Reproduction]:
    """The reproductions of the named papers, or of all."""
    chosen = list(papers) if papers else list(PAPERS)
    for name in chosen:
        if name not in PAPERS:
            raise GonioError(f"reproduce: no paper is called {name!r}; there are {', '.join(PAPERS)}.")
    out = []
    for k, name in enumerate(chosen):
        if on_progress is not None:
            on_progress(k, len(chosen), name)
        out.append(importlib.import_module(f"gonio.papers.{PAPERS[name]}").reproduce())
    if on_progress is not None:
        on_progress(len(chosen), len(chosen), "done")
    return out


LISTS = {
    "printed": ("Numbers the paper prints", ("claim", "theirs", "ours", "difference", "tolerance", "note")),
    "checked": ("Claims checked", ("claim", "how", "ours", "result")),
    "alone": ("No number printed: ours alone", ("claim", "ours", "why")),
}


def text(several: list[Reproduction]) -> str:
    """What `gonio reproduce` prints: three lists a paper, and their counts."""
    lines = []
    for r in several:
        lines.append(r.title)
        if r.printed:
            lines.append("  numbers the paper prints")
        for c in r.printed:
            within = "exactly" if c.tolerance == 0 else f"within {c.tolerance:g}"
            lines.append(
                f"    {'=' if c.agrees else '!'} {c.claim}: theirs {_short(c.theirs)}, ours {_short(c.ours)} ({within})"
                + (f"; {c.note}" if c.note else "")
            )
        if r.checked:
            lines.append("  claims checked")
        marks = {"holds": "=", "does not hold": "!", "cannot be told": "?"}
        lines += [f"    {marks[c.result]} {c.claim}: {c.result}; {_short(c.ours)} ({c.how})" for c in r.checked]
        if r.alone:
            lines.append("  no number printed: ours alone")
        lines += [f"      {c.claim}: {_short(c.ours)} ({c.why})" for c in r.alone]
        lines += [f"  {summary(r.counts())}" + (f"; with network: {r.with_network}" if r.with_network else ""), ""]
    return "\n".join(lines).rstrip()


def gallery(several: list[Reproduction], out: str | Path, formats: tuple[str, ...] = ("png",)) -> Path:
    """One page a paper with its pictures and numbers, an index with pictures, and reproduction.json."""
    folder = make_folder(out, "reproduce")
    for r in several:
        for p in r.pictures:
            for f in formats:
                draw(p, folder / f"{r.key}-{p.name}.{f}")
    record = {r.key: r.to_dict() for r in several}
    written = json.dumps(record, indent=2, ensure_ascii=False, default=str) + "\n"
    whole_text(folder / "reproduction.json", written, "reproduce", lone="backslashreplace")
    return pages(json.loads(written), folder, formats[0])


def pages(record: dict[str, Any], folder: Path, ending: str = "png") -> Path:
    """The pages of a record (reproduction.json): its index, a page a paper, their style."""
    whole_text(folder / "style.css", style() + WRAPPING, "reproduce")
    papers = []
    for key, r in record.items():
        figures = [
            {"src": f"{key}-{name}.{ending}", "caption": caption}
            for name, caption in zip(r["pictures"], r["captions"], strict=True)
        ]
        counts = summary(r["counts"])
        tables = [{"title": LISTS[k][0], "columns": LISTS[k][1], "rows": r[k]} for k in LISTS if r[k]]
        values = {"title": r["paper"], "figures": figures, "counts": counts, "tables": tables}
        _write(folder / f"{key}.html", "paper.html", **values, with_network=r["with_network"])
        papers.append({"key": key, **values})
    _write(folder / "index.html", "index.html", title="The papers, reproduced", papers=papers)
    return folder / "index.html"


def _write(path: Path, template: str, **values: Any) -> None:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(autoescape=True, undefined=StrictUndefined, loader=PackageLoader("gonio.papers", "templates"))
    env.filters["short"] = _short
    whole_text(path, env.get_template(template).render(**values) + "\n", "reproduce")


def draw(picture: Picture, path: Path) -> Path:
    """A picture as a file: .png, .svg or .pdf."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fig = Figure(figsize=picture.size, layout="constrained")
    FigureCanvasAgg(fig)
    picture.draw(fig)
    with whole(path, "reproduce") as temporary:
        fig.savefig(temporary, dpi=110, metadata={"Software": None} if path.suffix == ".png" else None)
    return path


def _short(v: Any) -> str:
    if isinstance(v, float):
        return f"{v:.6g}"
    if isinstance(v, dict):
        return "; ".join(f"{k} {_short(x)}" for k, x in v.items())
    out = str(v)
    return out if len(out) <= 200 else out[:197] + "..."
