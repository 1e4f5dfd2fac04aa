"""Every code block of the documents is run, and what the pages say is printed is printed.

`python -m tests.docs.test_blocks PAGE...` runs pages and writes what they print into them.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import tempfile
from pathlib import Path

import click
import pytest

from tests.docs.blocks import ROOT, commands_of, run_page
from tests.docs.preludes import PRELUDES

DOCS = ROOT / "docs"
WRITTEN = sorted([*(DOCS / "start").glob("*.md"), *(DOCS / "howto").glob("*.md"), *(DOCS / "ideas").glob("*.md")])


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_the_page_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    text = page.read_text(encoding="utf-8")
    got = run_page(text, tmp_path)
    told = "\n".join(
        difflib.unified_diff(text.splitlines(), got.splitlines(), "the page", "what is printed", n=1, lineterm="")
    )
    assert got == text, f"{told}\nrun: python -m tests.docs.test_blocks {page.relative_to(ROOT)}"


PYTHON = sorted(p for p in [ROOT / "README.md", *DOCS.glob("*.md")] if "```python" in p.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PYTHON, ids=lambda p: p.stem)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    """Pages that speak of `head`, `F` or files of the reader's are given small ones."""
    monkeypatch.chdir(tmp_path)
    assert page.stem in PRELUDES, f"{page.name} has Python: tell in tests/docs/preludes.py what it needs"
    prelude, changed = PRELUDES[page.stem]
    names: dict = {}
    prelude(names)
    text = page.read_text(encoding="utf-8")
    for line, (instead, why) in changed.items():
        assert line in text, f"{page.name} has no {line!r} any more, which {why}"
        text = text.replace(line, instead)
    run_page(text, tmp_path, names)


TYPED = commands_of([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))])


def test_every_command_in_a_block_has_options_that_exist():
    from gonio.cli import main

    assert len(TYPED) > 40
    for page, line in TYPED:
        words = re.findall(r"'[^']*'|\S+", line.partition(" || ")[0].partition(";")[0].replace("\\", ""))
        group: click.Command = main
        while words and isinstance(group, click.Group):
            names = words.pop(0).split("|")
            assert names[0] == "..." or all(n in group.commands for n in names), f"{page}: gonio {line}"
            if names[0] == "...":
                break
            group = group.commands[names[0]]
        known = {o for p in group.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
        typed = {w.strip("[]").partition("=")[0] for w in words if re.match(r"^\[?--\w", w)}
        assert typed <= known, f"{page}: gonio {line}: there is no {', '.join(typed - known)}"


if __name__ == "__main__":
    os.environ["COLUMNS"] = "110"
    for name in sys.argv[1:]:
        page = Path(name).resolve()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            page.write_text(run_page(page.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
            os.chdir(ROOT)
        print(name)
