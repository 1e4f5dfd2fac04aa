"""The report in a real browser: few labels and many, long, empty and hostile ones, phone and desktop, dark and light."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import Head, Source, audit
from gonio.report import charts

HOSTILE = [
    "<script>document.title='no'</script>", "<img src=x onerror=alert(1)>", "‮gnp.exe", "", "日本語", "😀" * 30, "a" * 500,
    "tab\there", "line\nbreak", "&amp;", "\x00null", "' onclick='x",
]  # fmt: skip


@pytest.fixture(scope="module")
def five():
    head = Head([[1, 0.5], [0.5, 1], [-1, 0.4], [-0.8, -0.8], [0.9, -1.2]], link="softmax", labels=list("abcde"))
    return audit(head, embeddings=np.random.default_rng(0).normal(size=(200, 2))).to_html()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_small_report_reads_well_everywhere(opened, five, scheme, width):
    p = opened(five, viewport={"width": width, "height": 900}, color_scheme=scheme)
    p.wait_for_timeout(300)
    assert p.locator("h1").count() == 1
    assert p.locator("section h2").count() >= 4
    assert p.evaluate("document.documentElement.scrollWidth") <= width
    assert p.locator("article.finding").count() > 8
    assert p.locator("figure").count() >= 2
    paper, ink = p.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    light = lambda c: sum(int(x) for x in c[4:-1].split(",")) / 3  # noqa: E731
    assert (light(paper) > 128) == (scheme == "light")
    assert abs(light(paper) - light(ink)) > 150


def test_hostile_labels_show_as_text(opened):
    head = Head(np.random.default_rng(0).normal(size=(12, 3)), link="softmax", labels=HOSTILE)
    p = opened(audit(head, embeddings=np.random.default_rng(1).normal(size=(100, 3))).to_html())
    p.wait_for_timeout(300)
    assert "gonio audit" in p.title()
    assert p.locator("main img").count() == 0
    assert "\u202e" not in p.locator("main").inner_text()


def test_hostile_names_in_titles_places_and_summaries_are_text(opened):
    source = Source("<img src=x onerror=alert(2)>", "made", decided={"link": "<u>under</u>"})
    W = np.random.default_rng(0).normal(size=(12, 3))
    head = Head(W, link="softmax", labels=HOSTILE, source=source)
    a = audit(head, embeddings=np.random.default_rng(1).normal(size=(100, 3)), pairs=[(0, 1), (2, 8), (11, 1)])
    for text in (a.to_html(), f"<main>{a._repr_html_()}</main>"):
        p = opened(text)
        p.wait_for_timeout(300)
        assert p.locator("img").count() == 0
        assert p.locator("u").count() == 0
        assert "document.title='no'" in p.locator("body").inner_text()
        assert "\u202e" not in p.locator("body").inner_text()
        assert p.title() != "no"


def test_the_hubs_are_named_on_their_axis(opened):
    rng = np.random.default_rng(0)
    W = rng.normal(size=(300, 40))
    W[:3] = 0.02 * rng.normal(size=(3, 40)) + W.mean(axis=0)  # near everything
    head = Head(W + 0.1, link="cosine", labels=["hub <one>", "$$x$$", "hub three", *(f"label {i}" for i in range(297))])
    f = audit(head)["hubness"]
    names = {h[0] for h in f.data["hubs"][:20]}
    axis = charts._hubs(f)[1].yaxis[0].major_label_overrides
    assert {t.text for t in axis.values()} == {n[:16] for n in names}


def test_a_head_of_fifty_thousand_labels_stays_below_two_megabytes(opened, monkeypatch):
    from gonio.findings import possible_outputs

    rng = np.random.default_rng(0)
    head = Head(
        rng.normal(size=(50_000, 16)).astype(np.float32), link="softmax", labels=[f"token {i}" for i in range(50_000)]
    )
    monkeypatch.setattr(possible_outputs, "TIES", 20)
    text = audit(head, embeddings=rng.normal(size=(300, 16))).to_html()
    assert len(text.encode()) < 2_000_000
    p = opened(text)
    p.wait_for_timeout(300)
    assert p.locator("figure").count() >= 3


def test_a_notebook_gets_a_summary(five):
    head = Head(np.eye(3), link="softmax")
    assert "<main>" in audit(head)._repr_html_()
    assert "https://" not in five.split("</head>")[1]
