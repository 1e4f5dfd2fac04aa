"""The step of inputs in a real browser: who can win over a set of inputs is what `can_win` proves over that set."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.explorer import page
from gonio.explorer.steps import INPUT_SETS, INPUTS_B, INPUTS_W
from tests.page.driving import DRAWN, STILL, slide

SETS = [gonio.AllInputs(), gonio.Nonnegative(), gonio.Box(-1, 1), gonio.AfterRMSNorm(np.ones(2))]
CAN = [[0, 1, 2, 3, 4, 5], [0, 1, 4, 5], [0, 1, 2, 3], [0, 1, 2, 3, 4]]  # as the step begins


@pytest.fixture(scope="module")
def text():
    return page()


def head(scene: int, factor: float) -> gonio.Head:
    W = np.array(INPUTS_W)
    W[4] *= factor
    return gonio.Head(W, INPUTS_B, link="softmax", inputs=SETS[scene])


@pytest.mark.parametrize("scene", range(4), ids=list(INPUT_SETS))
def test_who_can_win_is_proven_over_the_same_inputs(opened, text, scene):
    p = opened(text, **STILL)
    p.get_by_role("button", name="5 inputs").click()
    p.select_option("#scene", str(scene))
    assert p.evaluate("gonio.winners()") == CAN[scene]
    met = set()
    for factor in (0.1, 0.55, 0.83, 1.0, 1.05, 1.09, 1.15, 1.3, 1.6):
        slide(p, "#stretch", factor)
        proven = gonio.can_win(head(scene, factor))
        assert not len(proven.undecided)
        wins = sorted(proven.wins.tolist())
        assert p.evaluate("gonio.winners()") == wins, factor
        assert p.locator("#wins").inner_text() == f"{len(wins)} of 6 can win"
        never = ", ".join(str(i + 1) for i in range(6) if i not in wins)
        assert p.locator("#never").inner_text() == (f"never: {never}" if never else "")
        met.add(tuple(wins))
    assert len(met) > 1  # lengthening the row changes who can win
    slide(p, "#dial", -0.8)  # a vector added to all rows does not
    assert p.evaluate("gonio.winners()") == wins


def test_regions_lie_within_the_inputs_and_the_pointer_stays_there(opened, text):
    p = opened(text, **STILL)
    p.get_by_role("button", name="5 inputs").click()
    slide(p, "#stretch", 1.2)
    box = p.locator("#inputs").bounding_box()
    for scene in range(4):
        p.select_option("#scene", str(scene))
        assert p.evaluate("gonio.state.factor") == 1.2  # the same model over other inputs
        for across, up in ((0.05, 0.95), (0.95, 0.05), (0.5, 0.98), (0.9, 0.5)):
            p.mouse.move(box["x"] + across * box["width"], box["y"] + up * box["height"])
            p.evaluate(DRAWN)
            x = np.array(p.evaluate("gonio.state.pointer"))
            low, high = [(-2.2, 2.2), (0, 2.2), (-1, 1), (-2.2, 2.2)][scene]
            assert (x >= low).all()
            assert (x <= high).all()
            assert scene != 3 or np.linalg.norm(x) <= np.sqrt(2) * (1 + 1e-12)
            top = int(np.argmax(p.evaluate("gonio.probabilities()")))
            assert top in p.evaluate("gonio.winners()")
            assert top == int(np.argmax(head(scene, 1.2).logits(x[None])[0]))


def test_the_address_keeps_the_inputs(opened, text):
    p = opened(text, "#step=inputs&scene=3&length=1.4&at=3,3", **STILL)
    assert p.evaluate("gonio.state.scene") == 3
    assert np.hypot(*p.evaluate("gonio.state.pointer")) < np.sqrt(2) * (1 + 1e-12)
    assert p.locator("#scenename").inner_text() == "inputs"
    p.get_by_role("button", name="4 ranking").click()
    assert p.locator("#scenename").inner_text() == "model"
