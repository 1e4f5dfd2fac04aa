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


def test_the_cosine_shown_is_that_of_the_whole_label_vectors(opened):
    rng = np.random.default_rng(2)
    W = rng.normal(size=(60, 12)) + 0.8
    head = Head(W, link="softmax", labels=[f"l{i}" for i in range(60)])
    p = opened(page(head, ("l3", "l5", "l8")))

    def true(a, b):
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    assert abs(p.evaluate("gonio.cosine()") - true(W[3], W[5])) < 1e-9
    assert f"{true(W[3], W[5]):.4f} as stored" in p.locator("#stored").inner_text()
    # A vector of the plane added to all rows: the whole rows move by Q v.
    p.evaluate("gonio.state.v = [0.7, -0.4]; gonio.show()")
    Q = np.linalg.svd((W[[5, 8]] - W[3]).T, full_matrices=False)[0]
    v = Q @ [0.7, -0.4]
    assert abs(p.evaluate("gonio.cosine()") - true(W[3] + v, W[5] + v)) < 1e-9
    assert abs(p.evaluate("gonio.stored()") - true(W[3], W[5])) < 1e-9
    for c in (-1, 0, 0.5, 1):  # any pair of the labels drawn, any cosine, and no probability moves
        for pair in ((0, 1), (1, len(p.evaluate("gonio.rows()")) - 1)):
            p.select_option("#first", str(pair[0]))
            p.select_option("#second", str(pair[1]))
            dial(p, c)
            assert abs(p.evaluate("gonio.cosine()") - c) < 2e-3
            assert p.evaluate("gonio.largestChange()") < 1e-9


def test_a_changed_length_is_counted_against_the_model_as_it_came(opened):
    p = opened(page())
    p.select_option("#preset", label="Figure 3, first model")
    assert p.locator("#change").inner_text() == "0"
    p.eval_on_selector("#stretch", "e => { e.value = 0.5; e.dispatchEvent(new Event('input')); }")
    W = np.array(p.evaluate("JSON.parse(document.getElementById('data').textContent).presets[gonio.state.preset].W"))
    reach, other = 2, W.copy()
    other[2] *= 0.5
    side = np.linspace(-reach, reach, 30)
    X = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

    def softmax(z):
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    most = np.abs(softmax(X @ W.T) - softmax(X @ other.T)).max()
    assert most > 0.1
    assert abs(p.evaluate("gonio.largestChange()") - most) < 1e-9
    assert "another model" in p.locator("#truth").inner_text()


def test_what_is_said_of_predictions_is_true_of_the_link_shown(opened):
    rng = np.random.default_rng(3)
    W = rng.normal(size=(20, 4))
    for more, moves in (({"link": "softmax"}, False), ({"link": "softmax", "softcap": 2.0}, True),
                        ({"link": "sigmoid"}, True), ({"link": "dot"}, False)):  # fmt: skip
        p = opened(page(Head(W, **more)))
        wins = p.evaluate("gonio.winners()")
        dial(p, -0.9)
        assert (p.evaluate("gonio.largestChange()") > 1e-3) == moves
        said = p.locator("#truth").inner_text()
        assert ("changes no" in said) == (not moves)
        if more["link"] != "sigmoid":
            assert p.evaluate("gonio.winners()") == wins
        assert ("order of scores" in said) == (more["link"] == "dot")
    p = opened(page())
    assert "changes no probability" in p.locator("#truth").inner_text()
    p.select_option("#link", "sigmoid")
    assert "changes no" not in p.locator("#truth").inner_text()


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
