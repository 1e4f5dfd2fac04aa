"""The canonical head: plain cosine is the (centred-)logit correlation, and the model predicts as before."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.core.errors import GonioError
from gonio.core.inputs import AfterLayerNorm


def naive(head, F):
    """The correlation of (centred) logits, from the logits themselves."""
    z = F @ head.W.astype(float).T + (0 if head.bias is None else head.bias)
    if head.link == "softmax":
        z = z - z.mean(axis=1, keepdims=True)
    return np.corrcoef(z.T)


def cosines(W):
    U = W / np.linalg.norm(W, axis=1, keepdims=True)
    return U @ U.T


@pytest.mark.theorem("GONIO.canonicalise")
@pytest.mark.parametrize("link", ["softmax", "sigmoid", "dot"])
@pytest.mark.parametrize("bias", [False, True])
def test_the_cosine_of_rows_is_the_correlation_of_logits(link, bias):
    rng = np.random.default_rng(3)
    W = rng.standard_normal((12, 5)) + 2
    head = gonio.Head(W, rng.standard_normal(12) if bias else None, link=link)
    F = rng.standard_normal((200, 5)) @ rng.standard_normal((5, 5)) + rng.standard_normal(5)
    c = gonio.canonicalise(head, F)
    assert np.abs(cosines(c.head.W) - naive(head, F)).max() < 1e-10
    if link != "dot":
        assert np.abs(c.head.probabilities(c.embeddings(F)) - head.probabilities(F)).max() < 1e-12
    else:
        assert np.abs(c.head.logits(c.embeddings(F)) - head.logits(F)).max() < 1e-10


def test_behind_a_layer_norm_the_direction_it_takes_out_is_dropped():
    rng = np.random.default_rng(4)
    gain, shift = rng.uniform(0.5, 2, 6), rng.standard_normal(6)
    head = gonio.Head(rng.standard_normal((9, 6)), link="softmax", inputs=AfterLayerNorm(gain, shift))
    z = rng.standard_normal((300, 6))
    z -= z.mean(axis=1, keepdims=True)
    F = gain * z / z.std(axis=1, keepdims=True) + shift
    c = gonio.canonicalise(head, F)
    assert c.head.shape == (9, 5)
    assert np.abs(cosines(c.head.W) - naive(head, F)).max() < 1e-9
    assert np.abs(c.head.probabilities(c.embeddings(F)) - head.probabilities(F)).max() < 1e-10


def test_too_few_or_degenerate_states_are_refused():
    rng = np.random.default_rng(5)
    head = gonio.Head(rng.standard_normal((12, 5)), link="softmax")
    with pytest.raises(GonioError, match="5 states were given and the inputs vary in 5 directions"):
        gonio.canonicalise(head, rng.standard_normal((5, 5)))
    flat = rng.standard_normal((100, 5))
    flat[:, 4] = flat[:, 3]
    with pytest.raises(GonioError, match="vary in 4 directions"):
        gonio.canonicalise(head, flat)
    with pytest.raises(GonioError, match="link is cosine"):
        gonio.canonicalise(gonio.Head(np.eye(3), link="cosine"), flat[:, :3])


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "llama tied, bfloat16"])
def test_a_rewritten_checkpoint_predicts_the_same_and_its_cosines_mean_something(name, tmp_path):
    from tests.models import made

    place = made.saved(tmp_path / "model", name)
    S = gonio.states(str(place), made.tokenizer(), made.documents(60))
    from gonio.models.canonical_checkpoint import write_canonical

    out, off = write_canonical(place, np.asarray(S), tmp_path / "out")
    assert off < 1e-5
    new = gonio.load(out)
    live = gonio.models.opening.open_model(place).model
    # The head as the model computes with it: a bfloat16 file is widened before it is rewritten.
    head = gonio.load(live.float())
    assert np.abs(cosines(new.W.astype(float)) - naive(head, np.asarray(S, float))).max() < 1e-4
    assert not new.source.tied


def test_other_families_are_refused_in_a_sentence(tmp_path):
    from gonio.models.canonical_checkpoint import write_canonical
    from tests.models import made

    place = made.saved(tmp_path / "model", "gpt2")
    with pytest.raises(GonioError, match="this is gpt2"):
        write_canonical(place, np.zeros((3, 16)), tmp_path / "out")
    assert not (tmp_path / "out").exists()
