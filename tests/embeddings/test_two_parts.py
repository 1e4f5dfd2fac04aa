"""Where values fall into two parts: the cut against trying every one, and values cut a part at a time."""

import numpy as np
import pytest

from gonio.embeddings import two_parts as module


def naive_cut(v: np.ndarray) -> int:
    """The cut with the largest variance between the parts, each tried by itself."""
    gains = [i * (len(v) - i) * (v[:i].mean() - v[i:].mean()) ** 2 for i in range(1, len(v))]
    return int(np.argmax(gains)) + 1


@pytest.mark.parametrize("together", [7, 64, 1 << 18])
@pytest.mark.parametrize("seed", range(6))
def test_the_cut_is_the_best_of_all(seed, together, monkeypatch):
    monkeypatch.setattr(module, "TOGETHER", together)
    rng = np.random.default_rng(seed)
    v = np.sort(np.concatenate([rng.normal(size=60), rng.normal(rng.uniform(0, 9), 0.5, size=20 + 10 * seed)]))
    found = module.two_parts(v)
    at = naive_cut(v)
    assert found is not None
    assert found.cut == pytest.approx((v[at - 1] + v[at]) / 2, rel=1e-12)
    assert found.share == min(at, len(v) - at) / len(v)
