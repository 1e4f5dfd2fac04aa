"""The commands `gonio explore` and `gonio reproduce`, run as a user runs them."""

from __future__ import annotations

import json
import webbrowser

import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main
from tests import real


def run(*arguments, code=0) -> str:
    done = CliRunner().invoke(main, [str(a) for a in arguments])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def opened(monkeypatch):
    """Addresses that were handed to the browser: the only thing of explore that a test must not do."""
    pages: list[str] = []
    monkeypatch.setattr(webbrowser, "open", pages.append)
    return pages


def test_plain_explore_writes_the_figures_and_opens_them(tmp_path, monkeypatch, opened):
    monkeypatch.chdir(tmp_path)
    assert run("explore").splitlines()[-1] == "written explore.html"
    assert opened == [(tmp_path / "explore.html").as_uri()]
    assert "Figure 1" in (tmp_path / "explore.html").read_text()


def test_explore_shows_the_plane_of_three_named_labels(tmp_path, opened):
    path = tmp_path / "m.npz"
    np.savez(path, W=np.random.default_rng(0).normal(size=(6, 4)), labels=np.array(list("abcdef")))
    out = tmp_path / "page.html"
    run("explore", path, "--link", "softmax", "--labels-of-plane", "b", "d", "f", "--html", out, "--no-open")
    assert not opened
    text = out.read_text()
    assert all(f'"{x}"' in text for x in "bdf")
    assert "no label" in run("explore", path, "--labels-of-plane", "b", "d", "zebra", "--html", out, code=2)
    assert "name the model too" in run("explore", "--labels-of-plane", "b", "d", "f", code=2)


def test_reproduce_prints_a_paper_beside_its_numbers_and_writes_the_gallery(tmp_path):
    real.wheel("g2pM")
    names = run("reproduce", "--list").split()
    assert "grivas-2022" in names
    said = run("reproduce", "grivas-2022", "--out", tmp_path / "gallery", "--format", "svg")
    assert "3 of 3 printed numbers found again" in said
    told = json.loads((tmp_path / "gallery" / "reproduction.json").read_text())
    assert "grivas-2022" in json.dumps(told)
    assert {p.suffix for p in (tmp_path / "gallery").rglob("*") if p.is_file()} >= {".html", ".json"}
    assert "no paper is called 'grivas'" in run("reproduce", "grivas", code=2)
