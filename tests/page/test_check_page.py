"""The page of a check in a real browser: the slider's numbers are Python's, the tables can be searched."""

from __future__ import annotations

import numpy as np
import pytest

import gonio


@pytest.fixture(scope="module")
def made():
    """A table with queries and judgements, checked against an old one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 16))
    Q = X[:60] + 0.6 * rng.normal(size=(60, 16))
    qrels = {str(i): {str(i): 1, str((i + 7) % 400): 1} for i in range(60)}
    c = gonio.check(X, Q, was=X + 0.5 * rng.normal(size=X.shape), qrels=qrels)
    return X, Q, c


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_the_slider_moves_precision_recall_and_false_alarms(opened, accessible, made):
    X, Q, c = made
    text = c.to_html()
    assert len(text) < 300_000
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
        p = opened(text, viewport={"width": width, "height": 800}, color_scheme=scheme)
        p.wait_for_selector("html[data-ready=yes]", state="attached")
        assert p.evaluate("document.documentElement.scrollWidth") <= width
        accessible(p)
    S = unit(Q) @ unit(X).T
    lists = np.sort(-S, axis=1)[:, :100]
    good = np.zeros_like(S, bool)
    for i in range(60):
        good[i, [i, (i + 7) % 400]] = True
    for step in (40, 100, 130):
        p.locator("#threshold").evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", step)
        found = p.evaluate(f"gonioThreshold({step})")
        at = found["at"]
        assert abs(found["alarms"] - (at <= S).mean()) < 2e-3
        in_list = np.minimum(1, -lists[:, -1:]) - 1e-9 <= S  # a threshold cuts the first hundred of each list
        kept = (at <= S) & in_list
        assert abs(found["recall"] - (kept & good).sum() / good.sum()) < 1e-9
        if kept.any():
            assert abs(found["precision"] - (kept & good).sum() / kept.sum()) < 1e-9
        p.wait_for_timeout(60)
        assert (
            p.locator("#recall").inner_text() == f"{100 * found['recall']:.{3 if 0 < found['recall'] < 0.01 else 1}f} %"
        )


def test_documents_can_be_searched_and_filtered(opened, made):
    X, _, c = made
    p = opened(c.to_html())
    p.wait_for_selector("html[data-ready=yes]", state="attached")
    busiest = c["hubs"].data["busiest"]
    idle, moved = c["unfound"].data["ids"], c["drift"].data["moved"]
    named = [*(x["id"] for x in busiest), *idle]
    names = p.evaluate("gonio.data.names")
    assert names[: len(named)] == named
    assert set(names) <= {str(i) for i in range(len(X))}
    assert p.evaluate("gonio.data.columns[0].values").__getitem__(slice(len(named))) == [
        *(x["lists"] for x in busiest),
        *(0 for _ in idle),
    ]
    heads = [x.strip() for x in p.locator("#rows-head th").all_inner_texts()]
    assert heads == ["document", "place", "in lists", "% of neighbours kept"]
    kept = {str(x["id"]): 100 * x["kept"] for x in moved}
    found = dict(zip(names, p.evaluate("gonio.data.columns[1].values"), strict=True))
    assert {k for k, v in found.items() if v is not None} == set(kept)
    assert all(abs(found[k] - v) < 0.06 for k, v in kept.items())
    p.get_by_role("button", name=f"moved most {len(moved)}").click()
    assert sorted(names[i] for i in p.evaluate("gonio.view")) == sorted(kept)
    p.locator(".tools [data-filter='in no list']").click()
    assert [names[i] for i in p.evaluate("gonio.view")] == idle
    with p.expect_download() as got:
        p.locator(".tools [data-csv=view]").click()
    assert got.value.suggested_filename == "documents.csv"
    p.locator(".tools [data-filter=all]").click()
    assert p.locator("#rows-body tr[data-row='0'] td").all_inner_texts()[:2] == [busiest[0]["id"], "1"]
    assert p.evaluate("gonio.csv()").splitlines()[:2] == [
        "document,place,lists,kept",
        f"{busiest[0]['id']},1,{busiest[0]['lists']},",
    ]
    p.locator("#search").fill("#4")
    p.wait_for_timeout(100)
    assert p.evaluate("gonio.view") == [3]
    p.locator("#search").fill(busiest[3]["id"])
    p.wait_for_timeout(100)
    assert 3 in p.evaluate("gonio.view")
    assert moved
    commands = p.locator("section[aria-labelledby=sure] > p > code").all_inner_texts()
    assert commands
    assert all(x.startswith("gonio.check(X, Q") for x in commands)
    everything = p.locator("main").text_content()
    for f in c.findings:
        assert f.title in everything or f.state == "fine", f.key


def test_a_check_without_judgements_still_tells_false_alarms(opened, made):
    p = opened(gonio.check(made[0]).to_html())
    assert p.locator("#precision").count() == 0
    assert p.locator("#alarms").inner_text().endswith("%")


def test_printed_a_check_opens_its_lists_and_closes_them_again(opened, made):
    for c in (made[2], gonio.check(made[0])):
        p = opened(c.to_html())
        p.wait_for_selector("html[data-ready=yes]", state="attached")
        p.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert p.locator("details:not([open])").count() == 0
        assert p.locator("#rows-body [data-row]").count() == 200
        p.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert p.locator("details[open]").count() == 0
        assert p.pdf().startswith(b"%PDF")
