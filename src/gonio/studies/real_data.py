"""The data that small networks are trained on here: scikit-learn's handwritten digits, MovieLens-100k in a package."""

from __future__ import annotations

import numpy as np

from gonio.papers.movielens import read
from gonio.papers.real import fixture
from gonio.studies.equal_runs import Data


def digits(seed: int = 0) -> Data:
    """1,797 handwritten digits of 8 x 8, a third held out."""
    from sklearn.datasets import load_digits

    X, y = (np.asarray(x) for x in load_digits(return_X_y=True))
    order = np.random.default_rng(seed).permutation(len(X))
    X, Y = X[order] / 16 - 0.3, np.eye(10)[y[order]]
    cut = 2 * len(X) // 3
    return Data("digits", X[:cut], Y[:cut], X[cut:], Y[cut:], steps=600)


def films(seed: int = 0, most: int = 400) -> Data | None:
    """Users of MovieLens by half of their films, asked for the other half; the most rated films; a fifth held out."""
    wheel = fixture("recbole-1.2.1-*.whl")
    if wheel is None:
        return None
    m = read(wheel)
    popular = np.sort(np.argsort(-m.counts, kind="stable")[:most])
    seen = np.asarray(m.X.tocsr()[:, popular].todense()) > 0
    seen = seen[seen.sum(axis=1) >= 10]
    rng = np.random.default_rng(seed)
    given = seen & (rng.random(seen.shape) < 0.5)
    rest = seen & ~given
    keep = given.any(axis=1) & rest.any(axis=1)
    X, Y = given[keep].astype(float), rest[keep] / rest[keep].sum(axis=1, keepdims=True)
    order = rng.permutation(len(X))
    X, Y = X[order], Y[order]
    cut = 4 * len(X) // 5
    return Data("MovieLens", X[:cut], Y[:cut], X[cut:], Y[cut:], steps=150)
