"""A real browser, or a skip that says why."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    where = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if where is None:
        pytest.skip("no chromium on this machine")
    with sync.sync_playwright() as p:
        b = p.chromium.launch(executable_path=where, args=["--no-sandbox", "--disable-gpu"])
        yield b
        b.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a page of our own from disk: any console error, and any request to anywhere else, fails the test."""
    pages, troubles = [], []

    def go(text: str, **context):
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(text, encoding="utf-8")
        page = browser.new_context(**context).new_page()
        page.on("console", lambda m: troubles.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: troubles.append(str(e)))
        page.on("request", lambda r: troubles.append(r.url) if not r.url.startswith(path.as_uri()) else None)
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield go
    for page in pages:
        page.context.close()
    assert troubles == []
