"""What the explorer's tests share: naive formulas, and the hands that move its controls."""

from __future__ import annotations

import numpy as np

STILL = {"reduced_motion": "reduce"}


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


def search(p, typed):
    p.wait_for_selector("html[data-ready=yes]", state="attached")
    p.locator("#search").fill(typed)
    p.locator("#search").dispatch_event("change")
    p.evaluate(DRAWN)
