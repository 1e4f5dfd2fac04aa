"""The built site in a browser, opened as files: it fits two widths, loads nothing from outside, and its search answers."""

from __future__ import annotations

from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "site"
PAGES = [
    "index.html", "start/classifier.html", "choose.html", "howto/ci.html", "ideas/play.html", "proofs.html", "atlas/index.html",
    "atlas/g2pM.html", "reference/api.html", "cli.html", "architecture.html", "limits.html",
]  # fmt: skip
pytestmark = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs")


@pytest.fixture
def visit(browser):
    """Open a page of the site at a width; requests to elsewhere and errors of scripts fail the test."""
    troubles, contexts = [], []

    def go(name: str, width: int):
        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda e: troubles.append(str(e)))
        page.on("console", lambda m: troubles.append(m.text) if m.type == "error" else None)
        page.on(
            "request",
            lambda r: None if r.url.startswith(("file:", "data:", "blob:", "about:")) else troubles.append(r.url),
        )
        page.goto((SITE / name).as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_its_window(visit, width):
    for name in PAGES:
        page = visit(name, width)
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, name


def test_the_search_finds_pages_without_a_server(visit):
    page = visit("index.html", 1280)
    page.click("input.md-search__input")
    page.keyboard.type("padded rows")  # the search answers to keys
    page.wait_for_selector(".md-search-result__item", state="attached")
    found = page.locator(".md-search-result__item a").evaluate_all("all => all.map(a => a.href)")
    assert any("howto/padded_rows.html" in x for x in found)
