"""The report in a real browser: every control, and every number against Python's own."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gonio
from gonio import Head, Source, audit
from gonio.core.packed_page_data import Packed, unpack_script
from gonio.findings.label_table import LabelTable

HOSTILE = [
    "<script>document.title='no'</script>", "<img src=x onerror=alert(1)>", "‮gnp.exe", "", "日本語", "😀" * 30, "a" * 500,
    "tab\there", "line\nbreak", "&amp;", "\x00null", "' onclick='x",
]  # fmt: skip


@pytest.fixture(scope="module")
def made():
    """A head of 300 labels, of which many never win, some are twins and one is zero, with its audit."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(300, 5))
    W[10], W[11], W[20] = W[12], W[12], 0
    head = Head(
        W, link="softmax", labels=[f"label {i}" for i in range(300)], source=Source("m.npz", "made", typed="m.npz")
    )
    F = rng.normal(size=(400, 5))
    return head, F, audit(head, embeddings=F, pairs=[("label 3", "label 7"), ("label 5", "label 100")])


@pytest.fixture(scope="module")
def text(made):
    return made[2].to_html()


def ready(p):
    p.wait_for_selector("html[data-ready=yes]", state="attached")
    return p


def until(p, true):
    """Wait until an expression holds; the page's policy forbids the browser's own way of waiting."""
    for _ in range(100):
        if p.evaluate(true):
            return
        p.wait_for_timeout(30)
    raise AssertionError(f"never true: {true}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_reads_well_everywhere_and_axe_finds_nothing(opened, accessible, text, scheme, width):
    p = ready(opened(text, viewport={"width": width, "height": 800}, color_scheme=scheme))
    assert p.locator("h1").count() == 1
    assert p.evaluate("document.documentElement.scrollWidth") <= width
    paper, ink = p.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    light = lambda c: sum(int(x) for x in c[4:-1].split(",")) / 3  # noqa: E731
    assert (light(paper) > 128) == (scheme == "light")
    assert abs(light(paper) - light(ink)) > 150
    accessible(p)


def test_the_first_screen_is_what_to_act_on(opened, made, text):
    p = ready(opened(text, viewport={"width": 1280, "height": 800}))
    boxes = p.locator("article.box.warning")
    assert boxes.first.locator("h2").inner_text() == made[2]["never-wins"].title
    assert made[2]["twins"].title in boxes.first.inner_text()  # one cause, one box
    assert p.locator("p.fine").inner_text().startswith("fine: ")
    assert boxes.first.bounding_box()["y"] < 300
    everything = p.locator("main").text_content()
    for f in made[2].findings:
        assert f.title in everything or f.state == "fine" or f.key == "single-cosine", f.key
    assert made[2]["single-cosine"].title not in everything  # true of every such head: the glossary says it
    assert "the cosine of two different rows can be anything" in p.locator("dl").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_factor_models_page_speaks_of_items_and_users(opened, accessible, scheme, width):
    rng = np.random.default_rng(3)
    users, items = rng.normal(size=(80, 6)), rng.normal(size=(60, 6))
    items[4] = items[5]
    found = audit(gonio.load((users, items)))
    p = ready(opened(found.to_html(), viewport={"width": width, "height": 800}, color_scheme=scheme))
    said = p.locator("main").inner_text()
    assert p.locator("h1").inner_text() == "users and items"
    assert "60 items x 6 · 80 users" in said
    p.evaluate("for (const x of document.querySelectorAll('details')) x.open = true")
    everything = p.locator("main").inner_text()
    assert not re.findall(r".*(?<!-)\blabels?\b.*", everything)
    assert p.evaluate("document.documentElement.scrollWidth") <= width
    accessible(p)


def test_the_table_holds_every_label_with_pythons_numbers(opened, made, text):
    head, F, _ = made
    p = ready(opened(text))
    d = p.evaluate("({names: gonio.data.names, columns: gonio.data.columns, flags: gonio.data.flags})")
    assert d["names"] == list(head.labels)
    column = {c["key"]: [c["words"][v] for v in c["values"]] if "words" in c else c["values"] for c in d["columns"]}
    wins = gonio.can_win(head)
    assert d["flags"]["never"] == wins.never.tolist()
    assert d["flags"]["twins"] == [10, 11, 12]
    assert d["flags"]["zero"] == [20]
    assert column["can_win"] == [
        "with equals" if s.answer == "yes" and i in (10, 11, 12) else s.answer for i, s in enumerate(wins.status)
    ]
    assert np.allclose(column["length"], head.norms, rtol=1e-3)
    assert column["on_top"] == np.bincount(np.argmax(head.logits(F), axis=1), minlength=300).tolist()
    C = np.corrcoef((head.logits(F) - head.logits(F).mean(axis=1, keepdims=True)).T)
    for i in (0, 5, 100):
        j = column["nearest"][i]
        c = head.W[i] @ head.W[j] / head.norms[i] / head.norms[j]
        assert abs(column["cosine"][i] - c) < 1e-4
        assert abs(column["value"][i] - C[i, column["nearest_by_measure"][i]]) < 1e-4
        assert column["nearest_by_measure"][i] == np.argsort(-C[i])[1]


def test_search_sort_and_filter_draw_what_they_say(opened, made, text):
    p = ready(opened(text))
    rows = "[...document.querySelectorAll('#rows-body [data-row]')].map((x) => Number(x.dataset.row))"
    assert p.evaluate(rows)[:3] == [0, 1, 2]
    assert len(p.evaluate(rows)) < 80  # only what is in sight
    p.locator("#search").fill("label 29")
    until(p, "gonio.view.length === 11")
    assert p.evaluate("gonio.view") == [29, *range(290, 300)]
    p.locator("#search").fill("#17")
    until(p, "gonio.view.length === 1")
    assert p.evaluate("gonio.view") == [17]
    p.locator("#search").fill("")
    p.get_by_role("button", name="length", exact=True).click()
    order = np.argsort(made[0].norms, kind="stable")
    assert p.evaluate("gonio.view.slice(0, 5)") == order[:5].tolist()
    p.get_by_role("button", name="length", exact=True).click()
    assert p.evaluate("gonio.view.slice(0, 5)") == order[::-1][:5].tolist()
    assert p.locator("#rows-head th[aria-sort=descending]").inner_text() == "length"
    p.locator(".tools [data-filter=twins]").click()
    assert sorted(p.evaluate("gonio.view")) == [10, 11, 12]
    assert p.locator("#rows-count").inner_text() == "3 shown"
    p.locator(".tools [data-filter=all]").click()
    p.locator("#rows-box").evaluate("(e) => { e.scrollTop = 5000; }")
    until(p, "Number(document.querySelector('#rows-body [data-row]').getAttribute('aria-rowindex')) > 100")


def test_copy_and_csv_give_the_labels_shown(opened, made, text):
    p = ready(opened(text, permissions=["clipboard-read", "clipboard-write"]))
    never = gonio.can_win(made[0]).never
    p.locator("article [data-copy-labels=never]").click()
    p.locator("article [data-copy-labels=never]", has_text="copied").wait_for()
    assert p.evaluate("navigator.clipboard.readText()").splitlines() == [made[0].labels[i] for i in never]
    with p.expect_download() as got:
        p.locator("article [data-csv=never]").click()
    found = list(csv.DictReader(io.StringIO(Path(got.value.path()).read_bytes().decode("utf-8-sig"), newline="")))
    assert [int(r["row"]) for r in found] == never.tolist()
    assert {r["can_win"] for r in found} == {"no"}
    assert got.value.suggested_filename == "never.csv"


def test_every_button_that_copies_or_saves_gives_what_it_stands_by(opened, made, text):
    p = ready(opened(text, permissions=["clipboard-read", "clipboard-write"]))
    said = lambda: p.evaluate("navigator.clipboard.readText()")  # noqa: E731
    p.locator("#pair-copy").click()
    p.locator("#pair-copy", has_text="copied").wait_for()
    assert said() == "gonio alike m.npz --embeddings FILE 'label 3' 'label 7'"
    commands = p.locator("section[aria-labelledby=sure] [data-copy]")
    for k in range(commands.count()):
        commands.nth(k).click()
        commands.nth(k).filter(has_text="copied").wait_for()
        assert f"$ {said()}" == commands.nth(k).locator("xpath=..").locator("code").inner_text()
    p.locator("#search").fill("label 29")
    until(p, "gonio.view.length === 11")
    p.get_by_role("button", name="label", exact=True).click()
    p.get_by_role("button", name="label", exact=True).click()
    p.locator(".tools [data-copy-labels=view]").click()
    p.locator(".tools [data-copy-labels=view]", has_text="copied").wait_for()
    assert said().splitlines() == sorted(["label 29", *(f"label {i}" for i in range(290, 300))], reverse=True)
    with p.expect_download() as got:
        p.locator(".tools [data-csv=view]").click()
    assert got.value.suggested_filename == "labels.csv"
    assert len(Path(got.value.path()).read_bytes().splitlines()) == 12
    why = p.locator("article.box.warning details").first
    why.locator("summary").click()
    assert made[2]["never-wins"].says in why.inner_text()
    p.locator("article [data-filter=never]").click()
    assert sorted(p.evaluate("gonio.view")) == gonio.can_win(made[0]).never.tolist()


def test_a_link_to_a_label_chooses_it(opened, text):
    p = ready(opened(text, "#label=label%20250"))
    assert p.evaluate("gonio.row") == 250
    assert p.locator("#chosen-name").inner_text() == "label 250"
    assert p.locator("#rows-body tr.on").get_attribute("data-row") == "250"
    p.locator("#search").fill("label 77")
    until(p, "gonio.view.length === 1")
    p.locator("#rows-body a").first.click()
    until(p, "gonio.row === 77")
    assert p.url.endswith("#label=label%2077")


def test_the_pair_box_answers_for_what_is_stored_and_says_so_of_the_rest(opened, made, text):
    head, F, a = made
    p = ready(opened(text))
    assert [p.locator(f"#pair-{x}").input_value() for x in "ab"] == ["label 3", "label 7"]
    said = gonio.alike(head, 3, 7, embeddings=F)
    assert abs(float(p.locator("#pair-stored").inner_text()) - said.cosine) < 1e-4
    assert abs(float(p.locator("#pair-instead").inner_text()) - said.instead[1]) < 1e-4
    interval = p.evaluate("gonio.pair(3, 7).interval")
    assert np.allclose(interval, said.instead[2], atol=1e-4)
    assert "[-1, 1]" in p.locator("#pair-reach").inner_text()
    assert p.locator("#pair-line").inner_text() == "$ gonio alike m.npz --embeddings FILE 'label 3' 'label 7'"
    near = a.labels.columns["nearest"][50]
    p.locator("#pair-a").fill("label 50")
    p.locator("#pair-b").fill(f"label {near}")
    c = head.W[50] @ head.W[near] / head.norms[50] / head.norms[near]
    assert abs(float(p.locator("#pair-stored").inner_text()) - c) < 1e-4
    far = int(np.argmin(head.W @ head.W[50]))
    p.locator("#pair-b").fill(f"label {far}")
    assert "not stored" in p.locator("#pair-says").inner_text()
    assert not p.locator("#pair-known").is_visible()
    assert p.evaluate("gonio.data.names[9] = 'Ġdog', gonio.index(' dog')") == 9
    p.locator("#pair-b").fill("nobody")
    assert "Name two labels" in p.locator("#pair-says").inner_text()


def test_with_the_rows_any_pair_is_answered_in_the_page(opened, made):
    head, F, a = made
    p = ready(opened(a.to_html(embed_rows=True)))
    for i, j in ((50, 3), (8, 299), (120, 121)):
        c = head.W[i] @ head.W[j] / head.norms[i] / head.norms[j]
        found = p.evaluate(f"gonio.pair({i}, {j})")
        assert abs(found["cosine"] - c) < 2e-3
        assert abs(found["instead"] - gonio.alike(head, i, j, embeddings=F).instead[1]) < 2e-3
    p.locator("#pair-a").fill("#50")
    p.locator("#pair-b").fill("#3")
    assert "11 bits" in p.locator("#pair-from").inner_text()
    wide = audit(Head(np.random.default_rng(0).normal(size=(1300, 500)), link="cosine"))
    with pytest.raises(gonio.GonioError, match="--pairs FILE"):
        wide.to_html(embed_rows=True)


def test_printed_the_lists_are_open_and_at_most_two_hundred_rows_are_drawn(opened, text):
    p = ready(opened(text))
    p.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert p.locator("#rows-body [data-row]").count() == 200
    assert p.locator("details:not([open])").count() == 0
    assert "200 of 300" in p.locator("#rows-count").inner_text()
    p.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert p.locator("details[open]").count() == 0
    p.emulate_media(media="print")
    assert p.locator(".tools").first.is_hidden()
    assert p.locator("#rows-box").evaluate("(e) => getComputedStyle(e).overflow") == "visible"
    p.emulate_media(media="screen")
    seen = []
    p.expose_function("printed", lambda *x: seen.append(x))
    p.evaluate(
        "window.addEventListener('beforeprint', () => printed(document.querySelectorAll('#rows-body [data-row]').length, "
        "document.querySelectorAll('details:not([open])').length, document.documentElement.scrollHeight))"
    )
    pages = p.pdf()
    assert pages.startswith(b"%PDF")
    rows, closed, _ = seen[0]
    assert (rows, closed) == (200, 0)
    assert len(re.findall(rb"/Type\s*/Page\b", pages)) >= 4  # 200 rows are drawn, not one screen of them
    assert p.locator("details[open]").count() == 0


def test_hostile_names_are_text_on_pages_and_cards(opened):
    source = Source(
        "<img src=x onerror=alert(2)>", "made", decided={"link": "<u>under</u>"}, assumed=frozenset({"link"})
    )
    W = np.random.default_rng(0).normal(size=(12, 3))
    head = Head(W, link="softmax", labels=HOSTILE, source=source)
    a = audit(head, embeddings=np.random.default_rng(1).normal(size=(100, 3)), pairs=[(0, 1), (2, 8), (11, 1)])
    p = ready(opened(a.to_html()))
    for _ in range(2):
        assert p.locator("img").count() == 0
        assert p.locator("u").count() == 0
        assert "\u202e" not in p.locator("main").inner_text()
        assert p.title() != "no"
        p = opened(f"<main>{a._repr_html_()}{gonio.can_win(head)._repr_html_()}</main>")


def test_only_the_pages_own_script_and_style_may_run(browser, tmp_path, text):
    assert "default-src 'none'; script-src 'sha256-" in html.unescape(text)
    assert "http" not in text.replace("http-equiv", "").split("<script>")[0]
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    p = browser.new_page()
    p.goto((tmp_path / "page.html").as_uri())
    p.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.bad = 1'; "
        "document.addEventListener('securitypolicyviolation', () => { window.refused = 1; }); document.body.append(s); }"
    )
    until(p, "window.refused === 1")
    assert p.evaluate("window.bad") is None
    p.close()


def test_packed_numbers_are_read_back(opened):
    lay = Packed()
    whole = [0, 254, None, 255, 65_535, 49_151]
    decimal = [
        0.0,
        1.0,
        -1.0,
        0.99999999,
        -0.99999999,
        None,
        0.51384,
        -0.51384,
        3.2e-7,
        12_345,
        99_999_999,
        6.02e23,
        1e300,
        5,
    ]
    text = lay.text(
        {"w": lay.whole(whole), "d": [lay.decimal(decimal)], "small": lay.whole([1, None]), "r": lay.raw(b"<&>")}
    )
    assert not set("<>&") & set(text)
    p = opened(f"<script>{unpack_script()}</script><p>a page</p>")
    d = p.evaluate("async (t) => { const d = await unpack(t); return { ...d, r: [...d.r] }; }", text)
    assert d["w"] == whole
    assert d["small"] == [1, None]
    assert d["r"] == list(b"<&>")
    exact = [
        0.0,
        1.0,
        -1.0,
        0.99999999,
        -0.99999999,
        None,
        0.5138,
        -0.5138,
        3.2e-7,
        12_345,
        99_999_999,
        6.02e23,
        1e300,
        5,
    ]
    assert [x is None for x in d["d"][0]] == [x is None for x in exact]
    assert all(x is None or abs(x - y) <= 1e-15 * abs(y) for x, y in zip(d["d"][0], exact, strict=True))


def test_fifty_thousand_labels_stay_within_their_megabytes(opened, made):
    rng = np.random.default_rng(0)
    n = 49_152
    words = [f"token{k:x}" for k in rng.permutation(n)]
    numbers = lambda low, high: [float(f"{x:.5g}") for x in rng.uniform(low, high, n)]  # noqa: E731
    near = rng.integers(0, n, n).tolist()
    columns = {
        "label": words, "can_win": ["yes"] * n, "margin": numbers(0, 9), "length": numbers(1, 5),
        "in_lists": rng.poisson(10, n).tolist(), "nearest": near, "cosine": numbers(0.3, 1),
        "nearest_by_measure": rng.integers(0, n, n).tolist(), "value": numbers(0.1, 1),
    }  # fmt: skip
    stored = {"k": 1, "index": near, "cosine": columns["cosine"], "value": numbers(0.1, 1)}
    head = Head(rng.normal(size=(n, 4)).astype(np.float32), link="softmax", labels=words)
    table = LabelTable(columns, {"hubs": list(range(0, n, 20))}, stored, (), "whitened-centred cosine")
    found = replace(made[2], head=head, labels=table)
    text = found.to_html()
    assert len(text.encode()) < 1_200_000
    p = ready(opened(text))
    assert p.evaluate("gonio.data.names.length") == n
    p.locator("#search").fill(words[31_415])
    until(p, "gonio.view.length >= 1 && gonio.view.length < 100")
    assert 31_415 in p.evaluate("gonio.view")
    for key, off in (("nearest", 0), ("nearest_by_measure", 0), ("cosine", 1e-4), ("value", 1e-4), ("margin", 1e-3)):
        value = p.evaluate(f"gonio.data.columns.find((c) => c.key === '{key}').values[31415]")
        assert abs(value - columns[key][31_415]) <= off, key
    assert len(json.loads(found.to_json())["labels"]["columns"]["label"]) == n
