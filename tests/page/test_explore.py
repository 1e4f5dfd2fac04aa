"""The interactive page in a real browser: cosines run, predictions stand still, and every number is Python's."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio import GonioError, Head
from gonio.explorer import page, plane
from gonio.explorer.figure_heads import FIGURE_1, FIGURE_3

STILL = {"reduced_motion": "reduce"}
W1 = np.array(FIGURE_1)


def cosines(W):
    U = W / np.linalg.norm(W, axis=1, keepdims=True)
    return U @ U.T


def softmax(Z):
    e = np.exp(Z - Z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# Two frames later the page has drawn what it was asked for, however busy the machine.
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def slide(p, name, value):
    p.locator(name).evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", value)
    p.evaluate(DRAWN)


@pytest.fixture(scope="module")
def text():
    return page()


@pytest.fixture(scope="module")
def wide():
    """A head wider than a plane, whose cosines the plane alone does not show."""
    rng = np.random.default_rng(2)
    W = rng.normal(size=(60, 12)) + 0.8
    F = rng.normal(size=(200, 12))
    return Head(W, link="softmax", labels=[f"l{i}" for i in range(60)]), F


def search(p, typed):
    p.wait_for_selector("html[data-ready=yes]", state="attached")
    p.locator("#search").fill(typed)
    p.locator("#search").dispatch_event("change")
    p.evaluate(DRAWN)


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


def test_the_cosines_of_a_wide_head_are_those_of_its_whole_rows(opened, wide):
    head, F = wide
    W = head.W
    p = opened(page(head, ("l3", "l5", "l8"), embeddings=F), **STILL)
    shown = [head.index(x) for x in p.evaluate("gonio.scene().labels")]
    assert shown[:3] == [3, 5, 8]
    assert abs(p.evaluate("gonio.cosine()") - cosines(W)[3, 5]) < 1e-9
    assert f"{cosines(W)[3, 5]:.4f} as stored" in p.locator("#stored").inner_text()
    for target in (-1, 0, 0.5, 0.9):
        for pair in ((0, 1), (1, len(shown) - 1)):
            p.evaluate(f"gonio.state.pair = {list(pair)}")
            p.evaluate(f"gonio.dial({target})")
            assert abs(p.evaluate("gonio.cosine()") - target) < 1e-6
            assert p.evaluate("gonio.largestChange()") < 1e-9
            moved = gonio.dial(head, shown[pair[0]], shown[pair[1]], cosine=target)
            assert p.evaluate("gonio.added()") <= np.linalg.norm(moved.translation) * (1 + 1e-3)
    p.evaluate("gonio.state.pair = [0, 1]")
    p.evaluate("gonio.dial(0.5)")
    v = gonio.dial(head, 3, 5, cosine=0.5).translation  # the smallest one is unique: all other cosines agree too
    G = np.array(p.evaluate("gonio.gram()"))
    assert np.allclose(G / np.sqrt(np.outer(np.diag(G), np.diag(G))), cosines(W[shown] + v), atol=1e-6)
    L = head.logits(F)
    C = np.corrcoef((L - L.mean(axis=1, keepdims=True)).T)[np.ix_(shown, shown)]
    assert np.abs(np.array(p.evaluate("gonio.show.C")) - C).max() < 1e-3
    assert len(p.evaluate("gonio.scene().dots")) == 200


def test_a_real_heads_plane_gives_its_own_probabilities(opened):
    rng = np.random.default_rng(0)
    W, b = rng.normal(size=(200, 16)), rng.normal(size=200) / 4
    head = Head(W, b, link="softmax", labels=[f"l{i}" for i in range(200)])
    p = opened(page(head, ("l3", "l5", "l8")), **STILL)
    kept = [head.index(x) for x in plane(head, ("l3", "l5", "l8"))["labels"]]
    Q = np.linalg.svd((W[[5, 8]] - W[3]).T, full_matrices=False)[0]
    x = gonio.can_top(head, ["l3", "l5", "l8"]).certificate.x + Q @ p.evaluate("gonio.state.pointer")
    assert np.abs(softmax(W[kept] @ x + b[kept]) - p.evaluate("gonio.probabilities()")).max() < 1e-12
    search(p, "l77")
    assert p.evaluate("gonio.scene().of") == "l77"
    names = p.evaluate("gonio.scene().labels")
    assert {head.index(x) for x in names[1:]} == set(np.argsort(-cosines(W)[77])[1 : len(names)].tolist())
    assert abs(p.evaluate("gonio.stored()") - cosines(W)[77, head.index(names[1])]) < 1e-4
    p.evaluate("gonio.dial(-0.9)")
    assert p.evaluate("gonio.largestChange()") < 1e-9


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


def test_any_label_of_a_head_is_searched_for_and_drawn_with_its_states(opened):
    rng = np.random.default_rng(4)
    W = rng.normal(size=(900, 24))
    W[17], W[600] = W[16], 0
    b = rng.normal(size=900) / 5
    names = [f"l{i}" for i in range(897)] + ["Ġdog", "Twice", "Twice"]
    head, F = Head(W, b, link="softmax", labels=names), rng.normal(size=(300, 24))
    text = page(head, embeddings=F)
    assert len(text) < 1_400_000
    p = opened(text, **STILL)
    C = np.corrcoef((head.logits(F) - head.logits(F).mean(axis=1, keepdims=True)).T)
    for typed, row in (("l0", 0), ("L899".lower(), None), ("#899", 899), (" dog", 897), ("l16", 16), ("#450", 450)):
        search(p, typed)
        if row is None:
            assert "No label is called l899" in p.locator("#story").inner_text()
            continue
        s = p.evaluate("(({row, W, G, C, labels, dots, bias}) => ({row, W, G, C, labels, dots, bias}))(gonio.scene())")
        assert s["row"] == row
        near = np.argsort(-np.nan_to_num(cosines_of(W, row), nan=-2), kind="stable")
        which = [row, *near[near != row][:19]]
        assert s["labels"] == [names[i] for i in which]
        G = W[which] @ W[which].T
        assert np.abs(np.array(s["G"]) - G).max() < 1e-4 * G.max()
        c = G / np.sqrt(np.outer(np.diag(G), np.diag(G)))
        a, k = p.evaluate("gonio.state.pair")
        assert (a, k) == (0, 2 if row == 16 else 1)  # of twins no cosine moves: the next
        assert abs(p.evaluate("gonio.stored()") - c[0, k]) < 5e-5
        assert np.abs(np.array(s["C"]) - C[np.ix_(which, which)]).max() < 0.006
        # The plane: its products are those of the rows with two directions of length one, through which states fall.
        flat = np.array(s["W"])
        basis = np.linalg.lstsq(W[which], flat, rcond=None)[0]
        assert np.abs(W[which] @ basis - flat).max() < 1e-3
        shadow = F[np.unique(np.linspace(0, 299, 100).astype(int))] @ basis
        assert np.abs(shadow - np.array(s["dots"])).max() < 0.02 * np.abs(shadow).max()
        assert np.allclose(s["bias"], b[which], atol=1e-6)
        p.evaluate("gonio.dial(-0.8)")
        assert abs(p.evaluate("gonio.cosine()") + 0.8) < 1e-6
        assert p.evaluate("gonio.largestChange()") < 1e-9
    search(p, "l600")
    assert "is zero" in p.locator("#story").inner_text()
    p.locator("#search").fill("twi")
    assert p.locator("#names option").evaluate_all("(x) => x.map((o) => o.value)") == ["Twice", "#899"]
    search(p, "#450")
    p.wait_for_timeout(300)
    p.evaluate("gonio.show()")
    again = opened(text, p.url[p.url.index("#") :], **STILL)
    again.wait_for_selector("html[data-ready=yes]", state="attached")
    assert again.evaluate("gonio.scene().of") == "l450"


def test_a_page_of_a_large_head_carries_some_labels_and_says_how_to_carry_all(opened, monkeypatch):
    monkeypatch.setattr("gonio.explorer.places.CARRIED", 50)
    head = Head(np.random.default_rng(5).normal(size=(120, 6)), link="softmax", labels=[f"l{i}" for i in range(120)])
    p = opened(page(head, ("l100", "l3", "l5")), **STILL)
    search(p, "l100")
    assert p.evaluate("gonio.scene().of") == "l100"
    search(p, "l90")
    said = p.locator("#story").inner_text()
    assert "50 of 120 labels" in said
    assert "--every-label" in said
    assert p.evaluate("gonio.scene().of") == "l100"
    p = opened(page(head, every=True), **STILL)
    search(p, "l90")
    assert p.evaluate("gonio.scene().of") == "l90"


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


def cosines_of(W, row):
    with np.errstate(invalid="ignore"):
        return W @ W[row] / np.linalg.norm(W, axis=1) / np.linalg.norm(W[row])


@pytest.mark.parametrize(
    ("more", "how"),
    [({"link": "softmax"}, "add"), ({"link": "softmax", "softcap": 2.0}, "map"), ({"link": "sigmoid"}, "map"), ({"link": "dot"}, "add")],
)  # fmt: skip
def test_what_is_said_of_predictions_is_true_of_the_link(opened, more, how):
    p = opened(page(Head(np.random.default_rng(3).normal(size=(20, 4)), **more)), **STILL)
    assert p.evaluate("gonio.state.how") == how
    p.evaluate("gonio.dial(-0.9)")
    assert p.evaluate("gonio.largestChange()") < 1e-9
    p.select_option("#how", "add")
    p.evaluate("gonio.dial(-0.9)")
    moves = how == "map"
    assert (p.evaluate("gonio.largestChange()") > 1e-3) == moves
    assert ("changes no" in p.locator("#truth").inner_text()) == (not moves)
    assert ("order of scores" in p.locator("#truth").inner_text()) == (more["link"] == "dot")


def test_hostile_labels_are_text(opened):
    names = ["</script><script>document.title='no'</script>", "<img src=x onerror=alert(1)>", "‮abc", "日本", "😀"]
    head = Head(np.random.default_rng(1).normal(size=(5, 3)), link="softmax", labels=names)
    p = opened(page(head), **STILL)
    assert p.title() == "Same model. Any cosine."
    assert p.locator("img").count() == 0
    assert p.locator("#first option").count() == 5


def test_a_plane_that_cannot_be_drawn_is_refused_in_one_sentence():
    with pytest.raises(GonioError, match="three labels of width two"):
        page(Head([[1.0], [2.0], [3.0]], link="softmax"))
    with pytest.raises(GonioError, match="on one line"):
        page(Head([[1.0, 0], [2, 0], [3, 0]], link="softmax"), (0, 1, 2))
    with pytest.raises(GonioError, match="three different"):
        page(Head(np.eye(3), link="softmax"), (0, 1, 1))
    with pytest.raises(GonioError, match="cosine"):
        page(Head(np.eye(3), link="cosine"))
