"""The documents say what the code does."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import gonio

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")
NOT_FORMATS = {
    "states_file",
    "added",
    "choose",
    "head_draft",
    "labels",
    "names",
    "reading",
    "sparse",
    "bounded_request",
}
NOT_FORMATS |= {"hub_name", "hub_store", "hub_cache", "hub_repository"}  # parts of `hub`


def test_every_loader_has_its_row_in_the_formats_page():
    page = (ROOT / "docs" / "formats.md").read_text()
    named = set(re.findall(r"`(\w+)`", "".join(row.split("|")[2] for row in page.splitlines() if row.count("|") == 5)))
    rooms = (ROOT / "src" / "gonio" / "files" / "read").iterdir()
    loaders = {p.stem for p in rooms if not p.stem.startswith("__")} - NOT_FORMATS | {"estimators"}
    assert loaders <= named
    assert named <= loaders


def test_the_readme_starts_with_the_two_commands():
    lines = [x.strip() for x in (ROOT / "README.md").read_text().splitlines() if x.strip()]
    assert lines[1].startswith("make demo")
    assert lines[2].startswith("make test")


MODULES = [m.name for m in pkgutil.walk_packages(gonio.__path__, "gonio.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_name_has_a_docstring_and_exists():
    for name in gonio.__all__:
        assert getattr(gonio, name).__doc__, name


@pytest.mark.parametrize("path", sorted((ROOT / "src").rglob("*.py")), ids=lambda p: p.name)
def test_every_module_says_what_it_is_for(path):
    assert path.read_text(encoding="utf-8").lstrip().startswith('"""')


def test_the_printed_invariance_table_is_the_one_in_the_code():
    from gonio.papers.invariance_table import TABLE

    page = (ROOT / "docs" / "gauge.md").read_text()
    for q in TABLE:
        assert f"| {q.name} | " + " | ".join("yes" if g in q.stays else "no" for g in "TMSRP") + " |" in page


def test_the_cli_page_is_what_help_prints():
    assert (ROOT / "docs" / "cli.md").read_text() == cli_page(), "run: python -m tests.contracts.test_docs"


def cli_page() -> str:
    """The command line reference, from --help."""
    import click

    from gonio.cli import main

    out = ["# The command line\n\nPrinted from `--help`; a test compares.\n"]
    settings = {"max_content_width": 110, "terminal_width": 110, "help_option_names": ["-h", "--help"]}
    top = click.Context(main, info_name="gonio", **settings)
    out.append(f"```\n{main.get_help(top)}\n```\n")

    def tell(group: click.Group, context: click.Context, path: str) -> None:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            command._help_option = None  # click keeps that of the first context: a test may have called it alone
            inner = click.Context(command, info_name=name, parent=context, **settings)
            out.append(f"## {path} {name}\n\n```\n{command.get_help(inner)}\n```\n")
            if isinstance(command, click.Group):
                tell(command, inner, f"{path} {name}")

    tell(main, top, "gonio")
    return "\n".join(out)


def test_the_theorem_page_is_the_register():
    assert (ROOT / "docs" / "theorems.md").read_text() == theorem_page(), "run: python -m tests.contracts.test_docs"


def theorem_page() -> str:
    """The register of claims, as a page."""
    import tomllib

    register = tomllib.loads((ROOT / "docs" / "theorems.toml").read_text())
    out = [
        "# What gonio claims\n\nMade from `theorems.toml`; a test compares. Each claim has a function that embodies it and a test that "
        "carries it.\n"
    ]
    claims = register.pop("claims")
    for paper, about in register.items():
        mine = {k: c for k, c in claims.items() if k.split(".")[0] == paper}
        if not mine:
            continue
        out.append(
            f"## {about['paper']}\n\n| key | number | claim | function | test | status |\n|---|---|---|---|---|---|"
        )
        for key, c in mine.items():
            test = c["test"].rsplit("::", 1)
            cells = (key, c["number"], c["statement"], f"`{c['function']}`", f"`{test[0]}`", c["status"])
            out.append("| " + " | ".join(x.replace("|", "\\|") for x in cells) + " |")
        out.append("")
    return "\n".join(out)


def test_every_test_and_function_that_the_papers_name_exists():
    """Each row of a reproduction names what computes it and what holds it: both are looked up, none is run."""
    import pydoc

    names = {
        c.value
        for path in (ROOT / "src/gonio/papers").glob("*.py")
        for c in ast.walk(ast.parse(path.read_text()))
        if isinstance(c, ast.Constant) and isinstance(c.value, str) and re.fullmatch(r"[\w./]+", c.value)
    }
    tests = {x for x in names if x.startswith("tests/")}
    functions = {x for x in names if re.fullmatch(r"gonio(\.\w+)+", x)}
    assert len(tests) > 10
    assert len(functions) > 20
    assert not [x for x in tests if not (ROOT / x).exists()]
    assert not [x for x in functions if pydoc.locate(x) is None]


def test_every_test_that_a_document_names_exists():
    named = {x for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")] for x in NAMED.findall(page.read_text())}
    assert len(named) > 20
    for path, test in named:
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), test


def test_every_link_in_the_documents_leads_somewhere():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


if __name__ == "__main__":
    (ROOT / "docs" / "cli.md").write_text(cli_page())
    (ROOT / "docs" / "theorems.md").write_text(theorem_page())
