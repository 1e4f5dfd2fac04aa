"""The explorer's page of a given model: its whole rows, every label, its states, its link, hostile names."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio import GonioError, Head
from gonio.explorer import page, plane
from tests.page.driving import STILL, cosines, search, softmax


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
