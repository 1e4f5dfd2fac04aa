"""The gallery's pages and the README's pictures are those that the present code makes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import pictures  # noqa: E402  tools are no package

GALLERY = ROOT / "docs" / "gallery"


def test_the_pages_are_what_the_record_gives(tmp_path):
    pictures.gallery(tmp_path)
    for made in tmp_path.iterdir():
        assert made.read_text() == (GALLERY / made.name).read_text(), f"{made.name}: run python tools/pictures.py"


def test_every_picture_of_the_index_is_there():
    text = (GALLERY / "index.html").read_text()
    named = re.findall(r'<img src="([^"]+)"', text)
    assert len(named) == text.count("<figure>") == len(json.loads((GALLERY / "reproduction.json").read_text()))
    assert all((GALLERY / x).exists() for x in named)


def test_the_pictures_were_made_from_the_present_pages():
    kept = json.loads((ROOT / "docs" / "pictures" / "made_from.json").read_text())
    assert kept == pictures.made_from(), "run python tools/pictures.py"
