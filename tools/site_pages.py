"""Pages of the site that are made, not written: a hook of mkdocs, run by `make docs`.

index         the README, its links made the site's
atlas/...     one page a model from docs/atlas/index.json, with its report where `make atlas` has made one
reference/api every public name, for mkdocstrings
architecture  the rooms and their floors, from the tree and from tests/contracts/test_layers.py
contributing, changelog, papers
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SRC, BUILT = ROOT / "src" / "gonio", ROOT / "build"
ROOMS = ("testing", "similarity", "remedies", "factors", "diagnostics", "embeddings")
PLAY = "ideas/explore.html"
FIGURES = {  # by page: the state of the explorer that it shows, and what to do there
    "gauge.md": (
        "step=softmax&cos=-0.9",
        "Drag the cosine of the two labels: the rows move, no region and no probability does.",
    ),
    "ideas/links.md": (
        "step=sigmoid&how=map&cos=-0.4",
        "The same rows as a multi-label head: a map of rows and inputs moves the cosine, no label set.",
    ),
    "ideas/inputs.md": (
        "step=inputs&scene=2",
        "Choose which inputs reach the head, and lengthen label 5: fewer inputs, fewer labels that can win.",
    ),
    "regions.md": (
        "step=length&length=0.6",
        "Lengthen and shorten label 3: its cosines stay, and below length 3.54 it can never win.",
    ),
    "proofs.md": (
        "step=length&length=0.6",
        "Label 3 is inside the hull of its neighbours: a mean of them is never below it. Lengthen it until it is not.",
    ),
    "patterns.md": (
        "step=ranking&scene=1",
        "Every line is a tie of two labels; every cell between lines is a ranking.",
    ),
}


def on_config(config: Any) -> Any:
    """Leave pages out of the navigation that are announced and not there yet."""
    absent = {p for p in config.extra["may_come"] if not (ROOT / "docs" / p).exists()}
    for section in config.nav:
        for name, inside in section.items():
            if isinstance(inside, list):
                section[name] = [x for x in inside if not (isinstance(x, dict) and absent & set(x.values()))]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made, and the pages that are shown inside others."""
    from mkdocs.structure.files import File

    for place, text in pages().items():
        files.append(File.generated(config, place, content=text))
    for place, path in shown().items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put a live figure under the first words of the pages that have one."""
    place = page.file.src_uri
    if place not in FIGURES or PLAY not in shown():
        return markdown
    state, words = FIGURES[place]
    address = f"{'' if place.startswith('ideas/') else 'ideas/'}explore.html#{state}"
    title, first, rest = [*markdown.split("\n\n", 2), "", ""][:3]
    return f"{title}\n\n{first}\n\n{frame(address, words)}\n\n*{words}*\n\n{rest}"


def on_post_build(config: Any) -> None:
    """Take out of the theme's scripts what they would fetch from elsewhere, which no page here asks for, and their maps."""
    assets = Path(config.site_dir) / "assets"
    for path in [*assets.rglob("*.map"), *(assets / "javascripts" / "lunr").rglob("*.js")]:  # lunr/: other languages
        path.unlink()
    for path in (assets / "javascripts").rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        # Notices in comments stay; the names of XML languages are never fetched.
        text = re.sub(r"/\*.*?\*/|https?://(?!www\.w3\.org)[^\s\"'`$]*", _notice_or_nothing, text, flags=re.DOTALL)
        path.write_text(re.sub(r"\n//# sourceMappingURL=\S+", "", text), encoding="utf-8")


def _notice_or_nothing(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith("/*") else ""


def pages() -> dict[str, str]:
    """Every made page by its place."""
    return {
        "index.md": readme(),
        "contributing.md": of_root("CONTRIBUTING.md"),
        "changelog.md": of_root("CHANGELOG.md"),
        "papers.md": papers(),
        "architecture.md": architecture(),
        "reference/api.md": reference(),
        "atlas/index.md": atlas_index(),
        **{f"atlas/{row['name']}.md": atlas_page(row) for row in atlas()},
    }


def shown() -> dict[str, Path]:
    """Whole pages that others show in a frame, as far as they were made: the explorer and the reports of the atlas."""
    made = {PLAY: BUILT / "site" / "explore.html"}
    made |= {f"atlas/reports/{row['name']}.html": BUILT / "atlas" / f"{row['name']}.html" for row in atlas()}
    return {place: path for place, path in made.items() if path.exists()}


def readme() -> str:
    """The README as the site's first page."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    text = text.replace("](CONTRIBUTING.md)", "](contributing.md)").replace("](CHANGELOG.md)", "](changelog.md)")
    text = text.replace("](SECURITY.md)", "](security.md)")
    return re.sub(r"`docs/(\w+)\.md`", r"[\1](\1.md)", text)


def of_root(name: str) -> str:
    """A page that lies beside the README."""
    return (
        (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](").replace("](SECURITY.md)", "](security.md)")
    )


def papers() -> str:
    """Where the reproduced papers are."""
    said = "Every figure and table of the source papers, drawn and printed again beside the papers' own numbers"
    made = "`gonio reproduce --out gallery` makes these pages."
    return f"# The papers, reproduced\n\n{said}: [the gallery](gallery/index.html). {made}\n\n{frame('gallery/index.html')}\n"


def frame(place: str, title: str = "") -> str:
    """A whole page inside another."""
    return f'<iframe class="page" src="{place}" title="{title or place}" loading="lazy"></iframe>'


def atlas() -> list[dict[str, Any]]:
    """The rows of the index."""
    path = ROOT / "docs" / "atlas" / "index.json"
    return json.loads(path.read_text(encoding="utf-8"))["models"] if path.exists() else []


def number(value: Any) -> str:
    """A number of the index, or a dash where the question makes no sense for that model."""
    return "–" if value is None else f"{value:,}"


def atlas_index() -> str:
    """The table of all models."""
    columns = ("never", "twins", "undertrained", "hubs", "undecided")
    head = f"| model | link | labels | {' | '.join(columns)} | what |\n|---|---|---:{'|---:' * len(columns)}|---|\n"
    rows = "".join(
        f"| [{r['name']}]({r['name']}.md) | {r['link']} | {r['labels']:,} | "
        f"{' | '.join(number(r[c]) for c in columns)} | {r['what']} |\n"
        for r in atlas()
    )
    return f"""---
hide: [navigation, toc]
---

# Atlas

Audits of real models that lie inside published packages, without any input of theirs: what their last layer says by itself.
`make atlas` makes them again; a test compares every number here with a new run. Each page has the proofs that it rests on.
A dash stands where the question does not arise for the link. *Never*: labels that no input can put on top, not even with their
equals. *Twins*: labels that share their row with another. *Undertrained*: rows that look least trained, candidates only. *Hubs*: labels in at
least twice as many lists of ten nearest by stored cosine as the mean. No weights are on these pages.

{head}{rows}"""


def atlas_page(r: dict[str, Any]) -> str:
    """One model."""
    report = f"reports/{r['name']}.html"
    there = f"atlas/{report}" in shown()
    facts = {
        "what": r["what"],
        "package": f"`{r['package']}`" + (f", `{r['member']}`" if r["member"] else ""),
        "head": f"{r['labels']:,} labels x {r['dim']}, link {r['link']}" + (f", {r['inputs']}" if r["inputs"] else ""),
        "never win": number(r["never"]),
        "undecided": number(r["undecided"]),
        "share a row": number(r["twins"]),
        "padded rows": number(r["padded"]) + (f", of which {number(r['padded_win'])} can win" if r["padded"] else ""),
        "remade by": f"`make fixtures`, then `{r['command']}`",
    }
    if r["proofs"]:
        facts["proofs"] = (
            f"[{r['proofs']:,} proofs](proofs/{r['name']}.npz) that a label never wins; `gonio verify MODEL FILE`"
        )
    table = "".join(f"| {k} | {v} |\n" for k, v in facts.items())
    sums = f"Digest of the head, which proofs name: `{r['digest']}`." + (
        f" SHA-256 of the proofs: `{r['proof_sha256']}`." if r["proofs"] else ""
    )
    warned = "".join(f"- {plain(w)}\n" for w in r["warnings"]) or "Nothing that is worth acting on.\n"
    told = (
        f"[Open the report alone]({report}).\n\n{frame(report, r['name'])}"
        if there
        else (f"`make atlas` writes the report; this site was built without it. Remake it: `{r['command']}`.")
    )
    return f"---\nhide: [navigation, toc]\n---\n\n# {r['name']}\n\n[All models](index.md)\n\n| | |\n|---|---|\n{table}\n{sums}\n\n## Worth acting on\n\n{warned}\n## The report\n\n{told}\n"


def plain(text: str) -> str:
    """A text in which markdown sees no marks."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)


def constants(path: Path) -> dict[str, Any]:
    """The plain values that a module gives to names at its top."""
    out = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                out[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return out


def reference() -> str:
    """Every public name of gonio and of its rooms, by the module that holds it."""
    names = constants(SRC / "__init__.py")["_LATER"]
    out = ["# Python\n\nWhat `import gonio` gives, and the rooms that users import from. Made from the docstrings.\n"]
    out.append("## gonio\n")
    out += [f"::: {module}.{name}\n" for module, held in names.items() for name in held]
    for room in ROOMS:
        held = constants(SRC / room / "__init__.py").get("__all__", [])
        out.append(f"## gonio.{room}\n\n{first_line(SRC / room / '__init__.py')}\n")
        out += [f"::: gonio.{room}.{name}\n" for name in held if not (SRC / room / name).exists()]
    return "\n".join(out)


def first_line(path: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0].replace("\n", " ")


def architecture() -> str:
    """The rooms by floor, each with its files and what they are for."""
    floors = constants(ROOT / "tests" / "contracts" / "test_layers.py")["FLOORS"]
    out = [
        "# Architecture\n\nMade from the tree and from the table that `tests/contracts/test_layers.py` holds every import to: a "
        "module imports only from lower floors or from its own room. Data goes one way: file or live model, head and states, "
        "facts, findings, page.\n\n| floor | room | files | lines | what |\n|---:|---|---:|---:|---|"
    ]
    rooms = sorted(floors, key=lambda r: (floors[r], r))
    for room in rooms:
        files = files_of(room)
        lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in files)
        told = first_line(files[0])
        out.append(f"| {floors[room]} | [{room}](#{room.strip('_')}) | {len(files)} | {lines:,} | {plain(told)} |")
    for room in rooms:
        out.append(f"\n## {room.strip('_')}\n\n| file | what |\n|---|---|")
        out += [f"| `{p.relative_to(SRC)}` | {plain(first_line(p))} |" for p in files_of(room)]
    return "\n".join(out) + "\n"


def files_of(room: str) -> list[Path]:
    """The modules of a room, its own docstring first."""
    if (SRC / f"{room}.py").exists():
        return [SRC / f"{room}.py"]
    return [
        SRC / room / "__init__.py",
        *sorted(p for p in (SRC / room).rglob("*.py") if p != SRC / room / "__init__.py"),
    ]
