"""The interactive page in a real browser: cosines run, predictions stand still."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio import GonioError, Head
from gonio.explorer import page, plane
from gonio.explorer.presets import presets

PRESETS = [p["name"] for p in presets()]


def drag(p, dx, dy):
    box = p.locator("#rows").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    p.mouse.move(x, y)
    p.mouse.down()
    p.mouse.move(x + dx, y + dy, steps=5)
    p.mouse.up()
    p.wait_for_timeout(50)


def dial(p, value):
    p.eval_on_selector("#dial", "(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", value)


def test_dragging_moves_the_cosine_and_no_probability(opened):
    p = opened(page())
    p.evaluate("gonio.state.pointer = [0.7, -0.4]; gonio.show()")
    before, cosine = p.evaluate("gonio.probabilities()"), p.evaluate("gonio.cosine()")
    wins = p.evaluate("gonio.winners()")
    drag(p, 60, -35)
    p.evaluate("gonio.state.pointer = [0.7, -0.4]; gonio.show()")
    assert abs(p.evaluate("gonio.cosine()") - cosine) > 0.01
    assert np.abs(np.array(before) - p.evaluate("gonio.probabilities()")).max() < 1e-14
    assert p.evaluate("gonio.largestChange()") < 1e-13
    assert p.evaluate("gonio.winners()") == wins
    assert float(p.locator("#change").inner_text()) < 1e-13


def test_the_slider_reaches_minus_one_and_plus_one_and_what_is_between(opened):
    p = opened(page())
    for c in (-1, -0.5, 0, 0.25, 0.999, 1):
        dial(p, c)
        assert abs(p.evaluate("gonio.cosine()") - c) < 2e-3
        assert abs(float(p.locator("#cosine").inner_text()) - c) < 2e-3
        assert p.evaluate("gonio.largestChange()") < 1e-9


def test_for_a_sigmoid_head_the_same_change_is_seen(opened):
    p = opened(page())
    p.select_option("#link", "sigmoid")
    dial(p, -1)
    assert p.evaluate("gonio.largestChange()") > 0.1


FACTS = {
    "Figure 1 b": ((0, 1), 0.8),
    "Figure 1 c": ((0, 1), -1),
    "Figure 1 d": ((0, 1), 1),
    "Figure 2, left": ((2, 4), 0.8),
    "Figure 2, right": ((1, 3), 0.805),
}


@pytest.mark.parametrize("name", FACTS)
def test_the_presets_are_the_papers(opened, name):
    p = opened(page())
    p.select_option("#preset", label=name)
    (a, b), value = FACTS[name]
    assert p.evaluate("gonio.state.pair") == [a, b]
    assert abs(p.evaluate("gonio.cosine()") - value) < 1e-9


def test_a_shorter_vector_loses_its_region_and_keeps_its_cosines(opened):
    p = opened(page())
    p.select_option("#preset", label="Figure 3, first model")
    assert 2 in p.evaluate("gonio.winners()")
    cosine = p.evaluate("gonio.cosine()")
    p.eval_on_selector("#stretch", "e => { e.value = 0.7; e.dispatchEvent(new Event('input')); }")
    assert 2 not in p.evaluate("gonio.winners()")
    assert abs(p.evaluate("gonio.cosine()") - cosine) < 1e-12
    p.eval_on_selector("#stretch", "e => { e.value = 0.72; e.dispatchEvent(new Event('input')); }")
    assert 2 in p.evaluate("gonio.winners()")
    p.select_option("#preset", label="Figure 3, second model")
    assert 2 not in p.evaluate("gonio.winners()")


def test_keys_and_every_preset_work_on_a_phone_in_the_dark(opened):
    p = opened(page(), viewport={"width": 390, "height": 800}, color_scheme="dark", has_touch=True)
    for name in PRESETS:
        p.select_option("#preset", label=name)
        assert p.locator("#story").inner_text()
    p.locator("#rows").focus()
    p.keyboard.press("ArrowRight")
    assert p.evaluate("Math.hypot(...gonio.state.v)") > 0
    p.locator("#inputs").focus()
    at = p.evaluate("gonio.state.pointer[1]")
    p.keyboard.press("ArrowUp")
    assert p.evaluate("gonio.state.pointer[1]") > at
    assert p.evaluate("document.documentElement.scrollWidth") <= 390
    p.locator("#next").click()
    assert p.locator("#preset").input_value() == "0"


def test_a_real_heads_plane_gives_its_own_probabilities(opened):
    rng = np.random.default_rng(0)
    W, b = rng.normal(size=(200, 16)), rng.normal(size=200) / 4
    head = Head(W, b, link="softmax", labels=[f"l{i}" for i in range(200)])
    p = opened(page(head, ("l3", "l5", "l8")))
    shown = plane(head, ("l3", "l5", "l8"))
    kept = [head.index(x) for x in shown["labels"]]
    assert kept[:3] == [3, 5, 8]
    # The plane's own basis, found again from the three rows: an input of the plane gives the head's own probabilities.
    Q = np.linalg.svd((W[[5, 8]] - W[3]).T, full_matrices=False)[0]
    x = gonio.can_top(head, ["l3", "l5", "l8"]).certificate.x + Q @ p.evaluate("gonio.state.pointer")
    scores = W[kept] @ x + b[kept]
    expected = np.exp(scores - scores.max())
    assert np.abs(expected / expected.sum() - p.evaluate("gonio.probabilities()")).max() < 1e-12
    dial(p, -1)
    assert p.evaluate("gonio.largestChange()") < 1e-9


def test_hostile_labels_are_text(opened):
    names = ["</script><script>document.title='no'</script>", "<img src=x onerror=alert(1)>", "‮abc", "日本", "😀"]
    head = Head(np.random.default_rng(1).normal(size=(5, 3)), link="softmax", labels=names)
    p = opened(page(head))
    assert "cosine" in p.title()
    assert set(p.locator("#first option").all_inner_texts()) <= set(names)
    assert p.locator("img").count() == 0


def test_a_plane_that_cannot_be_drawn_is_refused_in_one_sentence():
    with pytest.raises(GonioError, match="three labels of width two"):
        page(Head([[1.0], [2.0], [3.0]], link="softmax"))
    with pytest.raises(GonioError, match="on one line"):
        page(Head([[1.0, 0], [2, 0], [3, 0]], link="softmax"), (0, 1, 2))
    with pytest.raises(GonioError, match="three different"):
        page(Head(np.eye(3), link="softmax"), (0, 1, 1))
    with pytest.raises(GonioError, match="cosine"):
        page(Head(np.eye(3), link="cosine"))
