"""Results in a notebook: a card for each, in a page with a style of its own, which stays as it was."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio import Head

FOREIGN = """<style>
  body { font: 22px serif; color: rgb(1, 2, 3); background: rgb(250, 240, 230); }
  table, td, th { border: 3px solid red; padding: 20px; } p, h3, dd, dt { margin: 40px; font-size: 30px; color: rgb(200, 0, 0); }
  h3 { text-transform: uppercase; } dl { display: block; } code { background: yellow; } .card { opacity: 1; }
</style>"""


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    head = Head(rng.normal(size=(30, 3)), link="softmax", labels=[f"label {i}" for i in range(30)])
    return {
        "CanWin": gonio.can_win(head),
        "Verdict": gonio.can_win(head, 0),
        "Alike": gonio.alike(head, 0, 1, embeddings=rng.normal(size=(50, 3))),
        "Dialled": gonio.dial(head, 0, 1, cosine=-1),
        "SameModel": gonio.same_model(head, head),
        "Audit": gonio.audit(head),
        "Check": gonio.check(rng.normal(size=(80, 4))),
        "label_sets": gonio.label_sets(Head(head.W[:6], link="sigmoid")),
        "rankings": gonio.rankings(Head(head.W[:6], link="softmax")),
        "Factors": gonio.factors.fit(rng.poisson(1, (30, 12)).astype(float), 3, "product", lam=1),
    }


SAYS = {
    "CanWin": "never win", "Verdict": "can 'label 0' win?", "Alike": "cosine as stored", "Dialled": "-1.000000",
    "SameModel": "The same model", "Audit": "to act on", "Check": "embeddings", "label_sets": "possible",
    "rankings": "Rankings of 6 labels", "Factors": "penalty on the product",
}  # fmt: skip


def test_every_result_has_a_card_that_leaves_the_notebook_alone(opened, results):
    outside = "<p id='o'>a paragraph</p><table id='t'><tr><td>1</td></tr></table>"
    look = "(id) => JSON.stringify(Object.fromEntries([...getComputedStyle(document.getElementById(id))].map((k) => [k, getComputedStyle(document.getElementById(id))[k]]).filter(([k]) => !/height|width|origin|block-size|inline-size/.test(k))))"
    bare = opened(f"{FOREIGN}<body>{outside}</body>")
    before = [bare.evaluate(look, x) for x in ("o", "t")]
    cards = "".join(f"<div id='card-{k}'>{r._repr_html_()}</div>" for k, r in results.items())
    p = opened(f"{FOREIGN}<body>{outside}{cards}</body>", viewport={"width": 900, "height": 700})
    assert [p.evaluate(look, x) for x in ("o", "t")] == before
    for name, words in SAYS.items():
        card = p.locator(f"#card-{name} .gonio.card")
        assert words in card.inner_text().replace("\u202f", " "), name
        assert card.bounding_box()["height"] < 330, name
        size = card.locator("h3").evaluate("(e) => [getComputedStyle(e).fontSize, getComputedStyle(e).marginTop]")
        assert size == ["15.68px", "0px"], name
    assert p.evaluate("document.documentElement.scrollWidth") <= 900


def test_the_numbers_of_a_card_are_the_results_own(results):
    wins = results["CanWin"]
    assert f"<dt>never win</dt><dd>{len(wins.never)}</dd>" in wins._repr_html_()
    alike = results["Alike"]
    assert f"<dd>{alike.cosine:.4f}</dd>" in alike._repr_html_()
    assert f"{alike.instead[1]:.4f} ({alike.instead[2][0]:.3f} to {alike.instead[2][1]:.3f})" in alike._repr_html_()
    sets = results["label_sets"]
    assert f"<dt>possible</dt><dd>{len(sets)}</dd>" in sets._repr_html_()
