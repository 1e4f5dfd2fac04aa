"""The site, as far as it can be checked without its tools: what is made for it, and that it would load nothing from outside."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools import check_site, site_pages

from tests.contracts.test_layers import FLOORS

ROOT = Path(__file__).parents[2]


def test_the_architecture_page_is_the_tree_and_the_floors():
    page = site_pages.architecture()
    for room, floor in FLOORS.items():
        assert f"| {floor} | [{room}](#{room.strip('_')}) |" in page
    named = set(re.findall(r"^\| `([\w/.]+)` \|", page, re.MULTILINE))
    src = ROOT / "src" / "gonio"
    assert named == {str(p.relative_to(src)) for p in src.rglob("*.py")} - {"__init__.py"}


def test_the_reference_has_every_public_name_once():
    import gonio

    told = re.findall(r"^::: ([\w.]+)$", site_pages.reference(), re.MULTILINE)
    assert len(told) == len(set(told))
    rooms = {"diagnostics", "embeddings", "factors", "remedies", "similarity"}
    assert {x.rpartition(".")[2] for x in told} >= set(gonio.__all__) - rooms - {"GonioError", "__version__"}


def test_every_page_of_the_navigation_is_written_or_made_or_announced():
    text = (ROOT / "mkdocs.yml").read_text()
    may_come = set(re.search(r"may_come: \[(.*?)\]", text)[1].split(", "))
    named = set(re.findall(r"([\w/]+\.md)", text.partition("\nnav:")[2]))
    made = set(site_pages.pages())
    assert {p for p in named - made - may_come if not (ROOT / "docs" / p).exists()} == set()
    written = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    assert written <= named | made, "a page that nothing leads to: give it a place in mkdocs.yml"


def test_every_live_figure_stands_on_a_page_and_shows_a_step_of_the_explorer():
    from gonio.explorer.steps import steps

    keys = {s["key"] for s in steps()}
    for place, (state, words) in site_pages.FIGURES.items():
        assert (ROOT / "docs" / place).exists()
        assert re.match(r"step=(\w+)", state)[1] in keys
        assert words.endswith(".")


def test_no_address_of_the_outside_is_in_the_configuration():
    for name in (
        "mkdocs.yml",
        "action.yml",
        ".pre-commit-hooks.yaml",
        "docs/assets/site.css",
        "docs/assets/iframe-worker.js",
    ):
        assert not re.search(r"https?://", (ROOT / name).read_text()), name


def test_a_page_that_loads_from_outside_is_seen(tmp_path):
    cases = {
        "a.html": '<script src="https://x.test/a.js"></script>',
        "b.html": '<link href="//x.test/a.css" rel="stylesheet">',
        "c.css": "@import 'https://x.test/a.css';",
        "d.css": "a { background: url(http://x.test/a.png) }",
        "e.js": 'fetch("https://x.test/a.json")',
        "f.html": "<style>a { background: url('https://x.test/a.png') }</style>",
    }
    for name, text in cases.items():
        (tmp_path / name).write_text(text)
        assert check_site.outside(tmp_path / name), name
    fine = {"g.html": '<a href="b.html">b</a><script src="a.js"></script>', "h.js": "// nothing\nvar x = 1;"}
    for name, text in fine.items():
        (tmp_path / name).write_text(text)
        assert check_site.outside(tmp_path / name) == []


def test_the_hook_needs_no_package_beyond_the_sites_own():
    tree = ast.parse((ROOT / "tools" / "site_pages.py").read_text())
    named = {n.names[0].name.partition(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import)}
    named |= {n.module.partition(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {n for n in named if n not in sys.stdlib_module_names} == {"mkdocs"}


@pytest.mark.slow
def test_the_same_sources_make_the_same_site(tmp_path):
    """The site twice, byte for byte, where its tools are installed (make docs)."""
    python = ROOT / ".venv-docs" / "bin" / "python"
    if not python.exists():
        pytest.skip("the site's tools are absent: make docs installs them")
    trees = []
    for name in ("one", "two"):
        command = [python, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / name]
        subprocess.run(command, cwd=ROOT, check=True, env={"SOURCE_DATE_EPOCH": "0", "NO_MKDOCS_2_WARNING": "1"})
        files = (p for p in (tmp_path / name).rglob("*") if p.is_file())
        trees.append({p.relative_to(tmp_path / name): p.read_bytes() for p in files})
        assert check_site.main(tmp_path / name) == 0
        shutil.rmtree(tmp_path / name)
    assert trees[0] == trees[1]
