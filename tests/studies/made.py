"""Heads made for the studies' tests: random ones, ones with clusters, and random equivalent forms of both."""

from __future__ import annotations

import numpy as np

from gonio.core.head import Head
from gonio.gauge import gauge_of


def random_head(n=120, d=6, points=400, seed=0, link="softmax", bias=False):
    rng = np.random.default_rng(seed)
    head = Head(rng.normal(size=(n, d)), rng.normal(size=n) if bias else None, link=link)
    return head, rng.normal(size=(points, d))


def clustered_head(n=120, d=6, groups=12, points=400, seed=0, names=False):
    """Labels in tight groups, whose names begin alike."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % groups
    W = rng.normal(size=(groups, d))[group] + 0.1 * rng.normal(size=(n, d))
    labels = [f"{chr(97 + g)}{chr(98 + g)}{chr(99 + g)}{i}" for i, g in enumerate(group)] if names else None
    return Head(W, link="softmax", labels=labels), rng.normal(size=(points, d)), group


def equivalent(head, F, seed=1, size=1.0):
    """The head in a random equivalent form, and the states that reach it there."""
    g = gauge_of(head).random(head, np.random.default_rng(seed), size)
    return g.apply(head), g.embeddings(F)
