"""What the package says of itself: one version, a Python that is tested, extras that exist, tools pinned."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from gonio import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def test_the_changelog_begins_with_this_version():
    assert re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(), re.M)[1] == __version__


def test_the_classifiers_name_the_pythons_from_the_oldest_on():
    told = sorted(c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c))
    assert told == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={told[0]}"
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "src" / "gonio" / "py.typed").exists()


@pytest.mark.parametrize("extra", ["lint", "docs", "package"])
def test_tools_are_pinned_by_version(extra):
    assert [x for x in EXTRAS[extra] if not re.fullmatch(r"[\w-]+==[\d.]+", x)] == []


def test_every_extra_that_an_error_or_a_page_names_exists():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    named = {
        x
        for p in pages
        for group in re.findall(r"pip install '(?:gonio|\.)\[([\w,]+)\]'", p.read_text(encoding="utf-8"))
        for x in group.split(",")
    }
    assert named
    assert named <= set(EXTRAS)


def test_the_entry_points_lead_to_what_exists():
    import pydoc

    places = [*PROJECT["scripts"].values(), *PROJECT["entry-points"]["pytest11"].values()]
    assert [p for p in places if pydoc.locate(p.replace(":", ".")) is None] == []


def test_no_address_of_the_outside_is_in_the_metadata():
    assert "urls" not in PROJECT
    assert not re.search(r"https?://", (ROOT / "pyproject.toml").read_text())
