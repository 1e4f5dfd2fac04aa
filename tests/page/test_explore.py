"""The interactive page in a real browser: cosines run, predictions stand still, and every number is Python's."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio import Head
from gonio.explorer import page
from gonio.explorer.figure_heads import FIGURE_1, FIGURE_3
from tests.page.driving import DRAWN, STILL, cosines, slide, softmax

W1 = np.array(FIGURE_1)


@pytest.fixture(scope="module")
def text():
    return page()


def test_dragging_moves_the_cosine_and_no_probability(opened, text):
    p = opened(text, **STILL)
    before, cosine, wins = p.evaluate("[gonio.probabilities(), gonio.cosine(), gonio.winners()]")
    x = np.array(p.evaluate("gonio.state.pointer"))
    assert np.abs(softmax(W1 @ x) - before).max() < 1e-14
    box = p.locator("#rows").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    p.mouse.move(x, y)
    p.mouse.down()
    p.mouse.move(x + 60, y - 35, steps=5)
    p.mouse.up()
    p.evaluate(DRAWN)
    v = np.array(p.evaluate("gonio.state.change.p"))
    assert abs(p.evaluate("gonio.cosine()") - cosines(W1 + v)[0, 1]) < 1e-12
    assert abs(p.evaluate("gonio.cosine()") - cosine) > 0.01
    assert np.abs(np.array(before) - p.evaluate("gonio.probabilities()")).max() < 1e-14
    assert p.evaluate("gonio.largestChange()") < 1e-13
    assert p.evaluate("gonio.winners()") == wins == [0, 1, 2, 3, 4]
    assert float(p.locator("#change").inner_text()) < 1e-13
    assert p.locator("#still").inner_text() == "still"


@pytest.mark.parametrize("target", [-1, -0.5, 0, 0.25, 0.999, 1])
def test_the_slider_adds_the_smallest_vector_that_reaches_the_cosine(opened, text, target):
    p = opened(text, **STILL)
    slide(p, "#dial", target)
    assert abs(p.evaluate("gonio.cosine()") - target) < 1e-9
    assert p.evaluate("gonio.largestChange()") < 1e-12
    moved = gonio.dial(Head(W1, link="softmax"), 0, 1, cosine=target)
    assert p.evaluate("gonio.added()") <= np.linalg.norm(moved.translation) * (1 + 1e-6)
    W = np.array(p.evaluate("gonio.head().arrows"))
    assert np.allclose(p.evaluate("gonio.gram()"), W @ W.T, atol=1e-9)


def test_on_load_the_cosine_sweeps_once_and_comes_home(opened, text):
    p = opened(text)
    assert p.evaluate("gonio.playing()")
    p.wait_for_timeout(500)
    assert abs(p.evaluate("gonio.cosine()") - 0.8) > 0.05
    assert p.evaluate("gonio.largestChange()") < 1e-12
    p.locator("#reset").click()
    assert not p.evaluate("gonio.playing()")
    assert not opened(text, **STILL).evaluate("gonio.playing()")


def test_a_sigmoid_head_morphs_under_a_vector_and_stands_still_under_a_map(opened, text):
    p = opened(text, **STILL)
    p.get_by_role("button", name="2 sigmoid").click()
    first = sorted(p.evaluate("gonio.sets()"))
    expected = gonio.label_sets(Head(W1, link="sigmoid"))
    assert first == sorted("".join("+" if s > 0 else "-" for s in row) for row in expected)
    assert p.locator("#wins").inner_text() == f"{len(expected)} label sets"
    slide(p, "#dial", -0.7)
    assert abs(p.evaluate("gonio.cosine()") + 0.7) < 1e-9
    assert p.evaluate("gonio.largestChange()") < 1e-12
    assert sorted(p.evaluate("gonio.sets()")) == first
    p.select_option("#how", "add")
    slide(p, "#dial", -0.7)
    assert abs(p.evaluate("gonio.cosine()") + 0.7) < 1e-9
    assert p.evaluate("gonio.largestChange()") > 0.1
    assert p.locator("#still").inner_text() == "moved"
    assert "another model" in p.locator("#truth").inner_text()


def test_a_shorter_vector_loses_its_region_and_keeps_every_cosine(opened, text):
    p = opened(text, **STILL)
    p.get_by_role("button", name="3 length").click()
    G = np.array(p.evaluate("gonio.gram()"))
    for factor, alive in ((0.72, True), (0.7, False)):  # it can win from 5 cos 45 degrees = 3.54 on
        slide(p, "#stretch", factor)
        assert (2 in p.evaluate("gonio.winners()")) == alive
        assert np.allclose(
            cosines(np.array(p.evaluate("gonio.scene().W"))), G / np.sqrt(np.outer(np.diag(G), np.diag(G)))
        )
    W = np.array(FIGURE_3)
    other = W.copy()
    other[2] *= 0.7
    side = np.linspace(-2, 2, 30)
    X = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    most = np.abs(softmax(X @ W.T) - softmax(X @ other.T)).max()
    assert abs(p.evaluate("gonio.largestChange()") - most) < 1e-9
    assert p.locator("#heatmoves").inner_text() == "still"
    assert p.locator("#heatstill").inner_text() == "changed"
    assert "never: 3" in p.locator("#never").inner_text()


def test_the_rankings_of_figures_3_and_4_side_by_side(opened, text):
    p = opened(text, **STILL)
    p.get_by_role("button", name="4 ranking").click()
    assert p.evaluate("[gonio.show.ranks, gonio.show.otherRanks]") == [16, 28]
    x = np.array(p.evaluate("gonio.state.pointer"))
    order = np.argsort(-(np.array(FIGURE_3) @ x)) + 1
    assert p.locator("#wins").inner_text() == " ".join(map(str, order))
    p.select_option("#scene", label="Figure 4, first model")
    assert p.evaluate("[gonio.show.ranks, gonio.show.otherRanks]") == [14, 14]
    A, B = (np.array(p.evaluate(f"gonio.data.steps[3].scenes[{k}].W")) for k in (2, 3))
    for k, W in ((2, A), (3, B)):
        assert gonio.rankings(Head(W, link="softmax")).near_degenerate.count == 14, k  # but for the rounding of 0.55
    assert p.locator("#other").is_visible()


def test_everything_is_above_the_fold_and_axe_finds_nothing(opened, accessible, text):
    for size, scheme in (((1280, 800), "light"), ((1280, 800), "dark"), ((390, 844), "light"), ((390, 844), "dark")):
        view = {"width": size[0], "height": size[1]}
        p = opened(text, viewport=view, color_scheme=scheme, has_touch=size[0] < 500, **STILL)
        for k in range(4):
            p.locator("#steps button").nth(k).click()
            p.evaluate(DRAWN)
            assert p.evaluate("document.documentElement.scrollWidth") <= size[0]
            for name in ("#rows", "#inputs", *(["#dial", "#bars", "#heat", "#alike"] if k < 3 else [])):
                box = p.locator(name).bounding_box()
                assert box["y"] + box["height"] <= size[1] + 1, (name, k, size)
        accessible(p)
    assert p.locator("#rows").evaluate("(e) => getComputedStyle(e).touchAction") == "pan-y"


def test_keys_move_vectors_and_pointer(opened, text):
    p = opened(text, **STILL)
    p.locator("#rows").focus()
    p.keyboard.press("ArrowRight")
    p.evaluate(DRAWN)
    assert p.evaluate("gonio.added()") > 0
    p.locator("#inputs").focus()
    at = p.evaluate("gonio.state.pointer[1]")
    p.keyboard.press("ArrowUp")
    assert p.evaluate("gonio.state.pointer[1]") > at


def test_what_is_shown_can_be_sent_as_an_address(opened, text):
    p = opened(text, "#step=sigmoid&pair=1,3&how=map&cos=-0.4&at=0.5,-1", **STILL)
    assert p.evaluate("gonio.state.pair") == [1, 3]
    assert p.evaluate("gonio.state.pointer") == [0.5, -1]
    assert abs(p.evaluate("gonio.cosine()") + 0.4) < 1e-9
    slide(p, "#dial", 0.3)
    p.wait_for_timeout(300)
    slide(p, "#dial", 0.25)
    assert "cos=0.25" in p.url
    again = opened(text, p.url[p.url.index("#") :], **STILL)
    assert abs(again.evaluate("gonio.cosine()") - 0.25) < 1e-9


def test_every_other_control_does_what_it_says(opened, text):
    p = opened(text, has_touch=True, **STILL)
    p.select_option("#first", "3")
    assert p.evaluate("gonio.state.pair") == [3, 1]
    assert abs(p.evaluate("gonio.stored()") - cosines(W1)[3, 1]) < 1e-12
    p.select_option("#second", "3")  # the two change places
    assert p.evaluate("gonio.state.pair") == [1, 3]
    assert p.locator("#first").input_value() == "1"
    box = p.locator("#inputs").bounding_box()
    for act in (p.mouse.move, p.touchscreen.tap):
        x, y = box["x"] + 0.3 * box["width"], box["y"] + (0.4 if act == p.mouse.move else 0.7) * box["height"]
        act(x, y)
        p.evaluate(DRAWN)
        k = min(box["width"], box["height"]) / 2 / (3 * 1.02)
        at = [(x - box["x"] - box["width"] / 2) / k, (box["y"] + box["height"] / 2 - y) / k]
        assert np.allclose(p.evaluate("gonio.state.pointer"), at, atol=0.02)
        shown = [float(x) for x in p.locator("#bars .value").all_inner_texts()]
        assert np.allclose(shown, np.sort(softmax(W1 @ p.evaluate("gonio.state.pointer")))[::-1], atol=6e-5)
    p.locator("#play").click()
    p.wait_for_timeout(300)
    assert p.evaluate("gonio.playing()")
    assert p.evaluate("gonio.largestChange()") < 1e-12
    p.locator("#dial").focus()
    p.keyboard.press("ArrowLeft")
    assert not p.evaluate("gonio.playing()")  # a hand on the slider stops it
    slide(p, "#dial", -0.3)
    p.locator("#reset").click()
    assert p.evaluate("gonio.state.change") is None
    p.get_by_role("button", name="4 ranking").click()
    p.select_option("#scene", label="Figure 3, label 3 of length 2")
    assert p.evaluate("gonio.show.ranks") == 28
    p.emulate_media(color_scheme="dark")
    p.evaluate(DRAWN)
    assert p.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 26)"
    p.emulate_media(media="print")
    assert p.locator("nav").is_hidden()


def test_heat_maps_fit_a_phone_in_every_step(opened, accessible, text, wide):
    head, F = wide
    sigmoid = Head(head.W, np.ones(60), link="sigmoid", labels=head.labels)
    for made, steps in ((text, 3), (page(head, ("l3", "l5", "l8"), embeddings=F), 4), (page(sigmoid), 4)):
        p = opened(made, viewport={"width": 390, "height": 844}, has_touch=True, **STILL)
        for k in range(steps):
            p.locator("#steps button").nth(k).click()
            p.evaluate("gonio.dial(-0.5)")
            top = p.locator("#dialbox").bounding_box()["y"]
            for name in ("#heat", "#alike"):
                box = p.locator(name).bounding_box()
                assert box["y"] + box["height"] <= top, (name, k, box, top)
            assert p.evaluate("document.documentElement.scrollWidth") <= 390
        p.locator("#steps button").first.click()
        accessible(p)
