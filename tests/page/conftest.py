"""A real browser, or a skip that says why."""

from __future__ import annotations

import shutil
import tempfile

import numpy as np
import pytest

from gonio import Head

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; make test installs it")
    where = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if where is None:
        pytest.skip("no chromium on this machine")
    with sync.sync_playwright() as p:
        b = p.chromium.launch(executable_path=where, args=FLAGS)
        yield b
        b.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a page of our own from disk: any console error, and any request to anywhere else, fails the test."""
    pages, troubles = [], []

    def go(text: str, anchor: str = "", **context):
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(text, encoding="utf-8")
        page = browser.new_context(**context).new_page()
        page.on("console", lambda m: troubles.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: troubles.append(str(e)))
        page.on("request", lambda r: troubles.append(r.url) if not r.url.startswith((path.as_uri(), "blob:")) else None)
        page.goto(path.as_uri() + anchor)
        pages.append(page)
        return page

    yield go
    for page in pages:
        page.context.close()
    assert troubles == []


@pytest.fixture
def accessible():
    """No violation that axe knows of."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed; make test does")

    def check(page):
        found = axe.Axe().run(page).response["violations"]
        assert not found, [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found]

    return check


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory() as place:
        yield place


@pytest.fixture(scope="module")
def wide():
    """A head wider than a plane, whose cosines the plane alone does not show."""
    rng = np.random.default_rng(2)
    W = rng.normal(size=(60, 12)) + 0.8
    F = rng.normal(size=(200, 12))
    return Head(W, link="softmax", labels=[f"l{i}" for i in range(60)]), F
