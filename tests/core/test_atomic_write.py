"""Files appear whole or not at all, readable by others."""

from __future__ import annotations

import pytest

from gonio import GonioError
from gonio.core.atomic_write import whole


def test_a_file_appears_when_all_went_well_and_can_be_read_by_others(tmp_path):
    out = tmp_path / "page.html"
    out.write_text("old")
    with whole(out, "test") as beside:
        beside.write_text("new")
        assert out.read_text() == "old"
    assert out.read_text() == "new"
    assert out.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [out]


def test_nothing_is_left_behind_when_it_did_not(tmp_path):
    out = tmp_path / "page.html"
    for what, seen in ((KeyboardInterrupt(), KeyboardInterrupt), (OSError(28, "No space left"), GonioError)):
        with pytest.raises(seen), whole(out, "test") as beside:
            _half(beside, what)
    assert list(tmp_path.iterdir()) == []


def _half(path, then):
    path.write_text("half")
    raise then


def test_the_folder_must_exist(tmp_path):
    with pytest.raises(GonioError, match=r"none does not exist; make it"), whole(tmp_path / "none" / "x", "test"):
        pass
